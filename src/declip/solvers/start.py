"""Where a fit begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from declip.intervals import Intervals, face_value
from declip.lowrank import LowRank
from declip.svd import truncated_svd

__all__ = ["constant_model", "restart_dead_factors", "start_model", "start_scale"]

_STRIP = 1 << 16  # cells widened to double precision at a time


def start_model(
    intervals: Intervals, rank: int, bias: bool, init: str, rng: np.random.Generator
) -> LowRank:
    """Return the start of a fit.

    "random" follows the paper: every cell begins beyond the limits, on the side where the truth of
    the clipped cells lies, plus a perturbation, without which the rank would stay one. "svd" takes
    the leading singular vectors of the table with missing cells at the mean and clipped cells at
    their limit.
    """
    mean, spread = _mean_and_spread(intervals)
    if init == "svd":
        A, B = _svd_factors(intervals, rank, mean, bias, rng)
    else:
        level = 0.0 if bias else _level(intervals, mean, spread)
        A, B = _random_factors(intervals.shape, rank, level, spread or abs(mean) or 1.0, rng)
    if bias:
        A, B = (np.column_stack([F, np.zeros(len(F))]) for F in (A, B))
    dtype = intervals.dtype
    return LowRank(A.astype(dtype), B.astype(dtype), mean if bias else 0.0, bias)


def restart_dead_factors(model: LowRank, intervals: Intervals, rng: np.random.Generator) -> LowRank:
    """Return a model to start from, with factors that have faded away begun anew.

    A strong penalty puts factors out, and one that is zero stays zero under a weak penalty. Factors
    fainter than the perturbation of a random start are replaced by it.
    """
    spread = start_scale(intervals)
    fresh = _random_factors(intervals.shape, model.rank, 0.0, spread, rng)
    # |p_k| |q_k| of each factor, as it is and as it would begin
    now, then = (
        np.linalg.norm(P, axis=0) * np.linalg.norm(Q, axis=0)
        for P, Q in ((model.P, model.Q), fresh)
    )
    faint = np.flatnonzero(now < then)
    if faint.size == 0:
        return model
    A, B = model.A.copy(), model.B.copy()
    A[:, faint], B[:, faint] = (F[:, faint] for F in fresh)
    return replace(model, A=A, B=B)


def constant_model(intervals: Intervals, beyond: float) -> LowRank:
    """Return a constant matrix at the limit of the clipped cells plus ``beyond``, as the paper.

    Where there are floors but no ceilings it lies below them, where there are both at the mean.
    """
    level = _level(intervals, _mean_and_spread(intervals)[0], beyond)
    A, B = (np.full((n, 1), np.sqrt(abs(level)), intervals.dtype) for n in intervals.shape)
    return LowRank(A, np.copysign(B, level))


def start_scale(intervals: Intervals) -> float:
    """Return a noise scale to begin with: the spread of the values."""
    mean, spread = _mean_and_spread(intervals)
    return spread or abs(mean) or 1.0


def _face_values(intervals: Intervals) -> tuple[NDArray, NDArray]:
    """Return the values of the exact cells, and those of the censored ones at their limit."""
    side = intervals.by_row
    return side.value, face_value(side.lower, side.upper)


def _mean_and_spread(intervals: Intervals) -> tuple[float, float]:
    """Return mean and standard deviation of the values of all cells, never copied as a whole."""
    strips = [
        part[i : i + _STRIP]
        for part in _face_values(intervals)
        for i in range(0, len(part), _STRIP)
    ]
    n = len(intervals)
    mean = sum(float(x.sum(dtype=np.float64)) for x in strips) / n
    squares = sum(float(np.square(x.astype(np.float64) - mean).sum()) for x in strips)
    return mean, float(np.sqrt(squares / n))


def _level(intervals: Intervals, mean: float, spread: float) -> float:
    """Return where the cells begin: beyond the ceilings or the floors, or at the mean."""
    side = intervals.by_row
    above, below = np.isposinf(side.upper), np.isneginf(side.lower)
    if above.any() and not below.any():
        return float(np.median(side.lower[above])) + spread
    if below.any() and not above.any():
        return float(np.median(side.upper[below])) - spread
    return mean


def _random_factors(
    shape: tuple[int, int], rank: int, level: float, spread: float, rng: np.random.Generator
) -> tuple[NDArray, NDArray]:
    """Return factors with P Q^T = level, perturbed by about a hundredth of the spread."""
    noise = 0.1 * np.sqrt(spread / rank)
    size = np.sqrt(abs(level) / rank)
    A = size + noise * rng.standard_normal((shape[0], rank))
    B = size + noise * rng.standard_normal((shape[1], rank))
    return A, np.copysign(1.0, level) * B


def _svd_factors(
    intervals: Intervals,
    rank: int,
    mean: float,
    bias: bool,
    rng: np.random.Generator,
) -> tuple[NDArray, NDArray]:
    """Return the leading factors of mean + sparse deviations (offsets carry the mean)."""
    rows, cols, _, _ = intervals.triplets()
    values = np.concatenate(_face_values(intervals)).astype(np.float64)
    S = sparse.csr_array((values - mean, (rows, cols)), shape=intervals.shape)
    level = 0.0 if bias else mean
    table = LinearOperator(
        S.shape,
        matvec=lambda v: S @ v + level * v.sum(axis=0),
        rmatvec=lambda u: S.T @ u + level * u.sum(axis=0),
        matmat=lambda V: S @ V + level * V.sum(axis=0),
        rmatmat=lambda U: S.T @ U + level * U.sum(axis=0),
        dtype=np.float64,
    )
    U, s, V = truncated_svd(table, rank, rng)
    return U * np.sqrt(s), V * np.sqrt(s)
