"""A restoration seen for a report: which cells are what, with labels, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.censoring import left_censored, right_censored
from declip.containers import opened
from declip.intervals import Intervals, face_value
from declip.io.frames import values_and_labels
from declip.report.names import one_name

__all__ = ["Column", "View"]

FLAGS_BY_FATE = ("undetermined",), ("restored", "filled")


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column: what was known of each, its value now, its flag and its band."""

    name: str
    known_lower: NDArray
    known_upper: NDArray
    value: NDArray
    flag: NDArray
    low: NDArray
    high: NDArray

    @property
    def clipped(self) -> NDArray[np.bool_]:
        """Cells that were known by a limit or a range."""
        return self.known_lower < self.known_upper

    @property
    def reported(self) -> NDArray:
        """Values as reported: clipped cells at their limit; NaN where missing."""
        return face_value(self.known_lower, self.known_upper)

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Cells of which anything is known."""
        return ~np.isnan(self.known_lower)

    def limits_of(self, side: str) -> NDArray:
        """Return the different ceilings or floors of the column, from the lowest up."""
        if side == "floor":
            return np.unique(self.known_upper[self.clipped & left_censored(self.known_lower)])
        return np.unique(self.known_lower[self.clipped & right_censored(self.known_upper)])

    @property
    def limits(self) -> NDArray:
        """Limits to be drawn: of ceilings and of floors at most three each."""
        found = [self.limits_of(side) for side in ("floor", "ceiling")]
        return np.concatenate([x if len(x) <= 3 else x[[0, len(x) // 2, -1]] for x in found])


class View:
    """What a report shows of a restoration."""

    def __init__(self, restoration: Any) -> None:
        self.restoration = restoration
        self.cells: Intervals = restoration.intervals
        table = opened(restoration.table, restoration.settings.get("layer"))
        values, rows, cols = values_and_labels(table)
        bands = restoration.lower, restoration.upper
        self.values = _row_by_row(values)
        self.low, self.high = (_row_by_row(values_and_labels(part)[0]) for part in bands)
        # Of a sparse table the flags are a list, one for each stored cell, row by row.
        flags = restoration.flags
        self.flags = flags if self.sparse else values_and_labels(flags)[0]
        given = self.cells.row_labels, self.cells.col_labels
        self.row_names = _names(given[0] if given[0] is not None else rows, self.shape[0])
        self.col_names = _names(given[1] if given[1] is not None else cols, self.shape[1])

    @property
    def sparse(self) -> bool:
        """Whether only the stored cells are known."""
        return bool(sparse.issparse(self.values))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.cells.shape

    @cached_property
    def clipped_by_column(self) -> NDArray:
        """Number of cells of each column that were known by a limit or a range."""
        return np.diff(self.cells.by_col.censored_ptr)

    def column(self, j: int) -> Column:
        """Return one column."""
        side = self.cells.by_col
        exact = slice(side.exact_ptr[j], side.exact_ptr[j + 1])
        censored = slice(side.censored_ptr[j], side.censored_ptr[j + 1])
        lower = np.full(self.shape[0], np.nan)
        upper = lower.copy()
        lower[side.exact_idx[exact]] = upper[side.exact_idx[exact]] = side.value[exact]
        lower[side.censored_idx[censored]], upper[side.censored_idx[censored]] = (
            side.lower[censored],
            side.upper[censored],
        )
        value, low, high = (self._numbers(part, j) for part in (self.values, self.low, self.high))
        return Column(self.col_names[j], lower, upper, value, self._flag(j), low, high)

    @cached_property
    def _stored(self) -> list[NDArray]:
        """Positions of the stored cells of each column of a sparse table."""
        order = np.argsort(self.values.col, kind="stable")
        counts = np.bincount(self.values.col, minlength=self.shape[1])
        return np.split(order, np.cumsum(counts)[:-1])

    def _numbers(self, part: Any, j: int) -> NDArray:
        if not self.sparse:
            return np.asarray(np.asarray(part)[:, j], float)
        column, at = np.full(self.shape[0], np.nan), self._stored[j]
        column[part.row[at]] = part.data[at]
        return column

    def _flag(self, j: int) -> NDArray:
        if not self.sparse:
            return np.asarray(self.flags)[:, j].astype(str)
        flag, at = np.full(self.shape[0], "", dtype="U12"), self._stored[j]
        flag[self.values.row[at]] = np.asarray(self.flags)[at]
        return flag

    def in_logs(self, j: int) -> bool:
        """Tell whether a column was restored in logarithms."""
        log = self.restoration.scaling.log  # of rows, if each row had units of its own
        return bool(log.all() if self.restoration.transposed else log[j])

    def most_clipped(self, most: int) -> list[int]:
        """Return the columns to show: those with clipped cells, the most first, in table order."""
        counts = self.clipped_by_column
        order = np.argsort(-counts, kind="stable")[:most]
        shown = [int(j) for j in order if counts[j] > 0] or [int(j) for j in order[:most]]
        return sorted(shown)

    def undetermined(self, axis: str) -> list[str]:
        """Return names of the rows or columns none of whose hidden cells is determined."""
        names, size = (
            (self.row_names, self.shape[0]) if axis == "row" else (self.col_names, self.shape[1])
        )
        lost, determined = (self._count(flags, axis, size) for flags in FLAGS_BY_FATE)
        return [names[k] for k in np.flatnonzero((lost > 0) & (determined == 0))]

    def _count(self, flags: tuple[str, ...], axis: str, size: int) -> NDArray:
        """Return how many cells of each row or column have one of some flags."""
        there = np.isin(np.asarray(self.flags).astype(str), flags)
        if self.sparse:
            return np.bincount(
                (self.values.row if axis == "row" else self.values.col)[there], minlength=size
            )
        return there.sum(axis=int(axis == "row"))


def _names(labels: NDArray | None, size: int) -> list[str]:
    return [one_name(label) for label in (range(size) if labels is None else labels.tolist())]


def _row_by_row(part: Any) -> Any:
    """Return the cells of a sparse table in the order of its flags."""
    return part.tocsr().tocoo() if sparse.issparse(part) else part
