"""The observed cells of a table, row by row, each as an interval.

A cell is *exact* if its bounds are equal, else *censored*; what bounds may be stands in
`declip.intervals`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.censoring import left_censored, right_censored

__all__ = ["Cells"]


@dataclass(frozen=True, eq=False)
class Cells:
    """A table by rows: for each row its exact cells, then its censored ones, each sorted by column.

    The exact cells of row i are ``exact_ptr[i]:exact_ptr[i + 1]`` and likewise for censored ones.
    ``weights`` are by what the loss of exact and of censored cells is multiplied, or None for 1;
    ``scales`` the known standard deviations of the noise of censored cells, if they are known.
    """

    exact_ptr: NDArray[np.int64]
    exact_idx: NDArray[np.int32]
    value: NDArray
    censored_ptr: NDArray[np.int64]
    censored_idx: NDArray[np.int32]
    lower: NDArray
    upper: NDArray
    weights: tuple[NDArray, NDArray] | None = None
    scales: NDArray | None = None

    def __post_init__(self) -> None:
        for array in (*self.arrays, *(self.weights or ())):
            array.flags.writeable = False

    @property
    def arrays(self) -> tuple[NDArray, ...]:
        """Where the cells are and what is known of them, without weights and scales."""
        exact = self.exact_ptr, self.exact_idx, self.value
        return *exact, self.censored_ptr, self.censored_idx, self.lower, self.upper

    @classmethod
    def from_sorted(
        cls,
        n_rows: int,
        rows: NDArray,
        cols: NDArray,
        lower: NDArray,
        upper: NDArray,
        weight: NDArray | None = None,
        scale: NDArray | None = None,
    ) -> Cells:
        """Build from cells in row-major order."""
        is_censored = lower < upper
        exact = ~is_censored if is_censored.any() else slice(None)
        return cls(
            exact_ptr=_pointers(rows[exact], n_rows),
            exact_idx=cols[exact].copy(),
            value=lower[exact].copy(),
            censored_ptr=_pointers(rows[is_censored], n_rows),
            censored_idx=cols[is_censored],
            lower=lower[is_censored],
            upper=upper[is_censored],
            weights=None if weight is None else (weight[exact].copy(), weight[is_censored]),
            scales=None if scale is None else scale[is_censored],
        )

    def _check_loaded(self) -> None:
        """Refuse cells that were read from a file and are not sorted, or not in their row."""
        for ptr, idx, *bounds in (
            (self.exact_ptr, self.exact_idx, self.value),
            (self.censored_ptr, self.censored_idx, self.lower, self.upper),
        ):
            types_fit = ptr.dtype == np.int64 and idx.dtype == np.int32
            fits = len(ptr) == self.n_rows + 1 and ptr[0] == 0 and ptr[-1] == len(idx)
            sizes_fit = all(b.shape == idx.shape and b.dtype.kind == "f" for b in bounds)
            if not (types_fit and fits and sizes_fit and np.all(np.diff(ptr) >= 0)):
                raise ValueError("the cells of a table do not fit together")
        if np.isnan(self.value).any() or not np.all(self.lower < self.upper):
            raise ValueError("the bounds of a table are not in order")
        sizes, extra = (self.value.shape, self.lower.shape), (self.weights, self.scales)
        fits = [extra[0] is None or tuple(w.shape for w in extra[0]) == sizes]
        if not all([*fits, extra[1] is None or extra[1].shape == sizes[1]]):
            raise ValueError("the weights of a table are not those of its cells")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.exact_ptr) - 1

    @property
    def row_sizes(self) -> NDArray[np.int64]:
        """Number of cells of each row."""
        return np.diff(self.exact_ptr) + np.diff(self.censored_ptr)

    @property
    def weight(self) -> tuple[float, float]:
        """Total weight of the exact and of the censored cells: without weights their number."""
        if self.weights is None:
            return len(self.value), len(self.lower)
        exact, censored = (float(w.sum(dtype=np.float64)) for w in self.weights)
        return exact, censored

    @property
    def right_censored(self) -> NDArray[np.bool_]:
        """Which censored cells have no upper bound: they are at or above a ceiling."""
        return right_censored(self.upper)

    @property
    def left_censored(self) -> NDArray[np.bool_]:
        """Which censored cells have no lower bound: they are at or below a floor."""
        return left_censored(self.lower)

    def censored_counts(self) -> tuple[int, int, int]:
        """Return how many cells are at or above a ceiling, at or below a floor, and in a range."""
        above, below = int(self.right_censored.sum()), int(self.left_censored.sum())
        return above, below, len(self.lower) - above - below

    def within(self, n_cols: int) -> bool:
        """Tell whether every cell lies in one of so many columns."""
        sides = self.exact_idx, self.censored_idx
        return all(not i.size or (i.min() >= 0 and i.max() < n_cols) for i in sides)

    def astype(self, dtype: Any) -> Cells:
        """Return the same cells with numbers of another floating type."""
        names = ("value", "lower", "upper", *(() if self.scales is None else ("scales",)))
        numbers: dict[str, Any] = {name: getattr(self, name).astype(dtype) for name in names}
        if self.weights is not None:
            numbers["weights"] = tuple(weight.astype(dtype) for weight in self.weights)
        return replace(self, **numbers)

    def transpose(self, n_cols: int) -> Cells:
        """Return the same cells by columns."""
        ptr, idx, order = _transposed(self.exact_ptr, self.exact_idx, n_cols)
        censored_ptr, censored_idx, censored_order = _transposed(
            self.censored_ptr, self.censored_idx, n_cols
        )
        lower, upper = self.lower[censored_order], self.upper[censored_order]
        bounds = self.value[order], censored_ptr, censored_idx, lower, upper
        return Cells(ptr, idx, *bounds, *self._extra(order, censored_order))

    def _extra(
        self, exact: NDArray, censored: NDArray
    ) -> tuple[tuple[NDArray, NDArray] | None, NDArray | None]:
        """Return weights and scales of some cells."""
        weights, scales = self.weights, self.scales
        picked = None if weights is None else (weights[0][exact], weights[1][censored])
        return picked, None if scales is None else scales[censored]

    def exact_rows(self) -> NDArray[np.int32]:
        """Return the row of each exact cell."""
        return _expand(self.exact_ptr)

    def censored_rows(self) -> NDArray[np.int32]:
        """Return the row of each censored cell."""
        return _expand(self.censored_ptr)

    def mapped(self, function: Callable[[NDArray, NDArray], NDArray]) -> Cells:
        """Return the cells with other values and bounds: a function of them and their indices."""
        exact, censored = self.exact_idx, self.censored_idx
        return replace(
            self,
            value=function(self.value.astype(np.float64), exact),
            lower=function(self.lower.astype(np.float64), censored),
            upper=function(self.upper.astype(np.float64), censored),
        )

    def with_bounds(self, lower: NDArray, upper: NDArray) -> Cells:
        """Return the cells with other bounds: of the exact cells, then of the censored ones."""
        rows = np.concatenate([self.exact_rows(), self.censored_rows()])
        cols = np.concatenate([self.exact_idx, self.censored_idx])
        width = int(cols.max(initial=0)) + 1
        order = np.argsort(rows.astype(np.int64) * width + cols, kind="stable")
        extra = {} if self.weights is None else {"weight": np.concatenate(self.weights)[order]}
        if self.scales is not None:  # an exact cell needs none: that is in its weight
            ones = np.ones(len(self.value), self.scales.dtype)
            extra["scale"] = np.concatenate([ones, self.scales])[order]
        cells = (part[order] for part in (rows, cols, lower, upper))
        return Cells.from_sorted(self.n_rows, *cells, **extra)

    def keep(self, exact: NDArray[np.bool_], censored: NDArray[np.bool_]) -> Cells:
        """Return the cells marked in two masks, over the exact and over the censored cells."""
        ptr, censored_ptr = (
            _kept_pointers(self.exact_ptr, exact),
            _kept_pointers(self.censored_ptr, censored),
        )
        return self._picked(exact, ptr, censored, censored_ptr)

    def take(self, rows: NDArray) -> Cells:
        """Return the cells of some rows, in that order."""
        return self._picked(*_ranges(self.exact_ptr, rows), *_ranges(self.censored_ptr, rows))

    def _picked(
        self,
        exact: NDArray,
        ptr: NDArray[np.int64],
        censored: NDArray,
        censored_ptr: NDArray[np.int64],
    ) -> Cells:
        weights, scales = self._extra(exact, censored)
        return Cells(
            exact_ptr=ptr,
            exact_idx=self.exact_idx[exact],
            value=self.value[exact],
            censored_ptr=censored_ptr,
            censored_idx=self.censored_idx[censored],
            lower=self.lower[censored],
            upper=self.upper[censored],
            weights=weights,
            scales=scales,
        )


def _pointers(rows: NDArray, n_rows: int) -> NDArray[np.int64]:
    ptr = np.zeros(n_rows + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=ptr[1:])
    return ptr


def _kept_pointers(ptr: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(mask)])[ptr].astype(np.int64)


def _expand(ptr: NDArray[np.int64]) -> NDArray[np.int32]:
    return np.repeat(np.arange(len(ptr) - 1, dtype=np.int32), np.diff(ptr))


def _ranges(ptr: NDArray[np.int64], rows: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the cells of ``rows``, row after row, and their pointers."""
    counts = ptr[rows + 1] - ptr[rows]
    new_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return np.arange(new_ptr[-1]) + np.repeat(ptr[rows] - new_ptr[:-1], counts), new_ptr


def _transposed(
    ptr: NDArray[np.int64], idx: NDArray[np.int32], n_cols: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray]:
    """Return pointers and indices by column, and the order that brings the data there."""
    positions = np.arange(len(idx), dtype=np.int32 if len(idx) < 2**31 else np.int64)
    by_col = sparse.csr_array((positions, idx, ptr), shape=(len(ptr) - 1, n_cols)).tocsc()
    return by_col.indptr.astype(np.int64), by_col.indices.astype(np.int32), by_col.data
