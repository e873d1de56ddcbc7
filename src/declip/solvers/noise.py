"""The noise scale of the Tobit likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.kernels import interval_loss
from declip.lowrank import LowRank

__all__ = ["CensoredSums", "censored_cells", "em_scale", "fit_scale", "scale_at_zero"]

_EM_STEPS = 3


def fit_scale(
    intervals: Intervals,
    model: LowRank,
    scale: float,
    loss: float,
    *,
    penalty: float,
    threads: int = 1,
) -> tuple[float, float]:
    """Return a better noise scale and the loss at it, by a few EM steps.

    They lower (loss + penalty) / scale^2 + n_exact log(scale): scale^2 is the mean of the squared
    residuals of exact cells and the expected ones of censored cells, with twice the penalty added
    to the sum, which for a linear model is the maximum of the marginal likelihood.

    Parameters
    ----------
    intervals, model : Intervals, LowRank
        The data and the fit.
    scale, loss : float
        The scale so far and the loss of all cells at it.
    penalty : float
        The penalty of the fit, in units of the loss.
    threads : int
        Threads.
    """
    side = intervals.by_row
    x = model.predict(side.censored_rows(), side.censored_idx, threads)
    return em_scale(
        lambda at: censored_cells(x, side.lower, side.upper, at, threads),
        *(scale, loss, penalty, len(intervals)),
        largest=float(np.abs(side.value).max(initial=0.0)),
    )


class CensoredSums(NamedTuple):
    """Sums over the censored cells: of their loss, and of their expected squared residuals."""

    loss: float
    squares: float


def censored_cells(
    x: NDArray, lower: NDArray, upper: NDArray, scale: float, threads: int = 1
) -> CensoredSums:
    """Return what the noise scale needs to know of censored cells predicted as ``x``."""
    cell = interval_loss(x, lower, upper, scale=scale, threads=threads)
    squares = (scale**2 * (1 - cell.curvature) + cell.gradient**2).sum()
    return CensoredSums(float(cell.value.sum()), float(squares))


def em_scale(
    at: Callable[[float], CensoredSums],
    scale: float,
    loss: float,
    penalty: float,
    n_cells: int,
    largest: float,
) -> tuple[float, float]:
    """Return a better noise scale and the loss at it; ``at`` gives the censored cells at a scale.

    The scale stays above a millionth of the ``largest`` value.
    """
    now = at(scale)
    exact = max(loss - now.loss, 0.0)
    floor = 1e-6 * largest or np.finfo(np.float64).tiny
    for _ in range(_EM_STEPS):
        last, scale = scale, np.sqrt((2 * (exact + penalty) + now.squares) / n_cells)
        scale = max(float(scale), floor)
        now = at(scale)
        if abs(scale - last) <= 1e-3 * last:
            break
    return scale, exact + now.loss


def scale_at_zero(intervals: Intervals, scale: float) -> float:
    """Return the noise scale that fits best if X = 0, from a first guess."""
    zero, side = LowRank.zero(intervals.shape, intervals.dtype), intervals.by_row
    exact = 0.5 * float(np.sum(side.value.astype(np.float64) ** 2))
    for _ in range(50):
        cell = interval_loss(np.zeros(len(side.lower)), side.lower, side.upper, scale=scale)
        last, loss = scale, exact + float(cell.value.sum())
        scale, _ = fit_scale(intervals, zero, scale, loss, penalty=0.0)
        if abs(scale - last) <= 1e-10 * last:
            break
    return scale
