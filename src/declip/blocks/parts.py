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
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from declip import kernels
from declip.blocks.running import fold
from declip.blocks.table import Block
from declip.cells import Cells
from declip.losses import CensoredSums, Hinge, Loss
from declip.lowrank import LowRank
from declip.penalties import Ridge
from declip.solvers.als import solve_rows, update_rows
from declip.solvers.start import RandomStart
from declip.svd import root

__all__ = [
    "LENGTHS",
    "Draw",
    "Move",
    "ObjectiveTerms",
    "Part",
    "Stats",
    "SweepStart",
    "add",
    "advance_columns",
    "begin",
    "censored_sums",
    "column_step",
    "column_sums",
    "column_trial",
    "first",
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

    penalty: Ridge
    bias: bool
    clipped: str
    threads: int = 1
    mean: float = 0.0
    loss: Loss = field(default_factory=Hinge)

    def model(self, A: NDArray, B: NDArray) -> LowRank:
        """Return the matrix of some rows and columns."""
        return LowRank(A, B, self.mean, self.bias)


class Part(NamedTuple):
    """Factors of a block of rows or a shard of columns: as they are, and one sweep earlier."""

    now: NDArray
    before: NDArray


class SweepStart(NamedTuple):
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


@dataclass(frozen=True)
class Draw:
    """How the factors of a part are drawn: all in turn make up the start of a fit in memory."""

    start: RandomStart
    rank: int
    bias: bool
    dtype: str


def random_part(
    state: dict[str, Any], draw: Draw, n: int, columns: bool
) -> tuple[Part, dict[str, Any]]:
    """Return the factors of n rows or columns, and the state of the generator after them."""
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    F = draw.start.draw(n, draw.rank, rng, columns)
    if draw.bias:
        F = np.column_stack([F, np.zeros(len(F))])
    F = F.astype(draw.dtype)
    return Part(F, F), dict(rng.bit_generator.state)


def begin(part: Part, move: Move, t: float, bias: bool) -> SweepStart:
    """Return a part where the sweep begins: t of the way from the last place to this one."""
    now = move(part.now, bias)
    if t == 1:
        return SweepStart(now, now)
    before = move(part.before, bias)
    return SweepStart(now, before + now.dtype.type(t) * (now - before))


def moved(part: Part, move: Move, bias: bool) -> Part:
    """Return a part after a last move."""
    now = move(part.now, bias)
    return Part(now, now)


def column_sums(
    blocks: Sequence[Block],
    rows: Sequence[SweepStart],
    columns: SweepStart,
    span: tuple[int, int],
    terms: ObjectiveTerms,
) -> NDArray:
    """Return what some blocks add to the Newton step of the columns of a shard."""

    def of(b: int) -> NDArray:
        side = blocks[b].by_col(*span, terms.clipped)
        problem = terms.model(rows[b].ahead, columns.ahead).T.row_problem(side, terms.loss)
        return kernels.newton_sums(problem, columns.ahead, threads=terms.threads)

    return fold(_add, of, len(blocks))


def column_step(sums: NDArray, columns: SweepStart, terms: ObjectiveTerms) -> Step:
    """Return the Newton step of the columns of a shard."""
    F = columns.ahead
    ridge = terms.penalty.vector(F.shape[1] - terms.bias, terms.bias, F.dtype)
    return Step(*kernels.newton_solve(sums, F, ridge, threads=terms.threads))


def column_trial(
    blocks: Sequence[Block],
    rows: Sequence[SweepStart],
    columns: SweepStart,
    step: Step,
    span: tuple[int, int],
    terms: ObjectiveTerms,
) -> NDArray:
    """Return what the step does to the censored cells of some blocks."""

    def of(b: int) -> NDArray:
        side = blocks[b].by_col(*span, terms.clipped)
        if len(side.lower) == 0:
            return np.zeros((len(step.d), 3 + len(LENGTHS)))
        problem = terms.model(rows[b].ahead, columns.ahead).T.row_problem(side, terms.loss)
        return kernels.step_trial(problem, columns.ahead, step.d, LENGTHS, threads=terms.threads)

    return fold(_add, of, len(blocks))


def advance_columns(columns: SweepStart, step: Step, trial: NDArray) -> Part:
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
    rows: SweepStart,
    shards: Sequence[Part],
    terms: ObjectiveTerms,
    to_the_end: bool = False,
) -> tuple[Part, Stats]:
    """Lower the objective of the rows of a block (to the end: to rounding), columns fixed."""
    model = terms.model(rows.ahead, _joined(shards))
    side = block.by_row(terms.clipped)
    if to_the_end:
        model = solve_rows(side, model, terms.penalty, terms.loss, terms.threads)
        cells = _loss(side, model, terms)
    else:
        model, cells = update_rows(side, model, terms.penalty, terms.loss, threads=terms.threads)
    part = Part(model.A, rows.now)
    found = stats(part, terms)._replace(loss=cells)
    if terms.loss.has_scale:
        found = found._replace(censored=_censored_sums(side, model, terms))
    return part, found


def starting_stats(
    block: Block, rows: Part, shards: Sequence[Part], terms: ObjectiveTerms
) -> Stats:
    """Return the stats of a block as it is."""
    model, side = terms.model(rows.now, _joined(shards)), block.by_row(terms.clipped)
    return stats(rows, terms)._replace(loss=_loss(side, model, terms))


def censored_sums(
    block: Block, rows: Part, shards: Sequence[Part], terms: ObjectiveTerms
) -> CensoredSums:
    """Return the sums over the censored cells of a block under another loss."""
    model = terms.model(rows.now, _joined(shards))
    return _censored_sums(block.by_row(terms.clipped), model, terms)


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


def _loss(side: Cells, model: LowRank, terms: ObjectiveTerms) -> float:
    problem = model.row_problem(side, terms.loss)
    return kernels.total_loss(problem, model.A, threads=terms.threads)


def _censored_sums(side: Cells, model: LowRank, terms: ObjectiveTerms) -> CensoredSums:
    x = model.predict(side.censored_rows(), side.censored_idx, terms.threads)
    return terms.loss.sums(x, side.lower, side.upper, terms.threads)
