"""The one data structure: every observed cell of a table is an interval.

==================================  ========  ========
cell                                lower     upper
==================================  ========  ========
exact value m                       m         m
at the ceiling C (truth >= C)       C         +inf
at the floor L (truth <= L)         -inf      L
known to lie in a range             a         b
missing                             not stored
==================================  ========  ========

Cells with ``lower < upper`` are called *censored*. Ordinary completion, ceilings, floors, limits
that vary by cell and interval uncertainty are the same problem with other data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from declip.cells import Cells
from declip.censoring import left_censored, right_censored
from declip.containers import opened
from declip.levels import Levels
from declip.losses import CLIPPED_MODES
from declip.scales import VALUE_SCALES
from declip.validation import (
    Triplets,
    apply_limits,
    check_bounds,
    check_choice,
    check_memory,
    check_no_limits,
    check_not_negative,
    check_triplets,
    level_scales,
    read_levels,
    read_long,
    table_to_triplets,
)

__all__ = ["Intervals", "as_intervals", "face_value"]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Observed cells of a table, each as an interval; frozen, sorted, seen by rows and by columns.

    Build one by `from_table`, `from_levels`, `from_long`, `from_triplets` or `from_bounds`.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the table.
    by_row, by_col : Cells
        The cells row by row, and column by column (built when first asked for, then kept).
    row_labels, col_labels : ndarray or None
        Labels of the input, if it had any.
    levels : Levels or None
        The scales of columns that are recorded in ordered levels, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import Intervals
    >>> Intervals.from_table(np.array([[3.0, 5.0], [np.nan, 1.0]]), ceiling=5, floor=1)
    Intervals(2 x 2, 3 observed: 1 exact, 1 at or above a ceiling, 1 at or below a floor, 0 in a
    range)
    """

    shape: tuple[int, int]
    by_row: Cells = field(repr=False)
    row_labels: NDArray | None = field(default=None, repr=False)
    col_labels: NDArray | None = field(default=None, repr=False)
    levels: Levels | None = field(default=None, repr=False)

    @classmethod
    def from_table(
        cls,
        X: Any,
        ceiling: Any = None,
        floor: Any = None,
        clipped: str = "hinge",
        tol: float = 0.0,
    ) -> Intervals:
        """Read a table: array with NaN, frame, scipy.sparse, xarray or AnnData.

        Parameters
        ----------
        X : array-like, frame, sparse matrix, DataArray or AnnData of shape (n_rows, n_cols)
            NaN, None, NA and masked cells are missing; in a sparse matrix absent cells are missing
            and a stored 0 is a value. The last dimension of a DataArray is that of the columns.
        ceiling, floor : None, scalar, array-like or mapping
            Limits: a scalar, one per column, one per row of shape (n_rows, 1), one per cell, or a
            mapping from column label to limit. A value at its limit is clipped; a value beyond it
            is an error. With an AnnData also the name of a column of ``var`` or ``obs``, or of a
            layer; with a DataArray one over some of its dimensions.
        clipped : {"hinge", "tobit", "value", "missing"}, default="hinge"
            What becomes of clipped cells: an interval open to one side ("hinge", "tobit"), their
            face value ("value"), or left out ("missing").
        tol : float, default=0.0
            A value within this distance of its limit counts as clipped.
        """
        return _read(X, ceiling, floor, tol).treat(clipped)

    @classmethod
    def from_triplets(
        cls,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int] | None = None,
        ceiling: Any = None,
        floor: Any = None,
        *,
        tol: float = 0.0,
    ) -> Intervals:
        """Read observed cells as (row, column, value); duplicates are an error, never summed.

        Limits are as in `from_table`, or one per triplet.
        """
        return cls.from_cells(check_triplets(rows, cols, values, shape), ceiling, floor, tol)

    @classmethod
    def from_long(
        cls,
        frame: Any,
        row: str | Sequence[str] = "row",
        column: str | Sequence[str] = "column",
        value: str = "value",
        ceiling: Any = None,
        floor: Any = None,
        *,
        tol: float = 0.0,
    ) -> Intervals:
        """Read a long table: a pandas or polars frame with one line for each cell.

        Parameters
        ----------
        frame : pandas or polars frame
            Rows and columns may be named by text or numbers; they are sorted, and kept as labels. A
            line without a value says that there is such a row and such a column. A cell that is
            listed twice is an error.
        row, column, value : str, the first two or sequences of str
            Names of the columns of the frame that hold them; several name a row or a column
            together, as ``"Berlin / 1002"``.
        ceiling, floor : None, str, scalar or mapping
            The name of a column that holds the limit of each cell (empty where there is none), or
            limits as in `from_table`, a mapping being by label.
        tol : float, default=0.0
            A value within this distance of its limit counts as clipped.

        Examples
        --------
        >>> import pandas as pd
        >>> from declip import Intervals
        >>> lines = [("north", "lead", 0.1, 0.1), ("north", "zinc", 7.0, 0.5)]
        >>> lines += [("south", "lead", 0.4, 0.2), ("south", "zinc", 9.0, 0.5)]
        >>> frame = pd.DataFrame(lines, columns=["site", "metal", "mg", "limit"])
        >>> cells = Intervals.from_long(frame, "site", "metal", "mg", floor="limit")
        >>> cells.n_censored, list(cells.row_labels), list(cells.col_labels)
        (1, ['north', 'south'], ['lead', 'zinc'])
        """
        found = read_long(frame, (row, column, value), {"ceiling": ceiling, "floor": floor})
        return cls.from_cells(found.cells, **found.limits, tol=tol)

    @classmethod
    def from_levels(
        cls,
        X: Any,
        edges: Any = None,
        *,
        levels: Any = None,
        ceiling: Any = None,
        floor: Any = None,
        allow_empty: bool = False,
    ) -> Intervals:
        """Read a table of ordered levels: each says between which edges a value lies.

        The lowest level is open below, and the highest above. Edges that are not known are a first
        guess here, and `BayesCMC` with ``levels=`` samples them.

        Parameters
        ----------
        X : table or Intervals of shape (n_rows, n_cols)
            Numbers, or ordered categories (pandas with ``ordered=True``, an Enum of polars), or
            texts that ``levels`` lists. If there are categories, columns of numbers beside them are
            no levels but values. Of an `Intervals` (such as `from_long` makes) the exact cells.
        edges : None, sequence of float or mapping, default=None
            Between the levels, one fewer than these, for all columns or by column. None is halfway
            between numbers; texts count as 1, 2, 3, ....
        levels : None, sequence or mapping, default=None
            Levels from low to high, for all columns; or by column, then the others hold values.
            None is the categories, or all numbers that the table has anywhere.
        ceiling, floor : see `from_table`
            Limits of columns that hold values.
        allow_empty : bool, default=False
            Whether a table without any observed cell is accepted.

        Examples
        --------
        >>> import pandas as pd
        >>> from declip import Intervals
        >>> order = pd.CategoricalDtype(["never", "sometimes", "often"], ordered=True)
        >>> frame = pd.DataFrame({"sport": ["never", "often", None], "age": [31.0, 24, 57]})
        >>> answers = Intervals.from_levels(frame.astype({"sport": order}))
        >>> answers.levels.scales[0].edges, answers.n_exact
        (array([1.5, 2.5]), 3)
        """
        if isinstance(X, Intervals):
            check_no_limits("An Intervals", ceiling, floor, 0.0)
            return X._in_levels(levels, edges)
        container = opened(X)
        cells, scales = read_levels(container, levels, edges, allow_empty=allow_empty)
        limits = container.limit(ceiling, "ceiling"), container.limit(floor, "floor")
        lower, upper = apply_limits(cells, *limits, 0.0)
        lower, upper = scales.bounds(cells.cols, cells.values, lower, upper)
        by_row = Cells.from_sorted(cells.shape[0], cells.rows, cells.cols, lower, upper)
        return cls(cells.shape, by_row, cells.row_labels, cells.col_labels, scales)

    def _in_levels(self, levels: Any, edges: Any) -> Intervals:
        """Return the table with exact cells as levels."""
        side = self.by_row
        labels = self.row_labels, self.col_labels
        exact = Triplets(side.exact_rows(), side.exact_idx, side.value, self.shape, *labels)
        scales = level_scales(exact, levels, edges)
        _, cols, lower, upper = self.triplets()
        is_exact = np.arange(len(cols)) < self.n_exact
        bounds = scales.bounds(cols[is_exact], side.value, side.value, side.value)
        lower, upper = lower.copy(), upper.copy()
        lower[is_exact], upper[is_exact] = bounds
        return replace(self.with_bounds(lower, upper), levels=scales)

    @classmethod
    def from_bounds(cls, lower: Any, upper: Any) -> Intervals:
        """Read two tables: every cell lies in ``[lower, upper]``; NaN in both is missing."""
        b = check_bounds(lower, upper)
        cells = Cells.from_sorted(b.shape[0], b.rows, b.cols, b.lower, b.upper)
        return cls(b.shape, cells, b.row_labels, b.col_labels)

    @classmethod
    def from_cells(
        cls, cells: Triplets, ceiling: Any = None, floor: Any = None, tol: float = 0.0
    ) -> Intervals:
        """Apply limits to observed cells that were checked already."""
        # where each row and each column begins, of exact and of censored cells
        check_memory((2, sum(cells.shape)), np.int64, "the table", "leave out its empty rows.")
        lower, upper = apply_limits(cells, ceiling, floor, tol)
        by_row = Cells.from_sorted(cells.shape[0], cells.rows, cells.cols, lower, upper)
        return cls(cells.shape, by_row, cells.row_labels, cells.col_labels)

    def _check_loaded(self) -> None:
        """Refuse a table that was read from a file and whose cells are not within it."""
        if self.by_row.n_rows != self.shape[0]:
            raise ValueError("a table and its cells differ in their number of rows")
        if not self.by_row.within(self.shape[1]):
            raise ValueError("a cell of a table lies outside of it")

    @cached_property
    def by_col(self) -> Cells:
        """The cells column by column."""
        return self.by_row.transpose(self.shape[1])

    @cached_property
    def T(self) -> Intervals:
        """The transposed table; it shares the cells with this one."""
        flipped = Intervals(self.shape[::-1], self.by_col, self.col_labels, self.row_labels)
        flipped.__dict__.update(by_col=self.by_row, T=self)
        return flipped

    @property
    def dtype(self) -> np.dtype:
        """Type of the bounds: float32 or float64."""
        return self.by_row.value.dtype

    @property
    def n_exact(self) -> int:
        """Number of exact cells."""
        return len(self.by_row.value)

    @property
    def n_censored(self) -> int:
        """Number of cells known only by an interval."""
        return len(self.by_row.lower)

    def __len__(self) -> int:
        """Return the number of observed cells."""
        return self.n_exact + self.n_censored

    def __repr__(self) -> str:
        above, below, in_range = self.by_row.censored_counts()
        return (
            f"Intervals({self.shape[0]} x {self.shape[1]}, {len(self)} observed: "
            f"{self.n_exact} exact, {above} at or above a ceiling, {below} at or below a floor, "
            f"{in_range} in a range)"
        )

    def triplets(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray, NDArray]:
        """Return (rows, cols, lower, upper) of all cells: exact by row, then censored by row."""
        side = self.by_row
        return (
            np.concatenate([side.exact_rows(), side.censored_rows()]),
            np.concatenate([side.exact_idx, side.censored_idx]),
            np.concatenate([side.value, side.lower]),
            np.concatenate([side.value, side.upper]),
        )

    def to_bounds(self) -> tuple[NDArray, NDArray]:
        """Return dense tables of lower and upper bounds, NaN where nothing was observed."""
        check_memory((2, *self.shape), self.dtype, "to_bounds", "use triplets() instead")
        lower = np.full(self.shape, np.nan, self.dtype)
        upper = lower.copy()
        rows, cols, low, high = self.triplets()
        lower[rows, cols] = low
        upper[rows, cols] = high
        return lower, upper

    def bounds_at(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of cells; infinite where nothing was observed."""
        if len(self) == 0:
            return np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        at_rows, at_cols, lower, upper = self.triplets()
        keys = at_rows.astype(np.int64) * self.shape[1] + at_cols
        order = np.argsort(keys)
        asked = rows.astype(np.int64) * self.shape[1] + cols
        found = order[np.minimum(np.searchsorted(keys, asked, sorter=order), len(order) - 1)]
        seen = keys[found] == asked
        low, high = (bound[found].astype(np.float64) for bound in (lower, upper))
        return np.where(seen, low, -np.inf), np.where(seen, high, np.inf)

    def has_cells_of(self, other: Intervals) -> bool:
        """Tell whether another table has the same cells."""
        return self.shape == other.shape and all(
            np.array_equal(a, b) for a, b in zip(self.triplets(), other.triplets(), strict=True)
        )

    def common_limits(self) -> tuple[NDArray, NDArray] | None:
        """Return the floor and ceiling of each column, of shape (1, n_cols), read off its cells.

        A limit that all clipped cells have in common is that of every column. None if the cells of
        a column have different limits.
        """
        side, ends = self.by_col, []
        cols = side.censored_rows()
        for bound, at, none in (
            (side.upper, side.left_censored, -np.inf),
            (side.lower, side.right_censored, np.inf),
        ):
            shared = len(np.unique(bound[at])) == 1
            limit = np.full(self.shape[1], bound[at][0] if shared else none, bound.dtype)
            limit[cols[at]] = bound[at]
            if (limit[cols[at]] != bound[at]).any():
                return None
            ends.append(limit[None, :])
        return ends[0], ends[1]

    def treat(self, clipped: str) -> Intervals:
        """Return the table as ``clipped`` asks: censored cells kept, at face value, or left out.

        The face value of a cell is its finite end, or the middle of a range.
        """
        if clipped not in CLIPPED_MODES:
            raise ValueError(f"clipped must be one of {tuple(CLIPPED_MODES)}, got {clipped!r}")
        become = CLIPPED_MODES[clipped].cells
        if become == "kept" or self.n_censored == 0:
            return self
        if become == "left out":
            return self.keep(np.ones(self.n_exact, bool), np.zeros(self.n_censored, bool))
        _, _, lower, upper = self.triplets()
        values = face_value(lower, upper)
        return self.with_bounds(values, values)

    def on_scale(self, scale: str, *, counts: bool = False) -> Intervals:
        """Return the table with its values and limits on another scale; `from_scale` leads back.

        Parameters
        ----------
        scale : {"sqrt", "log1p"}
            Square roots, on which counts have the same noise at any size, or log(1 + x), on which
            effects multiply. Both take zeros.
        counts : bool, default=False
            Whether values are counts: one that is at least 5 lies above 4.5 of a continuous scale,
            one that is at most 5 below 5.5, and 0 is anything below 0.5.

        Examples
        --------
        >>> import numpy as np
        >>> from declip import Intervals
        >>> sales = Intervals.from_table(np.array([[4.0, 9.0]]), ceiling=9)
        >>> [bound.tolist() for bound in sales.on_scale("sqrt").to_bounds()]
        [[[2.0, 3.0]], [[2.0, inf]]]
        """
        check_choice("scale", scale, tuple(VALUE_SCALES))
        rows, cols, lower, upper = self.triplets()
        check_not_negative(self, rows, cols, upper)
        if counts:
            lower = np.where(upper == 0, -np.inf, lower)
        half = 0.5 * (counts & (lower < upper))
        low, high = (
            VALUE_SCALES[scale].forward(end.astype(np.float64)).astype(self.dtype)
            for end in (lower - half, upper + half)
        )
        return self.with_bounds(low, high)

    def with_bounds(self, lower: NDArray, upper: NDArray) -> Intervals:
        """Return the same cells with other bounds, given in the order of `triplets`."""
        return replace(self, by_row=self.by_row.with_bounds(lower, upper))

    def keep(self, exact: NDArray[np.bool_], censored: NDArray[np.bool_]) -> Intervals:
        """Return the cells marked in two masks, in the order of `triplets`."""
        return replace(self, by_row=self.by_row.keep(exact, censored))

    def bounded(self) -> Intervals:
        """Return the table without cells of which nothing is known: neither bound is a number."""
        side = self.by_row
        known = ~(side.left_censored & side.right_censored)
        return self if known.all() else self.keep(np.ones(self.n_exact, bool), known)

    def take_rows(self, rows: ArrayLike) -> Intervals:
        """Return some rows, in the order given."""
        rows = np.arange(self.shape[0])[np.asarray(rows, dtype=np.intp)]
        labels = None if self.row_labels is None else self.row_labels[rows]
        shape = len(rows), self.shape[1]
        return Intervals(shape, self.by_row.take(rows), labels, self.col_labels, self.levels)

    def astype(self, dtype: Any) -> Intervals:
        """Return the same table with bounds of another floating type."""
        if self.dtype == dtype:
            return self
        return replace(self, by_row=self.by_row.astype(dtype))


def as_intervals(
    X: Any,
    ceiling: Any = None,
    floor: Any = None,
    tol: float = 0.0,
    *,
    estimator: Any = None,
    allow_empty: bool = False,
) -> Intervals:
    """Return the cells of a table under its limits; an `Intervals`, which has its own, as it is.

    Parameters
    ----------
    X : table or Intervals of shape (n_rows, n_cols)
        As in `Intervals.from_table`.
    ceiling, floor, tol : see `Intervals.from_table`
        Not given with an `Intervals`: what would become of the limits that it has?
    estimator : estimator, optional
        Named in the errors of scikit-learn.
    allow_empty : bool, default=False
        Whether a table without any observed cell is accepted.
    """
    if not isinstance(X, Intervals):
        return _read(X, ceiling, floor, tol, estimator, allow_empty)
    check_no_limits("An Intervals", ceiling, floor, tol)
    return X


def _read(
    X: Any,
    ceiling: Any,
    floor: Any,
    tol: float,
    estimator: Any = None,
    allow_empty: bool = False,
) -> Intervals:
    container = opened(X)
    cells = table_to_triplets(container, estimator=estimator, allow_empty=allow_empty)
    limits = container.limit(ceiling, "ceiling"), container.limit(floor, "floor")
    return Intervals.from_cells(cells, *limits, tol)


def face_value(lower: NDArray, upper: NDArray) -> NDArray:
    """Return the finite end of each interval, or the middle of a range."""
    face = np.where(left_censored(lower), upper, 0.5 * (lower + upper))
    return np.where(right_censored(upper), lower, face).astype(lower.dtype)
