"""DTrCMC: clipped completion with the trace norm of the matrix and of its clipped version."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval, StrOptions

from declip.estimators.base import SHARED_CONSTRAINTS
from declip.estimators.factors import SCALING_CONSTRAINTS, FreeRankEstimator
from declip.intervals import Intervals
from declip.objective import Certificate
from declip.penalties import ClippedTraceNorm, TraceNorm
from declip.scaling import Scaling
from declip.solvers import (
    ClippedTraceProblem,
    Limits,
    Solution,
    Start,
    TracePenalty,
    douglas_rachford,
    limit_model,
    subgradient_descent,
)
from declip.svd import fits_dense
from declip.validation import check_memory, check_splitting, limits_of_all_cells

__all__ = ["DTrCMC"]


class DTrCMC(FreeRankEstimator):
    r"""Restore clipped and missing cells with two trace norms: of the matrix, and of it clipped.

    Lowers

    .. math:: \sum_{ij} \ell_{ij}(X_{ij}) + \alpha |X|_{tr} + \beta |Clip(X)|_{tr}

    with the interval loss of `FroCMC` over the observed cells, and Clip the projection of every
    cell onto its limits. Not convex: a stationary point is found.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty on X. "auto" is 0.2 without scaling, and with it half of that of
        `FroCMC`.
    alpha_clipped : float or None, default=None
        Strength of the penalty on Clip(X); None is that on X.
    scale : {"auto", "columns", "table", "none"}, default="auto"
        The units that the fit is made in, as in `FroCMC`.
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits, as in `FroCMC`; here they must be known for every cell, observed or not, also when X
        is an `Intervals`.
    clipped : {"hinge", "value", "missing"}, default="hinge"
        How clipped cells count, as in `FroCMC`.
    solver : {"auto", "splitting", "subgradient"}, default="auto"
        "splitting" is Douglas-Rachford splitting, for tables that can be held densely;
        "subgradient" is the paper's proximal subgradient descent. "auto" takes the former up to
        four million cells of the table, unless ``max_rank`` is given or ``alpha`` is 0 (nothing
        then calls for values beyond the limits).
    first_step : float, default=1.0
        Step eta_0 of "subgradient"; the steps are eta_0 * 0.99^(t - 1).
    beyond : float, default=1.0
        The start is the ceiling plus this (the floor minus this; with both, the mean of the
        table): by column or by row where the limits differ by it.
    max_rank : int or None, default=None
        Singular triplets of X and of Clip(X) to keep; needed for tables too large to be held
        densely.
    max_iter : int, default=1000
        Steps at most.
    tol : float, default=1e-3
        "splitting" stops when `gap_` is at most this share of the objective. "subgradient" goes
        on until its steps have vanished, and counts as converged if ten steps lowered the objective
        by at most this share while they still were above a hundredth of the first.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all.
    verbose : int, default=0
        Print the objective every so many steps.
    checkpoint, on_interrupt : path or None, {"raise", "keep"}
        Where to keep the state of a long fit, and what Ctrl-C does, as in `FroCMC`. By splitting
        the best matrix looked at is kept, which is every 10 iterations, 5 of a small table.

    Attributes
    ----------
    row_factors_, components_ : ndarray of shape (n_samples, rank_) and (rank_, n_features)
        Factors U sqrt(S) and sqrt(S) V^T of the matrix, in the units of the fit.
    alpha_ : float
        Strength of the penalty, in the units of the fit.
    scaling_ : Scaling or None
        The units of the fit; None if they are those of the table.
    singular_values_, rank_ : ndarray, int
        Singular values, largest first, and their number.
    objective_, history_, n_iter_ : float, ndarray, int
        The lowest objective, the lowest so far after each step, and the number of steps. The
        splitting computes it at every tenth step. For a large table the trace norm of Clip(X) is
        that of its ``max_rank`` leading triplets.
    gap_ : float
        How far the objective is above the minimum of the convex problem in which Clip is replaced
        by its tangent at the solution, at most: 0 at a stationary point. It says nothing of other
        stationary points. NaN if there is none: for "subgradient", or if no step was looked at.
    converged_ : bool
        Whether the gap was within ``tol`` ("subgradient": see there).
    scale_, row_offset_, column_offset_, mean_, has_offsets_
        Zero and False; there are no offsets here.
    n_features_in_, feature_names_in_
        Columns of the table and their names.
    row_labels_, column_labels_ : ndarray or None
        Labels of the rows and columns, if the table had any.

    Notes
    -----
    DTr-CMC of Teshima et al. (AAAI 2019), with floors and limits that vary: the iterate with the
    lowest true objective is returned. With ``solver="subgradient"`` it is their Algorithm 1. Its
    steps vanish whether or not a minimum is near, and on sparse ratings unobserved cells decay
    from the start only slowly, so that the result depends on the number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import DTrCMC
    >>> truth = np.outer(np.linspace(1, 2, 8), np.linspace(1, 2, 6))
    >>> model = DTrCMC(alpha=0.05, alpha_clipped=0.05, ceiling=3).fit(np.minimum(truth, 3))
    >>> bool(model.reconstruct()[7, 5] > 3)
    True
    """

    _usual_alpha: ClassVar[float] = 0.2
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "clipped": [StrOptions({"hinge", "value", "missing"})],
        **SCALING_CONSTRAINTS,
        "alpha_clipped": [Interval(Real, 0, None, closed="left"), None],
        "solver": [StrOptions({"auto", "splitting", "subgradient"})],
        "first_step": [Interval(Real, 0, None, closed="neither")],
        "beyond": [Interval(Real, 0, None, closed="left")],
        "max_rank": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        alpha_clipped: float | None = None,
        *,
        scale: str = "auto",
        ceiling: Any = None,
        floor: Any = None,
        clipped: str = "hinge",
        solver: str = "auto",
        first_step: float = 1.0,
        beyond: float = 1.0,
        max_rank: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
        on_interrupt: str = "raise",
    ) -> None:
        self.alpha = alpha
        self.alpha_clipped = alpha_clipped
        self.scale = scale
        self.ceiling = ceiling
        self.floor = floor
        self.clipped = clipped
        self.solver = solver
        self.first_step = first_step
        self.beyond = beyond
        self.max_rank = max_rank
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt

    def _check_shape(self, shape: tuple[int, int]) -> None:
        if self.solver == "splitting":
            check_splitting("DTrCMC", shape, self.alpha, self.max_rank)
        if not fits_dense(shape):
            rank = min(self.max_rank or min(shape), *shape)
            check_memory((sum(shape), rank), np.float32, "DTrCMC", "set a lower max_rank.")

    def _splits(self, shape: tuple[int, int]) -> bool:
        """Return whether the solver is the splitting."""
        if self.solver != "auto":
            return self.solver == "splitting"
        return fits_dense(shape) and self.max_rank is None and self.alpha != 0

    def _settled_alpha(self, cells: Any, scaled: bool) -> dict[str, float]:
        alpha = super()._settled_alpha(cells, scaled)["alpha_"]
        if scaled and isinstance(self.alpha, str):
            alpha *= 0.5  # there are two penalties
        return {"alpha_": alpha}

    def _solve(self, table: Any, settled: dict[str, Any], **watched: Any) -> Solution:
        limits, stopping = self._limits(table, settled["scaling_"]), self._stopping(**watched)
        start, alpha = limit_model(table, limits, self.beyond), settled["alpha_"]
        beta = alpha if self.alpha_clipped is None else float(self.alpha_clipped)
        if self._splits(table.shape):
            penalty = TracePenalty(alpha, beta, limits if beta > 0 else None)
            return douglas_rachford(table, Start(start), penalty, stopping)
        problem = ClippedTraceProblem(
            table,
            TraceNorm(alpha),
            ClippedTraceNorm(beta, limits),
            self.max_rank,
            effective_n_jobs(self.n_jobs),
        )
        return subgradient_descent(problem, start, stopping, self.first_step)

    def _limits(self, intervals: Intervals, scaling: Scaling | None) -> Limits:
        """Return the limits of every cell: those given, or those that the clipped cells share.

        The cells are in the units of the fit, and so are the limits; those given are not yet.
        """
        if self.ceiling is None and self.floor is None:
            shared = intervals.common_limits()
            if shared is not None:
                return Limits(*shared)
        labels = intervals.col_labels, intervals.row_labels
        shape, dtype = intervals.shape, intervals.dtype
        found = limits_of_all_cells(self.ceiling, self.floor, shape, dtype, *labels)
        if scaling is None:
            return Limits(*found)
        return Limits(*(scaling.forward(limit).astype(dtype) for limit in found))

    def _finished(self, table: Any, state: Solution) -> dict[str, Any]:
        gap = state.proof.gap if isinstance(state.proof, Certificate) else np.nan
        return super()._finished(table, state) | {"gap_": gap}

    def _not_converged(self, solution: Solution) -> str:
        how = (
            f"with a gap above tol = {self.tol:g} of the objective"
            if self._splits(solution.model.shape)
            else "before the objective had settled, or because its steps have vanished"
        )
        return (
            f"DTrCMC stopped after {solution.n_iter} steps {how}. Raise max_iter, or accept a "
            "larger tol."
        )
