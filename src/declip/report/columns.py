"""The tables of columns: for each what a reader wants to know first, and means with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.censoring import ranged
from declip.io.digits import short_text
from declip.reclip.result import LEFT, RESTORED
from declip.report.view import Column, View

__all__ = ["column_lines", "mean_lines"]

_MOST = 500
_MOST_CELLS = 200_000  # a larger table is summed up when that is asked for


def column_lines(view: View) -> list[dict[str, Any]]:
    """Return a line for each column: counts, limits, what was restored, and how far to trust it."""
    gains = _gains(view)
    return [
        _line(view.column(j)) | {"gain": gains.get(j)} for j in range(min(view.shape[1], _MOST))
    ]


def _line(column: Column) -> dict[str, Any]:
    restored = column.flag == "restored"
    count = {flag: int((column.flag == flag).sum()) for flag in ("filled", "undetermined")}
    clipped, measured = int(column.clipped.sum()), int(column.measured.sum())
    return {
        "name": column.name,
        "measured": measured,
        "clipped": clipped,
        "share": clipped / measured if measured else None,
        "limits": _limits(column),
        "restored": int(restored.sum()),
        "value": _median(column.value[restored]),
        "band": _band(column, restored),
        **count,
    }


def _limits(column: Column) -> str:
    """Return the limits as a file has them: <0.05, >20, or from the lowest to the highest."""
    parts = []
    for side, sign in (("floor", "<"), ("ceiling", ">")):
        found = [f"{sign}{short_text(limit, 6)}" for limit in column.limits_of(side)]
        parts += found if len(found) <= 2 else [f"{found[0]} to {found[-1]}"]
    if np.any(column.clipped & ranged(column.known_lower, column.known_upper)):
        parts.append("ranges")
    return ", ".join(parts)


def _band(column: Column, restored: NDArray[np.bool_]) -> str:
    """Return where the truth of a restored cell is expected, in the middle of all of them."""
    low, high = _median(column.low[restored]), _median(column.high[restored])
    if low is None or high is None:
        return ""
    return f"{short_text(low, 3)} to {short_text(high, 3)}"


def _median(values: NDArray) -> float | None:
    return float(np.median(values)) if values.size else None


def _gains(view: View) -> dict[int, float]:
    """Return the share of the error of hidden values that restoring took away, by column."""
    reclip = view.restoration.reclip
    if reclip is None or not reclip.n_cells:
        return {}
    axis = "rows" if view.restoration.transposed else "cols"
    cols = np.concatenate([getattr(trial.cells, axis) for trial in reclip.trials])
    restored, left = (np.sqrt(np.bincount(cols, reclip.errors(x) ** 2)) for x in (RESTORED, LEFT))
    return {int(j): float(1 - restored[j] / left[j]) for j in np.unique(cols) if left[j] > 0}


def mean_lines(restoration: Any) -> list[dict[str, Any]]:
    """Return the mean of each column with its interval, beside Kaplan-Meier and half the limit."""
    n_rows, n_cols = restoration.intervals.shape
    small = n_rows * n_cols <= _MOST_CELLS and n_rows >= 3
    if restoration.model is None or not small or restoration.intervals.n_censored == 0:
        return []
    columns = restoration.summary(["mean"]).as_columns()
    wanted = ("column", "censored", "estimate", "lower", "upper", "kaplan_meier", "half_limit")
    lines = zip(*(columns[name] for name in wanted), strict=True)
    found = [dict(zip(wanted, map(_plain, line), strict=True)) for line in lines]
    return [line for line in found if line["censored"]][:_MOST]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value
