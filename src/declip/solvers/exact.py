"""Trace-norm minimisation under hard intervals, by Douglas-Rachford splitting.

    X <- shrink(Z, tau),   R <- the projection of 2 X - Z onto the intervals,   Z <- Z + R - X

Outside the observed cells R = 2 X - Z, so Z = X + S with S sparse: S = clip(v) - v at the observed
cells, v = 2 X - Z. S / tau is the dual point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.intervals import Intervals
from declip.losses import Hinge
from declip.lowrank import LowRank
from declip.solvers.solution import Solution, Stopping
from declip.svd import SparsePlusLowRank, operator_norm, shrink, trace_norm

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
class _Splitting:
    """The iterate X and the sparse part S of Z = X + S."""

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
        y = np.where(np.isinf(self.lower), np.minimum(y, 0), y)
        y = np.where(np.isinf(self.upper), np.maximum(y, 0), y)
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
    The step tau follows the balance of the two residuals, with the dual point kept.
    """
    resume_point = stopping.resume_point
    split = _Splitting(intervals)
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
