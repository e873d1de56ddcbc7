"""A list of cells as text turned into intervals, with the limits of the table applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.intervals import Cells, Intervals
from declip.io.cells import Parsed, parse_cells, parse_qualifiers, why_not
from declip.io.errors import TableFileError, shown
from declip.io.layouts import Listed
from declip.validation import Triplets, apply_limits, resolve_limit
from declip.validation.cells import LARGEST, sort_cells

__all__ = ["Limits", "assemble"]


@dataclass(frozen=True, eq=False)
class Limits:
    """Ceiling and floor of the table, as an estimator takes them, and those of single columns."""

    ceiling: Any = None
    floor: Any = None
    by_column: Mapping[str, Mapping[Any, float]] | None = None

    def of(self, side: str, columns: NDArray | None) -> Any:
        """Return one side; the limits of single columns replace that of the table."""
        limit, special = getattr(self, side), (self.by_column or {}).get(side)
        if not special:
            return limit
        if limit is None or isinstance(limit, Mapping):
            return {**(limit or {}), **special}
        names = [] if columns is None else columns.tolist()
        if np.ndim(limit) == 0:
            return {**dict.fromkeys(names, limit), **special}
        return {**dict(zip(names, np.ravel(limit), strict=False)), **special}


def assemble(listed: Listed, limits: Limits, missing: Sequence[str]) -> Intervals:
    """Return the observed cells as intervals, in row-major order, with the labels of the sheet."""
    decimal = listed.sheet.format.decimal or "."
    parsed = parse_cells(listed.text, decimal, missing)
    if parsed.bad.size:
        cell = listed.text[listed.first(parsed.bad)]
        listed.fail(parsed.bad, why_not(cell, decimal))
    _qualify(listed, parsed, decimal)
    _resolve_words(listed, parsed, limits)
    _check_sizes(listed, parsed)
    rows, cols, lower, upper = _sorted(listed, parsed)
    _apply(listed, limits, rows, cols, lower, upper)
    by_row = Cells.from_sorted(listed.shape[0], rows, cols, lower, upper)
    whole = Intervals(listed.shape, by_row, listed.row_labels, listed.col_labels)
    return whole.astype(np.float32) if listed.text.dtype == pl.Float32 else whole


def _apply(
    listed: Listed, limits: Limits, rows: NDArray, cols: NDArray, lower: NDArray, upper: NDArray
) -> None:
    """Open the exact cells that stand at a limit of the table or of their column."""
    ceiling, floor = (limits.of(side, listed.col_labels) for side in ("ceiling", "floor"))
    if ceiling is None and floor is None:
        return
    exact = lower == upper
    labels = listed.row_labels, listed.col_labels
    cells = Triplets(rows[exact], cols[exact], lower[exact], listed.shape, *labels)
    try:
        lower[exact], upper[exact] = apply_limits(cells, ceiling, floor)
    except (TypeError, ValueError) as error:
        raise TableFileError(listed.sheet.path, str(error)) from error


def _qualify(listed: Listed, parsed: Parsed, decimal: str) -> None:
    """Apply the columns of qualifiers and limits to the cells that they stand beside."""
    limit = _limit_column(listed, decimal)
    if listed.qualifier is not None:
        side = parse_qualifiers(listed.qualifier)
        if side.null_count():
            strange = side.is_null().arg_true().to_numpy()
            text = shown(listed.qualifier[listed.first(strange)])
            listed.fail(strange, f"the qualifier {text} is not known: use <, > or = instead")
        _move(listed, parsed, side.to_numpy(), limit)
    if limit is not None:
        known = ~np.isnan(limit)
        for sign, end, other in ((-1, parsed.upper, parsed.lower), (1, parsed.lower, parsed.upper)):
            cells = known & (parsed.word == sign)
            end[cells], other[cells] = limit[cells], sign * np.inf
            parsed.word[cells] = 0


def _limit_column(listed: Listed, decimal: str) -> NDArray | None:
    if listed.limit is None:
        return None
    limit = parse_cells(listed.limit, decimal)
    wrong = np.union1d(limit.bad, np.flatnonzero((limit.lower < limit.upper) | (limit.word != 0)))
    if wrong.size:
        text = shown(listed.limit[listed.first(wrong)])
        listed.fail(wrong, f"the limit {text} beside this cell is not a number")
    return limit.lower


def _move(listed: Listed, parsed: Parsed, side: NDArray, limit: NDArray | None) -> None:
    """Open the cells that a qualifier puts on one side: from their limit or their value on."""
    own = np.where(np.isneginf(parsed.lower), -1, np.where(np.isposinf(parsed.upper), 1, 0))
    own = np.where(parsed.word != 0, parsed.word, own)
    against = np.flatnonzero((side != 0) & (own == -side))
    if against.size:
        listed.fail(against, "the cell and its qualifier point to different sides")
    ranged = np.flatnonzero((side != 0) & (own == 0) & (parsed.lower < parsed.upper))
    if ranged.size:
        listed.fail(ranged, "a range with a qualifier: keep one of the two")
    moved = (side != 0) & (own == 0)
    at = parsed.lower if limit is None else np.where(np.isnan(limit), parsed.lower, limit)
    at = at.copy()
    known = moved & ~np.isnan(at)
    below, above = known & (side < 0), known & (side > 0)
    parsed.lower[below], parsed.upper[below] = -np.inf, at[below]
    parsed.lower[above], parsed.upper[above] = at[above], np.inf
    parsed.word[moved & ~known] = side[moved & ~known]


def _resolve_words(listed: Listed, parsed: Parsed, limits: Limits) -> None:
    """Put the limit of its column in place of a word such as ND."""
    for sign, side in ((-1, "floor"), (1, "ceiling")):
        cells = np.flatnonzero(parsed.word == sign)
        if not cells.size:
            continue
        at = _limit_at(listed, cells, limits.of(side, listed.col_labels), side)
        unknown = cells[~np.isfinite(at)]
        if unknown.size:
            text = listed.text[listed.first(unknown)]
            word = "this qualifier" if text is None else shown(text)
            listed.fail(
                unknown, f"{word} needs the {side} of its column: give one ({side}= or limits=)"
            )
        ends = (parsed.lower, parsed.upper) if sign > 0 else (parsed.upper, parsed.lower)
        ends[0][cells], ends[1][cells] = at, sign * np.inf


def _limit_at(listed: Listed, cells: NDArray, limit: Any, side: Any) -> NDArray:
    where = Triplets(
        listed.rows[cells],
        listed.cols[cells],
        np.zeros(len(cells)),
        listed.shape,
        listed.row_labels,
        listed.col_labels,
    )
    try:
        return np.broadcast_to(resolve_limit(limit, where, side).at(where), cells.shape)
    except (TypeError, ValueError) as error:
        raise TableFileError(listed.sheet.path, str(error)) from error


def _check_sizes(listed: Listed, parsed: Parsed) -> None:
    largest = LARGEST[np.dtype(np.float32 if listed.text.dtype == pl.Float32 else np.float64)]
    for end in (parsed.lower, parsed.upper):
        huge = np.flatnonzero((np.abs(end) > largest) & np.isfinite(end))
        if huge.size:
            listed.fail(huge, f"the number is too large: it must lie within +-{largest:g}")
    if np.isnan(parsed.lower).all():
        listed.sheet.fail("the table has no observed cell: all are missing")


def _sorted(listed: Listed, parsed: Parsed) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return the observed cells in row-major order."""
    seen = ~np.isnan(parsed.lower)
    at = slice(None) if seen.all() else seen
    rows, cols, lower, upper = (
        x[at] for x in (listed.rows, listed.cols, parsed.lower, parsed.upper)
    )
    try:
        cells = sort_cells(rows, cols, lower, listed.shape, "cells")
    except ValueError:
        _refuse_twice(listed, np.flatnonzero(seen))
        raise
    return cells.rows, cells.cols, cells.values, upper[cells.order]


def _refuse_twice(listed: Listed, seen: NDArray) -> None:
    keys = listed.rows[seen].astype(np.int64) * listed.shape[1] + listed.cols[seen]
    twice = pl.Series(keys).is_first_distinct().not_().arg_true().to_numpy()
    k = seen[twice[0]]
    earlier = seen[np.flatnonzero(keys == keys[twice[0]])[0]]
    row, column = (
        labels[index] if labels is not None else index
        for labels, index in (
            (listed.row_labels, listed.rows[k]),
            (listed.col_labels, listed.cols[k]),
        )
    )
    sheet = listed.sheet
    line = sheet.lines[int(earlier)]
    listed.fail(
        np.array([k]),
        f"row {shown(row)}, column {shown(column)} was given before, at {sheet.unit} {line}: "
        "keep one value for each cell",
    )
