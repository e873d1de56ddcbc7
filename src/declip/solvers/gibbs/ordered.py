r"""Factors of an ordered side, drawn with what they follow: a walk and seasons.

With :math:`F_a \sim N(0, (I + \Sigma_a) / \lambda_a)` for each factor a, and S its smooth part,

- the strengths of :math:`\Sigma_a` are drawn from a grid, with :math:`\lambda_a` and S integrated
  out;
- :math:`\lambda_a` given these, S integrated out;
- :math:`S_a` given :math:`F_a`: normal about :math:`N_a F_a` with covariance :math:`N_a /
  \lambda_a`, for :math:`N_a = \Sigma_a (I + \Sigma_a)^{-1}`.

A row of F is then drawn as any other, from the normal prior about its row of S.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from declip.ordering import Course
from declip.solvers.gibbs.priors import Gaussian

__all__ = ["PRECISION_RATE", "PRECISION_SHAPE", "draw_ordered"]

# Gamma prior of the precision of a factor, of mean 1000: one that the table does not need goes to
# nothing. A mean as small as the rank keeps all of them, which follow the noise: days that sold out
# by chance then pass for days of high demand.
PRECISION_SHAPE, PRECISION_RATE = 2.0, 0.002


@dataclass(frozen=True, eq=False)
class _Grid:
    """Courses of all strengths, with what is asked of their covariances again and again.

    Attributes
    ----------
    precisions : ndarray of shape (n_courses, n, n)
        (I + Sigma)^-1 of each.
    log_dets : ndarray of shape (n_courses,)
        Logs of their determinants.
    variances : ndarray of shape (n_courses,)
        Mean variance of a row, in units of that about the smooth part.
    roots : dict
        By course, R with R R^T = N = I - (I + Sigma)^-1, where one was asked for.
    """

    precisions: NDArray[np.float64]
    log_dets: NDArray[np.float64]
    variances: NDArray[np.float64]
    roots: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    @lru_cache(maxsize=2)
    def of(cls, course: Course, n: int) -> _Grid:
        """Return the grid of n steps."""
        priors = [tried.prior(n) for tried in course.candidates(n)]
        precisions = np.array([np.eye(n) - prior.smoother for prior in priors])
        variances = np.array([1 + np.trace(prior.covariance) / n for prior in priors])
        return cls(precisions, np.linalg.slogdet(precisions)[1], variances)

    def squares(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return f^T (I + Sigma)^-1 f of every course and every factor."""
        n, d = F.shape
        weighed = (self.precisions.reshape(-1, n) @ F).reshape(-1, n, d)
        return np.asarray(np.einsum("gta,ta->ga", weighed, F), np.float64)

    def smooth(
        self, which: int, f: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return N f + R noise."""
        precision = self.precisions[which]
        if which not in self.roots:
            values, V = np.linalg.eigh(np.eye(len(f)) - precision)
            self.roots[which] = V * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(f - precision @ f + self.roots[which] @ noise, np.float64)


def draw_ordered(
    course: Course, F: NDArray[np.float64], fixed: bool, rng: np.random.Generator
) -> tuple[Gaussian, Gaussian]:
    """Draw the prior of each row of F, and return that of a row at no place in the order too.

    Parameters
    ----------
    course : Course
        Of which order; its strengths are drawn.
    F : ndarray of shape (n, d)
        The factors.
    fixed : bool
        Whether the precision of every factor is 1; else it is drawn under a gamma prior.
    rng : Generator
        Source of the draws.
    """
    (n, d), grid = F.shape, _Grid.of(course, len(F))
    squares = grid.squares(F)
    shape, rate = PRECISION_SHAPE + 0.5 * n, PRECISION_RATE + 0.5 * squares
    fit = -0.5 * squares if fixed else -shape * np.log(rate)
    chance = softmax(fit + 0.5 * grid.log_dets[:, None], axis=0).cumsum(axis=0)
    which = np.minimum((chance < rng.random(d)).sum(axis=0), len(chance) - 1)
    drawn = rng.standard_gamma(shape, d)
    precision = np.ones(d) if fixed else drawn / rate[which, np.arange(d)]
    noise = rng.standard_normal((n, d)) / np.sqrt(precision)
    S = np.column_stack([grid.smooth(int(w), F[:, a], noise[:, a]) for a, w in enumerate(which)])
    elsewhere = Gaussian(np.diag(precision / grid.variances[which]), np.zeros(d))
    return Gaussian(np.diag(precision), S * precision), elsewhere
