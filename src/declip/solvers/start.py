"""Where a fit begins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from declip.clipping import Limits
from declip.intervals import Intervals, face_value
from declip.losses import Loss, Tobit
from declip.lowrank import LowRank
from declip.objective import total_loss
from declip.solvers.als import TableResiduals
from declip.svd import truncated_svd

__all__ = [
    "RandomStart",
    "limit_model",
    "loss_at_zero",
    "mean_and_spread",
    "restart_dead_factors",
    "start_loss",
    "start_model",
    "start_scale",
]

_STRIP = 1 << 16  # cells widened to double precision at a time


@dataclass(frozen=True)
class RandomStart:
    """Factors with P Q^T = level, perturbed by about a hundredth of the spread.

    Without the perturbation the rank would stay one.
    """

    level: float
    spread: float

    @classmethod
    def beyond(
        cls, limits: tuple[float | None, float | None], mean: float, spread: float, bias: bool
    ) -> RandomStart:
        """Return the paper's start: beyond the limits, or with offsets 0, which leave the mean."""
        level = 0.0 if bias else start_level(limits, mean, spread)
        return cls(level, size_of_values(mean, spread))

    def draw(
        self, n: int, rank: int, rng: np.random.Generator, columns: bool = False
    ) -> NDArray[np.float64]:
        """Draw the factors of n rows, or of n columns; columns carry the sign of the level."""
        noise, size = 0.1 * np.sqrt(self.spread / rank), np.sqrt(abs(self.level) / rank)
        sign = np.copysign(1.0, self.level) if columns else 1.0
        return sign * (size + noise * rng.standard_normal((n, rank)))

    def both(
        self, shape: tuple[int, int], rank: int, rng: np.random.Generator
    ) -> tuple[NDArray, NDArray]:
        """Draw the factors of all rows and columns."""
        return self.draw(shape[0], rank, rng), self.draw(shape[1], rank, rng, columns=True)


def start_level(limits: tuple[float | None, float | None], mean: float, spread: float) -> float:
    """Return where cells begin: beyond a typical floor or ceiling, or at the mean.

    ``limits`` are the two, each None if there is none.
    """
    floor, ceiling = limits
    if ceiling is not None and floor is None:
        return ceiling + spread
    if floor is not None and ceiling is None:
        return floor - spread
    return mean


def size_of_values(mean: float, spread: float) -> float:
    """Return how far values go from each other, or if they are all the same, from 0."""
    return spread or abs(mean) or 1.0


def start_model(
    intervals: Intervals, rank: int, bias: bool, init: str, rng: np.random.Generator
) -> LowRank:
    """Return the start of a fit.

    "random" follows the paper: every cell begins beyond the limits, on the side where the truth of
    the clipped cells lies, plus a perturbation. "svd" takes the leading singular vectors of the
    table with missing cells at the mean and clipped cells at their limit.
    """
    mean, spread = mean_and_spread(intervals)
    if init == "svd":
        A, B = _svd_factors(intervals, rank, mean, bias, rng)
    else:
        start = RandomStart.beyond(_typical_limits(intervals), mean, spread, bias)
        A, B = start.both(intervals.shape, rank, rng)
    if bias:
        A, B = (np.column_stack([F, np.zeros(len(F))]) for F in (A, B))
    dtype = intervals.dtype
    return LowRank(A.astype(dtype), B.astype(dtype), mean if bias else 0.0, bias)


def restart_dead_factors(model: LowRank, intervals: Intervals, rng: np.random.Generator) -> LowRank:
    """Return a model to start from, with factors that have faded away begun anew.

    A strong penalty puts factors out, and one that is zero stays zero under a weak penalty. Factors
    fainter than the perturbation of a random start are replaced by it.
    """
    fresh = RandomStart(0.0, start_scale(intervals)).both(intervals.shape, model.rank, rng)
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


def limit_model(intervals: Intervals, limits: Limits, beyond: float) -> LowRank:
    """Return a start at the limits of the clipped cells plus ``beyond``, as the paper.

    It follows limits that differ by column or by row; where they differ by cell, it is beyond the
    farthest of each column. Where there are floors but no ceilings it lies below them, where there
    are both, or no limits or clipped cells, at the mean.
    """
    side = intervals.by_row
    above, below = side.right_censored.any(), side.left_censored.any()
    sign, limit = (1.0, limits.ceiling) if above else (-1.0, limits.floor)
    if above == below or not np.isfinite(limit).any():
        return _outer(np.full((1, 1), mean_and_spread(intervals)[0]), intervals)
    far = np.where(np.isfinite(limit), sign * limit, -np.inf).astype(np.float64)
    if min(far.shape) > 1:
        far = far.max(axis=0, keepdims=True)
    far = np.where(np.isfinite(far), far, far.max())  # columns without a limit of their own
    return _outer(sign * (far + beyond), intervals)


def _outer(level: NDArray, intervals: Intervals) -> LowRank:
    """Return the matrix with a level by row (n x 1), by column (1 x n), or everywhere."""
    size = np.sqrt(np.abs(level).max()) or 1.0
    A, B = (np.full((n, 1), size, np.float64) for n in intervals.shape)
    if level.shape[1] == 1:
        A = A * level / size**2
    else:
        B = B * level.T / size**2
    return LowRank(A.astype(intervals.dtype), B.astype(intervals.dtype))


def start_scale(intervals: Intervals) -> float:
    """Return a noise scale to begin with: the spread of the values."""
    return size_of_values(*mean_and_spread(intervals))


def start_loss(intervals: Intervals, clipped: str, scale: float = 0.0) -> Loss:
    """Return the loss that a fit begins with, at a noise scale that is known, or `start_scale`."""
    loss = Loss.to_fit(
        clipped, intervals.n_censored, lambda: float(scale) or start_scale(intervals)
    )
    side = intervals.by_row
    if side.weights is None or side.scales is None or not loss.has_scale:
        return loss
    # a weight is r^2 / s^2 for a known noise scale s: r is that of a cell of weight 1
    return Tobit(float(side.scales[0] * np.sqrt(side.weights[1][0])), known=True)


def loss_at_zero(intervals: Intervals, loss: Loss) -> Loss:
    """Return the loss with the noise scale that fits best if X = 0."""
    zero = LowRank.zero(intervals.shape, intervals.dtype)
    for _ in range(50):
        last, cells = loss, total_loss(intervals, zero, loss)
        loss, _ = loss.estimated(TableResiduals(intervals, zero), cells, 0.0)
        if abs(loss.scale - last.scale) <= 1e-10 * last.scale:
            break
    return loss


def _face_values(intervals: Intervals) -> tuple[NDArray, NDArray]:
    """Return the values of the exact cells, and those of the censored ones at their limit."""
    side = intervals.by_row
    return side.value, face_value(side.lower, side.upper)


def mean_and_spread(intervals: Intervals) -> tuple[float, float]:
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


def _typical_limits(intervals: Intervals) -> tuple[float | None, float | None]:
    """Return the medians of the floors and of the ceilings of clipped cells."""
    side = intervals.by_row
    below, above = side.left_censored, side.right_censored
    return (
        float(np.median(side.upper[below])) if below.any() else None,
        float(np.median(side.lower[above])) if above.any() else None,
    )


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
