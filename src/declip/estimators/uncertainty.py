"""How sure a fitted low-rank matrix is of its cells: the noise of columns, the factors of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.censoring import ranged
from declip.grams import freedom, leverage
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.truncated import moments

__all__ = ["CellUncertainty"]

_NOISE_STEPS = 20
_NOISE_PRIOR = 3.0  # cells that the noise scale of a column counts as having seen of the table's
_LEAST_RIDGE = 1e-6
_LEAST_LEFT = 0.1  # share of the cells that factors leave for the noise, at least


@dataclass(frozen=True, eq=False)
class CellUncertainty:
    r"""What the variance of any cell is computed from.

    It is the noise of the column plus the uncertainty of the factors of the row,
    :math:`s_j^2 + q_j^T H_i^{-1} q_j` with :math:`H_i = \sum_j q_j q_j^T / s_j^2 + \alpha / s^2 I`
    over the exact cells of the row, and s the median of the noise scales. Of an order in time, what
    a step follows says how far its factors may go before its own cells are seen: that divides the
    ridge, and the uncertainty of ordered columns comes on top; and the noise is that of the
    residuals over the degrees of freedom that the factors leave.

    Attributes
    ----------
    noise : ndarray of shape (n_cols,)
        Noise scale of each column.
    ridge : ndarray
        Penalty of each factor of a row, and of its offset.
    exact_ptr, exact_idx : ndarray
        The exact cells row by row, as in `Cells`; their values are not kept.
    row_spread, col_spread : ndarray or None
        Variance of the factors of each row (column) given those that it follows; None without an
        order of rows (columns).
    """

    noise: NDArray[np.float64]
    ridge: NDArray[np.float64]
    exact_ptr: NDArray[np.int64]
    exact_idx: NDArray[np.int32]
    row_spread: NDArray[np.float64] | None = None
    col_spread: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        intervals: Intervals,
        model: LowRank,
        ridge: NDArray,
        spreads: tuple[NDArray | None, NDArray | None] = (None, None),
    ) -> CellUncertainty:
        """Estimate the noise from the cells of a fit."""
        side, ridge = intervals.by_row, np.maximum(ridge, _LEAST_RIDGE)
        noise = column_noise(intervals, model)
        found = cls(noise, ridge, side.exact_ptr, side.exact_idx, *spreads)
        ordered = any(spread is not None for spread in spreads)
        return replace(found, noise=noise * found._followed_noise(model)) if ordered else found

    def _followed_noise(self, model: LowRank) -> float:
        """Return by how much residuals are smaller than the noise, since factors follow it."""
        exact, ridge = self._exact(), self.ridge / np.median(self.noise) ** 2
        taken = sum(
            freedom(cells.tocsr(), side.design()[0].astype(np.float64), ridge)
            for cells, side in ((exact, model), (exact.T, model.T))
        )
        left = max(exact.nnz - taken, _LEAST_LEFT * exact.nnz, 1.0)
        return float(np.sqrt(max(exact.nnz, 1) / left))

    def _exact(self) -> sparse.csr_array:
        """Return the exact cells, weighed by the precision of the noise."""
        weight, shape = self.noise**-2, (len(self.exact_ptr) - 1, len(self.noise))
        return sparse.csr_array((weight[self.exact_idx], self.exact_idx, self.exact_ptr), shape)

    def _check_loaded(self) -> None:
        """Refuse a state that was read from a file and is not that of a table."""
        ptr, idx, n_cols = self.exact_ptr, self.exact_idx, len(self.noise)
        inside = idx.size == 0 or (idx.min() >= 0 and idx.max() < n_cols)
        spreads = zip((self.row_spread, self.col_spread), (len(ptr) - 1, n_cols), strict=True)
        if any(spread is not None and spread.shape != (n,) for spread, n in spreads):
            raise ValueError("the spread of ordered factors is not that of the rows or columns")
        if not (ptr[0] == 0 and ptr[-1] == len(idx) and np.all(np.diff(ptr) >= 0) and inside):
            raise ValueError("the exact cells of a table do not fit together")

    def sd(self, model: LowRank, rows: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return the standard deviation of cells of the fitted matrix, noise included."""
        exact = self._exact()
        design = model.design()[0].astype(np.float64)
        ridge = self.ridge / np.median(self.noise) ** 2
        of_rows = ridge if self.row_spread is None else ridge / self.row_spread[:, None]
        variance = self.noise[cols] ** 2 + leverage(exact, design, of_rows, rows, cols)
        if self.col_spread is not None:
            design = model.T.design()[0].astype(np.float64)
            of_cols = ridge / self.col_spread[:, None]
            variance += leverage(exact.T.tocsr(), design, of_cols, cols, rows)
        return np.sqrt(variance)


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
    return ((0.5 * (lower + upper) - x)[ranged(lower, upper)]) ** 2
