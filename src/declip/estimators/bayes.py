"""BayesCMC: the posterior of clipped and missing cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from declip.estimators.base import SHARED_CONSTRAINTS
from declip.estimators.order import ORDER_CONSTRAINTS, course_of
from declip.estimators.posterior import LARGEST_SEED, PosteriorEstimator
from declip.estimators.side import SideInformation, precisely_weighed
from declip.intervals import Intervals
from declip.scaling import mostly_missing
from declip.solvers.gibbs import (
    KnownSides,
    Model,
    Posterior,
    Run,
    Schedule,
    disagreement,
    mean_edges,
    sample_posterior,
    two_levels,
    weigh_patterns,
)
from declip.validation import (
    MISSING_WORDS,
    check_level_model,
    check_level_sides,
    check_memory,
    check_missing,
    check_missing_model,
    check_side_model,
    rank_to_fit,
    warn_user,
)

__all__ = ["BayesCMC"]

_SPECTRA = 20  # samples whose singular values are averaged
_FACTORS, _FACTORS_OF_WIDE_TABLES = 10, 20  # of "auto"
_SIGNS = {"random": 0, "low": 1, "high": -1, "auto": None}
_WORDS = {sign: word for word, sign in _SIGNS.items()}


class BayesCMC(PosteriorEstimator):
    r"""Restore clipped and missing cells with error bars, by sampling a factor model.

    The true value of a cell is

    .. math:: z_{ij} = b_i + c_j + p_i^T q_j + \varepsilon_{ij}, \qquad
              \varepsilon_{ij} \sim N(0, s_i^2 t_j^2),

    and of an observed cell its value is known, or an interval that holds it. Factors, offsets and
    noise scales have priors; their posterior is sampled by Gibbs, clipped cells along with them.
    Every answer is an average over the samples, so that nothing needs to be tuned: factors that the
    data do not need are shrunk away.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of factors at most. "auto" is 10; of a table with more than 20 rows and columns half
        as many as its smaller side has, up to 20, if ``noise`` is that of columns. At most one less
        than the smaller side.
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits, as in `FroCMC`. Where values are rounded to whole numbers and the top of the scale
        is C, a cell at the top says that the value is at least C - 1/2: clip there.
    n_samples : int, default=300
        Samples of each chain.
    burn_in : int, default=200
        Sweeps of each chain that are thrown away first.
    chains : int, default=2
        Chains, each from a start of its own.
    noise : {"auto", "column", "row+column", "global"}, default="auto"
        - "column": each column has a unit and a noise scale of its own. For tables.
        - "row+column": all cells share one unit; the noise scale of a cell is that of its row times
          that of its column, and rows have offsets. For ratings.
        - "global": the same with one noise scale for all cells.
        - "auto": "row+column" if less than a quarter of the cells are observed, else "column".
    df : float or None, default=None
        Degrees of freedom, more than 1, of Student t noise for tables with outliers (4 is a usual
        choice); None is Gaussian noise.
    missing : {"random", "low", "high", "auto"} or mapping, default="random"
        Why cells are missing; a mapping from columns gives each its own word, and columns that it
        leaves out "random".

        - "random": by chance. Missing cells say nothing of their values.
        - "low": the lower a value, the likelier it goes missing, by a detection curve that is
          sampled too; some cells are lost by chance. For intensities, and sensors.
        - "high": the same with high values.
        - "auto": the likeliest of these by held-out cells, seen or missing; a warning says which.
    order : {"rows", "columns"} or None, default=None
        Which of them follow each other in time, one step apart: their factors then drift and repeat
        instead of being drawn each on its own. Give steps without data as empty rows or
        columns; those after the last one are forecast. At most 1,000 steps.
    smooth : {0, 1, 2}, default=1
        Order of the random walk along ``order``: 1 goes on where it was, 2 also as it went; 0 for
        none. How far it goes is estimated.
    period : float, array-like of float or None, default=None
        Lengths of seasons along ``order``, in steps: 7 for weekdays. How large they are is
        estimated.
    levels : None, "known", "shared", "column", "pooled" or bool, default=None
        For tables of ordered levels, read by `Intervals.from_levels` (or given as an `Intervals`
        that has levels): how the edges between these are found.

        - "known": they are as given.
        - "shared": sampled, one set for all columns of a scale. True says the same.
        - "column": sampled, for each column on its own.
        - "pooled": sampled for each column, and drawn towards what the columns have in common.
        - None or False: X holds values. Of an `Intervals` with levels the edges are known.
    max_kept : int, default=200
        Samples kept, at equal distances, for everything that is asked after the fit. Memory does
        not grow with ``n_samples``.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all. The result does not depend on it.
    warm_start : bool, default=False
        Whether to go on with the chains of the last fit, without burn-in, if the table and the
        model are the same.
    verbose : int, default=0
        Print the misfit every so many sweeps.
    checkpoint, on_interrupt : path or None, {"raise", "keep"}
        Where to keep the state of a long fit, and what Ctrl-C does, as in `FroCMC`.

    Attributes
    ----------
    posterior_ : Posterior
        The samples that were kept; ``print`` sums them up, ``by_chain()`` keeps chains apart.
    noise_scale_ : ndarray of shape (n_features,)
        Posterior mean of the noise scale of each column, in its units.
    row_noise_ : ndarray of shape (n_samples,)
        Posterior mean of the factor by which the noise of each row differs; 1 but for "row+column".
    singular_values_ : ndarray of shape (n_components_,)
        Posterior mean of those of the factors' product, in standard deviations of the columns: of
        factors that are not needed, near 0.
    n_components_, noise_ : int, str
        What "auto" came to.
    missing_ : tuple of str
        Why cells of each column are taken to be missing: "random", "low" or "high".
    missing_evidence_ : PatternEvidence or None
        What "auto" went by.
    detection_ : dict or None
        The detection curve, if there is one: "limit" and "width" of each column, in its units, and
        the share "lost" by chance. Posterior means.
    levels_ : Levels or None
        The scales of the columns, if they are recorded in levels.
    edges_ : tuple of (ndarray or None), or None
        Posterior means of the edges of each column in levels.
    r_hat_, ess_ : dict of ndarray
        Split R-hat and effective sample size of some "cells", "column means", "noise scales" and
        "edges".
    converged_ : bool
        Whether nine in ten of each kind have an R-hat of at most 1.1 (noise scales and edges 1.2)
        and an effective size of at least 5 for each chain; of noise scales, which factors may stand
        for, half.
    history_ : ndarray of shape (n_iter_,)
        Misfit after each sweep, the mean over the chains: minus the log density of the noise, in
        the mean over observed cells with clipped ones as drawn, up to a constant.
    objective_ : float
        The last of them.
    n_iter_ : int
        Sweeps of each chain.
    intervals_ : Intervals
        The cells that were fitted.
    run_ : Run
        The state of the sampler, for ``warm_start``.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names, if they were all strings.
    row_labels_, column_labels_ : ndarray or None
        Labels of the rows and columns, if the table had any.

    Notes
    -----
    In the units of the sampler, in which columns (or all cells) have mean 0 and standard deviation
    1 by a censored normal fit, the priors are, for "column": :math:`p_i \sim N(0, I)`,
    :math:`q_{ja} \sim N(0, 1 / \tau_a)` with :math:`\tau_a \sim \Gamma(2, 2 / k)`, :math:`c_j \sim
    N(0, 100)`, no row offsets, :math:`t_j^2 \sim IG(1, 1/10)`. Otherwise rows :math:`(p_i, b_i)`
    are normal with a Normal-Wishart prior and so are columns; for "row+column" :math:`s_i^2 \sim
    IG(5, 5)` and :math:`t_j^2 \sim IG(5, 5 \theta)` with :math:`\theta \sim \Gamma(1, 1)`, for
    "global" the one variance is as for "column".

    With ``missing="low"`` a cell of value x is seen with the probability :math:`(1 - r) \Phi((x -
    l_j) / w_j)`: a noisy reading of it lies above :math:`l_j`, and it is not lost by chance. Limits
    (in units of the sampler, :math:`N(\mu_j, v)`, :math:`\mu_j` linear in the level of the column)
    and logs of widths are pooled over columns, :math:`r \sim Beta(1, 9)`. A missing cell that was
    not lost is a clipped one: its reading, of variance :math:`t_j^2 + w_j^2`, lies below
    :math:`l_j`. Limits and widths move by Metropolis steps with the missing cells integrated out.
    Clipped cells do not tell of the curve, and rows without an exact cell are left out.

    With ``levels`` two edges of a scale (near the quartiles of the answers) stay where they are
    given, since offsets, factors and noise say where values lie and how far they spread. The logs
    of the gaps between edges, over those given and less their mean, are N(0, 1); for "pooled"
    :math:`N(\mu, \tau^2)` with :math:`\mu \sim N(0, 1)` and :math:`\tau^2 \sim IG(2, 1/10)`. Edges
    move by Metropolis steps with the values of the cells integrated out (Cowles 1996). Two levels
    tell of no scale: the noise of such columns is 1 in the units of the sampler (1-bit completion
    with a probit link). ``df=8`` comes close to a logistic one.

    ``fit(X).transform(X)`` draws the rows anew under the columns of every sample, and these are
    samples given X: it agrees with ``fit_transform(X)`` up to Monte Carlo error.

    A clipped cell is drawn with the factors of its row (or column) integrated out, from a truncated
    normal by exponential rejection in the tail.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import BayesCMC
    >>> rng = np.random.default_rng(0)
    >>> truth = 5 + rng.standard_normal((60, 2)) @ rng.standard_normal((2, 8))
    >>> seen = np.minimum(truth + 0.1 * rng.standard_normal(truth.shape), 6)
    >>> model = BayesCMC(ceiling=6, random_state=0).fit(seen)
    >>> row, col = np.argwhere(seen == 6)[0]
    >>> low, high = model.predict_interval([row], [col], coverage=0.9)
    >>> bool(low[0] == 6), bool(truth[row, col] < high[0])
    (True, True)
    """

    _on_request: ClassVar[tuple[str, ...]] = ("singular_values_",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{n: c for n, c in SHARED_CONSTRAINTS.items() if n not in ("max_iter", "tol")},
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "chains": [Interval(Integral, 1, None, closed="left")],
        "noise": [StrOptions({"auto", "column", "row+column", "global"})],
        "df": [Interval(Real, 1, None, closed="neither"), None],
        "missing": [StrOptions(set(MISSING_WORDS)), Mapping],
        **ORDER_CONSTRAINTS,
        "levels": [StrOptions({"known", "shared", "column", "pooled"}), "boolean", None],
        "max_kept": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
    }
    clipped: ClassVar[str] = "tobit"  # the only way in which clipped cells count here

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        ceiling: Any = None,
        floor: Any = None,
        n_samples: int = 300,
        burn_in: int = 200,
        chains: int = 2,
        noise: str = "auto",
        df: float | None = None,
        missing: Any = "random",
        order: str | None = None,
        smooth: int = 1,
        period: Any = None,
        levels: str | bool | None = None,
        max_kept: int = 200,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
        on_interrupt: str = "raise",
    ) -> None:
        self.n_components = n_components
        self.ceiling = ceiling
        self.floor = floor
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.chains = chains
        self.noise = noise
        self.df = df
        self.missing = missing
        self.order = order
        self.smooth = smooth
        self.period = period
        self.levels = levels
        self.max_kept = max_kept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt

    def _solve(self, table: Any, settled: dict[str, Any], **watched: Any) -> Run:
        seed = check_random_state(self.random_state).randint(LARGEST_SEED)
        threads = effective_n_jobs(self.n_jobs)
        side: SideInformation | None = settled.get("side_")
        errors = side is not None and side.weighted == "errors"
        model = self._with_missing(self._chosen(table, errors), table, seed, threads)
        n_kept = min(self.max_kept, self.chains * self.n_samples)
        samples = n_kept, sum(table.shape), model.rank + 1
        check_memory(samples, np.float32, "BayesCMC", "lower max_kept or n_components.")
        schedule = Schedule(self.n_samples, self.burn_in, self.chains, self.max_kept, seed)
        last = self._last_run(table, model)
        return sample_posterior(
            table, model, schedule, last=last, threads=threads, known=_sides(settled), **watched
        )

    def _weighed(self, cells: Any, known: Any, settled: dict[str, Any]) -> Any:
        check_side_model(known.names, self.df, self.missing)
        check_level_sides(self.levels, known.names)
        return precisely_weighed(cells, known)

    def _read(self, X: Any) -> Intervals:
        if not self.levels or isinstance(X, Intervals):
            return super()._read(X)
        return Intervals.from_levels(X, ceiling=self.ceiling, floor=self.floor)

    def _chosen(self, intervals: Intervals, errors: bool = False) -> Model:
        """Return the model, with "auto" settled."""
        noise = "known" if errors else self.noise
        if noise == "auto":
            ratings = self.missing == "random" and mostly_missing(intervals)
            shared = ratings or self.order == "columns"
            noise = "row+column" if shared else "column"
            two = two_levels(intervals)
            # of two levels throughout, nothing tells the noise of one row from that of another
            noise = "global" if shared and two is not None and two.all() else noise
        rank = rank_to_fit(self.n_components, intervals.shape, _most_factors(intervals, noise))
        check_level_model(intervals, self.levels, self.missing)
        levels = "shared" if self.levels is True else str(self.levels or "")
        order = course_of(self.order, self.smooth, self.period, intervals.shape)
        return Model(rank, noise, float(self.df or 0.0), order=order, levels=levels)

    def _with_missing(self, model: Model, table: Intervals, seed: int, threads: int) -> Model:
        """Return the model with why cells of each column are missing, "auto" settled."""
        self.__dict__.pop("_evidence", None)  # of a fit that was broken off
        words = check_missing(self.missing, table.shape[1], table.col_labels)
        if {*words} == {"random"} or len(table) == table.shape[0] * table.shape[1]:
            return model
        check_missing_model(table.shape, model.noise, model.df)
        signs = [_SIGNS[word] for word in words]
        if "auto" in words:
            evidence = weigh_patterns(table, model, signs, seed, threads)
            warn_user(str(evidence))
            signs = [_SIGNS[evidence.best] if sign is None else sign for sign in signs]
            self._evidence = evidence
        # of a column without an exact cell nothing is known
        known = np.bincount(table.by_row.exact_idx, minlength=len(signs)) > 0
        by_column = tuple(int(sign or 0) if k else 0 for sign, k in zip(signs, known, strict=True))
        return replace(model, missing=by_column) if any(by_column) else model

    def _last_run(self, intervals: Intervals, model: Model) -> Run | None:
        """Return the run to go on with: if asked for, and of the same table and model."""
        if not (self.warm_start and hasattr(self, "run_")):
            return None
        run: Run = self.run_
        same_model = run.chains[0].model == model and len(run.chains) == self.chains
        return run if same_model and self.intervals_.has_cells_of(intervals) else None

    def _fitted(self, state: Run) -> dict[str, Any]:
        run, history = state.fork(), np.array(state.history)
        return {
            "run_": run,
            "posterior_": run.posterior,
            "history_": history,
            "objective_": float(history[-1]),
            "n_iter_": run.n_iter,
        }

    def _finished(self, table: Any, state: Run) -> dict[str, Any]:
        posterior, r_hat, ess = state.posterior, state.r_hat(), state.effective()
        rows, cols = posterior.noise_scales()
        signs = posterior.model.missing or (0,) * table.shape[1]
        return self._fitted(state) | {
            "intervals_": table,
            "n_components_": posterior.model.rank,
            "noise_": posterior.model.noise,
            "missing_": tuple(_WORDS[s] for s in signs),
            "missing_evidence_": self.__dict__.pop("_evidence", None),
            "detection_": _curve_of(posterior),
            "levels_": table.levels,
            "edges_": None if table.levels is None else mean_edges(posterior, table.levels),
            "row_noise_": rows,
            "noise_scale_": cols,
            "r_hat_": r_hat,
            "ess_": ess,
            "converged_": not disagreement(r_hat, ess, len(state.chains)),
        }

    @cached_property
    def singular_values_(self) -> NDArray[np.float64]:
        """Singular values of the matrix, largest first: the mean over some samples."""
        samples = self._model().samples
        some = samples[:: max(1, len(samples) // _SPECTRA)]
        return np.mean([s.factors.singular_values() for s in some], axis=0)

    def _snapshot(self, state: Run) -> Run:
        return state.fork()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the posterior if the run holds its samples as well."""
        state = super().__getstate__()
        return {n: part for n, part in state.items() if n != "posterior_" or "run_" not in state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state, and the posterior from its run."""
        super().__setstate__(state)
        if "run_" in state:
            self.posterior_ = self.run_.posterior

    def _check_loaded(self) -> None:
        self._validate_params()
        shapes = {sample.factors.shape for sample in self.posterior_.samples}
        if {*shapes, self.intervals_.shape} != {(self.intervals_.shape[0], self.n_features_in_)}:
            raise ValueError("samples and cells are not of one table")

    def _not_converged(self, state: Run) -> str:
        return (
            f"the {self.chains} chains of BayesCMC do not agree yet after {state.n_iter} "
            f"sweeps: {state.disagreement()} that were looked at (r_hat_ and ess_ have them all). "
            "Raise n_samples and burn_in, or set warm_start=True and fit again to go on; if that "
            "does not help, lower n_components."
        )

    def _most_sweeps(self) -> int:
        return self.burn_in + self.n_samples

    def _check_shape(self, shape: tuple[int, int]) -> None:
        rank_to_fit(self.n_components, shape)


def _sides(settled: dict[str, Any]) -> KnownSides | None:
    side: SideInformation | None = settled.get("side_")
    if side is None:
        return None
    return KnownSides(side.row_features, side.col_features, side.index, side.n_groups)


def _curve_of(posterior: Posterior) -> dict[str, Any] | None:
    if not any(posterior.model.missing):
        return None
    limit, width, lost = posterior.curve_parameters()
    return {"limit": limit, "width": width, "lost": lost}


def _most_factors(intervals: Intervals, noise: str) -> int:
    """Return the factors of "auto": more for wide tables, whose columns have units of their own."""
    half = min(intervals.shape) // 2
    return int(np.clip(half, _FACTORS, _FACTORS_OF_WIDE_TABLES)) if noise == "column" else _FACTORS
