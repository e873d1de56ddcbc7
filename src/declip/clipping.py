"""Clip(X) of a low-rank X, as an operator: never formed as a whole for a large table.

Most columns of a large table lie almost wholly within their limits, or almost wholly beyond one of
them. Clip(X) is then X in the former columns and the limit in the latter, which is low rank, but
for the few cells that differ from their column, which are listed. Columns of which many cells
differ are mixed: they are made strip by strip, once for each product. Where limits vary by cell,
all columns are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from declip.kernels import predict
from declip.lowrank import LowRank
from declip.svd import SVD, SparsePlusLowRank, fits_dense

__all__ = ["Clipping", "Limits", "clipping"]

_STRIP = 1 << 21  # cells of a strip: few strips, since each adds to a product of all columns
_SAMPLE = 256  # rows that show where the columns lie
_SPARSE_UP_TO = 0.03  # share of a column that differs up to which its cells are listed one by one
_LISTED_UP_TO = 0.02  # and of all cells, so that the lists fit in memory
_MIXED = 2  # the side of a column that has none


@dataclass(frozen=True)
class Limits:
    """Floor and ceiling of every cell, observed or not: arrays that broadcast to the table."""

    floor: NDArray
    ceiling: NDArray

    def rows(self, which: slice | NDArray) -> Limits:
        """Return the limits of some rows."""
        return Limits(*(F if len(F) == 1 else F[which] for F in (self.floor, self.ceiling)))

    def astype(self, dtype: DTypeLike) -> Limits:
        """Return the limits in another precision."""
        return Limits(self.floor.astype(dtype, copy=False), self.ceiling.astype(dtype, copy=False))

    def clip(self, X: NDArray) -> NDArray:
        """Return the projection of X onto the limits."""
        if np.isneginf(self.floor).all():
            return np.minimum(X, self.ceiling)
        return np.minimum(np.maximum(X, self.floor), self.ceiling)

    def side(self, X: NDArray) -> NDArray[np.int8]:
        """Return 1 at or above the ceiling, -1 at or below the floor, 0 strictly within."""
        side = (self.ceiling <= X).view(np.int8)
        return side if np.isneginf(self.floor).all() else side - (self.floor >= X).view(np.int8)

    def columns(self, which: NDArray) -> Limits:
        """Return the limits of some columns."""
        ends = (F if F.shape[1] == 1 else F[:, which] for F in (self.floor, self.ceiling))
        return Limits(*ends)

    def separable(self, shape: tuple[int, int]) -> bool:
        """Return whether both limits vary along one direction at most."""
        return all(min(F.shape) == 1 or 1 in shape for F in (self.floor, self.ceiling))


class Clipping(Protocol):
    """Clip(X), and the subgradient of its trace norm, as operators."""

    @property
    def X(self) -> LowRank:
        """The matrix."""

    def clipped(self) -> LinearOperator:
        """Return Clip(X)."""

    def moved(self, clip: SVD, weight: float, parts: tuple) -> LinearOperator:
        """Return X - weight W * U V^T + parts, with W the cells strictly within their limits."""


def clipping(X: LowRank, limits: Limits, threads: int = 1) -> Clipping:
    """Return Clip(X) in the form that suits it."""
    if not fits_dense(X.shape) and limits.separable(X.shape):
        sides = _sides_of_columns(X, limits)
        plain = np.flatnonzero(sides != _MIXED)
        found = _differing(X, limits, sides, plain) if len(plain) else None
        if found is not None:
            return _ByColumn(X, limits, sides, *found, threads)
    return _InStrips(X, limits)


def _strips(shape: tuple[int, int]) -> Iterator[slice]:
    step = max(1, _STRIP // shape[1])
    return (slice(i, min(i + step, shape[0])) for i in range(0, shape[0], step))


def _sides_of_columns(X: LowRank, limits: Limits) -> NDArray[np.int8]:
    """Return the side on which almost all cells of each column lie, or `_MIXED`.

    By a sample, rows at equal distances.
    """
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _SAMPLE).astype(int))
    side = limits.rows(rows).side(X.block(rows))
    counts = np.array([(side == s).sum(axis=0) for s in (0, 1, -1)])
    which = np.array([0, 1, -1], np.int8)[counts.argmax(axis=0)]
    mixed = 1 - counts.max(axis=0) / len(rows) > _SPARSE_UP_TO
    return np.where(mixed, np.int8(_MIXED), which)


def _differing(
    X: LowRank, limits: Limits, sides: NDArray[np.int8], among: NDArray
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray] | None:
    """Return rows, columns and values of the cells that differ from their columns, if few do.

    Among some of the columns, those with a side.
    """
    X, limits, sides = _columns(X, among), limits.columns(among), sides[among]
    room, found = _LISTED_UP_TO * X.shape[0] * X.shape[1], []
    for strip in _strips(X.shape):
        x = X.block(strip)
        cells = np.flatnonzero(limits.rows(strip).side(x) != sides)
        rows, cols = np.divmod(cells, len(among))
        own = (rows + strip.start).astype(np.int32), among[cols].astype(np.int32), x.flat[cells]
        found.append(own)
        room -= len(cells)
        if room < 0:
            return None
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))  # type: ignore[return-value]


def _columns(X: LowRank, which: NDArray) -> LowRank:
    """Return some columns of a matrix of factors alone."""
    return LowRank(X.A, X.B[which])


@dataclass(frozen=True)
class _ByColumn:
    """Columns within their limits or beyond them, the cells that differ, and mixed columns."""

    X: LowRank
    limits: Limits
    sides: NDArray[np.int8]  # of the columns
    rows: NDArray[np.int32]  # of the cells that differ, row by row
    cols: NDArray[np.int32]
    x: NDArray  # their values
    threads: int

    def clipped(self) -> LinearOperator:
        """Return Clip(X): by column X or a limit, plus Clip(x) less that in the listed cells."""
        at, own = self._limits(), self.sides[self.cols]
        base = np.select([own > 0, own < 0], [at.ceiling, at.floor], self.x)
        factors = [
            (self.X.A, np.where(self.sides[:, None] == 0, self.X.B, 0)),
            _outer(self.limits.ceiling, self.X, self.sides == 1),
            _outer(self.limits.floor, self.X, self.sides == -1),
        ]
        A, B = (np.hstack(parts) for parts in zip(*factors, strict=True))
        plain = SparsePlusLowRank(A, B, (self._cells(at.clip(self.x) - base),))
        return self._with_mixed(plain, lambda mixed: mixed.clipped())

    def moved(self, clip: SVD, weight: float, parts: tuple) -> LinearOperator:
        """Return X - weight U V^T in the columns within, with that mended in the listed cells."""
        dtype, inner = self.X.A.dtype, self.sides == 0
        U, V = (-weight * clip.U).astype(dtype), np.ascontiguousarray(clip.V, dtype)
        change = predict(self.rows, self.cols, U, V, threads=self.threads)
        change *= (self._limits().side(self.x) == 0) - inner[self.cols].astype(dtype)
        own = np.where(self.sides[:, None] == _MIXED, 0, self.X.B)
        A, B = np.hstack([self.X.A, U]), np.hstack([own, np.where(inner[:, None], V, 0)])
        plain = SparsePlusLowRank(A, B, (*parts, self._cells(change)))
        of_mixed = SVD(clip.U, clip.S, clip.V[self.sides == _MIXED])
        return self._with_mixed(plain, lambda mixed: mixed.moved(of_mixed, weight, ()))

    def _with_mixed(
        self, plain: SparsePlusLowRank, of: Callable[[_InStrips], _Strips]
    ) -> LinearOperator:
        """Return the plain columns with the mixed ones put in."""
        which = np.flatnonzero(self.sides == _MIXED)
        if len(which) == 0:
            return plain
        mixed = _InStrips(_columns(self.X, which), self.limits.columns(which))
        return _Strips(plain.shape, of(mixed).strip, plain.dtype, (plain,), which)

    def _limits(self) -> Limits:
        return Limits(
            *(
                np.broadcast_to(F, self.X.shape)[self.rows, self.cols]
                for F in (self.limits.floor, self.limits.ceiling)
            )
        )

    def _cells(self, values: NDArray) -> sparse.csr_array:
        ptr = np.searchsorted(self.rows, np.arange(self.X.shape[0] + 1))
        return sparse.csr_array((values, self.cols, ptr), shape=self.X.shape)


def _outer(limit: NDArray, X: LowRank, cols: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """Return u, v: u v^T is the limit in some columns, where it is finite, and 0 in others."""
    limit = np.where(np.isfinite(limit), limit, 0).astype(X.A.dtype)
    u, v = np.ones((X.shape[0], 1), X.A.dtype), cols[:, None].astype(X.A.dtype)
    return (u * limit, v) if limit.shape[1] == 1 else (u, v * limit.T)


@dataclass(frozen=True)
class _InStrips:
    """Strips of rows, made anew for each product."""

    X: LowRank
    limits: Limits

    def clipped(self) -> _Strips:
        """Return Clip(X)."""
        return _Strips(
            self.X.shape,
            lambda rows: self.limits.rows(rows).clip(self.X.block(rows)),
            self.X.A.dtype,
        )

    def moved(self, clip: SVD, weight: float, parts: tuple) -> _Strips:
        """Return X - weight W * U V^T + parts."""
        dtype = self.X.A.dtype
        U, V = (-weight * clip.U).astype(dtype), clip.V.astype(dtype, copy=False)

        def strip(rows: slice) -> NDArray:
            x = self.X.block(rows)
            if weight == 0:
                return x
            change = U[rows] @ V.T
            change *= self.limits.rows(rows).side(x) == 0
            x += change
            return x

        return _Strips(self.X.shape, strip, dtype, parts)


class _Strips(LinearOperator):
    """A matrix known by its strips of rows, of all columns or some, plus others of its shape."""

    def __init__(
        self,
        shape: tuple[int, int],
        strip: Callable[[slice], NDArray],
        dtype: np.dtype,
        others: Iterable[Any] = (),
        cols: NDArray | slice = slice(None),
    ) -> None:
        super().__init__(dtype, shape)
        self.strip, self.others, self.cols = strip, tuple(others), cols

    def _strips(self) -> Iterator[tuple[slice, NDArray]]:
        width = self.shape[1] if isinstance(self.cols, slice) else len(self.cols)
        return ((rows, self.strip(rows)) for rows in _strips((self.shape[0], width)))

    def gram_product(self, V: NDArray) -> tuple[NDArray, NDArray]:
        """Return Y = A V and A^T Y; each strip is made once."""
        V = V.astype(self.dtype, copy=False)
        Y = sum((S @ V for S in self.others), start=np.zeros((self.shape[0], V.shape[1]), V.dtype))
        V = V[self.cols]
        Zt = np.zeros(V.T.shape, V.dtype)
        for rows, strip in self._strips():
            Y[rows] += strip @ V
            Zt += Y[rows].T @ strip  # quicker than strip^T Y: the strip is read along its rows
        Z = sum(
            (S.T @ Y for S in self.others), start=np.zeros((self.shape[1], Zt.shape[0]), V.dtype)
        )
        Z[self.cols] += Zt.T
        return Y, Z

    def _matmat(self, V: NDArray) -> NDArray:
        return self.gram_product(V)[0]

    def toarray(self) -> NDArray:
        dense = np.zeros(self.shape, self.dtype)
        dense[:, self.cols] = np.concatenate([strip for _, strip in self._strips()])
        return sum((S.toarray() for S in self.others), start=dense)
