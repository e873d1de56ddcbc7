"""The posterior of a table, as samples that were kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from declip.censoring import unbounded
from declip.intervals import Intervals
from declip.lowrank import GroupOffsets, LowRank
from declip.solvers.gibbs.chain import Model, Table
from declip.solvers.gibbs.detection import Predicted
from declip.solvers.gibbs.edges import EdgeSets, LevelCells
from declip.solvers.gibbs.new_rows import rows_under
from declip.solvers.gibbs.sample import Sample
from declip.solvers.gibbs.side import KnownSides
from declip.solvers.gibbs.text import summed_up
from declip.solvers.gibbs.units import Units
from declip.svd import SVD, product_svd
from declip.truncated import NoiseDistribution

__all__ = ["Posterior"]

_BLOCK = 2**22  # cells times samples that are looked at together
_BISECTIONS = 40
_MISSING_DRAWS = 400  # of the values of a missing cell, for its quantiles
_SOME_SAMPLES = 10  # that stand for all where their factors are brought together


@dataclass(frozen=True, eq=False)
class Posterior:
    """Samples of the factors of a table; every answer is an average over them.

    Attributes
    ----------
    samples : sequence of Sample
        What was kept.
    units : Units
        Of the columns.
    model : Model
        What was fitted.
    edges : EdgeSets or None
        Which columns share edges of levels, if these are sampled.
    chain_of : tuple of int
        The chain of each sample.
    """

    samples: Sequence[Sample]
    units: Units
    model: Model
    edges: EdgeSets | None = None
    chain_of: tuple[int, ...] = ()

    def _check_loaded(self) -> None:
        """Refuse samples that were read from a file and are not of one table."""
        if {sample.factors.shape[1] for sample in self.samples} != {len(self.units.scale)}:
            raise ValueError("samples and units are not of one table")

    def by_chain(self) -> tuple[Posterior, ...]:
        """Return the posterior by each chain alone."""
        chain_of = np.array(self.chain_of or (0,) * len(self.samples))
        return tuple(
            replace(
                self,
                samples=[s for s, own in zip(self.samples, chain_of, strict=True) if own == chain],
                chain_of=(int(chain),) * int(np.sum(chain_of == chain)),
            )
            for chain in np.unique(chain_of)
        )

    def __str__(self) -> str:
        """Return what was sampled, in a few lines."""
        return summed_up(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.samples[0].factors.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of what is asked of it."""
        return np.dtype(np.float64)

    @property
    def noise(self) -> NoiseDistribution:
        """The distribution of the noise."""
        return NoiseDistribution(self.model.df)

    def block(
        self, rows: NDArray | slice = slice(None), cols: NDArray | slice = slice(None)
    ) -> NDArray[np.float64]:
        """Return the mean of the low-rank matrix over the samples, as a dense block."""
        total = self.samples[0].factors.block(rows, cols).astype(np.float64)
        for sample in self.samples[1:]:
            total += sample.factors.block(rows, cols)
        return self.units.restore(total / len(self.samples), cols)

    def predict(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> NDArray[np.float64]:
        """Return the mean of the low-rank matrix at single cells."""
        return self.moments(rows, cols, threads)[0]

    def moments(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of cells whatever their intervals, noise included."""
        mean, square, noise = (np.zeros(len(rows)) for _ in range(3))
        for count, (x, scale) in enumerate(self._at(rows, cols, threads), 1):
            step = x - mean
            mean += step / count
            square += step * (x - mean)
            noise += (scale**2 - noise) / count
        variance = square / len(self.samples) + self.noise.variance * noise
        return self.units.restore(mean, cols), np.sqrt(variance) * self.units.scale[cols]

    def curve_parameters(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return the means of the limits and widths of the curves, in the units of the data, and r.

        Those of columns without a curve are NaN; the last is the share that is lost by chance.
        """
        curves = [sample.curve for sample in self.samples if sample.curve is not None]
        modelled = curves[0].sign != 0
        centre, width = (np.mean([getattr(c, n) for c in curves], 0) for n in ("centre", "width"))
        limit = self.units.restore(curves[0].sign * centre, slice(None))
        lost = float(np.mean([curve.lost for curve in curves]))
        width = np.where(modelled, width * self.units.scale, np.nan)
        return np.where(modelled, limit, np.nan), width, lost

    def missing_component(
        self, draw: int, rows: NDArray[np.int32], cols: NDArray[np.int32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of missing cells by one of the samples."""
        x, scale = _moments_missing(self.samples[draw], rows, cols)
        return self.units.restore(x, cols), scale * self.units.scale[cols]

    def missing_components(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], most: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return `components` of cells given that they are missing."""
        found = [self.missing_component(draw, rows, cols) for draw in self._some(most)]
        mean, sd = (np.array(part) for part in zip(*found, strict=True))
        return mean, sd

    def _some(self, most: int) -> list[int]:
        n = len(self.samples)
        return [int(k) for k in np.linspace(0, n - 1, min(most, n)).round()]

    def spread(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> NDArray[np.float64]:
        """Return the standard deviation of the low-rank matrix at single cells, without noise."""
        mean, square = np.zeros(len(rows)), np.zeros(len(rows))
        for count, (x, _) in enumerate(self._at(rows, cols, threads), 1):
            step = x - mean
            mean += step / count
            square += step * (x - mean)
        return np.sqrt(square / len(self.samples)) * self.units.scale[cols]

    def low_rank(self) -> LowRank:
        """Return a matrix of the rank of the samples that is nearest to the mean of some of them.

        Row offsets, where there are any, go with units that all columns share.
        """
        some = [s.factors for s in self.samples[:: max(1, len(self.samples) // _SOME_SAMPLES)]]
        scale, share = self.units.scale, 1 / len(some)
        P, Q = np.hstack([F.P for F in some]), np.hstack([F.Q for F in some])
        found = product_svd(P, share * scale[:, None] * Q)
        k = self.model.rank
        point = LowRank.from_svd(SVD(found.U[:, :k], found.S[:k], found.V[:, :k]))
        b = share * scale[0] * sum(F.row_offset.astype(np.float64) for F in some)
        c = share * scale * sum(F.col_offset.astype(np.float64) + F.mean for F in some)
        A, B = np.column_stack([point.A, b]), np.column_stack([point.B, c + self.units.shift])
        groups = some[0].groups
        if groups is not None:
            drawn = [F.groups.offsets for F in some if F.groups is not None]
            groups = GroupOffsets(groups.index, np.mean(drawn, axis=0) * scale)
        return LowRank(A, B, 0.0, True, groups)

    def components(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], most: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of cells by some samples, evenly spread over all.

        Each is of shape (n_samples, n_cells), with at most so many samples.
        """
        at = [self.samples[draw].at(rows, cols) for draw in self._some(most)]
        x, scale = (np.array(part) for part in zip(*at, strict=True))
        return self.units.restore(x, cols), scale * self.units.scale[cols]

    def component(
        self, which: int, rows: NDArray[np.int32], cols: NDArray[np.int32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of cells by one of the samples."""
        x, scale = self.samples[which].at(rows, cols)
        return self.units.restore(x, cols), scale * self.units.scale[cols]

    def column_means(self) -> NDArray[np.float64]:
        """Return the posterior means of the column means of the low-rank matrix."""
        total = np.zeros(self.shape[1])
        for F in (sample.factors for sample in self.samples):
            total += F.Q @ F.P.mean(axis=0) + F.col_offset + F.mean + F.row_offset.mean()
        return self.units.restore(total / len(self.samples), slice(None))

    def noise_scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean noise scale of the rows, relative, and of the columns, in their units."""
        rows, cols = np.zeros(self.shape[0]), np.zeros(self.shape[1])
        for sample in self.samples:
            rows += 1 / np.sqrt(sample.rows)
            cols += 1 / np.sqrt(sample.cols)
        return rows / len(self.samples), cols / len(self.samples) * self.units.scale

    def above(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threshold: NDArray, threads: int = 1
    ) -> NDArray[np.float64]:
        """Return the probability that cells, whatever their intervals, lie above a threshold."""
        cut = self._standard(np.broadcast_to(threshold, rows.shape), cols)
        total = np.zeros(len(rows))
        for x, scale in self._at(rows, cols, threads):
            total += self.noise.above((cut - x) / scale)
        return total / len(self.samples)

    def expected(
        self,
        rows: NDArray[np.int32],
        cols: NDArray[np.int32],
        lower: NDArray,
        upper: NDArray,
        threads: int = 1,
    ) -> NDArray[np.float64]:
        """Return the mean of cells that are known to lie in [lower, upper].

        Cells without bounds are missing: if that tells of their values, it counts.
        """
        total, unseen = np.zeros(len(rows)), self._unseen(lower, upper)
        for sample, (low, high) in zip(self.samples, self._ends(cols, lower, upper), strict=True):
            x, scale = sample.at(rows, cols, threads)
            value = x + scale * self.noise.mean_between((low - x) / scale, (high - x) / scale)
            if sample.curve is not None:
                value[unseen] = _moments_missing(sample, rows[unseen], cols[unseen])[0]
            total += value
        return self._within(total / len(self.samples), cols, lower, upper)

    def quantile(
        self,
        rows: NDArray[np.int32],
        cols: NDArray[np.int32],
        lower: NDArray,
        upper: NDArray,
        share: NDArray,
    ) -> NDArray[np.float64]:
        """Return quantiles of cells that are known to lie in [lower, upper].

        Parameters
        ----------
        rows, cols, lower, upper : ndarray of shape (n_cells,)
            The cells.
        share : ndarray of shape (n_cells,)
            The probability below the quantile.
        """
        out = np.empty(len(rows))
        size, unseen = max(1, _BLOCK // len(self.samples)), self._unseen(lower, upper)
        for part in _blocks(np.flatnonzero(~unseen), size):
            x, scale = (np.array(a) for a in zip(*self._at(rows[part], cols[part]), strict=True))
            ends = self._all_ends(cols[part], lower[part], upper[part])
            out[part] = _mixture_quantile(self.noise, x, scale, *ends, share[part])
        for part in _blocks(np.flatnonzero(unseen), size):
            out[part] = self._missing_quantile(rows[part], cols[part], share[part])
        return self._within(out, cols, lower, upper)

    def _missing_quantile(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], share: NDArray
    ) -> NDArray[np.float64]:
        """Return quantiles of missing cells, of values drawn under every sample."""
        rng, each = np.random.default_rng(0), -(-_MISSING_DRAWS // len(self.samples))
        drawn = [_draw_missing(s, rows, cols, rng) for s in self.samples for _ in range(each)]
        ordered = np.sort(drawn, axis=0)
        at = np.clip(np.ceil(share * len(ordered)).astype(np.intp) - 1, 0, len(ordered) - 1)
        return ordered[at, np.arange(len(rows))]

    def _unseen(self, lower: NDArray, upper: NDArray) -> NDArray[np.bool_]:
        """Tell which cells are missing, if that tells of their values."""
        if self.samples[0].curve is None:
            return np.zeros(np.shape(lower), bool)
        return unbounded(lower, upper)

    def share_below(
        self,
        rows: NDArray[np.int32],
        cols: NDArray[np.int32],
        lower: NDArray,
        upper: NDArray,
        value: NDArray,
    ) -> NDArray[np.float64]:
        """Return the probability that cells known to lie in [lower, upper] are below a value."""
        at, total = self._standard(value, cols), np.zeros(len(rows))
        ends = self._ends(cols, lower, upper)
        for (x, scale), (low, high) in zip(self._at(rows, cols), ends, strict=True):
            total += self.noise.share_between((low - x) / scale, (high - x) / scale)(
                (at - x) / scale
            )
        return total / len(self.samples)

    def complete(
        self,
        which: int,
        rows: NDArray[np.int32],
        cols: NDArray[np.int32],
        lower: NDArray,
        upper: NDArray,
        seed: int,
    ) -> NDArray[np.float64]:
        """Draw the values of cells under one of the samples, noise included."""
        sample, unseen = self.samples[which], self._unseen(lower, upper)
        x, scale = sample.at(rows, cols)
        bounds = self._ends_under(sample, cols, lower, upper)
        z = self.noise.draw_between(x, scale, *bounds, seed)
        if unseen.any():
            at = rows[unseen], cols[unseen]
            z[unseen] = _draw_missing(sample, *at, np.random.default_rng(seed))
        return self._within(z, cols, lower, upper)

    def new_rows(
        self,
        intervals: Intervals,
        seed: int,
        threads: int = 1,
        *,
        independent: bool = False,
        known: KnownSides | None = None,
    ) -> Posterior:
        """Draw the rows of another table under the columns of each sample.

        All rows see the same random numbers, so that what is drawn for a row does not depend on the
        others; or, ``independent``, each has its own. ``known`` are their features and groups, if
        the fit had any.
        """
        table = Table.of(self.units.standardise(intervals), self.model, known=known)
        if self.edges is not None:
            levels = LevelCells.of(intervals.bounded(), self.edges, self.units)
            table = replace(table, levels=levels)
        drawn = rows_under(self.samples, table, self.model, (seed, not independent), threads)
        return replace(self, samples=tuple(drawn))

    def _at(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        return (sample.at(rows, cols, threads) for sample in self.samples)

    def _ends(
        self, cols: NDArray[np.int32], lower: NDArray, upper: NDArray
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield the bounds of cells by each sample, in standardised units."""
        return (self._ends_under(sample, cols, lower, upper) for sample in self.samples)

    def _ends_under(
        self, sample: Sample, cols: NDArray[np.int32], lower: NDArray, upper: NDArray
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.edges is not None and sample.cuts is not None:
            lower, upper, _ = self.edges.moved(sample.cuts, cols, lower, upper)
        return self._standard(lower, cols), self._standard(upper, cols)

    def _all_ends(
        self, cols: NDArray[np.int32], lower: NDArray, upper: NDArray
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of cells, of shape (n_samples, n_cells) where they are sampled."""
        if self.edges is None:
            return self._standard(lower, cols), self._standard(upper, cols)
        low, high = zip(*self._ends(cols, lower, upper), strict=True)
        return np.array(low), np.array(high)

    def _within(
        self, z: NDArray, cols: NDArray[np.int32], lower: NDArray, upper: NDArray
    ) -> NDArray[np.float64]:
        """Return cells in the units of the data, within bounds that are not sampled."""
        if self.edges is not None:
            at_edge = self.edges.set_of[cols] >= 0
            lower, upper = np.where(at_edge, -np.inf, lower), np.where(at_edge, np.inf, upper)
        return np.clip(self.units.restore(z, cols), lower, upper)

    def _standard(self, values: NDArray, cols: NDArray[np.int32]) -> NDArray[np.float64]:
        return (values - self.units.shift[cols]) / self.units.scale[cols]


def _mixture_quantile(
    noise: NoiseDistribution,
    x: NDArray,
    scale: NDArray,
    lower: NDArray,
    upper: NDArray,
    share: NDArray,
) -> NDArray[np.float64]:
    """Invert the mean over samples (first axis) of what x + scale * noise is in the bounds."""
    a, b = (lower - x) / scale, (upper - x) / scale
    offset = noise.mean_between(a, b)
    far = 10 * (1 + abs(offset)).max(axis=0) * scale.max(axis=0)
    centre = x + scale * offset
    low = np.maximum(np.atleast_2d(lower).min(axis=0), centre.min(axis=0) - far)
    high = np.minimum(np.atleast_2d(upper).max(axis=0), centre.max(axis=0) + far)
    share_below = noise.share_between(a, b)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        below = share_below((middle - x) / scale).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _blocks(which: NDArray[np.intp], size: int) -> Iterator[NDArray[np.intp]]:
    return (which[start : start + size] for start in range(0, len(which), size))


def _moments_missing(
    sample: Sample, rows: NDArray[np.int32], cols: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of missing cells under a sample."""
    predicted = Predicted(*sample.at(rows, cols), cols)
    return predicted[:2] if sample.curve is None else sample.curve.moments(predicted)


def _draw_missing(
    sample: Sample, rows: NDArray[np.int32], cols: NDArray[np.int32], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw missing cells under a sample whose curve tells of them."""
    if sample.curve is None:
        raise ValueError("a sample without a curve says nothing of missing cells")
    return sample.curve.draw(Predicted(*sample.at(rows, cols), cols), rng)
