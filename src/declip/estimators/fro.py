"""FroCMC: clipped completion by factors with a ridge penalty."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from declip.blocks import BlockProblem, BlockTable, LocalRunner, ObjectiveTerms, Runner, fit_blocks
from declip.estimators.base import SHARED_CONSTRAINTS
from declip.estimators.factors import SCALING_CONSTRAINTS, noise_norm
from declip.estimators.growing import GrowingEstimator
from declip.estimators.order import ORDER_CONSTRAINTS, course_of
from declip.estimators.side import SideInformation, SideInformationEstimator
from declip.intervals import Intervals
from declip.losses import CLIPPED_MODES, Loss
from declip.lowrank import LowRank
from declip.ordering import Course
from declip.penalties import Ridge
from declip.scaling import mostly_missing
from declip.solvers import (
    Solution,
    Stopping,
    TableProblem,
    half_pays,
    mean_and_spread,
    minimise,
    restart_dead_factors,
    start_loss,
    start_model,
)
from declip.validation import (
    check_memory,
    check_no_limits,
    check_some_exact,
    named_columns,
    rank_to_fit,
)

__all__ = ["FroCMC"]

_FACTORS = 10  # of "auto"
_TOL, _TOL_OF_RATINGS = 1e-6, 3e-4  # of "auto"
_REST_OF_RATINGS = 5e-4  # of "auto"
_STRENGTH, _STRENGTH_WITH_BIAS = 0.25, 0.5  # of noise in ratings; without offsets, of their level
_FACTORS_OF_TABLES = 30  # the penalty puts out those that are not needed


class FroCMC(SideInformationEstimator[Solution, LowRank], GrowingEstimator):
    r"""Restore clipped and missing cells by a factor model, P Q^T, with a ridge penalty.

    Minimises

    .. math:: \sum_{ij} \ell_{ij}(p_i^T q_j) + \frac{\alpha}{2} (|P|^2 + |Q|^2)

    over the observed cells, where the loss :math:`\ell_{ij}` is half the squared distance of the
    prediction from what is known of the cell: its value, or for a clipped cell the half-line beyond
    its limit.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of factors k, from 1 to the smaller side of the table. "auto" is 10, or 30 where
        columns are scaled; at most one less than the smaller side.
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits: a scalar, one per column, one per row of shape (n_samples, 1), one per cell, or a
        mapping from column name to limit. A value at its limit is clipped; a value beyond it is an
        error.
    clipped : {"hinge", "tobit", "value", "missing"}, default="hinge"
        How clipped cells count:

        - "hinge": no loss beyond the limit (the paper's CMC);
        - "tobit": the likelihood of a Gaussian censored at the limit; the noise scale is estimated
          (`scale_`), and restored cells are expected values given that they lie beyond the limit;
        - "value": as if the limit were the value (MC);
        - "missing": left out (MCi).
    alpha : float or "auto", default="auto"
        Strength of the penalty, against a sum of cell losses. "auto" is
        :math:`c s (\sqrt{n} + \sqrt{m})`, for n observed cells a column, m a row and values of
        standard deviation s: about the size of noise, times c = 0.15 where the table is scaled, and
        without scaling, where less than a quarter of the cells are observed, c = 0.25, or 0.5 with
        ``bias``. Else it is 0.1. To choose it by held-out cells, see `EntrySearchCV`.
    scale : {"auto", "columns", "table", "none"}, default="auto"
        The units that the fit is made in: each column (or the table as a whole) brought to mean 0
        and standard deviation 1, limits included, or as they are. "auto" is "columns", or "none"
        where less than a quarter of the cells are observed, as of ratings, and "table" with
        ``order="columns"``, since steps in time share their units. Whatever is returned is
        in the units of the table; factors and objective are in those of the fit (`scaling_`).
    bias : bool, default=False
        Whether to add a mean and penalised row and column offsets:
        :math:`x_{ij} = \mu + b_i + c_j + p_i^T q_j`.
    alpha_bias : float or None, default=None
        Strength of the penalty on the offsets; None is ``alpha``. The mean is not penalised.
    init : {"random", "svd"}, default="random"
        The start: beyond the limits with a random perturbation, or the leading singular vectors of
        the table with clipped cells at their limit and missing cells at the mean.
    max_iter : int, default=300
        Sweeps at most.
    tol : float or "auto", default="auto"
        Stop when the objective fell by less than this share of itself (for "tobit": this much a
        cell) in each of three sweeps in a row. "auto" is 1e-6, and 3e-4 where less than a quarter
        of the cells are observed, as of ratings; or 5e-4 in two sweeps in a row, if their falls
        foretell that no more than that is left: it improves no prediction.
    order : {"rows", "columns"} or None, default=None
        Which of them follow each other in time, one step apart: their factors then drift and repeat
        instead of being drawn to 0 each on its own. Give steps without data as empty rows or
        columns; those after the last one are forecast. At most 1,000 steps.
    smooth : {0, 1, 2}, default=1
        Order of the random walk along ``order``: 1 goes on where it was, 2 also as it went; 0 for
        none. How far it goes is estimated.
    period : float, array-like of float or None, default=None
        Lengths of seasons along ``order``, in steps: 7 for weekdays. How large they are is
        estimated.
    random_state : int, RandomState instance or None, default=None
        Seed of the start.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all. The result does not depend on it.
    warm_start : bool, default=False
        Whether to start from the last fit, if it had the same rank. Rows and columns may have been
        added since: they are recognised by their labels, or without labels stand at the end.
    half_precision : bool or "auto", default="auto"
        Whether the first sweeps over a table of float32, while they gain much, read the factors of
        the other side in half precision, which is faster where they are many; "auto" does so for 32
        factors or more, if those of one side take more than 8 MB. The sweeps that settle the fit
        are made in full precision.
    verbose : int, default=0
        Print the objective every so many sweeps.
    checkpoint : path or None, default=None
        File in which a long fit keeps its state: about once a second, more rarely if it is large.
        If the process ends before the fit, the same call takes it up there, and the result is that
        of a fit that was never disturbed, to the last bit. Removed when the fit is complete; the
        file of another fit is refused. One path serves one fit at a time.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: end the fit with `KeyboardInterrupt` and leave the estimator as it was, or
        keep what the last sweep left, with a warning and ``converged_ = False``.

    Attributes
    ----------
    row_factors_ : ndarray of shape (n_samples, n_components_)
        Row factors P, in the units of the fit.
    components_ : ndarray of shape (n_components_, n_features)
        Column factors Q^T, in the units of the fit.
    n_components_ : int
        Number of factors.
    course_ : Course or None
        How the factors go along ``order``, with what was estimated of it.
    alpha_ : float
        Strength of the penalty, in the units of the fit.
    scaling_ : Scaling or None
        The units of the fit; None if they are those of the table.
    row_offset_, column_offset_ : ndarray of shape (n_samples,) and (n_features,)
        Offsets; zero without ``bias``.
    mean_ : float
        Constant term; zero without ``bias``.
    has_offsets_ : bool
        Whether there are offsets: ``bias`` at the time of the fit.
    scale_ : float
        Noise scale of "tobit", else 0.
    singular_values_ : ndarray of shape (n_components_,)
        Singular values of P Q^T, largest first.
    objective_ : float
        The objective at the fit. For "tobit" it is the negative log-likelihood plus
        :math:`\frac{\alpha}{2 \sigma^2} (|P|^2 + |Q|^2)`, minimised over the scale as well.
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each sweep; it never rises (in half precision, by more
        than its rounding).
    gap_ : float
        How far the fit can be, at most, above the optimum of the convex problem with the trace norm
        in place of the ridge, in units of `objective_` (for "tobit" at the estimated scale). Near
        0, the fit is the global optimum; otherwise the rank is too small for that certificate. NaN
        for a folder of blocks, and with ``order``.
    n_iter_ : int
        Sweeps made.
    converged_ : bool
        Whether the objective had settled.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names, if they were all strings.
    row_labels_, column_labels_ : ndarray or None
        Labels of the rows and columns, if the table had any.

    Notes
    -----
    This is Fro-CMC of Teshima, Xu, Sato and Sugiyama (AAAI 2019), Section 3 and
    Appendix A.3, with these departures: the penalty is that of the appendix; the start has P Q^T =
    limit + spread instead of the square of it, and is perturbed, since the printed one stays at
    rank one; the update of a row is safeguarded by an exact line search, since the printed one can
    raise the objective; the factors are balanced and extrapolated between sweeps.

    `fit` also takes the path of a folder that `prepare_blocks` made, for a table larger than
    memory: its blocks are then read by memory map, sweep by sweep, under the limits that they were
    prepared with.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import FroCMC
    >>> truth = np.outer([1.0, 2, 3, 4], [1.0, 2, 3])
    >>> seen = np.minimum(truth, 8)
    >>> model = FroCMC(n_components=1, ceiling=8, alpha=1e-3, scale="none", random_state=0)
    >>> np.round(model.fit_transform(seen)[3], 1)
    array([ 4.,  8., 12.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        **SCALING_CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "clipped": [StrOptions(set(CLIPPED_MODES))],
        "tol": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "bias": ["boolean"],
        "alpha_bias": [Interval(Real, 0, None, closed="left"), None],
        "init": [StrOptions({"random", "svd"})],
        **ORDER_CONSTRAINTS,
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "half_precision": ["boolean", StrOptions({"auto"})],
    }

    _on_request: ClassVar[tuple[str, ...]] = (*GrowingEstimator._on_request, "gap_")
    _usual_alpha: ClassVar[float] = 0.1

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        ceiling: Any = None,
        floor: Any = None,
        clipped: str = "hinge",
        alpha: float | str = "auto",
        scale: str = "auto",
        bias: bool = False,
        alpha_bias: float | None = None,
        init: str = "random",
        max_iter: int = 300,
        tol: float | str = "auto",
        order: str | None = None,
        smooth: int = 1,
        period: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        half_precision: bool | str = "auto",
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
        on_interrupt: str = "raise",
    ) -> None:
        self.n_components = n_components
        self.ceiling = ceiling
        self.floor = floor
        self.clipped = clipped
        self.alpha = alpha
        self.scale = scale
        self.bias = bias
        self.alpha_bias = alpha_bias
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.order = order
        self.smooth = smooth
        self.period = period
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.half_precision = half_precision
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt

    @contextmanager
    def _opened(self, X: Any, dense_result: bool) -> Iterator[Any]:
        """Yield the cells of a table, or a folder of blocks."""
        if not isinstance(X, str | PathLike):
            with super()._opened(X, dense_result) as intervals:
                yield intervals
            return
        check_no_limits("A folder of blocks", self.ceiling, self.floor)
        if dense_result:
            raise TypeError(
                "A folder of blocks is not restored as a whole: use fit, then predict(rows, cols) "
                "or reconstruct(rows=, cols=)."
            )
        yield BlockTable.open(X)

    def _columns(self, X: Any, table: Any) -> dict[str, Any]:
        blocks = isinstance(table, BlockTable)
        return named_columns(table.shape[1]) if blocks else super()._columns(X, table)

    def _read_new(self, X: Any) -> Intervals:
        if isinstance(X, str | PathLike):
            raise TypeError("A folder of blocks can only be fitted: give new rows as a table.")
        return super()._read_new(X)

    def _check_fittable(self, table: Any) -> Any:
        if not isinstance(table, BlockTable):
            return super()._check_fittable(table)
        self._check_shape(table.shape)
        if table.n_exact == 0:
            check_some_exact(np.empty(0), np.empty(0), len(table))
        if self.scale not in ("auto", "none"):
            raise ValueError(
                f"A folder of blocks is fitted in its own units, not with scale={self.scale!r}: "
                'leave it at "auto", and bring the columns to common units before prepare_blocks.'
            )
        if self.order is not None:
            raise ValueError("A folder of blocks is fitted without order.")
        if self.init != "random" or self.warm_start:
            raise ValueError('A folder of blocks is fitted from init="random", not warm_start.')
        if self.checkpoint is not None:
            raise ValueError(
                "A folder of blocks is fitted without checkpoint; declip.dask.FroCMC has one "
                "(checkpoint_dir)."
            )
        return table

    def _settled(self, table: Any) -> tuple[Any, dict[str, Any]]:
        if not isinstance(table, Intervals):
            settled = {"scaling_": None} | self._settled_alpha(table, scaled=False)
        else:
            table, settled = super()._settled(table)
        most = _FACTORS if settled["scaling_"] is None else _FACTORS_OF_TABLES
        settled |= {"n_components_": self._rank(table.shape, most)}
        course = course_of(self.order, self.smooth, self.period, table.shape)
        return table, settled | {"course_": self._estimated(course, table, settled)}

    def _settled_alpha(self, cells: Any, scaled: bool) -> dict[str, float]:
        """Return the strength; "auto" of ratings in their own units is by their spread."""
        if scaled or self.alpha != "auto" or not mostly_missing(cells):
            return super()._settled_alpha(cells, scaled)
        strength = _STRENGTH_WITH_BIAS if self.bias else _STRENGTH
        noise = _noise_of_ratings(cells, self.clipped)
        return {"alpha_": strength * noise or self._usual_alpha}

    def _estimated(
        self, course: Course | None, table: Any, settled: dict[str, Any]
    ) -> Course | None:
        """Return the course with its strengths, by the factors of a fit without it."""
        if course is None:
            return None
        model = self._minimised(
            table, settled | {"course_": None}, self._stopping(**self._ends(table))
        ).model
        factors = model.A if course.axis == "rows" else model.B
        return course.estimated(factors.astype(np.float64))

    def _units_asked_for(self) -> str:
        """Return the word for the units: steps of an order share theirs."""
        return "table" if self.scale == "auto" and self.order == "columns" else self.scale

    def _rank(self, shape: tuple[int, int], most: int = _FACTORS) -> int:
        """Return the number of factors, of "auto" so many at most."""
        return rank_to_fit(self.n_components, shape, most)

    def _block_problem(
        self, table: BlockTable, settled: dict[str, Any], runner: Runner
    ) -> BlockProblem:
        """Return what is minimised over blocks."""
        threads = effective_n_jobs(self.n_jobs)
        penalty = self._penalty(settled["alpha_"])
        terms = ObjectiveTerms(penalty, bool(self.bias), self.clipped, threads)
        seed = self._rng().bit_generator.state
        return BlockProblem(table, runner, settled["n_components_"], terms, dict(seed))

    def _rng(self) -> np.random.Generator:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return np.random.default_rng(seed)

    def _solve(self, table: Any, settled: dict[str, Any], **watched: Any) -> Solution:
        stopping = self._stopping(**watched, **self._ends(table))
        if isinstance(table, BlockTable):
            return fit_blocks(self._block_problem(table, settled, LocalRunner()), stopping)
        return self._minimised(table, settled, stopping)

    def _minimised(self, table: Intervals, settled: dict[str, Any], stopping: Stopping) -> Solution:
        start, loss = self._start(table, settled)
        threads = effective_n_jobs(self.n_jobs)
        penalty = self._ordered(self._penalty(settled["alpha_"]), settled["course_"], table.shape)
        half = half_pays(start) if self.half_precision == "auto" else bool(self.half_precision)
        problem = TableProblem(table, start, penalty, threads, half=half)
        side: SideInformation | None = settled.get("side_")
        return minimise(problem if side is None else side.problem(problem), loss, stopping)

    def _ends(self, table: Any) -> dict[str, float]:
        """Return what counts as settled."""
        if not isinstance(self.tol, str):
            return {"tol": self.tol}
        if mostly_missing(table):
            return {"tol": _TOL_OF_RATINGS, "rest": _REST_OF_RATINGS}
        return {"tol": _TOL}

    def _start(self, intervals: Intervals, settled: dict[str, Any]) -> tuple[LowRank, Loss]:
        """Return the start and the loss to begin with."""
        rank, rng = settled["n_components_"], self._rng()
        if self.warm_start and hasattr(self, "row_factors_"):
            model, loss = self._last_fit(intervals, settled)
            if model is not None and (model.rank, model.bias) == (rank, self.bias):
                return restart_dead_factors(model, intervals, rng), loss
        start = start_model(intervals, rank, self.bias, self.init, rng)
        return start, start_loss(intervals, self.clipped)

    def _check_shape(self, shape: tuple[int, int]) -> None:
        rank = self._rank(shape) + self.bias
        check_memory((sum(shape), rank), np.float32, "FroCMC", "lower n_components.")

    def _rank_to_fit(self, shape: tuple[int, int]) -> int:
        return 1 if self.n_components == "auto" else self._rank(shape)

    def _penalty(self, alpha: float) -> Ridge:
        return Ridge(alpha, None if self.alpha_bias is None else float(self.alpha_bias))

    def _row_penalty(self, components: NDArray) -> Ridge:
        return self._penalty(self._strength())

    def _finished(self, table: Any, state: Solution) -> dict[str, Any]:
        if isinstance(table, Intervals):
            return super()._finished(table, state)
        known = {"singular_values_": state.factors.singular_values(), "gap_": float("nan")}
        return self._fitted(state) | known | {"_fit_cells": None}

    @cached_property
    def gap_(self) -> float:
        """Certified distance from the convex optimum, in units of the objective."""
        if self.course_ is not None:  # no certificate is known
            return float("nan")
        return self._certified_gap()


def _noise_of_ratings(cells: Intervals | BlockTable, clipped: str) -> float:
    """Return about the largest singular value of noise as wide as the values that count."""
    if isinstance(cells, Intervals):
        return mean_and_spread(cells)[1] * noise_norm(len(cells), cells.shape)
    counted = cells.n_exact if CLIPPED_MODES[clipped].cells == "left out" else len(cells)
    return cells.summary.values(clipped)[1] * noise_norm(counted, cells.shape)
