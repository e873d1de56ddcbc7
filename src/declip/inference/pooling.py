"""Rubin's rules: one result from the analyses of several completed tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

__all__ = ["Pooled", "RubinSums", "degrees_of_freedom", "pool"]


class Pooled(NamedTuple):
    """A pooled estimate.

    Attributes
    ----------
    estimate : ndarray
        Mean of the estimates.
    std_error : ndarray
        Its standard error: from within the tables, and from their differences.
    df : ndarray
        Degrees of freedom of the t distribution to judge it by.
    missing_information : ndarray
        Share of the variance that is due to what was not observed.

    Examples
    --------
    >>> from declip import pool
    >>> pooled = pool([(1.0, 0.1), (1.2, 0.1), (1.1, 0.1)])  # estimate and standard error
    >>> float(pooled.estimate), float(pooled.std_error)
    (1.1, 0.153)
    >>> low, high = pooled.interval(0.95)
    >>> bool(low < 1 < high)
    True
    """

    estimate: NDArray[np.float64]
    std_error: NDArray[np.float64]
    df: NDArray[np.float64]
    missing_information: NDArray[np.float64]

    def interval(self, coverage: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the confidence interval of each estimate."""
        half_width = special.stdtrit(self.df, 0.5 + 0.5 * coverage) * self.std_error
        return self.estimate - half_width, self.estimate + half_width


def pool(results: Iterable[tuple[ArrayLike, ArrayLike]], complete_df: float = np.inf) -> Pooled:
    r"""Bring together the results of the same analysis of several completed tables.

    With the mean :math:`W` of the squared standard errors and the variance :math:`B` of the
    estimates over m tables, the variance is :math:`W + (1 + 1/m) B`.

    Parameters
    ----------
    results : iterable of (estimate, std_error)
        One pair for each table; numbers, or arrays of the same shape.
    complete_df : float, default=inf
        Degrees of freedom of the analysis, had the table been complete: in a small table fewer
        remain (Barnard and Rubin 1999).

    Returns
    -------
    Pooled
        The estimate, its standard error, and what they rest on.

    Examples
    --------
    The mean of a column, a part of which was clipped:

    >>> import numpy as np
    >>> from declip import BayesCMC, pool
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((80, 1)) + 0.5 * rng.standard_normal((80, 5))
    >>> model = BayesCMC(ceiling=1, random_state=0).fit(np.minimum(truth, 1))
    >>> tables = model.sample(20, random_state=0)
    >>> pooled = pool((t[:, 0].mean(), t[:, 0].std(ddof=1) / np.sqrt(80)) for t in tables)
    >>> bool(abs(pooled.estimate - truth[:, 0].mean()) < 2 * pooled.std_error)
    True
    """
    pairs = [tuple(np.asarray(part, np.float64) for part in pair) for pair in results]
    if len(pairs) < 2:
        raise ValueError(f"pool needs the results of at least 2 tables; got {len(pairs)}.")
    if len({part.shape for pair in pairs for part in pair}) > 1:
        raise ValueError("All estimates and standard errors must have the same shape.")
    sums = RubinSums()
    for estimate, error in pairs:
        if not (np.all(np.isfinite(error)) and np.all(error >= 0)):
            raise ValueError("Standard errors must be finite and not negative.")
        sums.add(estimate, error**2)
    return sums.pooled(complete_df)


class RubinSums:
    """The results of an analysis table by table, of which only sums are kept.

    Attributes
    ----------
    m : int
        Tables so far.
    """

    def __init__(self) -> None:
        self.m = 0
        self._mean: NDArray | float = 0.0
        self._squares: NDArray | float = 0.0
        self._within: NDArray | float = 0.0

    def add(self, estimate: NDArray, variance: NDArray) -> None:
        """Add the estimates of a table and their variances."""
        self.m += 1
        step = estimate - self._mean
        self._mean = self._mean + step / self.m
        self._squares = self._squares + step * (estimate - self._mean)
        self._within = self._within + (variance - self._within) / self.m

    @property
    def between(self) -> NDArray[np.float64]:
        """Variance of the estimates over the tables."""
        return np.asarray(self._squares) / (self.m - 1)

    def pooled(self, complete_df: NDArray | float = np.inf) -> Pooled:
        """Return the pooled result, by Rubin's rules with the degrees of Barnard and Rubin."""
        within = np.asarray(self._within)
        between = (1 + 1 / self.m) * self.between
        total = within + between
        share = np.divide(between, total, out=np.zeros_like(total), where=~(total <= 0))
        df = degrees_of_freedom(share, self.m, complete_df)
        return Pooled(np.asarray(self._mean), np.sqrt(total), df, share)


def degrees_of_freedom(
    missing_information: NDArray, m: int, complete_df: NDArray | float
) -> NDArray[np.float64]:
    """Return those of m tables, by what an analysis of complete ones has (Barnard and Rubin)."""
    left = (1 - 2 / (complete_df + 3)) * complete_df * (1 - missing_information)  # that is observed
    with np.errstate(divide="ignore"):
        return 1 / (missing_information**2 / (m - 1) + 1 / left)
