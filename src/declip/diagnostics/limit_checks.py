"""Limits of all cells of a table, and limits that look wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.detect import detect_limits
from declip.diagnostics.coverage import AxisCounts, Coverage
from declip.intervals import Intervals
from declip.solvers import Limits
from declip.validation import limits_of_all_cells, name_some

__all__ = ["Concern", "limit_concerns", "table_limits"]

_CLOSE = 1e-6  # of the spread of a column: as near to a limit as rounding would bring a value
_MOST = 0.5  # share of clipped cells from which a limit hides most of a column
_FEW = 3  # nearly clipped values that are no accident,
_RARE = 0.01  # and so many for each clipped one
_SIDES = ("ceiling", "floor")


@dataclass(frozen=True)
class Concern:
    """Something about the limits that looks wrong.

    Attributes
    ----------
    kind : str
        "never reached", "wholly clipped", "mostly clipped", "nearly at the limit" or "no limit
        given".
    axis : {"table", "row", "column"}
        What ``which`` counts.
    which : tuple of int
        Positions of the rows or columns.
    text : str
        The finding and what to do, in a sentence or two.
    """

    kind: str
    axis: str
    which: tuple[int, ...]
    text: str


def table_limits(intervals: Intervals, ceiling: Any, floor: Any) -> Limits | None:
    """Return the limits of every cell, observed or not; None where they are not known.

    Without declared limits (an `Intervals` carries its own) they are read off the clipped cells, if
    these agree within each column; a limit that all have in common is that of the whole table.
    """
    if ceiling is None and floor is None:
        seen = intervals.common_limits()
        return None if seen is None else Limits(*seen)
    try:
        labels = intervals.col_labels, intervals.row_labels
        found = limits_of_all_cells(ceiling, floor, intervals.shape, intervals.dtype, *labels)
    except ValueError:  # limits of single cells, known for the observed ones only
        return None
    return Limits(*found)


def limit_concerns(
    intervals: Intervals, coverage: Coverage, limits: Limits | None, declared: tuple[bool, bool]
) -> list[Concern]:
    """Return what looks wrong about the limits.

    Parameters
    ----------
    intervals, coverage : Intervals, Coverage
        The table and its counts.
    limits : Limits or None
        Limits of all cells, where they are known.
    declared : tuple of bool
        Whether the user gave a ceiling, and a floor.
    """
    concerns = [
        *_never_reached(coverage, declared),
        *_wholly_clipped(coverage.cols),
        *_not_given(intervals, coverage, declared),
    ]
    if limits is not None:
        concerns += [
            *_mostly_clipped(intervals, coverage.cols, limits),
            *_nearly(intervals, limits),
        ]
    return concerns


def _never_reached(coverage: Coverage, declared: tuple[bool, bool]) -> Iterator[Concern]:
    for side, given in zip(_SIDES, declared, strict=True):
        if given and not getattr(coverage.rows, side).any():
            yield Concern(
                "never reached",
                "table",
                (),
                f"No value is at the {side}: every observed cell counts as exact on that side. "
                f"Check the {side}, or allow for rounding with Intervals.from_table(..., tol=).",
            )


def _not_given(
    intervals: Intervals, coverage: Coverage, declared: tuple[bool, bool]
) -> Iterator[Concern]:
    no_limit = [
        side
        for side, given in zip(_SIDES, declared, strict=True)
        if not given and not getattr(coverage.rows, side).any()
    ]
    proposal = detect_limits(intervals) if no_limit else None
    for side in no_limit:
        limit = getattr(proposal, side)
        if limit is None:
            continue
        which = np.flatnonzero(np.isfinite(np.broadcast_to(limit, intervals.shape[1])))
        yield Concern(
            "no limit given",
            "column",
            tuple(which.tolist()),
            f"{name_some('column', which, coverage.cols.labels)}: values end as if at a {side}, "
            f"and none was given. See detect_limits(X); pass {side}= if the scale stops there.",
        )


def _wholly_clipped(cols: AxisCounts) -> Iterator[Concern]:
    whole = np.flatnonzero((cols.exact == 0) & (cols.clipped > 0))
    if whole.size:
        yield Concern(
            "wholly clipped",
            "column",
            tuple(whole.tolist()),
            f"{name_some('column', whole, cols.labels)} wholly clipped: nothing says how far "
            "beyond the limit the values lie. Check the limit there; if it is right, leave the "
            "column out.",
        )


def _mostly_clipped(intervals: Intervals, cols: AxisCounts, limits: Limits) -> Iterator[Concern]:
    """Name columns with most cells at a limit that most exact values elsewhere lie beyond."""
    values = intervals.by_row.value
    if values.size == 0:
        return
    middle = float(np.median(values))
    for side in _SIDES:
        limit = _by_column(getattr(limits, side), len(cols))
        short = limit < middle if side == "ceiling" else limit > middle
        share = getattr(cols, side) / np.maximum(cols.observed, 1)
        others = (limit >= middle) if side == "ceiling" else (limit <= middle)
        most = np.flatnonzero(short & (share > _MOST) & (cols.exact > 0) & others.any())
        if most.size:
            beyond, verb = ("above", "raise") if side == "ceiling" else ("below", "lower")
            yield Concern(
                "mostly clipped",
                "column",
                tuple(most.tolist()),
                f"{name_some('column', most, cols.labels)} with most values at a "
                f"{side} that half the exact values of the table lie {beyond}. If the columns "
                f"share a scale, {verb} the {side} there.",
            )


def _nearly(intervals: Intervals, limits: Limits) -> Iterator[Concern]:
    """Count exact values so near to their limit that only rounding keeps them from it."""
    side = intervals.by_row
    rows, cols = side.exact_rows(), side.exact_idx
    for name in _SIDES:
        limit = cells_of(getattr(limits, name), intervals.shape, rows, cols)
        close = np.abs(side.value - limit) <= _CLOSE * np.maximum(np.abs(limit), np.abs(side.value))
        close &= np.isfinite(limit) & (side.value != limit)
        if close.sum() >= max(_FEW, _RARE * intervals.n_censored):
            which = np.unique(cols[close])
            yield Concern(
                "nearly at the limit",
                "column",
                tuple(which.tolist()),
                f"{int(close.sum())} values lie within a millionth of the {name} and are not "
                f"at it, in {name_some('column', which, intervals.col_labels)}. If that is "
                "rounding, allow for it with Intervals.from_table(..., tol=).",
            )


def cells_of(limit: NDArray, shape: tuple[int, int], rows: NDArray, cols: NDArray) -> NDArray:
    """Return an array that broadcasts to the table at some of its cells."""
    return np.broadcast_to(limit, shape)[rows, cols]


def _by_column(limit: NDArray, n_cols: int) -> NDArray:
    """Return one limit for each column; that of the median row where rows differ."""
    return np.broadcast_to(np.median(limit, axis=0), (n_cols,))
