r"""What lies beyond a limit: the law of a clipped cell, with a tail that evidence can change.

A method predicts a cell by a normal law, :math:`N(x, s^2)`. Given that the cell is beyond its
limit, its survival function is :math:`S(z) = P(Z > z | Z \ge limit)`. Real columns have heavier or
lighter tails, so the law used is :math:`S(z)^h`, with a *hazard* h that is one if the normal tail
is right, smaller for a heavier and larger for a lighter one. If h is right, :math:`-h \log S(Z)` is
a standard exponential variable: from cells whose truth is known, or known to lie beyond a point,
the best h is their number divided by a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

__all__ = ["Tails"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS
_CERTAIN = 7.0  # standard deviations below the centre, from which on S is 1 in double precision
_BLOCK = 2**15  # cells that are integrated at a time


@dataclass(frozen=True, eq=False)
class Tails:
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
    hazard : ndarray
        The exponent h of the survival function.
    """

    sign: NDArray[np.float64]
    limit: NDArray[np.float64]
    far: NDArray[np.float64]
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    hazard: NDArray[np.float64]

    @classmethod
    def of(cls, lower: NDArray, upper: NDArray, centre: NDArray, spread: NDArray) -> Tails:
        """Return the laws of cells known to lie in [lower, upper], with normal tails.

        A range is seen from its end that is nearer to the centre.
        """
        sign = np.where(np.isneginf(lower), -1.0, 1.0)
        ranged = np.isfinite(lower) & np.isfinite(upper)
        sign[ranged & (centre > 0.5 * (lower + upper))] = -1.0
        near, far = np.where(sign > 0, lower, -upper), np.where(sign > 0, upper, -lower)
        return cls(sign, near, far, sign * centre, spread, np.ones(len(sign)))

    def no_further(self, low: NDArray, high: NDArray) -> Tails:
        """Return the laws of cells that are also known to lie between bounds."""
        bound = np.where(self.sign > 0, high, -low)
        return replace(self, far=np.maximum(np.minimum(self.far, bound), self.limit))

    def with_hazard(self, hazard: NDArray | float) -> Tails:
        """Return the laws with other tails."""
        return replace(self, hazard=np.broadcast_to(np.float64(hazard), self.sign.shape))

    def surprise(self, values: NDArray) -> NDArray[np.float64]:
        """Return -log S at values beyond the limit: exponential with rate h if the law is right."""
        return -self._log_survival(self.sign * values)

    def log_density(self, values: NDArray) -> NDArray[np.float64]:
        """Return the logarithm of the density at values beyond the limit."""
        z = (self.sign * values - self.centre) / self.spread
        # d/dz of -S^h: h S^(h - 1) times the density of the truncated normal law
        normal = -0.5 * z**2 - np.log(np.sqrt(2 * np.pi) * self.spread) - self._log_mass()
        with np.errstate(invalid="ignore"):  # 0 times infinity, at the far end of a range
            bent = np.nan_to_num((self.hazard - 1) * self.surprise(values), posinf=np.inf)
        return np.log(self.hazard) - bent + normal

    def mean(self, cap: NDArray | None = None) -> NDArray[np.float64]:
        """Return the expected value, or that of the value cut off at ``cap``."""
        end = self.far if cap is None else np.minimum(self.far, self.sign * cap)
        out = np.empty(len(self.sign))
        for start in range(0, len(out), _BLOCK):
            part = slice(start, start + _BLOCK)
            out[part] = self._part(part)._mean_up_to(end[part])
        return self.sign * out

    def quantile(self, log_survival: float | NDArray) -> NDArray[np.float64]:
        """Return the value beyond which the truth lies with probability exp(log_survival)."""
        tail = self._log_mass() + log_survival / self.hazard
        if np.isfinite(self.far).any():
            tail = np.logaddexp(tail, log_ndtr((self.centre - self.far) / self.spread))
        z = self.centre - self.spread * ndtri_exp(np.minimum(tail, 0.0))
        return self.sign * np.clip(z, self.limit, self.far)

    def _part(self, part: slice) -> Tails:
        return Tails(*(getattr(self, name)[part] for name in self.__dataclass_fields__))

    def _log_mass(self) -> NDArray[np.float64]:
        return self._log_between(self.limit, self.centre, self.spread, self.far)

    def _log_survival(self, z: NDArray) -> NDArray[np.float64]:
        args = self.centre, self.spread, self.far
        return self._log_between(np.maximum(z, self.limit), *args) - self._log_mass()

    @staticmethod
    def _log_between(
        z: NDArray, centre: NDArray, spread: NDArray, far: NDArray
    ) -> NDArray[np.float64]:
        """Return log P(z < Z < far)."""
        tail = log_ndtr((centre - z) / spread)
        if not np.isfinite(far).any():
            return tail
        beyond = np.minimum(log_ndtr((centre - far) / spread) - tail, 0.0)
        # no mass at all in double precision: as if it all lay at the far end
        return tail + np.log(np.maximum(-np.expm1(beyond), np.finfo(np.float64).tiny))

    def _mean_up_to(self, end: NDArray) -> NDArray[np.float64]:
        """Return limit + the integral of S^h from the limit to ``end``, by Gauss-Legendre nodes."""
        start = np.clip(self.centre - _CERTAIN * self.spread, self.limit, end)  # S is 1 up to here
        steep = np.maximum((start - self.centre) / self.spread, 1.0) * np.maximum(self.hazard, 0.1)
        width = np.where(start > self.limit, _CERTAIN, 2.0 / np.minimum(steep, 1e8)) * self.spread
        room = end - start
        width = np.minimum(width, room)
        with np.errstate(invalid="ignore"):
            bend = np.where(np.isinf(room), 1.0, 1 - width / np.where(room > 0, room, 1.0))
        # z(t) = start + width t / (1 - bend t) runs from start to end
        t = _NODES[:, None]
        z = start + width * t / (1 - bend * t)
        args = self.centre, self.spread, self.far
        survival = np.exp(self.hazard * (self._log_between(z, *args) - self._log_mass()))
        area = width * np.sum(_WEIGHTS[:, None] * survival / (1 - bend * t) ** 2, axis=0)
        return start + area
