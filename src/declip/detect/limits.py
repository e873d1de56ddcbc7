"""detect_limits: ceilings and floors proposed for the table, for groups of columns, or for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from declip.detect.ends import FEWEST_AT_END, End, look_at_end
from declip.detect.missingness import missing_trend
from declip.detect.proposal import EndEvidence, LimitProposal
from declip.intervals import as_intervals

__all__ = ["detect_limits"]

_MOST_OF_IT = 0.5  # share of the cells in columns that reach a limit for it to be the table's


def detect_limits(
    X: Any, *, tol: float = 0.0, level: float = 0.01, zero: bool = False
) -> LimitProposal:
    """Propose the ceilings and floors of a table, from what its columns show at their ends.

    Nothing is applied: read the evidence, then pass ``ceiling`` and ``floor`` on if you agree. If
    more cells are missing among low (or high) values, that is said too, for ``missing=``.

    Parameters
    ----------
    X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
        The table. Of an `Intervals` the exact cells count.
    tol : float, default=0.0
        Half the width of a plateau, in units of the table, for limits blurred by noise: values up
        to twice this below the largest one are at the limit, which is put in their middle. Then use
        ``Intervals.from_table(X, ceiling=, floor=, tol=)`` with the same value.
    level : float, default=0.01
        Chance of proposing anything at all for a table without limits, at most, so far as the
        trend at the ends holds.
    zero : bool, default=False
        Whether 0 may be a limit of columns that do not change sign. It mostly is not: counts and
        amounts begin there, and a pile of zeros says "none", not "less than none". A short scale
        that ends abruptly on both sides (0 to 10, say) is proposed in any case.

    Returns
    -------
    LimitProposal
        With ``ceiling`` and ``floor``, each a number for the table, one for each column, or None.

    Notes
    -----
    A limit is proposed where

    - values *pile up*: at least three are equal to the largest, significantly more than the counts
      next to it lead one to expect if they went on level, exponentially or by a power. Normal,
      exponential, uniform, Poisson, geometric and Zipf data do not, whether rounded or not;
    - or a *short scale* (4 to 25 different values) *stops abruptly*: the counts of its last
      categories, followed on as a line and as a parabola in logs, would give values beyond it.
      Ratings, survey items and other scores do so, and counts, which fade out, do not. What begins
      at 0, or at the first step above it, has to stop on the other side as well.

    Columns with the same largest value are taken together, so that a limit shared by many can be
    seen in columns with few values. It is the limit of the table if columns with half of the cells
    reach it and none piles up elsewhere. Columns with fewer than four different values show nothing
    (of a binary column both values are ends). A tight cluster at the end of a column looks like a
    plateau if ``tol`` is as wide as it.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import detect_limits
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> print(detect_limits(X))
    No limits found in 4 columns.
    >>> print(detect_limits(np.minimum(X, 1.0)))
    ceiling: 1 for the table, at which 180 of 1200 values lie (15.0 %)
    floor: none found
    Nothing was applied: pass ceiling= and floor= on if you agree.
    """
    check_scalar(tol, "tol", Real, min_val=0)
    check_scalar(level, "level", Real, min_val=0, max_val=1, include_boundaries="neither")
    intervals = as_intervals(X)
    cells = intervals.by_col
    table = _Table(cells.value.astype(np.float64), cells.exact_ptr, float(tol), level, zero)
    ceiling, floor = (_Side(table, sign).evidence() for sign in (1.0, -1.0))
    trend = missing_trend(intervals)
    return LimitProposal(ceiling, floor, float(tol), intervals.col_labels, trend)


@dataclass(frozen=True, eq=False)
class _Table:
    """The values of a table, column after column, and what is looked for."""

    values: NDArray[np.float64]
    ptr: NDArray[np.int64]
    tol: float
    level: float
    zero: bool

    @cached_property
    def observed(self) -> NDArray[np.int64]:
        """Number of values of each column."""
        return np.diff(self.ptr)

    def of(self, columns: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the values of some columns."""
        return np.concatenate([self.values[self.ptr[j] : self.ptr[j + 1]] for j in columns])

    def reason(
        self, values: NDArray[np.float64], threshold: float, n_columns: int = 1
    ) -> tuple[End, str]:
        """Return the upper end of a sample, and why it is a limit; "" if it is none."""
        end = look_at_end(values, self.tol, n_columns)
        piled, stops = end.p_piled < threshold, end.p_stops < threshold
        if not (piled or stops):
            return end, ""
        if end.starts_at_zero and not self.zero:
            closed = stops and look_at_end(-values, self.tol).p_stops < threshold
            return end, "scale ends" if closed else "natural zero"
        return end, "piles up" if piled else "scale ends"


@dataclass(frozen=True, eq=False)
class _Side:
    """The upper side of a table, or for sign -1 the lower one, as the upper side of -X."""

    table: _Table
    sign: float

    @cached_property
    def top(self) -> NDArray[np.float64]:
        """The largest value of each column."""
        top = np.full(len(self.table.observed), np.nan)
        filled = self.table.observed > 0
        if filled.any():
            starts = self.table.ptr[:-1][filled]
            top[filled] = np.maximum.reduceat(self.sign * self.table.values, starts)
        return top

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """Number of values at the end of each column."""
        cols = np.repeat(np.arange(len(self.top)), self.table.observed)
        at = self.sign * self.table.values >= self.top[cols] - 2 * self.table.tol
        return np.bincount(cols[at], minlength=len(self.top))

    @cached_property
    def threshold(self) -> float:
        """The level of one test: columns alone and in groups, and the table; on both sides."""
        return self.table.level / (4 * np.count_nonzero(self.table.observed) + 2)

    @cached_property
    def groups(self) -> list[NDArray[np.intp]]:
        """Columns that end at the same value, up to the tolerance, and have a plateau together."""
        order = np.argsort(self.top)[: np.count_nonzero(self.table.observed)]
        breaks = np.flatnonzero(np.diff(self.top[order]) > 2 * self.table.tol) + 1
        groups = np.split(order, breaks) if order.size else []
        return [g for g in groups if self.count[g].sum() >= FEWEST_AT_END]

    def evidence(self) -> EndEvidence:
        """Return what is proposed, and why."""
        n = len(self.top)
        expected, p_value = np.full(n, np.nan), np.full(n, np.nan)
        reason = np.full(n, "", "<U12")
        limit: float | NDArray[np.float64] | None = self._of_the_table(reason)
        if limit is None:
            self._of_columns(expected, p_value, reason)
            proposed = ~np.isin(reason, ["", "natural zero"])
            limits = np.where(proposed, self.top - self.table.tol, np.inf)
            limit = self.sign * limits if proposed.any() else None
        end = self.sign * (self.top - self.table.tol)
        return EndEvidence(limit, end, self.count, self.table.observed, expected, p_value, reason)

    def _of_the_table(self, reason: NDArray[np.str_]) -> float | None:
        """Return the limit of the whole table, if it has one, and note which columns reach it."""
        if not self.groups:
            return None
        *others, highest = self.groups
        observed = self.table.observed
        if observed[highest].sum() < _MOST_OF_IT * observed.sum():
            return None
        end, why = self.table.reason(self.sign * self.table.values, self.threshold)
        if why in ("", "natural zero") or any(self._piles_up(group) for group in others):
            return None
        reason[highest] = "table"
        return self.sign * end.value

    def _piles_up(self, group: NDArray[np.intp]) -> bool:
        values = self.sign * self.table.of(group)
        return self.table.reason(values, self.threshold, len(group))[1] == "piles up"

    def _of_columns(self, expected: NDArray, p_value: NDArray, reason: NDArray[np.str_]) -> None:
        """Look at every column, alone and together with those that end at the same value."""
        for group in self.groups:
            for j in group[self.count[group] >= FEWEST_AT_END]:
                values = self.sign * self.table.of([j])
                end, reason[j] = self.table.reason(values, self.threshold)
                expected[j], p_value[j] = end.expected, min(end.p_piled, end.p_stops)
            alone = reason[group] == ""
            if len(group) > 1 and alone.any() and self._piles_up(group):
                reason[group[alone]] = "shared"
