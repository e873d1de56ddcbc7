r"""What lies beyond a limit: the predictive distribution of a censored cell.

A method predicts a cell by a mixture of normal distributions :math:`N(x_k, s_k^2)` (one for each
draw of the posterior, or a single one), of which the part within the cell's interval is left. Real
columns may end sooner than a normal one, or later: inside a cluster, above zero, at the end of a
scale. So what lies beyond an *anchor* A is drawn in to it by a factor c: the truth is v where the
method says :math:`y = A + c (v - A)`. The anchor is the limit of the cell or, where other cells of
the column were seen beyond that limit, the outermost of them: what was seen needs no shrinkage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtri

from declip import truncated
from declip.censoring import left_censored, ranged, right_censored

__all__ = ["CensoredMixture"]

_NEWTON_STEPS = 10  # of a quantile
_REACH = 12.0  # standard deviations in which quantiles are looked for,
_INSIDE = 0.99  # beginning within so much of them
_ALL_ABOVE = -37.0  # in standard units: nothing lies below, and erfcx is still a number


@dataclass(frozen=True, eq=False)
class CensoredMixture:
    """Predictive distributions of n cells; floors are mirrored, so that every limit is below.

    Attributes
    ----------
    sign : ndarray of shape (n,)
        1 for a ceiling, -1 for a floor.
    limit, far, anchor : ndarray of shape (n,)
        Where the interval begins and ends, and from where on values are drawn in, times ``sign``.
    weight : ndarray of shape (K,)
        Of the components.
    centre, spread : ndarray of shape (K, n)
        The components, times ``sign``.
    log_shrinkage : ndarray of shape (K, n) or (K, 1)
        Log c of each.
    """

    sign: NDArray[np.float64]
    limit: NDArray[np.float64]
    far: NDArray[np.float64]
    anchor: NDArray[np.float64]
    weight: NDArray[np.float64]
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    log_shrinkage: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        lower: NDArray,
        upper: NDArray,
        reach: NDArray,
        centre: NDArray,
        spread: NDArray,
    ) -> CensoredMixture:
        """Return the distributions of cells known to lie in [lower, upper].

        A range is seen from its end that is nearer to the centre, and is never drawn in. ``reach``
        is how far the exact cells of the column go, at its low and high end (see `ColumnEnds`).
        """
        sign, in_range = np.where(left_censored(lower), -1.0, 1.0), ranged(lower, upper)
        sign[in_range & (centre.mean(axis=0) > 0.5 * (lower + upper))] = -1.0
        near, far = np.where(sign > 0, lower, -upper), np.where(sign > 0, upper, -lower)
        anchor = np.maximum(near, np.where(sign > 0, reach[1], reach[0]))
        anchor = np.where(in_range, far, anchor)
        weight = np.full(len(centre), 1 / len(centre))
        return cls(
            sign, near, far, anchor, weight, sign * centre, spread, np.zeros((len(centre), 1))
        )

    @classmethod
    def pooled(
        cls, members: Sequence[CensoredMixture], weights: Sequence[float] | NDArray
    ) -> CensoredMixture:
        """Return the weighted mixture of distributions of the same cells."""
        shrinkage = [np.broadcast_to(m.log_shrinkage, m.centre.shape) for m in members]
        weight = [w * m.weight for m, w in zip(members, weights, strict=True)]
        return replace(
            members[0],
            weight=np.concatenate(weight),
            centre=np.concatenate([m.centre for m in members]),
            spread=np.concatenate([m.spread for m in members]),
            log_shrinkage=np.concatenate(shrinkage),
        )

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.limit)

    def take(self, which: NDArray | slice) -> CensoredMixture:
        """Return some of the cells."""
        one = {n: getattr(self, n)[which] for n in ("sign", "limit", "far", "anchor")}
        two = {n: getattr(self, n)[:, which] for n in ("centre", "spread")}
        shrinkage = np.broadcast_to(self.log_shrinkage, self.centre.shape)[:, which]
        return replace(self, **one, **two, log_shrinkage=shrinkage)

    def within(self, low: NDArray, high: NDArray) -> CensoredMixture:
        """Return the distributions of cells that are also known to lie between bounds."""
        bound = np.where(self.sign > 0, high, -low)
        far = np.maximum(np.minimum(self.far, bound), self.limit)
        return replace(self, far=far, anchor=np.minimum(self.anchor, far))

    def shrunk(self, log_shrinkage: NDArray) -> CensoredMixture:
        """Return the distributions with another shrinkage, of shape (n,) or (K, n)."""
        made = replace(self, log_shrinkage=np.atleast_2d(log_shrinkage))
        if right_censored(self.far).all():  # then the mass beyond the limit does not depend on it
            made.__dict__["_log_whole"] = self._log_whole
        return made

    def spread_over(self, nodes: Sequence[tuple[float, float]], sd: NDArray) -> CensoredMixture:
        """Return the mixture over an uncertain log c, by nodes (in ``sd``) and their weights."""
        return CensoredMixture.pooled(
            [replace(self, log_shrinkage=self.log_shrinkage + z * sd) for z, _ in nodes],
            [w for _, w in nodes],
        )

    def log_survival(self, values: NDArray) -> NDArray[np.float64]:
        """Return the log-probability of lying beyond values, which are times ``sign``."""
        end = self._standard(self._stretched(self.far))
        beyond = _log_mass(self._standard(self._stretched(values)), end)
        return self._mixed(beyond - self._log_whole)

    def log_density(self, values: NDArray) -> NDArray[np.float64]:
        """Return the logarithm of the density at values within the interval, times ``sign``."""
        z = self._standard(self._stretched(values))
        jacobian = np.where(values >= self.anchor, self.log_shrinkage, 0.0)
        log_normal = -0.5 * z**2 - np.log(np.sqrt(2 * np.pi) * self.spread) + jacobian
        return self._mixed(log_normal - self._log_whole)

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean of the distance from the limit, and that of its square."""
        low, middle, end = (
            self._standard(at) for at in (self.limit, self.anchor, self._stretched(self.far))
        )
        tail = np.exp(np.minimum(_log_mass(middle, end) - self._log_whole, 0.0))
        body_mean, body_square = self._partial(low, middle, self.limit)
        tail_mean, tail_square = self._partial(middle, end, self.anchor)
        shrunk, gap = np.exp(-self.log_shrinkage), self.anchor - self.limit
        mean = (1 - tail) * body_mean + tail * (gap + shrunk * tail_mean)
        square = (1 - tail) * body_square + tail * (
            gap**2 + 2 * gap * shrunk * tail_mean + shrunk**2 * tail_square
        )
        return self.weight @ mean, self.weight @ square

    def quantile(
        self,
        survival: float,
        moments: tuple[NDArray, NDArray] | None = None,
        steps: int = _NEWTON_STEPS,
    ) -> NDArray[np.float64]:
        """Return the values (times ``sign``) that the truth lies beyond with this probability.

        By steps of Newton on the log-survival, kept within a bracket, from the quantile of a gamma
        distribution with the same `moments` (to be given if they are known).
        """
        mean, square = self.moments() if moments is None else moments
        wanted = np.log(survival)
        low, high = self.limit, np.minimum(self.limit + mean + _REACH * np.sqrt(square), self.far)
        first = self.limit + _gamma_quantile(mean, square, survival)
        value = np.clip(first, low, low + _INSIDE * (high - low))
        for _ in range(steps):
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                log_survival, hazard = self._survival_and_hazard(value)
                step = value + (log_survival - wanted) / hazard
            beyond = log_survival > wanted
            low, high = np.where(beyond, value, low), np.where(beyond, high, value)
            value = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        return value

    def _survival_and_hazard(self, values: NDArray) -> tuple[NDArray, NDArray]:
        """Return the log-survival at values, and minus its derivative."""
        if not right_censored(self.far).all():
            log_survival = self.log_survival(values)
            return log_survival, np.exp(self.log_density(values) - log_survival)
        # Q(z) = exp(-z^2 / 2) erfcx(z / sqrt 2) / 2, relative to that at the limit
        limit, tail = self._tail_at_limit
        z = np.maximum(self._standard(self._stretched(values)), _ALL_ABOVE)
        decay = np.exp(0.5 * (limit - z) * (limit + z)) / tail
        survival = np.maximum(self.weight @ (decay * erfcx(np.sqrt(0.5) * z)), 1e-300)
        decay *= np.where(values >= self.anchor, self._shrinkage, 1.0) / self.spread
        return np.log(survival), np.sqrt(2 / np.pi) * (self.weight @ decay) / survival

    def at_survival(self, log_survival: NDArray) -> NDArray[np.float64]:
        """Return the values (times ``sign``) that the first component exceeds with probabilities.

        That of a distribution with one component is its quantile, without a search.
        """
        end = self._standard(self._stretched(self.far))[0]
        low = self._standard(self.limit)[0]
        y = self.centre[0] + self.spread[0] * truncated.quantile(
            low, np.maximum(low, end), log_survival
        )
        shrunk = np.exp(-np.broadcast_to(self.log_shrinkage, self.centre.shape)[0])
        value = np.where(y > self.anchor, self.anchor + shrunk * (y - self.anchor), y)
        return np.clip(value, self.limit, self.far)

    def in_blocks(
        self, answer: Callable[..., NDArray], *of_cells: NDArray, most: int = 1 << 18
    ) -> NDArray:
        """Return an answer, of shape (..., n), put together from blocks of cells.

        It is asked with the distributions of a block and what else is known of its cells.
        """
        size = max(1, most // len(self.weight))
        blocks = [slice(i, i + size) for i in range(0, len(self), size)] or [slice(None)]
        parts = [answer(self.take(b), *(part[b] for part in of_cells)) for b in blocks]
        return np.concatenate(parts, axis=-1)

    @cached_property
    def _shrinkage(self) -> NDArray[np.float64]:
        return np.exp(self.log_shrinkage)

    @cached_property
    def _tail_at_limit(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The limit in standard units of the components, and its scaled tail probability."""
        z = np.maximum(self._standard(self.limit), _ALL_ABOVE)
        return z, erfcx(np.sqrt(0.5) * z)

    @cached_property
    def _log_whole(self) -> NDArray[np.float64]:
        """The log-probability that each component gives to the interval."""
        end = self._standard(self._stretched(self.far))
        return _log_mass(self._standard(self.limit), end)

    def _partial(
        self, a: NDArray, b: NDArray, about: NDArray
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean and the mean square of y - about for y between two standard ends."""
        mean, variance = truncated.moments(a, np.maximum(a, b))
        shift = self.spread * np.where(np.isfinite(mean), mean, a) + self.centre - about
        shift = np.maximum(shift, 0.0)
        return shift, shift**2 + self.spread**2 * np.clip(variance, 0.0, 1.0)

    def _stretched(self, values: NDArray) -> NDArray[np.float64]:
        """Return where the method sees values of the truth: y = A + c (v - A) beyond A."""
        beyond = np.maximum(values - self.anchor, 0.0)
        with np.errstate(invalid="ignore"):
            return np.where(
                np.isinf(values),
                values,
                np.minimum(values, self.anchor) + self._shrinkage * beyond,
            )

    def _standard(self, y: NDArray) -> NDArray[np.float64]:
        return (y - self.centre) / self.spread

    def _mixed(self, logs: NDArray) -> NDArray[np.float64]:
        """Return the logarithm of the weighted mean of exponentials over the components."""
        top = np.maximum(logs.max(axis=0), np.finfo(np.float64).min)
        return top + np.log(np.maximum(self.weight @ np.exp(logs - top), 1e-300))


def _gamma_quantile(mean: NDArray, square: NDArray, survival: float) -> NDArray[np.float64]:
    """Return about what a gamma variate of these moments exceeds so often (Wilson, Hilferty)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ninth = np.maximum(square / mean**2 - 1, 0.0) / 9  # of its squared coefficient of variation
    return mean * np.maximum(1 - ninth - ndtri(survival) * np.sqrt(ninth), 0.0) ** 3


def _log_mass(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Return log P(a < Z < b) of standard normal noise."""
    return log_ndtr(-a) if right_censored(b).all() else truncated.log_mass(a, np.maximum(a, b))
