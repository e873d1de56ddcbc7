"""Intervals that hold the true values of cells with some probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from declip.censoring import left_censored, right_censored
from declip.solvers.gibbs.posterior import Posterior

__all__ = ["credible_interval"]


def credible_interval(
    posterior: Posterior,
    cells: tuple[NDArray[np.int32], NDArray[np.int32]],
    lower: NDArray,
    upper: NDArray,
    coverage: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals of cells that are known to lie in [lower, upper].

    That of a clipped cell begins at its limit, where ties lie; others have equal tails.
    """
    shares = _shares_below(lower, upper, coverage)
    low, high = (_ends(posterior, cells, lower, upper, share) for share in shares)
    return low, high


def _shares_below(
    lower: NDArray, upper: NDArray, coverage: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probability below each end of an interval: none beyond the limit of a cell."""
    tail = 0.5 * (1 - coverage)
    above_limit = right_censored(upper) & ~left_censored(lower)
    below_limit = left_censored(lower) & ~right_censored(upper)
    low = np.select([above_limit, below_limit], [0.0, 1 - coverage], tail)
    return low, np.select([above_limit, below_limit], [coverage, 1.0], 1 - tail)


def _ends(
    posterior: Posterior,
    cells: tuple[NDArray[np.int32], NDArray[np.int32]],
    lower: NDArray,
    upper: NDArray,
    share: NDArray,
) -> NDArray[np.float64]:
    """Return one end of the interval of each cell: a quantile, its limit, or its value."""
    end = np.where(share < 0.5, lower, upper)
    asked = (lower < upper) & (share > 0) & (share < 1)
    end[asked] = posterior.quantile(*(a[asked] for a in (*cells, lower, upper, share)))
    return end
