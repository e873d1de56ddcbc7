"""Proximal subgradient descent for f(X) + alpha |X|_tr + beta |Clip(X)|_tr (DTr-CMC).

X <- shrink(X - eta (G + beta W * U V^T), eta alpha), where G is the gradient of the loss, Clip(X) =
U S V^T, and W marks the cells strictly within their limits; U V^T * W is a subgradient of the
second term with W held fixed (`declip.penalties.ClippedTraceNorm`). X stays a pair of factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip.clipping import Clipping
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.objective import Gradient, gradient
from declip.penalties import ClippedTraceNorm, TraceNorm
from declip.solvers.solution import Solution, Stopping
from declip.svd import SVD, leading

__all__ = ["ClippedTraceProblem", "subgradient_descent"]

_DECAY = 0.99  # the paper's factor from one step to the next
_NEGLIGIBLE = 1e-8  # steps below this share of the first change nothing any more
_TELLING = 0.01  # steps above this share of the first tell whether the objective has settled


class _Point(NamedTuple):
    """X and Clip(X), the singular triplets of the latter, and the gradient of the loss."""

    clipped: Clipping
    clip: SVD
    gradient: Gradient

    @property
    def X(self) -> LowRank:
        return self.clipped.X


@dataclass(frozen=True)
class ClippedTraceProblem:
    """What is minimised.

    Attributes
    ----------
    intervals : Intervals
        The observed cells.
    penalty, clipped_penalty : TraceNorm, ClippedTraceNorm
        On X and on Clip(X).
    max_rank : int, optional
        Singular triplets of X and of Clip(X) that are kept; large tables need it.
    threads : int
        Threads.
    """

    intervals: Intervals
    penalty: TraceNorm
    clipped_penalty: ClippedTraceNorm
    max_rank: int | None = None
    threads: int = 1

    def at(self, X: LowRank, near: NDArray | None, clip: SVD | None = None) -> _Point:
        """Return what there is to know at X, with the triplets sought near others or given."""
        clipped = self.clipped_penalty.clipping(X, self.threads)
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
        moved = self.clipped_penalty.descended(point.clipped, point.clip, eta, parts)
        return self.penalty.prox(moved, eta, X.Q, self.max_rank, warm_steps=1)

    def value(self, point: _Point, singular_values: NDArray) -> float:
        """Return the objective at a point with these singular values."""
        clipped = self.clipped_penalty.value(point.clip.S)
        return point.gradient.loss + self.penalty.value(singular_values) + clipped


def subgradient_descent(
    problem: ClippedTraceProblem, start: LowRank, stopping: Stopping, first_step: float = 1.0
) -> Solution:
    """Return the iterate with the lowest objective.

    Parameters
    ----------
    problem : ClippedTraceProblem
        What is minimised.
    start : LowRank
        Where to begin.
    stopping : Stopping
        The fit counts as converged if ten steps lowered the objective by at most the share ``tol``
        while they were above a hundredth of the first. Later ones are too short to tell.
    first_step : float
        Step eta_0; the steps are eta_0 * 0.99^(t - 1).
    """
    if stopping.resume_point.state is None:
        best = start
        now = problem.at(start, None)
        history, eta = [problem.value(now, start.singular_values())], first_step
    else:
        X, best, clip, history, eta = stopping.resume_point.state
        now = problem.at(X, None, clip)
    stopped = False
    while len(history) <= stopping.max_iter and eta > _NEGLIGIBLE * first_step and not stopped:
        found = problem.step(now, eta)
        now = problem.at(LowRank.from_svd(found, start.A.dtype), now.clip.V)
        value = problem.value(now, found.S)
        if value < history[-1]:
            best = now.X
        history.append(min(value, history[-1]))
        eta *= _DECAY
        stopping.resume_point.put((now.X, best, now.clip, history, eta))
        stopped = stopping.on_sweep(Solution(best, np.array(history), False))
    unit = abs(history[-1]) or 1.0
    telling = history[: 1 + int(np.log(_TELLING) / np.log(_DECAY))]
    settled = telling[-min(10, len(telling))] - telling[-1] <= stopping.tol * unit
    return Solution(best, np.array(history), settled, stopped=stopped, unit=unit)
