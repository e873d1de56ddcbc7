"""The head of a sheet: titles, comments, the names of the columns and the row of their units."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl

from declip.io import names as called
from declip.io.errors import shown
from declip.io.numbers import NumberStyle
from declip.io.parsing import parse_cells
from declip.io.plan import Roles, Skipped
from declip.io.problems import Remedy
from declip.io.sheet import Sheet
from declip.io.words import UNIT

__all__ = ["FOOTNOTE", "names_alone", "take_header", "take_limits"]

_SAMPLE = 50  # rows below the header that tell a row of units from data
_UNIT_LABELS = ("", "unit", "units", "einheit", "einheiten", "unité", "unités", "[unit]")
_SCALE = re.compile(r"[0-9.]+\s*(?:-|\u2013|to)\s*[0-9.]+")  # 1-7: what answers may be
_LIMIT_ROWS = {"floor": called.LIMIT_OF_ROW, "ceiling": called.CEILING_OF_ROW}
LimitsOfWords = dict[str, dict[str, float]]  # side, column: what words such as ND stand for
FOOTNOTE = re.compile(
    r"(?:[*†‡§]|\(?[0-9a-z]\)|notes?\b|sources?\b|quelle\b|remarks?\b|comments?\b|legend\b|[^\s=]{1,12}\s*=\s)"
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
    if has_header and _is_upper_half(sheet, first):
        sheet = _one_row_down(sheet)
        names = tuple(_joined(first, _fields(sheet, 0)))
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


def take_limits(sheet: Sheet, roles: Roles, style: NumberStyle) -> tuple[Sheet, LimitsOfWords]:
    """Leave out rows that are called LOD, ULOQ or the like; return their numbers, by column."""
    if roles.layout != "wide" or not roles.rows or not sheet.format.header:
        return sheet, {}
    labels = [called.plain(str(name or "")) for name in sheet.series(roles.rows[0])]
    rows = {side: _named_so(sheet, labels, side) for side in _LIMIT_ROWS}
    found = {side: _numbers_of(sheet, row, roles, style) for side, row in rows.items() if row >= 0}
    return _without(sheet, [row for row in rows.values() if row >= 0], "limits"), found


def _named_so(sheet: Sheet, labels: list[str], side: str) -> int:
    """Return the row that holds the limits of one side, -1 if none does."""
    rows = [k for k, name in enumerate(labels) if _LIMIT_ROWS[side].fullmatch(name)]
    if len(rows) > 1:
        lines = ",".join(str(sheet.lines[k]) for k in rows)
        word = "ND" if side == "floor" else "OVER"
        sheet.fail(
            f"there are several rows of limits, and words such as {word} could mean any of them",
            rows[1], None, Remedy("skip", lines), Remedy(side, "COLUMN=NUMBER"),
        )  # fmt: skip
    return rows[0] if rows else -1


def _numbers_of(sheet: Sheet, row: int, roles: Roles, style: NumberStyle) -> dict[str, float]:
    """Return the numbers of a row, by column."""
    texts = [sheet.series(name)[row] for name in roles.values]
    cells = pl.Series(texts, dtype=pl.String, strict=False)
    parsed = parse_cells(cells, style.decimal, thousands=style.thousands)
    known = parsed.lower == parsed.upper
    numbers = zip(roles.values, parsed.lower.tolist(), known, strict=True)
    return {name: number for name, number, ok in numbers if ok}


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
    return _filled_in(_fields(sheet, row))


def _filled_in(fields: list[str]) -> int:
    return sum(bool(field.strip()) for field in fields)


def _without_titles(sheet: Sheet) -> Sheet:
    """Leave out rows with one filled field above a row of names: no number among these."""
    if sheet.frame.width < 3 or sheet.format.header is False:
        return sheet
    k = 0
    while k < sheet.frame.height and (_filled(sheet, k) == 1 or k in sheet.spanned):
        k += 1
    if 0 < k < sheet.frame.height and names_alone(_fields(sheet, k)):
        above = k - 1 in sheet.spanned and _fills(_fields(sheet, k - 1), _fields(sheet, k))
        return _without(sheet, list(range(k - above)), "title")
    return sheet


def _fills(upper: list[str], lower: list[str]) -> bool:
    """Tell two halves of a header: names of groups above, and names where the lower has none."""
    return _filled_in(upper) > 1 and any(a and not b for a, b in zip(upper, lower, strict=True))


def _is_upper_half(sheet: Sheet, first: list[str]) -> bool:
    """Tell names of groups of columns, with gaps that the row below them fills."""
    if "" in first and sheet.frame.height > 2:
        second = _fields(sheet, 1)
        gaps = [b for a, b in zip(first, second, strict=True) if not a]
        return names_alone(second) and _fills(first, second) and any(gaps)
    return False


def _one_row_down(sheet: Sheet) -> Sheet:
    return replace(sheet, frame=sheet.frame[1:], lines=sheet.lines[1:])


def _joined(upper: list[str], lower: list[str]) -> list[str]:
    """Return names of two rows as one: the lower alone where that tells columns apart."""
    named = [b or a for a, b in zip(upper, lower, strict=True)]
    if len(set(named)) == len(named):
        return named
    group, names = "", []
    for a, b in zip(upper, lower, strict=True):
        group = a or group
        alone = not b or called.VALUE.fullmatch(called.plain(b))
        names.append(group if alone else f"{group} {b}")
    return names


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
    some = any(UNIT.fullmatch(f.strip()) or _SCALE.fullmatch(f.strip()) for f in first)
    if not body.height or body.width < 2 or not some:
        return sheet
    numeric = [j for j in range(body.width) if _is_numeric(body.to_series(j))]
    texts = {j: first[j].strip() for j in numeric if first[j].strip()}
    others = [first[j] for j in range(len(first)) if j not in numeric]
    labelled = [text for text in others if text.strip().lower() not in _UNIT_LABELS]
    scale = not labelled and len({*texts.values()}) == 1 and not first[0].strip()
    unit = _SCALE if scale and _SCALE.fullmatch(next(iter(texts.values()))) else UNIT
    if not texts or not all(unit.fullmatch(text) for text in texts.values()):
        return sheet
    if any(not UNIT.fullmatch(text.strip()) for text in labelled) or set(texts.values()) == {"-"}:
        return sheet
    if unit is _SCALE:
        return _without(sheet, [0], "scale")
    units = {sheet.header[j]: text.strip("[]() ") for j, text in texts.items()}
    return replace(_without(sheet, [0], "units"), units=units)


def _is_numeric(column: pl.Series) -> bool:
    """Tell a column of cells, whatever stands before fractions; a few may mean nothing."""
    readings = [parse_cells(column, decimal) for decimal in (".", ",")]
    known = [int((~np.isnan(r.lower) | (r.word != 0)).sum()) for r in readings]
    return any(n > r.bad.size for n, r in zip(known, readings, strict=True))


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
