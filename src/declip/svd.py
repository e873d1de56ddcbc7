"""The only door to singular values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds

__all__ = ["balancing_maps", "operator_norm", "truncated_svd"]

_DENSE_UP_TO = 64  # below this side length a dense SVD is quicker and exact


def balancing_maps(P: NDArray, Q: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return (S, M, N) such that P M and Q N are U sqrt(S) and V sqrt(S), with P Q^T = U S V^T.

    With the thin QR factors R_P, R_Q and R_P R_Q^T = U' S V'^T: M = R_Q^T V' S^-1/2, N = R_P^T U'
    S^-1/2. Directions without weight (S = 0) are mapped to zero.
    """
    R_P, R_Q = (np.asarray(np.linalg.qr(F.astype(np.float64), mode="r")) for F in (P, Q))
    U, S, Vt = np.linalg.svd(R_P @ R_Q.T, full_matrices=False)
    kept = S > S[0] * 1e-13
    weight = np.zeros_like(S)
    weight[kept] = S[kept] ** -0.5
    return np.where(kept, S, 0.0), R_Q.T @ (Vt.T * weight), R_P.T @ (U * weight)


def truncated_svd(A: Any, k: int, random_state: Any = None) -> tuple[NDArray, NDArray, NDArray]:
    """Return the k largest singular triplets (U, S, V) of a matrix or LinearOperator."""
    if min(A.shape) <= max(_DENSE_UP_TO, k):
        U, S, Vt = np.linalg.svd(_to_dense(A), full_matrices=False)
        return U[:, :k], S[:k], Vt[:k].T
    start = np.random.default_rng(random_state).standard_normal(min(A.shape))
    U, S, Vt = svds(A, k=k, v0=start, solver="arpack", maxiter=100 * min(A.shape))
    order = np.argsort(-S)
    return U[:, order], S[order], Vt[order].T


def operator_norm(A: Any) -> float:
    """Return the largest singular value of an array, sparse matrix or LinearOperator."""
    if 0 in A.shape:
        return 0.0
    return float(truncated_svd(A, 1, 0)[1][0])


def _to_dense(A: Any) -> NDArray:
    if isinstance(A, LinearOperator):
        return A @ np.eye(A.shape[1]) if A.shape[1] <= A.shape[0] else (A.T @ np.eye(A.shape[0])).T
    return A.toarray() if hasattr(A, "toarray") else np.asarray(A)
