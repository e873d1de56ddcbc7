"""Alternating minimisation over blocks: the loop of `declip.solvers.als`, with the cells elsewhere.

Row factors stay with their block, column factors are kept in shards, and the driver sees only what
it decides by: the loss, k x k roots for balancing, and sums of offsets. A sweep over the columns is
one Newton step of each (`declip.blocks.parts`), a sweep over the rows is that of a fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from declip.blocks import parts
from declip.blocks.checkpoint import Checkpoint
from declip.blocks.parts import Move, ObjectiveTerms, Part, Stats
from declip.blocks.running import Runner, WorkersReplacedError, tree
from declip.blocks.state import State
from declip.blocks.table import BlockTable
from declip.lowrank import LowRank
from declip.objective import Penalised
from declip.solvers.als import SETTLED_SWEEPS, settling_unit
from declip.solvers.noise import CensoredSums, em_scale
from declip.svd import maps_of_roots, root

__all__ = ["Descent", "Fitted", "Progress", "minimise_blocks", "shard_spans"]

_SHARD_BYTES = 1 << 25  # of the sums over the columns of a shard


@dataclass(frozen=True)
class Progress:
    """What a caller is told after each sweep."""

    history: NDArray[np.float64]
    scale: float
    gather: Callable[[], LowRank]
    converged: bool = False

    @property
    def n_iter(self) -> int:
        """Number of sweeps."""
        return len(self.history) - 1

    @property
    def model(self) -> LowRank:
        """The matrix as it is now, brought together from its parts."""
        return self.gather()


@dataclass(frozen=True)
class Fitted:
    """A finished fit of a table of blocks.

    Attributes
    ----------
    rows, columns : list
        Handles of the parts of the factors.
    terms : ObjectiveTerms
        What was minimised, with mean and noise scale.
    singular_values : ndarray
        Of P Q^T.
    history, converged, stopped, unit
        As in `declip.solvers.Solution`.
    """

    rows: list[Any]
    columns: list[Any]
    terms: ObjectiveTerms
    singular_values: NDArray
    history: NDArray[np.float64]
    converged: bool
    stopped: bool
    unit: float

    @property
    def n_iter(self) -> int:
        """Number of sweeps."""
        return len(self.history) - 1

    @property
    def last_fall(self) -> float:
        """How much the last sweep lowered the objective, in the unit that tol is given in."""
        return float(self.history[-2] - self.history[-1]) / self.unit

    def model(self, table: BlockTable, rows: list[Part]) -> LowRank:
        """Return the fitted matrix, given the values of the row parts."""
        return _model(table, rows, self.columns, self.terms)


class _Swept(NamedTuple):
    """The parts after a sweep, and what is known of them."""

    rows: list[Any]
    columns: list[Any]
    by_rows: list[Stats]
    by_columns: list[Stats]

    @property
    def loss(self) -> float:
        return sum(s.loss for s in self.by_rows)

    @property
    def censored(self) -> CensoredSums:
        return _sum_censored([s.censored for s in self.by_rows])

    def roots(self) -> tuple[NDArray, NDArray]:
        """Return roots of P^T P and Q^T Q, made up of those of the parts."""
        return _joint_root(self.by_rows), _joint_root(self.by_columns)

    def offsets(self) -> tuple[NDArray, NDArray]:
        """Return sums and sums of squares of the offsets, of rows and of columns."""
        sides = self.by_rows, self.by_columns
        sums, squares = (
            np.array([sum(getattr(s, name) for s in side) for side in sides])
            for name in ("offset_sum", "offset_squares")
        )
        return sums, squares


@dataclass
class Descent:
    """How a table of blocks is swept over."""

    table: BlockTable
    runner: Runner
    rank: int
    spans: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.spans = shard_spans(self.table.cut_shape[1], self.rank + 1, self.table.dtype)

    def penalty(self, terms: ObjectiveTerms, norms: float, offset_squares: float) -> float:
        """Return the penalty from the squared norms of factors and offsets."""
        strength = terms.alpha if terms.alpha_bias is None else terms.alpha_bias
        return 0.5 * (terms.alpha * norms + strength * offset_squares)

    def objective(self, terms: ObjectiveTerms, loss: float, penalty: float) -> float:
        """Return the objective from the loss of all cells and the penalty."""
        return Penalised(terms.scale, self.table.n_exact)(loss, penalty)

    def value(self, swept: _Swept, terms: ObjectiveTerms) -> float:
        """Return the objective of parts as they are."""
        norms = sum(float((R * R).sum()) for R in swept.roots())
        return self.objective(
            terms, swept.loss, self.penalty(terms, norms, float(swept.offsets()[1].sum()))
        )

    def start(self, terms: ObjectiveTerms, rng: np.random.Generator) -> State:
        """Return the start of a fit in memory."""
        summary = self.table.summary
        mean, spread, largest = summary.values(terms.clipped)
        level = 0.0 if terms.bias else summary.level(terms.clipped, mean, spread)
        rows, columns = self._random_parts(level, spread or abs(mean) or 1.0, terms.bias, rng)
        tobit = terms.clipped == "tobit" and self.table.n_censored > 0
        terms = replace(
            terms,
            mean=mean if terms.bias else 0.0,
            scale=float(spread or largest or 1.0) if tobit else 0.0,
        )
        state = State(rows, columns, terms, np.inf, [])
        value = self.value(self._as_it_is(state), terms)
        return replace(state, value=value, history=[value])

    def _random_parts(
        self, level: float, spread: float, bias: bool, rng: np.random.Generator
    ) -> tuple[list[Any], list[Any]]:
        """Draw the factors with P Q^T = level, perturbed: rows of the table, then its columns."""
        size, noise = np.sqrt(abs(level) / self.rank), 0.1 * np.sqrt(spread / self.rank)
        submit = self.runner.submit
        generator = submit(dict, rng.bit_generator.state)
        sides = [
            [b.n_rows for b in self.table.blocks],
            [last - first for first, last in self.spans],
        ]
        drawn: list[list[Any]] = []
        for sizes, sign in zip(self._as_table(sides), (1.0, np.copysign(1.0, level)), strict=True):
            drawn.append([])
            for near, n in enumerate(sizes):
                pair = submit(
                    *(parts.random_part, generator, (n, self.rank), size, noise, sign),
                    *(bias, self.table.dtype.str),
                    near=near,
                )
                drawn[-1].append(submit(parts.first, pair, near=near))
                generator = submit(parts.second, pair)
        rows, columns = self._as_table(drawn)
        return rows, columns

    def _as_table(self, sides: list[Any]) -> list[Any]:
        """Return what there is for blocks and shards in the order of rows and columns, or back."""
        return sides[::-1] if self.table.transposed else sides

    def _as_it_is(self, state: State) -> _Swept:
        """Return the stats of a state without a move to come."""
        submit = self.runner.submit
        by_rows = [
            submit(parts.starting_stats, block, rows, state.columns, state.terms, near=b)
            for b, (block, rows) in enumerate(zip(self.table.blocks, state.rows, strict=True))
        ]
        by_columns = [submit(parts.stats, shard, state.terms) for shard in state.columns]
        found = self.runner.values([*by_rows, *by_columns])
        cut = len(by_rows)
        return _Swept(state.rows, state.columns, found[:cut], found[cut:])

    def sweep(self, state: State, t: float) -> _Swept:
        """Sweep over columns, then rows, from t of the way along the last step."""
        terms, submit = state.terms, self.runner.submit
        rows = [
            submit(parts.begin, part, state.moves[0], t, terms.bias, near=b)
            for b, part in enumerate(state.rows)
        ]
        shards = [
            submit(parts.begin, part, state.moves[1], t, terms.bias, near=self.home(s))
            for s, part in enumerate(state.columns)
        ]
        columns = [self._sweep_shard(rows, shard, s, terms) for s, shard in enumerate(shards)]
        return self._sweep_rows(rows, columns, terms)

    def home(self, s: int) -> int:
        """Return the block near which the columns of a shard are solved for."""
        return s * len(self.table.blocks) // len(self.spans)

    def _sweep_shard(self, rows: list[Any], shard: Any, s: int, terms: ObjectiveTerms) -> Any:
        """Return a handle of the columns of a shard after a Newton step."""
        submit, blocks = self.runner.submit, self.table.blocks
        span, home = self.spans[s], self.home(s)

        def sums(a: int, b: int) -> Any:
            return submit(parts.column_sums, blocks[a:b], rows[a:b], shard, span, terms, near=a)

        def trial(a: int, b: int) -> Any:
            some = blocks[a:b], rows[a:b]
            return submit(parts.column_trial, *some, shard, step, span, terms, near=a)

        total = tree(self.runner, parts.add, sums, len(blocks), toward=home)
        step = submit(parts.column_step, total, shard, terms, near=home)
        del total
        effect = tree(self.runner, parts.add, trial, len(blocks), toward=home)
        return submit(parts.advance_columns, shard, step, effect, near=home)

    def _sweep_rows(
        self, rows: list[Any], columns: list[Any], terms: ObjectiveTerms, to_the_end: bool = False
    ) -> _Swept:
        submit = self.runner.submit
        swept = [
            submit(parts.sweep_rows, block, start, columns, terms, to_the_end, near=b)
            for b, (block, start) in enumerate(zip(self.table.blocks, rows, strict=True))
        ]
        new = [submit(parts.first, pair, near=b) for b, pair in enumerate(swept)]
        by_rows = [submit(parts.second, pair, near=b) for b, pair in enumerate(swept)]
        by_columns = [
            submit(parts.stats, shard, terms, near=self.home(s)) for s, shard in enumerate(columns)
        ]
        found = self.runner.values([*by_rows, *by_columns])
        return _Swept(new, columns, found[: len(new)], found[len(new) :])

    def settle(self, state: State, swept: _Swept, momentum: int, tol: float) -> State:
        """Balance and centre what a sweep gave, fit the noise scale, and see if it has settled."""
        terms = state.terms
        R_P, R_Q = swept.roots()
        _, M, N = maps_of_roots(R_P, R_Q)
        sums, squares = swept.offsets()
        sizes = np.array(self.table.cut_shape)
        shifts = sums / sizes if terms.bias else np.zeros(2)
        norms = sum(float(((R @ m) ** 2).sum()) for R, m in ((R_P, M), (R_Q, N)))
        # sum (b - shift)^2 for a shift that is the mean
        penalty = self.penalty(terms, norms, float((squares - sizes * shifts**2).sum()))
        loss = swept.loss
        unmoved = terms
        if terms.scale > 0:
            scale, loss = self._fit_scale(swept, unmoved, penalty)
            terms = replace(terms, scale=scale)
        value = self.objective(terms, loss, penalty)
        history = [*state.history, value]
        unit = settling_unit(len(self.table), history[0], value, terms.scale)
        quiet = history[-2] - value <= tol * unit
        return State(
            rows=swept.rows,
            columns=swept.columns,
            terms=replace(terms, mean=terms.mean + float(shifts.sum())),
            value=value,
            history=history,
            moves=(Move(M, float(shifts[0])), Move(N, float(shifts[1]))),
            momentum=momentum + 1,
            settled=state.settled + 1 if quiet else 0,
        )

    def _fit_scale(
        self, swept: _Swept, terms: ObjectiveTerms, penalty: float
    ) -> tuple[float, float]:
        def at(scale: float) -> CensoredSums:
            if scale == terms.scale:
                return swept.censored
            there = replace(terms, scale=scale)
            return _sum_censored(
                self.runner.values(
                    [
                        self.runner.submit(
                            parts.loss_at_scale, block, rows, swept.columns, there, near=b
                        )
                        for b, (block, rows) in enumerate(
                            zip(self.table.blocks, swept.rows, strict=True)
                        )
                    ]
                )
            )

        largest = self.table.summary.exact[3]
        return em_scale(at, terms.scale, swept.loss, penalty, len(self.table), largest)

    def step(self, state: State, tol: float) -> State:
        """Make one sweep of the fit."""
        momentum = state.momentum
        swept = self.sweep(state, 1 + momentum / (momentum + 3))
        if momentum and not self.value(swept, state.terms) <= state.value:
            momentum = 0
            swept = self.sweep(state, 1.0)
        return self.settle(state, swept, momentum, tol)

    def gather(self, state: State) -> LowRank:
        """Return the matrix of a state."""
        sides = [
            [parts.moved(part, move, state.terms.bias) for part in self.runner.values(handles)]
            for handles, move in zip((state.rows, state.columns), state.moves, strict=True)
        ]
        return _model(self.table, sides[0], sides[1], state.terms)

    def finish(self, state: State) -> tuple[_Swept, float]:
        """Return the last parts, with the rows solved to rounding, and their objective."""
        submit, bias = self.runner.submit, state.terms.bias
        columns = [submit(parts.moved, part, state.moves[1], bias) for part in state.columns]
        rows = [
            submit(parts.begin, part, state.moves[0], 1.0, bias, near=b)
            for b, part in enumerate(state.rows)
        ]
        polished = self._sweep_rows(rows, columns, state.terms, to_the_end=True)
        value = self.value(polished, state.terms)
        if value <= state.value:
            return polished, value
        unpolished = [
            submit(parts.moved, part, state.moves[0], bias, near=b)
            for b, part in enumerate(state.rows)
        ]
        return polished._replace(rows=unpolished), state.value


def minimise_blocks(
    table: BlockTable,
    terms: ObjectiveTerms,
    rank: int,
    rng: np.random.Generator,
    runner: Runner,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    on_sweep: Callable[[Progress], bool] = lambda _: False,
    checkpoint: Checkpoint | None = None,
) -> Fitted:
    """Minimise the objective of the factor model over a table of blocks.

    Parameters
    ----------
    table : BlockTable
        The observed cells.
    terms : ObjectiveTerms
        Penalty, treatment of clipped cells, threads of a task.
    rank : int
        Number of factors.
    rng : numpy.random.Generator
        For the start; a fit in memory with the same one starts at the same place.
    runner : Runner
        Where the work is done.
    max_iter, tol, on_sweep
        As in `declip.solvers.minimise`.
    checkpoint : Checkpoint, optional
        Where the state is kept every few sweeps; a fit begins from what is there.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        descent = Descent(table, runner, rank)
        begin = rng.bit_generator.state

        def first() -> State:
            rng.bit_generator.state = begin
            return descent.start(terms, rng)

        state = (checkpoint.load(runner) if checkpoint else None) or first()
        stopped, told = False, state.n_iter
        while state.n_iter < max_iter and state.settled < SETTLED_SWEEPS and not stopped:
            try:
                state = descent.step(state, tol)
                if checkpoint and checkpoint.due(state.n_iter):
                    state = checkpoint.save(state, runner)
            except WorkersReplacedError:
                state = (checkpoint.load(runner) if checkpoint else None) or first()
                continue
            if state.n_iter <= told:  # made again after a loss
                continue
            told = state.n_iter
            progress = Progress(
                np.array(state.history), state.terms.scale, partial(descent.gather, state)
            )
            stopped = on_sweep(progress)
        if checkpoint and not checkpoint.holds(state.n_iter):
            state = checkpoint.save(state, runner)
        swept, value = descent.finish(state)
        history = np.array([*state.history[:-1], value])
        return Fitted(
            rows=swept.rows,
            columns=runner.values(swept.columns),
            terms=state.terms,
            singular_values=maps_of_roots(*swept.roots())[0],
            history=history,
            converged=state.settled >= SETTLED_SWEEPS,
            stopped=stopped,
            unit=settling_unit(len(table), history[0], value, state.terms.scale),
        )


def shard_spans(n_cols: int, width: int, dtype: np.dtype) -> list[tuple[int, int]]:
    """Return (first, last) of the columns of each shard: as few as keep its sums small."""
    each = width * (width + 3) // 2 * dtype.itemsize
    count = -(-n_cols * each // _SHARD_BYTES)
    edges = np.linspace(0, n_cols, min(count, n_cols) + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def _model(
    table: BlockTable, rows: list[Part], columns: list[Part], terms: ObjectiveTerms
) -> LowRank:
    A, B = (np.concatenate([part.now for part in side]) for side in (rows, columns))
    model = terms.model(A, B)
    return model.T if table.transposed else model


def _joint_root(stats: list[Stats]) -> NDArray:
    return reduce(lambda left, right: root(np.vstack([left, right])), (s.root for s in stats))


def _sum_censored(cells: list[CensoredSums]) -> CensoredSums:
    return CensoredSums(sum(c.loss for c in cells), sum(c.squares for c in cells))
