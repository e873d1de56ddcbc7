r"""Offsets of groups of rows: plates, batches, conditions.

To the objective of the factor model comes an offset for each group g and column j, which is
penalised by :math:`\frac{\gamma}{2} d_{gj}^2`. A sweep takes the offsets off the cells, sweeps over
columns and rows as ever, and then moves each offset to the minimum of a parabola that lies above
the objective: for exact cells that is the minimum itself. So the objective never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip import kernels
from declip.cells import Cells
from declip.intervals import Intervals, face_value
from declip.losses import Loss
from declip.lowrank import GroupOffsets, LowRank
from declip.objective import total_loss
from declip.solvers.als import TablePoint, TableProblem, TableResiduals

__all__ = ["GroupedCells", "GroupedPoint", "GroupedProblem", "group_ridge"]

_LEAST_SHARE = 1e-3  # of the variance of cells that groups are taken to have at least


class _Keys(NamedTuple):
    """Where the offset of each exact and each censored cell of a side stands."""

    exact: NDArray[np.int64]
    censored: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupedCells:
    """A table whose rows are of groups, and its cells without the offsets of these.

    Attributes
    ----------
    cells : Intervals
        The table.
    index : ndarray of shape (n_rows,)
        The group of each row; -1 for none.
    n_groups : int
        Number of groups.
    """

    cells: Intervals
    index: NDArray[np.int32]
    n_groups: int

    @property
    def shape(self) -> tuple[int, int]:
        """Of the offsets: a row for each group, and one of zeros."""
        return self.n_groups + 1, self.cells.shape[1]

    @cached_property
    def keys(self) -> tuple[_Keys, _Keys]:
        """Of the cells by row, and by column."""
        n_cols = self.cells.shape[1]
        place = (self.index.astype(np.int64) % self.shape[0]) * n_cols  # that of -1 is the last
        by_row, by_col = self.cells.by_row, self.cells.by_col
        return (
            _Keys(
                place[by_row.exact_rows()] + by_row.exact_idx,
                place[by_row.censored_rows()] + by_row.censored_idx,
            ),
            _Keys(
                place[by_col.exact_idx] + by_col.exact_rows(),
                place[by_col.censored_idx] + by_col.censored_rows(),
            ),
        )

    def without(self, offsets: NDArray) -> Intervals:
        """Return the cells without these offsets."""
        flat = np.ascontiguousarray(offsets).ravel()
        sides = (self.cells.by_row, self.cells.by_col)
        by_row, by_col = (
            _shifted(side, flat[keys.exact], flat[keys.censored])
            for side, keys in zip(sides, self.keys, strict=True)
        )
        made = replace(self.cells, by_row=by_row)
        made.__dict__["by_col"] = by_col
        return made

    def censored(self, offsets: NDArray) -> NDArray:
        """Return the offsets of the censored cells, by row."""
        return np.ascontiguousarray(offsets).ravel()[self.keys[0].censored]

    def sums(self, exact: NDArray, censored: NDArray) -> NDArray[np.float64]:
        """Return sums over the cells of each group and column, of numbers by row."""
        keys, size = self.keys[0], self.shape[0] * self.shape[1]
        total = np.bincount(keys.exact, exact, size) + np.bincount(keys.censored, censored, size)
        found = total.astype(np.float64).reshape(self.shape)
        found[-1] = 0
        return found

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The number, or weight, of the cells of each group and column."""
        side = self.cells.by_row
        ones = np.ones(len(side.value)), np.ones(len(side.lower))
        return self.sums(*(side.weights or ones))


def _shifted(side: Cells, exact: NDArray, censored: NDArray) -> Cells:
    return replace(
        side,
        value=side.value - exact,
        lower=side.lower - censored,
        upper=side.upper - censored,
    )


def group_ridge(grouped: GroupedCells) -> float:
    """Return the ridge on the offsets of groups: variance within them over that between them.

    By an analysis of variance of each column with clipped cells at their face value, pooled over
    columns.
    """
    side = grouped.cells.by_row
    parts = side.value.astype(np.float64), face_value(side.lower, side.upper).astype(np.float64)
    ones = np.ones(len(parts[0])), np.ones(len(parts[1]))
    n, total = grouped.sums(*ones)[:-1], grouped.sums(*parts)[:-1]
    square = grouped.sums(parts[0] ** 2, parts[1] ** 2)[:-1].sum()
    count, filled = n.sum(0), (n > 0).sum(0)
    within_sum = square - (total**2 / np.maximum(n, 1)).sum()
    between_sum = float(
        (total**2 / np.maximum(n, 1)).sum() - (total.sum(0) ** 2 / np.maximum(count, 1)).sum()
    )
    within = within_sum / max((count - filled).sum(), 1)
    # E between = within (groups - 1) + variance (cells - sum of squared sizes over cells)
    size = float((count - (n**2).sum(0) / np.maximum(count, 1)).sum())
    variance = (between_sum - within * np.maximum(filled - 1, 0).sum()) / max(size, 1e-12)
    return float(within / max(variance, _LEAST_SHARE * within, 1e-300)) if within > 0 else 1e-6


@dataclass(frozen=True, eq=False)
class GroupedPoint(TablePoint):
    """A point of a `GroupedProblem`: also the offsets, as they are and one sweep earlier."""

    offsets: NDArray = None  # type: ignore[assignment]
    offsets_before: NDArray = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class GroupedProblem:
    """The factor model of a table in memory whose rows are of groups.

    Attributes
    ----------
    table : TableProblem
        The problem without groups.
    groups : GroupedCells
        Its cells, and the groups of its rows.
    ridge : float
        Strength of the penalty on the offsets of groups.
    """

    table: TableProblem
    groups: GroupedCells
    ridge: float

    @property
    def n_cells(self) -> float:
        """Number of observed cells."""
        return self.table.n_cells

    @property
    def n_exact(self) -> float:
        """Number of exact cells."""
        return self.table.n_exact

    def _at(self, offsets: NDArray) -> TableProblem:
        """Return the problem of the cells without these offsets."""
        return replace(self.table, intervals=self.groups.without(offsets))

    def _penalised(self, point: GroupedPoint) -> GroupedPoint:
        value = self.table.penalty.value(point.model)
        more = 0.5 * self.ridge * float(np.vdot(point.offsets, point.offsets))
        return replace(point, penalty=value + more)

    def begin(self, loss: Loss) -> GroupedPoint:
        """Return the start of a fit."""
        start, none = self.table.start, np.zeros(self.groups.shape)
        half = self.table.half
        return self.evaluate(
            GroupedPoint(start, start, half=half, offsets=none, offsets_before=none), loss
        )

    def evaluate(self, point: GroupedPoint, loss: Loss) -> GroupedPoint:
        """Return the same point with its loss and penalty computed anew."""
        cells = total_loss(
            self.groups.without(point.offsets), point.model, loss, self.table.threads
        )
        return self._penalised(replace(point, loss=cells))

    def sweep(self, point: GroupedPoint, t: float, loss: Loss) -> GroupedPoint:
        """Sweep over columns, then rows, then groups, from t of the way along the last step."""
        offsets = point.offsets_before + t * (point.offsets - point.offsets_before)
        problem = self._at(offsets)
        model = problem.sweep(point, t, loss).model
        side = problem.intervals.by_row
        rows = model.row_problem(side, loss)
        _, *slopes = kernels.residuals(rows, model.A, threads=self.table.threads)
        # the loss has a curvature of at most the weight of a cell
        slope = self.ridge * offsets + self.groups.sums(*slopes)
        offsets = offsets - slope / (self.ridge + self.groups.weight)
        return self.evaluate(
            replace(
                point,
                model=model,
                before=point.model,
                offsets=offsets,
                offsets_before=point.offsets,
            ),
            loss,
        )

    def balance(self, point: GroupedPoint) -> GroupedPoint:
        """Return the same matrix with its factors balanced and its offsets centred."""
        balanced = self.table.balance(self._levelled(point))
        return self._penalised(replace(point, **vars(balanced)))

    def _levelled(self, point: GroupedPoint) -> GroupedPoint:
        """Return the same matrix with what all groups share in the offsets of columns."""
        model, n = point.model, self.groups.n_groups
        everywhere = np.all(self.groups.index >= 0)
        if not (model.bias and everywhere and self.table.penalty.col_prior is None):
            return point
        # min over t of ridge / 2 sum_g (d_g - t)^2 + alpha / 2 (c + t)^2
        alpha, c = self.table.penalty.on_offsets, model.col_offset
        shift = (self.ridge * point.offsets.sum(0) - alpha * c) / (self.ridge * n + alpha)
        B, offsets = model.B.copy(), point.offsets.copy()
        B[:, -1] += shift.astype(B.dtype)
        offsets[:-1] -= shift
        return replace(point, model=replace(model, B=B), offsets=offsets)

    def residuals(self, point: GroupedPoint) -> TableResiduals:
        """Return what a noise scale is estimated from."""
        return self._at(point.offsets).residuals(point)

    def polish(self, point: GroupedPoint, loss: Loss) -> GroupedPoint:
        """Return the point with its rows solved to rounding."""
        polished = self._at(point.offsets).polish(point, loss)
        return self._penalised(replace(point, model=polished.model, loss=polished.loss))

    def factors(self, point: GroupedPoint) -> LowRank:
        """Return the matrix."""
        offsets = GroupOffsets(self.groups.index, point.offsets.astype(point.model.dtype))
        return replace(point.model, groups=offsets)
