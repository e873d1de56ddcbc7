"""Wide and long sheets brought to one form: a list of cells, still as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.cells import parse_cells
from declip.io.labels import label_array, number_labels
from declip.io.sheet import Sheet
from declip.validation import check_memory

__all__ = ["Listed", "list_cells"]

_ID = r"(?:[ _.-]?(?:id|no|nr|name|label|key|code))?"
_ROW_WORDS = re.compile(
    rf"(?:row|sample|subject|patient|person|participant|respondent|user|product|specimen|index|id"
    rf"|site|station|well|plate|sku){_ID}",
    re.I,
)
_COLUMN_WORDS = re.compile(
    rf"(?:column|col|variable|feature|analyte|parameter|item|movie|compound|protein|gene|test|assay"
    rf"|question|week|month|marker|metabolite|substance){_ID}",
    re.I,
)
_VALUE_WORDS = re.compile(
    r"(?:value|result|rating|stars|measurement|measured|concentration|conc|score|sales|reading"
    r"|amount|resultvalue|result[ _.-]value)",
    re.I,
)
_LIMIT_WORDS = re.compile(
    r"(?:limit|lod|loq|lloq|mdl|dl|rl|pql"
    r"|(?:detection|reporting|quantitation|censoring)[ _.-]limit)",
    re.I,
)
_QUALIFIER = r"(?:q|qual|qualifier|sign|operator|modifier|cens|censored|censoring)"
_QUALIFIER_WORDS = re.compile(rf"(?:result[ _.-])?{_QUALIFIER}", re.I)
_QUALIFIER_OF = re.compile(rf"(.+?)[ _.-]{_QUALIFIER}", re.I)


@dataclass(frozen=True, eq=False)
class Listed:
    """Cells of a sheet, one after the other: position in the table, text, and what stands beside.

    Attributes
    ----------
    rows, cols : int32 arrays
        Position of each cell in the table.
    text : polars.Series
        What the cell holds.
    qualifier, limit : polars.Series or None
        What the columns beside it hold, if there are any.
    line : array or None
        Row of the sheet of each cell; None for 0, 1, 2, ...
    field : array or int
        Column of the sheet of each column of the table, or of all cells.
    """

    sheet: Sheet
    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    text: pl.Series
    row_labels: NDArray | None
    col_labels: NDArray | None
    field: NDArray | int
    line: NDArray | None = None
    qualifier: pl.Series | None = None
    limit: pl.Series | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        labels = self.row_labels, self.col_labels
        known = [0 if names is None else len(names) for names in labels]
        return (
            known[0] or (int(self.rows.max()) + 1 if len(self.rows) else 0),
            known[1] or (int(self.cols.max()) + 1 if len(self.cols) else 0),
        )

    def fail(self, cells: NDArray, message: str) -> NoReturn:
        """Raise the error about the first of some cells, in the order of the file."""
        k = self.first(cells)
        row = k if self.line is None else int(self.line[k])
        field = self.field if isinstance(self.field, int) else int(self.field[self.cols[k]])
        self.sheet.fail(message, row, field)

    def first(self, cells: NDArray) -> int:
        """Return which of some cells comes first in the file."""
        return int(cells[0] if self.line is None else cells[np.argmin(self.line[cells])])


def list_cells(
    sheet: Sheet, ignore: Sequence[str], limit: str | None, qualifier: str | None
) -> Listed:
    """List the cells of a sheet with a header, whose layout is found unless it is asked for."""
    for name in ignore:
        sheet.column(name)
    layout = sheet.format.layout or ("long" if _looks_long(sheet, ignore) else "wide")
    if layout not in ("wide", "long"):
        sheet.fail(f"layout must be 'wide' or 'long'; got {layout!r}")
    sheet = replace(sheet, format=replace(sheet.format, layout=layout))
    return _long(sheet, ignore, limit, qualifier) if layout == "long" else _wide(sheet, ignore)


def _matching(sheet: Sheet, words: re.Pattern, taken: Sequence[str] = ()) -> str | None:
    names = (name for name in sheet.header if name not in taken)
    return next((name for name in names if words.fullmatch(name.strip())), None)


def _looks_long(sheet: Sheet, ignore: Sequence[str]) -> bool:
    if sheet.format.columns or sheet.format.values:
        return True
    patterns = (_ROW_WORDS, _COLUMN_WORDS, _VALUE_WORDS)
    found = [_matching(sheet, words, ignore) for words in patterns]
    return None not in found and len(set(found)) == 3


def _long(sheet: Sheet, ignore: Sequence[str], limit: str | None, qualifier: str | None) -> Listed:
    names = _long_names(sheet, ignore)
    rows, cols, values = (sheet.column(name) for name in names)
    limit = limit or _matching(sheet, _LIMIT_WORDS, [*names, *ignore])
    qualifier = qualifier or _matching(sheet, _QUALIFIER_WORDS, [*names, *ignore])
    row_codes, row_labels = number_labels(sheet.frame.to_series(rows))
    col_codes, col_labels = number_labels(sheet.frame.to_series(cols))
    return Listed(
        sheet=replace(
            sheet, format=replace(sheet.format, rows=names[0], columns=names[1], values=names[2])
        ),
        rows=row_codes,
        cols=col_codes,
        text=sheet.frame.to_series(values),
        row_labels=label_array(row_labels),
        col_labels=label_array(col_labels),
        field=values,
        limit=sheet.frame.to_series(sheet.column(limit)) if limit else None,
        qualifier=sheet.frame.to_series(sheet.column(qualifier)) if qualifier else None,
    )


def _long_names(sheet: Sheet, ignore: Sequence[str]) -> tuple[str, str, str]:
    """Return the headers of row labels, column labels and values."""
    form, free = sheet.format, [name for name in sheet.header if name not in ignore]
    wanted = [form.rows, form.columns, form.values]
    for k, words in enumerate((_ROW_WORDS, _COLUMN_WORDS, _VALUE_WORDS)):
        if wanted[k] is None:
            wanted[k] = _matching(sheet, words, [*ignore, *(name for name in wanted if name)])
    if None in wanted and not any((form.rows, form.columns, form.values)):
        wanted = [*free[:3]] if len(free) >= 3 else wanted
    if len(wanted) != 3 or None in wanted:
        missing = [
            option
            for option, name in zip(("rows", "columns", "values"), wanted, strict=True)
            if name is None
        ]
        sheet.fail(f"a long table: say which column holds the {' and the '.join(missing)}")
    rows, columns, values = (str(name) for name in wanted)
    for name in (rows, columns, values):
        sheet.column(name)
    if len({rows, columns, values}) < 3:
        sheet.fail("rows, columns and values of a long table must be three different columns")
    return rows, columns, values


def _wide(sheet: Sheet, ignore: Sequence[str]) -> Listed:
    label = _label_column(sheet, ignore)
    qualifiers = _qualifier_columns(sheet, ignore)
    aside = {*ignore, *qualifiers.values(), label}
    fields = [j for j, name in enumerate(sheet.header) if name not in aside]
    if not fields:
        sheet.fail("there is no column of values")
    n, m = sheet.frame.height, len(fields)
    check_memory((n, m), np.float64, "a wide table", "write it as a long one")
    rows = np.tile(np.arange(n, dtype=np.int32), m)
    named = sheet.format.header
    return Listed(
        sheet=replace(sheet, format=replace(sheet.format, rows=label)),
        rows=rows,
        cols=np.repeat(np.arange(m, dtype=np.int32), n),
        text=_stacked(sheet, fields),
        row_labels=None
        if label is None
        else label_array(sheet.frame.to_series(sheet.column(label))),
        col_labels=label_array(pl.Series([sheet.header[j] for j in fields])) if named else None,
        field=np.array(fields),
        line=rows,
        qualifier=_stacked_qualifiers(sheet, fields, qualifiers),
    )


def _label_column(sheet: Sheet, ignore: Sequence[str]) -> str | None:
    """Return the header of the row labels: the one asked for, or the first column if it is text."""
    if sheet.format.rows is not None:
        return sheet.header[sheet.column(sheet.format.rows)]
    free = [j for j, name in enumerate(sheet.header) if name not in ignore]
    if len(free) < 2:
        return None
    j, name = free[0], sheet.header[free[0]]
    if sheet.format.header and (not name.strip() or _ROW_WORDS.fullmatch(name.strip())):
        return name
    column = sheet.frame.to_series(j)
    # Words, dates and codes make labels of the first column; a few of them are slips of the pen.
    if column.dtype != pl.String:
        return None if column.dtype.is_numeric() else name
    odd = len(parse_cells(column, sheet.format.decimal or ".").bad)
    return name if odd > (len(column) - column.null_count()) / 2 else None


def _qualifier_columns(sheet: Sheet, ignore: Sequence[str]) -> dict[str, str]:
    """Map a column to the one that qualifies it: ``iron`` to ``iron_qualifier``."""
    known = set(sheet.header) - set(ignore)
    found = {name: _QUALIFIER_OF.fullmatch(name.strip()) for name in sheet.header if name in known}
    return {match[1]: name for name, match in found.items() if match and match[1] in known}


def _stacked(sheet: Sheet, fields: list[int]) -> pl.Series:
    """Return columns one below the other, as numbers if all are, else as text."""
    columns = [sheet.frame.to_series(j) for j in fields]
    for j, column in zip(fields, columns, strict=True):
        if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean, pl.Null)):
            sheet.fail(f"a column of {column.dtype} is neither numbers nor text", None, j)
    types = {column.dtype for column in columns if column.dtype != pl.Null}
    if pl.String in types:
        target: type[pl.DataType] = pl.String
    else:
        target = pl.Float32 if types == {pl.Float32} else pl.Float64
    return pl.concat([column.cast(target).alias("text") for column in columns])


def _stacked_qualifiers(
    sheet: Sheet, fields: list[int], qualifiers: dict[str, str]
) -> pl.Series | None:
    if not qualifiers:
        return None
    none = pl.Series([None], dtype=pl.String).new_from_index(0, sheet.frame.height)
    names = [qualifiers.get(sheet.header[j]) for j in fields]
    columns = [
        none if name is None else sheet.frame.to_series(sheet.column(name)).cast(pl.String)
        for name in names
    ]
    return pl.concat([column.alias("qualifier") for column in columns])
