"""A new loss: Huber's. Gross errors pull with a force of at most delta.

A loss is its value and its gradient. For a cell at distance r from its interval the gradient is r,
cut off at delta; the value is r^2 / 2 up to there, and grows like delta * r beyond.
"""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from declip.estimators.base import SHARED_CONSTRAINTS
from declip.estimators.factors import FreeRankEstimator
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.objective import Gradient, gradient
from declip.solvers import Solution
from declip.svd import shrink


def huber(cells: Intervals, X: LowRank, delta: float) -> Gradient:
    """Return the loss and its gradient with respect to X."""
    squared = gradient(cells, X)  # its data are the distances r, exact and censored cells apart
    loss, parts = 0.0, []
    for part in (squared.exact, squared.censored):
        r = np.abs(part.data)
        loss += float(np.where(r <= delta, 0.5 * r**2, delta * (r - 0.5 * delta)).sum())
        bounded = part.copy()
        bounded.data = np.clip(part.data, -delta, delta)
        parts.append(bounded)
    return Gradient(loss, *parts)


class HuberCMC(FreeRankEstimator):
    """Restore clipped and missing cells by the trace norm, with some cells grossly wrong."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "delta": [Interval(Real, 0, None, closed="right")],
    }
    clipped: ClassVar[str] = "hinge"
    checkpoint: ClassVar[None] = None

    def __init__(
        self,
        alpha=1.0,
        delta=1.0,
        *,
        ceiling=None,
        floor=None,
        max_iter=2000,
        tol=1e-7,
        n_jobs=None,
        verbose=0,
    ):
        self.alpha = alpha
        self.delta = delta
        self.ceiling = ceiling
        self.floor = floor
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _solve(self, table: Intervals, on_sweep: Any, **_: Any) -> Solution:
        X = LowRank.zero(table.shape)
        G = huber(table, X, self.delta)
        history, converged = [G.loss], False
        while len(history) <= self.max_iter and not converged:
            found = shrink(G.added_to(X.A, X.B, -1.0), self.alpha, X.Q)
            X = LowRank.from_svd(found)
            G = huber(table, X, self.delta)
            history.append(G.loss + self.alpha * float(found.S.sum()))
            converged = history[-2] - history[-1] <= self.tol * history[-1]
            if on_sweep(Solution(X, np.array(history), False)):
                break
        return Solution(X, np.array(history), converged)
