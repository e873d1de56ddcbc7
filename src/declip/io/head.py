"""The head of a sheet: titles, comments, the names of the columns and the row of their units."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl

from declip.io.cells import parse_cells
from declip.io.errors import shown
from declip.io.plan import Skipped
from declip.io.sheet import Sheet
from declip.io.words import UNIT

__all__ = ["FOOTNOTE", "names_alone", "take_header"]

_SAMPLE = 50  # rows below the header by which a row of units is told from data
_UNIT_LABELS = ("", "unit", "units", "einheit", "einheiten", "unité", "unités", "[unit]")
FOOTNOTE = re.compile(
    r"(?:[*†‡§]|\(?[0-9a-z]\)|notes?\b|sources?\b|quelle\b|remarks?\b|comments?\b|legend\b|nd\s*[=:])"
    r".*|.*[^:]: .*",
    re.I | re.S,
)


def take_header(sheet: Sheet, skip: tuple[int, ...] | None = None) -> Sheet:
    """Name the columns by the first record that is no title, or by 0, 1, ... if it is data."""
    if skip is None:
        sheet = _without_footnotes(_without_titles(sheet))
    else:
        sheet = _without(sheet, [k for k, line in enumerate(sheet.lines) if line in skip], "asked")
    if not sheet.frame.height:
        sheet.fail("the table is empty")
    first = _fields(sheet, 0)
    wanted = sheet.format.header
    has_header = _names_columns(first) if wanted is None else wanted
    names, start = (tuple(first), 1) if has_header else (tuple(map(str, range(len(first)))), 0)
    sheet, names = _drop_empty(sheet, names)
    named = replace(
        sheet,
        frame=sheet.frame[start:],
        lines=sheet.lines[start:],
        header=names,
        header_line=int(sheet.lines[0]) if has_header else 0,
        format=replace(sheet.format, header=has_header),
    )
    if named.frame.height == 0:
        named.fail("there is a header, but no line below it")
    _check_names(named)
    return _take_units(named) if has_header and skip is None else named


def _fields(sheet: Sheet, row: int) -> list[str]:
    return ["" if field is None else str(field) for field in sheet.frame.row(row)]


def _without(sheet: Sheet, rows: list[int], what: str) -> Sheet:
    """Leave rows out, and remember them."""
    if not rows:
        return sheet
    skipped = [
        Skipped(int(sheet.lines[k]), what, " ".join(filter(None, _fields(sheet, k)))) for k in rows
    ]
    kept = np.setdiff1d(np.arange(sheet.frame.height), rows)
    return replace(
        sheet,
        frame=sheet.frame[kept],
        lines=np.asarray(sheet.lines)[kept],
        skipped=(*sheet.skipped, *skipped),
    )


def _filled(sheet: Sheet, row: int) -> int:
    return sum(bool(field.strip()) for field in _fields(sheet, row))


def _without_titles(sheet: Sheet) -> Sheet:
    """Leave out rows with one filled field above a row of names: no number among these."""
    if sheet.frame.width < 3 or sheet.format.header is False:
        return sheet
    k = 0
    while k < sheet.frame.height and (_filled(sheet, k) == 1 or k in sheet.spanned):
        k += 1
    if 0 < k < sheet.frame.height and names_alone(_fields(sheet, k)):
        return _without(sheet, list(range(k)), "title")
    return sheet


def _without_footnotes(sheet: Sheet) -> Sheet:
    """Leave out rows at the end, set off by a blank line, with words in their first field alone."""
    last = sheet.frame.height
    while (
        last > 2 and _filled(sheet, last - 1) == 1 and FOOTNOTE.match(_fields(sheet, last - 1)[0])
    ):
        last -= 1
    apart = last < sheet.frame.height and sheet.lines[last] > sheet.lines[last - 1] + 1
    return _without(sheet, list(range(last, sheet.frame.height)), "comment") if apart else sheet


def names_alone(fields: list[str]) -> bool:
    """Tell names of columns: no number and no limit among them."""
    parsed = parse_cells(pl.Series([f or None for f in fields], dtype=pl.String))
    named = sum(bool(field.strip()) for field in fields)
    return named >= 2 and bool(np.isnan(parsed.lower).all()) and not parsed.word.any()


def _take_units(sheet: Sheet) -> Sheet:
    """Take the row below the names for units if no field of it is a number and all look like it."""
    first = _fields(sheet, 0)
    body = sheet.frame[1 : 1 + _SAMPLE]
    if not body.height or body.width < 2:
        return sheet
    numeric = [j for j in range(body.width) if _is_numeric(body.to_series(j))]
    texts = {j: first[j].strip() for j in numeric if first[j].strip()}
    others = [first[j] for j in range(len(first)) if j not in numeric]
    if not texts or not all(UNIT.fullmatch(text) for text in texts.values()):
        return sheet
    labelled = [text for text in others if text.strip().lower() not in _UNIT_LABELS]
    if any(not UNIT.fullmatch(text.strip()) for text in labelled) or set(texts.values()) == {"-"}:
        return sheet
    units = {sheet.header[j]: text.strip("[]() ") for j, text in texts.items()}
    return replace(_without(sheet, [0], "units"), units=units)


def _is_numeric(column: pl.Series) -> bool:
    parsed = parse_cells(column)
    return bool((~np.isnan(parsed.lower) | (parsed.word != 0)).any()) and not parsed.bad.size


def _drop_empty(sheet: Sheet, names: tuple[str, ...]) -> tuple[Sheet, tuple[str, ...]]:
    """Leave out columns without name and cells, such as spreadsheets append."""
    full = [j for j, name in enumerate(names) if name or sheet.frame[1:].to_series(j).count() > 0]
    if len(full) == len(names):
        return sheet, names
    frame = sheet.frame.select(str(j) for j in full)
    frame.columns = [str(j) for j in range(len(full))]
    return replace(sheet, frame=frame, fields=tuple(full)), tuple(names[j] for j in full)


def _names_columns(first: list[str]) -> bool:
    """Tell a header from a record: cells throughout are data, unless they count upwards."""
    text = pl.Series(first, dtype=pl.String)
    readings = [parse_cells(text, decimal) for decimal in (".", ",")]
    if not any(r.bad.size == 0 and not np.isnan(r.lower).all() for r in readings):
        return True
    numbers = text.cast(pl.Float64, strict=False)
    counts_up = len(first) > 1 and bool((numbers.diff().drop_nulls() > 0).all())
    return counts_up and all(field.isdigit() for field in first)


def _check_names(sheet: Sheet) -> None:
    first: dict[str, int] = {}
    for j, name in enumerate(sheet.header):
        if first.setdefault(name, j) < j:
            fields = f"fields {first[name] + 1} and {j + 1} of the header"
            sheet.fail(f"two columns are named {shown(name)} ({fields}): names must differ")
