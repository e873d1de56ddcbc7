"""Excel files, read and written."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers.expat import ParserCreate

import numpy as np
import polars as pl

from declip.io.errors import TableFileError, about_file, shown
from declip.io.formats import TableFormat
from declip.io.sheet import Sheet
from declip.validation import check_memory

__all__ = ["column_number", "parts_of_book", "read_book", "sheet_parts", "write_book"]

_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_CELL = re.compile(rb"<(?:\w+:)?c(?=[\s/>])([^>]*)>")
_NUMBERS = re.compile(rb"<(?:\w+:)?c(?=[\s/>])((?![^>]*\bt=[\"'](?!n[\"']))[^>]*[^>/])>")
_ROW = re.compile(rb"<(?:\w+:)?row\s[^>]*?\br\s*=\s*[\"']([0-9]+)")
_PLACE = re.compile(rb"(?:^|\s)r\s*=\s*[\"']([A-Za-z]+)([0-9]+)")
_KIND = re.compile(rb"(?:^|\s)t\s*=\s*[\"']([^\"']*)")
_KINDS = {b"b", b"d", b"e", b"inlineStr", b"n", b"s", b"str"}
_ERROR = re.compile(
    rb"\bt\s*=\s*[\"']e[\"'][^>]*>(?:(?!</(?:\w+:)?c>).)*?<(?:\w+:)?v[^>]*>([^<]*)", re.S
)
_STRINGS = "xl/sharedStrings.xml"
_NO_VALUE = b"#N/A"
_CELL_BYTES = 40  # of a cell in the memory of the reader, empty ones included
_SPARSE, _SMALL = 1000, 1_000_000  # cells of the area for each one that is there, from a size on


def read_book(path: Path, wanted: TableFormat, skip: tuple[int, ...] | None = None) -> Sheet:
    """Read one sheet as text, after a look at what its XML would expand to."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError as error:
        raise TableFileError(path, "Excel files need: pip install 'declip[files]'") from error
    with about_file(path, "cannot be read as Excel"):
        sheet, sheets = _checked(path, wanted.sheet)
        page = CalamineWorkbook.from_path(str(path)).get_sheet_by_name(sheet)
        records = page.to_python(skip_empty_area=False)
        spanned = _unmerge(records, page.merged_cell_ranges or [])
        width = max(map(len, records), default=0)
        columns = ([_excel_text(record[j]) for record in records] for j in range(width))
        frame = pl.DataFrame([pl.Series(str(j), x, pl.String) for j, x in enumerate(columns)])
    seen = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    lines = np.flatnonzero(seen.to_numpy()) + 1
    return Sheet(
        path,
        frame.filter(seen),
        lines,
        "row",
        replace(wanted, sheet=sheet),
        spanned=frozenset(np.flatnonzero(np.isin(lines - 1, list(spanned))).tolist()),
        sheets=sheets,
        checksum=zlib.crc32(path.read_bytes()),
    )


def _unmerge(records: list[list[Any]], merged: Any) -> set[int]:
    """Write labels that are merged over rows on each of them; return rows merged over columns."""
    spanned = set()
    for (top, left), (bottom, right) in merged:
        if right > left:
            spanned.add(top)
        elif isinstance(records[top][left], str):
            for row in range(top + 1, min(bottom + 1, len(records))):
                records[row][left] = records[top][left]
    return spanned


def _excel_text(cell: Any) -> str | None:
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    return None if cell == "" else str(cell)


def _checked(path: Path, wanted: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the sheet to read, once its area is known to fit, and the names of all."""
    parts = parts_of_book(path)
    sheets = sheet_parts(parts)
    name = wanted or _first_table(parts, sheets)
    if name not in sheets:
        some = ", ".join(shown(known) for known in list(sheets)[:5])
        raise TableFileError(path, f"there is no sheet {shown(name)}; there are {some}")
    for part in (sheets[name], _STRINGS):
        ParserCreate().Parse(parts.get(part, b"<none/>"), True)  # readers mend XML that is broken
    _check_cells(path, parts[sheets[name]])
    return name, tuple(sheets)


def _first_table(parts: dict[str, bytes], sheets: dict[str, str]) -> str:
    """Return the first sheet with numbers in two columns or more; a cover has none."""
    for name, part in sheets.items():
        cells = (_PLACE.search(tag) for tag in _NUMBERS.findall(parts[part]))
        if len({place[1] for place in cells if place}) > 1:
            return name
    return next(iter(sheets))


def parts_of_book(path: Path) -> dict[str, bytes]:
    """Return the parts of a book by name, if they fit in memory."""
    with zipfile.ZipFile(path) as book:
        _check_unpacked(path, book)
        return {member.filename: book.read(member) for member in book.infolist()}


def _check_unpacked(path: Path, book: zipfile.ZipFile) -> None:
    sizes = [member.file_size for member in book.infolist()]
    if len(set(book.namelist())) < len(sizes):
        raise TableFileError(path, "two of its parts have the same name")
    check_memory((2 * sum(sizes),), np.uint8, "the unpacked book", "split it")


def sheet_parts(parts: dict[str, bytes]) -> dict[str, str]:
    """Map the name of each sheet to the part that holds it."""
    relations = ElementTree.fromstring(parts["xl/_rels/workbook.xml.rels"])
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    found = {}
    for sheet in ElementTree.fromstring(parts["xl/workbook.xml"]).iter():
        if sheet.tag.rpartition("}")[2] == "sheet":
            key = next(value for name, value in sheet.attrib.items() if name.endswith("}id"))
            target = targets[key]
            part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            if part in parts:  # a chart has no cells
                found[sheet.attrib["name"]] = part
    return found


def column_number(letters: bytes) -> int:
    """Return the number of a column, from 1: that of AA is 27."""
    return reduce(lambda n, c: 26 * n + c - 64, letters.upper(), 0)


def _check_cells(path: Path, xml: bytes) -> None:
    """Refuse a sheet with a cell far away, twice, or with an error in place of a value."""
    tags = _CELL.findall(xml)
    given = [match.groups() for match in map(_PLACE.search, tags) if match]
    if len(set(given)) < len(given):
        again, _ = Counter(given).most_common(1)[0]
        raise TableFileError(path, f"the cell {b''.join(again).decode()} is given twice")
    strange = {match[1] for match in map(_KIND.search, tags) if match} - _KINDS
    if strange:
        raise TableFileError(path, f"a cell is of no known kind: {shown(min(strange).decode())}")
    rows = max(map(int, {*_ROW.findall(xml), *(digits for _, digits in given)}), default=1)
    columns = max(map(column_number, {b"A", *(letters for letters, _ in given)}))
    _check_area(path, rows, columns + len(tags) - len(given), len(tags))
    for match in _ERROR.finditer(xml):
        if match[1].strip() != _NO_VALUE:
            tag = xml[xml.rindex(b"<", 0, match.start()) : match.start()]
            place = _PLACE.search(tag)
            name = f"the cell {(place[1] + place[2]).decode()}" if place else "a cell"
            raise TableFileError(path, f"{name} holds the error {shown(match[1].decode())}")


def _check_area(path: Path, rows: int, columns: int, cells: int) -> None:
    if rows > _MOST_ROWS or columns > _MOST_COLUMNS:
        raise TableFileError(path, "a cell lies beyond the last row or column of a sheet")
    if rows * columns > max(_SPARSE * cells, _SMALL):
        raise TableFileError(
            path,
            f"{cells} cells are spread over {rows} rows and {columns} columns: remove those "
            "that lie far from the table",
        )
    check_memory((rows, columns, _CELL_BYTES), np.uint8, "the sheet", "save it as CSV")


def write_book(sheets: dict[str, pl.DataFrame], path: Path, header: bool) -> None:
    """Write frames as sheets: text stays text, also where it looks like a formula or an address."""
    try:
        import xlsxwriter
    except ImportError as error:
        raise ValueError("Excel files need: pip install 'declip[files]'") from error
    plain = {"strings_to_formulas": False, "strings_to_urls": False, "constant_memory": True}
    with xlsxwriter.Workbook(str(path), plain) as book:
        bold = book.add_format({"bold": True})
        for name, frame in sheets.items():
            if frame.height + header > _MOST_ROWS or frame.width > _MOST_COLUMNS:
                raise ValueError(
                    f"{frame.height} x {frame.width} is too large for Excel: use CSV or Parquet",
                )
            sheet = book.add_worksheet(name[:31])
            if header:
                sheet.write_row(0, 0, frame.columns, bold)
                sheet.freeze_panes(1, 1)
            for i, record in enumerate(frame.iter_rows(), start=int(header)):
                for j, cell in enumerate(record):
                    if cell is not None:
                        sheet.write(i, j, cell)
