"""The cells of a table as dense arrays: their loss all at once, and the proximal steps of it.

Or the observed ones alone, as an array of one row: what is to be known of them by the way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from declip.censoring import unbounded
from declip.clipping import Limits
from declip.intervals import Intervals
from declip.kernels import CellLoss
from declip.losses import Hinge, Loss
from declip.lowrank import LowRank
from declip.svd import operator_norm

__all__ = ["DenseCells", "dense_cells", "dot", "joint_prox", "observed_cells"]

_NEWTON, _ROOT = 20, 1e-10  # steps at most for a censored cell, and its error in scales


class _Places(NamedTuple):
    """Where the cells of an array of one row stand in a table."""

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    shape: tuple[int, int]


class DenseCells:
    """The loss of all cells at once; a missing cell has the interval of all numbers."""

    def __init__(
        self, bounds: tuple[NDArray, NDArray], dtype: Any, places: _Places | None = None
    ) -> None:
        lower, upper = bounds
        self.lower = np.where(np.isnan(lower), -np.inf, lower).astype(dtype)
        self.upper = np.where(np.isnan(upper), np.inf, upper).astype(dtype)
        self.places = places

    def of(self, X: NDArray) -> NDArray:
        """Return the cells of a matrix."""
        if self.places is None:
            return X
        return X[self.places.rows, self.places.cols][None].astype(self.lower.dtype)

    def of_model(self, model: LowRank) -> NDArray:
        """Return the cells of a low-rank matrix."""
        if self.places is None:
            return model.block().astype(self.lower.dtype)
        return model.predict(*self.places[:2])[None].astype(self.lower.dtype)

    def norm(self, G: NDArray) -> float:
        """Return the largest singular value of the matrix with these cells, and 0 elsewhere."""
        if self.places is None:
            return operator_norm(G)
        rows, cols, shape = self.places
        return operator_norm(csr_array((G[0], (rows, cols)), shape=shape))

    def nearest(self, X: NDArray) -> NDArray:
        """Return the nearest point of the intervals."""
        nearest = np.maximum(X, self.lower)
        return np.minimum(nearest, self.upper, out=nearest)

    def gradient(self, X: NDArray) -> NDArray:
        """Return f'(X), which is X less the nearest point."""
        return X - self.nearest(X)

    def loss(self, X: NDArray) -> float:
        """Return f(X)."""
        G = self.gradient(X)
        return 0.5 * dot(G, G)

    def prox(self, V: NDArray, rho: float) -> NDArray:
        """Return argmin f(Z) + rho/2 |Z - V|^2, which is V - f'(V) / (1 + rho)."""
        return V - self.gradient(V) / V.dtype.type(1 + rho)

    def conjugate(self, X: NDArray, share: float) -> float:
        """Return f*(share f'(X)): f'(X) = X - N, and the support function at f'(X) is N f'(X)."""
        G = self.gradient(X)
        return share * dot(X, G) + (0.5 * share - 1) * share * dot(G, G)


class _CellsUnderLoss(DenseCells):
    """Censored cells under a loss that is not the hinge; exact cells as before."""

    def __init__(
        self,
        bounds: tuple[NDArray, NDArray],
        dtype: Any,
        of_censored: Loss,
        places: _Places | None = None,
    ) -> None:
        super().__init__(bounds, dtype, places)
        self.of_censored = of_censored
        self.where = np.flatnonzero((self.lower < self.upper) & ~unbounded(self.lower, self.upper))
        self.low, self.high = (bound.flat[self.where] for bound in (self.lower, self.upper))

    def _censored(self, x: NDArray) -> CellLoss:
        return self.of_censored.cells(x, self.low, self.high)

    def gradient(self, X: NDArray) -> NDArray:
        G = super().gradient(X)
        G.flat[self.where] = self._censored(X.flat[self.where]).gradient
        return G

    def loss(self, X: NDArray) -> float:
        G = super().gradient(X)
        G.flat[self.where] = 0
        return 0.5 * dot(G, G) + float(self._censored(X.flat[self.where]).value.sum())

    def prox(self, V: NDArray, rho: float) -> NDArray:
        Z = super().prox(V, rho)
        Z.flat[self.where] = self._newton(V.flat[self.where].astype(np.float64), rho)
        return Z

    def conjugate(self, X: NDArray, share: float) -> float:
        """Return f*(share f'(X)), or what the loss of censored cells bounds it by."""
        G, x = DenseCells.gradient(self, X), X.flat[self.where].astype(np.float64)
        G.flat[self.where] = 0
        exact = share * dot(X, G) + (0.5 * share - 1) * share * dot(G, G)
        y = self._censored(x).gradient
        return exact + self.of_censored.conjugate(x, y, share, self.low, self.high)

    def _newton(self, v: NDArray, rho: float) -> NDArray:
        """Return the root of h(z) = f'(z) + rho (z - v), whose slope is between rho and 1 + rho."""
        z = v - (v - np.clip(v, self.low, self.high)) / (1 + rho)
        low, high = np.full_like(v, -np.inf), np.full_like(v, np.inf)
        for _ in range(_NEWTON):
            cell = self._censored(z)
            h = cell.gradient + rho * (z - v)
            low = np.maximum(low, z - np.maximum(h, 0) / rho)
            high = np.minimum(high, z - np.minimum(h, 0) / rho)
            moved = z - h / (cell.curvature + rho)
            moved = np.where((low <= moved) & (moved <= high), moved, 0.5 * (low + high))
            last, z = z, moved
            if np.abs(z - last).max(initial=0.0) <= _ROOT * self.of_censored.scale:
                break
        return z


def dense_cells(intervals: Intervals, dtype: Any, loss: Loss) -> DenseCells:
    """Return the cells under a loss; that of the hinge takes no loop over censored cells."""
    return _cells(intervals.to_bounds(), dtype, loss, None)


def observed_cells(intervals: Intervals, loss: Loss) -> DenseCells:
    """Return the observed cells alone, in double precision."""
    rows, cols, lower, upper = intervals.triplets()
    places = _Places(rows, cols, intervals.shape)
    return _cells((lower[None], upper[None]), np.float64, loss, places)


def _cells(
    bounds: tuple[NDArray, NDArray], dtype: Any, loss: Loss, places: _Places | None
) -> DenseCells:
    if loss == Hinge():
        return DenseCells(bounds, dtype, places)
    return _CellsUnderLoss(bounds, dtype, loss, places)


def joint_prox(
    cells: DenseCells, limits: Limits, V: NDArray, T: NDArray, rho: float, side: NDArray | None
) -> tuple[NDArray, NDArray]:
    """Return Z = argmin f(Z) + rho/2 |Z - V|^2 + rho/2 |Clip(Z) - T|^2, and Clip(Z).

    The best of three, cell by cell: within the limits, where Clip(Z) = Z, above, and below. A cell
    that is given a ``side`` (see `Limits.side`) stays there if it has a minimum there; otherwise
    cells that have two would jump between them for ever.
    """

    def value(Z: NDArray, image: NDArray) -> NDArray:
        return cells.gradient(Z) ** 2 + rho * ((Z - V) ** 2 + (image - T) ** 2)

    Z = image = limits.clip(cells.prox(0.5 * (V + T), 2 * rho))
    least, free = value(Z, Z), cells.prox(V, rho)
    held = False if side is None else (side == 0) & (limits.side(Z) == 0)
    for limit, beyond, where in ((limits.ceiling, np.maximum, 1), (limits.floor, np.minimum, -1)):
        if not np.isfinite(limit).any():
            continue
        bound = np.broadcast_to(np.where(np.isfinite(limit), limit, Z), Z.shape)
        other = beyond(free, bound)
        at = value(other, bound)
        taken = (at < least) & ~held
        if side is not None:
            taken |= (side == where) & (other != bound)
        taken &= np.isfinite(limit)
        Z, image, least = (
            np.where(taken, *pair) for pair in ((other, Z), (bound, image), (at, least))
        )
    return Z, image


def dot(X: NDArray, Y: NDArray) -> float:
    """Return the inner product of two matrices, summed in double precision."""
    return float(np.einsum("ij,ij->", X, Y, dtype=np.float64))
