"""What is known before a fit: which cells lie where, and what connects them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from declip.cells import Cells
from declip.grams import exact_cells
from declip.intervals import Intervals

__all__ = ["AxisCounts", "Coverage"]

_FEW = 0.05  # share of rows, or columns, that may have too few exact cells for a rank
_RANKS = 50  # ranks looked at, at most


@dataclass(frozen=True, eq=False)
class AxisCounts:
    """Cells of each row (or of each column) by kind.

    Attributes
    ----------
    axis : {"row", "column"}
        What is counted.
    n_cells : int
        Cells of each, observed or not.
    exact, ceiling, floor, ranged : ndarray of int
        Exact cells, cells at or above a ceiling, at or below a floor, and known by a range.
    component : ndarray of int
        Connected component in the graph of exact cells, the largest being 0.
    labels : ndarray or None
        Names, if the table had any.
    """

    axis: str
    n_cells: int
    exact: NDArray[np.int64]
    ceiling: NDArray[np.int64]
    floor: NDArray[np.int64]
    ranged: NDArray[np.int64]
    component: NDArray[np.int64]
    labels: NDArray | None

    def __len__(self) -> int:
        return len(self.exact)

    @property
    def clipped(self) -> NDArray[np.int64]:
        """Cells known only by an interval."""
        return self.ceiling + self.floor + self.ranged

    @property
    def observed(self) -> NDArray[np.int64]:
        """Cells of which anything is known."""
        return self.exact + self.clipped

    @property
    def clipped_share(self) -> NDArray[np.float64]:
        """Clipped cells among the observed ones (0 where there are none)."""
        return self.clipped / np.maximum(self.observed, 1)

    def short(self, rank: int) -> NDArray[np.bool_]:
        """Return where there are fewer exact cells than the rank."""
        return self.exact < rank


@dataclass(frozen=True, eq=False)
class Coverage:
    """Which cells of a table are exact, clipped and missing.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    rows, cols : AxisCounts
        Cells of each row and of each column.
    n_components : int
        Connected components of the graph that joins a row and a column by an exact cell. Nothing
        relates the factors of different components.
    """

    shape: tuple[int, int]
    rows: AxisCounts
    cols: AxisCounts
    n_components: int

    @classmethod
    def of(cls, intervals: Intervals) -> Coverage:
        """Count the cells of a table."""
        n, component = _components(intervals)
        n_rows, n_cols = intervals.shape
        return cls(
            intervals.shape,
            _count(intervals.by_row, "row", n_cols, component[:n_rows], intervals.row_labels),
            _count(intervals.by_col, "column", n_rows, component[n_rows:], intervals.col_labels),
            n,
        )

    @property
    def n_exact(self) -> int:
        """Number of exact cells."""
        return int(self.rows.exact.sum())

    @property
    def n_clipped(self) -> int:
        """Number of cells known only by an interval."""
        return int(self.rows.clipped.sum())

    @property
    def n_observed(self) -> int:
        """Number of cells of which anything is known."""
        return self.n_exact + self.n_clipped

    def freedom(self, rank: int) -> int:
        """Return the degrees of freedom of a matrix of this rank: k (n_1 + n_2 - k)."""
        return rank * (sum(self.shape) - rank)

    def ranks(self) -> dict[str, NDArray]:
        """Return, for each rank, its freedom and how many rows and columns it is too much for."""
        ranks = np.arange(1, min(*self.shape, _RANKS) + 1)
        return {
            "rank": ranks,
            "freedom": np.array([self.freedom(int(k)) for k in ranks]),
            "short_rows": np.array([self.rows.short(int(k)).sum() for k in ranks]),
            "short_columns": np.array([self.cols.short(int(k)).sum() for k in ranks]),
        }

    def largest_rank(self) -> int:
        """Return the largest rank that the exact cells can carry; 0 if none.

        That is: no more degrees of freedom than exact cells, and at most one in twenty of the rows
        and of the columns with fewer exact cells than the rank.
        """
        table = self.ranks()
        fits = (table["freedom"] <= self.n_exact) & (
            (table["short_rows"] <= _FEW * self.shape[0])
            & (table["short_columns"] <= _FEW * self.shape[1])
        )
        return int(np.argmin(np.append(fits, False)))


def _count(
    side: Cells, axis: str, n_cells: int, component: NDArray, labels: NDArray | None
) -> AxisCounts:
    rows, n = side.censored_rows(), side.n_rows
    above, below = side.right_censored, side.left_censored
    high, low, ranged = (
        np.bincount(rows[kind], minlength=n) for kind in (above, below, ~(above | below))
    )
    exact = np.diff(side.exact_ptr)
    return AxisCounts(axis, n_cells, exact, high, low, ranged, component, labels)


def _components(intervals: Intervals) -> tuple[int, NDArray[np.int64]]:
    """Return the number of components and that of each row and column, the largest being 0."""
    n_rows, n_cols = intervals.shape
    cells = exact_cells(intervals.by_row, n_cols)
    # node i is a row, node n_rows + j a column; every edge goes from a row to a column
    ptr = np.append(cells.indptr, np.full(n_cols, cells.nnz))
    nodes = (n_rows + n_cols, n_rows + n_cols)
    graph = csr_array((cells.data, cells.indices + n_rows, ptr), shape=nodes)
    n, label = connected_components(graph, directed=False)
    rank = np.empty(n, np.int64)
    rank[np.argsort(-np.bincount(label), kind="stable")] = np.arange(n)
    return n, rank[label]
