"""A matrix to be looked at, however it is given: in full, or by its factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.diagnostics.parts import Matrix
from declip.diagnostics.tangent import NEGLIGIBLE
from declip.lowrank import LowRank
from declip.svd import SVD, product_svd, truncated_svd
from declip.validation import check_same_shape

__all__ = ["as_matrix", "matrix_svd"]

_ROUNDING = 1e-10  # singular values of a true matrix below this share of the first are zero


class _Dense:
    """A matrix given in full."""

    def __init__(self, values: NDArray) -> None:
        self.values, self.shape = values, values.shape

    def block(self, rows: slice) -> NDArray:
        return self.values[rows]


def as_matrix(truth: Any, shape: tuple[int, int]) -> Matrix:
    """Return a matrix of the shape of a table, from an array, a LowRank or a pair of factors."""
    if isinstance(truth, tuple):
        P, Q = (np.asarray(F, np.float64) for F in truth)
        truth = LowRank(P, Q)
    matrix = truth if isinstance(truth, LowRank) else _Dense(np.asarray(truth, np.float64))
    check_same_shape("truth", matrix.shape, shape, "the table")
    return matrix


def matrix_svd(matrix: Matrix) -> SVD:
    """Return the singular vectors of a matrix, without those that are only rounding."""
    if isinstance(matrix, LowRank):
        return product_svd(matrix.P, matrix.Q, NEGLIGIBLE)
    found = truncated_svd(matrix.block(slice(None)), min(matrix.shape))
    kept = found.S > _ROUNDING * found.S[:1]
    return SVD(found.U[:, kept], found.S[kept], found.V[:, kept])
