"""The reclip test of a detection curve: values are hidden as the curve would, and restored."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.base import clone

from declip.estimators import BayesCMC
from declip.intervals import Intervals, as_intervals
from declip.model_selection import without_limits

__all__ = ["SoftReclipResult", "soft_reclip", "soft_reclip_test"]

_LEAST_HIDDEN, _MOST_HIDDEN = 0.1, 0.4  # of the exact cells of a column
_FEWEST_LEFT = 5  # exact cells that a column keeps
_BISECTIONS = 40
_DRAWS = 32


@dataclass(frozen=True, eq=False)
class SoftReclipResult:
    """What was hidden by a detection curve, and what was made of it.

    Attributes
    ----------
    rows, cols : ndarray of int
        The hidden cells.
    truth : ndarray
        Their values.
    value, spread : ndarray
        Mean and standard deviation of what was restored, given that the cells are missing.
    at_random : ndarray
        What is restored if missing cells are taken as missing at random.
    column_spread : ndarray of shape (n_cols,)
        Standard deviation of the exact cells of each column, in which errors are counted.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import SoftReclipResult
    >>> cells = np.zeros(2, np.int32), np.arange(2, dtype=np.int32)
    >>> truth, one = np.array([1.0, 2.0]), np.ones(2)
    >>> found = SoftReclipResult(*cells, truth, value=truth + 0.1, spread=one,
    ...                          at_random=truth + 1.0, column_spread=one)
    >>> round(found.error, 3), round(found.error_at_random, 3)
    (0.1, 1.0)
    """

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    truth: NDArray[np.float64]
    value: NDArray[np.float64]
    spread: NDArray[np.float64]
    at_random: NDArray[np.float64]
    column_spread: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of hidden cells."""
        return len(self.rows)

    @property
    def error(self) -> float:
        """Root mean squared error, in standard deviations of the columns."""
        return self._error(self.value)

    @property
    def error_at_random(self) -> float:
        """Root mean squared error if cells are taken as missing at random."""
        return self._error(self.at_random)

    def half_width(self, coverage: float) -> float:
        """Return how many standard deviations hold a share of the truths; no less than normal."""
        least = float(norm.ppf(0.5 + 0.5 * coverage))
        if len(self) == 0:
            return least
        size = abs(self.truth - self.value) / self.spread
        return max(least, float(np.quantile(size, coverage, method="higher")))

    def _error(self, value: NDArray) -> float:
        gap = (value - self.truth) / self.column_spread[self.cols]
        return float(np.sqrt(np.mean(gap**2))) if len(self) else np.nan

    def __str__(self) -> str:
        return (
            f"{len(self)} values hidden by the fitted curve and restored: error {self.error:.2f} "
            f"standard deviations of a column; {self.error_at_random:.2f} if missing cells are "
            "taken as missing at random."
        )


def soft_reclip_test(X: Any, estimator: Any = None, *, random_state: int = 0) -> SoftReclipResult:
    """Judge a detection curve by the table itself: hide values by it, restore them, and compare.

    The curve is fitted, and moved up (down where high values go missing) until it would hide as
    large a share of the exact cells as is missing already, a tenth at least. What it hides is
    known, so that the error can be seen, beside that of taking cells as missing at random.

    Parameters
    ----------
    X : array-like, frame, sparse matrix or Intervals of shape (n_rows, n_cols)
        The table; NaN is missing.
    estimator : BayesCMC, default=None
        With ``missing`` other than "random"; None is ``BayesCMC(missing="low")``.
    random_state : int, default=0
        Seed of what is hidden.

    Returns
    -------
    SoftReclipResult
        Truths, restored values and errors; `print` it.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import BayesCMC, soft_reclip_test
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(80, 1)) + 0.3 * rng.normal(size=(80, 6))
    >>> table[table < -0.5] = np.nan
    >>> model = BayesCMC(1, missing="low", n_samples=60, burn_in=60, chains=1, random_state=0)
    >>> found = soft_reclip_test(table, model)
    >>> bool(found.error < found.error_at_random)
    True
    """
    if estimator is None:
        estimator = BayesCMC(missing="low", random_state=random_state)
    intervals = as_intervals(X, estimator.ceiling, estimator.floor)
    return soft_reclip(intervals, _fitted(without_limits(estimator), intervals), random_state)


def soft_reclip(intervals: Intervals, fitted: BayesCMC, seed: int) -> SoftReclipResult:
    """Judge the detection curve of an estimator that was fitted to a table."""
    if fitted.detection_ is None:
        raise ValueError(
            "the estimator has no detection curve: set missing= to low or high, and give it a "
            "table with missing cells."
        )
    hidden = _hidden(intervals, fitted, np.random.default_rng(seed))
    side = intervals.by_row
    rows, cols = side.exact_rows()[hidden], side.exact_idx[hidden]
    shown = intervals.keep(~hidden, np.ones(intervals.n_censored, bool))
    again, random = (
        _fitted(clone(fitted).set_params(missing=missing), shown)
        for missing in (dict(enumerate(fitted.missing_)), "random")
    )
    mean, sd = again.posterior_.missing_components(rows, cols, _DRAWS)
    return SoftReclipResult(
        rows,
        cols,
        side.value[hidden].astype(np.float64),
        mean.mean(axis=0),
        np.sqrt(mean.var(axis=0) + (sd**2).mean(axis=0)),
        random.predict(rows, cols),
        _column_spread(intervals),
    )


def _hidden(intervals: Intervals, fitted: BayesCMC, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Tell which exact cells the fitted curve hides, once moved."""
    side, n_cols = intervals.by_row, intervals.shape[1]
    cols, value = side.exact_idx, side.value.astype(np.float64)
    sign = np.array([{"random": 0.0, "low": 1.0, "high": -1.0}[w] for w in fitted.missing_])
    exact = np.maximum(np.bincount(cols, minlength=n_cols), 1)
    share = np.clip(1 - exact / intervals.shape[0], _LEAST_HIDDEN, _MOST_HIDDEN)
    limit, width = (np.nan_to_num(fitted.detection_[name], nan=1.0) for name in ("limit", "width"))
    z = (sign[cols] * value - (sign * limit)[cols]) / width[cols]
    low, high = np.full(n_cols, z.min(initial=0.0) - 8), np.full(n_cols, z.max(initial=0.0) + 8)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        hides = np.bincount(cols, ndtr(middle[cols] - z), n_cols) / exact
        low, high = np.where(hides < share, middle, low), np.where(hides < share, high, middle)
    chance = np.where(sign[cols] == 0, 0.0, ndtr(low[cols] - z))
    hidden = rng.random(len(cols)) < chance
    left = np.bincount(cols[~hidden], minlength=n_cols)
    hidden &= left[cols] >= _FEWEST_LEFT
    # a row keeps an exact cell: of one without any nothing is known
    rows = side.exact_rows()
    kept = np.bincount(rows[~hidden], minlength=intervals.shape[0])
    return hidden & (kept[rows] > 0)


def _column_spread(intervals: Intervals) -> NDArray[np.float64]:
    side, n_cols = intervals.by_col, intervals.shape[1]
    cols, value = side.exact_rows(), side.value.astype(np.float64)
    count = np.maximum(np.bincount(cols, minlength=n_cols), 1)
    mean = np.bincount(cols, value, n_cols) / count
    spread = np.sqrt(np.bincount(cols, (value - mean[cols]) ** 2, n_cols) / count)
    return np.where(spread > 0, spread, 1.0)


def _fitted(estimator: Any, shown: Intervals) -> Any:
    """Fit an estimator, without the warnings that a hidden part of the table brings about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator.fit(replace(shown, col_labels=None))
