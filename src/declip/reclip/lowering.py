"""Limits moved into the exact cells of a table, so that the truth beyond them is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from declip.censoring import left_censored, right_censored
from declip.intervals import Intervals
from declip.model_selection import HeldOutCells

__all__ = ["Reclipped", "reclip"]

_FEWEST_LEFT = 5  # exact cells that a column keeps
_FEWEST_VALUES = 2  # different values among them, without which nothing says how far it spreads


@dataclass(frozen=True, eq=False)
class Reclipped:
    """A table with limits moved inwards, and what is known of the cells beyond them.

    Attributes
    ----------
    intervals : Intervals
        The table as a method is shown it.
    rows, cols : ndarray of int
        The judged cells: those beyond a moved limit, exact before or clipped already.
    above : ndarray of bool
        Which of them are above a ceiling; the others are below a floor.
    limit : ndarray
        The moved limit of each.
    value : ndarray
        Its truth, or its real limit if it was clipped before.
    censored : ndarray of bool
        Whether it was clipped before, so that the truth lies beyond ``value``.
    real_limit : ndarray
        Where the table itself stops; infinite where it does not, or where that is not known.
    """

    intervals: Intervals
    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    above: NDArray[np.bool_]
    limit: NDArray
    value: NDArray
    censored: NDArray[np.bool_]
    real_limit: NDArray

    def __len__(self) -> int:
        """Return the number of judged cells."""
        return len(self.rows)

    @property
    def lower(self) -> NDArray:
        """Lower bounds of the judged cells, as shown."""
        return np.where(self.above, self.limit, -np.inf)

    @property
    def upper(self) -> NDArray:
        """Upper bounds of the judged cells, as shown."""
        return np.where(self.above, np.inf, self.limit)

    def within_reach(self, estimate: NDArray) -> NDArray:
        """Return estimates cut off at the real limits, as the values that they are compared to."""
        high, low = np.where(self.above, self.real_limit, np.inf), self.real_limit
        return np.clip(estimate, np.where(self.above, -np.inf, low), high)


def reclip(
    intervals: Intervals,
    hidden: float | NDArray,
    *,
    floors: bool,
    ceilings: bool,
    by_column: bool = True,
    exchanged: float = 0.0,
    seed: int = 0,
) -> Reclipped:
    """Move limits inwards, so that they hide a share of the exact cells.

    Parameters
    ----------
    intervals : Intervals
        The table.
    hidden : float, or array of shape (2, n_cols)
        Share of the exact cells that is to be hidden at each side (floors, then ceilings).
    floors, ceilings : bool
        Which sides are moved. A side moves in the columns that are clipped at it, or in all if none
        is.
    by_column : bool
        Whether each column gets its own limits, or all the same.
    exchanged : float
        Share of the exact cells that get the limit of another row of their column, where limits
        differ so that exact cells lie beyond some of them; what that hides is judged too.
    seed : int
        Seed of the exchange.

    Notes
    -----
    Where both limits of a column would leave fewer than five exact cells, or fewer than two
    different values, only one is moved: the ceiling or the floor, in turn by column and seed. A
    column stays as it is where that leaves too few, too. Cells that were clipped are shown at the
    moved limit as well, since a method that could tell them from the others would know which truths
    are small.
    """
    rows, cols, lower, upper = intervals.triplets()
    group = cols if by_column else np.zeros_like(cols)
    n = intervals.shape[1] if by_column else 1
    exact = slice(intervals.n_exact)
    share = np.broadcast_to(np.asarray(hidden, float), (2, n)) if np.ndim(hidden) < 2 else hidden
    low, high = _moved_limits(lower[exact], group[exact], n, np.asarray(share)[:, :n])
    at_floor, at_ceiling = left_censored(lower), right_censored(upper)
    low[~_moves(at_floor, group, n) if floors else slice(None)] = -np.inf
    high[~_moves(at_ceiling, group, n) if ceilings else slice(None)] = np.inf
    _spare(low, high, lower[exact], group[exact], seed)
    low, high = low[group], high[group]
    if exchanged > 0:
        rng = np.random.default_rng(seed)
        picked = np.flatnonzero(rng.random(intervals.n_exact) < exchanged)
        _exchange(high, lower[at_ceiling], group[at_ceiling], group, picked, rng)
        low = -low
        _exchange(low, -upper[at_floor], group[at_floor], group, picked, rng)
        low = -low
    above, below = lower >= high, upper <= low
    judged = above | below
    shown = intervals.with_bounds(
        np.where(above, high, np.where(below, -np.inf, lower)).astype(lower.dtype),
        np.where(below, low, np.where(above, np.inf, upper)).astype(lower.dtype),
    )
    known = HeldOutCells.of(intervals)
    return Reclipped(
        shown,
        rows[judged],
        cols[judged],
        above[judged],
        np.where(above, high, low)[judged].astype(lower.dtype),
        np.where(above, lower, upper)[judged],
        (lower < upper)[judged],
        np.where(above, known.ceiling, known.floor)[judged],
    )


def _exchange(
    moved: NDArray,
    limits: NDArray,
    groups: NDArray,
    group: NDArray,
    picked: NDArray[np.intp],
    rng: np.random.Generator,
) -> None:
    """Give picked cells, in place, a limit of their group at random if it lies further inside."""
    order = np.argsort(groups, kind="stable")
    count = np.bincount(groups, minlength=int(group.max(initial=0)) + 1)
    first = np.cumsum(count) - count
    picked = picked[(count[group[picked]] > 0) & np.isfinite(moved[picked])]
    at = group[picked]
    drawn = first[at] + (rng.random(len(picked)) * count[at]).astype(np.intp)
    moved[picked] = np.minimum(moved[picked], limits[order][drawn])


def _moves(clipped: NDArray[np.bool_], group: NDArray, n: int) -> NDArray[np.bool_]:
    """Tell in which groups a side is clipped; in all if it is in none."""
    counts = np.bincount(group[clipped], minlength=n)
    return (counts > 0) | (counts.sum() == 0)


def _moved_limits(
    value: NDArray, group: NDArray, n: int, hidden: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return floors and ceilings that hide these shares of the values of each group."""
    order = np.lexsort((value, group))
    ordered = value[order].astype(np.float64)
    count = np.bincount(group, minlength=n)
    first = np.concatenate([[0], np.cumsum(count)[:-1]])
    filled = np.flatnonzero(count)
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    last = count[filled] - 1
    low[filled] = ordered[first[filled] + np.rint(hidden[0][filled] * last).astype(np.intp)]
    high[filled] = ordered[first[filled] + last - np.rint(hidden[1][filled] * last).astype(np.intp)]
    return low, high


def _spare(low: NDArray, high: NDArray, value: NDArray, group: NDArray, seed: int) -> None:
    """Take limits back, in place, in groups where too few cells or values would be left."""
    both = _is_poor(low, high, value, group) & np.isfinite(low) & np.isfinite(high)
    in_turn = (np.arange(len(low)) + seed) % 2 == 0
    low[both & in_turn], high[both & ~in_turn] = -np.inf, np.inf
    poor = _is_poor(low, high, value, group)
    low[poor], high[poor] = -np.inf, np.inf


def _is_poor(low: NDArray, high: NDArray, value: NDArray, group: NDArray) -> NDArray[np.bool_]:
    """Tell in which groups limits leave too few cells or values."""
    left = (value > low[group]) & (value < high[group])
    count = np.bincount(group[left], minlength=len(low))
    pairs = np.unique(np.stack([group[left].astype(np.float64), value[left]]), axis=1)
    values = np.bincount(pairs[0].astype(np.intp), minlength=len(low))
    return (count < _FEWEST_LEFT) | (values < _FEWEST_VALUES)
