"""Noise that is known to lie in an interval: moments, tails, quantiles and draws.

Everything is in standard units, of a noise of mean 0 and scale 1 between a and b: take ``(bound -
centre) / scale`` for both ends. They may be infinite, far out in a tail, or close together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from declip.kernels import truncated_normals
from declip.losses import Tobit

__all__ = ["NoiseDistribution", "log_mass", "moments", "quantile"]

_NARROW = 1e-5  # widths of intervals, relative to what the density changes over, that it is even in


def moments(a: NDArray, b: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and variance of standard normal noise between a and b.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.truncated import moments
    >>> mean, variance = moments(np.array([0.0]), np.array([np.inf]))
    >>> np.round([mean[0] ** 2, variance[0]], 4)  # 2 / pi, 1 - 2 / pi
    array([0.6366, 0.3634])
    """
    # the Tobit loss at 0: its gradient is minus the mean, its curvature 1 minus the variance
    loss = Tobit(1.0).cells(np.zeros(a.size), a.ravel(), b.ravel())
    return -loss.gradient.reshape(a.shape), 1 - loss.curvature.reshape(a.shape)


def log_mass(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Return log P(a < Z < b) of standard normal noise, never below that of a tiny width."""
    low, high, _ = _heavy_end_left(a, b)
    tail = special.log_ndtr(-low)
    tiny = np.finfo(np.float64).tiny
    with np.errstate(invalid="ignore"):
        beyond = np.fmin(special.log_ndtr(-high) - tail, 0.0)
        wide = tail + np.log(np.maximum(-np.expm1(beyond), tiny))
        width, middle = high - low, 0.5 * (low + high)
        narrow = width * (1 + abs(middle)) < _NARROW
        even = np.log(np.maximum(width, tiny)) - 0.5 * middle**2 - 0.5 * np.log(2 * np.pi)
    return np.where(narrow, even, wide)


def quantile(a: NDArray, b: NDArray, log_survival: float | NDArray) -> NDArray[np.float64]:
    """Return what standard normal noise between a and b exceeds with this log-probability."""
    mass = log_mass(a, b)
    flipped = _heavy_end_left(a, b)[2]
    with np.errstate(divide="ignore"):
        log_below = np.log(-np.expm1(log_survival))
    # the tail beyond the quantile, counted from the side on which it is small
    near = np.where(flipped, log_below, log_survival)
    far = special.log_ndtr(np.where(flipped, a, -b))
    z = special.ndtri_exp(np.minimum(np.logaddexp(mass + near, far), 0.0))
    return np.clip(np.where(flipped, z, -z), a, b)


@dataclass(frozen=True)
class NoiseDistribution:
    """Standard normal noise, or Student t with ``df`` degrees of freedom if that is positive."""

    df: float = 0.0

    @property
    def variance(self) -> float:
        """Variance of the noise in units of its scale; infinite for a t of 2 or fewer."""
        if self.df == 0:
            return 1.0
        return self.df / (self.df - 2) if self.df > 2 else np.inf

    def log_above(self, x: NDArray) -> NDArray:
        """Return the log of the probability of more than x."""
        if self.df == 0:
            return special.log_ndtr(-x)
        with np.errstate(divide="ignore"):
            return np.log(special.stdtr(self.df, -x))

    def above(self, x: NDArray) -> NDArray:
        """Return the probability of more than x."""
        return special.ndtr(-x) if self.df == 0 else special.stdtr(self.df, -x)

    def mean_between(self, a: NDArray, b: NDArray) -> NDArray:
        """Return the mean given that the noise lies in [a, b]."""
        if self.df == 0:
            return moments(a, b)[0]
        low, high, flipped = _heavy_end_left(a, b)
        mass = self.above(low) - self.above(high)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (self._tail_moment(low) - self._tail_moment(high)) / mass
        # An interval with no mass to speak of: the end that is nearer to 0.
        mean = np.clip(np.where(mass > 0, mean, low), low, high)
        return np.where(flipped, -mean, mean)

    def _tail_moment(self, x: NDArray) -> NDArray:
        """Return the integral of t f(t) above x: (df + x^2) / (df - 1) f(x), for df > 1."""
        df = self.df
        log_constant = special.gammaln(0.5 * (df + 1)) - special.gammaln(0.5 * df)
        constant = np.exp(log_constant) / np.sqrt(np.pi * df)
        return constant * df / (df - 1) * (1 + x * x / df) ** (0.5 * (1 - df))

    def share_between(self, a: NDArray, b: NDArray) -> Callable[[NDArray], NDArray]:
        """Return the function q -> probability of less than q given [a, b], for q in it."""
        low, high, flipped = _heavy_end_left(a, b)
        at_low = self.log_above(low)
        whole = np.expm1(self.log_above(high) - at_low)

        def share_below(q: NDArray) -> NDArray:
            # (above(low) - above(q)) / (above(low) - above(high)), both over above(low)
            with np.errstate(invalid="ignore", divide="ignore"):
                share = np.expm1(self.log_above(np.where(flipped, -q, q)) - at_low) / whole
            share = np.clip(np.where(np.isnan(share), 1.0, share), 0, 1)
            return np.where(flipped, 1 - share, share)

        return share_below

    def draw_between(
        self, x: NDArray, scale: NDArray, lower: NDArray, upper: NDArray, seed: int
    ) -> NDArray:
        """Draw values x + scale * noise that are known to lie in [lower, upper]."""
        if self.df == 0:
            return truncated_normals(x, scale, lower, upper, (seed, 0))
        low, high, flipped = _heavy_end_left((lower - x) / scale, (upper - x) / scale)
        u = np.random.default_rng(seed).random(x.shape)
        above = self.above(low) + u * (self.above(high) - self.above(low))
        noise = np.clip(-special.stdtrit(self.df, above), low, high)
        return np.clip(x + scale * np.where(flipped, -noise, noise), lower, upper)


def _heavy_end_left(a: NDArray, b: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Mirror intervals that lie left of 0: tails are then differences of small numbers."""
    with np.errstate(invalid="ignore"):
        flipped = a + b < 0
    return np.where(flipped, -b, a), np.where(flipped, -a, b), flipped
