"""Results in the shape of the input: all its cells in its kind, or the stored ones alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.containers import Container
from declip.intervals import Intervals
from declip.validation import check_memory

__all__ = ["OutputKind"]

_DENSE_UP_TO = 10_000_000  # cells of an Intervals that is given back as an array
_FEWER = "pass it as a scipy.sparse matrix, of which only the stored cells are given back."


@dataclass(frozen=True, eq=False)
class OutputKind:
    """What the input was, and so how a result is given back.

    Attributes
    ----------
    X : Container
        The input.
    shape : tuple of int
        Its rows and columns.
    dense : bool
        Whether all cells are given back, or the stored ones alone.
    dtype : dtype
        Of numbers.
    """

    X: Container
    shape: tuple[int, int]
    dense: bool
    dtype: np.dtype

    @classmethod
    def of(cls, X: Container, intervals: Intervals) -> OutputKind:
        """Look at the input; refuse it before any work if the result could not fit in memory."""
        held = isinstance(X.table, Intervals)
        large = held and np.prod(intervals.shape, dtype=float) > _DENSE_UP_TO
        dense = not (sparse.issparse(X.table) or large)
        if dense:
            check_memory((4, *intervals.shape), np.float64, "restore", _FEWER)
        return cls(X, intervals.shape, dense, intervals.dtype)

    def missing(self, intervals: Intervals) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the cells to be filled: all missing ones, or those stored but not observed."""
        rows, cols, _, _ = intervals.triplets()
        if not self.dense:
            if isinstance(self.X.table, Intervals):
                return np.zeros(0, np.int32), np.zeros(0, np.int32)
            stored = self.X.table.tocoo()
            keys = (row.astype(np.int64) * self.shape[1] for row in (stored.row, rows))
            empty = ~np.isin(next(keys) + stored.col, next(keys) + cols)
            return stored.row[empty].astype(np.int32), stored.col[empty].astype(np.int32)
        seen = np.zeros(self.shape, bool)
        seen[rows, cols] = True
        found = np.nonzero(~seen)
        return found[0].astype(np.int32), found[1].astype(np.int32)

    def numbers(self, rows: NDArray, cols: NDArray, values: NDArray) -> Any:
        """Return a table of numbers."""
        if self.dense:
            table = np.full(self.shape, np.nan, self.dtype)
            table[rows, cols] = values
            return self.X.packed(table)
        values = values.astype(self.dtype, copy=False)
        kind = sparse.coo_matrix if isinstance(self.X.table, sparse.spmatrix) else sparse.coo_array
        wanted = getattr(self.X.table, "format", "csr")
        stored = kind((values, (rows, cols)), shape=self.shape).tocsr()
        stored.sort_indices()
        return stored if wanted in ("csr", "dia", "bsr") else stored.asformat(wanted)

    def words(self, rows: NDArray, cols: NDArray, words: NDArray) -> Any:
        """Return a table of words; for a sparse table one word for each stored cell, row by row."""
        if self.dense:
            table = np.full(self.shape, "", dtype=words.dtype)
            table[rows, cols] = words
            return self.X.packed(table)
        return words[np.lexsort((cols, rows))]
