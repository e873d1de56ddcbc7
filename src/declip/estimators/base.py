"""What all estimators share when they fit: reading a table, progress, checkpoints, files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from declip import persistence
from declip.containers import opened
from declip.estimators.fitted import FittedTable, Matrix
from declip.estimators.progress import SweepReporter
from declip.intervals import Intervals, as_intervals
from declip.solvers import NO_RESUME_POINT, ResumePoint
from declip.validation import (
    check_memory,
    check_some_exact,
    named_columns,
    warn_about_coverage,
    warn_nothing_clipped,
)

__all__ = ["SHARED_CONSTRAINTS", "CompletionEstimator"]

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


State = TypeVar("State", bound=FitState)


class CompletionEstimator(CallbackSupportMixin, FittedTable[Matrix], Generic[State, Matrix]):
    """Reads tables, runs a fit with its progress, checkpoint and callbacks, and restores.

    What is fitted is up to the subclass: `State` is what its solver returns, `Matrix` what it
    answers from. It has the parameters ``ceiling``, ``floor``, ``clipped``, ``n_jobs``,
    ``max_iter`` and ``verbose``; where its solver can be taken up again also ``checkpoint`` and
    ``on_interrupt``.
    """

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
            What else `fit` takes.

        Returns
        -------
        X_restored : ndarray of shape (n_samples, n_features)
            Dense; refused before allocation if it cannot fit in memory.
        """
        known = self._known_of_fit("fit_transform", fit_params)
        intervals = self._fit(X, y, dense_result=True, known=known)
        return self._restored(intervals, self._model())

    @with_callbacks
    def _fit(self, X: Any, y: Any, dense_result: bool = False, known: Any = None) -> Any:
        """Read, fit and keep the result; a fit that fails leaves the estimator as it was."""
        with self._opened(X, dense_result) as table:
            side = self._known(table, known)
            treated = self._check_fittable(self._counted(table, known))
            cells, settled = self._settled(treated)
            settled |= self._columns(X, table)
            if side is not None:
                cells = self._weighed(cells, known, settled)
                settled |= {"side_": side}
            resume_point = self._resume_point(treated, side and side.identity(cells))
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
                if side is not None:
                    fitted["side_"] = self._side_found(side, state)
            reporter.end(state, fitted, resume_point)
        self._take_over(fitted)
        return table

    def _take_over(self, fitted: dict[str, Any]) -> None:
        """Replace all fitted attributes."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.__dict__.update(fitted)

    def _parameters_of_fit(self) -> dict[str, Any]:
        """Return, as an attribute, the parameters that new rows are solved by."""
        given = self.get_params(deep=False)
        return {"fit_params_": {name: given[name] for name in _OF_NEW_ROWS if name in given}}

    @contextmanager
    def _opened(self, X: Any, dense_result: bool) -> Iterator[Any]:
        """Yield the table to be fitted, at hand as long as the fit lasts."""
        intervals = self._read(X)
        if dense_result:
            check_memory(intervals.shape, intervals.dtype, "fit_transform", _USE_FIT)
        yield intervals

    def _read(self, X: Any) -> Intervals:
        """Return the cells of the table to be fitted."""
        return as_intervals(X, self.ceiling, self.floor, estimator=self)

    def _snapshot(self, state: Any) -> Any:
        """Return the state after a sweep as it will not change any more."""
        return state

    def _known_of_fit(self, caller: str, given: dict[str, Any]) -> Any:
        """Return what else was given to a fit; refuse what it does not take."""
        if given:
            raise TypeError(f"{caller} takes no {', '.join(given)}")

    def _known(self, table: Any, known: Any) -> Any:
        """Return what is known besides the table, checked; see `SideInformationEstimator`."""

    def _side_found(self, side: Any, state: Any) -> Any:
        """Return the side information with what the fit made of it."""
        return side

    def _counted(self, table: Any, known: Any) -> Any:
        """Return the cells that have a weight."""
        return table

    def _weighed(self, cells: Any, known: Any, settled: dict[str, Any]) -> Any:
        """Return the cells as the solver gets them with their weights."""
        raise NotImplementedError

    def _resume_point(self, intervals: Intervals, known: Any = None) -> ResumePoint:
        """Return where the state of this fit is kept, with one that was left there."""
        if self.checkpoint is None:
            return NO_RESUME_POINT
        begun = {n: v for n, v in self.get_params(deep=False).items() if n not in _NO_MATTER}
        if begun.get("warm_start"):
            requested = self._on_request
            begun |= {n: v for n, v in vars(self).items() if n.endswith("_") and n not in requested}
        begun |= {"estimator": type(self).__name__, "table": [intervals.shape, intervals.by_row]}
        if known is not None:
            begun |= {"known": known}
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
        in_levels = getattr(treated, "levels", None) is not None
        if treated.n_exact == 0 and not in_levels:
            check_some_exact(treated.by_row.lower, treated.by_row.upper, len(intervals))
        if intervals.n_censored == 0 and not (self.ceiling is None and self.floor is None):
            warn_nothing_clipped(self.ceiling is not None, self.floor is not None)
        for axis, side, labels in (
            ("row", treated.by_row, treated.row_labels),
            ("column", treated.by_col, treated.col_labels),
        ):
            exact, censored = np.diff(side.exact_ptr), np.diff(side.censored_ptr)
            informative = exact + censored if in_levels else exact
            warn_about_coverage(
                axis, informative, exact + censored, self._rank_to_fit(treated.shape), labels
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
