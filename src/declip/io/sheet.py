"""A table as it stands in a file: columns of text or numbers, and the line of each row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.cells import parse_cells
from declip.io.errors import TableFileError, shown
from declip.io.formats import TableFormat

__all__ = ["Lines", "Sheet", "take_header"]

Lines = NDArray[np.int64] | range


@dataclass(frozen=True, eq=False)
class Sheet:
    """Rows of fields. Columns of the frame are named by position, headers stand beside it.

    Attributes
    ----------
    frame : polars.DataFrame
        The fields; columns are named "0", "1", and so on.
    lines : array or range
        Line of the file for each row.
    unit : {"line", "row"}
        What a line of this file is called in messages.
    header : list of str
        Names of the columns; empty before `take_header`.
    """

    path: Path
    frame: pl.DataFrame
    lines: Lines
    unit: str
    format: TableFormat
    header: tuple[str, ...] = ()

    def fail(self, message: str, row: int | None = None, column: int | None = None) -> NoReturn:
        """Raise the error about a row and a column, both counted from 0."""
        place = None
        if row is not None:
            place = f"{self.unit} {self.lines[row]}"
        name = None if column is None else self.header[column]
        raise TableFileError(self.path, message, place, name)

    def column(self, name: str) -> int:
        """Return the position of the column with a header."""
        if name not in self.header:
            some = ", ".join(shown(known) for known in self.header[:5])
            more = ", ..." if len(self.header) > 5 else ""
            self.fail(f"there is no column {shown(name)}; there are {some}{more}")
        return self.header.index(name)


def take_header(sheet: Sheet) -> Sheet:
    """Name the columns by the first record, or by 0, 1, ... if it is data like the others."""
    first = ["" if field is None else str(field) for field in sheet.frame.row(0)]
    wanted = sheet.format.header
    has_header = _names_columns(first) if wanted is None else wanted
    if not has_header:
        names, start = tuple(str(j) for j in range(len(first))), 0
    else:
        names, start = tuple(first), 1
    sheet, names = _drop_empty(sheet, names)
    named = replace(
        sheet,
        frame=sheet.frame[start:],
        lines=sheet.lines[start:],
        header=names,
        format=replace(sheet.format, header=has_header),
    )
    if named.frame.height == 0:
        named.fail("there is a header, but no line below it")
    _check_names(named)
    return named


def _drop_empty(sheet: Sheet, names: tuple[str, ...]) -> tuple[Sheet, tuple[str, ...]]:
    """Leave out columns without name and cells, such as spreadsheets append."""
    full = [j for j, name in enumerate(names) if name or sheet.frame[1:].to_series(j).count() > 0]
    if len(full) == len(names):
        return sheet, names
    frame = sheet.frame.select(str(j) for j in full)
    frame.columns = [str(j) for j in range(len(full))]
    return replace(sheet, frame=frame), tuple(names[j] for j in full)


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
