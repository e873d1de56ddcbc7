"""What every solver returns, and where it leaves its state on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from declip.lowrank import LowRank

__all__ = ["NO_RESUME_POINT", "ResumePoint", "Solution"]


@dataclass(frozen=True)
class Solution:
    """What a solver returns.

    Attributes
    ----------
    model : LowRank
        The fitted matrix.
    history : ndarray
        The objective at the start and after each sweep.
    converged : bool
        Whether the objective had settled when the solver stopped.
    scale : float
        Noise scale (0 for the hinge).
    stopped : bool
        Whether the caller stopped it.
    unit : float
        What a fall of the objective is measured by.
    proof : object
        A certificate, where the solver has one of its own.
    """

    model: LowRank
    history: NDArray[np.float64]
    converged: bool
    scale: float
    stopped: bool = False
    unit: float = 1.0
    proof: object = None

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

    def put(self, state: Any) -> None:
        """Offer the state after an iteration; it may be kept or not."""

    def done(self) -> None:
        """Say that the fit is complete."""


class _NoResumePoint:
    state = None

    def put(self, state: Any) -> None: ...

    def done(self) -> None: ...


NO_RESUME_POINT: ResumePoint = _NoResumePoint()
