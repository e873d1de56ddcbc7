"""The factor model of a table in blocks, as `declip.solvers.minimise` asks for it.

Row factors stay with their block, column factors are kept in shards, and the driver sees only what
it decides by: the loss, k x k roots for balancing, and sums of offsets. A sweep over the columns is
one Newton step of each (`declip.blocks.parts`), a sweep over the rows is that of a fit in memory.
What balancing does to the factors is done where they are, when they are next used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from declip.blocks import parts
from declip.blocks.parts import Draw, Move, ObjectiveTerms, Part, Stats
from declip.blocks.running import Runner, WorkersReplacedError, tree
from declip.blocks.table import BlockTable
from declip.losses import CensoredSums, Loss
from declip.lowrank import LowRank
from declip.solvers.als import minimise
from declip.solvers.solution import Solution, Stopping
from declip.solvers.start import RandomStart, size_of_values
from declip.svd import maps_of_roots, root

__all__ = ["BlockPoint", "BlockProblem", "Scattered", "fit_blocks", "shard_spans"]

_SHARD_BYTES = 1 << 25  # of the sums over the columns of a shard
_NOWHERE = Move(), Move()


class Totals(NamedTuple):
    """What is known of all parts: of rows, then of columns."""

    roots: tuple[NDArray, NDArray]
    offset_sums: NDArray
    offset_squares: NDArray
    loss: float
    censored: CensoredSums

    @classmethod
    def of(cls, by_rows: Sequence[Stats], by_columns: Sequence[Stats]) -> Totals:
        """Add up the stats of the parts."""
        sides = by_rows, by_columns
        return cls(
            (_joint_root(by_rows), _joint_root(by_columns)),
            np.array([sum(s.offset_sum for s in side) for side in sides]),
            np.array([sum(s.offset_squares for s in side) for side in sides]),
            sum(s.loss for s in by_rows),
            _added([s.censored for s in by_rows]),
        )


@dataclass(frozen=True, eq=False)
class BlockPoint:
    """A point of a `BlockProblem`: handles of parts, which are to be moved before they are used.

    Attributes
    ----------
    rows, columns : list
        Handles of the parts, as the last sweep left them.
    mean : float
        The mean that goes with them.
    loss, penalty : float
        Of all cells, and of the factors after the moves.
    moves : (Move, Move)
        What balancing has yet to do to rows and columns.
    totals : Totals, optional
        What is known of the parts, right after a sweep.
    swept_under : Loss, optional
        The loss of that sweep.
    half : bool
        False: sweeps read the factors in their own precision.
    """

    rows: list[Any]
    columns: list[Any]
    mean: float
    loss: float = np.inf
    penalty: float = np.inf
    moves: tuple[Move, Move] = _NOWHERE
    totals: Totals | None = None
    swept_under: Loss | None = None
    half: bool = False

    @property
    def moved_mean(self) -> float:
        """The mean that goes with the factors after the moves."""
        return self.mean + (self.moves[0].shift + self.moves[1].shift)


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """The factor model of a table in blocks.

    Attributes
    ----------
    table : BlockTable
        The observed cells.
    runner : Runner
        Where the work is done.
    rank : int
        Number of factors.
    terms : ObjectiveTerms
        Penalty, treatment of clipped cells, threads of a task; mean and loss vary.
    seed : dict
        State of the generator for the start; a fit in memory with the same one starts at the same
        place.
    """

    table: BlockTable
    runner: Runner
    rank: int
    terms: ObjectiveTerms
    seed: dict[str, Any]
    spans: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        spans = shard_spans(self.table.cut_shape[1], self.rank + 1, self.table.dtype)
        object.__setattr__(self, "spans", spans)

    @property
    def n_cells(self) -> int:
        """Number of observed cells."""
        return len(self.table)

    @property
    def n_exact(self) -> int:
        """Number of exact cells."""
        return self.table.n_exact

    def start_loss(self) -> Loss:
        """Return the loss that a fit begins with."""
        clipped, summary = self.terms.clipped, self.table.summary
        return Loss.to_fit(
            clipped, self.table.n_censored, lambda: size_of_values(*summary.values(clipped))
        )

    def begin(self, loss: Loss) -> BlockPoint:
        """Return the start of a fit in memory."""
        summary, clipped, bias = self.table.summary, self.terms.clipped, self.terms.bias
        mean, spread = summary.values(clipped)
        start = RandomStart.beyond(summary.typical_limits(clipped), mean, spread, bias)
        rows, columns = self._random_parts(Draw(start, self.rank, bias, self.table.dtype.str))
        return self.evaluate(BlockPoint(rows, columns, mean if bias else 0.0), loss)

    def _random_parts(self, draw: Draw) -> tuple[list[Any], list[Any]]:
        """Draw the factors: those of the rows of the table, then those of its columns."""
        submit = self.runner.submit
        generator = submit(dict, self.seed)
        blocks = [block.n_rows for block in self.table.blocks]
        shards = [last - first for first, last in self.spans]
        drawn: list[list[Any]] = []
        for columns, sizes in enumerate(self._as_table([blocks, shards])):
            drawn.append([])
            for near, n in enumerate(sizes):
                pair = submit(parts.random_part, generator, draw, n, bool(columns), near=near)
                drawn[-1].append(submit(parts.first, pair, near=near))
                generator = submit(parts.second, pair)
        rows, columns_of_blocks = self._as_table(drawn)
        return rows, columns_of_blocks

    def _as_table(self, sides: list[Any]) -> list[Any]:
        """Return what there is for blocks and shards in the order of rows and columns, or back."""
        return sides[::-1] if self.table.transposed else sides

    def _at(self, mean: float, loss: Loss) -> ObjectiveTerms:
        return replace(self.terms, mean=mean, loss=loss)

    def on_blocks(self, function: Callable[..., Any], rows: list[Any], *args: Any) -> list[Any]:
        """Return handles of function(block, rows of the block, *args) for all blocks."""
        return [
            self.runner.submit(function, block, part, *args, near=b)
            for b, (block, part) in enumerate(zip(self.table.blocks, rows, strict=True))
        ]

    def on_parts(self, function: Callable[..., Any], handles: list[Any], *args: Any) -> list[Any]:
        """Return handles of function(part, *args) for the rows of all blocks, or all shards."""
        count = len(self.table.blocks)
        return [
            self.runner.submit(function, part, *args, near=i * count // len(handles))
            for i, part in enumerate(handles)
        ]

    def evaluate(self, point: BlockPoint, loss: Loss) -> BlockPoint:
        """Return the same point with its loss and penalty computed anew."""
        rows, columns = self.moved(point)
        terms = self._at(point.moved_mean, loss)
        by_rows = self.on_blocks(parts.starting_stats, rows, columns, terms)
        return self._point(rows, columns, by_rows, terms)

    def _point(
        self, rows: list[Any], columns: list[Any], by_rows: list[Any], terms: ObjectiveTerms
    ) -> BlockPoint:
        by_columns = self.on_parts(parts.stats, columns, terms)
        found = self.runner.values([*by_rows, *by_columns])
        totals = Totals.of(found[: len(by_rows)], found[len(by_rows) :])
        norms = sum(float((R * R).sum()) for R in totals.roots)
        penalty = terms.penalty.of_squares(norms, float(totals.offset_squares.sum()))
        return BlockPoint(
            rows,
            columns,
            terms.mean,
            totals.loss,
            penalty,
            totals=totals,
            swept_under=terms.loss,
        )

    def sweep(self, point: BlockPoint, t: float, loss: Loss) -> BlockPoint:
        """Sweep over columns, then rows, from t of the way along the last step."""
        terms = self._at(point.moved_mean, loss)
        rows, shards = (
            self.on_parts(parts.begin, handles, move, t, terms.bias)
            for handles, move in zip((point.rows, point.columns), point.moves, strict=True)
        )
        columns = [self._sweep_shard(rows, shard, s, terms) for s, shard in enumerate(shards)]
        return self._sweep_rows(rows, columns, terms)

    def _sweep_shard(self, rows: list[Any], shard: Any, s: int, terms: ObjectiveTerms) -> Any:
        """Return a handle of the columns of a shard after a Newton step."""
        submit, blocks, span = self.runner.submit, self.table.blocks, self.spans[s]
        home = s * len(blocks) // len(self.spans)

        def sums(a: int, b: int) -> Any:
            return submit(parts.column_sums, blocks[a:b], rows[a:b], shard, span, terms, near=a)

        def trial(a: int, b: int) -> Any:
            return submit(
                parts.column_trial, blocks[a:b], rows[a:b], shard, step, span, terms, near=a
            )

        total = tree(self.runner, parts.add, sums, len(blocks), toward=home)
        step = submit(parts.column_step, total, shard, terms, near=home)
        del total
        effect = tree(self.runner, parts.add, trial, len(blocks), toward=home)
        return submit(parts.advance_columns, shard, step, effect, near=home)

    def _sweep_rows(
        self, rows: list[Any], columns: list[Any], terms: ObjectiveTerms, to_the_end: bool = False
    ) -> BlockPoint:
        swept = self.on_blocks(parts.sweep_rows, rows, columns, terms, to_the_end)
        new, by_rows = (self.on_parts(pick, swept) for pick in (parts.first, parts.second))
        return self._point(new, columns, by_rows, terms)

    def balance(self, point: BlockPoint) -> BlockPoint:
        """Return the same matrix with its factors balanced and its offsets centred."""
        assert point.totals is not None  # it was swept
        totals, sizes = point.totals, np.array(self.table.cut_shape)
        _, *maps = maps_of_roots(*totals.roots)
        shifts = totals.offset_sums / sizes if self.terms.bias else np.zeros(2)
        norms = sum(float(((R @ M) ** 2).sum()) for R, M in zip(totals.roots, maps, strict=True))
        # sum (b - shift)^2 for a shift that is the mean
        offsets = float((totals.offset_squares - sizes * shifts**2).sum())
        return replace(
            point,
            penalty=self.terms.penalty.of_squares(norms, offsets),
            moves=(Move(maps[0], float(shifts[0])), Move(maps[1], float(shifts[1]))),
        )

    def residuals(self, point: BlockPoint) -> BlockResiduals:
        """Return what a noise scale is estimated from."""
        return BlockResiduals(self, point)

    def moved(self, point: BlockPoint) -> tuple[list[Any], list[Any]]:
        """Return handles of the rows and columns after the moves."""
        if point.moves is _NOWHERE:
            return point.rows, point.columns
        rows, columns = (
            self.on_parts(parts.moved, handles, move, self.terms.bias)
            for handles, move in zip((point.rows, point.columns), point.moves, strict=True)
        )
        return rows, columns

    def polish(self, point: BlockPoint, loss: Loss) -> BlockPoint:
        """Return the point with its rows solved to rounding."""
        bias, (of_rows, of_columns) = self.terms.bias, point.moves
        rows = self.on_parts(parts.begin, point.rows, of_rows, 1.0, bias)
        columns = self.on_parts(parts.moved, point.columns, of_columns, bias)
        return self._sweep_rows(rows, columns, self._at(point.moved_mean, loss), to_the_end=True)

    def factors(self, point: BlockPoint) -> Scattered:
        """Return the matrix."""
        return Scattered(self, point)


@dataclass(frozen=True, eq=False)
class BlockResiduals:
    """The cells of a fit in blocks, as `Loss.estimated` asks for them."""

    problem: BlockProblem
    point: BlockPoint

    @property
    def n_cells(self) -> int:
        """Number of observed cells."""
        return self.problem.n_cells

    @property
    def largest(self) -> float:
        """Largest size of a value or a limit."""
        return self.problem.table.summary.largest

    def censored(self, loss: Loss) -> CensoredSums:
        """Return the sums over the censored cells under a loss."""
        problem, point = self.problem, self.point
        if loss == point.swept_under and point.totals is not None:
            return point.totals.censored
        terms = replace(problem.terms, mean=point.mean, loss=loss)
        sums = problem.on_blocks(parts.censored_sums, point.rows, point.columns, terms)
        return _added(problem.runner.values(sums))


@dataclass(frozen=True, eq=False)
class Scattered:
    """A fitted matrix whose factors lie where they were made, moved when they are asked for."""

    problem: BlockProblem
    point: BlockPoint

    @property
    def mean(self) -> float:
        """The mean."""
        return self.point.moved_mean

    @cached_property
    def _moved(self) -> tuple[list[Any], list[Any]]:
        return self.problem.moved(self.point)

    @property
    def rows(self) -> list[Any]:
        """Handles of the row parts."""
        return self._moved[0]

    def columns(self) -> NDArray:
        """Return the factors of all columns."""
        return _joined(self.problem.runner.values(self._moved[1]))

    def gather(self) -> LowRank:
        """Return the matrix, brought together in memory."""
        A = _joined(self.problem.runner.values(self.rows))
        model = LowRank(A, self.columns(), self.mean, self.problem.terms.bias)
        return model.T if self.problem.table.transposed else model

    def singular_values(self) -> NDArray[np.float64]:
        """Return the singular values of P Q^T, largest first."""
        problem, point = self.problem, self.point
        totals = point.totals or problem.evaluate(point, problem.start_loss()).totals
        assert totals is not None
        return maps_of_roots(*totals.roots)[0]


def fit_blocks(problem: BlockProblem, stopping: Stopping) -> Solution:
    """Fit a table in blocks; if all workers are replaced on the way, from the last state kept."""
    reported = -1

    def on_sweep(state: Solution) -> bool:
        nonlocal reported
        made_again = state.n_iter <= reported  # after a loss
        reported = max(reported, state.n_iter)
        return not made_again and stopping.on_sweep(state)

    with threadpool_limits(limits=1, user_api="blas"):
        while True:
            try:
                return minimise(problem, problem.start_loss(), replace(stopping, on_sweep=on_sweep))
            except WorkersReplacedError:
                continue


def shard_spans(n_cols: int, width: int, dtype: np.dtype) -> list[tuple[int, int]]:
    """Return (first, last) of the columns of each shard: as few as keep its sums small."""
    each = width * (width + 3) // 2 * dtype.itemsize
    count = -(-n_cols * each // _SHARD_BYTES)
    edges = np.linspace(0, n_cols, min(count, n_cols) + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def _joined(side: list[Part]) -> NDArray:
    return np.concatenate([part.now for part in side])


def _joint_root(stats: Sequence[Stats]) -> NDArray:
    return reduce(lambda left, right: root(np.vstack([left, right])), (s.root for s in stats))


def _added(cells: list[CensoredSums]) -> CensoredSums:
    return CensoredSums(sum(c.loss for c in cells), sum(c.squares for c in cells))
