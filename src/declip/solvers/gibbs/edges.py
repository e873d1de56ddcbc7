r"""The edges between ordered levels, sampled with the factors.

A cell of level l says that its value lies between two edges, :math:`t_{l} < z \le t_{l + 1}`. Where
the values lie and how far they spread is up to offsets, factors and noise, so that two edges are
*pinned* where the scale has them; what is sampled is how wide the levels are beside each other.
With the logs y of the gaps between the edges over those of the scale, less their mean,

.. math:: y_g \sim N(\mu, \tau^2)

for each set g of edges: one for all columns of a scale, or one for each column. For "pooled" sets
:math:`\mu` and :math:`\tau` are sampled; otherwise they are 0 and 1. Edges move one at a time by
Metropolis steps with the values of the cells integrated out (Cowles 1996), which are then drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from declip.intervals import Intervals
from declip.levels import Levels
from declip.solvers.gibbs.units import Units

__all__ = ["EdgeDraw", "EdgeSets", "GapPool", "LevelCells"]

POOL_SHAPE, POOL_RATE = 2.0, 0.1  # inverse gamma prior of the variance of the logs of gaps
_FIRST_STEP, _ACCEPTED, _SETTLING = 0.1, 0.4, 0.6  # of the random walks of edges
_TINY = 1e-300
_PINNED_AT = (0.25, 0.75)  # shares of the cells below the pinned edges, as nearly as may be


@dataclass(frozen=True, eq=False)
class EdgeSets:
    """Which columns share which edges, and what of these is fixed.

    Attributes
    ----------
    levels : Levels
        The scales of the columns.
    set_of : ndarray of shape (n_cols,)
        The set of edges of each column; -1 for a column of numbers.
    scale_of : ndarray of shape (n_sets,)
        The scale that each set belongs to.
    pins : ndarray of shape (n_scales, 2)
        Which two cuts of each scale are fixed (one, twice, of two levels).
    pooled : bool
        Whether what the sets of a scale have in common is sampled.
    """

    levels: Levels
    set_of: NDArray[np.int32]
    scale_of: NDArray[np.int32]
    pins: NDArray[np.int32]
    pooled: bool

    @classmethod
    def of(cls, cells: Intervals, kind: str) -> EdgeSets | None:
        """Return the sets that a table in levels has: "shared", by "column", or "pooled".

        None if no edge is free: of "known" ones, or of two or three levels.
        """
        levels = cells.levels
        if levels is None or kind == "known" or max(map(len, levels.scales)) < 4:
            return None
        pins, of_column = _pins(cells, levels), levels.of_column
        if kind == "shared":
            return cls(levels, of_column, np.arange(len(pins), dtype=np.int32), pins, False)
        in_levels = np.flatnonzero(of_column >= 0)
        set_of = np.full(len(of_column), -1, np.int32)
        set_of[in_levels] = np.arange(len(in_levels))
        return cls(levels, set_of, of_column[in_levels], pins, kind == "pooled")

    def _check_loaded(self) -> None:
        """Refuse sets that were read from a file and do not fit together."""
        fits = len(self.set_of) == len(self.levels.of_column)
        if not fits or self.set_of.max() >= len(self.scale_of):
            raise ValueError("a column has edges of a set that is not there")

    @cached_property
    def nominal(self) -> NDArray[np.float64]:
        """The cuts of each set as its scale has them, of shape (n_sets, n_levels + 1)."""
        return self.levels.cuts[self.scale_of]

    @cached_property
    def is_free(self) -> NDArray[np.bool_]:
        """Which cuts of each set are edges, and not pinned."""
        number = np.arange(self.nominal.shape[1])
        pinned = (self.pins[self.scale_of][:, :, None] == number).any(axis=1)
        return np.isfinite(self.nominal) & ~pinned

    @cached_property
    def gap_counts(self) -> NDArray[np.intp]:
        """How many gaps there are between the edges of each set."""
        return np.maximum(np.isfinite(self.nominal).sum(axis=1) - 1, 1)

    def log_gaps(self, cuts: NDArray) -> NDArray[np.float64]:
        """Return y: logs of gaps over those of the scale, less their mean; 0 where there is none.

        Of shape (n_sets, n_levels - 2), for the longest scale.
        """
        gaps, ratio = self._gaps(cuts), self._gaps(self.nominal)
        y = np.where(gaps > 0, np.log(np.maximum(gaps, _TINY) / np.where(ratio > 0, ratio, 1)), 0.0)
        return np.where(gaps > 0, y - y.sum(axis=1, keepdims=True) / self.gap_counts[:, None], 0.0)

    def _gaps(self, cuts: NDArray) -> NDArray[np.float64]:
        edges = np.where(np.isfinite(cuts), cuts, np.nan)[:, 1:-1]
        return np.nan_to_num(np.diff(edges, axis=1), nan=0.0)

    def log_prior(self, cuts: NDArray, pool: GapPool) -> NDArray[np.float64]:
        """Return the log-density of the edges of each set.

        Pinned edges fix where gaps begin and how wide they are in all: the Jacobian of y by the
        free edges is the product of 1 / gap, whichever edges are pinned.
        """
        gaps = self._gaps(cuts)
        away = np.where(gaps > 0, self.log_gaps(cuts) - pool.mean[self.scale_of], 0.0)
        logs = np.log(np.where(gaps > 0, gaps, 1.0)).sum(axis=1)
        return -0.5 * (away**2).sum(axis=1) / pool.variance[self.scale_of] - logs

    def from_log_gaps(self, y: NDArray) -> NDArray[np.float64]:
        """Return the cuts whose gaps are those of the scales times exp(y), pins in their places."""
        nominal = self.nominal
        gaps = self._gaps(nominal) * np.exp(y)
        raw = np.concatenate([np.zeros((len(gaps), 1)), np.cumsum(gaps, axis=1)], axis=1)
        sets, (a, b) = np.arange(len(raw)), self.pins[self.scale_of].T
        low, high = nominal[sets, a], nominal[sets, b]
        reach = raw[sets, b - 1] - raw[sets, a - 1]
        stretch = np.where(reach > 0, (high - low) / np.where(reach > 0, reach, 1), 1.0)
        edges = low[:, None] + stretch[:, None] * (raw - raw[sets, a - 1][:, None])
        cuts = nominal.copy()
        cuts[:, 1:-1] = np.where(np.isfinite(nominal[:, 1:-1]), edges, nominal[:, 1:-1])
        return cuts

    def moved(
        self, cuts: NDArray, cols: NDArray, lower: NDArray, upper: NDArray
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return bounds of cells with edges of the scale as the cuts have them, and which are."""
        out = []
        for bound in (lower, upper):
            number = self.levels.cut_numbers(cols, bound)
            out.append(np.where(number < 0, bound, cuts[self.set_of[cols], number]))
        return out[0], out[1], (out[0] != lower) | (out[1] != upper)


def _pins(cells: Intervals, levels: Levels) -> NDArray[np.int32]:
    """Return for each scale the edges below which a quarter and three quarters of its cells lie."""
    _, cols, lower, _ = cells.triplets()
    number, scale = levels.cut_numbers(cols, lower), levels.of_column[cols]
    pins = np.ones((len(levels.scales), 2), np.int32)
    for which, own in enumerate(levels.scales):
        counts = np.bincount(number[(scale == which) & (number >= 0)], minlength=len(own))
        below = np.cumsum(counts)[:-1] / max(counts.sum(), 1)
        low, high = (int(np.argmin(abs(below - share))) for share in _PINNED_AT)
        if low == high and len(below) > 1:
            other = min(
                {low - 1, low + 1} & {*range(len(below))}, key=lambda k: abs(below[k] - 0.5)
            )
            low, high = sorted((low, other))
        pins[which] = low + 1, high + 1
    return pins


@dataclass(frozen=True, eq=False)
class LevelCells:
    """The censored cells of a table whose bounds are edges.

    Attributes
    ----------
    sets : EdgeSets
        Which edges.
    units : Units
        Of the sampler; edges are in those of the table.
    at : ndarray of int
        Positions among the censored cells, by row.
    rows, cols : ndarray of int
        Where they are.
    low, high : ndarray of int
        Between which cuts they lie.
    """

    sets: EdgeSets
    units: Units
    at: NDArray[np.intp]
    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    low: NDArray[np.intp]
    high: NDArray[np.intp]

    @classmethod
    def of(cls, cells: Intervals, sets: EdgeSets, units: Units) -> LevelCells:
        """Find them in a table in the units of the data."""
        side, levels = cells.by_row, sets.levels
        cols = side.censored_idx
        low, high = (levels.cut_numbers(cols, bound) for bound in (side.lower, side.upper))
        at = np.flatnonzero((low >= 0) & (high > low))
        rows = side.censored_rows()[at]
        return cls(sets, units, at, rows, cols[at], low[at], high[at])

    def limits(self, cuts: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of the cells, in units of the sampler."""
        which = self.which
        shift, scale = self.units.shift[self.cols], self.units.scale[self.cols]
        return (cuts[which, self.low] - shift) / scale, (cuts[which, self.high] - shift) / scale

    @cached_property
    def beside(self) -> list[NDArray[np.intp]]:
        """The cells that each cut bounds."""
        cuts = range(self.sets.nominal.shape[1])
        return [np.flatnonzero((self.low == k) | (self.high == k)) for k in cuts]

    @cached_property
    def which(self) -> NDArray[np.int32]:
        """The set of the edges of each cell."""
        return self.sets.set_of[self.cols]

    def log_likelihood(
        self, cuts: NDArray, x: NDArray, scale: NDArray, some: NDArray | slice = slice(None)
    ) -> NDArray[np.float64]:
        """Return the sum over the cells of each set of log P(level), for some cells."""
        which = self.which[some]
        a = (cuts[which, self.low[some]] - x[some]) / scale[some]
        b = (cuts[which, self.high[some]] - x[some]) / scale[some]
        # in the tail where both are small
        with np.errstate(invalid="ignore"):
            flip = a + b > 0
        mass = ndtr(np.where(flip, -a, b)) - ndtr(np.where(flip, -b, a))
        return np.bincount(which, np.log(np.maximum(mass, _TINY)), len(cuts)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class GapPool:
    """What the sets of a scale have in common: mean and variance of the logs of gaps.

    Attributes
    ----------
    mean : ndarray of shape (n_scales, n_levels - 2)
        The sum of each is 0.
    variance : ndarray of shape (n_scales,)
        About it.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @classmethod
    def start(cls, sets: EdgeSets) -> GapPool:
        """Return means of 0, and variances of 1."""
        n_scales, n_cuts = sets.levels.cuts.shape
        return cls(np.zeros((n_scales, max(n_cuts - 3, 0))), np.ones(n_scales))

    def draw(self, sets: EdgeSets, cuts: NDArray, rng: np.random.Generator) -> GapPool:
        """Draw the mean, of variance 1 in every direction, then the variance, of each scale."""
        y, mean, variance = sets.log_gaps(cuts), self.mean.copy(), self.variance.copy()
        for which, scale in enumerate(sets.levels.scales):
            own, n = y[sets.scale_of == which], len(scale) - 2
            if n < 2:
                continue
            precision = 1 + len(own) / variance[which]
            noise = rng.standard_normal(n)
            centre = own[:, :n].sum(axis=0) / variance[which] / precision
            mean[which, :n] = centre + (noise - noise.mean()) / np.sqrt(precision)
            squares = ((own[:, :n] - mean[which, :n]) ** 2).sum()
            shape = POOL_SHAPE + 0.5 * len(own) * (n - 1)
            variance[which] = (POOL_RATE + 0.5 * squares) / rng.standard_gamma(shape)
        return GapPool(mean, variance)


@dataclass(frozen=True, eq=False)
class EdgeDraw:
    """The state of a chain that belongs to edges; each sweep returns a new one.

    Attributes
    ----------
    cuts : ndarray of shape (n_sets, n_levels + 1)
        The present edges, in the units of the table, from minus to plus infinity.
    pool : GapPool
        What sets have in common.
    log_step : ndarray of shape (n_sets, n_levels + 1)
        Logs of the steps of the random walks, in units of the smallest gap of the scale.
    log_joint : ndarray of shape (n_scales, n_levels - 2)
        The same for moves of a gap of all sets of a scale together.
    """

    cuts: NDArray[np.float64]
    pool: GapPool
    log_step: NDArray[np.float64]
    log_joint: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def start(cls, sets: EdgeSets) -> EdgeDraw:
        """Begin with the edges of the scales."""
        pool, cuts = GapPool.start(sets), sets.nominal
        first = np.log(_FIRST_STEP)
        return cls(cuts, pool, np.full(cuts.shape, first), np.full(pool.mean.shape, first))

    def sweep(
        self,
        cells: LevelCells,
        x: NDArray,
        scale: NDArray,
        n_sweeps: int,
        rng: np.random.Generator,
    ) -> EdgeDraw:
        """Move every free edge, given the predictions of the cells, in the units of the table."""
        found, rate = self, (n_sweeps + 1) ** -_SETTLING
        for k in np.flatnonzero(cells.sets.is_free.any(axis=0)):
            found = found._move_edge(int(k), cells, x, scale, rate, rng)
        if not cells.sets.pooled:
            return found
        found = found._move_together(cells, x, scale, n_sweeps, rng)
        return replace(found, pool=found.pool.draw(cells.sets, found.cuts, rng))

    def _move_edge(
        self,
        k: int,
        cells: LevelCells,
        x: NDArray,
        scale: NDArray,
        rate: float,
        rng: np.random.Generator,
    ) -> EdgeDraw:
        """Move cut k of every set in which it is free by a Metropolis step."""
        sets, free = cells.sets, cells.sets.is_free[:, k]
        cuts, some = self.cuts.copy(), cells.beside[k]
        unit = np.diff(sets.nominal[:, 1:3], axis=1)[:, 0]
        step = np.exp(self.log_step[:, k]) * unit * rng.standard_normal(len(cuts))
        cuts[free, k] += step[free]
        inside = free & (cuts[:, k] > cuts[:, k - 1]) & (cuts[:, k] < cuts[:, k + 1])
        cuts[~inside] = self.cuts[~inside]
        gain = sets.log_prior(cuts, self.pool) - sets.log_prior(self.cuts, self.pool)
        gain += cells.log_likelihood(cuts, x, scale, some)
        gain -= cells.log_likelihood(self.cuts, x, scale, some)
        chance = np.where(inside, np.exp(np.minimum(gain, 0.0)), 0.0)
        takes = rng.random(len(cuts)) < chance
        log_step = self.log_step.copy()
        log_step[free, k] += rate * (chance[free] - _ACCEPTED)
        return replace(self, cuts=np.where(takes[:, None], cuts, self.cuts), log_step=log_step)

    def _move_together(
        self, cells: LevelCells, x: NDArray, scale: NDArray, n_sweeps: int, rng: np.random.Generator
    ) -> EdgeDraw:
        """Widen one gap of all sets of each scale, and of their mean, by a Metropolis step."""
        sets, n_scales = cells.sets, len(self.pool.mean)
        counts = np.array([len(scale) - 2 for scale in sets.levels.scales])
        gap = np.arange(n_scales), n_sweeps % np.maximum(counts, 1)
        shift = _widened(gap[1], counts, self.pool.mean.shape[1])
        shift *= (np.exp(self.log_joint[gap]) * rng.standard_normal(n_scales))[:, None]
        cuts = sets.from_log_gaps(sets.log_gaps(self.cuts) + shift[sets.scale_of])
        mean = self.pool.mean + shift
        # in the logs of gaps and their mean the move is a shift: only the prior of the mean changes
        gain = 0.5 * (self.pool.mean**2 - mean**2).sum(axis=1)
        change = cells.log_likelihood(cuts, x, scale) - cells.log_likelihood(self.cuts, x, scale)
        chance = np.exp(np.minimum(gain + np.bincount(sets.scale_of, change, n_scales), 0.0))
        takes = (rng.random(n_scales) < chance)[:, None]
        log_joint = self.log_joint.copy()
        rate = (n_sweeps // np.maximum(counts, 1) + 1.0) ** -_SETTLING
        log_joint[gap] += rate * (chance - _ACCEPTED)
        pool = replace(self.pool, mean=np.where(takes, mean, self.pool.mean))
        kept = np.where(takes[sets.scale_of], cuts, self.cuts)
        return EdgeDraw(kept, pool, self.log_step, log_joint)


def _widened(gap: NDArray, counts: NDArray, n_gaps: int) -> NDArray[np.float64]:
    """Return the direction in which one gap of each scale is widened, the mean of its logs 0."""
    places = np.arange(n_gaps)
    share = 1 / np.maximum(counts, 1)[:, None]
    inside = (places < counts[:, None]) & (counts > 1)[:, None]
    return np.where(inside, (places == gap[:, None]) - share, 0.0)
