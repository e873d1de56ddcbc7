"""What can be said of rows and columns: which the data determine, and which limits stay."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.reclip import LEFT, RESTORED, ReclipResult

__all__ = ["Determined", "kept_columns"]

_EVIDENCE = 30  # judged cells from which a column is decided upon alone


@dataclass(frozen=True, eq=False)
class Determined:
    """Which rows and columns the data determine.

    A column needs exact cells of two different values, since nothing else says how far it spreads;
    a row needs a cell in such a column, of which a limit will do, or features.
    """

    rows: NDArray[np.bool_]
    cols: NDArray[np.bool_]

    @classmethod
    def of(cls, intervals: Intervals, described: bool = False) -> Determined:
        """Look at the exact cells; rows that are ``described`` by features need none."""
        side, n_cols = intervals.by_row, intervals.shape[1]
        low, high = np.full(n_cols, np.inf), np.full(n_cols, -np.inf)
        np.minimum.at(low, side.exact_idx, side.value)
        np.maximum.at(high, side.exact_idx, side.value)
        return cls(np.zeros(0, bool), low < high).for_rows(intervals, described)

    def for_rows(self, intervals: Intervals, described: bool = False) -> Determined:
        """Return the same columns with other rows."""
        side = intervals.by_row
        if self.cols.all():
            return replace(self, rows=described | (side.row_sizes > 0))
        rows = np.full(intervals.shape[0], described)
        rows[side.exact_rows()[self.cols[side.exact_idx]]] = True
        rows[side.censored_rows()[self.cols[side.censored_idx]]] = True
        return replace(self, rows=rows)

    def at(self, rows: NDArray, cols: NDArray) -> NDArray[np.bool_]:
        """Tell which cells are in determined rows and columns."""
        return self.rows[rows] & self.cols[cols]


def kept_columns(reclip: ReclipResult | None, n_cols: int) -> NDArray[np.bool_]:
    """Tell in which columns the limits stay: where restoring shows no gain over leaving them.

    A column with 30 judged cells or more decides for itself, the others go with the table.
    """
    if reclip is None or not reclip.gain > 0:
        return np.ones(n_cols, bool)
    cols = np.concatenate([t.cells.cols for t in reclip.trials])
    known = np.concatenate([~t.cells.censored for t in reclip.trials])
    gains = reclip.errors(LEFT) ** 2 - reclip.errors(RESTORED) ** 2
    enough = np.bincount(cols[known], minlength=n_cols) >= _EVIDENCE
    return enough & (np.bincount(cols, gains, n_cols) <= 0)
