"""The methods that a restoration weighs against each other."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from declip.estimators import BayesCMC, FroCMC, TrCMC
from declip.intervals import Intervals
from declip.restoration.settings import KNOWN, Settings
from declip.solvers.gibbs.covariance import NormalDraws, sample_normal
from declip.solvers.gibbs.normal_rows import rows_under
from declip.solvers.gibbs.units import Units
from declip.validation import rank_to_fit

__all__ = [
    "METHODS",
    "Candidate",
    "CensoredNormal",
    "ColumnTobit",
    "components",
    "grid",
    "methods_to_weigh",
    "missing_components",
    "n_draws",
    "summed_up",
    "untuned",
]

METHODS = {
    "bayes": "Bayesian factor model (BayesCMC)",
    "bayes+known": "Bayesian factor model with what else is known (BayesCMC)",
    "bayes+rows": "Bayesian factor model with noise scales and offsets of rows (BayesCMC)",
    "normal": "censored normal distribution of rows, full covariance",
    "classes": "censored normal distributions of a few classes of rows, full covariances",
    "column": "each column alone, as a censored normal distribution",
    "tobit": "factor model, censored normal noise (FroCMC, tobit)",
    "tobit+bias": "factor model with offsets, censored normal noise (FroCMC, tobit)",
    "hinge": "factor model (FroCMC, hinge)",
    "hinge+bias": "factor model with offsets (FroCMC, hinge)",
    "trace": "trace norm, censored normal noise (TrCMC, tobit)",
}
_SPARSE = 0.5  # share of observed cells below which a table is one of ratings
_RANKS = (1, 2, 3, 5, 8, 12, 20)
_ALPHAS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
_SWEEPS = (60, 250)  # of a Gibbs sampler that is compared: fewer for a large table
_CELL_SWEEPS = 6_000_000  # cells times sweeps
_MOST_COVARIANCES = 100  # columns up to which a full covariance is tried
_MOST_KEPT = 2_000_000  # cells of a table up to which a full covariance is tried
_SAMPLED = ("bayes", "bayes+known", "bayes+rows", "normal", "classes")  # by draws from a posterior
_CLASSES = 5
_ROWS_OF_A_CLASS = 20  # fewer cannot tell classes apart
_MOST_COLUMNS_OF_CLASSES = 30
_MOST_IN_CLASSES = 100_000  # cells of a table up to which classes are looked for
_DRAWS = (8, 32)  # components of a mixture: fewer for many cells
_CELL_DRAWS = 300_000  # cells times components
_NUMBERS_KEPT = 20_000_000  # by a full covariance


class ColumnTobit(BaseEstimator):
    """A censored normal distribution for each column alone: no rows, no factors.

    Parameters
    ----------
    shared : bool, default=False
        Whether all columns share one distribution.
    """

    def __init__(self, shared: bool = False) -> None:
        self.shared = shared

    def fit(self, X: Intervals, y: Any = None) -> Self:
        """Fit the distributions."""
        units = Units.of(X, self.shared)
        self.location_, self.spread_ = units.shift, units.scale
        return self

    def predict(self, rows: NDArray, cols: NDArray) -> NDArray:
        """Return the mean of the column of each cell."""
        return self.location_[np.asarray(cols)]

    def predictive(self, rows: NDArray, cols: NDArray) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation of the column of each cell."""
        return self.predict(rows, cols), self.spread_[np.asarray(cols)]

    def predictive_draws(
        self, rows: NDArray, cols: NDArray, most: int = _DRAWS[1]
    ) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation as one draw, of shape (1, n_cells)."""
        mean, sd = self.predictive(rows, cols)
        return mean[None], sd[None]

    def fold_in(self, X: Intervals, independent: bool = False) -> Self:
        """Return what is said of other rows: the same."""
        return self


class CensoredNormal(BaseEstimator):
    """Rows drawn from normal distributions with full covariances, by Gibbs sampling.

    Parameters
    ----------
    n_samples, burn_in : int
        Sweeps that count, and sweeps before them.
    n_classes : int
        Most classes of rows, each with a distribution of its own.
    max_kept : int
        Draws kept at most.
    random_state : int
        Seed.
    n_jobs : int or None
        Threads; None is 1, -1 all.
    """

    def __init__(
        self,
        n_samples: int = 170,
        burn_in: int = 80,
        n_classes: int = 1,
        max_kept: int = _DRAWS[1],
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.n_classes = n_classes
        self.max_kept = max_kept
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Intervals, y: Any = None) -> Self:
        """Sample the distribution, and the rows with it."""
        self.draws_: NormalDraws = sample_normal(
            X,
            n_samples=self.n_samples,
            burn_in=self.burn_in,
            n_kept=min(
                _draws(X.shape[0] * X.shape[1], _NUMBERS_KEPT), self.n_samples, self.max_kept
            ),
            seed=self.random_state,
            n_classes=self.n_classes,
            threads=effective_n_jobs(self.n_jobs),
        )
        return self

    def predict(self, rows: NDArray, cols: NDArray) -> NDArray:
        """Return the mean of cells given the rest of their rows."""
        return self.predictive(rows, cols)[0]

    def predictive(self, rows: NDArray, cols: NDArray) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation of cells given the rest of their rows."""
        mean, sd = self.predictive_draws(rows, cols)
        return mean.mean(axis=0), np.sqrt(mean.var(axis=0) + (sd**2).mean(axis=0))

    def predictive_draws(
        self, rows: NDArray, cols: NDArray, most: int = _DRAWS[1]
    ) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation by some draws, of shape (n_draws, n_cells)."""
        some = range(0, len(self.draws_), -(-len(self.draws_) // most))
        at = [self.draws_.conditional(draw, rows, cols) for draw in some]
        mean, sd = (np.array(part) for part in zip(*at, strict=True))
        return mean, sd

    def fold_in(self, X: Intervals, independent: bool = False) -> Self:
        """Return what is said of other rows under the same distribution."""
        twin = copy(self)
        twin.draws_ = rows_under(
            self.draws_,
            X,
            self.random_state,
            independent=independent,
            threads=effective_n_jobs(self.n_jobs),
        )
        return twin


def components(
    estimator: Any, rows: NDArray, cols: NDArray, most: int | None = None
) -> tuple[NDArray, NDArray]:
    """Return the normal components by which a fitted method predicts cells, (K, n_cells) each."""
    return estimator.predictive_draws(rows, cols, n_draws(len(rows)) if most is None else most)


def summed_up(centre: NDArray, spread: NDArray) -> tuple[NDArray, NDArray]:
    """Return one component with the mean and variance of all."""
    mean, variance = centre.mean(axis=0), centre.var(axis=0) + (spread**2).mean(axis=0)
    return mean[None], np.sqrt(variance)[None]


def n_draws(n_cells: int) -> int:
    """Return how many components so many cells are looked at with."""
    return _draws(n_cells, _CELL_DRAWS)


def missing_components(estimator: Any, rows: NDArray, cols: NDArray) -> tuple[NDArray, NDArray]:
    """Return the components of missing cells, given that they are missing if that says anything."""
    if not getattr(estimator, "detection_", None):
        return components(estimator, rows, cols)
    return estimator.posterior_.missing_components(rows, cols, n_draws(len(rows)))


def _draws(n_cells: int, numbers: int) -> int:
    return int(np.clip(numbers // max(n_cells, 1), *_DRAWS))


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
        What was found: "held_out" and "reclip" (minus the mean log-likelihood of cells that were
        held out, and hidden behind a limit), "error" (relative to leaving the limit), "weight".
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


def untuned(method: str, intervals: Intervals, settings: Settings) -> Any:
    """Return the estimator of a method, before its rank and penalty are chosen."""
    seed, n_jobs = settings.random_state, settings.n_jobs
    if method in _SAMPLED:
        sweeps = int(settings.work * np.clip(_CELL_SWEEPS // max(len(intervals), 1), *_SWEEPS))
        burn_in = sweeps // 3
        drawn: dict[str, Any] = {"n_samples": sweeps - burn_in, "burn_in": burn_in}
        drawn["random_state"] = seed
        if method in ("normal", "classes"):
            return CensoredNormal(
                n_classes=_CLASSES if method == "classes" else 1, n_jobs=n_jobs, **drawn
            )
        rank = settings.n_components or rank_to_fit("auto", intervals.shape)
        noise = "row+column" if method == "bayes+rows" else "auto"
        return BayesCMC(rank, chains=1, noise=noise, max_kept=_DRAWS[1], n_jobs=n_jobs, **drawn)
    if method == "column":
        return ColumnTobit(shared=settings.shared)
    if method == "trace":
        return TrCMC(clipped="tobit", scale="none", tol=1e-3, max_iter=300, n_jobs=n_jobs)
    clipped, _, bias = method.partition("+")
    return FroCMC(
        clipped=clipped,
        bias=bool(bias),
        scale="none",
        max_iter=60,
        tol=1e-4,
        random_state=seed,
        n_jobs=n_jobs,
    )


def methods_to_weigh(intervals: Intervals, settings: Settings) -> list[str]:
    """Return the methods that are worth their work on a table."""
    if settings.method != "auto":
        return [settings.method]
    if min(intervals.shape) < 2 and not settings.known:
        return ["column"]
    n_rows, n_cols = intervals.shape
    covariance = n_cols <= _MOST_COVARIANCES and n_rows * n_cols <= _MOST_KEPT
    classes = n_rows >= _ROWS_OF_A_CLASS * _CLASSES and n_cols <= _MOST_COLUMNS_OF_CLASSES
    classes &= n_rows * n_cols <= _MOST_IN_CLASSES and settings.work >= 1
    # more work than what they gain in the study of `restore` is worth by default
    more = ["tobit", "tobit+bias"] if settings.work > 1 else []
    # with few cells observed BayesCMC has noise scales of rows by itself
    rows = settings.by_rows and len(intervals) >= _SPARSE * n_rows * n_cols
    return [
        *([KNOWN] if settings.known else []),
        "bayes",
        *(["bayes+rows"] if rows else []),
        *(["normal"] if covariance else []),
        "column",
        *(["classes"] if classes else []),
        *more,
    ]


def grid(method: str, shape: tuple[int, int], settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield grids of parameters to search, one for each rank, smallest first."""
    alphas = list(_ALPHAS) if settings.alpha is None else [settings.alpha]
    if method == "trace":
        yield {"alpha": [a * np.sqrt(max(shape)) / 10 for a in alphas]}
    elif method not in (*_SAMPLED, "column"):
        ranks = [k for k in _RANKS if k < min(shape)] or [1]
        for k in ranks if settings.n_components is None else [settings.n_components]:
            yield {"n_components": [k], "alpha": alphas}
