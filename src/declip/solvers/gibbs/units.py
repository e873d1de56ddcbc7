"""The units of a table: where its columns lie and how far they spread, clipped cells included."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from declip.cells import Cells
from declip.intervals import Intervals, face_value
from declip.truncated import moments

__all__ = ["Units"]

_EM_STEPS = 200
_EM_TOL = 1e-3  # units need no more: the noise scales are sampled
_ENOUGH_CELLS = 100_000  # for the units of a table as a whole


@dataclass(frozen=True, eq=False)
class Units:
    """A cell of column j is ``shift[j] + scale[j]`` times what the sampler works with.

    Attributes
    ----------
    shift, scale : ndarray of shape (n_cols,)
        Mean and standard deviation of each column by a censored normal fit, or of all cells.
    """

    shift: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, intervals: Intervals, shared: bool) -> Units:
        """Fit a censored normal to each column, or to all cells alike if ``shared``.

        Of columns in levels the numbers of these are taken for the values.
        """
        intervals = _at_marks(intervals)
        side, n_cols = intervals.by_row, intervals.shape[1]
        if not shared:
            return cls(*_censored_normals(side, side.exact_idx, side.censored_idx, n_cols))
        some = slice(None, None, max(1, len(intervals) // _ENOUGH_CELLS))
        cells = replace(
            side, value=side.value[some], lower=side.lower[some], upper=side.upper[some]
        )
        zeros = np.zeros(len(cells.value), np.int32), np.zeros(len(cells.lower), np.int32)
        shift, scale = _censored_normals(cells, *zeros, 1)
        return cls(np.repeat(shift, n_cols), np.repeat(scale, n_cols))

    def extended(self, new: Intervals, known: int) -> Units:
        """Return the units with those of the columns after the first ``known``, by their cells.

        Where all columns share theirs, so do the others; one whose cells do not tell its spread
        gets the middle one of those known.
        """
        shift, scale = (np.resize(part, new.shape[1]) for part in (self.shift, self.scale))
        if known > 1 and np.ptp(self.shift) == np.ptp(self.scale) == 0:
            return Units(shift, scale)
        side = new.by_row
        found = Units.of(new, shared=False)
        has_spread = _several_values(side.value.astype(np.float64), side.exact_idx, len(scale))
        shift[known:] = found.shift[known:]
        scale[known:] = np.where(has_spread, found.scale, np.median(self.scale))[known:]
        return Units(shift, scale)

    def _check_loaded(self) -> None:
        """Refuse units that were read from a file and are none."""
        same = self.shift.shape == self.scale.shape and self.scale.ndim == 1
        if not (same and np.isfinite([self.shift, self.scale]).all() and np.all(self.scale > 0)):
            raise ValueError("the units of a table are not numbers above zero, one for each column")

    @property
    def level(self) -> NDArray[np.float64]:
        """Where each column lies among all, in its own units: standard scores, at most 3."""
        away = (self.shift - np.median(self.shift)) / self.scale
        spread = away.std()
        return np.clip((away - away.mean()) / spread, -3, 3) if spread > 0 else 0 * away

    def standardise(self, intervals: Intervals) -> Intervals:
        """Return the table in these units, in double precision."""
        cells = intervals.by_row.mapped(lambda x, idx: (x - self.shift[idx]) / self.scale[idx])
        return replace(intervals, by_row=cells)

    def restore(self, x: NDArray, cols: NDArray | slice) -> NDArray:
        """Return cells in the units of the data."""
        return x * self.scale[cols] + self.shift[cols]


def _at_marks(intervals: Intervals) -> Intervals:
    """Return the table with cells in levels at the numbers of these."""
    if intervals.levels is None:
        return intervals
    _, cols, lower, upper = intervals.triplets()
    face = intervals.levels.face_values(cols, lower, upper)
    at_mark = ~np.isnan(face)
    return intervals.with_bounds(np.where(at_mark, face, lower), np.where(at_mark, face, upper))


def _censored_normals(
    side: Cells, exact: NDArray[np.int32], censored: NDArray[np.int32], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of n groups of cells, by EM for a censored normal.

    A group without two different exact values says nothing of its scale: it gets the middle one of
    the others, and its mean is that of its limits.
    """
    value = side.value.astype(np.float64)
    has_spread = _several_values(value, exact, n)
    seen = _Moments.of(value, exact, n)
    group, lower, upper, times = _distinct(censored, side.lower, side.upper)
    face = face_value(lower, upper)
    shift, scale = seen.pooled(_Moments.of(face, group, n, times))
    scale = np.where(has_spread & (scale > 0), scale, 1.0)
    for _ in range(_EM_STEPS if len(group) else 0):
        ends = [(end - shift[group]) / scale[group] for end in (lower, upper)]
        excess, variance = moments(*ends)
        expected = shift[group] + scale[group] * excess
        hidden = _Moments.of(expected, group, n, times, scale[group] ** 2 * variance)
        mean, spread = seen.pooled(hidden)
        new_shift, new_scale = np.where(has_spread, (mean, spread), (shift, scale))
        step = np.maximum(abs(new_shift - shift), abs(new_scale - scale)) / scale
        shift, scale = new_shift, new_scale
        if step.max() < _EM_TOL:
            break
    middle = float(np.median(scale[has_spread])) if has_spread.any() else 1.0
    return shift, np.where(has_spread, scale, middle)


@dataclass(frozen=True, eq=False)
class _Moments:
    """How many cells each group has, their mean, and their squares about it summed."""

    count: NDArray
    mean: NDArray
    squares: NDArray

    @classmethod
    def of(
        cls,
        x: NDArray,
        group: NDArray[np.int32],
        n: int,
        times: NDArray | float = 1.0,
        variance: NDArray | float = 0.0,
    ) -> _Moments:
        """Count cells of means x and these variances, each ``times`` over."""
        times = np.broadcast_to(times, x.shape)
        count = np.bincount(group, times, n)
        mean = np.bincount(group, times * x, n) / np.maximum(count, 1)
        squares = np.bincount(group, times * ((x - mean[group]) ** 2 + variance), n)
        return cls(count, mean, squares)

    def pooled(self, other: _Moments) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of both kinds of cells together."""
        parts = (self, other)
        count = np.maximum(self.count + other.count, 1)
        mean = sum(part.count * part.mean for part in parts) / count
        squares = sum(part.squares + part.count * (part.mean - mean) ** 2 for part in parts)
        return mean, np.sqrt(squares / count)


def _distinct(
    group: NDArray[np.int32], lower: NDArray, upper: NDArray
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the different intervals of each group, and how often each is there.

    A column under one limit has one, however many of its cells were clipped.
    """
    order = np.lexsort((upper, lower, group))
    group, lower, upper = group[order], lower[order], upper[order]
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(group) != 0) | (lower[1:] != lower[:-1]) | (upper[1:] != upper[:-1])
    first = np.flatnonzero(new)
    times = np.diff(first, append=len(order))
    return group[first], lower[first].astype(np.float64), upper[first].astype(np.float64), times


def _several_values(value: NDArray, group: NDArray[np.int32], n: int) -> NDArray[np.bool_]:
    """Tell which groups have exact cells of different values."""
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, group, value)
    np.maximum.at(high, group, value)
    return low < high
