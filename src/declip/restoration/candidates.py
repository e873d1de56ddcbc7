"""The methods that a restoration chooses from, and the normal law by which each predicts a cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from declip.estimators import BayesCMC, FroCMC, TrCMC
from declip.intervals import Intervals
from declip.solvers.gibbs.units import Units

__all__ = ["METHODS", "Candidate", "ColumnTobit", "PredictiveDistribution", "grid", "untuned"]

# In the order in which they are tried, while there is time.
METHODS = ("bayes", "column", "tobit", "tobit+bias", "hinge+bias", "hinge", "trace")
_RANKS = (1, 2, 3, 5, 8, 12, 20)
_ALPHAS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
_BAYES_SWEEPS = (60, 250)  # of a fit that is compared: fewer for a large table
_BAYES_CELLS = 6_000_000  # cells times sweeps


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

    def predictive(self, rows: NDArray, cols: NDArray) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation of the column of each cell."""
        return self.predict(rows, cols), self.spread_[np.asarray(cols)]


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
    """The normal laws by which a fitted method predicts the cells of its table."""

    estimator: Any
    intervals: Intervals

    def at(self, rows: NDArray, cols: NDArray) -> tuple[NDArray, NDArray]:
        """Return means and standard deviations of cells."""
        return self.estimator.predictive(rows, cols)
