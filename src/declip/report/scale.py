"""The axis that fits a column: its kind, its range and its ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.report.view import Column

__all__ = ["AxisScale", "axis_scales"]

_WIDE = 30.0  # times the smallest value, from which on logarithms show more
_STEPS = 12  # whole numbers up to which a scale is one of steps
_BINS = 24
_SHOWN_BANDS = 0.9  # share of the bands that lie wholly within the picture


@dataclass(frozen=True)
class AxisScale:
    """How the values of a column are laid out.

    Attributes
    ----------
    log : bool
        Whether by logarithms.
    whole : bool
        Whether values are the whole numbers of a short scale, such as 1 to 5.
    low, high : float
        Ends of the axis.
    """

    log: bool
    whole: bool
    low: float
    high: float

    @classmethod
    def of(cls, column: Column, log: bool) -> AxisScale:
        """Find the ends: all values, most bands, and nothing below 0 if nothing known is."""
        known = _finite(column.reported)
        seen = np.concatenate([known, _finite(column.value)])
        if log:
            seen = seen[seen > 0]
        if not seen.size:
            return cls(False, False, 0.0, 1.0)
        whole = _is_short_scale(known) and not log
        low, high = seen.min(), seen.max()
        below, above = _finite(column.low), _finite(column.high)
        if below.size and above.size:
            low = min(low, np.quantile(below[below > 0] if log else below, 1 - _SHOWN_BANDS))
            high = max(high, np.quantile(above, _SHOWN_BANDS))
        return cls(log, whole, *_with_room(low, high, log, floor=not (known < 0).any()))

    def edges(self, values: NDArray) -> NDArray:
        """Return the edges of the bars of a histogram."""
        if self.whole:
            return np.arange(np.floor(values.min()), np.ceil(values.max()) + 2) - 0.5
        low, high = (values.min(), values.max()) if values.size else (self.low, self.high)
        if not low < high:
            return np.array([self.low, self.high])
        return (np.geomspace if self.log else np.linspace)(low, high, _BINS + 1)

    def apply_to(self, ax: Any, axis: str, ends: tuple[float, float] | None = None) -> None:
        """Give an axis of a picture this scale and its ticks."""
        from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

        which = ax.xaxis if axis == "x" else ax.yaxis
        low, high = ends or (self.low, self.high)
        if self.log:
            (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
            decades = np.log10(high / low)
            subs = (1.0,) if decades > 3 else (1.0, 3.0) if decades > 1.5 else (1.0, 2.0, 5.0)
            few = MaxNLocator(4) if decades < 0.5 else LogLocator(subs=subs, numticks=6)
            which.set_major_locator(few)
            which.set_minor_locator(NullLocator())
            which.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            which.set_major_locator(MaxNLocator(5, integer=self.whole))
        (ax.set_xlim if axis == "x" else ax.set_ylim)(low, high)
        ax.grid(axis=axis)


def axis_scales(columns: list[Column], logs: list[bool]) -> list[AxisScale]:
    """Return the scale of each column; one kind for all, unless some alone were taken to logs.

    Parameters
    ----------
    columns : list of Column
        The columns that are drawn.
    logs : list of bool
        Whether each was restored in logarithms.
    """
    if not any(logs):
        able = [_ratio(column) for column in columns]
        logs = [bool(np.median(able) > _WIDE and min(able) > 0)] * len(columns) if able else []
    return [AxisScale.of(column, log) for column, log in zip(columns, logs, strict=True)]


def _ratio(column: Column) -> float:
    """Return how many times the smallest value the largest is; 0 if any is not positive."""
    known = _finite(column.reported)
    return float(known.max() / known.min()) if known.size and known.min() > 0 else 0.0


def _is_short_scale(known: NDArray) -> bool:
    return bool(known.size and np.all(known == np.round(known)) and np.ptp(known) <= _STEPS)


def _with_room(low: float, high: float, log: bool, floor: bool) -> tuple[float, float]:
    """Return ends a little beyond the values, but none below 0 where nothing is."""
    if log:
        return float(low / (high / low) ** 0.04 / 1.05), float(high * (high / low) ** 0.04 * 1.05)
    room = 0.04 * (high - low) or max(abs(high), 1.0) * 0.5
    return float(max(low - room, 0.0) if floor else low - room), float(high + room)


def _finite(values: NDArray) -> NDArray:
    return values[np.isfinite(values)]
