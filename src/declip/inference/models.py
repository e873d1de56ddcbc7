"""A user's model over the imputations of a table, brought together by Rubin's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import BaseEstimator, clone

from declip.extras import needs
from declip.inference.pooling import Pooled, RubinSums
from declip.inference.summary import as_frame, library_of_frames

__all__ = ["PooledFit", "pooled_fit"]

_RESAMPLES = 10  # of each table, for the variance of a model that does not tell it


@dataclass(frozen=True, eq=False, repr=False)
class PooledFit:
    """A model fitted to every imputation of a table, as one result. Returned by `pooled_fit`.

    Attributes
    ----------
    table : frame
        A line for each coefficient: "term", "estimate", "std_error", "lower", "upper", "p" (of a
        two-sided t test against 0), "df" (Barnard and Rubin) and "missing_information", in the kind
        of the input.
    names : list of str
        The coefficients.
    pooled : Pooled
        The same as arrays.
    n_imputations : int
        Tables that were analysed.
    confidence : float
        Of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import declip
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> noise = 0.5 * rng.normal(size=(2, 100))
    >>> truth = np.column_stack([x, x + noise[0], 2 * x + noise[1]])
    >>> r = declip.restore(np.minimum(truth, [1, 1, 9]), ceiling=[1, 1, 9], method="normal")
    >>> found = declip.pooled_fit(r, lambda t: np.polyfit(t[:, 0], t[:, 2], 1, cov=True))
    >>> bool(abs(found.pooled.estimate[0] - 2) < 3 * found.pooled.std_error[0])
    True
    """

    table: Any
    names: list[str]
    pooled: Pooled
    n_imputations: int
    confidence: float

    def __str__(self) -> str:
        frame = nw.from_native(self.table, eager_only=True)
        lines = [frame.columns, *([_shown(cell) for cell in row] for row in frame.iter_rows())]
        width = [max(len(line[j]) for line in lines) for j in range(len(frame.columns))]
        text = [
            "  ".join([line[0].ljust(width[0]), *map(str.rjust, line[1:], width[1:])])
            for line in lines
        ]
        head = f"Pooled over {self.n_imputations} imputations, intervals of {self.confidence:.0%}"
        return "\n".join([head, *text])

    def __repr__(self) -> str:
        return f"PooledFit({', '.join(self.names)}; {self.n_imputations} imputations)"

    def _repr_html_(self) -> str | None:
        shown = getattr(self.table, "_repr_html_", None)
        return shown() if callable(shown) else None


def pooled_fit(
    restoration: Any,
    fit: Any,
    n: int = 20,
    *,
    target: Any = None,
    confidence: float = 0.95,
    complete_df: float | None = None,
    random_state: int | None = None,
) -> PooledFit:
    """Fit a model to imputations of a restored table, and pool the results by Rubin's rules.

    Parameters
    ----------
    restoration : Restoration
        What `restore` gave.
    fit : callable, str or estimator
        A function of a complete table that returns results of statsmodels, a fitted estimator of
        scikit-learn with ``coef_``, or ``(estimates, covariance)``, where estimates may be a
        mapping from name to number. A text is a formula, which statsmodels fits by least squares;
        an estimator of scikit-learn is fitted to all columns but ``target``.
    n : int, default=20
        Imputations.
    target : label or int, optional
        The column that an estimator of scikit-learn is to explain.
    confidence : float, default=0.95
        Of the intervals.
    complete_df : float, optional
        Degrees of freedom, had the table been complete; by default what the results say, or rows
        less coefficients.
    random_state : int or None, default=None
        Seed of what is drawn; None is that of the restoration.

    Returns
    -------
    PooledFit
        With a ``table`` of estimates, standard errors, intervals and p-values.

    Notes
    -----
    Scikit-learn does not tell how sure it is of coefficients. Their variance within a table is
    then that over fits to ten samples of its rows, drawn with replacement.

    Examples
    --------
    >>> import numpy as np
    >>> import declip
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(80, 1)) + 0.5 * rng.normal(size=(80, 4))
    >>> r = declip.restore(np.minimum(truth, 1), ceiling=1, method="normal")
    >>> declip.pooled_fit(r, LinearRegression(), n=5, target=3).names
    ['intercept', '0', '1', '2']
    """
    if isinstance(n, int | np.integer) and n < 2:
        raise ValueError(f"pooled_fit needs n of at least 2 imputations; got {n}.")
    analyse = _analysis(fit, target)
    library_of_frames(restoration.lower)  # refused before the work
    rng, sums = np.random.default_rng(restoration.imputation.seed(random_state)), RubinSums()
    names: list[str] = []
    labels = restoration.intervals.col_labels
    for table in restoration.iter_samples(n, random_state):
        found = analyse(table if callable(fit) else _named(table, labels), rng)
        if sums.m and found.names != names:
            raise ValueError(
                "The model must have the same coefficients for every imputation; got "
                f"{', '.join(names)} and then {', '.join(found.names)}."
            )
        names, df = found.names, found.df if complete_df is None else complete_df
        sums.add(found.estimate, found.variance)
    pooled = sums.pooled(df)
    columns = _columns(names, pooled, confidence)
    return PooledFit(as_frame(columns, restoration.lower), names, pooled, n, confidence)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """The coefficients of a model of one table."""

    names: list[str]
    estimate: NDArray[np.float64]
    variance: NDArray[np.float64]
    df: float


_Analysis = Callable[[Any, np.random.Generator], _Fitted]


def _analysis(fit: Any, target: Any) -> _Analysis:
    """Return how a table is analysed."""
    if isinstance(fit, str):
        function: Any = lambda table: _least_squares(fit, table)  # noqa: E731
    elif isinstance(fit, BaseEstimator):
        if target is None:
            raise ValueError("An estimator of scikit-learn needs target=, the column to explain.")
        function = lambda table: _explained(fit, table, target)  # noqa: E731
    elif callable(fit):
        function = fit
    else:
        raise TypeError(
            f"fit must be a function of a table, a formula or an estimator; got {fit!r}."
        )
    return lambda table, rng: _read(function(table), function, table, rng)


def _read(found: Any, function: Any, table: Any, rng: np.random.Generator) -> _Fitted:
    """Return what a model says, whatever it was fitted by."""
    if hasattr(found, "params") and hasattr(found, "cov_params"):
        return _of_statsmodels(found)
    if hasattr(found, "coef_"):
        return _of_estimator(found, function, table, rng)
    try:
        estimate, covariance = found
    except (TypeError, ValueError):
        raise TypeError(
            "fit must return results of statsmodels, an estimator with coef_, or (estimates, "
            f"covariance); got a {type(found).__name__}."
        ) from None
    named = isinstance(estimate, Mapping)
    values = np.atleast_1d(np.asarray([*estimate.values()] if named else estimate, np.float64))
    names = [str(k) for k in (estimate if named else range(len(values)))]
    cov = np.asarray(covariance, np.float64)
    variance = np.atleast_1d(np.diagonal(cov) if cov.ndim == 2 else cov)
    if variance.shape != values.shape or not np.all(variance >= 0):
        raise ValueError(
            f"fit returned {len(values)} estimates and a covariance of shape {cov.shape}: it must "
            "be a square matrix of that size, or one variance for each."
        )
    return _Fitted(names, values, variance, _rows(table) - len(values))


def _of_statsmodels(found: Any) -> _Fitted:
    params = found.params
    names = [str(n) for n in getattr(params, "index", getattr(found.model, "exog_names", []))]
    estimate = np.asarray(params, np.float64)
    variance = np.diagonal(np.asarray(found.cov_params(), np.float64))
    df = float(getattr(found, "df_resid", np.inf))
    # extra parameters, such as a scale, come after the named ones
    return _Fitted(names, estimate[: len(names)], variance[: len(names)], df)


def _of_estimator(found: Any, function: Any, table: Any, rng: np.random.Generator) -> _Fitted:
    n = _rows(table)
    again = [function(_taken(table, rng.integers(n, size=n))) for _ in range(_RESAMPLES)]
    variance = np.var([_coefficients(f) for f in again], axis=0, ddof=1)
    estimate = _coefficients(found)
    size = np.size(found.coef_)
    columns = [str(name) for name in getattr(found, "feature_names_in_", range(size))]
    names = ([] if len(estimate) == size else ["intercept"]) + columns
    return _Fitted(names, estimate, variance, n - len(estimate))


def _coefficients(found: Any) -> NDArray[np.float64]:
    return np.concatenate([np.ravel(getattr(found, "intercept_", [])), np.ravel(found.coef_)])


def _least_squares(formula: str, table: Any) -> Any:
    with needs("stats"):
        from statsmodels.formula import api
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            "A formula names columns: restore a frame or a file, or give a function of the table."
        )
    return api.ols(formula, frame.to_pandas()).fit()


def _named(table: Any, labels: NDArray | None) -> Any:
    """Return an array whose columns have names, such as one of a file, as a frame of pandas."""
    if labels is None or not isinstance(table, np.ndarray) or find_spec("pandas") is None:
        return table
    import pandas as pd

    return pd.DataFrame(table, columns=[str(name) for name in labels])


def _explained(estimator: Any, table: Any, target: Any) -> Any:
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if target not in frame.columns:
            some = ", ".join(map(repr, frame.columns[:5])) + ", ..." * (len(frame.columns) > 5)
            raise ValueError(
                f"target names column {target!r}, which the table does not have (it has {some})."
            )
        return clone(estimator).fit(frame.drop(target).to_native(), frame[target].to_numpy())
    return clone(estimator).fit(np.delete(table, target, axis=1), table[:, target])


def _rows(table: Any) -> int:
    return int(table.shape[0])


def _taken(table: Any, rows: NDArray) -> Any:
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    return frame[rows.tolist()].to_native() if isinstance(frame, nw.DataFrame) else table[rows]


def _columns(names: list[str], pooled: Pooled, confidence: float) -> dict[str, Any]:
    low, high = pooled.interval(confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = abs(pooled.estimate) / pooled.std_error
    return {
        "term": names,
        "estimate": pooled.estimate,
        "std_error": pooled.std_error,
        "lower": low,
        "upper": high,
        "p": 2 * special.stdtr(pooled.df, -t),
        "df": pooled.df,
        "missing_information": pooled.missing_information,
    }


def _shown(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
