"""ExactCMC: the matrix of least trace norm within the intervals."""

from __future__ import annotations

from numbers import Integral
from os import PathLike
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from declip.estimators.base import SHARED_CONSTRAINTS
from declip.estimators.factors import FreeRankEstimator
from declip.penalties import Ridge
from declip.solvers import Bracket, Solution, minimum_trace_norm

__all__ = ["ExactCMC"]


class ExactCMC(FreeRankEstimator):
    r"""Restore clipped and missing cells by the least trace norm that meets every cell exactly.

    Solves the paper's Eq. 1, with floors and limits that may differ by cell,

    .. math:: \min |X|_{tr} \quad \text{subject to} \quad l_{ij} \le X_{ij} \le u_{ij}

    on the observed cells. For noiseless data only: noise is reproduced to the last digit.

    Parameters
    ----------
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits, as in `FroCMC`.
    clipped : {"hinge", "value", "missing"}, default="hinge"
        Whether clipped cells are held to their half-line, to their face value, or left out.
    max_rank : int or None, default=None
        Keep so many singular values at most; the result may then be infeasible.
    max_iter : int, default=5000
        Iterations at most.
    tol : float, default=1e-5
        Stop when the duality gap, relative to the trace norm, and the distance of the observed
        cells from their intervals, relative to their size, are both at most this.
    n_jobs : int or None, default=None
        Threads for new rows; None is 1, -1 all.
    verbose : int, default=0
        Print the trace norm every so many iterations.
    checkpoint, on_interrupt : path or None, {"raise", "keep"}
        Where to keep the state of a long fit, and what Ctrl-C does, as in `FroCMC`.

    Attributes
    ----------
    row_factors_, components_ : ndarray of shape (n_samples, rank_) and (rank_, n_features)
        Factors U sqrt(S) and sqrt(S) V^T of the matrix.
    singular_values_, rank_ : ndarray, int
        Singular values, largest first, and their number.
    objective_, history_, n_iter_ : float, ndarray, int
        Trace norm at the end and after each iteration (it need not fall: the cells are met only in
        the limit), and the number of iterations.
    gap_ : float
        Trace norm of a feasible matrix minus a lower bound from duality.
    primal_residual_, dual_residual_ : float
        Distance of the observed cells from their intervals, relative to their size; and how far the
        spectral norm of the dual point exceeded 1. They and the gap are NaN after Ctrl-C.
    converged_ : bool
        Whether gap and primal residual are within ``tol``.
    scale_, row_offset_, column_offset_, mean_, has_offsets_
        Zero and False; there are no offsets here.
    n_features_in_, feature_names_in_
        Columns of the table and their names.
    row_labels_, column_labels_ : ndarray or None
        Labels of the rows and columns, if the table had any.

    Notes
    -----
    Without ties (no true value equal to its limit) this recovers the truth exactly if and only if
    the same problem with the clipped cells left out does; the limits help where neither is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import ExactCMC
    >>> truth = np.outer(np.linspace(1, 2, 8), np.linspace(1, 2, 6))
    >>> restored = ExactCMC(ceiling=3).fit_transform(np.minimum(truth, 3))
    >>> float(np.round(restored[7, 5], 2))  # the truth is 4, the table had 3
    3.86
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "clipped": [StrOptions({"hinge", "value", "missing"})],
        "max_rank": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        ceiling: Any = None,
        floor: Any = None,
        clipped: str = "hinge",
        max_rank: int | None = None,
        max_iter: int = 5000,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
        on_interrupt: str = "raise",
    ) -> None:
        self.ceiling = ceiling
        self.floor = floor
        self.clipped = clipped
        self.max_rank = max_rank
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt

    def _settled(self, table: Any) -> tuple[Any, dict[str, Any]]:
        return table, {}

    def _solve(self, table: Any, settled: dict[str, Any], **watched: Any) -> Solution:
        return minimum_trace_norm(table, self._stopping(**watched), self.max_rank)

    def _row_penalty(self, components: NDArray) -> Ridge:
        # A ridge so small that the cells of a new row are met to about nine digits.
        largest = float((components**2).sum(axis=1).max())  # singular value
        return Ridge(1e-9 * largest or 1.0)

    def _finished(self, table: Any, state: Solution) -> dict[str, Any]:
        proof = state.proof
        assert isinstance(proof, Bracket)
        return super()._finished(table, state) | {
            "gap_": proof.gap,
            "primal_residual_": proof.primal_residual,
            "dual_residual_": proof.dual_residual,
        }

    def _not_converged(self, solution: Solution) -> str:
        return (
            f"ExactCMC stopped after {solution.n_iter} iterations with the duality gap or the "
            f"distance from the intervals above tol = {self.tol:g}. Raise max_iter or tol."
        )
