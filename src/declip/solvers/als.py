"""Alternating minimisation over row and column factors: a sweep over columns, then one over rows.

Each sweep is a safeguarded Newton step of every row (`declip.kernels.update_rows`), so the
objective never rises. Two things make it fast, and neither can make it rise:

- after each sweep P and Q are balanced, P Q^T = U S V^T -> U sqrt(S), V sqrt(S), which lowers the
  penalty at the same fit and rotates the factors so that they no longer work against each other
  (offsets are centred likewise, which leaves the mean free);
- the next sweep starts from a point extrapolated along the last step (Nesterov). If it ends higher
  than before, it is thrown away and a plain sweep is made instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from declip import kernels
from declip.intervals import Cells, Intervals
from declip.lowrank import LowRank
from declip.objective import Penalised, total_loss
from declip.solvers.noise import fit_scale
from declip.solvers.solution import NO_RESUME_POINT, ResumePoint, Solution

__all__ = ["SETTLED_SWEEPS", "minimise", "ridge_of", "settling_unit", "solve_rows", "update_rows"]

_INNER_STEPS = 3  # Newton steps of a row in a sweep; later ones touch only cells that changed
SETTLED_SWEEPS = 3  # sweeps in a row that must gain less than tol
_CG_FROM = 32  # factors from which conjugate gradients lower the objective faster than Cholesky
_CG_STEPS = 3
_HALF_UNTIL = 1e-3  # share of the objective a sweep must gain for half precision to be enough


@dataclass(frozen=True)
class _Point:
    """A model with its loss and its objective."""

    model: LowRank
    loss: float
    value: float


@dataclass
class _Descent:
    """The state of a fit: what is minimised, and how a sweep is made."""

    intervals: Intervals
    alpha: float
    alpha_bias: float | None
    scale: float
    threads: int
    narrow: bool = False

    def point(self, model: LowRank, loss: float) -> _Point:
        penalised = Penalised(self.scale, self.intervals.n_exact)
        return _Point(model, loss, penalised(loss, model.penalty(self.alpha, self.alpha_bias)))

    def evaluate(self, model: LowRank) -> _Point:
        return self.point(model, total_loss(self.intervals, model, self.scale, self.threads))

    def half(self, side: Cells, model: LowRank) -> tuple[LowRank, float]:
        return update_rows(
            *(side, model, self.alpha, self.alpha_bias, self.scale),
            half=self.narrow,
            threads=self.threads,
        )

    def sweep(self, model: LowRank) -> _Point:
        flipped, _ = self.half(self.intervals.by_col, model.T)
        return self.point(*self.half(self.intervals.by_row, flipped.T))

    def update_scale(self, point: _Point) -> _Point:
        """Fit the noise scale; the objective never rises."""
        self.scale, loss = fit_scale(
            *(self.intervals, point.model, self.scale, point.loss),
            penalty=point.model.penalty(self.alpha, self.alpha_bias),
            threads=self.threads,
        )
        return self.point(point.model, loss)


def settling_unit(n_cells: int, first: float, now: float, scale: float) -> float:
    """Return what a fall of the objective is measured by: itself, or for Tobit the number of cells.

    An objective that has all but vanished is measured by where it began.
    """
    return max(abs(now), 1e-12 * abs(first)) if scale == 0 else float(n_cells)


def update_rows(
    side: Cells,
    model: LowRank,
    alpha: float,
    alpha_bias: float | None,
    scale: float,
    half: bool = False,
    threads: int = 1,
) -> tuple[LowRank, float]:
    """Lower the objective of the rows of ``model``, as a sweep does; return it and the loss."""
    by_cg = model.A.shape[1] >= _CG_FROM
    return _update_rows(
        *(side, model, alpha, alpha_bias, scale),
        inner_steps=1 if by_cg else _INNER_STEPS,
        cg_steps=_CG_STEPS if by_cg else 0,
        half=half,
        threads=threads,
    )


def _update_rows(
    side: Cells,
    model: LowRank,
    alpha: float,
    alpha_bias: float | None,
    scale: float,
    **how: float,
) -> tuple[LowRank, float]:
    """Improve the rows of ``model`` with its columns fixed; return it and the loss of the cells."""
    design, offset = model.design()
    A = model.A.copy()
    ridge = ridge_of(model, alpha, alpha_bias)
    unit = _half_units(design) if how.get("half") else None
    if unit is not None:
        # q p = (q / u) (u p), and ridge p^2 = ridge / u^2 (u p)^2
        design, A, ridge = design / unit, A * unit, ridge / unit**2
    loss = kernels.update_rows(side, A, design, offset, ridge, scale=scale, **how)  # type: ignore[arg-type]
    return replace(model, A=A if unit is None else A / unit), loss


def _half_units(design: NDArray) -> NDArray | None:
    """Return powers of two that bring each column into the range of half precision, if need be."""
    largest = np.maximum(design.max(0), -design.min(0))
    if np.all((largest > 2.0**-4) & (largest < 2.0**12)):
        return None
    return np.exp2(np.ceil(np.log2(largest, where=largest > 0, out=np.zeros_like(largest))))


def ridge_of(model: LowRank, alpha: float, alpha_bias: float | None) -> NDArray:
    """Return the strength of the penalty on each column of the factors."""
    ridge = np.full(model.A.shape[1], alpha, model.dtype)
    if model.bias and alpha_bias is not None:
        ridge[-1] = alpha_bias
    return ridge


def solve_rows(
    side: Cells,
    model: LowRank,
    alpha: float,
    scale: float = 0.0,
    threads: int = 1,
    alpha_bias: float | None = None,
) -> LowRank:
    """Minimise over the rows of ``model``, to rounding, with its columns fixed.

    A convex problem for each row, so the start does not matter (if alpha > 0).
    """
    return _update_rows(
        side, model, alpha, alpha_bias, scale, inner_steps=100, inner_tol=1e-18, threads=threads
    )[0]


def minimise(
    intervals: Intervals,
    start: LowRank,
    alpha: float,
    *,
    alpha_bias: float | None = None,
    scale: float = 0.0,
    max_iter: int = 200,
    tol: float = 1e-6,
    threads: int = 1,
    half: bool = False,
    on_sweep: Callable[[Solution], bool] = lambda _: False,
    resume_point: ResumePoint = NO_RESUME_POINT,
    polish: bool = True,
) -> Solution:
    """Minimise the objective of the factor model from a start.

    Parameters
    ----------
    intervals : Intervals
        The observed cells.
    start : LowRank
        Where to begin; also fixes the rank and whether there are offsets.
    alpha, alpha_bias : float
        Strength of the penalty, and of that on offsets (by default the same).
    scale : float
        0 for the hinge; a positive number starts Tobit, which then estimates the scale.
    max_iter, tol : int, float
        Stop after so many sweeps, or when the objective fell by less than ``tol`` of itself (Tobit:
        ``tol`` a cell) in each of three sweeps in a row.
    threads : int
        Threads of the sweeps; the result does not depend on it.
    half : bool
        Whether the first sweeps, while they gain much, read the fixed factors in half precision.
    on_sweep : callable
        Called with the state after each sweep; a true answer stops the fit.
    resume_point : ResumePoint
        Where to go on, and where to leave the state after each sweep.
    polish : bool
        Whether to end with the rows solved to rounding, as `solve_rows` does for new ones.
    """
    descent = _Descent(intervals, alpha, alpha_bias, scale, threads, half)
    if resume_point.state is None:
        now = descent.evaluate(start)
        before, momentum, settled, history = now.model, 0, 0, [now.value]
    else:
        model, loss, descent.scale, descent.narrow, *steps = resume_point.state
        before, momentum, settled, history = steps
        now = descent.point(model, loss)
    stopped, unit = False, settling_unit(len(intervals), history[0], now.value, scale)
    while len(history) <= max_iter and settled < SETTLED_SWEEPS and not stopped:
        ahead = before.toward(now.model, 1 + momentum / (momentum + 3))
        new = descent.sweep(ahead)
        if momentum and not new.value <= now.value:
            momentum = 0
            new = descent.sweep(now.model)
        before, now, momentum = now.model, new, momentum + 1
        model, _, maps = now.model.balanced()
        model, shifts = model.centred()
        before = before.mapped(*maps).shifted(shifts)
        now = descent.point(model, now.loss)
        if scale > 0:
            now = descent.update_scale(now)
        unit = settling_unit(len(intervals), history[0], now.value, scale)
        gain = history[-1] - now.value
        if descent.narrow and gain < _HALF_UNTIL * unit:
            descent.narrow = False
            now = descent.evaluate(now.model)
        settled = settled + 1 if gain <= tol * unit else 0
        history.append(now.value)
        steps = before, momentum, settled, history
        resume_point.put((now.model, now.loss, descent.scale, descent.narrow, *steps))
        stopped = on_sweep(Solution(now.model, np.array(history), False, descent.scale))
    if polish:
        rows = solve_rows(intervals.by_row, now.model, alpha, descent.scale, threads, alpha_bias)
        polished = descent.evaluate(rows)
        if polished.value <= now.value:
            now = polished
            history[-1] = now.value
            unit = settling_unit(len(intervals), history[0], now.value, scale)
    converged = settled >= SETTLED_SWEEPS
    return Solution(now.model, np.array(history), converged, descent.scale, stopped, unit)
