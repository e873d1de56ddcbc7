"""How far beyond its limit a cell may lie: tails and bands calibrated by what the test hid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from declip.restoration.tails import Tails

__all__ = ["Hazards", "Observation", "calibrated"]

_TABLE_PRIOR = 5.0  # cells with normal tails that the hazard of a table counts as having seen
_COLUMN_PRIOR = 6.0  # cells of the table that the hazard of a column counts as having seen
_SMALLEST, _LARGEST = 1.0, 20.0  # no tail heavier than the normal one: values do no harm


@dataclass(frozen=True, eq=False)
class Observation:
    """Hidden cells: the laws that a method gave them, and what is known of them.

    Attributes
    ----------
    cols : ndarray of int
        Their columns.
    tails : Tails
        Their laws, with normal tails.
    value : ndarray
        Their truth, or a bound that it lies beyond.
    censored : ndarray of bool
        Whether only the bound is known.
    """

    cols: NDArray
    tails: Tails
    value: NDArray
    censored: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Hazards:
    """The exponents of the tails of the columns, at floors and at ceilings.

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
    def of(cls, seen: Sequence[Observation], n_cols: int, coverage: float) -> Hazards:
        """Fit the tails to hidden cells; those of a column are drawn to those of its side."""
        side = np.concatenate([(s.tails.sign > 0).astype(np.intp) for s in seen])
        cols = np.concatenate([s.cols for s in seen])
        known = np.concatenate([~s.censored for s in seen])
        surprise = np.concatenate([s.tails.surprise(s.value) for s in seen])
        count, total = np.zeros((2, n_cols)), np.zeros((2, n_cols))
        np.add.at(count, (side, cols), known)
        np.add.at(total, (side, cols), surprise)
        pooled = (count.sum(axis=1) + _TABLE_PRIOR) / (total.sum(axis=1) + _TABLE_PRIOR)
        pooled = np.clip(pooled, _SMALLEST, _LARGEST)[:, None]
        values = (count + _COLUMN_PRIOR) / (total + _COLUMN_PRIOR / pooled)
        values = np.clip(values, _SMALLEST, _LARGEST)
        reach = calibrated(
            values[side, cols] * surprise, known, coverage, lambda share: -np.log1p(-share)
        )
        return cls(values, reach)

    def bend(self, tails: Tails, cols: NDArray) -> Tails:
        """Return laws with these tails."""
        return tails.with_hazard(self.values[(tails.sign > 0).astype(np.intp), cols])

    def surprise(self, seen: Observation) -> NDArray[np.float64]:
        """Return minus the log-likelihood of hidden cells."""
        tails = self.bend(seen.tails, seen.cols)
        density = -tails.log_density(seen.value)
        return np.where(seen.censored, tails.hazard * tails.surprise(seen.value), density)


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
