"""How sure a fitted low-rank matrix is of its cells: the noise of columns, the factors of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.grams import leverage
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.truncated import moments

__all__ = ["CellUncertainty"]

_NOISE_STEPS = 20
_NOISE_PRIOR = 3.0  # cells that the noise scale of a column counts as having seen of the table's
_LEAST_RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class CellUncertainty:
    r"""What the variance of any cell is computed from.

    It is the noise of the column plus the uncertainty of the factors of the row,
    :math:`s_j^2 + q_j^T H_i^{-1} q_j` with :math:`H_i = \sum_j q_j q_j^T / s_j^2 + \alpha / s^2 I`
    over the exact cells of the row, and s the median of the noise scales.

    Attributes
    ----------
    noise : ndarray of shape (n_cols,)
        Noise scale of each column.
    ridge : ndarray
        Penalty of each factor of a row, and of its offset.
    exact_ptr, exact_idx : ndarray
        The exact cells row by row, as in `Cells`; their values are not kept.
    """

    noise: NDArray[np.float64]
    ridge: NDArray[np.float64]
    exact_ptr: NDArray[np.int64]
    exact_idx: NDArray[np.int32]

    @classmethod
    def of(cls, intervals: Intervals, model: LowRank, ridge: NDArray) -> CellUncertainty:
        """Estimate the noise from the cells of a fit."""
        side = intervals.by_row
        noise = column_noise(intervals, model)
        return cls(noise, np.maximum(ridge, _LEAST_RIDGE), side.exact_ptr, side.exact_idx)

    def _check_loaded(self) -> None:
        """Refuse a state that was read from a file and is not that of a table."""
        ptr, idx, n_cols = self.exact_ptr, self.exact_idx, len(self.noise)
        inside = idx.size == 0 or (idx.min() >= 0 and idx.max() < n_cols)
        if not (ptr[0] == 0 and ptr[-1] == len(idx) and np.all(np.diff(ptr) >= 0) and inside):
            raise ValueError("the exact cells of a table do not fit together")

    def sd(self, model: LowRank, rows: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return the standard deviation of cells of the fitted matrix, noise included."""
        weight = self.noise**-2
        shape = len(self.exact_ptr) - 1, len(self.noise)
        exact = sparse.csr_array((weight[self.exact_idx], self.exact_idx, self.exact_ptr), shape)
        design = model.design()[0].astype(np.float64)
        ridge = self.ridge / np.median(self.noise) ** 2
        return np.sqrt(self.noise[cols] ** 2 + leverage(exact, design, ridge, rows, cols))


def column_noise(intervals: Intervals, model: LowRank) -> NDArray[np.float64]:
    """Return the noise scale of each column, by EM from the residuals of all of its cells."""
    rows, cols, lower, upper = intervals.triplets()
    n, n_cols = intervals.n_exact, intervals.shape[1]
    x = model.predict(rows, cols).astype(np.float64)
    squares = (lower[:n] - x[:n]) ** 2
    pooled = max(float(np.mean(squares if n else _squares_of_ranges(x, lower, upper))), 1e-12)
    count = np.bincount(cols, minlength=n_cols) + _NOISE_PRIOR
    exact = np.bincount(cols[:n], squares, n_cols) + _NOISE_PRIOR * pooled
    noise, at = np.full(n_cols, np.sqrt(pooled)), cols[n:]
    for _ in range(_NOISE_STEPS if len(at) else 0):
        ends = [(end[n:] - x[n:]) / noise[at] for end in (lower, upper)]
        mean, variance = moments(*ends)
        expected = noise[at] ** 2 * (variance + mean**2)
        noise = np.sqrt((exact + np.bincount(at, expected, n_cols)) / count)
    return noise if len(at) else np.sqrt(exact / count)


def _squares_of_ranges(x: NDArray, lower: NDArray, upper: NDArray) -> NDArray[np.float64]:
    """Return the squared residuals of the middles of ranges: where to begin without exact cells."""
    ranged = np.isfinite(lower) & np.isfinite(upper)
    return ((0.5 * (lower + upper) - x)[ranged]) ** 2
