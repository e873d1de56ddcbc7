"""The only door to singular values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from threading import Thread, current_thread, main_thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, svds

__all__ = [
    "SVD",
    "SparsePlusLowRank",
    "balancing_maps",
    "exceed",
    "fits_dense",
    "leading",
    "maps_of_roots",
    "nuclear_norm",
    "operator_norm",
    "product_svd",
    "root",
    "shrink",
    "shrink_near",
    "trace_norm",
    "truncated_svd",
]

_EXACT_UP_TO = 128  # smaller side up to which a full SVD is as quick as anything
_DENSE_UP_TO = 4_000_000  # cells up to which a matrix is worked on as a dense one
_NARROW = (
    8,
    500,
)  # times fewer triplets than the smaller side, from this on: power steps are quicker
_POWER_STEPS = 2  # passes of a warm-started subspace iteration
_COLD_STEPS = 5  # and of one that starts at random
_LONG_FROM = 512  # smaller side from which LAPACK takes a good part of a second
_SPARE = 8  # directions carried beyond those that are asked for
_LANCZOS = 40  # vectors for a few triplets; with fewer, equal singular values hold it up
_SINGLE_EPS = float(np.finfo(np.float32).eps)
_SINGLE_ERROR = 0.01  # of the threshold: what single precision may add to a singular value
_SQUARES = 1e-8  # least over largest square from which eigenvectors of a Gram matrix are precise
_WELL_POSED = 0.05  # least diagonal of a Cholesky factor from which it orthogonalises well
_STRIP = 4096  # rows widened to double precision at a time


class SVD(NamedTuple):
    """Singular triplets: U diag(S) V^T, largest first."""

    U: NDArray
    S: NDArray
    V: NDArray


class SparsePlusLowRank(LinearOperator):
    """A B^T plus sparse matrices, never formed."""

    def __init__(self, A: NDArray, B: NDArray, sparse_parts: Iterable[Any] = ()) -> None:
        self.A, self.B, self.parts = A, B, list(sparse_parts)
        super().__init__(np.result_type(A, B, *(S.dtype for S in self.parts)), (len(A), len(B)))

    def _matmat(self, V: NDArray) -> NDArray:
        V = V.astype(self.dtype, copy=False)
        return sum((S @ V for S in self.parts), start=self.A @ (self.B.T @ V))

    def _rmatmat(self, U: NDArray) -> NDArray:
        U = U.astype(self.dtype, copy=False)
        return sum((S.T @ U for S in self.parts), start=self.B @ (self.A.T @ U))

    def _matvec(self, v: NDArray) -> NDArray:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _rmatvec(self, u: NDArray) -> NDArray:
        return self._rmatmat(u.reshape(-1, 1)).ravel()

    def toarray(self) -> NDArray:
        """Return the dense matrix."""
        return sum((S.toarray() for S in self.parts), start=self.A @ self.B.T)


def balancing_maps(P: NDArray, Q: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return (S, M, N) such that P M and Q N are U sqrt(S) and V sqrt(S), with P Q^T = U S V^T.

    Directions without weight (S = 0) are mapped to zero.
    """
    return maps_of_roots(root(P), root(Q))


def maps_of_roots(R_P: NDArray, R_Q: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return the balancing maps of factors that are known by their roots.

    With R_P^T R_P = P^T P, R_Q likewise, and R_P R_Q^T = U' S V'^T: M = R_Q^T V' S^-1/2,
    N = R_P^T U' S^-1/2.
    """
    U, S, Vt = np.linalg.svd(R_P @ R_Q.T, full_matrices=False)
    kept = S > S[:1] * 1e-13
    weight = np.zeros_like(S)
    weight[kept] = S[kept] ** -0.5
    missing = R_P.shape[1] - len(S)  # more factors than rows or columns
    M, N = (
        np.pad(F, ((0, 0), (0, missing))) for F in (R_Q.T @ (Vt.T * weight), R_P.T @ (U * weight))
    )
    return np.pad(np.where(kept, S, 0.0), (0, missing)), M, N


def root(F: NDArray) -> NDArray:
    """Return R with R^T R = F^T F, to the precision of F."""
    if F.dtype == np.float64 or len(F) < F.shape[1]:
        return np.asarray(np.linalg.qr(F.astype(np.float64), mode="r"))
    strips = (F[i : i + _STRIP].astype(np.float64) for i in range(0, len(F), _STRIP))
    # The squares err by 1e-16 of the largest: 1e-8 of F.
    squares, V = np.linalg.eigh(sum(strip.T @ strip for strip in strips))
    return np.sqrt(np.maximum(squares, 0.0))[:, None] * V.T


def product_svd(P: NDArray, Q: NDArray, tol: float = 1e-13) -> SVD:
    """Return the singular triplets of P Q^T that exceed this share of the largest."""
    (basis_P, R_P), (basis_Q, R_Q) = (np.linalg.qr(F.astype(np.float64)) for F in (P, Q))
    U, S, Vt = np.linalg.svd(R_P @ R_Q.T, full_matrices=False)
    kept = S > S[:1] * tol
    return SVD(basis_P @ U[:, kept], S[kept], basis_Q @ Vt[kept].T)


def truncated_svd(A: Any, k: int, random_state: Any = None, tol: float = 1e-5) -> SVD:
    """Return the k largest singular triplets of a matrix or LinearOperator.

    The relative error of the squared singular values is at most ``tol`` squared, and that of
    singular values that stand apart much smaller.
    """
    if min(A.shape) <= k or (min(A.shape) <= _EXACT_UP_TO and fits_dense(A.shape)):
        return _dense_svd(_to_dense(A), k)
    rng = np.random.default_rng(random_state)
    size = float(np.abs(A @ rng.standard_normal((A.shape[1], 1))).max())
    if size == 0:  # A = 0, which ARPACK does not take
        return SVD(np.eye(A.shape[0], k), np.zeros(k), np.eye(A.shape[1], k))
    start = rng.standard_normal(min(A.shape))
    # ARPACK works with the squares of the singular values: keep them near 1.
    scaled = A * (1 / size)
    width = _LANCZOS if 2 * k < _LANCZOS < min(A.shape) else None
    how = {"v0": start, "ncv": width, "maxiter": 100 * min(A.shape), "tol": tol}
    try:
        U, S, Vt = svds(scaled, k=k, **how)
    except ArpackNoConvergence:  # singular values too close to each other to be separated
        return truncated_svd(A, k, random_state, 10 * tol)
    order = np.argsort(-S)
    return SVD(U[:, order], size * S[order], Vt[order].T)


def operator_norm(A: Any) -> float:
    """Return the largest singular value of a matrix or LinearOperator."""
    if 0 in A.shape:
        return 0.0
    if min(A.shape) < _LONG_FROM and fits_dense(A.shape):
        return _dense_norm(_to_dense(A).astype(np.float64))
    return float(truncated_svd(A, 1, 0).S[0])


def _dense_norm(A: NDArray[np.float64]) -> float:
    """Return the root of the largest eigenvalue of the smaller Gram matrix."""
    size = float(np.abs(A).max())
    if size == 0:
        return 0.0
    A = (A if A.shape[0] <= A.shape[1] else A.T) / size  # squares neither overflow nor vanish
    return size * float(np.sqrt(np.linalg.eigvalsh(A @ A.T)[-1]))


def trace_norm(A: SparsePlusLowRank, low_rank: float, rest: NDArray) -> float:
    """Return the trace norm of A, or for a large one an upper bound.

    Parameters
    ----------
    A : SparsePlusLowRank
        The matrix.
    low_rank : float
        Trace norm of its low-rank part.
    rest : ndarray
        The values of its sparse part, whose trace norm is at most sqrt(smaller side) |rest|.
    """
    if fits_dense(A.shape):
        return nuclear_norm(A.toarray())
    return low_rank + np.sqrt(min(A.shape)) * float(np.linalg.norm(rest))


def nuclear_norm(A: NDArray) -> float:
    """Return the trace norm of a dense matrix."""
    return float(_aside(lambda: np.linalg.norm(A, "nuc"), A.shape))


def fits_dense(shape: tuple[int, int]) -> bool:
    """Return whether a matrix is small enough to be held as a whole."""
    return shape[0] * shape[1] <= _DENSE_UP_TO


def _is_narrow(shape: tuple[int, int], k: int | None) -> bool:
    """Return whether k triplets are so few that a dense decomposition would be wasteful."""
    times, side = _NARROW
    return k is not None and min(shape) >= side and times * k < min(shape)


def shrink(
    A: Any,
    threshold: float,
    warm: NDArray | None = None,
    max_rank: int | None = None,
    warm_steps: int = _POWER_STEPS,
) -> SVD:
    """Return the singular triplets above a threshold, lowered by it: the prox of the trace norm.

    Small matrices are done densely. For large ones, and for few triplets, the subspace is found by
    a few power steps from ``warm`` (n_cols x r, usually the last result), widened until a singular
    value falls below the threshold.

    Parameters
    ----------
    A : array, sparse matrix or LinearOperator
        The matrix.
    threshold : float
        What is taken off each singular value.
    warm : ndarray, optional
        Right singular vectors to start from.
    max_rank : int, optional
        Keep so many at most.
    warm_steps : int
        Power steps from ``warm``.
    """
    most = min(*A.shape, max_rank or min(A.shape))
    if fits_dense(A.shape) and not _is_narrow(A.shape, max_rank):
        found = _above(_to_dense(A), threshold)
    else:
        found = _subspace_above(A, threshold, warm, most, warm_steps)
    kept = min(int(exceed(found.S, threshold).sum()), most)
    return SVD(found.U[:, :kept], found.S[:kept] - threshold, found.V[:, :kept])


def shrink_near(A: NDArray, threshold: float, basis: NDArray | None) -> tuple[SVD, NDArray]:
    """Return `shrink` of a dense matrix by one power step from a basis, and the basis reached.

    Along a sequence of matrices that converge, the triplets converge too. The basis is wider than
    the result, by a few directions that may come to exceed the threshold. A matrix that is small,
    or of which most triplets are above the threshold, is decomposed as a whole.

    Parameters
    ----------
    A : ndarray
        The matrix.
    threshold : float
        What is taken off each singular value.
    basis : ndarray, optional
        Right singular vectors of the last one.
    """
    V = _widened(A, np.empty((A.shape[1], 0), A.dtype)) if basis is None else basis
    steps = _COLD_STEPS if basis is None else 1
    while min(A.shape) > max(_EXACT_UP_TO, 2 * V.shape[1]):
        found = _power_steps(A, V, steps)
        if found.S[-1] <= threshold:
            kept = int(exceed(found.S, threshold).sum())
            result = SVD(found.U[:, :kept], found.S[:kept] - threshold, found.V[:, :kept])
            return result, np.ascontiguousarray(found.V[:, : kept + max(_SPARE, kept // 5)])
        V, steps = _widened(A, found.V), 1
    result = (A.dtype == np.float32 and _single_shrink(A, threshold)) or shrink(A, threshold)
    return result, np.ascontiguousarray(result.V)


def _single_shrink(A: NDArray, threshold: float) -> SVD | None:
    """Return `shrink` by a Gram matrix in single precision, None if that would not be enough.

    The leading triplet is taken out first: the error of a singular value s is eps |A|^2 / s, and
    the leading one of most tables is many times the second.
    """
    if A.shape[0] > A.shape[1]:
        found = _single_shrink(A.T, threshold)
        return found and SVD(found.V, found.S, found.U)
    if len(A) <= _EXACT_UP_TO:
        return None
    u, v, first = _leading_triplet(A)
    rest = A - np.outer(first * u, v)
    squares, U = _aside(lambda: eigh(rest @ rest.T, driver="evd", check_finite=False), A.shape)
    unsure = max(np.linalg.norm(rest @ v), _SINGLE_EPS * squares[-1] / (threshold or 1e-30))
    if first <= threshold or unsure > _SINGLE_ERROR * threshold:
        return None
    kept = np.flatnonzero(squares > threshold**2)[::-1]
    U, S = U[:, kept], np.sqrt(squares[kept])
    V = (rest.T @ U) / S
    return SVD(np.column_stack([u, U]), np.append(first, S) - threshold, np.column_stack([v, V]))


def _leading_triplet(A: NDArray) -> tuple[NDArray, NDArray, Any]:
    u = A.sum(axis=1)
    for _ in range(_POWER_STEPS + 1):
        v = A.T @ u
        v /= np.linalg.norm(v) or 1
        u = A @ v
        first = np.linalg.norm(u)
        u /= first or 1
    v = A.T @ u
    first = np.linalg.norm(v)
    return u, v / (first or 1), first


def _widened(A: NDArray, V: NDArray) -> NDArray:
    """Return V with half as many directions more, or a few, at random."""
    width = min(V.shape[1] + max(_SPARE, V.shape[1] // 2), *A.shape)
    fresh = np.random.default_rng(0).standard_normal((A.shape[1], width - V.shape[1]))
    return np.column_stack([V, fresh.astype(A.dtype)])


def exceed(S: NDArray, threshold: float) -> NDArray[np.bool_]:
    """Say which singular values exceed a threshold, and not by rounding alone."""
    return S > threshold * (1 + 1e-12)


def leading(
    A: Any, k: int | None, warm: NDArray | None = None, warm_steps: int = _POWER_STEPS
) -> SVD:
    """Return the k leading singular triplets: all by default and for a small matrix.

    A large one, and one of which few are asked for, is approximated by a few power steps from
    ``warm``.
    """
    if fits_dense(A.shape) and not _is_narrow(A.shape, k):
        return _gram_svd(_to_dense(A), 1e-7)
    V = np.empty((A.shape[1], 0)) if warm is None else warm
    width = min((k or min(A.shape)) + _SPARE, *A.shape)
    fresh = np.random.default_rng(0).standard_normal((A.shape[1], max(width - V.shape[1], 0)))
    steps = _COLD_STEPS if warm is None else warm_steps
    found = _power_steps(A, np.column_stack([V, fresh])[:, :width], steps)
    return SVD(found.U[:, :k], found.S[:k], found.V[:, :k])


def _dense_svd(A: NDArray, k: int) -> SVD:
    U, S, Vt = _aside(lambda: np.linalg.svd(A, full_matrices=False), A.shape)
    return SVD(U[:, :k], S[:k], Vt[:k].T)


def _aside(work: Callable[[], Any], shape: tuple[int, ...]) -> Any:
    """Return the result of LAPACK, of large matrices from a thread, so that Ctrl-C need not wait.

    An interrupted call is left to end by itself: it writes to nothing that anyone still reads. The
    interpreter waits for it before it exits, since LAPACK must not run while memory is taken down.
    """
    if min(shape) < _LONG_FROM or current_thread() is not main_thread():
        return work()
    result: Future = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, daemon=False).start()
    return result.result()


def _above(A: NDArray, threshold: float) -> SVD:
    """Return the triplets of a dense matrix above a threshold, and perhaps some more."""
    if min(A.shape) > _EXACT_UP_TO:
        found = _gram_svd(A, 1e-5)
        # Were the threshold smaller, triplets that matter might have been left out.
        if len(found.S) == 0 or threshold >= 1e-5 * found.S[0]:
            return found
    return _dense_svd(A, min(A.shape))


def _gram_svd(A: NDArray, share: float) -> SVD:
    """Return the triplets of a dense matrix above a share of the largest.

    From the eigenvectors of the smaller Gram matrix, several times quicker than an SVD. The error
    of a singular value s is eps |A|^2 / s, with the eps of double precision also for a matrix in
    single precision, whose squares single precision could not hold.
    """
    if A.shape[0] > A.shape[1]:
        U, S, V = _gram_svd(A.T, share)
        return SVD(V, S, U)
    if len(A) <= _EXACT_UP_TO:
        U, S, V = _dense_svd(A, len(A))
        k = int((S > share * S[0]).sum())
        return SVD(U[:, :k], S[:k], V[:, :k])
    wide = A.astype(np.float64, copy=False)
    squares, U = _aside(lambda: np.linalg.eigh(wide @ wide.T), A.shape)
    kept = np.flatnonzero(squares > max(squares[-1], 0.0) * share**2)[::-1]
    U, S = U[:, kept], np.sqrt(squares[kept])
    V = (wide.T @ U) / S
    return SVD(U.astype(A.dtype, copy=False), S, V.astype(A.dtype, copy=False))


def _subspace_above(
    A: Any, threshold: float, warm: NDArray | None, most: int, warm_steps: int
) -> SVD:
    rng = np.random.default_rng(0)
    V = np.empty((A.shape[1], 0)) if warm is None else warm
    while True:
        width = min(V.shape[1] + max(_SPARE, V.shape[1] // 2), *A.shape)
        fresh = rng.standard_normal((A.shape[1], width - V.shape[1]))
        steps = warm_steps if V.size else _COLD_STEPS
        found = _power_steps(A, np.column_stack([V, fresh]), steps)
        if found.S[-1] <= threshold or width >= min(most + _SPARE, *A.shape):
            return found
        V = found.V


def _power_steps(A: Any, V: NDArray, steps: int) -> SVD:
    """Return the best triplets within the span that a few power steps from V reach."""
    for _ in range(steps):
        Q, B = _power_step(A, V)
        V = B
    return _ritz(Q, B)


def _ritz(Q: NDArray, B: NDArray) -> SVD:
    """Return the singular triplets of Q B^T, for Q with orthonormal columns.

    By the eigenvectors of B^T B, unless the squares span more than double precision holds well.
    """
    wide = B.astype(np.float64, copy=False)
    squares, W = np.linalg.eigh(wide.T @ wide)
    if squares[0] <= _SQUARES * squares[-1]:
        V, R = np.linalg.qr(B)  # Q B^T = Q R^T V^T
        U, S, Wt = np.linalg.svd(R.T)
        return SVD(Q @ U, S, V @ Wt.T)
    S, W = np.sqrt(squares[::-1]), W[:, ::-1].astype(B.dtype)
    return SVD(Q @ W, S, B @ (W / S.astype(B.dtype)))


def _orthonormal(Y: NDArray) -> NDArray:
    """Return an orthonormal basis of the span: Y R^-1 with R^T R = Y^T Y, if that is well posed."""
    scaled = Y / np.maximum(np.linalg.norm(Y, axis=0), np.finfo(Y.dtype).tiny)
    try:
        L = np.linalg.cholesky((scaled.T @ scaled).astype(np.float64))
    except np.linalg.LinAlgError:
        return np.linalg.qr(Y)[0]
    if L.diagonal().min() < _WELL_POSED:
        return np.linalg.qr(Y)[0]
    return scaled @ np.linalg.inv(L).T.astype(Y.dtype)


def _power_step(A: Any, V: NDArray) -> tuple[NDArray, NDArray]:
    """Return an orthonormal basis Q of the span of A V, and A^T Q."""
    if not hasattr(A, "gram_product"):
        Q = _orthonormal(A @ V)
        return Q, A.T @ Q
    # One pass gives Y = Q R and A^T Y = A^T Q R. V is orthonormal, so that R is nearly diagonal
    # once V is near the singular vectors.
    Y, Z = A.gram_product(np.linalg.qr(V)[0])
    Q, R = np.linalg.qr(Y)
    return Q, Z @ np.linalg.pinv(R, rcond=1e-6)


def _to_dense(A: Any) -> NDArray:
    if hasattr(A, "toarray"):
        return A.toarray()
    if isinstance(A, LinearOperator):
        return A @ np.eye(A.shape[1])
    return np.asarray(A)
