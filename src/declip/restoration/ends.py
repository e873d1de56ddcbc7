"""What the exact cells of columns, and the bounds that they have, tell of their two ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals

__all__ = ["ColumnEnds"]

_SEEN_BEYOND = 0.05  # of the exact cells of a column lie beyond what counts as its outermost
_OUTWARDS = np.array([-1.0, 1.0])


@dataclass(frozen=True, eq=False)
class ColumnEnds:
    """The low and the high ends of columns, in two lines; low ones are mirrored.

    Where all columns are judged as one, the arrays have a single column.

    Attributes
    ----------
    reach : ndarray of shape (2, n_columns)
        How far the exact cells go.
    skewness : ndarray of shape (2, n_columns)
        Of the exact cells, outwards; 0 if the column is cut off at the other end, too, or is on a
        scale that was chosen for it, such as logarithms, on which it counts as even.
    bounded : ndarray of bool of shape (2, n_columns)
        Whether there is a value that the truth cannot pass.
    n_exact : ndarray of int of shape (n_columns,)
        How many exact cells tell this.
    """

    reach: NDArray[np.float64]
    skewness: NDArray[np.float64]
    bounded: NDArray[np.bool_]
    n_exact: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        intervals: Intervals,
        bounds: tuple[NDArray, NDArray],
        shared: bool = False,
        on_scale: NDArray[np.bool_] | bool = False,
    ) -> ColumnEnds:
        """Look at the exact cells of each column, or of all, and at the bounds of the columns.

        ``on_scale`` tells which columns were brought to a scale of values that was chosen for them.
        """
        side = intervals.by_col
        cuts = [0, len(side.value)] if shared else side.exact_ptr
        reach, skewness = np.full((2, len(cuts) - 1), -np.inf), np.zeros((2, len(cuts) - 1))
        for j, (first, last) in enumerate(pairwise(cuts)):
            if last > first:
                value = side.value[first:last]
                tails = np.quantile(value, (_SEEN_BEYOND, 1 - _SEEN_BEYOND))
                reach[:, j] = _OUTWARDS * tails
                skewness[:, j] = _OUTWARDS * _skewness(value.astype(np.float64))
        skewness[:, np.any(on_scale) if shared else on_scale] = 0.0
        skewness[_cut_off(intervals, len(cuts) - 1)[::-1]] = 0.0
        bounded = np.array([np.isfinite(end) for end in bounds])
        if shared:
            bounded = np.all(bounded, axis=1, keepdims=True)
        return cls(reach, skewness, bounded, np.diff(cuts))

    @property
    def n_columns(self) -> int:
        """Columns that are judged apart."""
        return self.reach.shape[1]

    def reach_at(self, cols: NDArray) -> NDArray[np.float64]:
        """Return how far the columns of some cells go, of shape (2, n_cells)."""
        return self.reach[:, cols % self.n_columns]


def _cut_off(intervals: Intervals, n: int) -> NDArray[np.bool_]:
    """Tell which columns (or whether any, if n is 1) have floors, and which have ceilings."""
    side = intervals.by_row
    cols = side.censored_idx % n
    ends = side.left_censored, side.right_censored
    return np.array([np.bincount(cols[end], minlength=n) > 0 for end in ends])


def _skewness(values: NDArray[np.float64]) -> float:
    away = values - values.mean()
    variance = float(np.mean(away**2))
    return float(np.mean(away**3)) / variance**1.5 if variance > 0 else 0.0
