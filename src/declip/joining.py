"""A table that grows: more rows, more columns, more cells of those that are there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.cells import Cells
from declip.intervals import Intervals
from declip.validation import places_at_end, places_by_label, refuse_known_cells

__all__ = ["Growth"]

Labels = tuple[NDArray[Any] | None, NDArray[Any] | None]


@dataclass(frozen=True, eq=False)
class Growth:
    """New cells of a table, some of its rows and columns perhaps new as well.

    Known rows and columns stay where they are; new ones follow them.

    Attributes
    ----------
    known : tuple of int
        The shape that the table had.
    new : Intervals
        The new cells alone, in a table of the shape and with the labels that it has now.
    """

    known: tuple[int, int]
    new: Intervals

    @classmethod
    def of(
        cls, shape: tuple[int, int], labels: Labels, given: Intervals, append: bool = False
    ) -> Growth:
        """Find where cells belong in a table of this shape and with these labels.

        Rows and columns are the same if their labels are (without labels: their numbers); with
        ``append`` all rows are new.
        """
        heights, widths = zip(shape, given.shape, strict=True)
        if append:
            rows, row_labels = places_at_end(labels[0], given.row_labels, heights)
        else:
            rows, row_labels = places_by_label(labels[0], given.row_labels, heights, "row")
        cols, col_labels = places_by_label(labels[1], given.col_labels, widths, "column")
        now = _grown(shape[0], rows), _grown(shape[1], cols)
        at_rows, at_cols, lower, upper = given.triplets()
        at_rows, at_cols = rows[at_rows].astype(np.int32), cols[at_cols].astype(np.int32)
        order = np.lexsort((at_cols, at_rows))
        cells = Cells.from_sorted(
            now[0], *(part[order] for part in (at_rows, at_cols, lower, upper))
        )
        return cls(shape, Intervals(now, cells, row_labels, col_labels))

    def added(self) -> list[NDArray[np.intp]]:
        """Return the rows, and the columns, that the table did not have."""
        return [np.arange(*ends) for ends in zip(self.known, self.new.shape, strict=True)]

    def joined(self, old: Intervals, replace_known: bool = False) -> Intervals:
        """Return the table that has grown; ``old`` is what it was, in the units of the new cells.

        A cell that was known is an error, unless it is to be replaced.
        """
        new, shape = self.new.astype(old.dtype), self.new.shape
        side = _with_rows(old.by_row, shape[0])
        asked = np.sort(np.concatenate(_keys(new.by_row, shape[1])))
        again = [_among(keys, asked) for keys in _keys(side, shape[1])]
        if any(found.any() for found in again):
            if not replace_known:
                self._refuse(side, again)
            side = side.keep(~again[0], ~again[1])
        return replace(new, by_row=_merged(side, new.by_row, shape[1]))

    def _refuse(self, side: Cells, again: list[NDArray[np.bool_]]) -> None:
        rows = np.concatenate([side.exact_rows()[again[0]], side.censored_rows()[again[1]]])
        cols = np.concatenate([side.exact_idx[again[0]], side.censored_idx[again[1]]])
        refuse_known_cells(rows, cols, (self.new.row_labels, self.new.col_labels))


def _grown(size: int, places: NDArray[np.intp]) -> int:
    return int(max(size, places.max(initial=-1) + 1))


def _with_rows(side: Cells, n_rows: int) -> Cells:
    """Return the cells with empty rows after them."""
    more = n_rows - side.n_rows
    exact, censored = (
        np.concatenate([ptr, np.full(more, ptr[-1])]) for ptr in (side.exact_ptr, side.censored_ptr)
    )
    return replace(side, exact_ptr=exact, censored_ptr=censored)


def _keys(side: Cells, n_cols: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of exact and of censored cells as numbers in row-major order."""
    rows = side.exact_rows().astype(np.int64), side.censored_rows().astype(np.int64)
    return rows[0] * n_cols + side.exact_idx, rows[1] * n_cols + side.censored_idx


def _among(keys: NDArray[np.int64], asked: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which of some sorted keys were asked for."""
    found = np.searchsorted(keys, asked)
    hit = found < len(keys)
    hit[hit] = keys[found[hit]] == asked[hit]
    marked = np.zeros(len(keys), bool)
    marked[found[hit]] = True
    return marked


def _merged(old: Cells, new: Cells, n_cols: int) -> Cells:
    """Return the cells of both, which have the same rows and no cell in common."""
    exact, censored = (
        _order(*keys) for keys in zip(_keys(old, n_cols), _keys(new, n_cols), strict=True)
    )
    weights = None
    if old.weights is not None or new.weights is not None:
        of_exact, of_censored = zip(_weights(old), _weights(new), strict=True)
        weights = _filled(*exact, *of_exact), _filled(*censored, *of_censored)
    return Cells(
        old.exact_ptr + new.exact_ptr,
        _filled(*exact, old.exact_idx, new.exact_idx),
        _filled(*exact, old.value, new.value),
        old.censored_ptr + new.censored_ptr,
        _filled(*censored, old.censored_idx, new.censored_idx),
        _filled(*censored, old.lower, new.lower),
        _filled(*censored, old.upper, new.upper),
        weights,
    )


def _weights(side: Cells) -> tuple[NDArray, NDArray]:
    """Return the weights of cells; without any they are 1."""
    return side.weights or (np.ones_like(side.value), np.ones_like(side.lower))


def _order(
    old: NDArray[np.int64], new: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which places of a merged order the old ones take, and which the new ones do."""
    to = np.searchsorted(old, new) + np.arange(len(new))
    stays = np.ones(len(old) + len(new), bool)
    stays[to] = False
    return stays, to


def _filled(stays: NDArray[np.bool_], to: NDArray[np.intp], old: NDArray, new: NDArray) -> NDArray:
    out = np.empty(len(stays), old.dtype)
    out[stays], out[to] = old, new
    return out
