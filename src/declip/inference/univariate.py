"""One column alone under censoring: Kaplan-Meier, order statistics, likelihood, half the limit.

A column is given by what is known of its values: ``lower`` and ``upper``, equal where a value is
exact, with an infinite end where it lies beyond a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from declip import truncated
from declip.censoring import left_censored, right_censored
from declip.intervals import face_value

__all__ = [
    "ESTIMATORS",
    "Distribution",
    "NormalFit",
    "WeightedValues",
    "half_limit",
    "kaplan_meier",
    "max_likelihood",
    "ros",
]

_EM_STEPS, _EM_TOL = 2000, 1e-9
_LEAST_SCALE = 1e-9


class Distribution(Protocol):
    """An estimated distribution of the values of a column."""

    def mean(self) -> float:
        """Return its mean."""

    def geometric_mean(self) -> float:
        """Return the exponential of the mean of logarithms, NaN unless all values are positive."""

    def sd(self) -> float:
        """Return its standard deviation."""

    def quantile(self, share: float) -> float:
        """Return the value below which this share lies."""

    def above(self, value: float) -> float:
        """Return the share above a value."""


@dataclass(frozen=True, eq=False)
class WeightedValues:
    """Values with weights that sum to one.

    Attributes
    ----------
    value, weight : ndarray
        In order of the values.
    n : int
        Cells that they stand for.
    """

    value: NDArray[np.float64]
    weight: NDArray[np.float64]
    n: int

    @classmethod
    def even(cls, value: NDArray) -> WeightedValues:
        """Return values that count alike."""
        return cls(np.sort(value), np.full(len(value), 1 / len(value)), len(value))

    def mean(self) -> float:
        """Return the weighted mean."""
        return float(self.weight @ self.value)

    def geometric_mean(self) -> float:
        """Return the exponential of the mean of logarithms, NaN unless all values are positive."""
        if not np.all(self.value > 0):
            return np.nan
        return float(np.exp(self.weight @ np.log(self.value)))

    def sd(self) -> float:
        """Return the standard deviation, of a sample."""
        if self.n < 2:
            return np.nan
        variance = self.weight @ (self.value - self.mean()) ** 2
        return float(np.sqrt(variance * self.n / (self.n - 1)))

    def quantile(self, share: float) -> float:
        """Return the value at which the cumulated weight comes to a share."""
        if np.ptp(self.weight) == 0:  # a sample: as numpy does, between the order statistics
            return float(np.quantile(self.value, share))
        at = int(np.searchsorted(np.cumsum(self.weight), share - 1e-12))
        return float(self.value[min(at, len(self.value) - 1)])

    def above(self, value: float) -> float:
        """Return the weight above a value."""
        return float(self.weight[self.value > value].sum())


@dataclass(frozen=True, eq=False)
class NormalFit:
    """A normal distribution of the values, or of their logarithms."""

    centre: float
    scale: float
    log: bool

    def mean(self) -> float:
        """Return its mean."""
        if not self.log:
            return self.centre
        return float(np.exp(self.centre + 0.5 * self.scale**2))

    def geometric_mean(self) -> float:
        """Return the exponential of the mean of logarithms; NaN of a normal distribution."""
        return float(np.exp(self.centre)) if self.log else np.nan

    def sd(self) -> float:
        """Return its standard deviation."""
        if not self.log:
            return self.scale
        return self.mean() * float(np.sqrt(np.expm1(self.scale**2)))

    def quantile(self, share: float) -> float:
        """Return the value below which this share lies."""
        x = self.centre + self.scale * float(special.ndtri(share))
        return float(np.exp(x)) if self.log else x

    def above(self, value: float) -> float:
        """Return the share above a value."""
        if self.log and value <= 0:
            return 1.0
        x = np.log(value) if self.log else value
        return float(special.ndtr((self.centre - x) / self.scale))


def half_limit(lower: NDArray, upper: NDArray, log: bool = False) -> Distribution | None:
    """Return the values with floors halved, ceilings as they are, and ranges at their middle.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.inference.univariate import half_limit
    >>> half_limit(np.array([1.0, -np.inf]), np.array([1.0, 0.8])).mean()  # 1 and <0.8
    0.7
    """
    face = face_value(lower, upper)
    return WeightedValues.even(np.where(left_censored(lower), 0.5 * face, face))


def kaplan_meier(lower: NDArray, upper: NDArray, log: bool = False) -> Distribution | None:
    """Return the distribution of Kaplan and Meier, or of Turnbull if limits lie on both sides.

    What lies beyond the outermost limit counts as lying at it (Efron).

    Examples
    --------
    >>> import numpy as np
    >>> from declip.inference.univariate import kaplan_meier
    >>> km = kaplan_meier(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, np.inf, 3]))  # >2 once
    >>> km.value, km.weight
    (array([1., 2., 3.]), array([0.25, 0.25, 0.5 ]))
    """
    censored = lower < upper
    if not np.any(~censored):
        return None
    if np.all(right_censored(upper[censored])):
        return _product_limit(lower, ~censored)
    if np.all(left_censored(lower[censored])):
        flipped = _product_limit(-upper, ~censored)
        return WeightedValues(-flipped.value[::-1], flipped.weight[::-1], flipped.n)
    return _turnbull(lower, upper)


def _product_limit(time: NDArray, seen: NDArray[np.bool_]) -> WeightedValues:
    """Return the product-limit weights; the last time counts as seen."""
    value, at = np.unique(time, return_inverse=True)
    events, leaving = np.bincount(at, seen), np.bincount(at)
    at_risk = len(time) - np.concatenate([[0], np.cumsum(leaving)[:-1]])
    survival = np.cumprod(1 - events / at_risk)
    survival[-1] = 0.0
    weight = -np.diff(survival, prepend=1.0)
    there = weight > 0
    return WeightedValues(value[there], weight[there], len(time))


def _turnbull(lower: NDArray, upper: NDArray) -> WeightedValues:
    """Return the self-consistent weights of cells in intervals, by EM over their finite ends."""
    ends = np.concatenate([lower, upper])
    value = np.unique(ends[np.isfinite(ends)])
    kinds, count = np.unique(np.stack([lower, upper]), axis=1, return_counts=True)
    inside = (value >= kinds[0][:, None]) & (value <= kinds[1][:, None])
    weight = np.full(len(value), 1 / len(value))
    for _ in range(_EM_STEPS):
        shares = inside * weight
        new = count @ (shares / shares.sum(axis=1, keepdims=True)) / len(lower)
        done = abs(new - weight).max() < _EM_TOL
        weight = new
        if done:
            break
    return WeightedValues(value, weight, len(lower))


def ros(lower: NDArray, upper: NDArray, log: bool = False) -> Distribution | None:
    """Return values with censored ones from a regression on order statistics (Helsel and Cohn).

    None for a column with limits on both sides, or without two different exact values.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.inference.univariate import ros
    >>> x = np.array([1.0, 2.0, 4.0, 8.0])
    >>> limit = np.array([1.0, 1.0])
    >>> found = ros(np.append(x, [-np.inf] * 2), np.append(x, limit), log=True)
    >>> bool(np.all(found.value[:2] < 1))
    True
    """
    exact = lower == upper
    if len(np.unique(lower[exact])) < 2 or (log and np.any(face_value(lower, upper) <= 0)):
        return None
    face = face_value(lower, upper)
    x = np.log(face) if log else face
    if np.all(right_censored(upper[~exact])):
        x = -_ros_below(-x, exact)
    elif np.all(left_censored(lower[~exact])):
        x = _ros_below(x, exact)
    else:
        return None
    return WeightedValues.even(np.exp(x) if log else x)


def _ros_below(x: NDArray, exact: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return values with those below limits put where their plotting positions say."""
    position = _plotting_positions(x, exact)
    z = special.ndtri(position)
    slope, intercept = np.polyfit(z[exact], x[exact], 1)
    return np.where(exact, x, intercept + slope * z)


def _plotting_positions(x: NDArray, exact: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the plotting positions of Hirsch and Stedinger of values and of limits above values.

    Between two limits d_j and d_{j+1} lie A_j values; below d_j lie B_j values and limits. The
    probability of exceeding d_j is that of exceeding d_{j+1}, and of what is left A / (A + B).
    """
    limits = np.unique(x[~exact])
    ends = np.concatenate([[-np.inf], limits, [np.inf]])
    band = np.searchsorted(ends, x, side="right") - 1  # of a limit: the band that begins there
    exceed = np.zeros(len(ends))
    for j in range(len(limits), -1, -1):
        above = np.sum(exact & (band == j))
        below = np.sum(x[exact] < ends[j]) + np.sum(x[~exact] <= ends[j])
        share = above / (above + below) if above + below else 0.0
        exceed[j] = exceed[j + 1] + share * (1 - exceed[j + 1])
    exceed[0] = 1.0
    position = np.empty(len(x))
    for j in range(len(limits) + 1):
        seen, hidden = exact & (band == j), ~exact & (band == j)
        width = exceed[j] - exceed[j + 1]
        position[seen] = 1 - exceed[j] + width * _ranks(x[seen]) / (seen.sum() + 1)
        position[hidden] = (1 - exceed[j]) * _ranks(x[hidden]) / (hidden.sum() + 1)
    return position


def _ranks(x: NDArray) -> NDArray[np.float64]:
    """Return the ranks of values from 1 on, ties in the order in which they come."""
    ranks = np.empty(len(x))
    ranks[np.argsort(x, kind="stable")] = np.arange(1, len(x) + 1)
    return ranks


def max_likelihood(lower: NDArray, upper: NDArray, log: bool = False) -> Distribution | None:
    """Return the likeliest normal distribution of the values, or of their logarithms.

    None without two different exact values, or with values that have no logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.inference.univariate import max_likelihood
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> fit = max_likelihood(x, x)
    >>> fit.mean(), fit.sd()
    (2.0, 0.816)
    """
    exact = lower == upper
    if len(np.unique(lower[exact])) < 2 or (log and np.any(upper <= 0)):
        return None
    if log:
        with np.errstate(divide="ignore"):
            lower, upper = np.log(np.maximum(lower, 0.0)), np.log(upper)
    face = face_value(lower, upper)
    shift, unit = face.mean(), max(float(face.std()), _LEAST_SCALE)
    low, high = (lower - shift) / unit, (upper - shift) / unit

    def loss(at: NDArray) -> float:
        scale = np.exp(at[1])
        a, b = (low - at[0]) / scale, (high - at[0]) / scale
        hidden = truncated.log_mass(a[~exact], b[~exact]).sum()
        return float(0.5 * (a[exact] ** 2).sum() + exact.sum() * at[1] - hidden)

    centre, log_scale = optimize.minimize(loss, np.zeros(2), method="BFGS").x
    return NormalFit(float(shift + unit * centre), float(unit * np.exp(log_scale)), log)


ESTIMATORS = {
    "kaplan_meier": kaplan_meier,
    "ros": ros,
    "max_likelihood": max_likelihood,
    "half_limit": half_limit,
}
