"""TrCMC: clipped completion by the trace norm, certified; and its path over the penalty."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from declip.estimators.base import SHARED_CONSTRAINTS
from declip.estimators.factors import SCALING_CONSTRAINTS, FreeRankEstimator
from declip.estimators.growing import GrowingEstimator
from declip.intervals import Intervals, as_intervals
from declip.losses import CLIPPED_MODES, Loss
from declip.lowrank import LowRank
from declip.objective import Certificate, largest_alpha
from declip.penalties import TraceNorm
from declip.solvers import (
    Solution,
    Start,
    TracePenalty,
    TraceProblem,
    douglas_rachford,
    factored,
    loss_at_zero,
    proximal,
    start_loss,
)
from declip.svd import fits_dense
from declip.validation import check_splitting

__all__ = ["TrCMC", "trace_path"]


class TrCMC(GrowingEstimator, FreeRankEstimator):
    r"""Restore clipped and missing cells by the matrix of smallest trace norm that fits them.

    Minimises the convex function

    .. math:: \sum_{ij} \ell_{ij}(X_{ij}) + \alpha |X|_{tr}

    with the interval loss of `FroCMC` over the observed cells, and stops when the duality gap
    certifies the optimum.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty, against a sum of cell losses. From `largest_alpha` on, the best
        matrix is 0. "auto" is 1 without scaling, and with it as in `FroCMC`.
    scale : {"auto", "columns", "table", "none"}, default="auto"
        The units that the fit is made in, as in `FroCMC`.
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits, as in `FroCMC`.
    clipped : {"hinge", "tobit", "value", "missing"}, default="hinge"
        How clipped cells count, as in `FroCMC`.
    max_rank : int or None, default=None
        Keep so many singular values at most. The problem is then no longer convex, and the gap may
        stay large.
    solver : {"auto", "splitting", "proximal", "factored"}, default="auto"
        "splitting" is Douglas-Rachford splitting, the quickest for a table that can be held
        densely; "proximal" is accelerated proximal gradient, the paper's method and the reference;
        "factored" sweeps over factors whose rank grows until the gap is small, for large tables.
        "auto" takes "splitting" up to four million cells of the table ("proximal" under
        ``max_rank`` or without a penalty), "factored" beyond.
    max_iter : int, default=1000
        Iterations or sweeps at most.
    tol : float, default=1e-4
        Stop when the duality gap is at most this share of the objective.
    n_jobs : int or None, default=None
        Threads of the sweeps; None is 1, -1 all.
    warm_start : bool, default=False
        Whether to start from the last fit. Rows and columns may have been added since: they are
        recognised by their labels, or without labels stand at the end.
    verbose : int, default=0
        Print the objective every so many iterations.
    checkpoint, on_interrupt : path or None, {"raise", "keep"}
        Where to keep the state of a long fit, and what Ctrl-C does, as in `FroCMC`.

    Attributes
    ----------
    row_factors_, components_ : ndarray of shape (n_samples, rank_) and (rank_, n_features)
        Factors U sqrt(S) and sqrt(S) V^T of the matrix, in the units of the fit (for rank 0 one
        column of zeros).
    alpha_ : float
        Strength of the penalty, in the units of the fit.
    scaling_ : Scaling or None
        The units of the fit; None if they are those of the table.
    singular_values_ : ndarray of shape (rank_,)
        Singular values, largest first.
    rank_ : int
        Rank of the matrix.
    gap_ : float
        Certified duality gap, in units of `objective_`: the objective is at most this much above
        its minimum (for "tobit": at the estimated scale).
    objective_, history_, n_iter_ : float, ndarray, int
        The objective, its lowest value so far after each iteration, and their number.
    converged_ : bool
        Whether the gap is at most ``tol`` of the penalised loss.
    scale_ : float
        Noise scale of "tobit", else 0.
    row_offset_, column_offset_, mean_, has_offsets_
        Zero and False; there are no offsets here.
    n_features_in_, feature_names_in_
        Columns of the table and their names.
    row_labels_, column_labels_ : ndarray or None
        Labels of the rows and columns, if the table had any.

    Notes
    -----
    Tr-CMC of Teshima et al. (AAAI 2019), Section 3 and Appendix A.2. With ``solver="proximal"`` the
    continuation is the paper's, by factors of 0.7; the stopping rule is a duality gap instead of a
    number of steps. The splitting works in single precision until the gap is small, then in double;
    its gap is the smaller one of two dual points, the gradients at its two copies of the matrix.
    New
    rows are solved for with the column factors fixed and the ridge penalty that the trace norm
    amounts to at the optimum.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import TrCMC
    >>> truth = np.outer(np.linspace(1, 2, 8), np.linspace(1, 2, 6))
    >>> model = TrCMC(alpha=0.5, ceiling=3).fit(np.minimum(truth, 3))
    >>> bool(model.gap_ <= 1e-4 * model.objective_)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "clipped": [StrOptions(set(CLIPPED_MODES))],
        **SCALING_CONSTRAINTS,
        "max_rank": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"auto", "splitting", "proximal", "factored"})],
        "warm_start": ["boolean"],
    }

    _on_request: ClassVar[tuple[str, ...]] = (*FreeRankEstimator._on_request, "gap_")

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        scale: str = "auto",
        ceiling: Any = None,
        floor: Any = None,
        clipped: str = "hinge",
        max_rank: int | None = None,
        solver: str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
        on_interrupt: str = "raise",
    ) -> None:
        self.alpha = alpha
        self.scale = scale
        self.ceiling = ceiling
        self.floor = floor
        self.clipped = clipped
        self.max_rank = max_rank
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt

    def _solve(self, table: Any, settled: dict[str, Any], **watched: Any) -> Solution:
        start, loss = self._start(table, settled)
        alpha = settled["alpha_"]
        near, solver = start.squared_norm() > 0, self._solver(table.shape)
        stopping, threads = self._stopping(**watched), effective_n_jobs(self.n_jobs)
        if solver == "splitting":
            begin = Start(start, loss, near)
            return douglas_rachford(table, begin, TracePenalty(alpha), stopping)
        problem = TraceProblem(table, TraceNorm(alpha), loss, self.max_rank, threads)
        if solver == "factored":
            return factored(problem, start, stopping)
        # A warm start is near the solution already: no continuation.
        first = alpha if near else largest_alpha(table, loss)
        return proximal(problem, start, stopping, first)

    def _solver(self, shape: tuple[int, int]) -> str:
        """Return the solver that "auto" stands for."""
        if self.solver != "auto":
            return self.solver
        if not fits_dense(shape):
            return "factored"
        return "splitting" if self.alpha != 0 and self.max_rank is None else "proximal"

    def _check_shape(self, shape: tuple[int, int]) -> None:
        if self.solver == "splitting":
            check_splitting("TrCMC", shape, self.alpha, self.max_rank)

    def _start(self, intervals: Intervals, settled: dict[str, Any]) -> tuple[LowRank, Loss]:
        if self.warm_start and hasattr(self, "row_factors_"):
            model, loss = self._last_fit(intervals, settled)
            if model is not None:
                return model, loss
        start = LowRank.zero(intervals.shape, intervals.dtype)
        return start, start_loss(intervals, self.clipped)

    @cached_property
    def gap_(self) -> float:
        """Certified duality gap, in units of the objective."""
        return self._certified_gap()

    def _finished(self, table: Any, state: Solution) -> dict[str, Any]:
        proof = state.proof
        known = (
            {"gap_": proof.gap / (state.scale**2 or 1.0)} if isinstance(proof, Certificate) else {}
        )
        return super()._finished(table, state) | known

    def _not_converged(self, solution: Solution) -> str:
        return (
            f"TrCMC stopped after {solution.n_iter} iterations with a duality gap above tol = "
            f"{self.tol:g} of the objective. Raise max_iter, alpha or tol"
            + (", or max_rank." if self.max_rank else ".")
        )


def trace_path(
    X: Any,
    alphas: ArrayLike | None = None,
    *,
    n_alphas: int = 20,
    ratio: float = 1e-3,
    **params: Any,
) -> list[TrCMC]:
    """Fit `TrCMC` for a falling sequence of penalties, each from the last.

    Parameters
    ----------
    X : array-like, frame, sparse matrix or Intervals
        The table.
    alphas : array-like of float, optional
        Penalties in the units of the fit, gone through from the largest to the smallest. By default
        ``n_alphas`` of them, evenly spaced in logs from the largest useful one to ``ratio`` times
        that.
    n_alphas, ratio : int, float
        See ``alphas``.
    **params : dict
        Other parameters of `TrCMC`.

    Returns
    -------
    list of TrCMC
        One fitted estimator for each penalty, the largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import trace_path
    >>> table = np.minimum(np.outer(np.linspace(1, 2, 8), np.linspace(1, 2, 6)), 3)
    >>> [model.rank_ for model in trace_path(table, n_alphas=3, ratio=0.01, ceiling=3)]
    [0, 1, 3]
    """
    model = TrCMC(**{**params, "warm_start": True})
    model._validate_params()
    intervals = as_intervals(X, model.ceiling, model.floor, estimator=model)
    cells, _ = model._settled(intervals.treat(model.clipped))
    penalties = _penalties(alphas, cells, model.clipped, n_alphas, ratio)
    fitted: list[TrCMC] = []
    limits = {"ceiling": model.ceiling, "floor": model.floor}
    for alpha in penalties:
        model.set_params(alpha=float(alpha), ceiling=None, floor=None).fit(intervals)
        fitted.append(copy(model).set_params(**limits))
    return fitted


def _penalties(
    alphas: ArrayLike | None, intervals: Intervals, clipped: str, n_alphas: int, ratio: float
) -> NDArray[np.float64]:
    if alphas is not None:
        return np.sort(np.atleast_1d(np.asarray(alphas, np.float64)))[::-1]
    top = largest_alpha(intervals, loss_at_zero(intervals, start_loss(intervals, clipped)))
    return top * np.geomspace(1.0, ratio, n_alphas)
