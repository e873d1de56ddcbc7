"""The plan of a reading, filled in with what was found: counts, units, examples and notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.censoring import left_censored, right_censored
from declip.io.assemble import ParsedBounds
from declip.io.layouts import Listed
from declip.io.oddities import odd_values
from declip.io.parsing import Parsed
from declip.io.plan import EXPORTS, Asked, Example, ReadingPlan, Roles
from declip.io.presets import looks_like
from declip.io.problems import Problem, Remedy
from declip.io.sheet import Sheet
from declip.io.words import CEILING_NAMES

__all__ = ["filled_in", "plan_of", "side_of"]

_LONGEST = 90  # characters of a line that an example quotes


def side_of(roles: Roles, asked: Asked) -> str:
    """Return on which side of their limits values lie, by what was said or by the names."""
    if asked.side is not None:
        return asked.side
    beside = [*roles.limit.values(), *roles.qualifier.values()]
    return "above" if any(CEILING_NAMES.fullmatch(name) for name in beside) else "below"


def plan_of(sheet: Sheet, roles: Roles, asked: Asked, preset: str | None) -> ReadingPlan:
    """Return how a sheet is understood, before its cells are read."""
    return ReadingPlan(
        format=sheet.format,
        header=sheet.header,
        roles=roles,
        asked=asked,
        preset=preset,
        skipped=sheet.skipped,
        sheets=sheet.sheets,
        units=dict(sheet.units),
        side=side_of(roles, asked),
    )


def filled_in(plan: ReadingPlan, listed: Listed, bounds: ParsedBounds) -> ReadingPlan:
    """Return the plan with what the cells turned out to be."""
    parsed = bounds.parsed
    return replace(
        plan,
        format=listed.sheet.format,
        counts=_counts(listed, parsed) | {"kept_below": bounds.below_value},
        units=_units(listed, plan),
        examples=tuple(_examples(listed, parsed)),
        notes=(*_known_export(plan, listed.sheet), *odd_values(listed, bounds)),
    )


def _known_export(plan: ReadingPlan, sheet: Sheet) -> Iterator[Problem]:
    """Yield that the columns are those of an export which was not named."""
    name = looks_like(sheet)
    if name is not None and plan.preset is None:
        what = f"Its columns are those of an export of {EXPORTS[name]}"
        yield Problem(what, remedies=(Remedy("format", name, "reads them so"),))


def _kinds(parsed: Parsed) -> dict[str, NDArray[np.bool_]]:
    missing = np.isnan(parsed.lower)
    exact = parsed.lower == parsed.upper
    below, above = left_censored(parsed.lower), right_censored(parsed.upper)
    ranges = ~(missing | exact | below | above)
    return {"exact": exact, "below": below, "above": above, "ranges": ranges, "missing": missing}


def _counts(listed: Listed, parsed: Parsed) -> dict[str, int]:
    n_rows, n_cols = listed.shape
    cells = {name: int(found.sum()) for name, found in _kinds(parsed).items()}
    spoken = len(parsed.lower)
    if listed.roles.layout == "long":
        keys = listed.rows.astype(np.int64) * n_cols + listed.cols
        spoken = pl.Series(keys).n_unique()
    absent = {"absent": n_rows * n_cols - spoken}
    return {
        "lines": listed.sheet.frame.height,
        "rows": n_rows,
        "columns": n_cols,
        **cells,
        **absent,
    }


def _units(listed: Listed, plan: ReadingPlan) -> dict[str, str]:
    if listed.unit is None or listed.col_labels is None:
        return dict(plan.units)
    frame = pl.DataFrame({"column": listed.cols, "unit": listed.unit}).drop_nulls()
    first = frame.unique("column", keep="first", maintain_order=True)
    return {str(listed.col_labels[j]): unit for j, unit in first.iter_rows()}


def _examples(listed: Listed, parsed: Parsed) -> Iterator[Example]:
    """Yield a line for each of three kinds of cells, the rarer kinds before the missing."""
    kinds = _kinds(parsed)
    some = [
        np.flatnonzero(kinds[name]) for name in ("exact", "below", "above", "ranges", "missing")
    ]
    chosen = [listed.first(cells) for cells in some if cells.size][:3]
    more = np.flatnonzero(kinds["exact"])[1:3].tolist()
    for k in [*chosen, *more][:3]:
        row, field = listed.place(k)
        unit = None if listed.unit is None else listed.unit[k]
        unit = unit or listed.sheet.units.get(listed.sheet.header[field])
        yield Example(
            f"{listed.sheet.unit} {listed.sheet.lines[row]}",
            _quoted(listed, row, field),
            _said(listed, k, parsed, unit),
        )


def _quoted(listed: Listed, row: int, field: int) -> str:
    """Return the fields of a line that matter for a cell."""
    roles, sheet = listed.roles, listed.sheet
    value = sheet.header[field]
    beside = [roles.qualifier.get(value), roles.limit.get(value)]
    names = [*roles.rows, *roles.columns, value, *beside, *roles.unit]
    fields = [sheet.series(name)[row] for name in dict.fromkeys(names) if name is not None]
    text = ", ".join("" if field is None else str(field) for field in fields)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _said(listed: Listed, k: int, parsed: Parsed, unit: str | None) -> str:
    """Return what a cell was taken for."""
    row, column = listed.named(k)
    low, high = float(parsed.lower[k]), float(parsed.upper[k])
    if np.isnan(low):
        what = "no value"
    elif low == high:
        what = f"{low:g}"
    elif left_censored(low):
        what = f"at most {high:g}"
    else:
        what = f"at least {low:g}" if right_censored(high) else f"from {low:g} to {high:g}"
    row, column = (" ".join(str(name).split()) for name in (row, column))
    return f"row {row!r}, column {column!r}: {what}" + (f" {unit}" if unit else "")
