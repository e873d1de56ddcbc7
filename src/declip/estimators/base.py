"""What all estimators share: reading a table, restoring it, and asking for single cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from declip import kernels, persistence
from declip.estimators.uncertainty import CellUncertainty
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.solvers import NO_RESUME_POINT, ResumePoint, Solution, solve_rows
from declip.solvers.als import ridge_of
from declip.validation import (
    check_cells,
    check_memory,
    check_selection,
    check_some_exact,
    table_to_triplets,
    warn_about_coverage,
    warn_nothing_clipped,
    warn_user,
)

__all__ = ["SHARED_CONSTRAINTS", "CompletionEstimator", "fitted_model", "spectrum"]

SHARED_CONSTRAINTS: dict[str, Any] = {
    "ceiling": "no_validation",
    "floor": "no_validation",
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "checkpoint": [str, PathLike, None],
    "on_interrupt": [StrOptions({"raise", "keep"})],
}

_SCORE_FOLDS = 5
_FEWER_ROWS = "transform fewer rows at a time."
_SINGLE_CELLS = "ask for fewer rows or columns, or for single cells with predict(rows, cols)."
_USE_FIT = "use fit, then predict(rows, cols) for single cells or reconstruct(rows=, cols=)."
_NO_MATTER = ("n_jobs", "verbose", "checkpoint", "on_interrupt")  # to the result of a fit
_FACTORS = ("row_factors_", "components_", "row_offset_", "column_offset_", "scale_")
_COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_")  # set while a table is read
_ON_REQUEST = ("uncertainty_",)  # attributes that are computed from the cells of the fit


@dataclass(frozen=True, eq=False)
class FitData:
    """What a fit was made of, kept by reference for what is computed only on request."""

    intervals: Intervals
    penalty: dict[str, Any]


class CompletionEstimator(
    CallbackSupportMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    """A fitted low-rank matrix, and the row problem that extends it to new rows.

    A subclass implements `_solve`, which fits the cells and returns a `Solution`, and has the
    parameters ``ceiling``, ``floor``, ``clipped``, ``alpha``, ``n_jobs``, ``max_iter`` and
    ``verbose``; where its solver can be taken up again also ``checkpoint`` and ``on_interrupt``.
    """

    checkpoint: Any = None
    on_interrupt: str = "raise"

    def _solve(self, intervals: Intervals, **watched: Any) -> Solution:
        """Fit the cells; ``watched`` is for the solver: ``on_sweep`` and ``resume_point``."""
        raise NotImplementedError

    def _most_sweeps(self) -> int:
        """Return how many sweeps a fit makes at most."""
        return self.max_iter

    def _fitted(self, state: Any) -> dict[str, Any]:
        """Return the fitted attributes that a solution gives."""
        return fitted_attributes(state)

    def _certify(self, intervals: Intervals, solution: Solution) -> dict[str, Any]:
        """Return the fitted attributes that need the data: certificates, residuals."""
        raise NotImplementedError

    def _kept(self, intervals: Intervals, fitted: dict[str, Any]) -> dict[str, Any]:
        """Return what is kept of the data of a fit: the cells by rows, not those by columns."""
        return {"_fit_data": FitData(replace(intervals), self._row_penalty(fitted["components_"]))}

    def _check_shape(self, shape: tuple[int, int]) -> None:
        """Refuse parameters that do not fit the table."""

    def _rank_to_fit(self) -> int:
        """Return how many exact cells a row needs to be determined by the data."""
        return 1

    def _row_penalty(self, components: NDArray) -> dict[str, Any]:
        """Return the penalty under which new rows are solved for, given column factors."""
        return {"alpha": self.alpha}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the low-rank model to the observed cells of a table.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            NaN (and NA, None, masked or absent in a sparse matrix) is missing. An `Intervals`
            carries its own limits; ``ceiling`` and ``floor`` are then not used.
        y : ignored
            For the conventions of scikit-learn.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, y)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray:
        """Fit, and return the restored table.

        Exact cells come back untouched, clipped cells beyond their limit, missing cells filled.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            As in `fit`.
        y : ignored
            For the conventions of scikit-learn.
        **fit_params : dict
            None are taken.

        Returns
        -------
        X_restored : ndarray of shape (n_samples, n_features)
            Dense; refused before allocation if it cannot fit in memory.
        """
        if fit_params:
            raise TypeError(f"fit_transform takes no {', '.join(fit_params)}")
        intervals = self._fit(X, y, dense_result=True)
        return self._restored(intervals, self._model())

    def _fit(self, X: Any, y: Any, dense_result: bool = False) -> Intervals:
        """Read, fit and keep the result; a fit that fails leaves the estimator as it was."""
        before = {name: vars(self)[name] for name in _COLUMN_ATTRIBUTES if name in vars(self)}
        try:
            intervals = self._read(X, reset=True)
            if dense_result:
                _check_dense(intervals, "fit_transform", _USE_FIT)
            fitted = self._fit_cells(X, y, intervals)
        except BaseException:
            for name in _COLUMN_ATTRIBUTES:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise
        for name in _ON_REQUEST:
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted)
        return intervals

    @with_callbacks
    def _fit_cells(self, X: Any, y: Any, intervals: Intervals) -> dict[str, Any]:
        treated = self._check_fittable(intervals)
        context = self._init_callback_context(max_subtasks=self._most_sweeps())
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        resume_point, reporter = self._resume_point(treated), _SweepReporter(self, context, X, y)
        # BLAS works on small factors here; its threads would only spin beside ours.
        with threadpool_limits(limits=1, user_api="blas"):
            solution = self._solve_or_keep(treated, reporter, resume_point)
            fitted = self._fitted(solution) | self._certify(treated, solution)
        fitted |= self._kept(treated, fitted)
        self._check_finite(fitted["objective_"], *(fitted.get(name, 0.0) for name in _FACTORS))
        if reporter.interrupted:
            fitted["converged_"] = False
        else:
            resume_point.done()
        context.call_on_fit_task_end(
            estimator=self, X=X, y=y, reconstruction_attributes=lambda: fitted
        )
        if not solution.converged and not solution.stopped:
            warn_user(self._not_converged(solution), ConvergenceWarning)
        return fitted

    def _solve_or_keep(
        self, intervals: Intervals, reporter: _SweepReporter, resume_point: ResumePoint
    ) -> Solution:
        """Fit the cells; after Ctrl-C, if that was asked for, return what the last sweep left."""
        try:
            return self._solve(intervals, on_sweep=reporter, resume_point=resume_point)
        except KeyboardInterrupt:
            if reporter.last is None:
                raise
            reporter.interrupted = True
            warn_user(
                f"{type(self).__name__} was interrupted after {reporter.last.n_iter} sweeps, and "
                "kept what it had.",
                ConvergenceWarning,
            )
            return replace(reporter.last, stopped=True)

    def _snapshot(self, state: Any) -> Any:
        """Return the state after a sweep as it will not change any more."""
        return state

    def _resume_point(self, intervals: Intervals) -> ResumePoint:
        """Return where the state of this fit is kept, with one that was left there."""
        if self.checkpoint is None:
            return NO_RESUME_POINT
        begun = {n: v for n, v in self.get_params(deep=False).items() if n not in _NO_MATTER}
        if begun.get("warm_start"):
            begun |= {n: v for n, v in vars(self).items() if n.endswith("_")}
        begun |= {"estimator": type(self).__name__, "table": [intervals.shape, intervals.by_row]}
        return persistence.Checkpoint(self.checkpoint, begun)

    def _check_finite(self, *found: Any) -> None:
        """Refuse a fit that holds NaN or infinities: it would fill the table with them."""
        if not all(np.isfinite(numbers).all() for numbers in found):
            raise FloatingPointError(
                f"{type(self).__name__} ran into numbers that are not finite. Rescale the data to "
                "values near 1, raise alpha or lower n_components; the estimator is as it was."
            )

    def _not_converged(self, solution: Solution) -> str:
        return (
            f"{type(self).__name__} stopped after {solution.n_iter} sweeps before it had settled: "
            f"the last one still lowered the objective by {solution.last_fall:.1e}, where tol is "
            f"{self.tol:g}. Raise max_iter or alpha, or accept a larger tol."
        )

    def _check_fittable(self, intervals: Intervals) -> Intervals:
        """Return the cells as ``clipped`` asks, or say why they cannot be fitted."""
        self._check_shape(intervals.shape)
        treated = intervals.treat(self.clipped)
        if treated.n_exact == 0:
            check_some_exact(treated.by_row.lower, treated.by_row.upper, len(intervals))
        if intervals.n_censored == 0 and not (self.ceiling is None and self.floor is None):
            warn_nothing_clipped(self.ceiling is not None, self.floor is not None)
        for axis, side, labels in (
            ("row", treated.by_row, treated.row_labels),
            ("column", treated.by_col, treated.col_labels),
        ):
            exact, censored = np.diff(side.exact_ptr), np.diff(side.censored_ptr)
            warn_about_coverage(axis, exact, exact + censored, self._rank_to_fit(), labels)
        return treated

    def _read(self, X: Any, *, reset: bool) -> Intervals:
        """Return the cells of a table under the limits of this estimator; an Intervals as it is."""
        if isinstance(X, Intervals):
            self._check_columns(X, reset=reset)
            return X
        cells = table_to_triplets(X, estimator=self, allow_empty=not reset)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return Intervals.from_cells(cells, self.ceiling, self.floor)

    def _check_columns(self, X: Intervals, *, reset: bool) -> None:
        """Do for an Intervals what scikit-learn's validate_data does for a table."""
        labels = [] if X.col_labels is None else list(X.col_labels)
        named = bool(labels) and all(isinstance(label, str) for label in labels)
        if reset:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            if named:
                self.feature_names_in_ = np.asarray(labels, dtype=object)
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        elif named and list(getattr(self, "feature_names_in_", labels)) != labels:
            unseen = [name for name in labels if name not in set(self.feature_names_in_)]
            raise ValueError(
                "The feature names should match those that were passed during fit"
                + (f"; unseen at fit time: {', '.join(unseen[:5])}." if unseen else ", in order.")
            )

    def _model(self, n_rows: int | None = None) -> LowRank:
        """Return the fitted matrix, or ``n_rows`` rows to be solved for with its columns."""
        check_is_fitted(self)
        P, Q = self.row_factors_, np.ascontiguousarray(self.components_.T)
        if n_rows is not None:
            P = np.zeros((n_rows, Q.shape[1]), Q.dtype)
        if not self.has_offsets_:
            return LowRank(P, Q, self.mean_)
        b = self.row_offset_ if n_rows is None else np.zeros(n_rows, Q.dtype)
        return LowRank(
            np.column_stack([P, b]), np.column_stack([Q, self.column_offset_]), self.mean_, True
        )

    def _solve_new_rows(self, intervals: Intervals) -> LowRank:
        model = self._model(intervals.shape[0])
        side = intervals.treat(self.clipped).astype(model.A.dtype).by_row
        threads = effective_n_jobs(self.n_jobs)
        penalty = self._row_penalty(self.components_)
        solved = solve_rows(side, model, scale=self.scale_, threads=threads, **penalty)
        self._check_finite(solved.A)
        return solved

    def transform(self, X: Any) -> NDArray:
        """Restore a table, solving for its rows with the fitted column factors.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            ``ceiling`` and ``floor`` of the estimator apply; limits that differ by row or cell are
            given with the rows, as an `Intervals`.

        Returns
        -------
        X_restored : ndarray of shape (n_samples, n_features)
            Dense; refused before allocation if it cannot fit in memory.
        """
        check_is_fitted(self)
        intervals = self._read(X, reset=False)
        _check_dense(intervals, "transform", _FEWER_ROWS)
        return self._restored(intervals, self._solve_new_rows(intervals))

    def _restored(self, intervals: Intervals, model: LowRank) -> NDArray:
        """Return the model with every observed cell at its expected value given its interval."""
        side = intervals.by_row
        table = model.block()
        table = table.astype(np.result_type(table, side.value), copy=False)
        table[side.exact_rows(), side.exact_idx] = side.value
        cells = side.censored_rows(), side.censored_idx
        table[cells] = self._within(table[cells], side.lower, side.upper)
        return table

    def predict(self, rows: Any, cols: ArrayLike | None = None) -> NDArray:
        """Return the low-rank estimate of single cells of the fitted table, or of a new table.

        Parameters
        ----------
        rows : array-like of int, or a table
            Rows of the cells; or, if ``cols`` is None, a table (not sparse) whose rows are solved
            for as in `transform`.
        cols : array-like of int, optional
            Columns of the cells, as many as ``rows``.

        Returns
        -------
        ndarray
            One value for each cell, or a table of the shape of ``rows``. Unlike `transform`, it
            does not put the observed values back.
        """
        check_is_fitted(self)
        if cols is not None:
            model = self._model()
            return model.predict(
                *check_cells(rows, cols, model.shape), effective_n_jobs(self.n_jobs)
            )
        if sparse.issparse(rows):
            raise TypeError(
                "predict estimates every cell, so it takes no sparse table: ask for single cells "
                "with predict(rows, cols), or use transform."
            )
        intervals = self._read(rows, reset=False)
        _check_dense(intervals, "predict", _SINGLE_CELLS)
        return self._solve_new_rows(intervals).block()

    @cached_property
    def uncertainty_(self) -> CellUncertainty:
        """Noise of the columns and exact cells of the rows, from which `predictive` is computed."""
        if "_fit_data" not in vars(self):
            raise AttributeError("the cells of the fit are not at hand")
        data, model = self._fit_data, self._model()
        ridge = ridge_of(model, data.penalty["alpha"], data.penalty.get("alpha_bias"))
        return CellUncertainty.of(data.intervals, model, ridge)

    def predictive(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation of the values of cells of the fitted table.

        The noise is included. What is known of the very cell (its value, its limit) counts only
        through the factors.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells.

        Returns
        -------
        mean, sd : ndarray
            One of each for each cell.

        Notes
        -----
        The variance is that of the noise of the column, from the residuals of its cells, plus that
        of the factors of the row given those of the columns: read it as "at least".
        """
        model = self._model()
        at = check_cells(rows, cols, model.shape)
        if not hasattr(self, "uncertainty_"):
            raise ValueError(
                f"This {type(self).__name__} has not kept the cells that it was fitted to, as one "
                "fitted to blocks, or saved by an earlier version, has not: fit it again in memory."
            )
        mean = model.predict(*at, effective_n_jobs(self.n_jobs)).astype(np.float64)
        return mean, self.uncertainty_.sd(model, *at)

    def expected(
        self, rows: ArrayLike, cols: ArrayLike, lower: ArrayLike, upper: ArrayLike
    ) -> NDArray:
        """Return the restored values of cells of the fitted table that lie in [lower, upper].

        That is the point of the interval nearest to the low-rank estimate; for "tobit" the mean of
        a normal law about it, cut off at the ends.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells.
        lower, upper : array-like
            The bounds of each; infinite where there is none.
        """
        x = self.predict(rows, cols)
        return self._within(x, np.asarray(lower, x.dtype), np.asarray(upper, x.dtype))

    def _within(self, x: NDArray, lower: NDArray, upper: NDArray) -> NDArray:
        # x - loss'(x): the nearest point of the interval (hinge), the mean of the censored normal
        # (Tobit)
        shift = kernels.interval_loss(x, lower, upper, scale=self.scale_).gradient
        return np.clip(x - shift, lower, upper)

    def reconstruct(self, rows: Any = None, cols: Any = None) -> NDArray:
        """Return a dense block of the fitted low-rank matrix.

        Parameters
        ----------
        rows, cols : array-like of int or bool, slice, optional
            Which rows and columns; all by default.
        """
        model = self._model()
        chosen = [
            check_selection(which, size, name)
            for which, size, name in zip((rows, cols), model.shape, ("rows", "cols"), strict=True)
        ]
        shape = (len(chosen[0]), len(chosen[1]))
        check_memory(shape, model.dtype, "reconstruct", _SINGLE_CELLS)
        return model.block(*chosen)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the root mean squared error of cells predicted from the rest of their row.

        Each cell is hidden once (in five parts), its row solved for from the others with the fitted
        column factors, and the distance of the prediction from the cell's interval taken. Higher is
        better.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            Rows to score.
        y : ignored
            For the conventions of scikit-learn.
        """
        check_is_fitted(self)
        intervals = self._read(X, reset=False)
        if len(intervals) == 0:
            raise ValueError("X has no observed cell to score: every cell is missing.")
        rows, cols, lower, upper = intervals.triplets()
        part = (np.arange(len(rows)) + rows) % _SCORE_FOLDS
        total = 0.0
        for fold in range(_SCORE_FOLDS):
            hidden = part == fold
            shown = intervals.keep(~hidden[: intervals.n_exact], ~hidden[intervals.n_exact :])
            x = self._solve_new_rows(shown).predict(rows[hidden], cols[hidden])
            total += kernels.interval_loss(x, lower[hidden], upper[hidden]).value.sum()
        return -float(np.sqrt(2 * total / len(rows)))

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fitted estimator to a file, from which `declip.load` makes it anew.

        Parameters, fitted attributes and what `set_output` was asked for are kept, to the last bit;
        callbacks are not. The file appears whole or not at all, and holds no pickle.

        Parameters
        ----------
        path : str or Path
            File to come, usually named ``.npz``.
        overwrite : bool, default=False
            Whether a file that exists may be replaced.
        """
        check_is_fitted(self)
        return persistence.save(self, path, overwrite=overwrite)

    def __getstate__(self) -> dict[str, Any]:
        """Compute what needs the cells of the fit, and leave them out."""
        for name in _ON_REQUEST:
            getattr(self, name, None)
        return {n: part for n, part in super().__getstate__().items() if n != "_fit_data"}

    def _check_loaded(self) -> None:
        """Refuse a state that was read from a file and in which the parts do not fit together."""
        self._validate_params()
        model = self._model()
        model._check_loaded()
        shape = len(self.row_offset_), len(self.column_offset_)
        if model.shape != shape or shape[1] != self.n_features_in_:
            raise ValueError("factors and offsets are not of one table")

    def __sklearn_tags__(self) -> Any:
        """Say that tables may be sparse and have missing cells, and that float32 is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def fitted_attributes(solution: Solution) -> dict[str, Any]:
    """Return the fitted attributes that a solution gives."""
    model = solution.model
    return {
        "row_factors_": np.ascontiguousarray(model.P),
        "components_": np.ascontiguousarray(model.Q.T),
        "row_offset_": model.row_offset,
        "column_offset_": model.col_offset,
        "mean_": model.mean,
        "has_offsets_": model.bias,
        "scale_": solution.scale,
        "history_": solution.history,
        "objective_": float(solution.history[-1]),
        "n_iter_": solution.n_iter,
        "converged_": bool(solution.converged),
    }


def fitted_model(estimator: CompletionEstimator) -> Any:
    """Return what was fitted: a `LowRank`, or the `Posterior` of `BayesCMC`.

    Parameters
    ----------
    estimator : CompletionEstimator
        Fitted; else an error says so.
    """
    return estimator._model()


def spectrum(model: LowRank) -> dict[str, Any]:
    """Return the singular values of a matrix whose rank was not given, and their number."""
    S = model.balanced()[1]
    return {"singular_values_": S[S > 0], "rank_": int((S > 0).sum())}


def _check_dense(intervals: Intervals, what: str, remedy: str) -> None:
    check_memory(intervals.shape, intervals.dtype, what, remedy)


class _SweepReporter:
    """Tells the callbacks, and the terminal if verbose, of each sweep."""

    def __init__(self, estimator: CompletionEstimator, context: Any, X: Any, y: Any) -> None:
        self.estimator, self.context, self.X, self.y = estimator, context, X, y
        self.last: Any = None  # what to keep after Ctrl-C
        self.interrupted = False

    def __call__(self, state: Solution) -> bool:
        estimator = self.estimator
        if estimator.on_interrupt == "keep":
            self.last = estimator._snapshot(state)
        estimator._check_finite(state.history[-1])
        if estimator.verbose and state.n_iter % estimator.verbose == 0:
            print(f"sweep {state.n_iter:4d}: objective {state.history[-1]:.8g}")
        task = self.context.subcontext(task_name="sweep")
        task.call_on_fit_task_begin(estimator=estimator, X=self.X, y=self.y)
        return task.call_on_fit_task_end(
            estimator=estimator,
            X=self.X,
            y=self.y,
            reconstruction_attributes=lambda: estimator._fitted(state),
        )
