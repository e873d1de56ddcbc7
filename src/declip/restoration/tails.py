r"""What lies beyond a limit: the law of a clipped cell, drawn in where evidence asks for it.

A method predicts a cell by a normal law, :math:`N(x, s^2)`, of which the part beyond the limit L is
left. Real columns may end sooner: inside a cluster, above zero, at the end of a scale. So distances
from the limit are divided by a *pull* c, which is one if the law is right. That is again a normal
law beyond L, with mean :math:`L + (x - L) / c` and standard deviation :math:`s / c`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from declip import truncated

__all__ = ["TruncatedNormal"]


@dataclass(frozen=True, eq=False)
class TruncatedNormal:
    """The laws of cells beyond their limits; floors are mirrored, so that every limit is below.

    Attributes
    ----------
    sign : ndarray
        1 for a ceiling, -1 for a floor.
    limit : ndarray
        The limit, times ``sign``.
    far : ndarray
        Where the interval ends, times ``sign``: infinity but for ranges.
    centre, spread : ndarray
        The normal law of the cell, times ``sign``.
    """

    sign: NDArray[np.float64]
    limit: NDArray[np.float64]
    far: NDArray[np.float64]
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]

    @classmethod
    def of(
        cls, lower: NDArray, upper: NDArray, centre: NDArray, spread: NDArray
    ) -> TruncatedNormal:
        """Return the laws of cells known to lie in [lower, upper].

        A range is seen from its end that is nearer to the centre.
        """
        sign = np.where(np.isneginf(lower), -1.0, 1.0)
        ranged = np.isfinite(lower) & np.isfinite(upper)
        sign[ranged & (centre > 0.5 * (lower + upper))] = -1.0
        near, far = np.where(sign > 0, lower, -upper), np.where(sign > 0, upper, -lower)
        return cls(sign, near, far, sign * centre, spread)

    def no_further(self, low: NDArray, high: NDArray) -> TruncatedNormal:
        """Return the laws of cells that are also known to lie between bounds."""
        bound = np.where(self.sign > 0, high, -low)
        return replace(self, far=np.maximum(np.minimum(self.far, bound), self.limit))

    def pulled(self, pull: NDArray) -> TruncatedNormal:
        """Return the laws with distances from the limit divided by ``pull``; ranges stay."""
        pull = np.where(np.isinf(self.far), pull, 1.0)
        centre = self.limit + (self.centre - self.limit) / pull
        return replace(self, centre=centre, spread=self.spread / pull)

    def surprise(self, values: NDArray) -> NDArray[np.float64]:
        """Return -log P(beyond the value) at values: standard exponential if the law is right."""
        return self._log_mass() - self._log_beyond(np.maximum(self.sign * values, self.limit))

    def log_density(self, values: NDArray) -> NDArray[np.float64]:
        """Return the logarithm of the density at values beyond the limit."""
        z = (self.sign * values - self.centre) / self.spread
        return -0.5 * z**2 - np.log(np.sqrt(2 * np.pi) * self.spread) - self._log_mass()

    def mean(self, cap: NDArray | None = None) -> NDArray[np.float64]:
        """Return the expected value, or that of the value cut off at ``cap``."""
        end = self.far if cap is None else np.minimum(self.far, self.sign * cap)
        end = np.maximum(end, self.limit)
        mean = truncated.moments(self._standard(self.limit), self._standard(end))[0]
        below = np.clip(self.centre + self.spread * mean, self.limit, end)
        if cap is None:
            return self.sign * below
        cut = np.exp(self._log_beyond(end) - self._log_mass())  # the share that is cut off
        shift = np.multiply(cut, end - below, where=cut > 0, out=np.zeros_like(below))
        return self.sign * (below + shift)

    def quantile(self, log_survival: float | NDArray) -> NDArray[np.float64]:
        """Return the value beyond which the truth lies with probability exp(log_survival)."""
        near, far = self._standard(self.limit), self._standard(self.far)
        z = self.centre + self.spread * truncated.quantile(near, far, log_survival)
        return self.sign * np.clip(z, self.limit, self.far)

    def _log_mass(self) -> NDArray[np.float64]:
        return self._log_beyond(self.limit)

    def _log_beyond(self, z: NDArray) -> NDArray[np.float64]:
        """Return log P(z < Z < far) of the normal law."""
        return truncated.log_mass(self._standard(z), self._standard(self.far))

    def _standard(self, z: NDArray) -> NDArray[np.float64]:
        return (z - self.centre) / self.spread
