r"""Rows or columns that follow each other in time: factors that drift, and seasons.

The factors F of an ordered side are not independent from one step to the next. Their prior is

.. math:: F_{ta} = s_{ta} + e_{ta}, \qquad s \sim N(0, \Sigma), \quad e \sim N(0, I)

up to their scale, where :math:`\Sigma = L + v_w W + v_s S` adds up a level, a random
walk of first or second order (W) and Fourier seasons (S). So :math:`F \sim N(0, I + \Sigma)`, and
:math:`K = (I + \Sigma)^{-1}` couples the steps in a ridge (see `declip.penalties.FactorPrior`). Two
strengths are estimated: how far the walk goes, and how large the seasons are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["Course", "OrderedPrior"]

_LEVEL = 1.0  # variance of what all steps have in common, over that of a single step
_STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # mean variance of a part, over the same
_MOST_HARMONICS = 6


@dataclass(frozen=True, eq=False)
class OrderedPrior:
    """The penalty K = (I + Sigma)^-1 on the factors of an ordered side; a `FactorPrior`.

    Attributes
    ----------
    covariance : ndarray of shape (n, n)
        Sigma, of which I + Sigma is the covariance of the factors.
    """

    covariance: NDArray[np.float64]
    strength: None = None

    @cached_property
    def smoother(self) -> NDArray[np.float64]:
        """N = Sigma (I + Sigma)^-1: what is expected of the smooth part, given the factors."""
        whole = np.eye(len(self.covariance)) + self.covariance
        found = np.linalg.solve(whole, self.covariance)
        return np.asarray(0.5 * (found + found.T), np.float64)

    def pulled(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return N F."""
        return np.asarray(self.smoother @ F, np.float64)

    def spread(self, seen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the variance of the factors of each step, given those of the other seen steps.

        That of a single step, on its own, is 1.
        """
        whole = np.eye(len(seen)) + self.covariance
        precision = np.linalg.inv(whole[np.ix_(seen, seen)])
        ahead = whole[np.ix_(~seen, seen)]
        found = np.diag(whole).copy()
        found[seen] = 1 / np.diag(precision)
        found[~seen] -= np.einsum("ts,su,tu->t", ahead, precision, ahead)
        return found

    def following(self, F: NDArray) -> NDArray[np.float64]:
        """Return what the factors of the first steps say of those that follow."""
        n = len(F)
        known = np.eye(n) + self.covariance[:n, :n]
        return np.asarray(self.covariance[n:, :n] @ np.linalg.solve(known, F), np.float64)


@dataclass(frozen=True)
class Course:
    """How the rows or the columns of a table follow each other, one step apart.

    Attributes
    ----------
    axis : {"rows", "columns"}
        Which of them.
    smooth : {0, 1, 2}
        Order of the random walk: 1 goes on where it was, 2 as it went; 0 for none.
    periods : tuple of float
        Lengths of the seasons, in steps.
    drift, season : float
        Variance of the walk a step, and of the seasons, over that of a single step.

    Examples
    --------
    >>> from declip.ordering import Course
    >>> course = Course("columns", smooth=1, periods=(7,), drift=0.5)
    >>> course.covariance(3) - course.covariance(3)[0, 0]
    array([[0. , 0. , 0. ],
           [0. , 0.5, 0.5],
           [0. , 0.5, 1. ]])
    """

    axis: str
    smooth: int = 1
    periods: tuple[float, ...] = ()
    drift: float = 0.0
    season: float = 0.0

    def covariance(self, n: int) -> NDArray[np.float64]:
        """Return Sigma of n steps."""
        level = np.full((n, n), _LEVEL)
        return level + self.drift * self._walk(n) + self.season * self._seasons(n)

    def prior(self, n: int) -> OrderedPrior:
        """Return the penalty on the factors of n steps."""
        return OrderedPrior(self.covariance(n))

    def candidates(self, n: int) -> list[Course]:
        """Return courses of various strengths, from none to far more than a single step varies."""
        spread = float(np.trace(self._walk(n))) / n or 1.0
        drifts = _STRENGTHS if self.smooth else (0.0,)
        seasons = _STRENGTHS if self.periods else (0.0,)
        return [replace(self, drift=w / spread, season=s) for w, s in product(drifts, seasons)]

    def estimated(self, F: NDArray[np.float64]) -> Course:
        """Return the course that is the likeliest for these factors, which share one scale."""
        tried = self.candidates(len(F))
        return tried[int(np.argmax([_log_likelihood(c.prior(len(F)), F) for c in tried]))]

    def _walk(self, n: int) -> NDArray[np.float64]:
        """Return the covariance of a walk that starts at 0 and whose steps have variance 1."""
        t = np.arange(n, dtype=np.float64)
        near, far = np.minimum.outer(t, t), np.maximum.outer(t, t)
        if self.smooth == 2:  # the sum of such walks: sum over s < near of (near - s) (far - s)
            return near * (near + 1) * (3 * far - near + 1) / 6
        return near if self.smooth == 1 else np.zeros((n, n))

    def _seasons(self, n: int) -> NDArray[np.float64]:
        """Return the covariance of seasons of variance 1, the same for all their harmonics."""
        lag, found = np.subtract.outer(np.arange(n), np.arange(n)), np.zeros((n, n))
        for period in self.periods:
            waves = np.arange(1, max(1, min(int(period / 2), _MOST_HARMONICS)) + 1)
            found += np.cos(2 * np.pi * np.multiply.outer(lag, waves) / period).mean(axis=2)
        return found


def _log_likelihood(prior: OrderedPrior, F: NDArray[np.float64]) -> float:
    """Return the log likelihood of factors, their scale being the one that fits best."""
    whole = np.eye(len(F)) + prior.covariance
    square = float(np.vdot(F, np.linalg.solve(whole, F)))
    log_scale = np.log(square) if square > 0 else 0.0
    return -0.5 * F.shape[1] * float(np.linalg.slogdet(whole)[1] + len(F) * log_scale)
