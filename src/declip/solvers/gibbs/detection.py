r"""Cells that are missing because their values were too low, or too high, to be seen.

A cell of column j is lost by chance with probability r. Otherwise it is seen if a noisy reading
of its value, :math:`y = x + s_j e`, lies above a limit :math:`c_j` that is not known, so that

.. math:: P(\text{seen} \mid x) = (1 - r) \Phi((x - c_j) / s_j).

A missing cell that was not lost is thus a *censored* one: y lies below :math:`c_j`, and its noise
has the variance :math:`\sigma^2 + s_j^2`. Where high values go missing, everything is mirrored.
Limits, widths and r have priors and are sampled, with readings and losses integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from declip.cells import Cells
from declip.censoring import unbounded
from declip.intervals import Intervals
from declip.kernels import CellDraws

__all__ = ["CurvePool", "Detection", "DetectionCurve", "MissingCells", "MissingDraws", "Predicted"]

CENTRE_SD, SLOPE_SD = (
    2.0,
    2.0,
)  # of the mean of the limits, and of how it goes with a column's level
CENTRE_SPREAD = (2.0, 0.3)  # shape and rate of the inverse gamma prior of their variance about it
LOG_WIDTH, LOG_WIDTH_SD = np.log(0.3), 1.0  # prior of the mean of the logs of widths
WIDTH_SPREAD = (5.0, 0.2)  # shape and rate of the inverse gamma prior of their variance about it
LOST_A, LOST_B = 1.0, 9.0  # beta prior of the share that is lost by chance
_FIRST_STEP, _ACCEPTED, _SETTLING = 0.3, 0.4, 0.6  # of the random walks of limits and widths
_TINY = 1e-300


class Predicted(NamedTuple):
    """What is expected of cells before it is known that they are missing: N(x, scale^2)."""

    x: NDArray[np.float64]
    scale: NDArray[np.float64]
    cols: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class DetectionCurve:
    """The probability of being seen, for each column, in the units of the sampler.

    Attributes
    ----------
    sign : ndarray of shape (n_cols,)
        1 where low values go missing, -1 where high ones do, 0 where values go missing by chance.
    centre, width : ndarray of shape (n_cols,)
        The value at which half of what is not lost is seen, times ``sign``, and how gentle the
        curve is.
    lost : float
        Share of the cells that is lost by chance.
    """

    sign: NDArray[np.float64]
    centre: NDArray[np.float64]
    width: NDArray[np.float64]
    lost: float

    def _check_loaded(self) -> None:
        """Refuse a curve that was read from a file and is none."""
        same = self.sign.shape == self.centre.shape == self.width.shape
        if not (same and np.all(self.width > 0) and 0 <= self.lost <= 1):
            raise ValueError("the parts of a detection curve do not fit together")

    def limits(self, cols: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds of the readings of missing cells that were not lost."""
        centre, low = (self.sign * self.centre)[cols], self.sign[cols] > 0
        return np.where(low, -np.inf, centre), np.where(low, centre, np.inf)

    def log_missing(self, cells: Predicted) -> NDArray[np.float64]:
        """Return the log-probability that cells go missing."""
        low = np.where(self.sign[cells.cols] == 0, 0.0, ndtr(self.reach(cells)[0]))
        return np.log(np.maximum(self.lost + (1 - self.lost) * low, _TINY))

    def moments(self, cells: Predicted) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of missing cells.

        With w^2 = scale^2 + s^2, t = (c - x) / w and h = phi(t) / Phi(t), a cell that was not lost
        has the mean x - scale^2 h / w and the variance scale^2 - scale^4 h (h + t) / w^2.
        """
        x, scale, cols = cells
        t, spread = self.reach(cells)
        low = 1 - self.share_lost(t, cols)
        h = np.exp(-0.5 * t * t - log_ndtr(t)) / np.sqrt(2 * np.pi)
        shift, drop = scale**2 * h / spread, scale**4 * h * (h + t) / spread**2
        variance = scale**2 - low * drop + low * (1 - low) * shift**2
        return x - self.sign[cols] * low * shift, np.sqrt(np.maximum(variance, _TINY))

    def draw(self, cells: Predicted, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw the values of missing cells."""
        draws = MissingDraws.of(self, cells, rng.random((2, *np.shape(cells.x))))
        weight = self.weights(cells.scale, cells.cols)
        # a value given its reading y: N(x + weight (y - x), weight s^2)
        centre = np.where(draws.low, weight * (draws.reading - cells.x), 0.0)
        spread = np.where(draws.low, np.sqrt(weight) * self.width[cells.cols], cells.scale)
        return cells.x + centre + spread * rng.standard_normal(np.shape(cells.x))

    def weights(self, scale: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return the precision of the readings of cells over that of their values."""
        return 1 / (1 + (self.width[cols] / scale) ** 2)

    def share_lost(self, t: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return the probability that missing cells were lost, from the reach of their limits."""
        missing = np.maximum(self.lost + (1 - self.lost) * ndtr(t), _TINY)
        return np.where(self.sign[cols] == 0, 1.0, self.lost / missing)

    def reach(self, cells: Predicted) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how far limits lie beyond predictions, in standard deviations of a reading."""
        x, scale, cols = cells
        spread = np.sqrt(scale**2 + self.width[cols] ** 2)
        return (self.centre[cols] - self.sign[cols] * x) / spread, spread


@dataclass(frozen=True, eq=False)
class MissingDraws:
    """Which missing cells were not lost, and the readings of these that were too low.

    Attributes
    ----------
    low : ndarray of bool
        Not lost by chance.
    reading : ndarray
        The reading y of each, in the units of the sampler; of no meaning where it was lost.
    """

    low: NDArray[np.bool_]
    reading: NDArray[np.float64]

    @classmethod
    def of(cls, curve: DetectionCurve, cells: Predicted, uniform: NDArray) -> MissingDraws:
        """Draw both, from two uniform numbers for each cell."""
        t, spread = curve.reach(cells)
        low = uniform[0] >= curve.share_lost(t, cells.cols)
        # y = x + w Phi^-1(u Phi(t)), mirrored
        below = np.minimum(ndtri(np.maximum(uniform[1] * ndtr(t), _TINY)), t)
        return cls(low, cells.x + np.where(low, curve.sign[cells.cols] * spread * below, 0.0))

    def put(
        self, cells: CellDraws, missing: MissingCells, weights: NDArray, n_exact: int
    ) -> CellDraws:
        """Return what is drawn of the cells of a table with these readings and their weights.

        Cells that were lost have no weight, and all others but the readings one of 1.
        """
        z, all_weights = cells.z.copy(), np.ones(len(cells.z))
        z[missing.at] = self.reading
        all_weights[missing.at] = np.where(self.low, weights, 0.0)
        return CellDraws(z, (np.ones(n_exact), all_weights))


@dataclass(frozen=True, eq=False)
class MissingCells:
    """The missing cells of columns with a curve, and the exact cells that tell of it.

    Attributes
    ----------
    sign : ndarray of shape (n_cols,)
        As of `DetectionCurve`.
    level : ndarray of shape (n_cols,)
        What limits may go with: where a column lies, in its own units.
    at : ndarray of int
        Positions of the missing cells among the censored ones of the table, by row.
    rows, cols : ndarray of int
        Where they are.
    value, value_cols : ndarray
        Exact cells of columns with a curve.
    """

    sign: NDArray[np.float64]
    level: NDArray[np.float64]
    at: NDArray[np.int64]
    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    value: NDArray[np.float64]
    value_cols: NDArray[np.int32]

    @classmethod
    def add_to(
        cls, cells: Intervals, sign: NDArray[np.float64], level: NDArray[np.float64]
    ) -> tuple[Intervals, MissingCells]:
        """Return a table in which the missing cells of such columns are censored, without bounds.

        Rows without an exact cell are left as they are: nothing is known of them. Cells that had no
        bounds before are not missing for their values, and are left out.
        """
        lower, upper = cells.to_bounds()
        seen, withheld = lower == upper, unbounded(lower, upper)
        empty = np.isnan(lower) & (sign != 0) & seen.any(axis=1)[:, None]
        lower[withheld] = np.nan
        lower[empty], upper[empty] = -np.inf, np.inf
        rows, cols = (a.astype(np.int32) for a in np.nonzero(~np.isnan(lower)))
        side = Cells.from_sorted(len(lower), rows, cols, lower[rows, cols], upper[rows, cols])
        at = np.flatnonzero(side.left_censored & side.right_censored)
        modelled = sign[side.exact_idx] != 0
        found = cls(
            sign,
            level,
            at,
            side.censored_rows()[at],
            side.censored_idx[at],
            side.value[modelled],
            side.exact_idx[modelled],
        )
        return replace(cells, by_row=side), found


@dataclass(frozen=True, eq=False)
class Detection:
    """The state of a chain that belongs to missing cells; each sweep returns a new one.

    Attributes
    ----------
    curve : DetectionCurve
        The present curve.
    draws : MissingDraws
        The missing cells.
    pool : CurvePool
        What the columns have in common.
    log_step : ndarray of shape (3, n_cols)
        Logs of the steps of the random walks: of limits, of widths, of all widths together.
    """

    curve: DetectionCurve
    draws: MissingDraws
    pool: CurvePool
    log_step: NDArray[np.float64]

    @classmethod
    def start(cls, cells: MissingCells) -> Detection:
        """Begin with limits that would hide the missing share of a normal column."""
        n = len(cells.sign)
        missing, seen = (np.bincount(c, minlength=n) for c in (cells.cols, cells.value_cols))
        share = (missing + 1) / (missing + seen + 2)
        curve = DetectionCurve(cells.sign, ndtri(share) - share, np.full(n, 0.5), 0.05)
        reading = cells.sign[cells.cols] * (curve.centre[cells.cols] - 0.5)
        draws = MissingDraws(np.ones(len(cells.at), bool), reading)
        return cls(curve, draws, CurvePool(), np.full((3, n), np.log(_FIRST_STEP)))

    def sweep(
        self, cells: MissingCells, predicted: Predicted, n_sweeps: int, rng: np.random.Generator
    ) -> Detection:
        """Draw the curve given the predictions of the missing cells, then these cells."""
        walked = self._walk(cells, predicted, n_sweeps, rng)
        draws = MissingDraws.of(walked.curve, predicted, rng.random((2, len(predicted.x))))
        n_lost = int(np.count_nonzero(~draws.low))
        rest = len(cells.value) + len(cells.at) - n_lost
        curve = replace(walked.curve, lost=float(rng.beta(LOST_A + n_lost, LOST_B + rest)))
        return replace(walked, curve=curve, draws=draws, pool=walked.pool.draw(curve, cells, rng))

    def read(self, reading: NDArray[np.float64]) -> Detection:
        """Return the state with other readings of the missing cells."""
        return replace(self, draws=replace(self.draws, reading=reading))

    def excess(
        self, predicted: Predicted, weights: NDArray, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return squared residuals of drawn values less weighted ones of the readings."""
        read, width = self.draws.reading - predicted.x, self.curve.width[predicted.cols]
        # value - x given y - x: N(weight (y - x), weight s^2)
        value = weights * read + np.sqrt(weights) * width * rng.standard_normal(len(read))
        return np.where(self.draws.low, value**2 - weights * read**2, 0.0)

    def _walk(
        self, cells: MissingCells, predicted: Predicted, n_sweeps: int, rng: np.random.Generator
    ) -> Detection:
        """Move limits, widths, or all widths together by a Metropolis step."""
        kind, n = n_sweeps % 3, len(cells.sign)
        together = kind == 2
        noise = rng.standard_normal(1 if together else n)
        moved = self._moved(kind, np.exp(self.log_step[kind]) * noise)
        gain = moved.log_density(cells, predicted) - self.log_density(cells, predicted)
        if together:
            gain = np.full(n, gain.sum() + moved.pool.log_prior - self.pool.log_prior)
        chance = np.exp(np.minimum(gain, 0.0))
        takes = rng.random(1 if together else n) < chance
        centre = np.where(takes, moved.curve.centre, self.curve.centre)
        width = np.where(takes, moved.curve.width, self.curve.width)
        log_step = self.log_step.copy()
        log_step[kind] += (n_sweeps // 3 + 1) ** -_SETTLING * (chance - _ACCEPTED)
        return Detection(
            replace(self.curve, centre=centre, width=width),
            self.draws,
            moved.pool if takes.all() else self.pool,
            log_step,
        )

    def _moved(self, kind: int, step: NDArray) -> Detection:
        if kind == 0:
            return replace(self, curve=replace(self.curve, centre=self.curve.centre + step))
        curve = replace(self.curve, width=self.curve.width * np.exp(step))
        shift = float(step[0]) if kind == 2 else 0.0
        return replace(self, curve=curve, pool=self.pool.with_widths_moved(shift))

    def log_density(self, cells: MissingCells, predicted: Predicted) -> NDArray[np.float64]:
        """Return, by column, the log-density of limit and width given what is seen and missing."""
        curve, n, cols = self.curve, len(cells.sign), cells.value_cols
        z = (curve.sign[cols] * cells.value - curve.centre[cols]) / curve.width[cols]
        seen = np.bincount(cols, np.log(np.maximum(ndtr(z), _TINY)), n)
        missing = np.bincount(cells.cols, curve.log_missing(predicted), n)
        return seen + missing + self.pool.log_density(curve, cells.level)


@dataclass(frozen=True)
class CurvePool:
    """What the curves of columns have in common: normal priors of limits and of logs of widths.

    Attributes
    ----------
    trend : tuple of float
        Mean of the limits, and its slope over the level of a column.
    variance : float
        Variance of the limits about it.
    log_width, width_variance : float
        Mean and variance of the logs of the widths.
    """

    trend: tuple[float, float] = (0.0, 0.0)
    variance: float = 0.3
    log_width: float = -1.0
    width_variance: float = 0.05

    @property
    def log_prior(self) -> float:
        """The log-density of the mean of the logs of the widths."""
        return float(-0.5 * ((self.log_width - LOG_WIDTH) / LOG_WIDTH_SD) ** 2)

    def with_widths_moved(self, shift: float) -> CurvePool:
        """Return the same with all widths times exp(shift)."""
        return replace(self, log_width=self.log_width + shift)

    def log_density(self, curve: DetectionCurve, level: NDArray) -> NDArray[np.float64]:
        """Return that of the limit and the width of each column."""
        of_centre = (curve.centre - self.trend[0] - self.trend[1] * level) ** 2 / self.variance
        of_width = (np.log(curve.width) - self.log_width) ** 2 / self.width_variance
        return -0.5 * (of_centre + of_width)

    def draw(
        self, curve: DetectionCurve, cells: MissingCells, rng: np.random.Generator
    ) -> CurvePool:
        """Draw the means, then the variances, of the limits and of the widths."""
        some = cells.sign != 0
        ones, centre = np.ones(int(some.sum())), curve.centre[some]
        F, logs = np.column_stack([ones, cells.level[some]]), np.log(curve.width[some])
        trend = _normal_mean(F, centre, self.variance, (0.0, 0.0), (CENTRE_SD, SLOPE_SD), rng)
        [log_width] = _normal_mean(
            ones[:, None], logs, self.width_variance, (LOG_WIDTH,), (LOG_WIDTH_SD,), rng
        )
        half, rates = 0.5 * len(ones), (centre - F @ trend, logs - log_width)
        variance, width_variance = (
            (rate + 0.5 * error @ error) / rng.standard_gamma(shape + half)
            for error, (shape, rate) in zip(rates, (CENTRE_SPREAD, WIDTH_SPREAD), strict=True)
        )
        return CurvePool(
            (float(trend[0]), float(trend[1])),
            float(variance),
            float(log_width),
            float(width_variance),
        )


def _normal_mean(
    F: NDArray,
    y: NDArray,
    variance: float,
    mean: tuple[float, ...],
    sd: tuple[float, ...],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Draw b of y ~ N(F b, variance), with independent normal priors."""
    prior = np.diag(np.array(sd) ** -2.0)
    precision = F.T @ F / variance + prior
    centre = np.linalg.solve(precision, F.T @ y / variance + prior @ np.array(mean))
    U = np.linalg.cholesky(precision).T
    return centre + np.linalg.solve(U, rng.standard_normal(len(centre)))
