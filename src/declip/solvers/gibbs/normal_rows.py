"""Rows of another table, drawn under normal distributions that were sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from declip.intervals import Intervals
from declip.solvers.gibbs.covariance import NormalDraws, all_bounds
from declip.truncated import quantile

__all__ = ["rows_under"]

_SWEEPS = 3  # for each draw: missing cells are drawn together, clipped ones one after the other


def rows_under(draws: NormalDraws, intervals: Intervals, seed: int) -> NormalDraws:
    """Draw the rows of another table, and their classes, under the same distributions.

    All rows see the same random numbers: what is drawn for a row does not depend on the others.

    Parameters
    ----------
    draws : NormalDraws
        The distributions.
    intervals : Intervals
        The other table, in the same units.
    seed : int
        Seed.
    """
    rng, bounds = np.random.default_rng(seed), all_bounds(intervals)
    (n_classes, n_cols), Z = draws.mean.shape[1:], np.clip(0.0, *bounds)
    rows, labels = [], []
    for mu, P, seen in zip(draws.mean, draws.precision, draws.label, strict=True):
        share = (np.bincount(seen, minlength=n_classes) + 1 / n_classes) / (len(seen) + 1)
        for _ in range(_SWEEPS):
            label = _classes_of(Z, mu, P, share, rng.gumbel(size=(n_classes, 1)))
            noise, shares = rng.standard_normal((1, n_cols))[0], rng.random((1, n_cols))[0]
            for k in np.unique(label):
                own = label == k
                ends = bounds[0][own] - mu[k], bounds[1][own] - mu[k]
                Z[own] = mu[k] + _redrawn(Z[own] - mu[k], P[k], ends, noise, np.log(shares))
        Z = np.clip(Z, *bounds)
        rows.append(Z.astype(np.float32))
        labels.append(label)
    return replace(draws, rows=np.array(rows), label=np.array(labels))


def _classes_of(
    Z: NDArray, mu: NDArray, P: NDArray, share: NDArray, gumbel: NDArray
) -> NDArray[np.intp]:
    """Draw the classes of complete rows."""
    logs = [
        np.log(s) + 0.5 * np.linalg.slogdet(p)[1] - 0.5 * np.einsum("ij,jk,ik->i", R, p, R)
        for s, p, R in zip(share, P, (Z - m for m in mu), strict=True)
    ]
    return (np.array(logs) + gumbel).argmax(axis=0)


def _redrawn(
    R: NDArray,
    P: NDArray,
    ends: tuple[NDArray, NDArray],
    noise: NDArray[np.float64],
    log_shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Draw missing cells of centred rows together, then clipped ones one after the other."""
    missing = np.isneginf(ends[0]) & np.isposinf(ends[1])
    clipped, out = (ends[0] < ends[1]) & ~missing, R.copy()
    for i in np.flatnonzero(missing.any(axis=1)):
        m = missing[i]
        L = np.linalg.cholesky(P[np.ix_(m, m)])
        # r_m | the rest ~ N(-P_mm^-1 P_mr r_r, P_mm^-1)
        pull = solve_triangular(L, P[m][:, ~m] @ R[i, ~m], lower=True)
        out[i, m] = solve_triangular(L, noise[m] - pull, lower=True, trans="T")
    for j in np.flatnonzero(clipped.any(axis=0)):
        rows, sd = np.flatnonzero(clipped[:, j]), 1 / np.sqrt(P[j, j])
        x = out[rows, j] - (out[rows] @ P[:, j]) * sd**2
        a, b = ((end[rows, j] - x) / sd for end in ends)
        out[rows, j] = x + sd * quantile(a, b, log_shares[j])
    return out
