"""Censored rows of a few classes, each normal with a covariance of its own, sampled by Gibbs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.linalg.lapack import dpotrf, dtrtrs

from declip.intervals import Intervals
from declip.kernels import UnknownCells, draw_normal_rows, truncated_normals

__all__ = ["NormalDraws", "all_bounds", "sample_columns", "sample_normal"]

_PRIOR_VARIANCE = 0.3  # of a column in standard units, worth one row more than it has columns
_PRIOR_ROWS = 5  # more than columns, that the covariance which classes share is worth to each
_LEAST_SCATTER = 0.01  # of a class in each column, beside what classes share: rows may be tied
_CONCENTRATION = 1.0  # rows that all classes together count as having before any was seen
_FIRST_SWEEPS, _MORE_SWEEPS = 30, 10  # before the first draw, and from one to the next
_CHAINS = 5  # of columns alone: sweeps of a small table cost the same for several
_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True, eq=False)
class NormalDraws:
    """Draws of the normal distributions of rows, one for each class, and of the rows themselves.

    Attributes
    ----------
    rows : ndarray of shape (n_draws, n_rows, n_cols)
        Complete rows, in single precision.
    mean : ndarray of shape (n_draws, n_classes, n_cols)
        Of the distributions.
    precision : ndarray of shape (n_draws, n_classes, n_cols, n_cols)
        Their inverse covariances.
    label : ndarray of shape (n_draws, n_rows)
        The classes of the rows.
    """

    rows: NDArray[np.float32]
    mean: NDArray[np.float64]
    precision: NDArray[np.float64]
    label: NDArray[np.intp]

    def __len__(self) -> int:
        """Return the number of draws."""
        return len(self.mean)

    def _check_loaded(self) -> None:
        """Refuse draws that were read from a file and do not fit together."""
        n, k, p = self.mean.shape
        shapes = self.rows.shape[::2], self.precision.shape, self.label.shape
        if shapes != ((n, p), (n, k, p, p), self.rows.shape[:2]):
            raise ValueError("the draws of a normal distribution do not fit together")
        if not np.all(np.diagonal(self.precision, axis1=2, axis2=3) > 0):
            raise ValueError("the precisions of a normal distribution are not above zero")
        if self.label.size and not (0 <= self.label.min() and self.label.max() < k):
            raise ValueError("rows of a normal distribution are of classes that there are not")

    def conditional(
        self, draw: int, rows: NDArray, cols: NDArray
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of cells given the rest of their rows, by one draw."""
        some, at = np.unique(rows, return_inverse=True)
        label, Z = self.label[draw, some], self.rows[draw, some].astype(np.float64)
        variance = 1 / np.diagonal(self.precision[draw], axis1=1, axis2=2)
        mean = np.empty_like(Z)
        for k, P in enumerate(self.precision[draw]):
            # z_j | the rest ~ N(z_j - (P r)_j / P_jj, 1 / P_jj) with r = z - mu
            own = label == k
            mean[own] = Z[own] - (Z[own] - self.mean[draw, k]) @ P * variance[k]
        return mean[at, cols], np.sqrt(variance)[label[at], cols]


@dataclass(frozen=True, eq=False)
class _Classes:
    """Means and precisions (with factors F F^T) of classes of rows, and their shares."""

    mu: NDArray[np.float64]
    factor: NDArray[np.float64]
    share: NDArray[np.float64]

    @classmethod
    def drawn(
        cls, Z: NDArray, label: NDArray, mu: NDArray, shared: NDArray, rng: np.random.Generator
    ) -> _Classes:
        """Draw precisions given the rows and means of each class, then new means."""
        prior = shared, Z.shape[1] + (_PRIOR_ROWS if len(mu) > 1 else 1)
        if len(mu) == 1:
            mean, factor = _mean_and_factor(Z, mu[0], prior, rng)
            return cls(mean[None], factor[None], np.ones(1))
        pairs = [_mean_and_factor(Z[label == k], m, prior, rng) for k, m in enumerate(mu)]
        counts = np.bincount(label, minlength=len(mu))
        share = rng.dirichlet(counts + _CONCENTRATION / len(mu))
        return cls(np.array([m for m, _ in pairs]), np.array([f for _, f in pairs]), share)

    @property
    def precision(self) -> NDArray[np.float64]:
        """Inverse covariances, of shape (n_classes, n_cols, n_cols)."""
        return self.factor @ self.factor.transpose(0, 2, 1)

    def shared(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw the scatter that covariances have in common; a single class needs none to share.

        A class that limits hide in some columns has the spread of the others there, and one whose
        rows are tied in a column keeps a little.
        """
        n_classes, p = self.mu.shape
        if n_classes == 1:
            return _PRIOR_VARIANCE * np.eye(p)
        L = _root(self.precision.sum(axis=0) + np.eye(p) / _PRIOR_VARIANCE)
        F = _wishart_factor(L, p + n_classes * (p + _PRIOR_ROWS), rng)
        return F @ F.T + _LEAST_SCATTER * np.eye(p)

    def labels(self, Z: NDArray, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw the classes of complete rows."""
        known = np.log(self.share + 1e-300) + np.linalg.slogdet(self.factor)[1]
        logs = [
            log - 0.5 * (((Z - mu) @ F) ** 2).sum(1)
            for mu, F, log in zip(self.mu, self.factor, known, strict=True)
        ]
        return (np.array(logs) + rng.gumbel(size=(len(logs), len(Z)))).argmax(axis=0)


def sample_normal(
    intervals: Intervals,
    *,
    n_samples: int,
    burn_in: int,
    n_kept: int,
    seed: int,
    n_classes: int = 1,
    threads: int = 1,
) -> NormalDraws:
    """Sample rows z_i ~ N(mu_k, S_k) of unknown classes k, each cell known to lie in its interval.

    Parameters
    ----------
    intervals : Intervals
        The table, in standard units; missing cells are drawn too.
    n_samples, burn_in, n_kept : int
        Sweeps that count, sweeps before them, and draws that are kept of the former.
    seed : int
        Seed.
    n_classes : int, default=1
        Most classes that there may be: those that no row needs stay empty.
    threads : int, default=1
        Threads; the result does not depend on it.
    """
    rng = np.random.default_rng(seed)
    lower, upper = all_bounds(intervals)
    unknown = UnknownCells.of(lower, upper)
    Z = np.clip(0.0, lower, upper)
    label = np.zeros(len(Z), np.intp)
    if n_classes > 1:
        label = kmeans2(Z, n_classes, minit="++", seed=rng, missing="warn")[1].astype(np.intp)
    mu = np.array([Z[label == k].mean(axis=0) if k in label else Z[0] for k in range(n_classes)])
    shared = _PRIOR_VARIANCE * np.eye(Z.shape[1])
    kept = set(np.linspace(0, n_samples - 1, n_kept).round().astype(int) + burn_in)
    draws: list[tuple[NDArray, ...]] = []
    for sweep in range(burn_in + n_samples):
        classes = _Classes.drawn(Z, label, mu, shared, rng)
        shared = classes.shared(rng)
        mu, P = classes.mu, classes.precision
        label = classes.labels(Z, rng) if n_classes > 1 else label
        draw_normal_rows(Z, unknown, label, (mu, P), (seed, sweep), threads=threads)
        if sweep in kept:
            draws.append((Z.astype(np.float32), mu, P, label))
    return NormalDraws(*(np.array(part) for part in zip(*draws, strict=True)))


def all_bounds(intervals: Intervals) -> tuple[NDArray, NDArray]:
    """Return the bounds of all cells, infinite where nothing was observed."""
    lower, upper = intervals.to_bounds()
    missing = np.isnan(lower)
    return np.where(missing, -np.inf, lower), np.where(missing, np.inf, upper)


def _wishart_factor(L: NDArray, freedom: int, rng: np.random.Generator) -> NDArray:
    """Draw F with F F^T from the Wishart distribution whose scale is (L L^T)^-1."""
    p = len(L)
    # Bartlett: (L^-T A) (L^-T A)^T
    A = _below_diagonal(p) * rng.standard_normal((p, p))
    A.flat[:: p + 1] = np.sqrt(rng.chisquare(freedom - np.arange(p)))
    return _solved(L, A, transposed=True)


@lru_cache
def _below_diagonal(p: int) -> NDArray[np.float64]:
    return np.tri(p, k=-1)


def _root(S: NDArray) -> NDArray[np.float64]:
    """Return the lower triangle L with S = L L^T; NumPy looks at its arguments for longer."""
    L, failed = dpotrf(S, lower=1)
    if failed:
        raise FloatingPointError("a covariance has no proper posterior")
    return L


def _solved(L: NDArray, b: NDArray, transposed: bool = False) -> NDArray[np.float64]:
    """Return L^-1 b, or L^-T b."""
    return dtrtrs(L, b, lower=1, trans=int(transposed))[0]


def _mean_and_factor(
    Z: NDArray, centre: NDArray, prior: tuple[NDArray, int], rng: np.random.Generator
) -> tuple[NDArray, NDArray]:
    """Draw F with S^-1 = F F^T given complete rows and their mean, then the mean given F.

    The prior of S is a scatter and its degrees of freedom. Means are standard normal beforehand:
    where limits hide all of a class, nothing else holds it.
    """
    n, p = Z.shape
    D, (scatter, freedom) = Z - centre, prior
    F = _wishart_factor(_root(D.T @ D + scatter), n + freedom, rng)
    # mu ~ N(Q^-1 S^-1 sum z, Q^-1) for Q = n S^-1 + I
    P = F @ F.T
    C = _root(n * P + np.eye(p))
    pulled = _solved(C, P @ Z.sum(axis=0)) + rng.standard_normal(p)
    return _solved(C, pulled, transposed=True), F


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
    n_exact = np.bincount(exact, minlength=p)
    of_exact = np.bincount(exact, side.value, p) / np.maximum(n_exact, 1)
    within = np.bincount(exact, (side.value - of_exact[exact]) ** 2, p)
    count = np.maximum(n_exact + np.bincount(at, minlength=p), 1)
    # chains side by side, each column of each chain a group of its own
    group = (at + p * np.arange(_CHAINS)[:, None]).ravel()
    lower, upper = (np.tile(end, _CHAINS) for end in (side.lower, side.upper))
    mean, sd = (np.tile(part, (_CHAINS, 1)) for part in start)
    draws = []
    for sweep in range(_FIRST_SWEEPS + _MORE_SWEEPS * -(-n_draws // _CHAINS)):
        key = int(rng.integers(_LARGEST_SEED)), 0
        z = truncated_normals(mean.ravel()[group], sd.ravel()[group], lower, upper, key)
        total = np.bincount(group, z, mean.size).reshape(mean.shape)
        centre = (n_exact * of_exact + total) / count
        squares = np.bincount(group, (z - centre.ravel()[group]) ** 2, mean.size)
        squares = within + n_exact * (of_exact - centre) ** 2 + squares.reshape(mean.shape)
        sd = np.sqrt((squares + _PRIOR_VARIANCE) / rng.chisquare(count, mean.shape))
        mean = centre + sd * rng.standard_normal(mean.shape) / np.sqrt(count)
        if sweep >= _FIRST_SWEEPS and (sweep - _FIRST_SWEEPS) % _MORE_SWEEPS == 0:
            draws.append((mean, sd))
    means, sds = (np.concatenate(part)[:n_draws] for part in zip(*draws, strict=True))
    return means, sds
