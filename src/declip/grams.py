"""Gram matrices, one for each row: sums of f_j f_j^T over the cells of the row.

They are made for blocks of rows by one sparse product, with the products f_ja f_jb (a <= b) of the
features as its right-hand side.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip import kernels
from declip.cells import Cells
from declip.validation import check_memory

__all__ = ["censored_cells", "exact_cells", "extreme_eigenvalues", "freedom", "leverage"]

_BLOCK = 1 << 22  # numbers in the matrices of a block of rows


def exact_cells(side: Cells, n_cols: int) -> sparse.csr_array:
    """Return the exact cells of a table by rows, each with the weight 1."""
    return _ones(side.exact_idx, side.exact_ptr, (side.n_rows, n_cols))


def censored_cells(side: Cells, n_cols: int) -> sparse.csr_array:
    """Return the censored cells of a table by rows, each with the weight 1."""
    return _ones(side.censored_idx, side.censored_ptr, (side.n_rows, n_cols))


def _ones(idx: NDArray, ptr: NDArray, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(idx)), idx, ptr), shape=shape)


def extreme_eigenvalues(
    weights: sparse.csr_array, F: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, for each row, the smallest and largest eigenvalue of sum_j w_ij f_j f_j^T."""
    ends = np.zeros((2, weights.shape[0]))
    for rows, G in _blocks(weights, F):
        ends[:, rows] = np.linalg.eigvalsh(G)[:, [0, -1]].T
    smallest, largest = np.maximum(ends, 0.0)
    return smallest, largest


def leverage(
    weights: sparse.csr_array, F: NDArray, ridge: NDArray, rows: NDArray, cols: NDArray
) -> NDArray[np.float64]:
    """Return f_j^T H_i^-1 f_j at cells (i, j), with H_i = sum_j w_ij f_j f_j^T + diag(ridge).

    The ridge is one for all rows, or one for each.
    """
    asked, which = np.unique(rows, return_inverse=True)
    ridges = np.broadcast_to(ridge, (weights.shape[0], F.shape[1]))[asked]
    order = np.argsort(which, kind="stable")
    which, cols = which[order], cols[order].astype(np.int32)
    found = np.empty(len(rows))
    pairs = _pairs(F)
    for block, G in _blocks(weights[asked], F):
        cells = slice(*np.searchsorted(which, [block.start, block.stop]))
        inverse = _upper(np.linalg.inv(G + ridges[block][:, :, None] * np.eye(F.shape[1])))
        local = (which[cells] - block.start).astype(np.int32)
        found[order[cells]] = kernels.predict(local, cols[cells], inverse, pairs)
    return found


def freedom(weights: sparse.csr_array, F: NDArray, ridge: NDArray) -> float:
    """Return the degrees of freedom that the rows take: the sum of tr(H_i^-1 (H_i - ridge))."""
    shrunk = (np.linalg.solve(G + np.diag(ridge), G) for _, G in _blocks(weights, F))
    return sum(float(S.trace(axis1=1, axis2=2).sum()) for S in shrunk)


def _blocks(weights: sparse.csr_array, F: NDArray) -> Iterator[tuple[slice, NDArray]]:
    k = F.shape[1]
    pairs = _pairs(F)
    a, b = np.triu_indices(k)
    step = max(1, _BLOCK // k**2)
    for start in range(0, weights.shape[0], step):
        rows = slice(start, min(start + step, weights.shape[0]))
        sums = weights[rows] @ pairs
        G = np.empty((len(sums), k, k))
        G[:, a, b] = sums
        G[:, b, a] = sums
        yield rows, G


def _pairs(F: NDArray) -> NDArray:
    """Return the products f_a f_b, a <= b, of the features of each column."""
    a, b = np.triu_indices(F.shape[1])
    what = "The uncertainty of cells"
    check_memory((len(F), len(a)), np.float64, what, "fit fewer factors.")
    return np.ascontiguousarray(F[:, a] * F[:, b])


def _upper(H: NDArray) -> NDArray:
    """Return the upper triangles, such that their product with `_pairs` is f^T H f."""
    a, b = np.triu_indices(H.shape[1])
    return np.ascontiguousarray(H[:, a, b] * np.where(a == b, 1.0, 2.0))
