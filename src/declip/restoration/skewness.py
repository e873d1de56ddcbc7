"""Which columns have so long an upper end that they are restored on a scale of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from declip.halflog import HalfLog
from declip.intervals import Intervals, face_value
from declip.restoration.candidates import untuned
from declip.restoration.settings import Settings
from declip.restoration.shrinkage import TailShrinkage
from declip.restoration.tasks import Task, share_to_hide, steps_of
from declip.scaling import Scaling, log_columns
from declip.truncated import log_mass

__all__ = ["skewed_columns"]

# Settled on the tables that the study of `restore` names as those it was tuned on.
_KNOT, _FAR, _FARTHEST = 0.2, 0.8, 0.95  # quantiles of a column
_SCALES = (0.2, 0.5, 1.0, 2.0)  # of the distance between the first two of them
_STRAIGHT_FROM = 2.0  # distances from the knot to the last of them
_LIKELIER = 4.0  # log-likelihood that the cells of a column gain by the scale, at least
_LIKELIER_HIDDEN = 2.0  # and those that were hidden and held out
_MISFIT, _MOST_EXACT = 1.2, 250  # of Kolmogorov and Smirnov, at most; exact cells that count
_BINS = 64
_MOST_SHARED = 10.0  # of it, for or against the other columns of a table


def skewed_columns(intervals: Intervals, settings: Settings) -> HalfLog | None:
    """Return the scale on which columns with a long upper end are restored; None if none is.

    All cells of a column must be clearly likelier on it, as a censored normal distribution, which
    must fit (a column of two clusters looks skewed too); and so must those that a factor model is
    asked for, hidden behind moved limits or held out. Columns without ceilings, in logarithms or
    recorded in steps stay as they are; so does a table that shares units, or misses cells for
    their values.
    """
    told = settings.values or settings.side is not None
    if settings.units != "columns" or settings.missing != "random" or told:
        return None
    may_be = _may_be_skewed(intervals, settings)
    if not may_be.any():
        return None
    scale, gain = _likeliest(intervals)
    scale = scale.only((gain > _LIKELIER) & may_be)
    scale = scale.only(_misfit(intervals, scale) < _MISFIT)
    if scale.skewed.any():
        hidden, held = _gains(intervals, scale, settings)
        total, held = (_pooled(gain, scale.skewed) for gain in (hidden + held, held))
        scale = scale.only((total > _LIKELIER_HIDDEN) & (held > 0))
    return scale if scale.skewed.any() else None


def _pooled(gain: NDArray, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return what speaks for columns, and for others beside them, of which none may outdo all."""
    return gain + np.clip(gain[among], -_MOST_SHARED, _MOST_SHARED).mean()


def _may_be_skewed(intervals: Intervals, settings: Settings) -> NDArray[np.bool_]:
    """Tell which columns have ceilings, and are neither in logarithms nor recorded in steps."""
    side, n = intervals.by_row, intervals.shape[1]
    ceilings = np.bincount(side.censored_idx, np.isposinf(side.upper), n) > 0
    steps = steps_of(intervals, settings).at(np.arange(n)).max(axis=0)
    return ceilings & (steps == 0) & ~log_columns(settings.log, intervals)


def _likeliest(intervals: Intervals) -> tuple[HalfLog, NDArray[np.float64]]:
    """Return the scale under which each column is likeliest, and by how much it is."""
    scales = list(_scales(intervals))
    gains = np.array([_log_likelihood(intervals, scale) for scale in scales])
    gains -= _log_likelihood(intervals, None)
    first, each = gains.argmax(axis=0), np.arange(intervals.shape[1])
    size = np.array([scale.scale for scale in scales])[first, each]
    return HalfLog(scales[0].skewed, scales[0].knot, size, scales[0].end), gains[first, each]


def _scales(intervals: Intervals) -> Iterator[HalfLog]:
    """Yield scales of all columns, from the most to the least bent."""
    _, cols, lower, upper = intervals.triplets()
    face = face_value(lower, upper).astype(np.float64)
    knot, far, farthest = _quantiles(face, cols, intervals.shape[1])
    told = far > knot
    knot, width = np.where(told, knot, 0.0), np.where(told, far - knot, 1.0)
    end = _STRAIGHT_FROM * np.where(told, np.maximum(farthest - knot, width), 1.0)
    for part in _SCALES:
        yield HalfLog(told, knot, part * width, end)


def _quantiles(value: NDArray, group: NDArray, n: int) -> NDArray[np.float64]:
    """Return the quantiles of each group that a scale is made of, NaN of an empty one."""
    value = value[np.lexsort((value, group))]
    count = np.bincount(group, minlength=n)
    share = np.array([_KNOT, _FAR, _FARTHEST])[:, None]
    at = np.cumsum(count) - count + np.floor(share * np.maximum(count - 1, 0)).astype(np.intp)
    return np.where(count > 0, value[np.minimum(at, len(value) - 1)], np.nan)


def _log_likelihood(intervals: Intervals, scale: HalfLog | None) -> NDArray[np.float64]:
    """Return that of each column as a censored normal distribution on a scale."""
    scaling = Scaling.of(intervals, half_log=scale)
    raw, side, n = intervals.by_row, scaling.apply(intervals).by_row, intervals.shape[1]
    exact: NDArray[np.float64] = -0.5 * (side.value**2 + np.log(2 * np.pi))
    exact = exact + _log_slope(scaling, raw.value, raw.exact_idx)
    censored = log_mass(side.lower, side.upper)
    parts = (raw.exact_idx, exact), (raw.censored_idx, censored)
    return np.sum([np.bincount(idx, part, n) for idx, part in parts], axis=0)


def _misfit(intervals: Intervals, scale: HalfLog) -> NDArray[np.float64]:
    """Return the statistic of Kolmogorov and Smirnov for each column on a scale.

    The mass of a censored cell is spread over its interval as the distribution has it. In many
    cells any misfit is seen: of more than 250 exact ones it is that of 250.
    """
    side, n = Scaling.of(intervals, half_log=scale).apply(intervals).by_row, intervals.shape[1]
    at = np.arange(1, _BINS) / _BINS
    low, high = ndtr(side.lower), ndtr(side.upper)
    width = np.maximum(high - low, 1e-12)
    exact = np.bincount(side.exact_idx, minlength=n)
    count = np.maximum(exact + np.bincount(side.censored_idx, minlength=n), 1)
    below = [
        np.bincount(side.exact_idx, ndtr(side.value) <= u, n)
        + np.bincount(side.censored_idx, np.clip((u - low) / width, 0, 1), n)
        for u in at
    ]
    largest = abs(np.array(below) / count - at[:, None]).max(axis=0)
    return largest * count / np.maximum(exact, 1) * np.sqrt(np.minimum(exact, _MOST_EXACT))


def _log_slope(scaling: Scaling, value: NDArray, cols: NDArray) -> NDArray[np.float64]:
    """Return the logarithm of the slope from values to standard units."""
    bent = 0.0 if scaling.half_log is None else scaling.half_log.log_slope(value, cols)
    return bent - np.log(scaling.units.scale[cols])


def _gains(intervals: Intervals, scale: HalfLog, settings: Settings) -> NDArray[np.float64]:
    """Return how much likelier hidden and held-out cells of columns are on a scale."""
    bent, straight = (_hidden_likelihood(intervals, x, settings) for x in (scale, None))
    return bent - straight


def _hidden_likelihood(
    intervals: Intervals, scale: HalfLog | None, settings: Settings
) -> NDArray[np.float64]:
    """Return that of hidden and of held-out cells, by column, under a factor model."""
    task = Task.of(intervals, share_to_hide(intervals, settings.shared), settings, half_log=scale)
    seen = task.evidence(untuned("bayes", task.table.cells, settings))
    n, scaling, cells, held = intervals.shape[1], task.table.scaling, task.cells, task.held
    drawn_in = TailShrinkage.of(seen.hidden, task.n_groups).mean[seen.hidden.group]
    hidden = seen.hidden.log_likelihood(drawn_in)
    hidden += np.where(cells.censored, 0.0, _log_slope(scaling, cells.value, cells.cols))
    out, value = held.log_likelihood(seen.centre, seen.spread), scaling.back(held.lower, held.cols)
    out += np.where(held.exact, _log_slope(scaling, value, held.cols), 0.0)
    return np.array([np.bincount(cells.cols, hidden, n), np.bincount(held.cols, out, n)])
