"""Values recorded in steps: what is reported at a limit was at least half a step short of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.censoring import left_censored, right_censored
from declip.intervals import Intervals, face_value

__all__ = ["RoundingGrid", "apparent_levels", "limits_on_grid"]

_NEAREST = 5  # steps at an end of a column, the smallest of which counts
_FEWEST = 2  # steps without which none is found, unless
_SHARED = 10  # so many cells share a value
_SAME = 1e-6  # of the range of a column: closer values are equal
_COARSE = 0.25  # of the standard deviation of a column: finer steps do not matter
_TIED = 0.5  # different values for each exact cell, at most, of a column that is rounded
_MOST_LEVELS, _EACH = 11, 10  # different values of a table in levels, and cells for each of them
_RARE = 0.05  # of the cells with the commonest value: fewer are strays between the steps


@dataclass(frozen=True, eq=False)
class RoundingGrid:
    """The steps in which the values of each column are recorded, near its floors and ceilings.

    A value of 5 in steps of 0.1 may have been anything from 4.95 on, and so may one at a ceiling of
    5. Many cells at the limit of such a column lie at it and not beyond.

    Attributes
    ----------
    sizes : ndarray of shape (2, n_cols) or (2, 1)
        At floors and at ceilings; next to nothing in columns that are not recorded in steps.
    """

    sizes: NDArray[np.float64]

    @classmethod
    def none(cls) -> RoundingGrid:
        """Return the grid of values that are not rounded."""
        return cls(np.zeros((2, 1)))

    def coarse(self, intervals: Intervals) -> RoundingGrid:
        """Return the steps that are wide beside the spread of their column, and have many ties."""
        side, n = intervals.by_row, self.sizes.shape[1]
        group = side.exact_idx % n
        count = np.maximum(np.bincount(group, minlength=n), 1)
        mean = np.bincount(group, side.value, n) / count
        spread = np.sqrt(np.bincount(group, (side.value - mean[group]) ** 2, n) / count)
        pairs = np.unique(np.stack([group.astype(np.float64), side.value]), axis=1)
        distinct = np.bincount(pairs[0].astype(np.intp), minlength=n)
        wide = (self.sizes >= _COARSE * spread) & (distinct <= _TIED * count)
        return RoundingGrid(np.where(wide, self.sizes, 0.0))

    @classmethod
    def of(cls, intervals: Intervals, shared: bool = False) -> RoundingGrid:
        """Look at the values that are nearest to the ends of each column, or of all if shared."""
        _, cols, lower, upper = intervals.triplets()
        n, group = (1, np.zeros_like(cols)) if shared else (intervals.shape[1], cols)
        face = face_value(lower, upper).astype(np.float64)
        sharing, most = _sharing(face, group, lower == upper, n)
        common = (lower != upper) | (sharing >= _RARE * most[group])
        group, face, lower, upper = (x[common] for x in (group, face, lower, upper))
        fewest = np.where(most >= _SHARED, 1, _FEWEST)
        ends = (upper < np.inf, -1.0), (lower > -np.inf, 1.0)  # a step at one end, not the other
        return cls(np.stack([_smallest(sign * face[w], group[w], fewest) for w, sign in ends]))

    def at(self, cols: NDArray) -> NDArray[np.float64]:
        """Return the steps of cells in these columns, of shape (2, n_cells)."""
        return self.sizes[:, cols % self.sizes.shape[1]]

    def inside(self, lower: NDArray, upper: NDArray, cols: NDArray) -> tuple[NDArray, NDArray]:
        """Return the bounds of cells with limits half a step further inside; ranges stay.

        A positive ceiling stays positive, since it may be taken to logarithms.
        """
        low, high = 0.5 * self.at(cols)
        high = np.where(lower > 0, np.minimum(high, 0.5 * lower), high)
        return (
            np.where(right_censored(upper), lower - high, lower).astype(lower.dtype),
            np.where(left_censored(lower), upper + low, upper).astype(upper.dtype),
        )

    def widen(self, intervals: Intervals) -> Intervals:
        """Return the table as it was before it was recorded in steps."""
        side = intervals.by_row
        lower, upper = self.inside(side.lower, side.upper, side.censored_idx)
        return replace(intervals, by_row=replace(side, lower=lower, upper=upper))


def apparent_levels(intervals: Intervals) -> NDArray | None:
    """Return the values of a table that has few, evenly spaced: levels, it seems; else None."""
    values = np.unique(intervals.by_row.value)
    several = 3 <= len(values) + bool(intervals.n_censored) and 2 <= len(values) <= _MOST_LEVELS
    if not several or intervals.n_exact < _EACH * len(values):
        return None
    steps = np.diff(values)
    return values if np.ptp(steps) <= _SAME * np.ptp(values) else None


def limits_on_grid(values: NDArray, ceiling: Any, floor: Any) -> tuple[Any, Any]:
    """Return limits of all values that lie half a step inside their ends at these ends.

    Of answers from 1 to 5 a ceiling of 4.5 says the same as one of 5.
    """
    too_low, too_high = _passes(-values, floor, -1.0), _passes(values, ceiling, 1.0)
    if too_low or too_high:
        seen = Intervals.from_table(values[:, None])
        low, high = 0.5 * RoundingGrid.of(seen, shared=True).sizes[:, 0]
        if too_high and high > 0 and np.isclose(float(values.max()) - high, ceiling):
            ceiling = float(values.max())
        if too_low and low > 0 and np.isclose(float(values.min()) + low, floor):
            floor = float(values.min())
    return ceiling, floor


def _passes(values: NDArray, limit: Any, sign: float) -> bool:
    """Tell whether values pass the one limit that all have, if that is how it was given."""
    return isinstance(limit, Real) and values.size > 0 and bool(values.max() > sign * limit)


def _sharing(
    value: NDArray, group: NDArray, exact: NDArray[np.bool_], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how many exact cells of its group share the value of a cell, and the most that do."""
    order = np.lexsort((value, group))
    changes = (np.diff(value[order]) != 0) | (np.diff(group[order]) != 0)
    run = np.zeros(len(order), np.intp)  # the same for the same group and value
    run[order[1:]] = np.cumsum(changes)
    count, most = np.bincount(run, exact)[run].astype(np.float64), np.zeros(n)
    np.maximum.at(most, group, count)
    return count, most


def _smallest(value: NDArray, group: NDArray, fewest: NDArray) -> NDArray[np.float64]:
    """Return the smallest of the few steps between the largest values of each group."""
    n = len(fewest)
    order = np.lexsort((value, group))
    value, group = value[order], group[order]
    step = np.diff(value)
    within = np.diff(group) == 0
    span = np.bincount(group[:-1], np.where(within, step, 0.0), n)
    is_step = within & (step > _SAME * span[group[:-1]])
    step, group = step[is_step], group[:-1][is_step]
    count = np.bincount(group, minlength=n)
    from_end = np.cumsum(count)[group] - np.arange(len(group))  # 1 for the last step of a group
    sizes = np.full(n, np.inf)
    near = from_end <= _NEAREST
    np.minimum.at(sizes, group[near], step[near])
    return np.where(count >= fewest, sizes, 0.0)
