"""A censored normal distribution of whole rows, its covariance unrestricted, sampled by Gibbs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from declip.intervals import Intervals
from declip.kernels import truncated_normals

__all__ = ["NormalDraws", "sample_columns", "sample_normal"]

_PRIOR_VARIANCE = 0.3  # of a column in standard units, worth one row more than it has columns
_FIRST_SWEEPS, _MORE_SWEEPS = 30, 10  # before the first draw, and from one to the next
_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True, eq=False)
class NormalDraws:
    """Draws of a normal distribution of rows, and of the rows themselves.

    Attributes
    ----------
    rows : ndarray of shape (n_draws, n_rows, n_cols)
        Complete rows, in single precision.
    mean : ndarray of shape (n_draws, n_cols)
        Of the distribution.
    precision : ndarray of shape (n_draws, n_cols, n_cols)
        Its inverse covariance.
    """

    rows: NDArray[np.float32]
    mean: NDArray[np.float64]
    precision: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of draws."""
        return len(self.mean)

    def _check_loaded(self) -> None:
        """Refuse draws that were read from a file and do not fit together."""
        n, p = self.mean.shape
        if self.rows.shape[::2] != (n, p) or self.precision.shape != (n, p, p):
            raise ValueError("the draws of a normal distribution do not fit together")
        if not np.all(np.diagonal(self.precision, axis1=1, axis2=2) > 0):
            raise ValueError("the precisions of a normal distribution are not above zero")

    def conditional(
        self, draw: int, rows: NDArray, cols: NDArray
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of cells given the rest of their rows, by one draw."""
        some, at = np.unique(rows, return_inverse=True)
        P, Z = self.precision[draw], self.rows[draw, some].astype(np.float64)
        variance = 1 / np.diag(P)
        # z_j | the rest ~ N(z_j - (P r)_j / P_jj, 1 / P_jj) with r = z - mu
        mean = Z - (Z - self.mean[draw]) @ P * variance
        return mean[at, cols], np.sqrt(variance)[cols]


def sample_normal(
    intervals: Intervals, *, n_samples: int, burn_in: int, n_kept: int, seed: int
) -> NormalDraws:
    """Sample rows z_i ~ N(mu, S) of which each cell is known to lie in its interval.

    Parameters
    ----------
    intervals : Intervals
        The table, in standard units; missing cells are drawn too.
    n_samples, burn_in, n_kept : int
        Sweeps that count, sweeps before them, and draws that are kept of the former.
    seed : int
        Seed.
    """
    rng = np.random.default_rng(seed)
    lower, upper = intervals.to_bounds()
    missing = np.isnan(lower)
    lower, upper = np.where(missing, -np.inf, lower), np.where(missing, np.inf, upper)
    unknown = [np.flatnonzero(lower[:, j] < upper[:, j]) for j in range(lower.shape[1])]
    Z = np.clip(0.0, lower, upper)
    kept = set(np.linspace(0, n_samples - 1, n_kept).round().astype(int) + burn_in)
    draws: list[tuple[NDArray, ...]] = []
    for sweep in range(burn_in + n_samples):
        mu, P = _mean_and_precision(Z, rng)
        R = Z - mu
        for j, rows in enumerate(unknown):
            # z_j | the rest ~ N(mu_j + r_j - (P r)_j / P_jj, 1 / P_jj)
            x = mu[j] + R[rows, j] - (R[rows] @ P[:, j]) / P[j, j]
            sd = np.full(len(rows), 1 / np.sqrt(P[j, j]))
            key = int(rng.integers(_LARGEST_SEED)), 0
            R[rows, j] = truncated_normals(x, sd, lower[rows, j], upper[rows, j], key) - mu[j]
        Z = R + mu
        if sweep in kept:
            draws.append((Z.astype(np.float32), mu, P))
    return NormalDraws(*(np.array(part) for part in zip(*draws, strict=True)))


def _mean_and_precision(Z: NDArray, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Draw mu and S^-1 given complete rows: Normal-inverse-Wishart."""
    n, p = Z.shape
    centre = Z.mean(axis=0)
    D = Z - centre
    L = np.linalg.cholesky(D.T @ D + _PRIOR_VARIANCE * np.eye(p))
    # Bartlett: S^-1 = (L^-T A) (L^-T A)^T for a Wishart with n + p + 1 degrees of freedom
    A = np.tril(rng.standard_normal((p, p)), -1)
    A[np.diag_indices(p)] = np.sqrt(rng.chisquare(n + p + 1 - np.arange(p)))
    F = solve_triangular(L, A, lower=True, trans="T")
    # F^-T u has the covariance (F F^T)^-1 = S
    mu = centre + np.linalg.solve(F.T, rng.standard_normal(p)) / np.sqrt(n)
    return mu, F @ F.T


def sample_columns(
    cells: Intervals, start: tuple[NDArray, NDArray], *, n_draws: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sample mean and standard deviation of each column alone, as censored normal distributions.

    Parameters
    ----------
    cells : Intervals
        The table, in standard units.
    start : pair of ndarray of shape (n_cols,)
        Means and standard deviations to begin with, near to the likeliest.
    n_draws : int
        Draws that are kept.
    seed : int
        Seed.

    Returns
    -------
    mean, sd : ndarray of shape (n_draws, n_cols)
    """
    rng, side, p = np.random.default_rng(seed), cells.by_row, cells.shape[1]
    exact, at = side.exact_idx, side.censored_idx
    count = np.bincount(exact, minlength=p) + np.bincount(at, minlength=p)
    mean, sd = (part.copy() for part in start)
    draws = []
    for sweep in range(_FIRST_SWEEPS + _MORE_SWEEPS * n_draws):
        key = int(rng.integers(_LARGEST_SEED)), 0
        z = truncated_normals(mean[at], sd[at], side.lower, side.upper, key)
        centre = (np.bincount(exact, side.value, p) + np.bincount(at, z, p)) / np.maximum(count, 1)
        of_exact = np.bincount(exact, (side.value - centre[exact]) ** 2, p)
        squares = of_exact + np.bincount(at, (z - centre[at]) ** 2, p)
        sd = np.sqrt((squares + _PRIOR_VARIANCE) / rng.chisquare(np.maximum(count, 1)))
        mean = centre + sd * rng.standard_normal(p) / np.sqrt(np.maximum(count, 1))
        if sweep >= _FIRST_SWEEPS and (sweep - _FIRST_SWEEPS) % _MORE_SWEEPS == 0:
            draws.append((mean, sd))
    means, sds = (np.array(part) for part in zip(*draws, strict=True))
    return means, sds
