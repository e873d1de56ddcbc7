"""A censored normal distribution of whole rows, its covariance unrestricted, sampled by Gibbs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from declip.intervals import Intervals
from declip.kernels import truncated_normals

__all__ = ["ConditionalDraws", "sample_normal"]

_PRIOR_VARIANCE = 0.3  # of a column in standard units, worth one row more than it has columns
_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True, eq=False)
class ConditionalDraws:
    """Draws of the distribution of every cell given the rest of its row.

    Attributes
    ----------
    mean : ndarray of shape (n_draws, n_rows, n_cols)
        Conditional means, in single precision.
    sd : ndarray of shape (n_draws, n_cols)
        Conditional standard deviations.
    """

    mean: NDArray[np.float32]
    sd: NDArray[np.float64]


def sample_normal(
    intervals: Intervals, *, n_samples: int, burn_in: int, n_kept: int, seed: int
) -> ConditionalDraws:
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
    means, sds = [], []
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
            means.append((Z - (R @ P) / np.diag(P)).astype(np.float32))
            sds.append(1 / np.sqrt(np.diag(P)))
    return ConditionalDraws(np.array(means), np.array(sds))


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
