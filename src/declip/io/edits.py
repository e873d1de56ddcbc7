"""What a restoration changes in a file: fields that get another text, columns and lines added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from declip.censoring import left_censored, right_censored
from declip.intervals import Intervals
from declip.io.digits import number_text, restored_text
from declip.io.frames import values_and_labels
from declip.io.layouts import Listed
from declip.io.names import DETECTED, plain

__all__ = ["Edits", "edits_of", "listed_cells"]


@dataclass(frozen=True, eq=False)
class Edits:
    """Changes of a file, by row and column of its sheet, counted from 0 below the header.

    Attributes
    ----------
    changed : dict
        ``{row: {column: text}}``.
    added : dict
        Name of a new column to its texts.
    appended : list of dict
        New lines: header to text.
    """

    changed: dict[int, dict[int, str]] = field(default_factory=dict)
    added: dict[str, list[str]] = field(default_factory=dict)
    appended: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Cells:
    """What is known of the listed cells of a file, and what became of them."""

    listed: Listed
    lower: NDArray
    upper: NDArray
    value: NDArray
    flag: NDArray | None
    low: NDArray | None
    high: NDArray | None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Cells without a value."""
        return np.isnan(self.lower)

    @property
    def restored(self) -> NDArray[np.bool_]:
        """Cells that have another value now than the file says."""
        with np.errstate(invalid="ignore"):
            kept = (self.value == self.lower) | (self.value == self.upper)
        return ~np.isnan(self.value) & ~kept

    def number(self, k: int) -> str:
        """Return the value of a restored or filled cell."""
        low, high = (np.nan if b is None else b[k] for b in (self.low, self.high))
        bounds = (-np.inf, np.inf) if np.isnan(self.lower[k]) else (self.lower[k], self.upper[k])
        return restored_text(float(self.value[k]), float(low), float(high), bounds)

    def end(self, band: NDArray | None, k: int) -> str:
        """Return one end of a band, with as many digits as the value has; empty if it is open."""
        if band is None or not np.isfinite(band[k]):
            return ""
        if self.lower[k] == self.upper[k]:
            return number_text(float(band[k]))
        text = self.number(k)
        decimals = len(text.partition(".")[2]) if "e" not in text else 12
        return number_text(round(float(band[k]), max(decimals, 0)))


def edits_of(
    known: Intervals,
    listed: Listed,
    table: Any,
    extras: Mapping[str, Any],
    in_place: bool,
    fill: bool,
) -> Edits:
    """Return what a table changes in the file whose cells were known so."""
    cells = _cells(known, listed, table, extras)
    wanted = cells.restored & (~cells.missing | fill)
    long = listed.roles.layout == "long" and not in_place
    changed = {} if long else _changed(cells, wanted)
    added = _added(cells, wanted, restored=long) if listed.roles.layout == "long" else {}
    absent = (
        []
        if not fill or listed.roles.layout == "wide"
        else _appended(known, listed, table, extras, added)
    )
    return Edits(changed, added, absent)


def listed_cells(
    known: Intervals, listed: Listed, table: Any, extras: Mapping[str, Any], fill: bool
) -> pl.DataFrame:
    """Return a line for each cell of which a file speaks: what it says, and what became of it."""
    cells = _cells(known, listed, table, extras)
    wanted = cells.restored & (~cells.missing | fill)
    decimal = listed.sheet.format.decimal or "."
    labels = [listed.named(k) for k in range(len(listed.text))]
    own = listed.text.cast(pl.String).fill_null("").to_list()
    alone = listed.qualifier is None and listed.limit is None
    frame = pl.DataFrame(
        {
            "row": [str(row) for row, _ in labels],
            "column": [str(column) for _, column in labels],
            "reported": [
                text.strip() if alone and text.strip() else _reported(text, a, b)
                for text, a, b in zip(own, cells.lower, cells.upper, strict=True)
            ],
            "value": _values(cells, wanted),
            **{
                name.removeprefix("declip_"): [text.replace(decimal, ".") for text in texts]
                for name, texts in _added(cells, wanted, restored=False).items()
            },
        }
    )
    return frame.with_columns(pl.col("value", "^band_.*$").cast(pl.Float64, strict=False))


def _values(cells: _Cells, wanted: NDArray) -> list[str]:
    """Return the numbers of exact, restored and filled cells; those that kept a limit have none."""
    exact = cells.lower == cells.upper
    return [
        cells.number(k) if wanted[k] else number_text(float(cells.lower[k])) if exact[k] else ""
        for k in range(len(exact))
    ]


def _cells(known: Intervals, listed: Listed, table: Any, extras: Mapping[str, Any]) -> _Cells:
    at = listed.rows, listed.cols
    lower, upper = _Lookup(known).at(*at)
    if isinstance(table, Intervals):
        new = _Lookup(table).at(*at)
        value = np.where(np.isfinite(new[0]), new[0], new[1])
    else:
        value = taken(values_and_labels(table)[0], *at)
    numbers = {
        name: taken(values_and_labels(extras[name])[0], *at)
        for name in ("lower", "upper")
        if name in extras
    }
    flag = None
    if "flag" in extras:
        words = extras["flag"]
        flat = np.ndim(words) == 1 and sparse.issparse(table)
        flag = (
            _sparse_words(table, words, *at)
            if flat
            else np.asarray(values_and_labels(words)[0])[at]
        )
    return _Cells(listed, lower, upper, value, flag, numbers.get("lower"), numbers.get("upper"))


class _Lookup:
    """The bounds of single cells of an Intervals."""

    def __init__(self, cells: Intervals) -> None:
        rows, cols, self.lower, self.upper = cells.triplets()
        self.width = cells.shape[1]
        keys = rows.astype(np.int64) * self.width + cols
        order = np.argsort(keys, kind="stable")
        self.keys, self.lower, self.upper = keys[order], self.lower[order], self.upper[order]

    def at(self, rows: NDArray, cols: NDArray) -> tuple[NDArray, NDArray]:
        wanted = rows.astype(np.int64) * self.width + cols
        place = np.minimum(np.searchsorted(self.keys, wanted), max(len(self.keys) - 1, 0))
        found = self.keys[place] == wanted
        return tuple(
            np.where(found, end[place], np.nan).astype(float) for end in (self.lower, self.upper)
        )  # type: ignore[return-value]


def taken(values: Any, rows: NDArray, cols: NDArray) -> NDArray:
    """Return single cells of an array or of a sparse table, NaN where that stores nothing."""
    if not sparse.issparse(values):
        return np.asarray(values)[rows, cols].astype(float)
    stored = values.tocoo()
    keys = stored.row.astype(np.int64) * stored.shape[1] + stored.col
    order = np.argsort(keys)
    wanted = rows.astype(np.int64) * stored.shape[1] + cols
    place = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
    found = keys[order][place] == wanted
    return np.where(found, stored.data[order][place], np.nan).astype(float)


def _sparse_words(table: Any, words: Any, rows: NDArray, cols: NDArray) -> NDArray:
    """Return flags, of which a sparse table has one for each stored cell, row by row."""
    stored = table.tocoo()
    order = np.lexsort((stored.col, stored.row))
    numbered = sparse.coo_array(
        (np.arange(len(order), dtype=float), (stored.row[order], stored.col[order])), stored.shape
    )
    place = taken(numbered, rows, cols)
    named = np.asarray(words)[np.nan_to_num(place).astype(int)]
    return np.where(np.isnan(place), "missing", named)


def _reported(text: str, lower: float, upper: float) -> str:
    """Return the text of a cell, unless it takes the columns beside it to understand it."""
    clean = text.strip()
    if np.isnan(lower) or (lower == upper and clean):
        return clean
    if clean[:1] in "<>≤≥" and clean:
        return clean
    if left_censored(lower):
        return f"<{_limit_text(clean, upper)}"
    if right_censored(upper):
        return f">{_limit_text(clean, lower)}"
    return clean or f"{number_text(lower)}-{number_text(upper)}"


def _limit_text(text: str, limit: float) -> str:
    try:
        return text if float(text) == limit else number_text(limit)
    except ValueError:
        return number_text(limit)


def _changed(cells: _Cells, wanted: NDArray) -> dict[int, dict[int, str]]:
    """Return new texts of values; marks beside restored ones go, lest they be read as limits."""
    listed = cells.listed
    changed: dict[int, dict[int, str]] = {}
    sheet, roles = listed.sheet, listed.roles
    decimal = sheet.format.decimal or "."
    for k in np.flatnonzero(wanted).tolist():
        row, column = listed.place(k)
        edits = changed.setdefault(row, {})
        edits[column] = cells.number(k).replace(".", decimal)
        mark = roles.qualifier.get(sheet.header[column])
        if mark is not None and not cells.missing[k]:
            edits[sheet.column(mark)] = _cleared(sheet.series(mark)[row], mark)
    return changed


def _cleared(mark: Any, name: str) -> str:
    """Return what a column of marks holds beside a value that stands as it is."""
    words = {"true": "FALSE", "t": "F", "yes": "no", "y": "n", "1": "0"}
    if DETECTED.fullmatch(plain(name)):
        words = {"false": "TRUE", "f": "T", "no": "yes", "n": "y", "0": "1"}
    return words.get(str(mark).strip().lower(), "")


def _added(cells: _Cells, wanted: NDArray, restored: bool) -> dict[str, list[str]]:
    """Return the columns that a long file gets, under names that are free."""
    listed = cells.listed
    decimal = listed.sheet.format.decimal or "."
    n = len(listed.text)
    columns: dict[str, list[str]] = {}
    if restored:
        columns["restored"] = [
            cells.number(k).replace(".", decimal) if wanted[k] else text
            for k, text in enumerate(_kept(cells))
        ]
    if cells.flag is not None:
        columns["flag"] = _flags(cells, wanted)
    for name, band in (("band_lower", cells.low), ("band_upper", cells.high)):
        if band is not None and cells.flag is not None:
            shown = wanted | ~cells.missing
            ends = [cells.end(band, k).replace(".", decimal) if shown[k] else "" for k in range(n)]
            columns[name] = ends
    taken_names = set(listed.sheet.header)
    return {_free(name, taken_names): texts for name, texts in columns.items()}


def _free(name: str, taken_names: set[str]) -> str:
    free = (f"{prefix}{name}" for prefix in ("", "declip_", "declip_declip_"))
    return next(candidate for candidate in free if candidate not in taken_names)


def _kept(cells: _Cells) -> list[str]:
    """Return what cells say that were not restored: their own text, or their limit."""
    own = cells.listed.text.cast(pl.String).fill_null("").to_list()
    texts = [_reported(t, a, b) for t, a, b in zip(own, cells.lower, cells.upper, strict=True)]
    if cells.listed.text.dtype != pl.String:
        texts = [
            number_text(float(a)) if a == b else text
            for text, a, b in zip(texts, cells.lower, cells.upper, strict=True)
        ]
    missing = cells.missing
    return [
        "" if missing[k] else _of_number(t, cells.lower[k], cells.upper[k])
        for k, t in enumerate(texts)
    ]


def _of_number(text: str, lower: float, upper: float) -> str:
    """Return an exact cell without the mark beside its number."""
    if lower != upper or text[-1:].isdigit() or text[-1:] == ".":
        return text
    return number_text(lower)


def _flags(cells: _Cells, wanted: NDArray) -> list[str]:
    flags = np.asarray(cells.flag).astype(str)
    return np.where(cells.missing & ~wanted, "missing", flags).tolist()


def _appended(
    known: Intervals,
    listed: Listed,
    table: Any,
    extras: Mapping[str, Any],
    added: Mapping[str, Any],
) -> list[dict[str, str]]:
    """Return a line for each cell of which no line speaks and that was filled."""
    values = values_and_labels(table)[0]
    if sparse.issparse(values) or isinstance(values, Intervals):
        return []
    spoken = np.zeros(known.shape, bool)
    spoken[listed.rows, listed.cols] = True
    rows, cols = np.nonzero(~spoken & ~np.isnan(np.asarray(values, float)))
    if not len(rows):
        return []
    row_lines, col_lines = (_first_lines(codes) for codes in (listed.rows, listed.cols))
    return [
        _new_line(listed, row_lines[i], col_lines[j], _filled(values, extras, i, j, added))
        for i, j in zip(rows.tolist(), cols.tolist(), strict=True)
    ]


def _first_lines(codes: NDArray) -> dict[int, int]:
    found, first = np.unique(codes, return_index=True)
    return dict(zip(found.tolist(), first.tolist(), strict=True))


def _new_line(
    listed: Listed, row_line: int, col_line: int, filled: dict[str, str]
) -> dict[str, str]:
    sheet, roles = listed.sheet, listed.roles
    line = {name: str(sheet.series(name)[row_line] or "") for name in roles.rows}
    line |= {
        name: str(sheet.series(name)[col_line] or "") for name in (*roles.columns, *roles.unit)
    }
    decimal = sheet.format.decimal or "."
    value = filled.pop("")
    if "restored" not in {name.removeprefix("declip_") for name in filled}:
        line[roles.values[0]] = value.replace(".", decimal)
    return line | {name: text.replace(".", decimal) for name, text in filled.items()}


def _filled(
    values: Any, extras: Mapping[str, Any], i: int, j: int, added: Mapping[str, list[str]]
) -> dict[str, str]:
    """Return the texts of a filled cell, under the names of the added columns; "" is its value."""
    ends = {
        k: float(np.asarray(values_and_labels(extras[k])[0])[i, j])
        for k in ("lower", "upper")
        if k in extras
    }
    low, high = ends.get("lower", np.nan), ends.get("upper", np.nan)
    text = restored_text(float(np.asarray(values)[i, j]), low, high, (-np.inf, np.inf))
    decimals = len(text.partition(".")[2])
    texts = {"restored": text, "flag": "filled"}
    texts |= {
        f"band_{k}": "" if not np.isfinite(v) else number_text(round(v, decimals))
        for k, v in ends.items()
    }
    return {"": text} | {name: texts[name.removeprefix("declip_")] for name in added}
