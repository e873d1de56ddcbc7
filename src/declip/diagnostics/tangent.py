"""The tangent space of the low-rank matrices, and how much some cells weigh on it.

At X = U S V^T it is T = {A V^T + U B^T}. With U^T A = 0 the pair (A, B) is unique and |Z|^2 = |A|^2
+ |B|^2, so that (A, B) are coordinates, and P_T W P_T, for cells with weights W, is applied without
forming a matrix: the cells of Z are made, weighted, and multiplied by V and by U. Offsets add the
constant vector to both U and V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from declip import kernels
from declip.lowrank import LowRank
from declip.svd import product_svd

__all__ = ["Tangent"]

NEGLIGIBLE = 1e-6  # singular values below this share of the first carry no factor
_DENSE_UP_TO = 40  # coordinates up to which the matrix is formed
_COARSE, _REFINEMENTS = 1e-6, 50  # first tolerance, and restarts for a finer one
_RESTARTS = 500  # of Lanczos at most, by default


@dataclass(frozen=True, eq=False)
class Tangent:
    """The tangent space {A V^T + U B^T}.

    Attributes
    ----------
    U : ndarray of shape (n_rows, r)
        Orthonormal basis of the column space.
    V : ndarray of shape (n_cols, s)
        Orthonormal basis of the row space.
    threads : int
        Threads of the products.
    """

    U: NDArray[np.float64]
    V: NDArray[np.float64]
    threads: int = 1

    @classmethod
    def of(cls, model: LowRank, negligible: float = NEGLIGIBLE, threads: int = 1) -> Tangent:
        """Return the tangent space at a fitted matrix, its offsets included.

        Singular values below the share ``negligible`` of the first are left out.
        """
        found = product_svd(model.P, model.Q, negligible)
        U, V = (_with_ones(F) if model.bias else F for F in (found.U, found.V))
        return cls(U, V, threads)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrices."""
        return len(self.U), len(self.V)

    @property
    def n_factors(self) -> tuple[int, int]:
        """Dimensions of the column space and of the row space."""
        return self.U.shape[1], self.V.shape[1]

    @property
    def n_coordinates(self) -> int:
        """Numbers in (A, B)."""
        return len(self.U) * self.V.shape[1] + len(self.V) * self.U.shape[1]

    @property
    def dimension(self) -> int:
        """Dimension of the space: degrees of freedom of the model."""
        return self.n_coordinates - self.U.shape[1] * self.V.shape[1]

    def split(self, x: NDArray) -> tuple[NDArray, NDArray]:
        """Return (A, B) with U^T A = 0 from coordinates."""
        n = len(self.U) * self.V.shape[1]
        A = x[:n].reshape(len(self.U), -1)
        return A - self.U @ (self.U.T @ A), x[n:].reshape(len(self.V), -1)

    def project(self, x: NDArray) -> NDArray:
        """Return coordinates with U^T A = 0."""
        A, B = self.split(x)
        return np.concatenate([A.ravel(), B.ravel()])

    def at_cells(self, x: NDArray, rows: NDArray, cols: NDArray) -> NDArray:
        """Return the cells of Z = A V^T + U B^T."""
        A, B = self.split(x)
        own, other = np.hstack([A, self.U]), np.hstack([self.V, B])
        return kernels.predict(rows, cols, own, other, threads=self.threads)

    def gather(self, W: sparse.csr_array) -> NDArray:
        """Return the coordinates of P_T W for a sparse matrix W."""
        return self.project(np.concatenate([(W @ self.V).ravel(), (W.T @ self.U).ravel()]))

    def weighing(self, weights: sparse.csr_array) -> Callable[[NDArray], NDArray]:
        """Return x -> P_T W P_T x for the cells of a sparse matrix of weights."""
        rows = np.repeat(np.arange(len(self.U), dtype=np.int32), np.diff(weights.indptr))
        cols = weights.indices.astype(np.int32, copy=False)
        W = sparse.csr_array((weights.data, cols, weights.indptr), shape=weights.shape)

        def apply(x: NDArray) -> NDArray:
            W.data = weights.data * self.at_cells(x, rows, cols)
            return self.gather(W)

        return apply

    def largest(
        self, weights: sparse.csr_array, tol: float = 1e-13, maxiter: int = _RESTARTS
    ) -> tuple[float, NDArray]:
        """Return the largest eigenvalue of P_T W P_T, and its eigenvector."""
        return self._top(self.weighing(weights), tol, maxiter)

    def smallest(
        self,
        weights: sparse.csr_array,
        above: float = 1.0,
        tol: float = 1e-13,
        maxiter: int = _RESTARTS,
    ) -> float:
        """Return the smallest eigenvalue of P_T W P_T on T.

        It is ``above`` minus the largest one of ``above`` P_T - P_T W P_T, whose other eigenvalues,
        off T, are 0.

        Parameters
        ----------
        weights : csr_array
            Weights of the cells.
        above : float
            A bound on the largest eigenvalue; ``tol`` is relative to it.
        tol, maxiter : float, int
            See `scipy.sparse.linalg.eigsh`.
        """
        weigh = self.weighing(weights)
        top, _ = self._top(lambda x: above * self.project(x) - weigh(x), tol, maxiter)
        return above - top

    def _top(
        self, apply: Callable[[NDArray], NDArray], tol: float, maxiter: int
    ) -> tuple[float, NDArray]:
        n = self.n_coordinates
        if n <= _DENSE_UP_TO:
            values, vectors = np.linalg.eigh(np.column_stack([apply(e) for e in np.eye(n)]))
            return float(values[-1]), vectors[:, -1]
        start = self.project(np.random.default_rng(0).standard_normal(n))
        if np.abs(apply(start)).max() <= 1e-14 * np.abs(start).max():  # not for ARPACK
            return 0.0, start / np.linalg.norm(start)
        operator = LinearOperator((n, n), matvec=lambda x: apply(x.ravel()), dtype=np.float64)
        found = _lanczos(operator, start, max(tol, _COARSE), maxiter)
        # Near-equal eigenvalues at the top keep a residual at sqrt(rounding): the coarse value,
        # off by its square, then stands.
        finer = _lanczos(operator, found[1], tol, _REFINEMENTS) if tol < _COARSE else found
        return found if np.isnan(finer[0]) else finer


def _lanczos(
    operator: LinearOperator, start: NDArray, tol: float, maxiter: int
) -> tuple[float, NDArray]:
    """Return the largest eigenvalue and its vector; NaN if it did not settle."""
    try:
        values, vectors = eigsh(operator, 1, which="LA", v0=start, tol=tol, maxiter=maxiter)
    except ArpackNoConvergence:
        return np.nan, start
    return float(values[0]), vectors[:, 0]


def _with_ones(U: NDArray) -> NDArray:
    """Return the orthonormal basis with the constant vector added, unless it is there already."""
    one = np.full(len(U), len(U) ** -0.5)
    for _ in range(2):  # once more for orthogonality to rounding
        one = one - U @ (U.T @ one)
    size = float(np.linalg.norm(one))
    return U if size < NEGLIGIBLE else np.column_stack([U, one / size])
