"""What the truth cannot pass: the ends of a scale, zero for an amount."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.censoring import left_censored
from declip.intervals import Intervals, face_value
from declip.rounding import RoundingGrid
from declip.scaling import Scaling
from declip.validation import limits_of_all_cells

__all__ = ["AMOUNTS", "Bounds"]

AMOUNTS = "auto"  # ``between=``: what is never negative is an amount, and has its end at zero


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lowest and highest values that the cells of each column can have.

    Attributes
    ----------
    low, high : ndarray of shape (n_cols,) or (1,)
        Infinite where there is no bound.
    """

    low: NDArray[np.float64] = field(default_factory=lambda: np.array([-np.inf]))
    high: NDArray[np.float64] = field(default_factory=lambda: np.array([np.inf]))

    @classmethod
    def of(cls, between: Any, intervals: Intervals) -> Bounds:
        """Read a pair of bounds, each None, a number or one for each column, as limits are.

        None there are yet of "auto" (see `of_amounts`).
        """
        if between is None or (isinstance(between, str) and between == AMOUNTS):
            return cls()
        if not hasattr(between, "__len__") or isinstance(between, str) or len(between) != 2:
            raise ValueError(
                "between must be a pair, the lowest and the highest value that the truth can have, "
                f"such as (0, None), or 'auto' or None; got {between!r}."
            )
        low, high = between
        found = limits_of_all_cells(high, low, intervals.shape, np.float64, intervals.col_labels)
        bounds = cls(*(np.broadcast_to(end, (1, intervals.shape[1]))[0] for end in found))
        bounds.check(intervals)
        return bounds

    @classmethod
    def of_amounts(cls, intervals: Intervals, some: Intervals, shared: bool = False) -> Bounds:
        """Return zero as the low end of columns that hold amounts.

        No value and no limit of these is negative. A floor at zero says that the truth goes below
        it; and answers on a scale (columns in coarse steps, for which ``some`` rows are looked at)
        have an end of their own. All columns go together where they hold one quantity (``shared``).
        """
        _, cols, lower, upper = intervals.triplets()
        below = left_censored(lower)
        signed = np.where(below, upper <= 0, lower < 0)
        n = 1 if shared else intervals.shape[1]
        any_signed = np.bincount(cols % n, signed, n) > 0
        if any_signed.all():
            return cls()
        steps = RoundingGrid.of(some, shared).coarse(some).sizes.max(axis=0)
        return cls(low=np.where(any_signed | (steps > 0), -np.inf, 0.0))

    def check(self, intervals: Intervals) -> None:
        """Refuse bounds that the table itself passes."""
        _, cols, lower, upper = intervals.triplets()
        values = face_value(lower, upper).astype(np.float64)
        beyond = int((self.clip(values, cols) != values).sum())
        if beyond:
            raise ValueError(
                f"{beyond} values of the table lie beyond the bounds of between=: "
                "it says what the truth cannot pass, not where the table was clipped."
            )

    def at(self, cols: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of cells in these columns."""
        return self.low[cols % len(self.low)], self.high[cols % len(self.high)]

    def in_units(self, scaling: Scaling, cols: NDArray) -> tuple[NDArray, NDArray]:
        """Return the bounds of cells in these columns in standard units."""
        low, high = self.at(cols)
        return scaling.forward(low, cols), scaling.forward(high, cols)

    def clip(self, values: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return values of these columns, none of them beyond the bounds."""
        return np.clip(values, *self.at(cols))
