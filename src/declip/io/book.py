"""Cells of an Excel file changed in place: other sheets, formats, charts and formulas stay."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from declip.io.edits import Edits
from declip.io.excel import column_number, parts_of_book, sheet_parts
from declip.io.sheet import Sheet

__all__ = ["edited_book"]

_ROW = re.compile(rb"<((?:\w+:)?)row\b([^>]*?)(?:/>|>(.*?)</\1row>)", re.S)
_CELL = re.compile(rb"<(?:\w+:)?c\b([^>]*?)(?:/>|>.*?</(?:\w+:)?c>)", re.S)
_PLACE = re.compile(rb"\br\s*=\s*[\"']([A-Za-z]*)([0-9]+)")
_STYLE = re.compile(rb"\bs\s*=\s*[\"']([0-9]+)[\"']")
_SPANS = re.compile(rb"\s+spans\s*=\s*[\"'][^\"']*[\"']")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

Cells = dict[int, dict[int, str]]


def edited_book(sheet: Sheet, edits: Edits, path: Path) -> None:
    """Write the book of a sheet anew, with its changes."""
    parts = parts_of_book(sheet.path)
    name = sheet_parts(parts)[sheet.format.sheet or ""]
    parts[name] = _edited(parts[name], _by_address(sheet, edits))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for part, data in parts.items():
            book.writestr(part, data)


def _by_address(sheet: Sheet, edits: Edits) -> Cells:
    """Return the new texts by row and column of the sheet, both from 1."""
    fields = [j + 1 for j in (sheet.fields or range(len(sheet.header)))]
    lines = [int(line) for line in sheet.lines]
    cells: Cells = {}
    for row, changes in edits.changed.items():
        cells.setdefault(lines[row], {}).update({fields[j]: t for j, t in changes.items()})
    free = max(fields) + 1
    where = dict(zip(sheet.header, fields, strict=True))
    where |= {name: free + k for k, name in enumerate(edits.added)}
    for name, texts in edits.added.items():
        if sheet.header_line:
            cells.setdefault(sheet.header_line, {})[where[name]] = name
        for line, text in zip(lines, texts, strict=True):
            cells.setdefault(line, {})[where[name]] = text
    for k, new in enumerate(edits.appended, start=max(lines) + 1):
        cells[k] = {where[name]: text for name, text in new.items()}
    return cells


def _edited(xml: bytes, cells: Cells) -> bytes:
    """Return the XML of a sheet with other texts in some cells."""
    left, number, prefix = dict(cells), 0, b""

    def row(match: re.Match[bytes]) -> bytes:
        nonlocal number, prefix
        place, prefix = _PLACE.search(match[2]), match[1]
        number = int(place[2]) if place else number + 1
        wanted = left.pop(number, None)
        return match[0] if wanted is None else _row(match, number, wanted)

    done = _ROW.sub(row, xml)
    new = b"".join(_new_row(prefix, k, texts) for k, texts in sorted(left.items()))
    end = b"</" + prefix + b"sheetData>"
    return done.replace(end, new + end, 1)


def _row(match: re.Match[bytes], number: int, wanted: Mapping[int, str]) -> bytes:
    prefix, attributes, content = match[1], _SPANS.sub(b"", match[2]), match[3] or b""
    there: dict[int, tuple[bytes, bytes]] = {}
    column = 0
    for cell in _CELL.finditer(content):
        place = _PLACE.search(cell[1])
        column = column_number(place[1]) if place and place[1] else column + 1
        style = _STYLE.search(cell[1])
        there[column] = (cell[0], style[0] if style else b"")
    texts = {j: cell for j, (cell, _) in there.items()}
    for j, text in wanted.items():
        texts[j] = _cell(prefix, j, number, text, there.get(j, (b"", b""))[1])
    inner = b"".join(texts[j] for j in sorted(texts))
    return b"<" + prefix + b"row" + attributes + b">" + inner + b"</" + prefix + b"row>"


def _new_row(prefix: bytes, number: int, texts: Mapping[int, str]) -> bytes:
    inner = b"".join(_cell(prefix, j, number, texts[j], b"") for j in sorted(texts))
    return b'<%srow r="%d">%s</%srow>' % (prefix, number, inner, prefix)


def _cell(prefix: bytes, column: int, row: int, text: str, style: bytes) -> bytes:
    """Return a cell: a number if its text is one, else text; in the format that it had."""
    head = b'<%sc r="%s%d"%s' % (prefix, _letters(column), row, b" " + style if style else b"")
    if not text:
        return head + b"/>"
    if _NUMBER.fullmatch(text):
        return head + b"><%sv>%s</%sv></%sc>" % (prefix, text.encode(), prefix, prefix)
    inner = escape(text).encode()
    return head + b' t="inlineStr"><%sis><%st xml:space="preserve">%s</%st></%sis></%sc>' % (
        prefix, prefix, inner, prefix, prefix, prefix,
    )  # fmt: skip


def _letters(column: int) -> bytes:
    """Return the letters of a column, from 1: AA is 27."""
    letters = b""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = bytes([65 + rest]) + letters
    return letters
