"""How the fit agrees with the cells: with limits where clipped, evenly elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from declip.diagnostics.limit_checks import cells_of
from declip.intervals import Intervals
from declip.losses import Hinge
from declip.lowrank import LowRank
from declip.scaling import Scaling
from declip.solvers import Limits
from declip.truncated import moments

__all__ = ["ResidualChecks", "check_residuals"]

_REACH = 2.0  # noise scales within which a prediction is near a limit
_ENOUGH = 30  # cells on both sides of a comparison


@dataclass(frozen=True, eq=False)
class ResidualChecks:
    """How the fit agrees with what is known of the cells.

    Attributes
    ----------
    predicted : ndarray
        The low-rank estimate of each clipped cell, in the order of the censored cells by row.
    restored : ndarray
        Its restored value, as `transform` gives it: the expected one given its interval.
    short : ndarray
        How far the estimate falls short of the cell's limit (0 where it lies beyond, as it should).
    share_beyond : float
        Clipped cells predicted at or beyond their limit.
    share_short : float
        Clipped cells predicted short of their limit by more than two noise scales.
    near_ratio : float
        Size of the residuals of exact cells predicted within two noise scales of a limit, relative
        to that of the others, each against what the same noise would give, cut off at the limits.
        1 if the noise is even; NaN if there are too few cells or the limits are not known.
    n_near : int
        Exact cells near a limit.
    """

    predicted: NDArray[np.float64]
    restored: NDArray[np.float64]
    short: NDArray[np.float64]
    share_beyond: float
    share_short: float
    near_ratio: float
    n_near: int

    def in_units(self, scaling: Scaling, cols: NDArray[np.int32]) -> ResidualChecks:
        """Return what was found in standard units in those of the table, for cells of ``cols``."""
        return replace(
            self,
            predicted=scaling.back(self.predicted, cols),
            restored=scaling.back(self.restored, cols),
            short=self.short * scaling.units.scale[cols],
        )


def check_residuals(
    intervals: Intervals,
    model: LowRank,
    restored: NDArray,
    sigma: float,
    limits: Limits | None,
    threads: int = 1,
) -> ResidualChecks:
    """Compare a fit with the cells: clipped ones with their limits, exact ones with each other.

    Parameters
    ----------
    intervals, model : Intervals, LowRank
        The table and the fit.
    restored : ndarray
        Restored values of the clipped cells.
    sigma : float
        Noise scale.
    limits : Limits or None
        Limits of all cells, where they are known.
    threads : int
        Threads.
    """
    side = intervals.by_row
    x = model.predict(side.censored_rows(), side.censored_idx, threads).astype(np.float64)
    short = np.abs(Hinge().cells(x, side.lower, side.upper).gradient)
    ratio, n_near = _near_the_limits(intervals, model, sigma, limits, threads)
    return ResidualChecks(
        predicted=x,
        restored=restored.astype(np.float64),
        short=short,
        share_beyond=float(np.mean(short == 0)) if len(x) else np.nan,
        share_short=float(np.mean(short > _REACH * sigma)) if len(x) else np.nan,
        near_ratio=ratio,
        n_near=n_near,
    )


def _near_the_limits(
    intervals: Intervals, model: LowRank, sigma: float, limits: Limits | None, threads: int
) -> tuple[float, int]:
    if limits is None or sigma == 0:
        return np.nan, 0
    side = intervals.by_row
    cells = side.exact_rows(), side.exact_idx
    x = model.predict(*cells, threads).astype(np.float64)
    floor, ceiling = (
        cells_of(end, intervals.shape, *cells).astype(np.float64)
        for end in (limits.floor, limits.ceiling)
    )
    squares = (x - side.value) ** 2
    near = np.minimum(np.abs(ceiling - x), np.abs(x - floor)) < _REACH * sigma
    n_near, n_far = int(near.sum()), int((~near).sum())
    if min(n_near, n_far) < _ENOUGH or not squares[~near].any():
        return np.nan, n_near
    # E (y - x)^2 given floor < y < ceiling, for y ~ N(x, sigma^2)
    mean, variance = moments((floor - x)[near] / sigma, (ceiling - x)[near] / sigma)
    expected = sigma**2 * (variance + mean**2)
    far = squares[~near].mean() / sigma**2
    return float(np.sqrt(squares[near].sum() / expected.sum() / far)), n_near
