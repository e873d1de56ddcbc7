"""How far beyond its limit a cell may lie: laws and bands calibrated by what the test hid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from declip.restoration.tails import TruncatedNormal

__all__ = ["Observation", "TailShrinkage", "calibrated"]

# Settled after trials on simulated tables with seven kinds of columns and on real ones.
_TABLE_SPREAD = 1.0  # prior standard deviation of the log of a table's pull
_COLUMN_SPREAD = 1.0  # of the logs of its columns' pulls about it
_STEPS = ((0.4, -4, 13), (0.1, -4, 5), (0.02, -5, 6))  # of the search for it, ever finer
_ENOUGH_CELLS = 50_000


@dataclass(frozen=True, eq=False)
class Observation:
    """Hidden cells: the laws that a method gave them, and what is known of them.

    Attributes
    ----------
    cols : ndarray of int
        Their columns.
    tails : TruncatedNormal
        Their laws, as the method gives them.
    value : ndarray
        Their truth, or a bound that it lies beyond.
    censored : ndarray of bool
        Whether only the bound is known.
    """

    cols: NDArray
    tails: TruncatedNormal
    value: NDArray
    censored: NDArray[np.bool_]

    @property
    def side(self) -> NDArray[np.intp]:
        """0 at floors, 1 at ceilings."""
        return (self.tails.sign > 0).astype(np.intp)

    def some(self, n: int) -> Observation:
        """Return at most about n of the cells, evenly spread."""
        part = slice(None, None, max(1, len(self.cols) // n))
        tails = TruncatedNormal(
            *(getattr(self.tails, name)[part] for name in TruncatedNormal.__dataclass_fields__)
        )
        return Observation(self.cols[part], tails, self.value[part], self.censored[part])

    def log_likelihood(self, pull: NDArray) -> NDArray[np.float64]:
        """Return that of each cell, if its law is drawn in."""
        tails = self.tails.pulled(pull)
        return np.where(self.censored, -tails.surprise(self.value), tails.log_density(self.value))


@dataclass(frozen=True, eq=False)
class TailShrinkage:
    """By how much the laws of the columns are drawn in to their floors and ceilings.

    Attributes
    ----------
    values : ndarray of shape (2, n_cols)
        At the floor and at the ceiling of each column. Never below one: a heavy tail seen inside
        the table may end beyond the real limit, and values must not go out on a limb for it. It
        widens the bands instead.
    reach : float
        The standard exponential quantile to be used for the bands: -log(1 - coverage) if the laws
        are right, more if the hidden cells lay further out.
    """

    values: NDArray[np.float64]
    reach: float

    @classmethod
    def of(cls, seen: Sequence[Observation], n_cols: int, coverage: float) -> TailShrinkage:
        """Fit the pulls to the cells that were hidden nearest to the limits, bands to all.

        Parameters
        ----------
        seen : sequence of Observation
            Hidden cells, those nearest to the real limits first.
        n_cols : int
            Columns of the table.
        coverage : float
            Share of the truths that the bands are to hold.
        """
        values = _fitted_pulls(seen[0], n_cols)
        laws = [s.tails.pulled(values[s.side, s.cols]) for s in seen]
        sizes = np.concatenate([t.surprise(s.value) for t, s in zip(laws, seen, strict=True)])
        known = np.concatenate([~s.censored for s in seen])
        return cls(values, calibrated(sizes, known, coverage, lambda share: -np.log1p(-share)))

    def pull(self, tails: TruncatedNormal, cols: NDArray) -> TruncatedNormal:
        """Return laws drawn in."""
        return tails.pulled(self.values[(tails.sign > 0).astype(np.intp), cols])

    def surprise(self, seen: Observation) -> NDArray[np.float64]:
        """Return minus the log-likelihood of hidden cells."""
        return -seen.log_likelihood(self.values[seen.side, seen.cols])


def _fitted_pulls(seen: Observation, n_cols: int) -> NDArray[np.float64]:
    """Return the pulls of columns, which are drawn to that of their side, and it to one.

    They are chosen for the smallest error relative to leaving the limit, so that little evidence
    leaves values close to it.
    """
    seen = seen.some(_ENOUGH_CELLS)
    side, group = seen.side, seen.side * n_cols + seen.cols

    def score(x: NDArray, which: NDArray, about: NDArray, spread: float) -> NDArray[np.float64]:
        sums = np.bincount(which, seen.log_likelihood(np.exp(x[which])), len(x))
        return sums - 0.5 * ((x - about) / spread) ** 2

    table, table_error = _highest(lambda x: score(x, side, np.zeros(2), _TABLE_SPREAD), 2)
    about = np.repeat(table, n_cols)
    logs, error = _highest(lambda x: score(x, group, about, _COLUMN_SPREAD), 2 * n_cols)
    share = (error / _COLUMN_SPREAD) ** 2  # of the table in what is said of a column
    variance = error**2 + (share * np.repeat(table_error, n_cols)) ** 2
    # A distance d is restored as v. The error relative to leaving the limit, E (1 - v / d)^2, is
    # least at v = E 1/d / E 1/d^2: for a log-normal d of variance s^2 that is its median times
    # exp(-1.5 s^2).
    return np.exp(np.maximum(logs + 1.5 * variance, 0.0)).reshape(2, n_cols)


def _highest(
    score: Callable[[NDArray], NDArray], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where each of n scores is highest, and the standard error by its curvature there."""
    x = np.zeros(n)
    for step, first, last in _STEPS:
        tries = x + step * np.arange(first, last)[:, None]
        x = tries[np.argmax([score(t) for t in tries], axis=0), np.arange(n)]
    low, middle, high = (score(x + way * step) for way in (-1, 0, 1))
    bend = np.maximum(2 * middle - low - high, 1e-12)
    # the top of the parabola through the three
    return x + step * np.clip(0.5 * (high - low) / bend, -1, 1), step / np.sqrt(bend)


def calibrated(
    sizes: NDArray, known: NDArray[np.bool_], coverage: float, nominal: Callable[[float], float]
) -> float:
    """Return the size that a share of the truths stays below, some of them known only by a bound.

    It is the quantile of Kaplan and Meier. If the bounds hide it, the highest quantile that can be
    seen is extended as the nominal law goes.

    Parameters
    ----------
    sizes : ndarray
        Sizes, or lower bounds of them.
    known : ndarray of bool
        Whether the size itself is known.
    coverage : float
        The share.
    nominal : callable
        From a share to the quantile of the nominal law.
    """
    order = np.lexsort((~known, sizes))
    sizes, known = sizes[order], known[order]
    at_risk = np.arange(len(sizes), 0, -1)
    survival = np.cumprod(1 - known / (at_risk + 1.0))  # one more cell, which is never below
    below = 1 - survival
    within = np.flatnonzero(known & (below <= coverage) & (below > 0))
    if len(within) == 0:
        return nominal(coverage)
    last = within[-1]
    return float(nominal(coverage) * sizes[last] / nominal(float(below[last])))
