"""Trace-norm minimisation under hard intervals, by Douglas-Rachford splitting.

A table that fits densely goes the way of `declip.solvers.splitting`, with the projection onto the
intervals as the step of the cells; U / threshold is the dual point. For a large one, or one with a
cap on its rank,

    X <- shrink(Z, tau),   R <- the projection of 2 X - Z onto the intervals,   Z <- Z + R - X

Outside the observed cells R = 2 X - Z, so Z = X + S with S sparse: S = clip(v) - v at the observed
cells, v = 2 X - Z. S / tau is the dual point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.censoring import left_censored, right_censored
from declip.intervals import Intervals
from declip.losses import Hinge, Loss
from declip.lowrank import LowRank
from declip.solvers.dense_cells import DenseCells
from declip.solvers.solution import Solution, Stopping
from declip.solvers.splitting import Splitting, Start, TracePenalty, followed
from declip.svd import SparsePlusLowRank, fits_dense, operator_norm, shrink, trace_norm

__all__ = ["Bracket", "minimum_trace_norm"]

_CHECK_EVERY = 10
_IMBALANCE = 5.0  # residuals may differ by this factor before tau is moved


@dataclass(frozen=True)
class Bracket:
    """What is known of the least trace norm.

    Attributes
    ----------
    upper, lower : float
        Trace norm of a feasible matrix, and a lower bound from duality.
    primal_residual : float
        Distance of the observed cells from their intervals, relative to their size.
    dual_residual : float
        How far the dual point was from being feasible: |Y|_op - 1, if positive.
    """

    upper: float
    lower: float
    primal_residual: float
    dual_residual: float

    @property
    def gap(self) -> float:
        """How far the feasible matrix is above the minimum, at most."""
        return max(self.upper - self.lower, 0.0)


_UNKNOWN = Bracket(np.nan, np.nan, np.nan, np.nan)  # between two looks at the residuals


@dataclass
class _Observed:
    """The observed cells as triplets, and what they say of a matrix."""

    intervals: Intervals

    def __post_init__(self) -> None:
        self.rows, self.cols, self.lower, self.upper = self.intervals.triplets()
        self.size = float(np.linalg.norm(_nearest_to_zero(self.lower, self.upper))) or 1.0

    def sparse(self, values: NDArray) -> sparse.csr_array:
        return sparse.csr_array((values, (self.rows, self.cols)), shape=self.intervals.shape)

    def outside(self, x: NDArray) -> NDArray:
        """Return x - clip(x) at the observed cells."""
        return Hinge().cells(x, self.lower, self.upper).gradient

    def bracket(self, X: LowRank, x: NDArray, y: NDArray) -> Bracket:
        """Bound the optimum from both sides, from X (with values x) and a dual point y."""
        # A bound that is infinite on one side admits only one sign.
        y = np.where(left_censored(self.lower), np.minimum(y, 0), y)
        y = np.where(right_censored(self.upper), np.maximum(y, 0), y)
        norm = operator_norm(self.sparse(y)) if y.any() else 0.0
        y = y / max(norm, 1.0)
        end = np.where(y > 0, self.lower, np.where(y < 0, self.upper, 0.0))
        step = self.outside(x)
        feasible = SparsePlusLowRank(X.A, X.B, (self.sparse(-step),))
        return Bracket(
            upper=trace_norm(feasible, low_rank=X.trace_norm(), rest=step),
            lower=max(float(y @ end), 0.0),
            primal_residual=float(np.linalg.norm(step)) / self.size,
            dual_residual=max(norm - 1.0, 0.0),
        )


def minimum_trace_norm(
    intervals: Intervals, stopping: Stopping, max_rank: int | None = None
) -> Solution:
    """Return the matrix of least trace norm within the intervals; its proof is a `Bracket`.

    Stops when both the gap, relative to the trace norm, and the primal residual are below ``tol``.
    """
    if max_rank is not None or not fits_dense(intervals.shape):
        return _matrix_free(intervals, stopping, max_rank)
    run = _Hard(intervals)
    found = followed(run, Start(LowRank.zero(intervals.shape, intervals.dtype)), stopping)
    looked_at = isinstance(found.proof, Bracket) and not np.isnan(found.proof.upper)
    return found if looked_at else replace(found, proof=run.bracket())


class _HardCells(DenseCells):
    """Cells that are held within their intervals."""

    def prox(self, V: NDArray, rho: float) -> NDArray:
        """Return the projection of V."""
        return self.nearest(V)


class _Hard(Splitting):
    """The splitting with hard intervals; the history is that of the trace norm."""

    def __init__(self, intervals: Intervals) -> None:
        super().__init__(intervals, TracePenalty(1.0), Hinge())
        self.observed = _Observed(intervals)

    def _cells(self, dtype: Any, loss: Loss) -> DenseCells:
        return _HardCells(self.intervals.to_bounds(), dtype)

    @property
    def least_threshold(self) -> float:
        """None: there is no loss that would set a scale."""
        return 0.0

    def _single_will_do(self) -> bool:
        return False  # cells are to be met exactly

    def _is_optimal_at_zero(self) -> bool:
        return not self.cells.nearest(np.zeros(self.intervals.shape)).any()

    def _value(self, x: NDArray, trace_norm: float, loss: Loss) -> float:
        return trace_norm

    def look(self, tol: float, last: bool = False) -> None:
        """Keep the latest matrix, bracket its trace norm if it is time, and end or go on."""
        state = self.state
        state.best, state.proof = self._model(), _UNKNOWN
        if self.due and self.settling:
            state.proof = proof = self.bracket()
            gap = max(proof.gap / (proof.upper or 1.0), proof.primal_residual)
            state.converged = self._is_enough(gap, tol)
            self._balance()
        state.history.append(self._trace_norm())

    def bracket(self) -> Bracket:
        """Return what is known of the least trace norm by the latest matrix and multipliers."""
        state, at = self.state, (self.observed.rows, self.observed.cols)
        y = state.duals[0][at].astype(np.float64) / -state.threshold
        return self.observed.bracket(state.best, state.best.predict(*at), y)


def _matrix_free(intervals: Intervals, stopping: Stopping, max_rank: int | None) -> Solution:
    """Minimise the trace norm of a table that is never held densely.

    The step tau follows the balance of the two residuals, with the dual point kept.
    """
    resume_point = stopping.resume_point
    split = _Observed(intervals)
    if resume_point.state is None:
        s = -split.outside(np.zeros(len(intervals)))
        tau = 0.1 * operator_norm(split.sparse(s)) or 1.0
        X, x = LowRank.zero(intervals.shape), np.zeros(len(intervals))
        history, next_change, converged = [0.0], _CHECK_EVERY, False
        proof = split.bracket(X, x, s / tau)
    else:
        X, x, s, tau, history, next_change, converged, proof = resume_point.state
    stopped = False
    while len(history) <= stopping.max_iter and not converged and not stopped:
        found = shrink(SparsePlusLowRank(X.A, X.B, (split.sparse(s),)), tau, X.Q, max_rank)
        new = LowRank.from_svd(found)
        x_new = new.predict(split.rows, split.cols)
        z = x + s
        s = -split.outside(2 * x_new - z)
        X, x = new, x_new
        history.append(float(found.S.sum()))
        if len(history) % _CHECK_EVERY == 0:
            proof = split.bracket(X, x, s / tau)
            converged = max(proof.gap / (proof.upper or 1.0), proof.primal_residual) <= stopping.tol
        if len(history) == next_change:
            # ever rarer, so that tau is constant in the end and the iteration converges
            next_change += _CHECK_EVERY * max(1, next_change // (5 * _CHECK_EVERY))
            primal, dual = proof.primal_residual, proof.dual_residual
            change = (
                0.5 if primal > _IMBALANCE * dual else 2.0 if dual > _IMBALANCE * primal else 1.0
            )
            tau, s = change * tau, change * s
        resume_point.put((X, x, s, tau, history, next_change, converged, proof))
        model = X.astype(intervals.dtype)
        stopped = stopping.on_sweep(Solution(model, np.array(history), False, proof=_UNKNOWN))
    proof = split.bracket(X, x, s / tau)
    model = X.astype(intervals.dtype)
    return Solution(model, np.array(history), converged, stopped=stopped, proof=proof)


def _nearest_to_zero(lower: NDArray, upper: NDArray) -> NDArray:
    return np.clip(0.0, lower, upper)
