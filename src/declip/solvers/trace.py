"""The convex problem f(X) + alpha |X|_tr, two ways, each stopped by its duality gap.

`proximal` is the reference: accelerated proximal gradient with continuation and restart. `factored`
is for large tables: sweeps over factors whose rank is raised along the leading singular vectors of
the gradient until the gap certifies that no direction is missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.losses import Loss
from declip.lowrank import LowRank
from declip.objective import Gradient, certificate, gradient, total_loss
from declip.penalties import Ridge, TraceNorm
from declip.solvers.als import TableProblem, TableResiduals, minimise
from declip.solvers.solution import Solution, Stopping
from declip.svd import SVD, truncated_svd

__all__ = ["TraceProblem", "factored", "proximal"]

_CONTINUATION = 0.7  # the paper's factor from one penalty to the next
_CHECK_EVERY = 5  # iterations between two certificates
_STAGE = 5  # sweeps between two certificates of the factored form
_FIRST_RANK = 16  # factors to begin with


@dataclass
class TraceProblem:
    """What is minimised.

    Attributes
    ----------
    intervals : Intervals
        The observed cells.
    penalty : TraceNorm
        On X.
    loss : Loss
        Of censored cells; its noise scale, if it has one, is estimated along the way.
    max_rank : int, optional
        Keep so many singular values at most; the problem is then no longer convex.
    threads : int
        Threads.
    """

    intervals: Intervals
    penalty: TraceNorm
    loss: Loss
    max_rank: int | None = None
    threads: int = 1

    @property
    def ridge(self) -> Ridge:
        """The penalty as one on factors."""
        return Ridge(self.penalty.alpha)

    def gradient(self, model: LowRank) -> Gradient:
        """Return the gradient of the loss."""
        return gradient(self.intervals, model, self.loss, self.threads)

    def cells(self, model: LowRank) -> float:
        """Return the loss of all cells."""
        return total_loss(self.intervals, model, self.loss, self.threads)

    def value(self, model: LowRank, singular_values: NDArray) -> float:
        """Return f(X) + alpha |X|_tr, for Tobit as a negative log-likelihood."""
        penalty = self.penalty.value(singular_values)
        return self.loss.objective(self.cells(model), penalty, self.intervals.n_exact)

    def is_optimal(self, model: LowRank, tol: float) -> bool:
        """Say whether the duality gap is at most tol of the objective."""
        proof = certificate(self.intervals, model, self.ridge, self.loss, threads=self.threads)
        return proof.gap <= tol * proof.objective

    def step(self, Y: LowRank, penalty: TraceNorm, near: LowRank) -> tuple[LowRank, SVD]:
        """Return prox(Y - G(Y)), with the subspace sought near that of another matrix."""
        moved = self.gradient(Y).added_to(Y.A, Y.B, -1.0)
        found = penalty.prox(moved, near=near.Q, max_rank=self.max_rank)
        return LowRank.from_svd(found, Y.A.dtype), found

    def update_loss(self, model: LowRank, singular_values: NDArray) -> None:
        """Estimate the noise scale anew, if there is one."""
        fit = TableResiduals(self.intervals, model, self.threads)
        penalty = self.penalty.value(singular_values)
        self.loss, _ = self.loss.estimated(fit, self.cells(model), penalty)


def proximal(
    problem: TraceProblem, start: LowRank, stopping: Stopping, first_alpha: float
) -> Solution:
    """Minimise by accelerated proximal gradient.

    X <- shrink(Y - G(Y), alpha) with Y extrapolated from the last two X (the gradient G is
    1-Lipschitz), a penalty that falls to alpha from ``first_alpha``, and the momentum dropped
    whenever it points uphill. The history holds the lowest objective so far.

    Parameters
    ----------
    problem : TraceProblem
        What is minimised; its loss ends with the scale that was estimated.
    start : LowRank
        Where to begin.
    stopping : Stopping
        ``tol`` is the share of the objective that the duality gap must be below.
    first_alpha : float
        Where the continuation begins.
    """
    alpha = problem.penalty.alpha
    if stopping.resume_point.state is None:
        X = before = best = start
        history = [problem.value(start, start.singular_values())]
        level, momentum, converged = max(alpha, _CONTINUATION * first_alpha), 1.0, False
    else:
        state = stopping.resume_point.state
        X, before, best, history, level, momentum, problem.loss, converged = state
    stopped = False
    while len(history) <= stopping.max_iter and not converged and not stopped:
        faster = 0.5 * (1 + math.sqrt(1 + 4 * momentum**2))
        t = (momentum - 1) / faster
        new, found = problem.step(_extrapolated(X, before, t), TraceNorm(level), X)
        uphill = t > 0 and _turns_back(new, X, before, t)
        before, X, momentum = X, new, 1.0 if uphill else faster
        check = level == alpha and len(history) % _CHECK_EVERY == 0
        level = _CONTINUATION * level
        if level <= max(alpha, 1e-6 * first_alpha):
            level = alpha
        if len(history) % _CHECK_EVERY == 0 and problem.loss.has_scale:
            problem.update_loss(X, found.S)
            momentum = 1.0
        value = problem.value(X, found.S)
        # The last X is certified, not the best one: at rounding it goes on to improve, unseen by
        # its value.
        converged = check and problem.is_optimal(X, stopping.tol)
        if value <= history[-1] or converged:
            best = X
        history.append(min(value, history[-1]))
        stopping.resume_point.put(
            (X, before, best, history, level, momentum, problem.loss, converged)
        )
        stopped = stopping.on_sweep(Solution(best, np.array(history), False, problem.loss))
    return Solution(best, np.array(history), converged, problem.loss, stopped)


def factored(problem: TraceProblem, start: LowRank, stopping: Stopping) -> Solution:
    """Minimise over factors, raising their rank until the duality gap is small.

    New factors begin along the singular directions of the gradient in which a higher rank would
    pay (`TraceNorm.missing`). Parameters are those of `proximal`.
    """
    if stopping.resume_point.state is None:
        model, history = start, [problem.value(start, start.singular_values())]
        stage_tol = stopping.tol
    else:
        model, history, stage_tol, problem.loss = stopping.resume_point.state
    converged = stopped = False
    while len(history) <= stopping.max_iter and not converged and not stopped:
        stopping.resume_point.put((model, history, stage_tol, problem.loss))
        part = _stage(problem, model, stopping, history, stage_tol)
        problem.loss, stopped = part.loss, part.stopped
        history += list(np.minimum(part.history[1:], history[-1]))
        # One proximal step sets the singular values that fade away to zero; new ones come later.
        same_rank = replace(problem, max_rank=part.model.rank)
        model, found = same_rank.step(part.model, problem.penalty, part.model)
        value = problem.value(model, found.S)
        if value > history[-1]:
            model = part.model
        history[-1] = min(value, history[-1])
        converged = problem.is_optimal(model, stopping.tol)
        if part.converged:
            stage_tol *= 0.1
    return Solution(model, np.array(history), converged, problem.loss, stopped)


def _stage(
    problem: TraceProblem, model: LowRank, stopping: Stopping, history: list[float], tol: float
) -> Solution:
    """Make a few sweeps from a model that was widened."""
    done = np.array(history)

    def on_sweep(state: Solution) -> bool:
        return stopping.on_sweep(replace(state, history=np.append(done, state.history[1:])))

    sweeps = min(_STAGE, stopping.max_iter + 1 - len(history))
    start = _widened(problem, model)
    table = TableProblem(problem.intervals, start, problem.ridge, problem.threads)
    return minimise(table, problem.loss, Stopping(sweeps, tol, on_sweep), polish=False)


def _widened(problem: TraceProblem, model: LowRank) -> LowRank:
    """Return the model with the directions added in which a higher rank would pay."""
    most = min(*model.shape, problem.max_rank or min(model.shape))
    room = min(most - model.rank, max(_FIRST_RANK, model.rank // 4))
    if room <= 0:
        return model
    # By Lanczos: the spectrum is dense near alpha, where power steps would miss directions.
    found = truncated_svd(problem.gradient(model).operator(), room, 0, tol=1e-2)
    new_rows, new_columns = problem.penalty.missing(found)
    A = np.column_stack([model.A, new_rows]).astype(model.A.dtype)
    B = np.column_stack([model.B, new_columns]).astype(model.B.dtype)
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
