"""What is done with one block of rows or one shard of columns.

Every function takes and returns plain values, so that it can run anywhere, and again after a loss.
A sweep over the columns is a Newton step that all blocks take part in (see `newton_sums`):

- H and g of every column are summed over the blocks, and the step d = -H^-1 g is solved for;
- the blocks tell what steps of a few lengths do to their censored cells. The losses have a
  curvature of at most 1, so that besides these lengths there is one, s / (s + r) with the slope -s
  and r = sum (1 - curvature) dx^2, that lowers the objective: by at least half the slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from declip import kernels
from declip.blocks.running import fold
from declip.blocks.table import Block
from declip.lowrank import LowRank
from declip.solvers.als import ridge_of, solve_rows, update_rows
from declip.solvers.noise import CensoredSums, censored_cells
from declip.svd import root

__all__ = [
    "LENGTHS",
    "Move",
    "ObjectiveTerms",
    "Part",
    "Start",
    "Stats",
    "add",
    "advance_columns",
    "begin",
    "column_step",
    "column_sums",
    "column_trial",
    "first",
    "loss_at_scale",
    "moved",
    "random_part",
    "second",
    "starting_stats",
    "stats",
    "sweep_rows",
]

LENGTHS = np.array([1.0, 0.5, 0.25])


@dataclass(frozen=True)
class ObjectiveTerms:
    """What is minimised: the objective, but for the cells."""

    alpha: float
    alpha_bias: float | None
    bias: bool
    clipped: str
    mean: float = 0.0
    scale: float = 0.0
    threads: int = 1

    def model(self, A: NDArray, B: NDArray) -> LowRank:
        """Return the matrix of some rows and columns."""
        return LowRank(A, B, self.mean, self.bias)


class Part(NamedTuple):
    """Factors of a block of rows or a shard of columns: as they are, and one sweep earlier."""

    now: NDArray
    before: NDArray


class Start(NamedTuple):
    """Where a sweep begins: the factors as they are, and ahead of them."""

    now: NDArray
    ahead: NDArray


@dataclass(frozen=True)
class Move:
    """What balancing does to the factors of one side, and centring to its offsets."""

    map: NDArray | None = None
    shift: float = 0.0

    def __call__(self, F: NDArray, bias: bool) -> NDArray:
        """Return the factors after the move."""
        if self.map is None:
            return F
        out = F.copy()
        k = F.shape[1] - bias
        out[:, :k] = F[:, :k] @ self.map.astype(F.dtype)
        if bias:
            out[:, -1] -= F.dtype.type(self.shift)
        return out


class Stats(NamedTuple):
    """What the driver learns of a part: a root of P^T P, the offsets, and the loss of its cells."""

    root: NDArray
    offset_sum: float
    offset_squares: float
    loss: float = 0.0
    censored: CensoredSums = CensoredSums(0.0, 0.0)


class Step(NamedTuple):
    """A Newton step of every column, and its slope."""

    d: NDArray
    slope: NDArray


def random_part(
    state: dict[str, Any],
    shape: tuple[int, int],
    size: float,
    noise: float,
    sign: float,
    bias: bool,
    dtype: str,
) -> tuple[Part, dict[str, Any]]:
    """Return factors to start with, and the state of the generator after them.

    Parts drawn one after the other make up the start of a fit in memory.
    """
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    F = sign * (size + noise * rng.standard_normal(shape))
    if bias:
        F = np.column_stack([F, np.zeros(len(F))])
    F = F.astype(dtype)
    return Part(F, F), dict(rng.bit_generator.state)


def begin(part: Part, move: Move, t: float, bias: bool) -> Start:
    """Return a part where the sweep begins: t of the way from the last place to this one."""
    now = move(part.now, bias)
    if t == 1:
        return Start(now, now)
    before = move(part.before, bias)
    return Start(now, before + now.dtype.type(t) * (now - before))


def moved(part: Part, move: Move, bias: bool) -> Part:
    """Return a part after a last move."""
    now = move(part.now, bias)
    return Part(now, now)


def column_sums(
    blocks: Sequence[Block],
    rows: Sequence[Start],
    columns: Start,
    span: tuple[int, int],
    terms: ObjectiveTerms,
) -> NDArray:
    """Return what some blocks add to the Newton step of the columns of a shard."""

    def of(b: int) -> NDArray:
        design, offset = terms.model(rows[b].ahead, columns.ahead).T.design()
        return kernels.newton_sums(
            *(blocks[b].by_col(*span, terms.clipped), columns.ahead, design, offset),
            scale=terms.scale,
            threads=terms.threads,
        )

    return fold(_add, of, len(blocks))


def column_step(sums: NDArray, columns: Start, terms: ObjectiveTerms) -> Step:
    """Return the Newton step of the columns of a shard."""
    ridge = ridge_of(terms.model(columns.ahead, columns.ahead), terms.alpha, terms.alpha_bias)
    return Step(*kernels.newton_solve(sums, columns.ahead, ridge, threads=terms.threads))


def column_trial(
    blocks: Sequence[Block],
    rows: Sequence[Start],
    columns: Start,
    step: Step,
    span: tuple[int, int],
    terms: ObjectiveTerms,
) -> NDArray:
    """Return what the step does to the censored cells of some blocks."""

    def of(b: int) -> NDArray:
        if blocks[b].n_censored == 0 or terms.clipped == "missing":
            return np.zeros((len(step.d), 3 + len(LENGTHS)))
        design, offset = terms.model(rows[b].ahead, columns.ahead).T.design()
        return kernels.step_trial(
            *(blocks[b].by_col(*span, terms.clipped), columns.ahead, step.d, design, offset),
            LENGTHS,
            scale=terms.scale,
            threads=terms.threads,
        )

    return fold(_add, of, len(blocks))


def advance_columns(columns: Start, step: Step, trial: NDArray) -> Part:
    """Take the step of each column at the length that lowers its objective most."""
    slope, (censored_slope, curved, squares) = step.slope, trial[:, :3].T
    # Without censored cells: (slope - censored_slope) t + (-slope - curved) t^2 / 2.
    changes = [
        (slope - censored_slope) * t
        + 0.5 * np.maximum(-slope - curved, 0.0) * t * t
        + trial[:, 3 + i]
        for i, t in enumerate(LENGTHS)
    ]
    with np.errstate(invalid="ignore"):
        sure = np.nan_to_num(-slope / (-slope + np.maximum(squares - curved, 0.0)))
    gains = np.stack([*changes, 0.5 * slope * sure, np.zeros_like(slope)])
    lengths = np.stack([*(np.full_like(slope, t) for t in LENGTHS), sure, np.zeros_like(slope)])
    best = np.argmin(gains, axis=0)  # of equal ones the first, the longest
    t = lengths[best, np.arange(len(best))]
    return Part(columns.ahead + t[:, None].astype(step.d.dtype) * step.d, columns.now)


def sweep_rows(
    block: Block,
    rows: Start,
    shards: Sequence[Part],
    terms: ObjectiveTerms,
    to_the_end: bool = False,
) -> tuple[Part, Stats]:
    """Lower the objective of the rows of a block (to the end: to rounding), columns fixed."""
    model = terms.model(rows.ahead, _joined(shards))
    side = block.by_row(terms.clipped)
    if to_the_end:
        model = solve_rows(
            *(side, model, terms.alpha, terms.scale, terms.threads), alpha_bias=terms.alpha_bias
        )
        loss = _loss(side, model, terms)
    else:
        model, loss = update_rows(
            side, model, terms.alpha, terms.alpha_bias, terms.scale, threads=terms.threads
        )
    part = Part(model.A, rows.now)
    seen = _censored_cells(side, model, terms) if terms.scale > 0 else CensoredSums(0.0, 0.0)
    return part, stats(part, terms)._replace(loss=loss, censored=seen)


def starting_stats(
    block: Block, rows: Part, shards: Sequence[Part], terms: ObjectiveTerms
) -> Stats:
    """Return the stats of a block as it is."""
    model, side = terms.model(rows.now, _joined(shards)), block.by_row(terms.clipped)
    return stats(rows, terms)._replace(loss=_loss(side, model, terms))


def loss_at_scale(
    block: Block, rows: Part, shards: Sequence[Part], terms: ObjectiveTerms
) -> CensoredSums:
    """Return the censored cells of a block at another noise scale."""
    model = terms.model(rows.now, _joined(shards))
    return _censored_cells(block.by_row(terms.clipped), model, terms)


def stats(part: Part, terms: ObjectiveTerms) -> Stats:
    """Return what the driver has to know of a part."""
    k = part.now.shape[1] - terms.bias
    offsets = part.now[:, -1].astype(np.float64) if terms.bias else np.zeros(1)
    with threadpool_limits(limits=1, user_api="blas"):  # sums that no number of threads changes
        return Stats(root(part.now[:, :k]), float(offsets.sum()), float(offsets @ offsets))


def add(left: NDArray, right: NDArray) -> NDArray:
    """Return the sum of two arrays."""
    return left + right


def _add(total: NDArray, more: NDArray) -> NDArray:
    total += more
    return total


def first(pair: tuple[Any, Any]) -> Any:
    """Return the first of two."""
    return pair[0]


def second(pair: tuple[Any, Any]) -> Any:
    """Return the second of two."""
    return pair[1]


def _joined(shards: Sequence[Part]) -> NDArray:
    return shards[0].now if len(shards) == 1 else np.concatenate([s.now for s in shards])


def _loss(side: kernels.Side, model: LowRank, terms: ObjectiveTerms) -> float:
    design, offset = model.design()
    return kernels.residuals(
        side, model.A, design, offset, scale=terms.scale, threads=terms.threads
    )[0]


def _censored_cells(side: Any, model: LowRank, terms: ObjectiveTerms) -> CensoredSums:
    x = model.predict(side.censored_rows(), side.censored_idx, terms.threads)
    return censored_cells(x, side.lower, side.upper, terms.scale, terms.threads)
