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

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from declip.ordering import Course, OrderedPrior
from declip.solvers.gibbs.priors import RELEVANCE_SHAPE, Gaussian

__all__ = ["draw_ordered"]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A course, with what is asked of its covariance again and again."""

    prior: OrderedPrior

    @cached_property
    def precision(self) -> tuple[NDArray[np.float64], float]:
        """(I + Sigma)^-1 and the log of its determinant."""
        found = np.eye(len(self.prior.covariance)) - self.prior.smoother
        return found, float(np.linalg.slogdet(found)[1])

    @cached_property
    def root(self) -> NDArray[np.float64]:
        """R with R R^T = N."""
        values, V = np.linalg.eigh(self.prior.smoother)
        return V * np.sqrt(np.maximum(values, 0.0))

    @property
    def variance(self) -> float:
        """Mean variance of a row, in units of that about the smooth part."""
        return 1.0 + float(np.trace(self.prior.covariance)) / len(self.prior.covariance)


@lru_cache(maxsize=4)
def _grid(course: Course, n: int) -> tuple[_Candidate, ...]:
    return tuple(_Candidate(tried.prior(n)) for tried in course.candidates(n))


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
    (n, d), grid = F.shape, _grid(course, len(F))
    squares = np.array([np.sum(F * (tried.precision[0] @ F), axis=0) for tried in grid])
    shape, rate = RELEVANCE_SHAPE + 0.5 * n, RELEVANCE_SHAPE / d + 0.5 * squares
    fit = -0.5 * squares if fixed else -shape * np.log(rate)
    chance = softmax(fit + 0.5 * np.array([[tried.precision[1]] for tried in grid]), axis=0)
    which = [int(rng.choice(len(grid), p=chance[:, a])) for a in range(d)]
    drawn = rng.standard_gamma(shape, d)
    precision = np.ones(d) if fixed else drawn / rate[which, range(d)]
    noise = rng.standard_normal((n, d)) / np.sqrt(precision)
    chosen = [grid[w] for w in which]
    S = np.column_stack(
        [c.prior.pulled(F[:, a]) + c.root @ noise[:, a] for a, c in enumerate(chosen)]
    )
    far = np.array([c.variance for c in chosen])
    return Gaussian(np.diag(precision), S * precision), Gaussian(
        np.diag(precision / far), np.zeros(d)
    )
