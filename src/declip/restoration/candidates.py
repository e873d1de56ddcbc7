"""The methods that a restoration chooses from, and the normal law by which each predicts a cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from declip import kernels
from declip.estimators import BayesCMC, FroCMC, TrCMC, fitted_model
from declip.intervals import Intervals
from declip.solvers.gibbs.units import Units

__all__ = ["METHODS", "Candidate", "ColumnTobit", "PredictiveDistribution", "grid", "untuned"]

# In the order in which they are tried, while there is time.
METHODS = ("bayes", "column", "tobit", "tobit+bias", "hinge+bias", "hinge", "trace")
_RANKS = (1, 2, 3, 5, 8, 12, 20)
_ALPHAS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
_BAYES_SWEEPS = (60, 250)  # of a fit that is compared: fewer for a large table
_BAYES_CELLS = 6_000_000  # cells times sweeps
_NOISE_STEPS = 20
_NOISE_PRIOR = 3.0  # cells that the noise scale of a column counts as having seen of the table's
_MOST_FACTORS = 2**24  # numbers in the blocks of factors that are inverted at a time


class ColumnTobit(BaseEstimator):
    """A normal law for each column alone, fitted to exact and clipped cells: no rows, no factors.

    Parameters
    ----------
    shared : bool, default=False
        Whether all columns share one law.
    """

    def __init__(self, shared: bool = False) -> None:
        self.shared = shared

    def fit(self, X: Intervals, y: Any = None) -> Self:
        """Fit the laws."""
        units = Units.of(X, self.shared)
        self.location_, self.spread_ = units.shift, units.scale
        return self

    def predict(self, rows: NDArray, cols: NDArray) -> NDArray:
        """Return the mean of the column of each cell."""
        return self.location_[np.asarray(cols)]


@dataclass
class Candidate:
    """A method with its parameters, and what is known of it.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    estimator : estimator
        Not fitted.
    scores : dict
        What was found: "held_out", "reclip", "error", "seconds".
    """

    method: str
    estimator: Any
    scores: dict[str, float] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that tell it from others of the same method."""
        given = self.estimator.get_params(deep=False)
        return {name: given[name] for name in ("n_components", "alpha") if name in given}

    def as_dict(self) -> dict[str, Any]:
        """Return everything that is known of it."""
        return {"method": self.method, "parameters": self.parameters, **self.scores}


def untuned(method: str, n_cells: int, ratings: bool, seed: int, n_jobs: int | None) -> Any:
    """Return the estimator of a method, before its rank and penalty are chosen."""
    if method == "bayes":
        sweeps = int(np.clip(_BAYES_CELLS // n_cells, *_BAYES_SWEEPS))
        return BayesCMC(
            chains=1,
            n_samples=sweeps - sweeps // 3,
            burn_in=sweeps // 3,
            random_state=seed,
            n_jobs=n_jobs,
        )
    if method == "column":
        return ColumnTobit(shared=ratings)
    if method == "trace":
        return TrCMC(clipped="tobit", tol=1e-3, max_iter=300, n_jobs=n_jobs)
    clipped, _, bias = method.partition("+")
    return FroCMC(
        clipped=clipped, bias=bool(bias), max_iter=60, tol=1e-4, random_state=seed, n_jobs=n_jobs
    )


def grid(method: str, shape: tuple[int, int], rank: int | None, alpha: float | None) -> Iterator:
    """Yield grids of parameters to search, one for each rank, smallest first."""
    alphas = list(_ALPHAS) if alpha is None else [alpha]
    if method == "trace":
        yield {"alpha": [a * np.sqrt(max(shape)) / 10 for a in alphas]}
    elif method not in ("bayes", "column"):
        ranks = [k for k in _RANKS if k < min(shape)] or [1]
        for k in ranks if rank is None else [rank]:
            yield {"n_components": [k], "alpha": alphas}


@dataclass(frozen=True, eq=False)
class PredictiveDistribution:
    """The normal laws by which a fitted method predicts the cells of its table.

    The variance of a cell is the noise of its column plus the uncertainty of the factors of its
    row, :math:`s_j^2 + q_j^T H_i^{-1} q_j`, where :math:`H_i` sums over the exact cells of the row.
    """

    estimator: Any
    intervals: Intervals

    def at(self, rows: NDArray, cols: NDArray) -> tuple[NDArray, NDArray]:
        """Return means and standard deviations of cells."""
        estimator = self.estimator
        if isinstance(estimator, BayesCMC):
            mean, spread = estimator.predict(rows, cols, return_std=True)
            return mean, spread
        if isinstance(estimator, ColumnTobit):
            return estimator.predict(rows, cols), estimator.spread_[cols]
        noise = self._noise()
        extra = self._row_uncertainty(rows, cols, noise)
        return estimator.predict(rows, cols).astype(np.float64), np.sqrt(noise[cols] ** 2 + extra)

    def _noise(self) -> NDArray[np.float64]:
        """Return the noise scale of each column, by EM from the residuals of all of its cells."""
        rows, cols, lower, upper = self.intervals.triplets()
        n, n_cols = self.intervals.n_exact, self.intervals.shape[1]
        x = self.estimator.predict(rows, cols).astype(np.float64)
        squares = (lower[:n] - x[:n]) ** 2
        pooled = max(float(squares.mean()), 1e-12)
        count = np.bincount(cols, minlength=n_cols) + _NOISE_PRIOR
        exact = np.bincount(cols[:n], squares, n_cols) + _NOISE_PRIOR * pooled
        noise, at = np.full(n_cols, np.sqrt(pooled)), cols[n:]
        for _ in range(_NOISE_STEPS if len(at) else 0):
            ends = [(end[n:] - x[n:]) / noise[at] for end in (lower, upper)]
            cell = kernels.interval_loss(np.zeros(len(at)), *ends, scale=1.0)
            expected = noise[at] ** 2 * (1 - cell.curvature + cell.gradient**2)
            noise = np.sqrt((exact + np.bincount(at, expected, n_cols)) / count)
        return noise if len(at) else np.sqrt(exact / count)

    def _row_uncertainty(self, rows: NDArray, cols: NDArray, noise: NDArray) -> NDArray:
        model = fitted_model(self.estimator)
        Q = model.design()[0].astype(np.float64)
        k, side = Q.shape[1], self.intervals.by_row
        weight = 1 / noise**2
        exact = sparse.csr_array(
            (weight[side.exact_idx], side.exact_idx, side.exact_ptr), shape=self.intervals.shape
        )
        squares = (Q[:, :, None] * Q[:, None, :]).reshape(len(Q), k * k)
        ridge = max(self.estimator.alpha, 1e-6) / np.median(noise) ** 2 * np.eye(k)
        out = np.empty(len(rows))
        asked, where = np.unique(rows, return_inverse=True)
        size = max(1, _MOST_FACTORS * len(asked) // (k**2 * max(len(rows), 1)))
        for start in range(0, len(asked), size):
            part = asked[start : start + size]
            # H_i = sum over exact j of q_j q_j^T / s_j^2 + alpha / s^2 I
            H = (exact[part] @ squares).reshape(-1, k, k) + ridge
            here = (where >= start) & (where < start + size)
            inverse = np.linalg.inv(H)[where[here] - start]
            q = Q[cols[here]]
            out[here] = np.einsum("nk,nkl,nl->n", q, inverse, q)
        return out
