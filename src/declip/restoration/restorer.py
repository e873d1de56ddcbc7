"""Restorer: restore as a scikit-learn estimator, for pipelines and new rows."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from declip.containers import opened
from declip.estimators.side import Known, check_known_names
from declip.estimators.transformer import TableTransformer, refuse_sparse
from declip.intervals import Intervals
from declip.restoration.bounds import AMOUNTS
from declip.restoration.result import Restoration
from declip.restoration.workflow import limits_of, restore
from declip.validation import check_columns, named_columns, warn_nothing_clipped

__all__ = ["Restorer"]

_LIMITS = ("ceiling", "floor")


class Restorer(TableTransformer):
    """Restore clipped and missing cells, with `declip.restore` as an estimator.

    `fit` restores a table (``restoration_`` is what `declip.restore` returns); `transform` restores
    new rows by the methods that were fitted, each under its own limits. All is in the units of the
    table.

    Parameters
    ----------
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits, as in `declip.restore`. A mapping from column name to limit may name columns that a
        step before this one left out.
    method : str, default="auto"
        This and all that follows as in `declip.restore`.
    n_components : int or None, default=None
        Number of factors; None chooses.
    alpha : float or None, default=None
        Strength of the penalty in standard units; None chooses.
    scale : {"auto", "columns", "rows", "table", "none", "sqrt", "log1p"}, default="auto"
        What is brought to standard units, or the scale of counts.
    log : bool, or labels or numbers of columns, default=False
        Columns to be restored in logarithms.
    between : "auto", None, or pair of None, number, array-like or mapping, default="auto"
        Lowest and highest value that the truth can have.
    missing : {"random", "low", "high", "auto"} or mapping, default="random"
        Why cells are missing.
    rounding : {"auto", "none"}, default="auto"
        Whether values that lie on a grid are taken as rounded.
    fill : {"determined", "all"}, default="determined"
        With "all" no missing cell stays empty, which most steps after this one ask for.
    tol : float, default=0.0
        A value within this distance of its limit counts as clipped.
    coverage : float, default=0.9
        Share of the truths that the bands are to hold.
    effort : {"quick", "normal", "thorough"} or float, default="normal"
        How much work is done.
    time_limit : float or None, default=None
        Seconds after which no more methods are tried.
    random_state : int, default=0
        Seed.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all.

    Attributes
    ----------
    restoration_ : Restoration
        The table of the fit restored, with flags, bands and all that was found.
    limits_ : tuple
        Ceiling and floor as they apply to new rows.
    n_features_in_, feature_names_in_
        Columns of the table and their names.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import Restorer
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(90, 1)) + 0.2 * rng.normal(size=(90, 5))
    >>> seen = np.minimum(truth, 1)
    >>> model = Restorer(ceiling=1, method="tobit", n_components=1).fit(seen[:60])
    >>> restored = model.transform(seen[60:])
    >>> hidden = truth[60:] > 1
    >>> bool(np.abs(restored - truth[60:])[hidden].mean() < np.mean(truth[60:][hidden] - 1))
    True
    """

    def __init__(
        self,
        *,
        ceiling: Any = None,
        floor: Any = None,
        method: str = "auto",
        n_components: int | None = None,
        alpha: float | None = None,
        scale: str = "auto",
        log: Any = False,
        between: tuple[Any, Any] | str | None = AMOUNTS,
        missing: Any = "random",
        rounding: str = "auto",
        fill: str = "determined",
        tol: float = 0.0,
        coverage: float = 0.9,
        effort: str | float = "normal",
        time_limit: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.ceiling = ceiling
        self.floor = floor
        self.method = method
        self.n_components = n_components
        self.alpha = alpha
        self.scale = scale
        self.log = log
        self.between = between
        self.missing = missing
        self.rounding = rounding
        self.fill = fill
        self.tol = tol
        self.coverage = coverage
        self.effort = effort
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any = None,
        row_features: Any = None,
        column_features: Any = None,
        groups: Any = None,
        weights: Any = None,
        errors: Any = None,
    ) -> Self:
        """Restore a table, and keep what new rows are restored by.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            As in `declip.restore`.
        y : ignored
            For the conventions of scikit-learn.
        row_features, column_features, groups, weights, errors : default=None
            What else is known of the table, as in `declip.restore`. In a pipeline they are routed:
            ``set_fit_request(groups=True)``.
        """
        known = Known(row_features, column_features, groups, weights, errors)
        params = self.get_params(deep=False)
        ceiling, floor = (_of_columns(params.pop(side), X) for side in _LIMITS)
        if isinstance(X, Intervals):
            found = named_columns(X.shape[1], X.col_labels)
        else:
            reader, table = BaseEstimator(), opened(X)
            validate_data(reader, X, reset=True, skip_check_array=True)
            found = vars(reader)
            ceiling, floor = limits_of(table, ceiling, floor, self.rounding)
        restoration = restore(X, ceiling, floor, **params, **known._asdict(), progress=False)
        if restoration.intervals.n_censored == 0 and not (ceiling is None and floor is None):
            warn_nothing_clipped(ceiling is not None, floor is not None)
        self.__dict__.update(found, restoration_=restoration, limits_=(ceiling, floor))
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and return the restored table.

        Parameters
        ----------
        X, y
            As in `fit`.
        **fit_params : dict
            ``row_features``, ``column_features``, ``groups``, ``weights`` and ``errors``, as in
            `fit`.
        """
        check_known_names("fit_transform", fit_params)
        return _array(self.fit(X, y, **fit_params).restoration_.table)

    def transform(self, X: Any, row_features: Any = None, groups: Any = None) -> Any:
        """Return new rows restored under the limits of this estimator, or an `Intervals`' own.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            The rows.
        row_features, groups : default=None
            Features and groups of these rows, if the fit had any. A row may then be empty.
        """
        return _array(self.fold_in(X, row_features, groups).table)

    def fold_in(self, X: Any, row_features: Any = None, groups: Any = None) -> Restoration:
        """Return the restoration of new rows: table, flags and bands.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            As in `transform`.
        row_features, groups : default=None
            As in `transform`.
        """
        check_is_fitted(self)
        known = {"row_features": row_features, "groups": groups}
        if isinstance(X, Intervals):
            check_columns(self, named_columns(X.shape[1], X.col_labels))
            return self.restoration_.fold_in(X, **known)
        if getattr(X, "ndim", 2) != 2:
            check_array(X, ensure_all_finite=False)  # says what is wrong
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.restoration_.fold_in(X, *self.limits_, **known)

    def predict(
        self,
        rows: Any,
        cols: ArrayLike | None = None,
        row_features: Any = None,
        groups: Any = None,
    ) -> NDArray[np.float64]:
        """Return what is expected of cells, whatever was seen of them.

        Parameters
        ----------
        rows : array-like of int or labels, or a table
            Rows of cells of the fitted table, by position or by text labels; or, if ``cols`` is
            None, new rows (not sparse), all of whose cells are predicted.
        cols : array-like of int or labels, optional
            Columns of the cells, as many as ``rows``.
        row_features, groups : default=None
            Of new rows, as in `transform`.
        """
        check_is_fitted(self)
        if cols is not None:
            return self.restoration_.predict(rows, cols)
        refuse_sparse(rows)
        found = self.fold_in(rows, row_features, groups)
        at = np.indices(found.intervals.shape).reshape(2, -1)
        return found.predict(*at).reshape(found.intervals.shape)

    def predict_interval(
        self, X: Any = None, row_features: Any = None, groups: Any = None
    ) -> tuple[Any, Any]:
        """Return bands that hold the truth with the coverage asked for.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals, optional
            New rows; by default the table of the fit.
        row_features, groups : default=None
            Of new rows, as in `transform`.

        Returns
        -------
        lower, upper : array or sparse matrix
            Of the shape of the table.
        """
        found = self._of_rows(X, row_features, groups)
        return _array(found.lower), _array(found.upper)

    def sample(
        self,
        n: int = 20,
        X: Any = None,
        random_state: int | None = None,
        row_features: Any = None,
        groups: Any = None,
    ) -> list[Any]:
        """Return complete tables drawn from what is known of the cells, as `Restoration.sample`.

        Parameters
        ----------
        n : int, default=20
            Number of tables.
        X : array-like, frame, sparse matrix or Intervals, optional
            New rows; by default the table of the fit.
        random_state : int or None, default=None
            Seed of what is drawn.
        row_features, groups : default=None
            Of new rows, as in `transform`.
        """
        return self._of_rows(X, row_features, groups).sample(n, random_state)

    def _of_rows(self, X: Any, row_features: Any, groups: Any) -> Restoration:
        """Return the restoration of new rows, or that of the fit."""
        check_is_fitted(self)
        return self.restoration_ if X is None else self.fold_in(X, row_features, groups)


def _array(table: Any) -> Any:
    """Return a table as an array, as scikit-learn expects it; a sparse one as it is."""
    return table if sparse.issparse(table) else np.asarray(table)


def _of_columns(limit: Any, X: Any) -> Any:
    """Return a limit by column name without the columns that a table does not have.

    A name that resembles one of the table's stays, and is refused. None if none is left.
    """
    columns = getattr(X, "columns", None)
    if not isinstance(limit, Mapping) or columns is None:
        return limit
    names = [name for name in columns if isinstance(name, str)]
    free = [name for name in names if name not in limit]
    found = {
        name: value
        for name, value in limit.items()
        if not isinstance(name, str) or name in names or get_close_matches(name, free, cutoff=0.8)
    }
    return found or None
