"""Alternating minimisation over row and column factors: a sweep over columns, then one over rows.

Each sweep is a safeguarded Newton step of every row (`declip.kernels.update_rows`), so the
objective never rises. Two things make it fast, and neither can make it rise:

- after each sweep P and Q are balanced, P Q^T = U S V^T -> U sqrt(S), V sqrt(S), which lowers the
  penalty at the same fit and rotates the factors so that they no longer work against each other
  (offsets are centred likewise, which leaves the mean free);
- the next sweep starts from a point extrapolated along the last step (Nesterov). If it ends higher
  than before, it is thrown away and a plain sweep is made instead.

The loop, `minimise`, knows a table by a `Problem` alone: `TableProblem` is one in memory,
`declip.blocks.BlockProblem` one in blocks, in this process or on a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from declip import kernels
from declip.cells import Cells
from declip.intervals import Intervals, face_value
from declip.losses import CensoredSums, Loss, Residuals
from declip.lowrank import LowRank
from declip.objective import total_loss
from declip.penalties import Ridge
from declip.solvers.solution import Factors, Solution, Stopping

__all__ = [
    "Point",
    "Problem",
    "State",
    "TablePoint",
    "TableProblem",
    "TableResiduals",
    "half_pays",
    "is_at_rest",
    "minimise",
    "solve_rows",
    "update_rows",
]

_INNER_STEPS = 3  # Newton steps of a row in a sweep; later ones touch only cells that changed
_SETTLED_SWEEPS = 3  # sweeps in a row that must gain less than tol
_CG_FROM = 32  # factors from which conjugate gradients lower the objective faster than Cholesky
_CG_STEPS = 2  # with the diagonal of H taken out, as far as three without
_HALF_UNTIL = 1e-3  # share of the objective a sweep must gain for half precision to be enough
_HALF_FROM = 2**23  # bytes of factors: what caches hold is not fetched sooner in half precision
_TO_ROUNDING: dict[str, Any] = {"inner_steps": 100, "inner_tol": 1e-18}


class Point(Protocol):
    """Factors as they are and one sweep earlier, with the loss of the cells and the penalty."""

    @property
    def loss(self) -> float: ...  # noqa: D102
    @property
    def penalty(self) -> float: ...  # noqa: D102
    @property
    def half(self) -> bool: ...  # noqa: D102


class Problem(Protocol):
    """A table and a penalty, as the loop sees them. Points are passed on, never looked into."""

    @property
    def n_cells(self) -> float:
        """Number of observed cells, or their weight."""

    @property
    def n_exact(self) -> float:
        """Number of exact cells, or their weight."""

    def begin(self, loss: Loss) -> Any:
        """Return the start of a fit."""

    def evaluate(self, point: Any, loss: Loss) -> Any:
        """Return the same point with its loss and penalty computed anew."""

    def sweep(self, point: Any, t: float, loss: Loss) -> Any:
        """Sweep over columns, then rows, from t of the way along the last step."""

    def balance(self, point: Any) -> Any:
        """Return the same matrix with its factors balanced and its offsets centred."""

    def residuals(self, point: Any) -> Residuals:
        """Return what a noise scale is estimated from."""

    def polish(self, point: Any, loss: Loss) -> Any:
        """Return the point with its rows solved to rounding."""

    def factors(self, point: Any) -> Factors:
        """Return the matrix."""


@dataclass(frozen=True, eq=False)
class State:
    """A fit between two sweeps."""

    point: Any
    loss: Loss
    history: list[float]
    momentum: int = 0
    settled: int = 0

    @property
    def value(self) -> float:
        """The objective."""
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        """Number of sweeps."""
        return len(self.history) - 1

    @property
    def converged(self) -> bool:
        """Whether the objective has settled."""
        return self.settled >= _SETTLED_SWEEPS


def minimise(problem: Problem, loss: Loss, stopping: Stopping, polish: bool = True) -> Solution:
    """Minimise the objective of the factor model.

    Parameters
    ----------
    problem : Problem
        The table, the penalty and the start.
    loss : Loss
        Of censored cells; its noise scale, if it has one, is estimated along the way.
    stopping : Stopping
        Settled is an objective that fell by less than ``tol`` of the loss's unit in each of three
        sweeps in a row, or by less than ``rest`` in two, after which no more is foretold.
    polish : bool
        Whether to end with the rows solved to rounding, as `solve_rows` does for new ones.
    """
    state = stopping.resume_point.state or _first(problem, loss)
    stopped = False
    while state.n_iter < stopping.max_iter and not state.converged and not stopped:
        state = stopping.resume_point.put(_step(problem, state, stopping))
        stopped = stopping.on_sweep(_solution(problem, state))
    state = stopping.resume_point.put(state, last=True)
    final = _polished(problem, state) if polish else state
    unit = final.loss.unit(problem.n_cells, final.history[0], final.value)
    return replace(_solution(problem, final), converged=final.converged, stopped=stopped, unit=unit)


def _first(problem: Problem, loss: Loss) -> State:
    start = problem.begin(loss)
    return State(start, loss, [_value(problem, start, loss)])


def _value(problem: Problem, point: Point, loss: Loss) -> float:
    return loss.objective(point.loss, point.penalty, problem.n_exact)


def _step(problem: Problem, state: State, stopping: Stopping) -> State:
    """Make one sweep of the fit."""
    momentum, loss = state.momentum, state.loss
    new = problem.sweep(state.point, 1 + momentum / (momentum + 3), loss)
    if momentum and not _value(problem, new, loss) <= state.value:
        momentum = 0
        new = problem.sweep(state.point, 1.0, loss)
    new = problem.balance(new)
    loss, cells = loss.estimated(problem.residuals(new), new.loss, new.penalty)
    new = replace(new, loss=cells)
    value = _value(problem, new, loss)
    unit = loss.unit(problem.n_cells, state.history[0], value)
    gain = state.value - value
    if new.half and gain < _HALF_UNTIL * unit:
        new = problem.evaluate(replace(new, half=False), loss)
        value = _value(problem, new, loss)
    settled = state.settled + 1 if gain <= stopping.tol * unit else 0
    history = [*state.history, value]
    if is_at_rest(history, stopping.rest * unit):
        settled = _SETTLED_SWEEPS
    return State(new, loss, history, momentum + 1, settled)


def is_at_rest(history: list[float], rest: float) -> bool:
    """Say whether both of the last sweeps fell, and left to fall, by no more than ``rest``."""
    falls = -np.diff(history[-5:])
    return len(falls) == 4 and all(_still_to_come(falls[i : i + 3]) <= rest for i in (0, 1))


def _still_to_come(falls: NDArray) -> float:
    """Return the last of three falls, or what comes after it if they go on to shrink as they do.

    By the slower of their two rates: from a far start the first falls shrink faster than the rest.
    """
    if falls.min() <= 0:
        return np.inf
    rate = max(falls[1:] / falls[:-1])
    return max(falls[-1], falls[-1] * rate / (1 - rate)) if rate < 1 else np.inf


def _polished(problem: Problem, state: State) -> State:
    """Return the state with its rows solved to rounding, if that is no higher."""
    point = problem.polish(state.point, state.loss)
    value = _value(problem, point, state.loss)
    if not value <= state.value:
        return state
    return replace(state, point=point, history=[*state.history[:-1], value])


def _solution(problem: Problem, state: State) -> Solution:
    return Solution(problem.factors(state.point), np.array(state.history), False, state.loss)


@dataclass(frozen=True, eq=False)
class TablePoint:
    """A point of a `TableProblem`; ``half`` says that sweeps read half precision."""

    model: LowRank
    before: LowRank
    loss: float = np.inf
    penalty: float = np.inf
    half: bool = False


@dataclass(frozen=True, eq=False)
class TableProblem:
    """The factor model of a table in memory.

    Attributes
    ----------
    intervals : Intervals
        The observed cells.
    start : LowRank
        Where to begin; also fixes the rank and whether there are offsets.
    penalty : Ridge
        On factors and offsets.
    threads : int
        Threads of the sweeps; the result does not depend on it.
    half : bool
        Whether the first sweeps, while they gain much, read the fixed factors in half precision.
    """

    intervals: Intervals
    start: LowRank
    penalty: Ridge
    threads: int = 1
    half: bool = False

    @property
    def n_cells(self) -> float:
        """Number of observed cells, or their weight."""
        return sum(self.intervals.by_row.weight)

    @property
    def n_exact(self) -> float:
        """Number of exact cells, or their weight."""
        return self.intervals.by_row.weight[0]

    def begin(self, loss: Loss) -> TablePoint:
        """Return the start of a fit."""
        return self.evaluate(TablePoint(self.start, self.start, half=self.half), loss)

    def evaluate(self, point: TablePoint, loss: Loss) -> TablePoint:
        """Return the same point with its loss and penalty computed anew."""
        cells = total_loss(self.intervals, point.model, loss, self.threads)
        return replace(point, loss=cells, penalty=self.penalty.value(point.model))

    def sweep(self, point: TablePoint, t: float, loss: Loss) -> TablePoint:
        """Sweep over columns, then rows, from t of the way along the last step."""
        model = point.model if t == 1 else point.before.toward(point.model, t)
        cells = np.inf
        for side, penalty in (
            (self.intervals.by_col, self.penalty.T),
            (self.intervals.by_row, self.penalty),
        ):
            model, cells = update_rows(
                side, model.T, penalty, loss, half=point.half, threads=self.threads
            )
        return TablePoint(model, point.model, cells, self.penalty.value(model), point.half)

    def balance(self, point: TablePoint) -> TablePoint:
        """Return the same matrix with its factors balanced and its offsets centred."""
        balanced, maps = self.penalty.balanced(point.model)
        model, shifts = self.penalty.centred(balanced)
        before = point.before.mapped(*maps).shifted(shifts)
        return replace(point, model=model, before=before, penalty=self.penalty.value(model))

    def residuals(self, point: TablePoint) -> TableResiduals:
        """Return what a noise scale is estimated from."""
        return TableResiduals(self.intervals, point.model, self.threads)

    def polish(self, point: TablePoint, loss: Loss) -> TablePoint:
        """Return the point with its rows solved to rounding."""
        rows = solve_rows(self.intervals.by_row, point.model, self.penalty, loss, self.threads)
        return self.evaluate(replace(point, model=rows), loss)

    def factors(self, point: TablePoint) -> LowRank:
        """Return the matrix."""
        return point.model


@dataclass(frozen=True, eq=False)
class TableResiduals:
    """The cells of a fit in memory, as `Loss.estimated` asks for them."""

    intervals: Intervals
    model: LowRank
    threads: int = 1

    @property
    def n_cells(self) -> float:
        """Number of observed cells, or their weight."""
        return sum(self.intervals.by_row.weight)

    @property
    def largest(self) -> float:
        """Largest size of a value or a limit."""
        side = self.intervals.by_row
        known = side.value, face_value(side.lower, side.upper)
        return max(float(np.abs(values).max(initial=0.0)) for values in known)

    @cached_property
    def _x(self) -> NDArray:
        side = self.intervals.by_row
        return self.model.predict(side.censored_rows(), side.censored_idx, self.threads)

    def censored(self, loss: Loss) -> CensoredSums:
        """Return the sums over the censored cells under a loss."""
        side = self.intervals.by_row
        weight = None if side.weights is None else side.weights[1]
        return loss.sums(self._x, side.lower, side.upper, self.threads, weight)


def update_rows(
    side: Cells,
    model: LowRank,
    penalty: Ridge,
    loss: Loss,
    *,
    half: bool = False,
    threads: int = 1,
    **steps: Any,
) -> tuple[LowRank, float]:
    """Lower the objective of the rows of ``model``; return it and the loss of the cells.

    By the ``steps`` of a sweep, unless others are given (see `kernels.update_rows`).
    """
    ridge = penalty.vector(model.rank, model.bias, model.dtype)
    pull = penalty.pull(model.A)
    drawn = {} if pull is None else {"centre": pull.centre, "row_ridge": pull.strength}
    rows, A = model.row_problem(side, loss, ridge, **drawn), model.A.copy()
    steps = steps or _sweep_steps(A.shape[1])
    unit = _half_units(rows.design) if half else None
    if unit is None:
        cells = kernels.update_rows(rows, A, half=half, threads=threads, **steps)
        return replace(model, A=A), cells
    # q p = (q / u) (u p), and ridge p^2 = ridge / u^2 (u p)^2
    centre = None if rows.centre is None else rows.centre * unit
    rows = replace(rows, design=rows.design / unit, ridge=ridge / unit**2, centre=centre)
    A = A * unit
    cells = kernels.update_rows(rows, A, half=half, threads=threads, **steps)
    return replace(model, A=A / unit), cells


def _sweep_steps(width: int) -> dict[str, int]:
    if width >= _CG_FROM:
        return {"inner_steps": 1, "cg_steps": _CG_STEPS}
    return {"inner_steps": _INNER_STEPS}


def half_pays(start: LowRank) -> bool:
    """Say whether sweeps gain by half precision: by conjugate gradients they wait for factors."""
    width, largest = start.A.shape[1], max(start.A.nbytes, start.B.nbytes)
    return start.dtype == np.float32 and width >= _CG_FROM and largest > _HALF_FROM


def _half_units(design: NDArray) -> NDArray | None:
    """Return powers of two that bring each column into the range of half precision, if need be."""
    largest = np.maximum(design.max(0), -design.min(0))
    if np.all((largest > 2.0**-4) & (largest < 2.0**12)):
        return None
    return np.exp2(np.ceil(np.log2(largest, where=largest > 0, out=np.zeros_like(largest))))


def solve_rows(
    side: Cells, model: LowRank, penalty: Ridge, loss: Loss, threads: int = 1
) -> LowRank:
    """Minimise over the rows of ``model``, to rounding, with its columns fixed.

    A convex problem for each row, so the start does not matter (if the penalty is positive).
    """
    return update_rows(side, model, penalty, loss, threads=threads, **_TO_ROUNDING)[0]
