"""When a solver is to stop, what it returns, and where it leaves its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from declip.losses import Hinge, Loss
from declip.lowrank import LowRank

__all__ = ["NO_RESUME_POINT", "Factors", "ResumePoint", "Solution", "Stopping"]


class Factors(Protocol):
    """A fitted matrix: a `LowRank`, or parts of one that lie elsewhere."""

    def gather(self) -> LowRank:
        """Return the matrix, brought together in memory."""

    def singular_values(self) -> NDArray[np.float64]:
        """Return the singular values of P Q^T, largest first."""


@dataclass(frozen=True)
class Solution:
    """What a solver returns, and tells its caller after each sweep.

    Attributes
    ----------
    factors : Factors
        The fitted matrix.
    history : ndarray
        The objective at the start and after each sweep.
    converged : bool
        Whether the objective had settled when the solver stopped.
    loss : Loss
        The loss, with its noise scale as estimated.
    stopped : bool
        Whether the caller stopped it.
    unit : float
        What a fall of the objective is measured by.
    proof : object
        A certificate, where the solver has one of its own.
    """

    factors: Factors
    history: NDArray[np.float64]
    converged: bool
    loss: Loss = field(default_factory=Hinge)
    stopped: bool = False
    unit: float = 1.0
    proof: object = None

    @property
    def model(self) -> LowRank:
        """The fitted matrix, in memory."""
        return self.factors.gather()

    @property
    def scale(self) -> float:
        """Noise scale (0 for the hinge)."""
        return self.loss.scale

    @property
    def n_iter(self) -> int:
        """Number of sweeps."""
        return len(self.history) - 1

    @property
    def last_fall(self) -> float:
        """How much the last sweep lowered the objective, in the unit that tol is given in."""
        return float(self.history[-2] - self.history[-1]) / self.unit


class ResumePoint(Protocol):
    """Where a solver leaves all that its next iteration needs, to be able to go on from there.

    Attributes
    ----------
    state : Any
        Where to go on; None to begin.
    """

    state: Any

    def put(self, state: Any, last: bool = False) -> Any:
        """Offer the state after an iteration, which may be kept; return where to go on."""

    def done(self) -> None:
        """Say that the fit is complete."""


class _NoResumePoint:
    state = None

    def put(self, state: Any, last: bool = False) -> Any:
        return state

    def done(self) -> None: ...


NO_RESUME_POINT: ResumePoint = _NoResumePoint()


@dataclass(frozen=True)
class Stopping:
    """When a solver stops, and who hears of its progress.

    Attributes
    ----------
    max_iter : int
        Iterations at most.
    tol : float
        What counts as settled; each solver says of what.
    on_sweep : callable
        Called with a `Solution` after each iteration; a true answer stops the fit.
    resume_point : ResumePoint
        Where to go on, and where to leave the state after each iteration.
    rest : float
        What may be left, by the course of the last iterations, where a solver foresees it.
    """

    max_iter: int
    tol: float
    on_sweep: Callable[[Solution], bool] = lambda _: False
    resume_point: ResumePoint = NO_RESUME_POINT
    rest: float = 0.0
