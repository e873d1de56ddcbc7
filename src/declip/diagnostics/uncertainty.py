"""How sure a restored cell is: its predicted standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.grams import exact_cells, freedom, leverage
from declip.intervals import Intervals
from declip.losses import Loss
from declip.lowrank import LowRank
from declip.objective import gradient
from declip.solvers.gibbs import Posterior

__all__ = ["PosteriorUncertainty", "Uncertainty", "measure_uncertainty"]

_LEAST_FREE = 0.1  # share of the exact cells that is left to estimate the noise, at least


class _Rows(NamedTuple):
    """The problem of each row: its exact cells, the features of the columns, and the ridge."""

    exact: sparse.csr_array
    design: NDArray[np.float64]
    ridge: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Predicted standard deviations of the cells of a fitted matrix.

    The variance of a cell is sigma^2 (q_j^T H_i^-1 q_j + p_i^T H_j^-1 p_i), with H the sum over the
    exact cells of a row (or column) plus the penalty. What clipping hides beyond that is not in it:
    read it as "at least".

    Attributes
    ----------
    sigma : float
        Noise scale.
    freedom : float
        Effective degrees of freedom of the fit.
    """

    sigma: float
    freedom: float
    by_row: _Rows
    by_col: _Rows

    def sd(self, rows: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return the standard deviation of the model at cells (rows[c], cols[c])."""
        variance = leverage(*self.by_row, rows, cols) + leverage(*self.by_col, cols, rows)
        return self.sigma * np.sqrt(variance)


@dataclass(frozen=True, eq=False)
class PosteriorUncertainty:
    """Standard deviations of the low-rank matrix over the samples of a posterior.

    Attributes
    ----------
    posterior : Posterior
        The samples.
    sigma : float
        Noise scale of the median column.
    freedom : float
        NaN: the sampler has priors in place of degrees of freedom.
    """

    posterior: Posterior
    sigma: float
    freedom: float = np.nan

    @classmethod
    def of(cls, posterior: Posterior) -> PosteriorUncertainty:
        """Take the noise from the samples."""
        return cls(posterior, float(np.median(posterior.noise_scales()[1])))

    def sd(self, rows: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return the standard deviation of the model at cells (rows[c], cols[c])."""
        return self.posterior.spread(rows, cols)


def measure_uncertainty(
    intervals: Intervals, model: LowRank, ridge: NDArray, loss: Loss, threads: int = 1
) -> Uncertainty:
    """Measure the noise, and what is needed to tell the standard deviation of any cell.

    Parameters
    ----------
    intervals, model : Intervals, LowRank
        The cells that were fitted, and the fit.
    ridge : ndarray
        Penalty of each factor, and of the offset.
    loss : Loss
        The loss that was fitted; the noise of one without a scale is taken from the residuals of
        the exact cells.
    """
    by_row = _side(intervals, model, ridge)
    by_col = _side(intervals.T, model.T, ridge)
    taken = min(freedom(*by_row) + freedom(*by_col), float(intervals.n_exact))
    scale = loss.scale
    if not loss.has_scale:
        squares = float((gradient(intervals, model, threads=threads).exact.data ** 2).sum())
        left = max(intervals.n_exact - taken, _LEAST_FREE * intervals.n_exact, 1.0)
        scale = np.sqrt(squares / left)
    return Uncertainty(float(scale), taken, by_row, by_col)


def _side(intervals: Intervals, model: LowRank, ridge: NDArray) -> _Rows:
    design = model.design()[0].astype(np.float64)
    # Without a penalty, what is not determined is very uncertain, and not infinitely so.
    least = 1e-10 * float(np.mean(design**2)) or np.finfo(np.float64).tiny
    exact = exact_cells(intervals.by_row, intervals.shape[1])
    return _Rows(exact, design, np.maximum(ridge, least))
