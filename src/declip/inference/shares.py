"""The share of values beyond a criterion, over completed tables.

Rubin's rules take the share of a completed table as it stands, with the variance of a share of n
values. But where a cell is drawn, whether it lies beyond the criterion is a matter of chance given
the parameters: that chance is counted within the tables, and once more between them, although the
mean over the tables is free of it. What is left is the variance a = var(p_i) / n of the cells'
probabilities, b = var(mean p_i | parameters), and what c the shrinkage beyond the limits adds:

    V = a + b + c + 2 r sqrt(a b).

Where more cells happen to lie beyond the limits, the parameters say more of them as well. By the
information matrix of a normal column of which 20, 40 or 60 % are censored, and a criterion that
half of these exceed, r is .80, .78 and .71. Of the shrinkage these cells say nothing.

Intervals by Rubin's rules held 98 to 99 % instead of 95: analysis and imputation are uncongenial
(Meng 1994).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from declip.inference.pooling import Pooled, RubinSums

__all__ = ["CellsAbove", "pooled_share"]

_TOGETHER = 0.8  # correlation of what cells and parameters add to a share


class CellsAbove:
    """How often each cell lay above its criterion, table by table.

    Parameters
    ----------
    criterion : ndarray of shape (n_cells,)
        That of each cell.
    shares : callable
        Returns the share of marked cells in each segment.
    """

    def __init__(
        self,
        criterion: NDArray[np.float64],
        shares: Callable[[NDArray[np.bool_]], NDArray[np.float64]],
    ) -> None:
        self.criterion = criterion
        self.shares = shares
        self.count = np.zeros(len(criterion))
        self.settled = RubinSums()

    def add(self, lines: NDArray) -> None:
        """Look at a table; the last line is the same with the shrinkage settled."""
        with np.errstate(invalid="ignore"):
            above = lines > self.criterion
        self.count += above[0]
        share = self.shares(above[-1])
        self.settled.add(share, np.zeros_like(share))

    def pooled(self, found: Pooled, segment: int, cells: NDArray[np.intp]) -> Pooled:
        """Return the share of a segment, of which Rubin's rules have ``found`` the estimate."""
        m, settled = self.settled.m, float(self.settled.between[segment])
        return pooled_share(found, self.count[cells] / m, settled, m)


def pooled_share(found: Pooled, above: NDArray[np.float64], settled: float, m: int) -> Pooled:
    """Return a pooled share in which the chance of what is drawn is not counted twice.

    Parameters
    ----------
    found : Pooled
        By Rubin's rules; its variance is an upper bound.
    above : ndarray of shape (n_cells,)
        The share of the tables in which each cell lies above the criterion.
    settled : float
        Variance of the share between tables, had the shrinkage been known.
    m : int
        Tables.
    """
    n, between = len(above), found.missing_information * found.std_error**2 / (1 + 1 / m)
    drawn = float(above @ (1 - above)) * m / (m - 1) / n**2  # between tables, by chance alone
    of_cells = max(above.var() / n - drawn / m, 0.0)
    unknown = np.maximum(between - drawn, 0.0)
    of_parameters = np.minimum(np.maximum(settled - drawn, 0.0), unknown)
    variance = of_cells + unknown + 2 * _TOGETHER * np.sqrt(of_cells * of_parameters)
    variance += between / m
    if not 0 < variance < found.std_error**2:
        return found
    return Pooled(found.estimate, np.sqrt(variance), found.df, 1 - of_cells / variance)
