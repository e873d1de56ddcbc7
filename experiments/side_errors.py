"""Cells of known errors, some below a limit: the published simulation of ebTobit.

Barbehenn and Zhao (2023), Nonparametric empirical Bayes biomarker imputation and estimation,
arXiv:2306.07239, as their scripts have it: means of 1,000 rows and 25 columns that are a product of
two exponential factors of rank k, noise of a standard deviation of 1, which is known; in 3 of 10
columns cells below the tenth percentile of the means are told as an interval from 6 standard
deviations below the least mean to that limit. The means of their main tables have the covariance of
a table of bile acids; here the correlations of the logarithms of a table of scikit-learn stand for
it. Their figures are not in their texts (the stored runs are not to be had with the scripts), so
that their estimator stands here in our own code.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr
from sklearn.datasets import load_breast_cancer

from declip import BayesCMC, Intervals

RANKS = (1, 5, 10, 20)
CENSORED = ((0.1, 0.3), (0.3, 0.1), (0.5, 0.5))  # share of columns, and of their cells, about
GRIDS = 50  # over which their estimator is a mean
SPREAD = 1.5  # of the means of a column, where their errors are 1
SETTINGS = {"rows": 1000, "columns": 25, "grids": GRIDS, "n_samples": 150, "burn_in": 100}


NAMES = ("middle of the interval", "ebTobit", "EBM-Tobit", "BayesCMC", "BayesCMC, known errors")


class Told(NamedTuple):
    """What is told of each cell, its known error, and the means that are looked for."""

    lower: NDArray
    upper: NDArray
    sd: NDArray
    mean: NDArray

    @property
    def censored(self) -> NDArray[np.bool_]:
        """Which cells are below a limit."""
        return self.lower < self.upper


def told(mean: NDArray, sd: NDArray, columns: float, share: float, rng: Any) -> Told:
    """Return what is seen of means under errors, with limits in a share of the columns."""
    x = mean + sd * rng.standard_normal(mean.shape)
    limit = np.full(mean.shape[1], -np.inf)
    at = rng.choice(mean.shape[1], round(columns * mean.shape[1]), replace=False)
    limit[at] = np.quantile(mean[:, at], share, axis=0)
    least = mean.min(0) - 6 * mean.std(0, ddof=1)
    below = x < limit
    return Told(np.where(below, least, x), np.where(below, limit, x), sd, mean)


def of_rank(seed: int, rank: int, *, equal: bool = True) -> Told:
    """Return a table whose means have some rank, under errors of 1 or unequal ones."""
    rng = np.random.default_rng(seed)
    mean = rng.exponential(size=(1000, rank)) @ rng.exponential(size=(rank, 25))
    sd = np.ones(mean.shape) if equal else rng.uniform(0.3, 1.7, mean.shape)
    return told(mean, sd, 0.3, 0.1, rng)


def of_covariance(seed: int, columns: float, share: float) -> Told:
    """Return a table whose means correlate as columns drawn from a real table do."""
    rng = np.random.default_rng(seed)
    real = np.log1p(load_breast_cancer().data)
    real = SPREAD * (real / real.std(0))[:, rng.integers(0, real.shape[1], 25)]
    mean = rng.multivariate_normal(real.mean(0), np.cov(real.T), 1000)
    return told(mean, np.ones(mean.shape), columns, share, rng)


def tables(seed: int) -> Iterator[tuple[str, Told]]:
    """Yield the tables of a seed by name."""
    for rank in RANKS:
        yield f"rank {rank}", of_rank(seed, rank)
    yield "rank 5, unequal errors", of_rank(seed, 5, equal=False)
    for columns, share in CENSORED:
        name = f"real correlations, {share:.0%} of {columns:.0%} of the columns"
        yield name, of_covariance(seed, columns, share)


def log_likelihood(table: Told, grid: NDArray) -> NDArray:
    """Return log p(row | its means are that point of the grid), of shape (rows, points)."""
    precise = np.where(table.censored, 0.0, table.sd**-2.0)
    x = np.where(table.censored, 0.0, table.lower)
    # sum_j w (x - g)^2 = sum_j w x^2 - 2 (w x) g + w g^2
    found = -0.5 * ((precise * x**2).sum(1)[:, None] - 2 * (precise * x) @ grid.T)
    found -= 0.5 * precise @ (grid**2).T
    rows, cols = np.nonzero(table.censored)
    sd, g = table.sd[rows, cols][:, None], grid[:, cols].T
    high = log_ndtr((table.upper[rows, cols][:, None] - g) / sd)
    low = log_ndtr((table.lower[rows, cols][:, None] - g) / sd)
    inside = high + np.log1p(-np.exp(np.minimum(low - high, -1e-12)))
    np.add.at(found, rows, inside)
    return found


def posterior_means(table: Told, grid: NDArray) -> tuple[NDArray, NDArray]:
    """Return the posterior means of the rows under the likeliest prior on a grid, and that prior.

    The prior is found by EM (Kiefer and Wolfowitz; Jiang and Zhang), to 1e-6 of its likelihood.
    """
    log_p = log_likelihood(table, grid)
    top = log_p.max(1, keepdims=True)
    p, prior, last = np.exp(log_p - top), np.full(len(grid), 1 / len(grid)), -np.inf
    for _ in range(2000):
        marginal = p @ prior
        now = float(np.log(marginal).sum() + top.sum())
        if abs(now - last) < 1e-6 * abs(now):
            break
        prior, last = prior * (p.T @ (1 / marginal)) / len(p), now
    return (p * prior) @ grid / (p @ prior)[:, None], prior


def ebm_tobit(table: Told, seed: int) -> tuple[NDArray, NDArray]:
    """Return the estimator on the likeliest points of the rows, and its mean over drawn grids."""
    rng, found = np.random.default_rng(seed), []
    grid = 0.5 * (table.lower + table.upper)
    for _ in range(GRIDS):
        means, prior = posterior_means(table, grid)
        found.append(means)
        drawn = rng.choice(len(grid), len(grid), p=prior / prior.sum())
        grid = grid[drawn] + table.sd[drawn] * rng.standard_normal(grid.shape)
    return found[0], np.mean(found, axis=0)


def study(name: str, seed: int) -> dict[str, dict[str, float]]:
    """Return mean squared errors of the means, in all cells and in those below a limit."""
    table = dict(tables(seed))[name]
    cells = Intervals.from_bounds(table.lower, table.upper)
    model = BayesCMC(10, n_samples=150, burn_in=100, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone, averaged = ebm_tobit(table, seed)
        found = (
            0.5 * (table.lower + table.upper),
            alone,
            averaged,
            model.fit(cells).reconstruct(),
            model.fit(cells, errors=table.sd).reconstruct(),
        )
    square = {word: (x - table.mean) ** 2 for word, x in zip(NAMES, found, strict=True)}
    at = table.censored
    return {w: {"all": float(e.mean()), "below": float(e[at].mean())} for w, e in square.items()}
