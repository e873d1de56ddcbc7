"""What is known after a fit: what is determined, how sure it is, and whether the fit is optimal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from declip.diagnostics.determination import Determination, determine
from declip.diagnostics.limit_checks import table_limits
from declip.diagnostics.parts import ErrorParts, Matrix, measure_parts
from declip.diagnostics.residuals import ResidualChecks, check_residuals
from declip.diagnostics.tangent import NEGLIGIBLE
from declip.diagnostics.uncertainty import (
    PosteriorUncertainty,
    Uncertainty,
    measure_uncertainty,
)
from declip.estimators.base import CompletionEstimator
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.objective import certificate
from declip.scaling import Scaling
from declip.solvers import Limits
from declip.solvers.gibbs import Posterior

__all__ = ["FittedChecks", "Optimality", "check_fit"]

_LEFT_OVER = 1e-4


@dataclass(frozen=True)
class Optimality:
    """How near the fit is to its optimum.

    Attributes
    ----------
    relative_gap : float
        Certified distance from the convex optimum, as a share of the objective; NaN if the method
        has no certificate.
    norm_ratio : float
        |G|_op / alpha for the gradient G: at most 1 at the optimum; NaN where it means nothing.
    converged : bool
        Whether the fit had settled.
    """

    relative_gap: float
    norm_ratio: float
    converged: bool


@dataclass(frozen=True, eq=False)
class FittedChecks:
    """All that a fit shows.

    Attributes
    ----------
    name : str
        Name of the estimator.
    clipped : str
        How it counted clipped cells.
    determination : Determination
        Determined rows and columns, and the margin.
    optimality : Optimality
        Certificate.
    uncertainty : Uncertainty or PosteriorUncertainty
        Noise, and the standard deviation of any cell.
    residuals : ResidualChecks
        Agreement with the cells.
    parts : ErrorParts
        B1, B2 and B3 of Theorem 2, in the units of the fit.
    rows, cols, sd : ndarray
        The clipped cells: where they are, and at least how uncertain their restored values are.
    """

    name: str
    clipped: str
    determination: Determination
    optimality: Optimality
    uncertainty: Uncertainty | PosteriorUncertainty
    residuals: ResidualChecks
    parts: ErrorParts
    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    sd: NDArray[np.float64]

    @property
    def in_determined(self) -> NDArray[np.bool_]:
        """Which clipped cells lie in a determined row and a determined column."""
        return self.determination.rows[self.rows] & self.determination.cols[self.cols]


def check_fit(
    estimator: CompletionEstimator[Any, Any], intervals: Intervals, truth: Matrix | None = None
) -> FittedChecks:
    """Check a fitted estimator against the table that it was fitted to."""
    limits = table_limits(intervals, estimator.ceiling, estimator.floor)
    side, scaling = intervals.by_row, getattr(estimator, "scaling_", None)
    rows, cols = side.censored_rows(), side.censored_idx
    restored = estimator.expected(rows, cols, side.lower, side.upper)
    if scaling is not None:  # all is looked at in the units of the fit
        intervals, restored = scaling.apply(intervals), scaling.forward(restored, cols)
        limits = (
            None
            if limits is None
            else Limits(*map(scaling.forward, (limits.floor, limits.ceiling)))
        )
        truth = None if truth is None else _InUnits(truth, scaling)
    model, treated = estimator._factors(), intervals.treat(estimator.clipped)
    threads = effective_n_jobs(estimator.n_jobs)
    with threadpool_limits(limits=1, user_api="blas"):
        uncertainty = _uncertainty(estimator, treated, model, threads)
        sigma = uncertainty.sigma
        residuals = check_residuals(intervals, model, restored, sigma, limits, threads)
        return FittedChecks(
            name=type(estimator).__name__,
            clipped=estimator.clipped,
            determination=determine(treated, model, _negligible(estimator), threads),
            optimality=_optimality(estimator, treated, model, threads),
            uncertainty=uncertainty,
            residuals=residuals if scaling is None else residuals.in_units(scaling, cols),
            parts=measure_parts(intervals, model, residuals, limits, truth),
            rows=rows,
            cols=cols,
            sd=uncertainty.sd(rows, cols) * estimator._unit_of(cols),
        )


@dataclass(frozen=True, eq=False)
class _InUnits:
    """A matrix in the units of a fit."""

    matrix: Matrix
    scaling: Scaling

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    def block(self, rows: slice) -> NDArray:
        return self.scaling.forward(self.matrix.block(rows))


def _negligible(estimator: CompletionEstimator[Any, Any]) -> float:
    """Return the share of the first singular value below which others are no factor."""
    # Where the rank was not given, what is left of singular values that should be 0 is not one.
    return NEGLIGIBLE if hasattr(estimator, "n_components") else _LEFT_OVER


def _uncertainty(
    estimator: CompletionEstimator[Any, Any], treated: Intervals, model: LowRank, threads: int
) -> Uncertainty | PosteriorUncertainty:
    if isinstance(model_of := estimator._model(), Posterior):
        return PosteriorUncertainty.of(model_of)
    ridge = estimator._row_penalty(estimator.components_).vector(model.rank, model.bias)
    return measure_uncertainty(treated, model, ridge, estimator._loss(), threads)


def _optimality(
    estimator: CompletionEstimator[Any, Any], treated: Intervals, model: LowRank, threads: int
) -> Optimality:
    converged = bool(estimator.converged_)
    # ExactCMC brackets the optimum itself; the gap of DTrCMC is that of its stationary points
    if hasattr(estimator, "primal_residual_") or hasattr(estimator, "alpha_clipped"):
        gap = estimator.gap_ / max(estimator.objective_, np.finfo(np.float64).tiny)
        return Optimality(float(gap), np.nan, converged)
    if not hasattr(estimator, "gap_"):
        return Optimality(np.nan, np.nan, converged)
    loss, penalty = estimator._loss(), estimator._row_penalty(estimator.components_)
    proof = certificate(treated, model, penalty, loss, threads=threads)
    relative = proof.gap / max(proof.objective, np.finfo(np.float64).tiny)
    return Optimality(float(relative), float(proof.norm_ratio), converged)
