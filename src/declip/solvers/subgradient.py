"""Proximal subgradient descent for f(X) + alpha |X|_tr + beta |Clip(X)|_tr (DTr-CMC).

X <- shrink(X - eta (G + beta W * U V^T), eta alpha), where G is the gradient of the loss, Clip(X) =
U S V^T, and W marks the cells strictly within their limits; U V^T * W is a subgradient of the
second term with W held fixed. X stays a pair of factors; `clipping` has Clip(X) and W * U V^T.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.objective import Gradient, gradient
from declip.solvers.clipping import Clipping, Limits, clipping
from declip.solvers.solution import NO_RESUME_POINT, ResumePoint, Solution
from declip.svd import SVD, leading, shrink

__all__ = ["subgradient_descent"]

_DECAY = 0.99  # the paper's factor from one step to the next
_NEGLIGIBLE = 1e-8  # steps below this share of the first change nothing any more


class _Point(NamedTuple):
    """X and Clip(X), the singular triplets of the latter, and the gradient of the loss."""

    clipped: Clipping
    clip: SVD
    gradient: Gradient

    @property
    def X(self) -> LowRank:
        return self.clipped.X


@dataclass
class _Problem:
    intervals: Intervals
    limits: Limits
    alpha: float
    alpha_clipped: float
    max_rank: int | None
    threads: int

    def at(self, X: LowRank, near: NDArray | None, clip: SVD | None = None) -> _Point:
        """Return what there is to know at X, with the triplets sought near others or given."""
        clipped = clipping(X, self.limits, self.threads)
        if clip is None:
            # All of them for a small table; contiguous, the same to BLAS when read again.
            found = leading(clipped.clipped(), self.max_rank, near, warm_steps=1)
            clip = SVD(*map(np.ascontiguousarray, found))
        G = gradient(self.intervals, X, threads=self.threads, dtype=X.A.dtype)
        return _Point(clipped, clip, G)

    def step(self, point: _Point, eta: float) -> SVD:
        """Return shrink(X - eta (G + beta W * U V^T), eta alpha)."""
        G, X = point.gradient, point.X
        parts = tuple(X.A.dtype.type(-eta) * S for S in (G.exact, G.censored))
        moved = point.clipped.moved(point.clip, eta * self.alpha_clipped, parts)
        return shrink(moved, eta * self.alpha, X.Q, self.max_rank, warm_steps=1)

    def value(self, point: _Point, trace_norm: float) -> float:
        clipped = self.alpha_clipped * float(point.clip.S.sum())
        return point.gradient.loss + self.alpha * trace_norm + clipped


def subgradient_descent(
    intervals: Intervals,
    start: LowRank,
    limits: Limits,
    alpha: float,
    alpha_clipped: float,
    *,
    first_step: float = 1.0,
    max_rank: int | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    threads: int = 1,
    on_sweep: Callable[[Solution], bool] = lambda _: False,
    resume_point: ResumePoint = NO_RESUME_POINT,
) -> Solution:
    """Return the iterate with the lowest objective.

    Parameters
    ----------
    intervals, start, alpha, max_iter, threads, on_sweep, resume_point
        As in `declip.solvers.minimise`.
    limits : Limits
        Limits of all cells.
    alpha_clipped : float
        Strength of the penalty on Clip(X).
    first_step : float
        Step eta_0; the steps are eta_0 * 0.99^(t - 1).
    max_rank : int, optional
        Singular triplets of X and of Clip(X) that are kept; large tables need it.
    tol : float
        The fit counts as settled if the last steps lowered the objective by at most this share.
    """
    problem = _Problem(intervals, limits, alpha, alpha_clipped, max_rank, threads)
    if resume_point.state is None:
        best = start
        now = problem.at(start, None)
        history, eta = [problem.value(now, start.trace_norm())], first_step
    else:
        X, best, clip, history, eta = resume_point.state
        now = problem.at(X, None, clip)
    stopped = False
    while len(history) <= max_iter and eta > _NEGLIGIBLE * first_step and not stopped:
        found = problem.step(now, eta)
        now = problem.at(LowRank.from_svd(found, start.A.dtype), now.clip.V)
        value = problem.value(now, float(found.S.sum()))
        if value < history[-1]:
            best = now.X
        history.append(min(value, history[-1]))
        eta *= _DECAY
        resume_point.put((now.X, best, now.clip, history, eta))
        stopped = on_sweep(Solution(best, np.array(history), False, 0.0))
    unit = abs(history[-1]) or 1.0
    settled = history[-min(10, len(history))] - history[-1] <= tol * unit
    return Solution(best, np.array(history), settled, 0.0, stopped, unit=unit)
