"""EntrySearchCV: parameters chosen by how well held-out cells are restored."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from declip.intervals import Intervals, as_intervals
from declip.model_selection.paths import Params, Path, paths_of, quiet, without_limits
from declip.model_selection.results import Outcome, tabulate
from declip.model_selection.scoring import HeldOutCells, Scorer, check_scoring
from declip.model_selection.splits import EntryKFold, Split, keep_cells
from declip.validation import warn_user

__all__ = ["EntrySearchCV"]

Outcomes = dict[tuple[int, int], Outcome]


def _delegates(name: str) -> Callable[[EntrySearchCV], bool]:
    """Return whether the best estimator, or before the fit the given one, has a method."""
    return lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name)


class EntrySearchCV(CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator):
    """Choose the parameters of an estimator by how well it restores cells that it was not shown.

    Cells are held out, not rows. The folds are drawn once and are the same for all candidates.
    Candidates that differ in ``alpha`` alone are fitted from the largest to the smallest, each from
    the solution of the last, if the estimator can start warm.

    Parameters
    ----------
    estimator : estimator
        Has ``fit(X)`` for `Intervals` and ``predict(rows, cols)``; its ``ceiling`` and ``floor``,
        if it has them, are the limits of the table.
    param_grid : dict or list of dict, optional
        Values to try for each parameter, all combinations of them, as in `GridSearchCV`.
    param_distributions : dict or list of dict, optional
        Instead of a grid: values or distributions to draw ``n_iter`` candidates from, as in
        `RandomizedSearchCV`.
    n_iter : int, default=10
        Number of candidates to draw.
    cv : None, int, splitter or iterable of (train, test), default=None
        `EntryShuffleSplit`, `EntryKFold`, number of folds (None is 5), or positions of cells as
        `Intervals.triplets` lists them.
    scoring : str, callable, list or dict, default="neg_clipped_relative_rmse"
        What is highest for the best candidate:

        - "neg_clipped_relative_rmse": minus the relative error after clipping, the paper's
          criterion;
        - "neg_interval_rmse": minus the root mean squared distance from what is known of a cell,
          which is two-sided for exact cells and one-sided for clipped ones. It needs no limits of
          exact cells, but with noise it favours estimates that are too low: an exact cell counts
          against an estimate beyond the limit, and a clipped one never counts for it;
        - "at_ceiling_f1", "at_ceiling_average_precision", "at_ceiling_auc": how well cells at the
          ceiling are separated from others;
        - a function of (fitted estimator, `HeldOutCells`);
        - several: a list of names, or a dict from name to any of the above. ``refit`` then has to
          say which of them decides.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate to all cells; the name of the score that decides, if there
        are several; or a function from `cv_results_` to the index of the best.
    n_jobs : int or None, default=None
        Threads over candidates and folds; None is 1, -1 all. The result does not depend on it.
    warm_start : bool, default=True
        Whether to follow ``alpha`` by warm starts. The refit then follows it, too, down to the best
        one.
    error_score : "raise" or float, default=nan
        Score of a fit that fails.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, if ``cv`` is None or a number, and of the candidates drawn.
    verbose : int, default=0
        Of joblib: how much to print on the way. For a progress bar, set scikit-learn's
        ``ProgressBar`` by `set_callbacks`.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        A column for each parameter, score and time, a row for each candidate, as in `GridSearchCV`.
    best_estimator_ : estimator
        The best candidate, fitted to all cells.
    best_params_, best_score_, best_index_ : dict, float, int
        Parameters, mean score and row in `cv_results_` of the best candidate.
    scorer_ : callable or dict
        The score, or the scores by name.
    n_splits_ : int
        Number of splits.
    refit_time_ : float
        Seconds that the last fit took.
    multimetric_ : bool
        Whether there are several scores.
    n_features_in_, feature_names_in_
        Columns of the table and their names.

    Notes
    -----
    A callback that asks to stop ends the search early: candidates not yet seen on every fold have a
    mean score of NaN and are not chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import EntrySearchCV, FroCMC
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(3, 1, (30, 2)) @ rng.normal(1, 0.3, (2, 20))
    >>> model = FroCMC(ceiling=8, scale="none", random_state=0)
    >>> grid = {"n_components": [1, 2, 4], "alpha": [0.01, 10]}
    >>> search = EntrySearchCV(model, grid, random_state=0).fit(np.minimum(truth, 8))
    >>> search.best_params_
    {'alpha': 0.01, 'n_components': 2}
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict", "set_params"])],
        "param_grid": [dict, list, None],
        "param_distributions": [dict, list, None],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "refit": ["boolean", str, callable],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
        "error_score": [StrOptions({"raise"}), Real],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        param_distributions: Any = None,
        n_iter: int = 10,
        cv: Any = None,
        scoring: Any = "neg_clipped_relative_rmse",
        refit: Any = True,
        n_jobs: int | None = None,
        warm_start: bool = True,
        error_score: Any = np.nan,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.error_score = error_score
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Try all candidates on held-out cells, and fit the best one to all cells.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            The table; ``ceiling`` and ``floor`` of the estimator apply to it, and must be None for
            an `Intervals`, which has its own.
        y : ignored
            For the conventions of scikit-learn.

        Returns
        -------
        self : object
            The fitted search.
        """
        scorers = check_scoring(self.scoring)
        deciding = self._deciding(scorers)
        rng = check_random_state(self.random_state)
        candidates = self._candidates(rng)
        intervals = self._read(X)
        splits = self._splits(intervals, rng)
        paths = paths_of(without_limits(self.estimator), candidates, self.warm_start)
        context = self._init_callback_context(max_subtasks=len(paths) * len(splits))
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        outcomes = self._search(intervals, splits, paths, scorers, context)
        _report_failures(outcomes)
        self.cv_results_ = tabulate(candidates, outcomes, len(splits), list(scorers))
        self.n_splits_, self.multimetric_ = len(splits), "score" not in scorers
        self.scorer_ = scorers if self.multimetric_ else scorers["score"]
        if deciding is not None:
            self._choose(deciding)
        if self.refit is not False:
            self._refit(intervals, next(path for path in paths if self.best_index_ in path.members))
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _deciding(self, scorers: dict[str, Scorer]) -> Any:
        """Return the name of the score that decides, or the function; None if nothing does."""
        if callable(self.refit) or isinstance(self.refit, str):
            deciding = self.refit
        else:
            deciding = "score" if "score" in scorers else None
        unknown = isinstance(deciding, str) and deciding not in scorers
        if unknown or (deciding is None and self.refit):
            raise ValueError(
                f"refit must name the score that decides, one of {list(scorers)}, or be False; got "
                f"{self.refit!r}."
            )
        return deciding

    def _candidates(self, rng: np.random.RandomState) -> list[Params]:
        if (self.param_grid is None) == (self.param_distributions is None):
            raise ValueError("Give either param_grid or param_distributions.")
        if self.param_grid is not None:
            candidates = list(ParameterGrid(self.param_grid))
        else:
            drawn = ParameterSampler(self.param_distributions, self.n_iter, random_state=rng)
            candidates = list(drawn)
        for name in ("ceiling", "floor"):
            if any(name in params for params in candidates):
                raise ValueError(
                    f"{name} cannot be tuned: it says what the cells are, and scores under other "
                    f"limits do not compare. Set {name}= of the estimator."
                )
        return candidates

    def _limits(self) -> tuple[Any, Any]:
        return getattr(self.estimator, "ceiling", None), getattr(self.estimator, "floor", None)

    def _read(self, X: Any) -> Intervals:
        return as_intervals(X, *self._limits(), estimator=self)

    def _splits(self, intervals: Intervals, rng: np.random.RandomState) -> list[Split]:
        cv: Any = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            cv = EntryKFold(int(cv), random_state=rng)
        return list(cv.split(intervals) if hasattr(cv, "split") else cv)

    def _search(
        self,
        intervals: Intervals,
        splits: list[Split],
        paths: list[Path],
        scorers: dict[str, Scorer],
        context: Any,
    ) -> Outcomes:
        """Return the outcomes by candidate and split."""
        cells = HeldOutCells.of(intervals, *self._limits())

        def score(path: Path, split: Split) -> dict[int, Outcome]:
            train, test = split
            shown, hidden = keep_cells(intervals, train), cells.take(test)
            return path.score(shown, hidden, scorers, self.error_score)

        tasks = list(product(paths, range(len(splits))))
        outcomes: Outcomes = {}
        with quiet(), threadpool_limits(limits=1, user_api="blas"):
            found = Parallel(
                self.n_jobs, prefer="threads", verbose=self.verbose, return_as="generator"
            )(delayed(score)(path, splits[k]) for path, k in tasks)
            for (_, k), scored in zip(tasks, found, strict=True):
                outcomes |= {(candidate, k): outcome for candidate, outcome in scored.items()}
                task = context.subcontext(task_name="path-on-split")
                task.call_on_fit_task_begin(estimator=self)
                if task.call_on_fit_task_end(estimator=self):
                    break
        return outcomes

    def _choose(self, deciding: str | Callable[[dict[str, Any]], int]) -> None:
        if callable(deciding):
            self.best_index_ = int(deciding(self.cv_results_))
        else:
            means = self.cv_results_[f"mean_test_{deciding}"]
            if np.isnan(means).all():
                raise ValueError(
                    f"No candidate has a {deciding} on every split: see cv_results_. A score of "
                    "'is it at the ceiling' needs clipped and exact cells in every split."
                )
            self.best_index_ = int(np.nanargmax(means))
            self.best_score_ = float(means[self.best_index_])
        self.best_params_ = self.cv_results_["params"][self.best_index_]

    def _refit(self, intervals: Intervals, path: Path) -> None:
        began = perf_counter()
        found, kept = path.fit(intervals, self.best_index_), self.estimator.get_params(deep=False)
        limits = {name: kept[name] for name in ("ceiling", "floor") if name in kept}
        self.best_estimator_ = found.set_params(**limits)
        self.refit_time_ = perf_counter() - began
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @available_if(_delegates("predict"))
    def predict(self, rows: Any, cols: Any = None) -> NDArray:
        """Return ``best_estimator_.predict(rows, cols)``: the estimate of single cells."""
        return self._best().predict(rows, cols)

    @available_if(_delegates("transform"))
    def transform(self, X: Any) -> NDArray:
        """Return ``best_estimator_.transform(X)``: the restored table."""
        return self._best().transform(X)

    @available_if(_delegates("reconstruct"))
    def reconstruct(self, rows: Any = None, cols: Any = None) -> NDArray:
        """Return ``best_estimator_.reconstruct(rows, cols)``: a block of the low-rank estimate."""
        return self._best().reconstruct(rows, cols)

    @available_if(_delegates("score"))
    def score(self, X: Any, y: Any = None) -> float:
        """Return ``best_estimator_.score(X)``."""
        return self._best().score(X)

    @available_if(_delegates("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return ``best_estimator_.get_feature_names_out(input_features)``."""
        return self._best().get_feature_names_out(input_features)

    def __sklearn_tags__(self) -> Any:
        """Say of tables what the estimator says."""
        tags = super().__sklearn_tags__()
        given = get_tags(self.estimator)
        tags.input_tags, tags.transformer_tags = given.input_tags, given.transformer_tags
        return tags


def _report_failures(outcomes: Outcomes) -> None:
    errors = [outcome.error for outcome in outcomes.values() if outcome.error]
    if errors and len(errors) == len(outcomes):
        raise ValueError(f"All {len(errors)} fits failed. The first: {errors[0]}")
    if errors:
        warn_user(f"{len(errors)} of {len(outcomes)} fits failed. The first: {errors[0]}")
