r"""A proof by duality that the least trace norm recovers this matrix from these cells.

M = U S V^T of rank r has the tangent space T. Let Y live on the observed cells that M meets with
equality: any sign at an exact cell, at least 0 where M equals a lower bound, at most 0 where it
equals an upper one, 0 where M lies strictly beyond a limit. For a feasible M + D then <Y, D> >= 0,
D = 0 at the exact cells, and with the smallest eigenvalue g of P_T P_exact P_T on T
:math:`|P_T D|_F \le |P_{T^\perp} D|_F / \sqrt g`. With a subgradient that attains the norm of
:math:`P_{T^\perp} D`,

.. math:: |M + D|_{tr} - |M|_{tr} \ge
   (1 - |P_{T^\perp} Y|_{op} - |P_T Y - U V^T|_F / \sqrt g)\, |P_{T^\perp} D|_{tr},

so that M is the only minimiser if the bracket is positive. Nothing is asked of the pattern of the
observed cells, nor of chance; a proof that is not found proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from declip.diagnostics.matrix import as_matrix, matrix_svd
from declip.diagnostics.tangent import Tangent
from declip.intervals import Intervals, as_intervals
from declip.svd import SparsePlusLowRank, fits_dense, operator_norm, truncated_svd
from declip.validation import IntervalTriplets, check_truth

__all__ = ["Recovery", "recovery_certificate"]

_ROUNDS = 60  # of alternating projections
_TARGETS = (0.9, 0.98, 0.998)  # norms that the part of Y off T is drawn into, one after another
_NO_MARGIN = 1e-9  # eigenvalues that are 0 up to rounding
_TIE = 1e-9  # relative distance from a limit that is none


@dataclass(frozen=True)
class Recovery:
    """What was proved of the least trace norm. Returned by `recovery_certificate`.

    Attributes
    ----------
    rank : int
        Of the matrix.
    margin : float
        Smallest eigenvalue of P_T P_exact P_T on T: 0 if the exact cells leave a direction open.
    norm : float
        Spectral norm of the dual point off the tangent space; below 1 in a proof.
    residual : float
        Distance of its part in the tangent space from U V^T.
    n_ties : int
        Clipped cells whose true value is their limit: only these can help exact recovery.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import recovery_certificate
    >>> truth = np.outer(np.linspace(1, 2, 12), np.linspace(1, 2, 12))
    >>> recovery_certificate(truth, np.minimum(truth, 3.5), ceiling=3.5).certified
    True
    """

    rank: int
    margin: float
    norm: float
    residual: float
    n_ties: int

    @property
    def slack(self) -> float:
        """What is left of 1; M is the only solution if it is positive."""
        if self.margin <= _NO_MARGIN:
            return -np.inf
        return 1.0 - self.norm - self.residual / float(np.sqrt(self.margin))

    @property
    def certified(self) -> bool:
        """Whether the matrix was proved to be the only one of least trace norm."""
        return self.slack > 0

    def __str__(self) -> str:
        if self.certified:
            return (
                f"The least trace norm recovers this matrix of rank {self.rank} from these cells, "
                f"and no other: the dual point has norm {self.norm:.3f} off its tangent space."
            )
        if self.margin <= _NO_MARGIN:
            return (
                f"Not proved: the exact cells leave a direction open at this matrix of rank "
                f"{self.rank}, so that others fit them as well."
            )
        return (
            f"Not proved: no dual point was found (the best has norm {self.norm:.3f} off the "
            "tangent space, where less than 1 is needed). That does not prove the contrary."
        )


def recovery_certificate(
    truth: Any, X: Any, ceiling: Any = None, floor: Any = None, *, rounds: int = _ROUNDS
) -> Recovery:
    """Prove, if it can be proved, that `ExactCMC` recovers a matrix from the cells of a table.

    For any pattern of observed and clipped cells, where the paper's Theorem 1 needs cells that are
    observed at random and conditions that hardly ever hold.

    Parameters
    ----------
    truth : array-like of shape (n_rows, n_cols), LowRank or pair of factors
        The matrix in question: the truth of a simulation, or what a fit has found.
    X : table or Intervals
        What was observed of it.
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits, as in `FroCMC`.
    rounds : int, default=60
        Alternating projections in search of a dual point, for each of three norms, if that of least
        squares will not do. Tables too large for dense matrices have that one only.

    Returns
    -------
    Recovery
        With ``certified``, and what it rests on; `print` it.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import recovery_certificate
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 30))
    >>> proof = recovery_certificate(truth, np.minimum(truth, 1.5), ceiling=1.5)
    >>> proof.certified, proof.rank
    (True, 2)
    """
    intervals = as_intervals(X, ceiling, floor)
    matrix = as_matrix(truth, intervals.shape)
    found = matrix_svd(matrix)
    search = _Search(Tangent(found.U, found.V), _tight_cells(intervals, matrix.block(slice(None))))
    margin = search.margin()
    Y = search.least_squares() if margin > _NO_MARGIN else search.zero
    norm, residual = search.quality(Y)
    if margin > _NO_MARGIN and fits_dense(intervals.shape):
        for target in _TARGETS:
            if norm + residual / np.sqrt(margin) < 1:
                break
            Y = search.drawn_in(Y, target, rounds)
            norm, residual = search.quality(Y)
    return Recovery(found.U.shape[1], margin, norm, residual, int((search.cells.sign != 0).sum()))


@dataclass(frozen=True, eq=False)
class _TightCells:
    """The cells that M meets with equality, and the sign that Y may have there (0: either)."""

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    sign: NDArray[np.int8]
    shape: tuple[int, int]

    def sparse(self, values: NDArray) -> sparse.csr_array:
        return sparse.csr_array((values, (self.rows, self.cols)), shape=self.shape)

    def signed(self, y: NDArray) -> NDArray:
        return np.where(self.sign * y < 0, 0.0, y)


def _tight_cells(intervals: Intervals, M: NDArray) -> _TightCells:
    rows, cols, lower, upper = intervals.triplets()
    at = M[rows, cols]
    near = _TIE * float(np.abs(M).max(initial=0.0))
    check_truth(
        at,
        IntervalTriplets(
            rows, cols, lower, upper, intervals.shape, intervals.row_labels, intervals.col_labels
        ),
        near,
    )
    sign = (np.abs(at - lower) <= near).astype(np.int8) - (np.abs(at - upper) <= near)
    tight = (sign != 0) | (lower == upper)
    sign = np.where(lower == upper, 0, sign).astype(np.int8)
    return _TightCells(rows[tight], cols[tight], sign[tight], intervals.shape)


class _Search:
    """Dual points of a matrix: Y on the tight cells with P_T Y = U V^T, small off T."""

    def __init__(self, tangent: Tangent, cells: _TightCells) -> None:
        self.tangent, self.cells = tangent, cells
        self.exact = cells.sparse((cells.sign == 0).astype(np.float64))
        self.exact.eliminate_zeros()
        self.zero = np.zeros(len(cells.rows))
        # U V^T = A V^T + U B^T with A = 0 and B = V
        self.target = np.concatenate([np.zeros(tangent.U.size), tangent.V.ravel()])

    def margin(self) -> float:
        if self.exact.nnz == 0:
            return 0.0
        return max(float(np.nan_to_num(self.tangent.smallest(self.exact, tol=1e-6))), 0.0)

    def missing(self, y: NDArray) -> NDArray:
        """Return the coordinates of U V^T - P_T Y."""
        return self.target - self.tangent.gather(self.cells.sparse(y))

    def least_squares(self, y: NDArray | None = None) -> NDArray:
        """Return the nearest point on the exact cells, with y elsewhere, that has P_T Y = U V^T."""
        y = self.zero if y is None else y
        weigh, n = self.tangent.weighing(self.exact), self.tangent.n_coordinates
        operator = LinearOperator((n, n), matvec=lambda x: weigh(x.ravel()), dtype=np.float64)
        step, _ = cg(operator, self.missing(y), rtol=1e-12, atol=0.0, maxiter=20 * n)
        change = self.tangent.at_cells(step, self.cells.rows, self.cells.cols)
        return y + np.where(self.cells.sign == 0, change, 0.0)

    def drawn_in(self, y: NDArray, norm: float, rounds: int) -> NDArray:
        """Project in turn on the matrices with |Y - U V^T|_op <= norm, and on the dual points."""
        U, V = self.tangent.U, self.tangent.V
        for _ in range(rounds):
            off = self.cells.sparse(y).toarray() - U @ V.T
            found = truncated_svd(off, min(off.shape))
            if found.S[0] <= norm:
                break
            over = np.maximum(found.S - norm, 0.0)
            off -= (found.U * over) @ found.V.T
            drawn = (off + U @ V.T)[self.cells.rows, self.cells.cols]
            y = self.least_squares(self.cells.signed(drawn))
        return y

    def quality(self, y: NDArray) -> tuple[float, float]:
        """Return the norm of Y off T, and how far it is from U V^T on T."""
        U, V = self.tangent.U, self.tangent.V
        S = self.cells.sparse(y)
        A, B = self.tangent.split(self.tangent.gather(S))
        # P_off Y = Y - (A V^T + U B^T)
        off = SparsePlusLowRank(np.hstack([-A, -U]), np.hstack([V, B]), (S,))
        return float(operator_norm(off)), float(np.linalg.norm(self.missing(y)))
