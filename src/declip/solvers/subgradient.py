"""Proximal subgradient descent for f(X) + alpha |X|_tr + beta |Clip(X)|_tr (DTr-CMC).

X <- shrink(X - eta (G + beta W * U V^T), eta alpha), where G is the gradient of the loss, Clip(X) =
U S V^T, and W marks the cells strictly within their limits; U V^T * W is a subgradient of the
second term with W held fixed. X stays a pair of factors. Clip(X) and W * U V^T are not low rank:
they are made tile by tile, a single tile for a small table, and never held as a whole for a large
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.objective import gradient, total_loss
from declip.solvers.solution import Solution
from declip.svd import SVD, leading, shrink

__all__ = ["Limits", "subgradient_descent"]

_TILE = 1 << 24  # cells of a tile: 64 or 128 MB
_DECAY = 0.99  # the paper's factor from one step to the next
_NEGLIGIBLE = 1e-8  # steps below this share of the first change nothing any more


@dataclass(frozen=True)
class Limits:
    """Floor and ceiling of every cell, observed or not: arrays that broadcast to the table."""

    floor: NDArray
    ceiling: NDArray

    def rows(self, which: slice) -> Limits:
        """Return the limits of some rows."""
        return Limits(*(F if len(F) == 1 else F[which] for F in (self.floor, self.ceiling)))

    def clip(self, X: NDArray) -> NDArray:
        """Return the projection of X onto the limits."""
        return np.clip(X, self.floor, self.ceiling)

    def within(self, X: NDArray) -> NDArray[np.bool_]:
        """Return where X lies strictly within the limits."""
        return (X > self.floor) & (X < self.ceiling)


class _Tiles(LinearOperator):
    """A matrix known by its tiles of rows, plus a sparse one."""

    def __init__(
        self,
        shape: tuple[int, int],
        tile: Callable[[slice], NDArray],
        parts: tuple = (),
        dtype: np.dtype | type = np.float64,
    ) -> None:
        super().__init__(np.dtype(dtype), shape)
        self.tile, self.parts = tile, parts

    def slices(self) -> Iterator[slice]:
        step = max(1, _TILE // self.shape[1])
        return (slice(i, min(i + step, self.shape[0])) for i in range(0, self.shape[0], step))

    def _matmat(self, V: NDArray) -> NDArray:
        V = V.astype(self.dtype, copy=False)
        dense = np.concatenate([self.tile(rows) @ V for rows in self.slices()])
        return sum((S @ V for S in self.parts), start=dense)

    def _rmatmat(self, U: NDArray) -> NDArray:
        U = U.astype(self.dtype, copy=False)
        dense = sum(self.tile(rows).T @ U[rows] for rows in self.slices())
        return sum((S.T @ U for S in self.parts), start=dense)

    def toarray(self) -> NDArray:
        dense = np.concatenate([self.tile(rows) for rows in self.slices()])
        return sum((S.toarray() for S in self.parts), start=dense)


@dataclass
class _Problem:
    intervals: Intervals
    limits: Limits
    alpha: float
    alpha_clipped: float
    max_rank: int | None
    threads: int

    def clipped(self, X: LowRank, near: NDArray | None) -> SVD:
        """Return the singular triplets of Clip(X), all of them for a small table."""

        def tile(rows: slice) -> NDArray:
            return self.limits.rows(rows).clip(X.block(rows))

        return leading(_Tiles(X.shape, tile, dtype=X.A.dtype), self.max_rank, near)

    def step(self, X: LowRank, clip: SVD, eta: float) -> SVD:
        """Return shrink(X - eta (G + beta W * U V^T), eta alpha)."""
        weight = X.A.dtype.type(eta * self.alpha_clipped)
        U, V = clip.U.astype(X.A.dtype, copy=False), clip.V.astype(X.A.dtype, copy=False)

        def tile(rows: slice) -> NDArray:
            x = X.block(rows)
            if weight:
                x -= np.where(self.limits.rows(rows).within(x), weight * (U[rows] @ V.T), 0)
            return x

        G = gradient(self.intervals, X, threads=self.threads)
        parts = tuple(-eta * S.astype(X.A.dtype) for S in (G.exact, G.open))
        moved = _Tiles(X.shape, tile, parts, X.A.dtype)
        return shrink(moved, eta * self.alpha, X.Q, self.max_rank)

    def value(self, X: LowRank, trace_norm: float, clip: SVD) -> float:
        loss = total_loss(self.intervals, X, threads=self.threads)
        return loss + self.alpha * trace_norm + self.alpha_clipped * float(clip.S.sum())


def subgradient_descent(
    intervals: Intervals,
    start: LowRank,
    limits: Limits,
    alpha: float,
    alpha_clipped: float,
    *,
    first_step: float = 1.0,
    max_rank: int | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    threads: int = 1,
    on_sweep: Callable[[Solution], bool] = lambda _: False,
) -> Solution:
    """Return the iterate with the lowest objective.

    Parameters
    ----------
    intervals, start, alpha, max_iter, threads, on_sweep
        As in `declip.solvers.minimise`.
    limits : Limits
        Limits of all cells.
    alpha_clipped : float
        Strength of the penalty on Clip(X).
    first_step : float
        Step eta_0; the steps are eta_0 * 0.99^(t - 1).
    max_rank : int, optional
        Singular triplets of X and of Clip(X) that are kept; large tables need it.
    tol : float
        The fit counts as settled if the last steps lowered the objective by at most this share.
    """
    problem = _Problem(intervals, limits, alpha, alpha_clipped, max_rank, threads)
    X = best = start
    clip = problem.clipped(X, None)
    history = [problem.value(X, X.trace_norm(), clip)]
    eta, stopped = first_step, False
    while len(history) <= max_iter and eta > _NEGLIGIBLE * first_step and not stopped:
        found = problem.step(X, clip, eta)
        X = LowRank.from_svd(found, X.A.dtype)
        clip = problem.clipped(X, clip.V)
        value = problem.value(X, float(found.S.sum()), clip)
        if value < history[-1]:
            best = X
        history.append(min(value, history[-1]))
        eta *= _DECAY
        stopped = on_sweep(Solution(best, np.array(history), False, 0.0))
    unit = abs(history[-1]) or 1.0
    settled = history[-min(10, len(history))] - history[-1] <= tol * unit
    return Solution(best, np.array(history), settled, 0.0, stopped, unit=unit)
