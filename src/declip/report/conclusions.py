"""What a report says of the columns of a table: means with intervals, and what is usual instead."""

from __future__ import annotations

from typing import Any

__all__ = ["mean_lines"]

_MOST_CELLS = 200_000  # a larger table is summed up when that is asked for
_IMPUTATIONS = 20
_MOST_LINES = 500


def mean_lines(restoration: Any) -> list[dict[str, Any]]:
    """Return the mean of each column with its interval, beside Kaplan-Meier and half the limit."""
    n_rows, n_cols = restoration.intervals.shape
    small = n_rows * n_cols <= _MOST_CELLS and n_rows >= 3
    if restoration.model is None or not small or restoration.intervals.n_censored == 0:
        return []
    columns = restoration.summary(["mean"], n=_IMPUTATIONS).as_columns()
    wanted = ("column", "censored", "estimate", "lower", "upper", "kaplan_meier", "half_limit")
    lines = zip(*(columns[name] for name in wanted), strict=True)
    found = [dict(zip(wanted, map(_plain, line), strict=True)) for line in lines]
    return [line for line in found if line["censored"]][:_MOST_LINES]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value
