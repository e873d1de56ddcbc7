"""Statistics of complete values, each with its variance on the scale on which it is pooled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from declip.inference.pooling import Pooled
from declip.inference.univariate import Distribution

__all__ = ["DEFAULT", "SHARE_ABOVE", "Statistic", "statistics_of"]

DEFAULT = ("mean", "geometric_mean", "sd", "median", "p95")
SHARE_ABOVE = "share_above"
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_NAMED = ("mean", "geometric_mean", "sd", "median")
_WOODRUFF = 1.0  # standard errors of the share from which that of a quantile is read off


@dataclass(frozen=True)
class Statistic:
    """A number that sums up the values of a column.

    Attributes
    ----------
    name : str
        "mean", "geometric_mean", "sd", "median", a percentile as "p95", or "share_above".
    log : bool
        Whether the column is one of concentrations, restored in logarithms.
    criterion : float
        What the share lies above.
    """

    name: str
    log: bool = False
    criterion: float = np.nan

    @property
    def share(self) -> float:
        """Where a quantile lies."""
        found = _PERCENTILE.fullmatch(self.name)
        return 0.5 if found is None else float(found[1]) / 100

    @property
    def in_logs(self) -> bool:
        """Whether it is pooled on the scale of logarithms."""
        if self.name in ("geometric_mean", "sd"):
            return True
        return self.log and self.name != SHARE_ABOVE

    def of(self, x: NDArray) -> tuple[float, float]:
        """Return the estimate from sorted values and its variance, on the scale of pooling."""
        n = len(x)
        if self.name == SHARE_ABOVE:
            share = float(np.mean(x > self.criterion))
            return share, share * (1 - share) / n
        if self.in_logs and not (x[0] > 0 or self.name == "sd"):
            return np.nan, np.nan
        if self.name == "mean":
            return _log_mean(x) if self.log else (float(x.mean()), float(x.var(ddof=1)) / n)
        if self.name == "geometric_mean":
            logs = np.log(x)
            return float(logs.mean()), float(logs.var(ddof=1)) / n
        if self.name == "sd":
            return _log_sd(x)
        return _quantile(np.log(x) if self.in_logs else x, self.share)

    def exact(self, distribution: Distribution) -> float:
        """Return the statistic of an estimated distribution."""
        if self.name == SHARE_ABOVE:
            return distribution.above(self.criterion)
        if self.name in ("mean", "geometric_mean", "sd"):
            return float(getattr(distribution, self.name)())
        return distribution.quantile(self.share)

    def interval(
        self, pooled: Pooled, n: NDArray, confidence: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return estimate, lower and upper end, in the units of the column."""
        if self.name == SHARE_ABOVE:
            return pooled.estimate, *_wilson(pooled, n, confidence)
        found = pooled.estimate, *pooled.interval(confidence)
        if not self.in_logs:
            return found
        with np.errstate(over="ignore"):  # what is beyond all numbers has no upper end
            estimate, low, high = (np.exp(part) for part in found)
        return estimate, low, high


def statistics_of(names: Sequence[str]) -> list[str]:
    """Return the names of statistics, checked."""
    if isinstance(names, str):
        names = [names]
    for name in names:
        if name not in _NAMED and not (isinstance(name, str) and _is_percentile(name)):
            raise ValueError(
                f"There is no statistic {name!r}: choose among 'mean', 'geometric_mean', 'sd', "
                "'median' and percentiles such as 'p90'; a criterion adds the share above it."
            )
    return list(dict.fromkeys(names))


def _is_percentile(name: str) -> bool:
    """Tell a percentile between the least value and the largest."""
    found = _PERCENTILE.fullmatch(name)
    return found is not None and float(found[1]) > 0


def _log_mean(x: NDArray) -> tuple[float, float]:
    """Return the logarithm of the mean and its variance, as that of lognormal values.

    The values' own standard deviation is small when their mean is: it would give intervals that
    are too short. Logarithms weighted by the roots of the values have the same variance, if these
    are lognormal, and the low ones, which a floor may hide and the mean hardly feels, count little.
    """
    logs = np.log(x)
    weight = np.exp(0.5 * (logs - logs[-1]))  # in order: the last is the largest
    weight /= weight.sum()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # one value is all of them
        variance = weight @ (logs - weight @ logs) ** 2 / (1 - weight @ weight)
        return float(np.log(x.mean())), float(np.expm1(variance)) / len(x)


def _log_sd(x: NDArray) -> tuple[float, float]:
    """Return the logarithm of the standard deviation, and its variance by the fourth moment."""
    n, d = len(x), x - x.mean()
    variance = float(d @ d) / (n - 1)
    if not variance > 0:
        return np.nan, np.nan
    kurtosis = float(np.mean(d**4)) / variance**2
    return 0.5 * np.log(variance), max(kurtosis - (n - 3) / (n - 1), 0.0) / (4 * n)


def _quantile(x: NDArray, share: float) -> tuple[float, float]:
    """Return a quantile of sorted values and its variance (Woodruff 1952).

    The standard error is half of how far quantiles lie apart at a standard error of the share.
    """
    n = len(x)
    step = _WOODRUFF * np.sqrt(share * (1 - share) / n)
    # never closer to an end than half a value: there the sample says nothing of the quantile
    ends = np.clip([share - step, share + step], 0.5 / n, 1 - 0.5 / n)
    low, middle, high = np.quantile(x, [ends[0], share, ends[1]])
    return float(middle), float((high - low) / (2 * _WOODRUFF)) ** 2


def _wilson(pooled: Pooled, n: NDArray, confidence: float) -> tuple[NDArray, NDArray]:
    """Return Wilson's interval of a pooled share (Lott and Reiter 2020)."""
    binomial = pooled.estimate * (1 - pooled.estimate)
    known = (pooled.std_error > 0) & (binomial > 0)
    # as many values, all seen, would tell as much
    worth = np.divide(binomial, pooled.std_error**2, out=np.asarray(n, float).copy(), where=known)
    spread = special.stdtrit(pooled.df, 0.5 + 0.5 * confidence) ** 2 / worth
    middle = pooled.estimate + 0.5 * spread
    half_width = np.sqrt(spread * (binomial + 0.25 * spread))
    return (middle - half_width) / (1 + spread), (middle + half_width) / (1 + spread)
