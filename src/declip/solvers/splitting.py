"""Trace norms of a matrix and of its clipped version, by Douglas-Rachford splitting (ADMM).

Minimises f(Z) + alpha |X|_tr + beta |Y|_tr subject to X = Z and Y = Clip(Z), for tables that fit
densely. In each iteration, with U and W the multipliers of the two constraints over rho,

    X <- shrink(Z - U, alpha / rho),   Y <- shrink(Clip(Z) - W, beta / rho)
    Z <- argmin f(Z) + rho/2 |Z - (X + U)|^2 + rho/2 |Clip(Z) - (Y + W)|^2,   cell by cell
    U <- U + X - Z,   W <- W + Y - Clip(Z)

with X and Y over-relaxed in the last two lines, and rho rising at first: large thresholds find the
leading directions soon, small ones follow the rest.

Without beta the problem is convex, and a duality gap certifies the optimum. With it, the gap is
that of the convex problem in which Clip is replaced by its tangent at Z: zero means a stationary
point, not a global minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip.clipping import Limits
from declip.intervals import Intervals
from declip.losses import Hinge, Loss
from declip.lowrank import LowRank
from declip.objective import Certificate
from declip.penalties import Ridge
from declip.solvers.als import TableProblem, TableResiduals, minimise
from declip.solvers.dense_cells import DenseCells, dense_cells, dot, joint_prox, observed_cells
from declip.solvers.solution import Solution, Stopping
from declip.svd import nuclear_norm, operator_norm, shrink_near, truncated_svd

__all__ = ["Splitting", "Start", "TracePenalty", "douglas_rachford", "followed"]

_RELAXATION = 1.6
_FIRST, _LAST = 5.0, 0.08  # thresholds: of the last one, and of the second singular value
_RATE = 1.07  # from one threshold to the next
_CHECK_EVERY = 10  # iterations between two certificates of a large table
_CHECK_SMALL = 5  # and of a small one
_FIRST_CHANGE = 40  # iteration from which the threshold follows the balance of the residuals
_BALANCE = (1.0, 4.0)  # primal over dual residual: between these nothing is changed
_SMALL = 128  # smaller side up to which all is done in double precision
_SINGLE = 1e-5  # relative gap that single precision is good for
_RANGE = 1e12  # sizes of cells whose squares single precision can sum
_STALLED = (3, 15)  # certificates without progress after which it is left: near the end, or not
_NEAR_END = 1e-3  # relative gap from which it may be rounding that holds it up
_SPARSE = 0.15  # share of cells observed up to which sweeps cost less than iterations
_SWEEPS = 3  # over the factors of X, before it is looked at


@dataclass(frozen=True)
class TracePenalty:
    """alpha |X|_tr + alpha_clipped |Clip(X)|_tr; ``limits`` are those of Clip, if it counts."""

    alpha: float
    alpha_clipped: float = 0.0
    limits: Limits | None = None

    @property
    def weights(self) -> list[float]:
        """One for X, and one for Clip(X) if it has limits."""
        return [self.alpha] if self.limits is None else [self.alpha, self.alpha_clipped]


class _Candidate(NamedTuple):
    """A matrix that is looked at: as a model, its cells, and its trace norm."""

    model: LowRank
    x: NDArray
    trace_norm: float


class Start(NamedTuple):
    """Where the splitting begins: a matrix, a loss, and whether the solution is near."""

    model: LowRank
    loss: Loss = Hinge()
    near: bool = False


@dataclass
class _State:
    """All that the next iteration needs."""

    Z: NDArray
    duals: list[NDArray]  # U and W
    bases: list[NDArray | None]  # right singular vectors of X and Y
    threshold: float  # the sum of the strengths over rho
    last: float  # the least threshold
    history: list[float]
    best: LowRank
    loss: Loss
    proof: Any = None  # of the best, if it was looked at
    least: float = np.inf  # gap so far
    stalled: int = 0  # certificates since
    next_change: int = _FIRST_CHANGE  # of the last threshold
    converged: bool = False

    def astype(self, dtype: Any) -> None:
        """Go on in another precision."""
        self.Z, *self.duals = (F.astype(dtype) for F in (self.Z, *self.duals))
        self.bases = [None if F is None else F.astype(dtype) for F in self.bases]
        self.least, self.stalled = np.inf, 0


class Splitting:
    """The problem, the state of the iteration on it, and its latest X."""

    def __init__(self, intervals: Intervals, penalty: TracePenalty, loss: Loss) -> None:
        self.intervals, self.penalty = intervals, penalty
        self.large = min(intervals.shape) > _SMALL
        sparse = len(intervals) <= _SPARSE * intervals.shape[0] * intervals.shape[1]
        self.swept = self.large and sparse and penalty.limits is None
        self.looked = True  # at the latest X
        self._hold_in(np.float64, loss)

    def _hold_in(self, dtype: Any, loss: Loss) -> None:
        """Hold what stays the same, cells and limits, in the precision of the iteration."""
        limits = self.penalty.limits
        self._hold_cells(dtype, loss)
        self.limits = limits and limits.astype(dtype)

    def _hold_cells(self, dtype: Any, loss: Loss) -> None:
        self.cells = self._cells(dtype, loss)
        # What a matrix is judged by: if only its observed cells need be looked at, in double.
        self.judged = observed_cells(self.intervals, loss) if self.swept else self.cells

    def _cells(self, dtype: Any, loss: Loss) -> DenseCells:
        return dense_cells(self.intervals, dtype, loss)

    def begin(self, start: Start) -> None:
        """Set the state for the first iteration."""
        X = start.model.block().astype(np.float64)
        trace_norm = float(start.model.singular_values().sum())
        value = self._value(self.judged.of(X), trace_norm, start.loss)
        zero = np.zeros_like(X)
        solved = self.limits is None and self._is_optimal_at_zero()
        if solved:
            X = zero
        near = start.near or solved
        second = _second_singular_value(self.cells.nearest(zero))
        # what the second singular value of all cells may be
        last = max(_LAST * second / sqrt(len(self.intervals) / X.size), self.least_threshold)
        Z, threshold = (X, last) if near else (self.cells.nearest(X), _FIRST * last)
        duals = self._duals(Z, self.strength / threshold) if near else [zero for _ in self.weights]
        bases: list[NDArray | None] = [None for _ in duals]
        self.state = _State(Z, duals, bases, threshold, last, [value], start.model, start.loss)
        if not solved and self._single_will_do():
            self._go_on_in(np.float32)

    def _single_will_do(self) -> bool:
        """Say whether to begin in single precision: it pays, and squares are within its range."""
        size = float(np.abs(self.state.Z).max())
        return self.large and 1 / _RANGE < size < _RANGE

    def _is_optimal_at_zero(self) -> bool:
        norm = operator_norm(self.cells.gradient(np.zeros(self.intervals.shape)))
        return norm <= self.penalty.alpha * (1 + 1e-12)

    def _duals(self, Z: NDArray, rho: float) -> list[NDArray]:
        """Return multipliers for Z: W a subgradient of the second norm, U what balances it."""
        G, limits = self.cells.gradient(Z), self.limits
        if limits is None:
            return [G / rho]
        U, _, V = shrink_near(limits.clip(Z), 0.0, None)[0]
        W = (-self.penalty.alpha_clipped / rho) * (U @ V.T)
        return [G / rho - (limits.side(Z) == 0) * W, W]

    def resume(self, fields: tuple) -> None:
        """Set the state as it was left."""
        self.state = _State(*fields)
        self._hold_in(self.state.Z.dtype, self.state.loss)

    def _go_on_in(self, dtype: Any) -> None:
        self.state.astype(dtype)
        self._hold_in(dtype, self.state.loss)

    @property
    def weights(self) -> list[float]:
        """Of the trace norms."""
        return self.penalty.weights

    @property
    def strength(self) -> float:
        """The sum of the weights."""
        return sum(self.weights)

    @property
    def least_threshold(self) -> float:
        """The threshold at which rho is the curvature of the loss."""
        return self.strength

    @property
    def rho(self) -> float:
        """The penalty of the augmented Lagrangian."""
        return self.strength / self.state.threshold

    @property
    def settling(self) -> bool:
        """Whether the threshold is the last one."""
        return self.state.threshold == self.state.last

    def images(self) -> list[NDArray]:
        """Return Z, and Clip(Z) if it is penalised."""
        Z, limits = self.state.Z, self.limits
        return [Z] if limits is None else [Z, limits.clip(Z)]

    def step(self) -> None:
        """Make one iteration."""
        state, rho = self.state, self.rho
        # Over-relaxation makes cells jump between two minima.
        relaxation = 1.0 if self.settling and self.limits else _RELAXATION
        moved = []
        for i, image in enumerate(self.images()):
            found = self._shrunk(i, image - state.duals[i], rho)
            moved.append(_mixed(found, image, relaxation) + state.duals[i])
        images = self._cell_step(moved, rho)
        self.before = state.Z
        state.Z, state.threshold = images[0], max(state.last, state.threshold / _RATE)
        # rho U goes on as it is
        change = state.Z.dtype.type(rho / self.rho)
        state.duals = [change * (V - image) for V, image in zip(moved, images, strict=True)]

    def _shrunk(self, which: int, target: NDArray, rho: float) -> NDArray:
        """Return the matrix near the target under its penalty; X is kept as triplets too."""
        threshold = self.weights[which] / rho
        found, basis = shrink_near(target, threshold, self.state.bases[which])
        self.state.bases[which] = basis
        matrix = (found.U * found.S.astype(target.dtype)) @ found.V.T
        if which == 0:
            self.X, self.found = matrix, found
        return matrix

    def _cell_step(self, moved: list[NDArray], rho: float) -> list[NDArray]:
        limits = self.limits
        if limits is None:
            return [self.cells.prox(moved[0], rho)]
        side = limits.side(self.state.Z) if self.settling else None
        V, T = moved
        return list(joint_prox(self.cells, limits, V, T, rho, side))

    @property
    def due(self) -> bool:
        """Whether it is time for a certificate."""
        state = self.state
        if self.large and state.Z.dtype == np.float64 and state.least == np.inf:
            return True  # nothing is known yet in double precision
        return len(state.history) % (_CHECK_EVERY if self.large else _CHECK_SMALL) == 0

    def look(self, tol: float, last: bool = False) -> None:
        """Note the objective, certify it if it is time, and end or go on in double precision.

        Of a sparse table or with two norms it is computed only when a certificate is due, and last.
        """
        state, due = self.state, self.due
        self.looked = due or last or not (self.swept or self.limits is not None)
        if not self.looked:
            state.history.append(state.history[-1])
            return
        if due and state.loss.has_scale:
            self._update_loss()
        found, proof = self._candidate(), None
        value = self._value(found.x, found.trace_norm, state.loss)
        enough, single = False, state.Z.dtype == np.float32
        if due and self.settling:
            proof = self._certificate(found)
            gap = proof.gap / (proof.objective or 1.0)
            enough = self._is_enough(gap, tol)
            state.converged = enough and (not single or (self.swept and gap <= tol))
            self._balance()
        if value < state.history[-1] or state.converged:
            state.best, state.proof = found.model, proof
        state.history.append(min(value, state.history[-1]))
        if enough and not state.converged:
            self._go_on_in(np.float64)
            self._value_anew()

    def _candidate(self) -> _Candidate:
        """Return the latest X, of a sparse table after sweeps over its factors.

        The subspaces of X are near those of the optimum long before its cells meet the observed
        ones, and a sweep costs little where few are observed. The iteration goes on from X.
        """
        model = self._model()
        if not self.swept:
            return _Candidate(model, self.X, self._trace_norm())
        problem = TableProblem(self.intervals, model, Ridge(self.penalty.alpha))
        model = minimise(problem, self.state.loss, Stopping(_SWEEPS, 0.0), polish=False).model
        return _Candidate(model, self.judged.of_model(model), float(model.singular_values().sum()))

    def _is_enough(self, gap: float, tol: float) -> bool:
        """Say whether the relative gap is small enough, or as small as the precision allows."""
        state = self.state
        state.stalled = 0 if gap < 0.9 * state.least else state.stalled + 1
        state.least = min(gap, state.least)
        if state.Z.dtype == np.float64:
            return gap <= tol
        return gap <= max(tol, _SINGLE) or state.stalled >= _STALLED[state.least > _NEAR_END]

    def _value_anew(self) -> None:
        """Evaluate the best in double precision: no earlier value may be lower by rounding."""
        state, best = self.state, self.state.best
        x, trace_norm = self.judged.of_model(best), float(best.singular_values().sum())
        value = self._value(x, trace_norm, state.loss)
        state.history = [max(before, value) for before in state.history]

    def _balance(self) -> None:
        """Move the threshold if one residual is much the larger; ever rarer, so that it settles."""
        state, n_iter = self.state, len(self.state.history)
        if n_iter < state.next_change or self.limits is not None:
            return
        state.next_change = n_iter + _CHECK_EVERY * max(1, n_iter // (5 * _CHECK_EVERY))
        primal = _norm(self.X - state.Z) * _norm(state.duals[0])
        dual = _norm(state.Z - self.before) * max(_norm(self.X), _norm(state.Z))
        low, high = _BALANCE
        change = 2.0 if primal < low * dual else 0.5 if primal > high * dual else 1.0
        state.last = state.threshold = change * state.last
        state.duals = [state.Z.dtype.type(change) * U for U in state.duals]

    def _trace_norm(self) -> float:
        return float(self.found.S.sum(dtype=np.float64))

    def _model(self) -> LowRank:
        return LowRank.from_svd(self.found, self.intervals.dtype)

    def _value(self, x: NDArray, trace_norm: float, loss: Loss) -> float:
        penalty = self.penalty.alpha * trace_norm
        if self.limits is not None:
            penalty += self.penalty.alpha_clipped * nuclear_norm(self.limits.clip(x))
        return loss.objective(self.judged.loss(x), penalty, self.intervals.n_exact)

    def _update_loss(self) -> None:
        state, penalty = self.state, self.penalty.alpha * self._trace_norm()
        fit = TableResiduals(self.intervals, self._model())
        state.loss, _ = state.loss.estimated(fit, self.cells.loss(self.X), penalty)
        self._hold_cells(state.Z.dtype, state.loss)

    def _certificate(self, found: _Candidate) -> Certificate:
        objective = self.judged.loss(found.x) + self.penalty.alpha * found.trace_norm
        if self.limits is not None:
            return self._tangent_certificate(objective, self.limits)
        alpha, gaps, ratios = self.penalty.alpha, [], []
        for x in (found.x, self.judged.of(self.state.Z)):  # f'(Z) is rho U
            ratios.append(self.judged.norm(self.judged.gradient(x)) / alpha)
            gaps.append(objective + self.judged.conjugate(x, 1 / max(ratios[-1], 1.0)))
        return Certificate(objective, max(min(gaps), 0.0), ratios[0])

    def _tangent_certificate(self, rest: float, limits: Limits) -> Certificate:
        """Return the gap of the convex problem with w X + c in place of Clip(X).

        That is the tangent of Clip at Z. The dual point is (-rho U, -rho W), scaled to be
        feasible: f'(Z) = rho (U + w W) cell by cell. What the tangent adds at X is part of the gap.
        """
        Z, (U, W) = self.state.Z, self.state.duals
        beta, w = self.penalty.alpha_clipped, self._slope(limits)
        c = limits.clip(Z) - w * Z
        ratios = [operator_norm(F) / weight for F, weight in zip((U, W), self.weights, strict=True)]
        ratio = self.rho * max(ratios)
        share = 1 / max(ratio, 1.0)
        dual = -self.cells.conjugate(Z, share) - share * self.rho * dot(W, c)
        tangent = rest + beta * nuclear_norm(w * self.X + c)
        objective = rest + beta * nuclear_norm(limits.clip(self.X))
        gap = max(tangent - dual, 0.0) + abs(objective - tangent)
        return Certificate(objective, gap, ratio)

    def _slope(self, limits: Limits) -> NDArray:
        """Return the slope w of Clip at Z: 1 within, 0 beyond, and what balances a cell between."""
        Z, (U, W) = self.state.Z, self.state.duals
        w = (limits.side(Z) == 0).astype(Z.dtype)
        between = ((Z == limits.ceiling) | (Z == limits.floor)) & (W != 0)
        G = self.cells.gradient(Z)[between] / self.rho
        w[between] = np.clip((G - U[between]) / W[between], 0, 1)
        return w


def douglas_rachford(
    intervals: Intervals, start: Start, penalty: TracePenalty, stopping: Stopping
) -> Solution:
    """Minimise the loss of the cells plus one or two trace norms.

    Parameters
    ----------
    intervals : Intervals
        The observed cells.
    start : Start
        Where to begin.
    penalty : TracePenalty
        What is added to the loss; alpha is not 0.
    stopping : Stopping
        ``tol`` is the share of the objective that the gap must be below.

    Returns
    -------
    Solution
        The X with the lowest objective that was seen. Its proof is a `Certificate`, or None if it
        was not looked at. With a penalty on Clip(X) the objective is computed only then.
    """
    return followed(Splitting(intervals, penalty, start.loss), start, stopping)


def followed(run: Splitting, start: Start, stopping: Stopping) -> Solution:
    """Return where a splitting ends that begins at a start, or is taken up again."""
    if stopping.resume_point.state is None:
        run.begin(start)
    else:
        run.resume(stopping.resume_point.state)
    stopped = False
    while len(run.state.history) <= stopping.max_iter and not run.state.converged and not stopped:
        run.step()
        run.look(stopping.tol, last=len(run.state.history) == stopping.max_iter)
        state = tuple(getattr(run.state, field.name) for field in fields(run.state))
        stopping.resume_point.put(state)
        stopped = stopping.on_sweep(_solution(run.state, False, False))
    if not run.looked:  # a callback stopped it between two looks
        run.state.history.pop()
        run.look(stopping.tol, last=True)
    return _solution(run.state, run.state.converged, stopped)


def _solution(state: _State, converged: bool, stopped: bool) -> Solution:
    history = np.array(state.history)
    return Solution(state.best, history, converged, state.loss, stopped, proof=state.proof)


def _mixed(found: NDArray, image: NDArray, weight: float) -> NDArray:
    """Return weight found + (1 - weight) image."""
    if weight == 1:
        return found
    mixed = found.dtype.type(weight) * found
    mixed -= found.dtype.type(weight - 1) * image
    return mixed


def _norm(X: NDArray) -> float:
    return float(np.linalg.norm(X))


def _second_singular_value(A: NDArray) -> float:
    """Return it, or the first if there is no second."""
    S = truncated_svd(A, min(2, *A.shape), 0).S
    return float(S[S > 1e-12 * S[0]][-1]) if S[0] > 0 else 1.0
