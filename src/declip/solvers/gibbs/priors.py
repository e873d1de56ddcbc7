"""Priors of the factors and of the noise scales, drawn given what they are the priors of.

All are in standardised units, in which the cells have a spread of about 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Gaussian", "NoiseScales", "draw_normal_wishart", "draw_relevance", "standard_normal"]

OFFSET_PRECISION = 0.01  # of a column's offset, where columns have units of their own
RELEVANCE_SHAPE = 2.0  # of the gamma prior of a factor's precision, whose mean is the rank
MEAN_WEIGHT = 1.0  # rows that the prior of the mean of the factors is worth
NOISE_SHAPE, NOISE_RATE = 1.0, 0.1  # inverse gamma prior of a variance on its own
POOLED_DF = 10.0  # cells that the other rows (or columns) are worth for the noise of one


class Gaussian(NamedTuple):
    """A normal prior: its precision, and that times its mean."""

    precision: NDArray[np.float64]
    information: NDArray[np.float64]


def standard_normal(k: int) -> Gaussian:
    """Return N(0, I)."""
    return Gaussian(np.eye(k), np.zeros(k))


def draw_relevance(
    B: NDArray[np.float64], rng: np.random.Generator, more: NDArray[np.float64] | None = None
) -> Gaussian:
    """Draw the prior of column factors and offset: a precision for each factor, far offsets.

    A factor that the data do not need gets a large precision, and so goes on being small. ``more``
    are further rows of the same precision.
    """
    k = B.shape[1] - 1
    B = B if more is None else np.vstack([B, more])
    shape = RELEVANCE_SHAPE + 0.5 * len(B)
    rate = RELEVANCE_SHAPE / max(k, 1) + 0.5 * np.einsum("ja,ja->a", B[:, :k], B[:, :k])
    precision = np.zeros((k + 1, k + 1))
    diagonal = precision.reshape(-1)[:: k + 2]
    np.divide(rng.standard_gamma(shape, k), rate, out=diagonal[:k])
    diagonal[k] = OFFSET_PRECISION
    return Gaussian(precision, np.zeros(k + 1))


def draw_normal_wishart(
    F: NDArray[np.float64], rng: np.random.Generator, more: NDArray[np.float64] | None = None
) -> Gaussian:
    """Draw mean and precision of the rows of F: L ~ W(I, d), mean | L ~ N(0, L^-1 / weight).

    ``more`` are further rows of the same precision, about 0.
    """
    n, d = F.shape
    mean = F.sum(axis=0) / max(n, 1)
    centred = F - mean
    shrink = n * MEAN_WEIGHT / (n + MEAN_WEIGHT)
    scatter = np.eye(d) + centred.T @ centred + shrink * np.outer(mean, mean)
    if more is not None:
        scatter = scatter + more.T @ more
    precision = _draw_wishart(scatter, d + n + (0 if more is None else len(more)), rng)
    total = MEAN_WEIGHT + n
    U = np.linalg.cholesky(total * precision).T
    centre = n / total * mean + np.linalg.solve(U, rng.standard_normal(d))
    return Gaussian(precision, precision @ centre)


def _draw_wishart(
    inverse_scale: NDArray[np.float64], df: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw from the Wishart distribution by Bartlett's decomposition."""
    d = len(inverse_scale)
    T = np.tril(rng.standard_normal((d, d)), -1)
    T[np.diag_indices(d)] = np.sqrt(2 * rng.standard_gamma(0.5 * (df - np.arange(d))))
    # inverse_scale = C C^T, so its inverse is C^-T C^-1 and the draw is (C^-T T) (C^-T T)^T
    R = np.linalg.solve(np.linalg.cholesky(inverse_scale).T, T)
    return R @ R.T


@dataclass(frozen=True, eq=False)
class NoiseScales:
    """Precisions of the noise: that of cell (i, j) is ``rows[i] * cols[j]``.

    Attributes
    ----------
    kind : {"column", "row+column", "global", "known"}
        One variance for each column, on its own; one for each row and each column, which share what
        they know; one for all; or all known.
    rows, cols : ndarray
        The precisions.
    level : float
        Typical variance of the columns, for "row+column".
    fixed : ndarray of bool, or None
        Columns whose precision stays 1: of two levels, which tell of no scale.
    """

    kind: str
    rows: NDArray[np.float64]
    cols: NDArray[np.float64]
    level: float = 1.0
    fixed: NDArray[np.bool_] | None = None

    @classmethod
    def start(
        cls, kind: str, shape: tuple[int, int], fixed: NDArray[np.bool_] | None = None
    ) -> NoiseScales:
        """Return precisions of 2, or 1 where they are fixed.

        One noise for all columns comes from those of more than two levels, if there are any.
        """
        if kind == "global" and fixed is not None and not fixed.all():
            fixed = None
        cols = np.full(shape[1], 2.0) if fixed is None else np.where(fixed, 1.0, 2.0)
        return cls(kind, np.ones(shape[0]), cols, fixed=fixed)

    def at(self, rows: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return the noise scale of cells."""
        return 1 / np.sqrt(self.precision(rows, cols))

    def precision(self, rows: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return the precision of the noise of cells."""
        return self.rows[rows] * self.cols[cols]

    def draw_rows(self, counts: NDArray, squares: NDArray, rng: np.random.Generator) -> NoiseScales:
        """Draw the scales of the rows, from their number of cells and squared residuals."""
        if self.kind != "row+column":
            return self
        gamma = rng.standard_gamma(0.5 * (POOLED_DF + counts))
        return replace(self, rows=row_precision(gamma, squares))

    def draw_cols(self, counts: NDArray, squares: NDArray, rng: np.random.Generator) -> NoiseScales:
        """Draw the scales of the columns."""
        if self.kind == "known":
            return self
        drawn = self._draw_cols(counts, squares, rng)
        if self.fixed is None:
            return drawn
        return replace(drawn, cols=np.where(self.fixed, 1.0, drawn.cols))

    def _draw_cols(
        self, counts: NDArray, squares: NDArray, rng: np.random.Generator
    ) -> NoiseScales:
        if self.kind == "global":
            counts, squares = np.array([counts.sum()]), np.array([squares.sum()])
        if self.kind != "row+column":
            gamma = rng.standard_gamma(NOISE_SHAPE + 0.5 * counts)
            cols = gamma / (NOISE_RATE + 0.5 * squares)
            if self.kind == "global":
                cols = np.repeat(cols, len(self.cols))
            return NoiseScales(self.kind, self.rows, cols, self.level, self.fixed)
        gamma = rng.standard_gamma(0.5 * (POOLED_DF + counts))
        cols = gamma / (0.5 * (POOLED_DF * self.level + squares))
        # The level has the prior gamma(1, 1), and 1 / variance_j ~ gamma(df / 2, df level / 2).
        free = cols if self.fixed is None else cols[~self.fixed]
        shape, rate = 1 + 0.5 * POOLED_DF * len(free), 1 + 0.5 * POOLED_DF * free.sum()
        return replace(self, cols=cols, level=rng.standard_gamma(shape) / rate)


def row_precision(gamma: NDArray, squares: NDArray) -> NDArray[np.float64]:
    """Return the precision of rows from gamma variates of shape (df + cells) / 2."""
    return gamma / (0.5 * (POOLED_DF + squares))
