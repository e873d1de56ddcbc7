"""The convex problem f(X) + alpha |X|_tr, two ways, each stopped by its duality gap.

`proximal` is the reference: accelerated proximal gradient with continuation and restart. `factored`
is for large tables: sweeps over factors whose rank is raised along the leading singular vectors of
the gradient until the gap certifies that no direction is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.objective import Gradient, Penalised, certificate, gradient, total_loss
from declip.solvers.als import minimise
from declip.solvers.noise import fit_scale
from declip.solvers.solution import NO_RESUME_POINT, ResumePoint, Solution
from declip.svd import SVD, exceed, shrink, truncated_svd

__all__ = ["factored", "proximal"]

_CONTINUATION = 0.7  # the paper's factor from one penalty to the next
_CHECK_EVERY = 5  # iterations between two certificates
_STAGE = 5  # sweeps between two certificates of the factored form
_FIRST_RANK = 16  # factors to begin with


@dataclass
class _Problem:
    """What is minimised; the noise scale is 0 (hinge) or estimated along the way."""

    intervals: Intervals
    alpha: float
    scale: float
    threads: int
    max_rank: int | None

    def gradient(self, model: LowRank) -> Gradient:
        return gradient(self.intervals, model, self.scale, self.threads)

    def loss(self, model: LowRank) -> float:
        return total_loss(self.intervals, model, self.scale, self.threads)

    def value(self, model: LowRank, trace_norm: float) -> float:
        """Return f(X) + alpha |X|_tr, for Tobit as a negative log-likelihood."""
        objective = Penalised(self.scale, self.intervals.n_exact)
        return objective(self.loss(model), self.alpha * trace_norm)

    def is_optimal(self, model: LowRank, tol: float) -> bool:
        """Say whether the duality gap is at most tol of the objective."""
        proof = certificate(self.intervals, model, self.alpha, self.scale, threads=self.threads)
        return proof.gap <= tol * proof.objective

    def step(
        self, Y: LowRank, level: float, near: LowRank, max_rank: int | None
    ) -> tuple[LowRank, SVD]:
        """Return shrink(Y - G(Y), level), with the subspace sought near that of another matrix."""
        found = shrink(self.gradient(Y).added_to(Y.A, Y.B, -1.0), level, near.Q, max_rank)
        return LowRank.from_svd(found, Y.A.dtype), found

    def update_scale(self, model: LowRank, trace_norm: float) -> None:
        loss, penalty = self.loss(model), self.alpha * trace_norm
        self.scale, _ = fit_scale(
            self.intervals, model, self.scale, loss, penalty=penalty, threads=self.threads
        )


def proximal(
    intervals: Intervals,
    start: LowRank,
    alpha: float,
    *,
    first_alpha: float,
    scale: float = 0.0,
    max_rank: int | None = None,
    max_iter: int = 500,
    tol: float = 1e-4,
    threads: int = 1,
    on_sweep: Callable[[Solution], bool] = lambda _: False,
    resume_point: ResumePoint = NO_RESUME_POINT,
) -> Solution:
    """Minimise by accelerated proximal gradient.

    X <- shrink(Y - G(Y), alpha) with Y extrapolated from the last two X (the gradient G is
    1-Lipschitz), a penalty that falls to alpha from ``first_alpha``, and the momentum dropped
    whenever it points uphill. The history holds the lowest objective so far.

    Parameters
    ----------
    intervals, start, alpha, scale, max_iter, threads, on_sweep, resume_point
        As in `declip.solvers.minimise`.
    first_alpha : float
        Where the continuation begins.
    max_rank : int, optional
        Keep so many singular values at most; the problem is then no longer convex.
    tol : float
        Stop when the duality gap is below this share of the objective.
    """
    problem = _Problem(intervals, alpha, scale, threads, max_rank)
    if resume_point.state is None:
        X = before = best = start
        history = [problem.value(start, start.trace_norm())]
        level, momentum, converged = max(alpha, _CONTINUATION * first_alpha), 1.0, False
    else:
        X, before, best, history, level, momentum, problem.scale, converged = resume_point.state
    stopped = False
    while len(history) <= max_iter and not converged and not stopped:
        faster = 0.5 * (1 + math.sqrt(1 + 4 * momentum**2))
        t = (momentum - 1) / faster
        new, found = problem.step(_extrapolated(X, before, t), level, X, max_rank)
        uphill = t > 0 and _turns_back(new, X, before, t)
        before, X, momentum = X, new, 1.0 if uphill else faster
        check = level == alpha and len(history) % _CHECK_EVERY == 0
        level = _CONTINUATION * level
        if level <= max(alpha, 1e-6 * first_alpha):
            level = alpha
        if problem.scale > 0 and len(history) % _CHECK_EVERY == 0:
            problem.update_scale(X, found.S.sum())
            momentum = 1.0
        value = problem.value(X, found.S.sum())
        # The last X is certified, not the best one: at rounding it goes on to improve, unseen by
        # its value.
        converged = check and problem.is_optimal(X, tol)
        if value <= history[-1] or converged:
            best = X
        history.append(min(value, history[-1]))
        resume_point.put((X, before, best, history, level, momentum, problem.scale, converged))
        stopped = on_sweep(Solution(best, np.array(history), False, problem.scale))
    return Solution(best, np.array(history), converged, problem.scale, stopped)


def factored(
    intervals: Intervals,
    start: LowRank,
    alpha: float,
    *,
    scale: float = 0.0,
    max_rank: int | None = None,
    max_iter: int = 500,
    tol: float = 1e-4,
    threads: int = 1,
    on_sweep: Callable[[Solution], bool] = lambda _: False,
    resume_point: ResumePoint = NO_RESUME_POINT,
) -> Solution:
    """Minimise over factors, raising their rank until the duality gap is small.

    The singular directions (s, u, v) of the gradient with s > alpha are those in which a higher
    rank would pay; a step -(s - alpha) u v^T along them lowers the objective by
    (s - alpha)^2 / 2. Parameters are those of `proximal`.
    """
    problem = _Problem(intervals, alpha, scale, threads, max_rank)
    if resume_point.state is None:
        model, history = start, [problem.value(start, start.trace_norm())]
        stage_tol = tol
    else:
        model, history, stage_tol, problem.scale = resume_point.state
    converged = stopped = False
    while len(history) <= max_iter and not converged and not stopped:
        resume_point.put((model, history, stage_tol, problem.scale))
        part = minimise(
            *(intervals, _widened(problem, model), alpha),
            scale=problem.scale,
            max_iter=min(_STAGE, max_iter + 1 - len(history)),
            tol=stage_tol,
            threads=threads,
            on_sweep=lambda state, done=tuple(history): on_sweep(  # type: ignore[misc]
                replace(state, history=np.append(done, state.history[1:]))
            ),
            polish=False,
        )
        problem.scale, stopped = part.scale, part.stopped
        history += list(np.minimum(part.history[1:], history[-1]))
        # One proximal step sets the singular values that fade away to zero; new ones come later.
        model, found = problem.step(part.model, alpha, part.model, part.model.rank)
        value = problem.value(model, found.S.sum())
        if value > history[-1]:
            model = part.model
        history[-1] = min(value, history[-1])
        converged = problem.is_optimal(model, tol)
        if part.converged:
            stage_tol *= 0.1
    return Solution(model, np.array(history), converged, problem.scale, stopped)


def _widened(problem: _Problem, model: LowRank) -> LowRank:
    """Return the model with the directions added in which a higher rank would pay."""
    most = min(*model.shape, problem.max_rank or min(model.shape))
    room = min(most - model.rank, max(_FIRST_RANK, model.rank // 4))
    if room <= 0:
        return model
    # By Lanczos: the spectrum is dense near alpha, where power steps would miss directions.
    U, S, V = truncated_svd(problem.gradient(model).operator(), room, 0, tol=1e-2)
    weight = np.sqrt(S[exceed(S, problem.alpha)] - problem.alpha)
    A = np.column_stack([model.A, U[:, : len(weight)] * weight]).astype(model.A.dtype)
    B = np.column_stack([model.B, -V[:, : len(weight)] * weight]).astype(model.B.dtype)
    return replace(model, A=A, B=B)


def _extrapolated(X: LowRank, before: LowRank, t: float) -> LowRank:
    """Return X + t (X - before), by factors side by side."""
    if t == 0:
        return X
    A = np.column_stack([(1 + t) * X.A, -t * before.A])
    return LowRank(A, np.column_stack([X.B, before.B]))


def _turns_back(new: LowRank, X: LowRank, before: LowRank, t: float) -> bool:
    """Say whether <Y - new, new - X> > 0 for Y = X + t (X - before): a step against the momentum.

    That is t <X - before, new - X> > |new - X|^2. The two sides are small differences of large
    numbers, so that all of it is summed in double precision.
    """
    both = _inner(X, new)
    along = both - _square(X) - _inner(before, new) + _inner(before, X)
    return t * along > _square(new) - 2 * both + _square(X)


def _inner(X: LowRank, Y: LowRank) -> float:
    # <A B^T, C D^T> = sum of (A^T C) * (B^T D)
    A, B, C, D = (F.astype(np.float64, copy=False) for F in (X.A, X.B, Y.A, Y.B))
    return float(((A.T @ C) * (B.T @ D)).sum())


def _square(X: LowRank) -> float:
    if X.A.dtype != np.float64:  # columns that were rounded are not orthogonal enough
        return _inner(X, X)
    # Factors of an SVD have orthogonal columns: |A B^T|^2 = sum of |a|^2 |b|^2 over the columns.
    return float((X.A**2).sum(axis=0) @ (X.B**2).sum(axis=0))
