"""Results in the shape of the input: all its cells in its kind, or the stored ones alone."""

from __future__ import annotations

from collections.abc import Iterable
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
_BLOCK = 1 << 18  # cells that are written at once


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

    def numbers(self, *parts: tuple[NDArray, NDArray, NDArray]) -> Any:
        """Return a table of numbers, from parts of it: rows, columns and values of cells."""
        if self.dense:
            return self.X.packed(self._filled(parts, np.nan, self.dtype))
        rows, cols, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        values = values.astype(self.dtype, copy=False)
        kind = sparse.coo_matrix if isinstance(self.X.table, sparse.spmatrix) else sparse.coo_array
        wanted = getattr(self.X.table, "format", "csr")
        stored = kind((values, (rows, cols)), shape=self.shape).tocsr()
        stored.sort_indices()
        return stored if wanted in ("csr", "dia", "bsr") else stored.asformat(wanted)

    def codes(self, *parts: tuple[NDArray, NDArray, NDArray]) -> NDArray[np.int8]:
        """Return one code for each cell, -1 where there is none, from parts of the table.

        For a sparse table one for each stored cell, row by row.
        """
        if self.dense:
            return self._filled(parts, -1, np.dtype(np.int8))
        rows, cols, which = (np.concatenate(part) for part in zip(*parts, strict=True))
        return which[np.lexsort((cols, rows))]

    def words(self, words: NDArray[np.str_]) -> Any:
        """Return words, one for each cell, as a table; of a sparse table they stay an array."""
        return self.X.packed(words) if self.dense else words

    def _filled(
        self, parts: Iterable[tuple[NDArray, NDArray, NDArray]], empty: float, dtype: np.dtype
    ) -> NDArray[Any]:
        table = np.full(self.shape, empty, dtype)
        for part in parts:
            for i in range(0, len(part[0]), _BLOCK):  # places are copied as wider numbers
                rows, cols, values = (array[i : i + _BLOCK] for array in part)
                table[rows, cols] = values
        return table
