"""A new penalty: the trace norm, of which no singular value pays more than a cap.

The trace norm pulls every singular value down by alpha, the large ones too. Here those above
``cap`` (at least alpha / 2) pay a constant, sum of alpha * min(s, cap), and are left alone.
"""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from declip.estimators.base import SHARED_CONSTRAINTS
from declip.estimators.factors import FreeRankEstimator
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.objective import gradient, total_loss
from declip.solvers import Solution
from declip.svd import SVD, shrink


# A penalty is two functions of the singular values.
def value(S: np.ndarray, alpha: float, cap: float) -> float:
    """Return alpha times the sum of min(s, cap)."""
    return alpha * float(np.minimum(S, cap).sum())


def prox(S: np.ndarray, alpha: float, cap: float) -> np.ndarray:
    """Return, for each s, the z >= 0 with the least (z - s)^2 / 2 + alpha * min(z, cap)."""
    lowered = np.minimum(np.maximum(S - alpha, 0), cap)
    kept = np.maximum(S, cap)
    cost = [0.5 * (z - S) ** 2 + alpha * np.minimum(z, cap) for z in (lowered, kept)]
    return np.where(cost[0] <= cost[1], lowered, kept)


# A solver loops over steps, stops, and returns a `Solution`.
def descend(
    cells: Intervals, alpha: float, cap: float, max_iter: int, tol: float, on_sweep: Any
) -> Solution:
    """Lower loss + penalty by proximal gradient steps; the gradient is 1-Lipschitz."""
    X = LowRank.zero(cells.shape)
    history, converged = [total_loss(cells, X)], False
    while len(history) <= max_iter and not converged:
        # The door to SVDs gives those above alpha, lowered by it. The others go to 0 anyhow, if cap
        # is at least alpha / 2.
        found = shrink(gradient(cells, X).added_to(X.A, X.B, -1.0), alpha, X.Q)
        found = SVD(found.U, prox(found.S + alpha, alpha, cap), found.V)
        X = LowRank.from_svd(found)
        history.append(total_loss(cells, X) + value(found.S, alpha, cap))
        converged = history[-2] - history[-1] <= tol * history[-1]
        if on_sweep(Solution(X, np.array(history), False)):
            break
    return Solution(X, np.array(history), converged)


# An estimator keeps parameters, calls the solver, and names what was fitted.
class CappedTrCMC(FreeRankEstimator):
    """Restore clipped and missing cells by the capped trace norm."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "cap": [Interval(Real, 0, None, closed="right")],
    }
    clipped: ClassVar[str] = "hinge"
    checkpoint: ClassVar[None] = None

    def __init__(
        self,
        alpha=1.0,
        cap=np.inf,
        *,
        ceiling=None,
        floor=None,
        max_iter=1000,
        tol=1e-7,
        n_jobs=None,
        verbose=0,
    ):
        self.alpha = alpha
        self.cap = cap
        self.ceiling = ceiling
        self.floor = floor
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _solve(self, table: Intervals, on_sweep: Any, **_: Any) -> Solution:
        return descend(table, self.alpha, self.cap, self.max_iter, self.tol, on_sweep)
