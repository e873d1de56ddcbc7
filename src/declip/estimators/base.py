"""What all estimators share: reading a table, restoring it, and asking for single cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from declip import persistence
from declip.containers import opened
from declip.estimators.progress import SweepReporter
from declip.intervals import Intervals, as_intervals
from declip.losses import Hinge
from declip.lowrank import LowRank
from declip.solvers import NO_RESUME_POINT, ResumePoint
from declip.validation import (
    check_cells,
    check_columns,
    check_memory,
    check_selection,
    check_some_exact,
    label_positions,
    named_columns,
    table_to_triplets,
    warn_about_coverage,
    warn_nothing_clipped,
    warn_without_cells,
)

__all__ = ["SHARED_CONSTRAINTS", "CompletionEstimator", "fitted_low_rank"]

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
_OF_NEW_ROWS = ("ceiling", "floor", "clipped", "alpha", "alpha_bias")  # what they are solved by


class FitState(Protocol):
    """What a solver returns, and tells after each sweep."""

    @property
    def history(self) -> Any: ...
    @property
    def n_iter(self) -> int: ...
    @property
    def converged(self) -> bool: ...
    @property
    def stopped(self) -> bool: ...


class FittedMatrix(Protocol):
    """An estimate of every cell of a table, never formed as a whole unless it is asked for."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype: ...
    def block(self, rows: NDArray | slice = ..., cols: NDArray | slice = ...) -> NDArray: ...
    def predict(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> NDArray: ...


State = TypeVar("State", bound=FitState)
Matrix = TypeVar("Matrix", bound=FittedMatrix)


class CompletionEstimator(
    CallbackSupportMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
    BaseEstimator,
    Generic[State, Matrix],
):
    """Reads tables, runs a fit with its progress, checkpoint and callbacks, and restores.

    What is fitted is up to the subclass: `State` is what its solver returns, `Matrix` what it
    answers from. It has the parameters ``ceiling``, ``floor``, ``clipped``, ``n_jobs``,
    ``max_iter`` and ``verbose``; where its solver can be taken up again also ``checkpoint`` and
    ``on_interrupt``.
    """

    row_labels_: NDArray | None = None
    column_labels_: NDArray | None = None
    checkpoint: Any = None
    on_interrupt: str = "raise"
    _on_request: ClassVar[tuple[str, ...]] = ()  # attributes that are computed when first read

    def _settled(self, table: Any) -> tuple[Any, dict[str, Any]]:
        """Return the cells as the solver gets them, and what is settled before it begins.

        The latter are fitted attributes: what "auto" came to, and the units of the cells.
        """
        return table, {}

    def _solve(self, table: Any, settled: dict[str, Any], **watched: Any) -> State:
        """Fit the cells; ``watched`` is for the solver: ``on_sweep`` and ``resume_point``."""
        raise NotImplementedError

    def _fitted(self, state: State) -> dict[str, Any]:
        """Return the fitted attributes that a state of the solver gives."""
        raise NotImplementedError

    def _finished(self, table: Any, state: State) -> dict[str, Any]:
        """Return all attributes of a fit that is over."""
        return self._fitted(state)

    def _model(self) -> Matrix:
        """Return the fitted matrix."""
        raise NotImplementedError

    def _low_rank(self) -> LowRank:
        """Return the fitted matrix, or one that stands for it, as factors."""
        raise NotImplementedError

    def _factors(self) -> LowRank:
        """Return the same in the units of the fit."""
        return self._low_rank()

    def _solve_new_rows(self, intervals: Intervals) -> Matrix:
        """Return the matrix of other rows under the fitted columns."""
        raise NotImplementedError

    def _expected(
        self,
        matrix: Matrix,
        cells: tuple[NDArray, NDArray],
        bounds: tuple[NDArray, NDArray],
        x: NDArray | None = None,
    ) -> NDArray:
        """Return the expected values of cells given their bounds; ``x`` is the matrix there."""
        raise NotImplementedError

    def predictive(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation of the values of cells of the fitted table."""
        raise NotImplementedError

    def predictive_draws(
        self, rows: ArrayLike, cols: ArrayLike, most: int = 32
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the normal distributions whose mixture is the prediction of cells.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells, of the fitted table.
        most : int, default=32
            Draws at most, evenly spread over those that were kept.

        Returns
        -------
        mean, sd : ndarray of shape (n_draws, n_cells)
            Of each draw from a posterior; without one there is a single draw, that of `predictive`.
        """
        mean, sd = self.predictive(rows, cols)
        return np.asarray(mean, np.float64)[None], np.asarray(sd, np.float64)[None]

    def _unit_of(self, cols: NDArray) -> NDArray | float:
        """Return the unit in which errors of cells of these columns count."""
        return 1.0

    def _not_converged(self, state: State) -> str:
        """Return the words of the warning."""
        raise NotImplementedError

    def _most_sweeps(self) -> int:
        """Return how many sweeps a fit makes at most."""
        return self.max_iter

    def _check_shape(self, shape: tuple[int, int]) -> None:
        """Refuse parameters that do not fit the table."""

    def _rank_to_fit(self, shape: tuple[int, int]) -> int:
        """Return how many exact cells a row needs to be determined by the data."""
        return 1

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the low-rank model to the observed cells of a table.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            NaN (and NA, None, masked or absent in a sparse matrix) is missing. An `Intervals`
            carries its own limits: ``ceiling`` and ``floor`` must then be None.
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

    @with_callbacks
    def _fit(self, X: Any, y: Any, dense_result: bool = False) -> Any:
        """Read, fit and keep the result; a fit that fails leaves the estimator as it was."""
        with self._opened(X, dense_result) as table:
            treated = self._check_fittable(table)
            cells, settled = self._settled(treated)
            settled |= self._columns(X, table)
            resume_point = self._resume_point(treated)
            reporter = SweepReporter(self, X, y, settled)
            # BLAS works on small factors here; its threads would only spin beside ours.
            with threadpool_limits(limits=1, user_api="blas"):
                try:
                    state = self._solve(
                        cells, settled=settled, on_sweep=reporter, resume_point=resume_point
                    )
                except KeyboardInterrupt:
                    state = reporter.kept()
                fitted = settled | self._finished(cells, state) | self._parameters_of_fit()
            reporter.end(state, fitted, resume_point)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.__dict__.update(fitted)
        return table

    def _parameters_of_fit(self) -> dict[str, Any]:
        """Return, as an attribute, the parameters that new rows are solved by."""
        given = self.get_params(deep=False)
        return {"fit_params_": {name: given[name] for name in _OF_NEW_ROWS if name in given}}

    def _as_fitted(self) -> Self:
        """Return the fitted estimator with the parameters of its fit, whatever was set since."""
        check_is_fitted(self)
        twin = object.__new__(type(self))
        twin.__dict__.update(vars(self) | getattr(self, "fit_params_", {}))
        return twin

    @contextmanager
    def _opened(self, X: Any, dense_result: bool) -> Iterator[Any]:
        """Yield the table to be fitted, at hand as long as the fit lasts."""
        intervals = as_intervals(X, self.ceiling, self.floor, estimator=self)
        if dense_result:
            _check_dense(intervals, "fit_transform", _USE_FIT)
        yield intervals

    def _snapshot(self, state: Any) -> Any:
        """Return the state after a sweep as it will not change any more."""
        return state

    def _resume_point(self, intervals: Intervals) -> ResumePoint:
        """Return where the state of this fit is kept, with one that was left there."""
        if self.checkpoint is None:
            return NO_RESUME_POINT
        begun = {n: v for n, v in self.get_params(deep=False).items() if n not in _NO_MATTER}
        if begun.get("warm_start"):
            requested = self._on_request
            begun |= {n: v for n, v in vars(self).items() if n.endswith("_") and n not in requested}
        begun |= {"estimator": type(self).__name__, "table": [intervals.shape, intervals.by_row]}
        return persistence.Checkpoint(self.checkpoint, begun)

    def _check_finite(self, *found: Any) -> None:
        """Refuse a fit that holds NaN or infinities: it would fill the table with them."""
        if not all(np.isfinite(numbers).all() for numbers in found):
            raise FloatingPointError(
                f"{type(self).__name__} ran into numbers that are not finite. Rescale the data to "
                "values near 1, raise alpha or lower n_components; the estimator is as it was."
            )

    def _check_fittable(self, intervals: Any) -> Any:
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
            warn_about_coverage(
                axis, exact, exact + censored, self._rank_to_fit(treated.shape), labels
            )
        return treated

    def _columns(self, X: Any, table: Any) -> dict[str, Any]:
        """Return n_features_in_ and feature_names_in_, as scikit-learn finds them, and labels."""
        labels = {"row_labels_": table.row_labels, "column_labels_": table.col_labels}
        if isinstance(X, Intervals) or opened(X).foreign:
            return labels | named_columns(table.shape[1], table.col_labels)
        found = BaseEstimator()
        validate_data(found, X, reset=True, skip_check_array=True)
        return labels | vars(found)

    def locate(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the positions of cells of the fitted table that are named by their labels.

        Whatever is asked of cells by position may be asked by text labels as well; where labels are
        numbers this says which is meant.

        Parameters
        ----------
        rows, cols : array-like of labels
            Labels of the rows and of the columns, of a frame or of `Intervals.from_long`.
        """
        check_is_fitted(self)
        return (
            label_positions(rows, self.row_labels_, "row"),
            label_positions(cols, self.column_labels_, "column"),
        )

    def _positions(
        self, rows: Any, cols: Any, shape: tuple[int, int] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the positions of cells that are given by position or by text labels."""
        if _are_texts(rows):
            rows = label_positions(rows, self.row_labels_, "row")
        if _are_texts(cols):
            cols = label_positions(cols, self.column_labels_, "column")
        return check_cells(rows, cols, self._model().shape if shape is None else shape)

    def _read_new(self, X: Any) -> Intervals:
        """Return the cells of rows to be solved for; an Intervals has limits of its own."""
        if isinstance(X, Intervals) or opened(X).foreign:
            limits = (None, None) if isinstance(X, Intervals) else (self.ceiling, self.floor)
            rows = as_intervals(X, *limits, estimator=self)
            check_columns(self, named_columns(rows.shape[1], rows.col_labels))
            return rows
        cells = table_to_triplets(X, estimator=self, allow_empty=True)
        # before the limits: those of other columns would only seem to have the wrong shape
        validate_data(self, X, reset=False, skip_check_array=True)
        return Intervals.from_cells(cells, self.ceiling, self.floor)

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
        fitted = self._as_fitted()
        intervals = fitted._read_new(X)
        _check_dense(intervals, "transform", _FEWER_ROWS)
        side = intervals.by_row
        observed = np.diff(side.exact_ptr) + np.diff(side.censored_ptr)
        warn_without_cells("row", observed, intervals.row_labels)
        return fitted._restored(intervals, fitted._solve_new_rows(intervals))

    def fold_in(self, X: Any) -> Self:
        """Return an estimator that stands for other rows, with the fitted columns as they are.

        Whatever is asked of it by position is asked of the rows of ``X``: `predict`, `predictive`,
        and of `BayesCMC` intervals and samples. What is told of the fit stays.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            As in `transform`.
        """
        fitted = self._as_fitted()
        intervals = fitted._read_new(X)
        fitted.__dict__.update(fitted._of_rows(intervals), row_labels_=intervals.row_labels)
        return fitted

    def _of_rows(self, intervals: Intervals) -> dict[str, Any]:
        """Return the fitted attributes that are others for other rows."""
        raise NotImplementedError

    def _restored(self, intervals: Intervals, matrix: Matrix) -> NDArray:
        """Return the matrix with every observed cell at its expected value given its interval."""
        side = intervals.by_row
        table = matrix.block()
        table = table.astype(np.result_type(table, side.value), copy=False)
        table[side.exact_rows(), side.exact_idx] = side.value
        cells = side.censored_rows(), side.censored_idx
        table[cells] = self._expected(matrix, cells, (side.lower, side.upper), table[cells])
        return table

    def predict(self, rows: Any, cols: ArrayLike | None = None) -> NDArray:
        """Return the low-rank estimate of single cells of the fitted table, or of a new table.

        Parameters
        ----------
        rows : array-like of int or labels, or a table
            Rows of the cells, by position or by text labels; or, if ``cols`` is None, a table (not
            sparse) whose rows are solved for as in `transform`.
        cols : array-like of int or labels, optional
            Columns of the cells, as many as ``rows``.

        Returns
        -------
        ndarray
            One value for each cell, or a table of the shape of ``rows``. Unlike `transform`, it
            does not put the observed values back.
        """
        check_is_fitted(self)
        if cols is not None:
            at = self._positions(rows, cols)
            return self._model().predict(*at, effective_n_jobs(self.n_jobs))
        if sparse.issparse(rows):
            raise TypeError(
                "predict estimates every cell, so it takes no sparse table: ask for single cells "
                "with predict(rows, cols), or use transform."
            )
        fitted = self._as_fitted()
        intervals = fitted._read_new(rows)
        _check_dense(intervals, "predict", _SINGLE_CELLS)
        return fitted._solve_new_rows(intervals).block()

    def expected(
        self, rows: ArrayLike, cols: ArrayLike, lower: ArrayLike, upper: ArrayLike
    ) -> NDArray:
        """Return the restored values of cells of the fitted table that lie in [lower, upper].

        That is the point of the interval nearest to the low-rank estimate; for "tobit" the mean of
        a normal law about it, cut off at the ends; of `BayesCMC` the posterior mean.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells.
        lower, upper : array-like
            The bounds of each; infinite where there is none.
        """
        at = self._positions(rows, cols)
        return self._expected(self._model(), at, (np.asarray(lower), np.asarray(upper)))

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
        column factors, and the distance of the prediction from the cell's interval taken, in the
        unit that the fit has for its column. Higher is better.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            Rows to score.
        y : ignored
            For the conventions of scikit-learn.
        """
        fitted = self._as_fitted()
        intervals = fitted._read_new(X)
        if len(intervals) == 0:
            raise ValueError("X has no observed cell to score: every cell is missing.")
        rows, cols, lower, upper = intervals.triplets()
        part = (np.arange(len(rows)) + rows) % _SCORE_FOLDS
        total = 0.0
        for fold in range(_SCORE_FOLDS):
            hidden = part == fold
            shown = intervals.keep(~hidden[: intervals.n_exact], ~hidden[intervals.n_exact :])
            x = fitted._solve_new_rows(shown).predict(rows[hidden], cols[hidden])
            loss = Hinge().cells(x, lower[hidden], upper[hidden]).value
            total += (loss / self._unit_of(cols[hidden]) ** 2).sum()
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
        """Compute what is computed on request: a copy may not have what it takes."""
        for name in self._on_request:
            getattr(self, name, None)
        state = super().__getstate__()
        if "fit_params_" in state:  # what was not set anew stands among the parameters
            changed = {n: v for n, v in self.fit_params_.items() if v is not getattr(self, n)}
            state = state | {"fit_params_": changed}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state over, and the parameters of the fit that stand among the others."""
        super().__setstate__(state)
        if isinstance(changed := state.get("fit_params_"), dict):
            self.fit_params_ = self._parameters_of_fit()["fit_params_"] | changed

    def __sklearn_tags__(self) -> Any:
        """Say that tables may be sparse and have missing cells, and that float32 is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def fitted_low_rank(estimator: CompletionEstimator[Any, Any]) -> LowRank:
    """Return the fitted matrix, or of `BayesCMC` one that stands for its posterior.

    Parameters
    ----------
    estimator : CompletionEstimator
        Fitted; else an error says so.
    """
    return estimator._low_rank()


def _are_texts(given: Any) -> bool:
    array = np.asarray(given)
    return array.dtype.kind in "US" or (
        array.dtype == object and any(isinstance(label, str) for label in array.flat)
    )


def _check_dense(intervals: Intervals, what: str, remedy: str) -> None:
    check_memory(intervals.shape, intervals.dtype, what, remedy)
