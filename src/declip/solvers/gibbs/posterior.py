"""The posterior of a table, as samples that were kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from declip import kernels
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.solvers.gibbs.chain import Chain, Model, first_draws, row_problem
from declip.solvers.gibbs.priors import POOLED_DF, Gaussian, NoiseScales, row_precision
from declip.solvers.gibbs.units import Units
from declip.svd import SVD, product_svd
from declip.truncated import NoiseDistribution

__all__ = ["Posterior", "Sample"]

_BLOCK = 2**22  # cells times samples that are looked at together
_FIRST_SWEEPS, _MORE_SWEEPS = 10, 3  # of new rows, at the first sample and at each one after it
_BISECTIONS = 40
_SOME_SAMPLES = 10  # that stand for all where their factors are brought together


@dataclass(frozen=True, eq=False)
class Sample:
    """One draw: factors in single precision, precisions of the noise, and the prior of the rows."""

    factors: LowRank
    rows: NDArray[np.float32]
    cols: NDArray[np.float32]
    row_prior: Gaussian

    @classmethod
    def of(cls, chain: Chain) -> Sample:
        """Keep the present state of a chain."""
        rows, cols = (p.astype(np.float32) for p in (chain.scales.rows, chain.scales.cols))
        return cls(chain.factors.astype(np.float32), rows, cols, chain.row_prior)

    def _check_loaded(self) -> None:
        """Refuse a draw that was read from a file and is none."""
        for precision, size in zip((self.rows, self.cols), self.factors.shape, strict=True):
            positive = np.isfinite(precision).all() and np.all(precision > 0)
            if not (precision.shape == (size,) and positive):
                raise ValueError("the precisions of a draw are not numbers above zero")

    def at(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the low-rank matrix and the noise scale at cells, in standardised units."""
        precision = self.rows[rows].astype(np.float64) * self.cols[cols]
        x = self.factors.predict(rows, cols, threads).astype(np.float64)
        return x, 1 / np.sqrt(precision)


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
    """

    samples: Sequence[Sample]
    units: Units
    model: Model

    def _check_loaded(self) -> None:
        """Refuse samples that were read from a file and are not of one table."""
        if {sample.factors.shape[1] for sample in self.samples} != {len(self.units.scale)}:
            raise ValueError("samples and units are not of one table")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.samples[0].factors.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of what is asked of it."""
        return np.dtype(np.float64)

    @property
    def law(self) -> NoiseDistribution:
        """The law of the noise."""
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
        variance = square / len(self.samples) + self.law.variance * noise
        return self.units.restore(mean, cols), np.sqrt(variance) * self.units.scale[cols]

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
        return LowRank(A, B, 0.0, True)

    def components(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], most: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of cells by some samples, evenly spread over all.

        Each is of shape (n_samples, n_cells), with at most so many samples.
        """
        chosen = np.linspace(0, len(self.samples) - 1, min(most, len(self.samples))).round()
        at = [self.samples[int(k)].at(rows, cols) for k in chosen]
        x, scale = (np.array(part) for part in zip(*at, strict=True))
        return self.units.restore(x, cols), scale * self.units.scale[cols]

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
            total += self.law.above((cut - x) / scale)
        return total / len(self.samples)

    def expected(
        self,
        rows: NDArray[np.int32],
        cols: NDArray[np.int32],
        lower: NDArray,
        upper: NDArray,
        threads: int = 1,
    ) -> NDArray[np.float64]:
        """Return the mean of cells that are known to lie in [lower, upper]."""
        low, high = self._standard(lower, cols), self._standard(upper, cols)
        total = np.zeros(len(rows))
        for x, scale in self._at(rows, cols, threads):
            total += x + scale * self.law.mean_between((low - x) / scale, (high - x) / scale)
        return np.clip(self.units.restore(total / len(self.samples), cols), lower, upper)

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
        low, high = self._standard(lower, cols), self._standard(upper, cols)
        size = max(1, _BLOCK // len(self.samples))
        for part in (slice(start, start + size) for start in range(0, len(rows), size)):
            x, scale = (np.array(a) for a in zip(*self._at(rows[part], cols[part]), strict=True))
            ends = low[part], high[part]
            out[part] = _mixture_quantile(self.law, x, scale, *ends, share[part])
        return np.clip(self.units.restore(out, cols), lower, upper)

    def share_below(
        self,
        rows: NDArray[np.int32],
        cols: NDArray[np.int32],
        lower: NDArray,
        upper: NDArray,
        value: NDArray,
    ) -> NDArray[np.float64]:
        """Return the probability that cells known to lie in [lower, upper] are below a value."""
        low, high, at = (self._standard(v, cols) for v in (lower, upper, value))
        total = np.zeros(len(rows))
        for x, scale in self._at(rows, cols):
            total += self.law.share_between((low - x) / scale, (high - x) / scale)((at - x) / scale)
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
        x, scale = self.samples[which].at(rows, cols)
        bounds = self._standard(lower, cols), self._standard(upper, cols)
        z = self.law.draw_between(x, scale, *bounds, seed)
        return np.clip(self.units.restore(z, cols), lower, upper)

    def new_rows(self, intervals: Intervals, seed: int, threads: int = 1) -> Posterior:
        """Draw the rows of another table under the columns of each sample.

        All rows see the same random numbers: what is drawn for a row does not depend on the others.
        """
        cells = self.units.standardise(intervals)
        samples = tuple(_rows_under(self.samples, cells, self.model, seed, threads))
        return replace(self, samples=samples)

    def _at(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        return (sample.at(rows, cols, threads) for sample in self.samples)

    def _standard(self, values: NDArray, cols: NDArray[np.int32]) -> NDArray[np.float64]:
        return (values - self.units.shift[cols]) / self.units.scale[cols]


def _mixture_quantile(
    law: NoiseDistribution,
    x: NDArray,
    scale: NDArray,
    lower: NDArray,
    upper: NDArray,
    share: NDArray,
) -> NDArray[np.float64]:
    """Invert the mean over samples (first axis) of the laws of x + scale * noise in the bounds."""
    a, b = (lower - x) / scale, (upper - x) / scale
    reach = law.mean_between(a, b)
    far = 10 * (1 + abs(reach)).max(axis=0) * scale.max(axis=0)
    centre = x + scale * reach
    low = np.maximum(lower, centre.min(axis=0) - far)
    high = np.minimum(upper, centre.max(axis=0) + far)
    share_below = law.share_between(a, b)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        below = share_below((middle - x) / scale).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _rows_under(
    samples: Sequence[Sample], cells: Intervals, model: Model, seed: int, threads: int
) -> Iterator[Sample]:
    """Yield the samples with rows drawn for other cells, a short chain of them for each."""
    side, n = cells.by_row, cells.shape[0]
    drawn, precision = first_draws(side, model), np.ones(n)
    counts = np.diff(side.exact_ptr) + np.diff(side.censored_ptr)
    rng, sweep = np.random.default_rng(seed), 0
    for sample in samples:
        factors = sample.factors.astype(np.float64)
        scales = NoiseScales(model.noise, precision, sample.cols.astype(np.float64))
        rows = row_problem(side, factors, model, sample.row_prior, scales)
        A, own = np.zeros((n, model.rank + 1)), np.empty((n, rows.design.shape[1]))
        for _ in range(_MORE_SWEEPS if sweep else _FIRST_SWEEPS):
            key = seed, sweep
            squares = kernels.draw_rows(rows, own, drawn, key, same_stream=True, threads=threads)
            sweep += 1
        A[:, : own.shape[1]] = own
        factors = replace(factors, A=A).astype(np.float32)
        yield replace(sample, factors=factors, rows=precision.astype(np.float32))
        if model.noise == "row+column":
            gamma = special.gammaincinv(0.5 * (POOLED_DF + counts), rng.random())
            precision = row_precision(gamma, squares)
