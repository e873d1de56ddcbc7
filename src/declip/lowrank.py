"""The fitted matrix: low rank plus offsets, never formed unless a block of it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip import kernels
from declip.svd import SVD, balancing_maps

__all__ = ["GroupOffsets", "LowRank", "squared_norm"]

_STRIP = 4096  # rows widened to double precision at a time


@dataclass(frozen=True, eq=False)
class GroupOffsets:
    """An offset for each group of rows and each column.

    Attributes
    ----------
    index : ndarray of shape (n_rows,)
        The group of each row; -1 for none.
    offsets : ndarray of shape (n_groups + 1, n_cols)
        Theirs; the last row, of those that have no group, is 0.
    """

    index: NDArray[np.int32]
    offsets: NDArray

    def _check_loaded(self) -> None:
        """Refuse groups that were read from a file and that have no offsets."""
        inside = np.all((self.index >= -1) & (self.index < len(self.offsets) - 1))
        if not (inside and np.isfinite(self.offsets).all()):
            raise ValueError("the groups of rows and their offsets do not fit together")

    def at(self, rows: NDArray | slice, cols: NDArray | slice) -> NDArray:
        """Return the offsets of single cells."""
        return self.offsets[self.index[rows], cols]

    def block(self, rows: NDArray | slice, cols: NDArray | slice) -> NDArray:
        """Return the offsets of a block of cells."""
        return self.offsets[self.index[rows]][:, cols]


@dataclass(frozen=True, eq=False)
class LowRank:
    """X = P Q^T, or with offsets X = P Q^T + b 1^T + 1 c^T + mean; those of groups come on top.

    The offsets ride along as one more column, so that one sweep solves for factors and offset
    together: ``A = [P, b]`` and ``B = [Q, c]``.

    Attributes
    ----------
    A : ndarray of shape (n_rows, k) or (n_rows, k + 1)
        Row factors, and row offsets if ``bias``.
    B : ndarray of shape (n_cols, k) or (n_cols, k + 1)
        Column factors, and column offsets if ``bias``.
    mean : float
        Constant added to every cell.
    bias : bool
        Whether the last columns of A and B are offsets.
    groups : GroupOffsets, optional
        Offsets of groups of rows; solvers take them off the cells instead.
    """

    A: NDArray
    B: NDArray
    mean: float = 0.0
    bias: bool = False
    groups: GroupOffsets | None = None

    def __post_init__(self) -> None:
        for name in ("A", "B"):  # the kernels read rows
            if not getattr(self, name).flags.c_contiguous:
                object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    def _check_loaded(self) -> None:
        """Refuse factors that were read from a file and are not those of a matrix."""
        same = self.A.dtype == self.B.dtype and self.A.shape[1:] == self.B.shape[1:]
        if not (same and self.A.ndim == 2 and self.A.dtype.kind == "f" and self.rank >= 0):
            raise ValueError("two factors do not fit together")
        if not (np.isfinite(self.A).all() and np.isfinite(self.B).all()):
            raise ValueError("a factor is not finite")

    @classmethod
    def from_svd(cls, found: SVD, dtype: Any = np.float64) -> LowRank:
        """Return U S V^T as balanced factors; at least one column, of zeros if there is nothing."""
        U, S, V = found
        if len(S) == 0:
            return cls(np.zeros((len(U), 1), dtype), np.zeros((len(V), 1), dtype))
        return cls((U * np.sqrt(S)).astype(dtype), (V * np.sqrt(S)).astype(dtype))

    @classmethod
    def zero(cls, shape: tuple[int, int], dtype: Any = np.float64) -> LowRank:
        """Return the zero matrix, with one column of zeros as factors."""
        return cls(np.zeros((shape[0], 1), dtype), np.zeros((shape[1], 1), dtype))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of X."""
        return len(self.A), len(self.B)

    @property
    def dtype(self) -> np.dtype:
        """Type of the factors."""
        return self.A.dtype

    @property
    def rank(self) -> int:
        """Number of factors k."""
        return self.A.shape[1] - self.bias

    @property
    def P(self) -> NDArray:
        """Row factors."""
        return self.A[:, : self.rank]

    @property
    def Q(self) -> NDArray:
        """Column factors."""
        return self.B[:, : self.rank]

    @property
    def T(self) -> LowRank:
        """The transpose."""
        return LowRank(self.B, self.A, self.mean, self.bias)

    @property
    def row_offset(self) -> NDArray:
        """Offsets b of the rows (zeros without bias)."""
        return self.A[:, -1] if self.bias else np.zeros(len(self.A), self.A.dtype)

    @property
    def col_offset(self) -> NDArray:
        """Offsets c of the columns (zeros without bias)."""
        return self.B[:, -1] if self.bias else np.zeros(len(self.B), self.B.dtype)

    def design(self) -> tuple[NDArray, NDArray]:
        """Return (design, offset) with X[i, j] = design[j] @ A[i] + offset[j]."""
        if not self.bias:
            return self.B, np.full(len(self.B), self.mean, self.B.dtype)
        design = self.B.copy()
        design[:, -1] = 1
        return design, self.B[:, -1] + self.B.dtype.type(self.mean)

    def row_problem(
        self, side: kernels.Side, loss: kernels.Loss, ridge: NDArray | None = None, **drawn: Any
    ) -> kernels.RowProblem:
        """Return the problem of the rows, of which ``side`` holds the cells, at these columns."""
        design, offset = self.design()
        return kernels.RowProblem(side, design, offset, loss, ridge, **drawn)

    def balanced(self) -> tuple[LowRank, NDArray, tuple[NDArray, NDArray]]:
        """Return the same X with P = U sqrt(S) and Q = V sqrt(S), with S and the maps used.

        Among all factorisations of P Q^T this one has the least |P|^2 + |Q|^2, namely twice its
        trace norm.
        """
        S, M, N = balancing_maps(self.P, self.Q)
        return self.mapped(M, N), S, (M, N)

    def centred(self) -> tuple[LowRank, tuple[float, float]]:
        """Return the same X with offsets of mean zero, and what the mean took over from them.

        It has the least |b|^2 + |c|^2 of all that differ only in the mean: a free mean.
        """
        if not self.bias:
            return self, (0.0, 0.0)
        shifts = float(self.row_offset.mean()), float(self.col_offset.mean())
        return self.shifted(shifts), shifts

    def shifted(self, shifts: tuple[float, float]) -> LowRank:
        """Return the same X with these amounts moved from row and column offsets to the mean."""
        if not self.bias:
            return self
        A, B = self.A.copy(), self.B.copy()
        A[:, -1] -= A.dtype.type(shifts[0])
        B[:, -1] -= B.dtype.type(shifts[1])
        return replace(self, A=A, B=B, mean=self.mean + sum(shifts))

    def gather(self) -> LowRank:
        """Return the matrix itself: it is in one place."""
        return self

    def singular_values(self) -> NDArray[np.float64]:
        """Return the singular values of P Q^T, largest first."""
        return balancing_maps(self.P, self.Q)[0]

    def trace_norm(self) -> float:
        """Return the sum of the singular values of P Q^T."""
        return float(self.singular_values().sum())

    def mapped(self, M: NDArray, N: NDArray) -> LowRank:
        """Return the matrix with factors P M and Q N."""
        return replace(self, A=_apply(self.A, M, self.bias), B=_apply(self.B, N, self.bias))

    def toward(self, other: LowRank, t: float) -> LowRank:
        """Return the point self + t (other - self) of the factors."""
        A, B = other.A - self.A, other.B - self.B
        for step, origin in ((A, self.A), (B, self.B)):
            step *= step.dtype.type(t)
            step += origin
        return replace(self, A=A, B=B)

    def moved(self, places: Sequence[NDArray], shape: tuple[int, int]) -> LowRank:
        """Return a matrix of another shape with these rows and columns at ``places``, else 0.

        A place of -1 leaves one out.
        """
        sides = []
        for F, at, size in zip((self.A, self.B), places, shape, strict=True):
            grown = np.zeros((size, F.shape[1]), F.dtype)
            grown[at[at >= 0]] = F[at >= 0]
            sides.append(grown)
        return replace(self, A=sides[0], B=sides[1], groups=None)

    def in_units(self, scale: NDArray, shift: NDArray) -> LowRank:
        """Return the matrix with its column j times ``scale[j]`` plus ``shift[j]``.

        Row offsets, which columns of different scales do not share, become one more factor.
        """
        offset = ((self.col_offset + self.mean) * scale + shift).astype(self.dtype)
        Q, none = self.Q * scale[:, None].astype(self.dtype), np.zeros(len(self.A), self.dtype)
        if not self.bias:
            A, B = [self.P, none], [Q, offset]
        elif np.all(scale == scale[0]):
            A, B = [self.P, self.row_offset * self.dtype.type(scale[0])], [Q, offset]
        else:
            A, B = [self.A, none], [Q, scale.astype(self.dtype), offset]
        groups = self.groups
        if groups is not None:
            groups = replace(groups, offsets=groups.offsets * scale.astype(self.dtype))
        return LowRank(np.column_stack(A), np.column_stack(B), bias=True, groups=groups)

    def astype(self, dtype: Any) -> LowRank:
        """Return the same matrix with factors of another floating type."""
        groups = self.groups
        if groups is not None:
            groups = replace(groups, offsets=groups.offsets.astype(dtype))
        return replace(self, A=self.A.astype(dtype), B=self.B.astype(dtype), groups=groups)

    def squared_norm(self) -> float:
        """Return |A|^2 + |B|^2, offsets included."""
        return squared_norm(self.A) + squared_norm(self.B)

    def predict(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> NDArray:
        """Return X at the cells (rows[c], cols[c])."""
        P, Q = np.ascontiguousarray(self.P), np.ascontiguousarray(self.Q)
        x = kernels.predict(rows, cols, P, Q, threads=threads)
        x += self.A.dtype.type(self.mean)
        if self.bias:
            x += self.row_offset[rows] + self.col_offset[cols]
        if self.groups is not None:
            x += self.groups.at(rows, cols)
        return x

    def block(
        self, rows: NDArray | slice = slice(None), cols: NDArray | slice = slice(None)
    ) -> NDArray:
        """Return the dense block X[rows][:, cols]."""
        x = self.P[rows] @ self.Q[cols].T
        if self.mean != 0:
            x += self.A.dtype.type(self.mean)
        if self.bias:
            x += self.row_offset[rows][:, None]
            x += self.col_offset[cols]
        if self.groups is not None:
            x += self.groups.block(rows, cols)
        return x


def squared_norm(F: NDArray) -> float:
    """Return |F|^2, summed in double precision."""
    strips = (F[i : i + _STRIP].astype(np.float64) for i in range(0, len(F), _STRIP))
    return sum(float(np.vdot(strip, strip)) for strip in strips)


def _apply(A: NDArray, M: NDArray, bias: bool) -> NDArray:
    if not bias:
        return A @ M.astype(A.dtype)
    out = A.copy()
    np.matmul(A[:, :-1], M.astype(A.dtype), out=out[:, :-1])
    return out
