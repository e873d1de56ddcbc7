"""The upper end of a sample, where it may pile up or stop abruptly.

A floor is the upper end of the negated sample.
A limit shows in one of two ways. Fine scales pile up at it: more values at the end than the trend
of the values next to it leads one to expect. Short scales such as ratings need not, since their
last category is one among few; but there the counts stop abruptly, where a scale without an end
would fade out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

__all__ = ["FEWEST_AT_END", "End", "look_at_end"]

FEWEST_AT_END = 3  # values that make a plateau
_FEWEST_SITES = 3  # besides the end: two values remain if the other end is a limit, too
_MOST_SITES = 30  # near enough to the end for a trend
_SHORT_SCALE = 25  # values of a scale whose last category may be its end


@dataclass(frozen=True)
class End:
    """The upper end of a sample.

    Attributes
    ----------
    value : float
        The largest value; with a tolerance, so much less than it.
    count, observed : int
        How many values are there, and how many there are in all.
    expected : float
        How many the trend of the values next to it leads one to expect, at most.
    p_piled : float
        Chance of so many without a limit.
    p_stops : float
        Chance of no value beyond the end, if a short scale went on; 1 for other scales.
    starts_at_zero : bool
        Whether all values are on one side of 0 and the end is the value nearest to it, 0 itself or
        the first one of a short scale.
    """

    value: float
    count: int
    observed: int
    expected: float = np.nan
    p_piled: float = 1.0
    p_stops: float = 1.0
    starts_at_zero: bool = False


def look_at_end(values: NDArray[np.float64], tol: float = 0.0, n_columns: int = 1) -> End:
    """Return the evidence for a limit at the upper end of a sample that is not empty.

    Of ``n_columns`` columns that were put together because they end at the same value, each has a
    value there for that reason alone: all of these but one are left out of account.
    """
    top = float(values.max())
    sites, step = _sites(values, top, tol)
    end = End(top - tol, int(sites[0]), len(values))
    sites[0] -= n_columns - 1
    if sites[0] < FEWEST_AT_END or len(sites) <= _FEWEST_SITES:
        return end
    expected, p_piled = _piled(sites)
    short = tol == 0 and len(sites) <= _SHORT_SCALE
    natural = top <= 0 and -top <= (step if short else 0.0)
    p_stops = _stops(sites) if short else 1.0
    return End(end.value, end.count, end.observed, expected, p_piled, p_stops, natural)


def _sites(values: NDArray, top: float, tol: float) -> tuple[NDArray[np.float64], float]:
    """Return how many values are at the end, at the place next to it, and so on; and the spacing.

    Places are the distinct values, or with a tolerance neighbouring windows of twice its width.
    """
    if tol > 0:
        window = np.floor((top - values) / (2 * tol) * (1 - 1e-12)).astype(np.intp)
        near = window[window <= _MOST_SITES]
        return np.bincount(near).astype(float), 2 * tol
    found, counts = np.unique(values, return_counts=True)
    spacing = float(np.diff(found).min(initial=np.inf))
    return counts[::-1].astype(float), spacing


def _piled(sites: NDArray[np.float64]) -> tuple[float, float]:
    """Return the count at the end that one would expect, and the chance of as many as there are.

    The trend of the counts next to the end is taken as level, as exponential and as a power; each
    is given the benefit of the doubt. The second bounds every distribution whose logarithm is
    concave there (normal, exponential, Poisson, ...), the third long tails.
    """
    here, near = sites[0], sites[1 : _MOST_SITES + 1]
    total, m = near.sum(), len(near)
    level = float(binom.sf(here - 1, here + total, 1 / (m + 1)))
    places = np.arange(1.0, m + 1)
    trends = [_extrapolated(near, x, here) for x in (places, np.log1p(places))]
    return max(total / m, *(e for e, _ in trends)), max(level, *(p for _, p in trends))


def _extrapolated(near: NDArray, x: NDArray, here: float) -> tuple[float, float]:
    """Fit log counts by a line in x; return what it gives at x = 0, and the chance of ``here``."""
    weight, y = near + 0.5, np.log(near + 0.5)  # the variance of a log count is 1 / count
    centre = np.average(x, weights=weight)
    spread = weight @ (x - centre) ** 2
    slope = weight @ ((x - centre) * y) / spread
    mean = np.average(y, weights=weight)
    residual = y - mean - slope * (x - centre)
    excess = max(1.0, weight @ residual**2 / max(len(x) - 2, 1))  # heaped data scatter more
    at_end = mean - slope * centre
    variance = excess * (1 / weight.sum() + centre**2 / spread) + excess / (here + 0.5)
    return float(np.exp(at_end)), float(norm.sf((np.log(here + 0.5) - at_end) / np.sqrt(variance)))


def _stops(sites: NDArray[np.float64]) -> float:
    """Return the chance that nothing lies one place beyond the end, had the scale gone on.

    Beyond it the logarithm of the counts goes on as a line or as a parabola through the last
    places, whichever is lower; two standard errors are taken off.
    """
    a, b, c = np.log(sites[:3])
    line, parabola = 2 * a - b, 3 * a - 3 * b + c
    error = (
        np.sqrt(np.array([4, 1, 0]) @ (1 / sites[:3])),
        np.sqrt(np.array([9, 9, 1]) @ (1 / sites[:3])),
    )
    beyond = min(line - 2 * error[0], parabola - 2 * error[1])
    return float(np.exp(-np.exp(min(beyond, 700.0))))
