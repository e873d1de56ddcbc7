"""Scores of an estimator on held-out cells; higher is better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from declip.censoring import left_censored, right_censored
from declip.intervals import Intervals, face_value
from declip.metrics import (
    at_ceiling_auc,
    at_ceiling_average_precision,
    at_ceiling_f1,
    clipped_relative_rmse,
    interval_rmse,
)
from declip.truncated import log_mass
from declip.validation import Triplets, resolve_limit

__all__ = ["SCORERS", "HeldOutCells", "Scorer", "check_scoring"]


@dataclass(frozen=True, eq=False)
class HeldOutCells:
    """Cells that an estimator was not shown, and what is known of them.

    Attributes
    ----------
    rows, cols : ndarray of int
        Where they are.
    lower, upper : ndarray
        Their intervals; equal for an exact cell.
    floor, ceiling : ndarray
        Their limits, also where the value is exact; infinite where there is none, or where it is
        not known.
    """

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    lower: NDArray
    upper: NDArray
    floor: NDArray
    ceiling: NDArray

    @classmethod
    def of(cls, intervals: Intervals, ceiling: Any = None, floor: Any = None) -> HeldOutCells:
        """Return all cells of a table, under the limits of an estimator.

        Exact cells of an `Intervals` carry no limit. Without ``ceiling`` and ``floor`` theirs is
        the one of the clipped cells if these all have the same, or all those of the column.
        """
        rows, cols, lower, upper = intervals.triplets()
        labels = intervals.row_labels, intervals.col_labels
        cells = Triplets(rows, cols, face_value(lower, upper), intervals.shape, *labels)
        low = _limits(cells, left_censored(lower), floor, "floor")
        high = _limits(cells, right_censored(upper), ceiling, "ceiling")
        return cls(rows, cols, lower, upper, low, high)

    @property
    def value(self) -> NDArray:
        """The value of each cell as it was seen: a clipped one at its limit."""
        return face_value(self.lower, self.upper)

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Which of them are exact."""
        return self.lower == self.upper

    def take(self, positions: NDArray[np.intp]) -> HeldOutCells:
        """Return some of the cells."""
        return HeldOutCells(*(getattr(self, f.name)[positions] for f in fields(self)))

    def at(self, rows: NDArray, cols: NDArray) -> HeldOutCells:
        """Return those that lie in these rows and columns; each must be there."""
        width = int(self.cols.max(initial=0)) + 1
        keys, asked = (
            r.astype(np.int64) * width + c for r, c in ((self.rows, self.cols), (rows, cols))
        )
        order = np.argsort(keys)
        return self.take(order[np.searchsorted(keys, asked, sorter=order)])

    def mapped(self, forward: Callable[[NDArray, NDArray], NDArray]) -> HeldOutCells:
        """Return the cells in other units: ``forward(values, cols)`` rises with the values."""
        ends = self.lower, self.upper, self.floor, self.ceiling
        return HeldOutCells(self.rows, self.cols, *(forward(end, self.cols) for end in ends))

    def log_likelihood(self, mean: NDArray, sd: NDArray) -> NDArray[np.float64]:
        """Return the log-likelihood of each cell under an even mixture of normals, one a line."""
        with np.errstate(invalid="ignore"):
            ends = (self.lower - mean) / sd, (self.upper - mean) / sd
            logs = np.where(self.exact, _log_density(ends[0]) - np.log(sd), log_mass(*ends))
        return logsumexp(logs, axis=0) - np.log(len(logs))

    def standardised_errors(self, mean: NDArray, sd: NDArray) -> NDArray[np.float64]:
        """Return errors in units of the predicted spread; of a clipped cell the least possible."""
        return abs(mean - np.clip(mean, self.lower, self.upper)) / sd


def _log_density(z: NDArray) -> NDArray:
    """Return the log-density of the standard normal; scipy.stats takes long to load."""
    return -(z**2) / 2.0 - np.log(np.sqrt(2 * np.pi))


Scorer = Callable[[Any, HeldOutCells], float]


def _neg_interval_rmse(estimator: Any, cells: HeldOutCells) -> float:
    return -interval_rmse(cells.lower, cells.upper, estimator.predict(cells.rows, cells.cols))


def _neg_clipped_relative_rmse(estimator: Any, cells: HeldOutCells) -> float:
    estimate = estimator.predict(cells.rows, cells.cols)
    limits = {"ceiling": cells.ceiling, "floor": cells.floor}
    return -clipped_relative_rmse(cells.value, estimate, **limits)


def _at_ceiling(metric: Callable[..., float]) -> Scorer:
    def scorer(estimator: Any, cells: HeldOutCells) -> float:
        if not np.isfinite(cells.ceiling).all():
            raise ValueError(
                "Scores of 'is it at the ceiling' need the ceiling of every cell, exact ones "
                "included: set ceiling= of the estimator."
            )
        return metric(cells.value, estimator.predict(cells.rows, cells.cols), cells.ceiling)

    return scorer


SCORERS: dict[str, Scorer] = {
    "neg_interval_rmse": _neg_interval_rmse,
    "neg_clipped_relative_rmse": _neg_clipped_relative_rmse,
    "at_ceiling_f1": _at_ceiling(at_ceiling_f1),
    "at_ceiling_average_precision": _at_ceiling(at_ceiling_average_precision),
    "at_ceiling_auc": _at_ceiling(at_ceiling_auc),
}


def check_scoring(scoring: Any) -> dict[str, Scorer]:
    """Return scorers by name; a single one has the name "score", as in scikit-learn."""
    if isinstance(scoring, str) or callable(scoring):
        return {"score": _scorer(scoring)}
    if isinstance(scoring, Mapping):
        return {name: _scorer(given) for name, given in scoring.items()}
    if isinstance(scoring, Iterable):
        return {name: _scorer(name) for name in scoring}
    raise ValueError(f"scoring must be a name, a function, or several of them; got {scoring!r}.")


def _scorer(given: Any) -> Scorer:
    if callable(given):
        return given
    if given not in SCORERS:
        raise ValueError(f"scoring must be a function or one of {sorted(SCORERS)}; got {given!r}.")
    return SCORERS[given]


def _limits(
    cells: Triplets, clipped: NDArray[np.bool_], given: Any, side: Literal["ceiling", "floor"]
) -> NDArray:
    """Return the limit of each cell: its own if it is clipped, else what was given, or shared."""
    none = np.inf if side == "ceiling" else -np.inf
    if given is not None:
        limit = np.broadcast_to(resolve_limit(given, cells, side).at(cells), clipped.shape)
    else:
        limit = _shared_limit(cells, clipped, none)
    beyond = cells.values > limit if side == "ceiling" else cells.values < limit
    return np.where(clipped, cells.values, np.where(beyond, none, limit))


def _shared_limit(cells: Triplets, clipped: NDArray[np.bool_], none: float) -> NDArray:
    own = cells.values[clipped]
    if own.size == 0 or (own == own[0]).all():
        return np.full(clipped.shape, own[0] if own.size else none)
    lowest, highest = (np.full(cells.shape[1], end) for end in (np.inf, -np.inf))
    np.minimum.at(lowest, cells.cols[clipped], own)
    np.maximum.at(highest, cells.cols[clipped], own)
    return np.where(lowest == highest, lowest, none)[cells.cols]
