r"""What is known besides the cells, in the sampler.

The factors of a row are normal about :math:`W^T f_i` for its features, and a row of W about 0 with
the same covariance over a strength :math:`\rho_f \sim \Gamma(1, 1)`: all conjugate. The offsets of
groups are :math:`N(0, v)` with :math:`v \sim IG(1, 1/10)`, one v for all, in units in which columns
have a spread of about 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.solvers.gibbs.priors import NOISE_RATE, NOISE_SHAPE, OFFSET_PRECISION, Gaussian
from declip.solvers.gibbs.units import Units
from declip.solvers.groups import GroupedCells

__all__ = ["GroupDraws", "KnownSides", "Regression", "known_noise"]

_STRENGTH_SHAPE, _STRENGTH_RATE = 1.0, 1.0  # of the gamma prior of rho
_GROUP_VARIANCE = 0.5  # to begin with

Floats = NDArray[np.float64]
Pair = tuple[NDArray, NDArray]


class KnownSides(NamedTuple):
    """Features of rows and of columns as numbers, and the groups of rows."""

    row_features: Floats | None = None
    col_features: Floats | None = None
    groups: NDArray[np.int32] | None = None
    n_groups: int = 0


@dataclass(frozen=True, eq=False)
class Regression:
    """Coefficients of the factors of a side on its features.

    Attributes
    ----------
    coefficients : ndarray of shape (n_features, k)
        The coefficients W.
    strength : ndarray of shape (n_features,)
        The precision of those of each feature, as a multiple of that of the factors.
    """

    coefficients: Floats
    strength: Floats

    @classmethod
    def start(cls, features: Floats | None, width: int) -> Regression | None:
        """Begin with none of them at work."""
        if features is None:
            return None
        return cls(np.zeros((features.shape[1], width)), np.ones(features.shape[1]))

    @property
    def as_rows(self) -> Floats:
        """The coefficients as so many more rows of factors about 0."""
        return np.sqrt(self.strength)[:, None] * self.coefficients

    def draw(
        self, F: Floats, features: Floats, prior: Gaussian, rng: np.random.Generator
    ) -> Regression:
        """Draw coefficients given the factors F and their prior, then strengths."""
        L, (f, k) = prior.precision, self.coefficients.shape
        mean = np.linalg.solve(L, prior.information)
        C = np.linalg.cholesky(features.T @ features + np.diag(self.strength))
        # W ~ N((X^T X + rho)^-1 X^T (F - mean), (X^T X + rho)^-1 (x) L^-1)
        half = np.linalg.solve(C, features.T @ (F - mean))
        noise = np.linalg.solve(np.linalg.cholesky(L).T, rng.standard_normal((k, f))).T
        W = np.linalg.solve(C.T, half + noise)
        rate = _STRENGTH_RATE + 0.5 * np.einsum("fa,ab,fb->f", W, L, W)
        return Regression(W, rng.standard_gamma(_STRENGTH_SHAPE + 0.5 * k, f) / rate)

    def about(self, features: Floats, prior: Gaussian) -> Gaussian:
        """Return the prior of each row: about what its features say."""
        pulled = features @ self.coefficients @ prior.precision
        return Gaussian(prior.precision, prior.information + pulled)


@dataclass(frozen=True, eq=False)
class GroupDraws:
    """Offsets of groups of rows in each column, and their variance."""

    offsets: Floats
    variance: float = _GROUP_VARIANCE

    def draw(
        self, grouped: GroupedCells, residuals: Pair, precisions: Pair, rng: np.random.Generator
    ) -> GroupDraws:
        """Draw offsets given the cells less all else, of these precisions; then their variance."""
        exact, censored = (r * p for r, p in zip(residuals, precisions, strict=True))
        variance = 1 / (grouped.sums(*precisions) + 1 / self.variance)
        mean = variance * grouped.sums(exact, censored)
        offsets = mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
        offsets[-1] = 0
        rate = NOISE_RATE + 0.5 * float(np.vdot(offsets, offsets))
        shape = NOISE_SHAPE + 0.5 * offsets[:-1].size
        return GroupDraws(offsets, rate / rng.standard_gamma(shape))

    def levelled(self, col_offset: Floats, rng: np.random.Generator) -> tuple[GroupDraws, Floats]:
        """Draw what offsets of groups and of columns share anew, their sum being as it is."""
        n = len(self.offsets) - 1
        total = self.offsets[:-1] + col_offset
        precision = n / self.variance + OFFSET_PRECISION
        drawn = total.sum(0) / self.variance / precision
        drawn = drawn + rng.standard_normal(len(drawn)) / np.sqrt(precision)
        offsets = np.vstack([total - drawn, np.zeros_like(drawn)])
        return replace(self, offsets=offsets), drawn


def known_noise(cells: Intervals, units: Units) -> tuple[Intervals, Floats]:
    """Return standardised cells with precisions as weights relative to that of their column.

    The weights of ``cells`` are their precisions in the units of the table. That of a column, of
    cells whose error is not known, is that of its mean variance.
    """
    cols, weights = cells.triplets()[1], cells.by_row.weights
    if weights is None:
        raise ValueError("the errors of cells are not known")
    precision = np.concatenate(weights).astype(np.float64) * units.scale[cols] ** 2
    n, n_cols = cells.n_exact, cells.shape[1]
    count = np.bincount(cols, minlength=n_cols)
    variance = np.bincount(cols, 1 / precision, n_cols)
    of_cols = np.where(count > 0, count, 1) / np.where(count > 0, variance, 1.0)
    relative = precision / of_cols[cols]
    side = replace(cells.by_row, weights=(relative[:n].copy(), relative[n:].copy()))
    return replace(cells, by_row=side), of_cols
