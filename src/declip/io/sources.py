"""Files of rows and columns: text, Parquet and Excel, opened as sheets."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import polars as pl

from declip.io.errors import TableFileError, about_file
from declip.io.excel import read_book
from declip.io.formats import TableFormat
from declip.io.sheet import Sheet
from declip.io.text import read_text

__all__ = ["read_sheet"]


def read_sheet(path: Path, wanted: TableFormat, skip: tuple[int, ...] | None = None) -> Sheet:
    """Read a file of rows and columns; a Parquet file comes with its header taken."""
    if not path.exists():
        raise TableFileError(path, "there is no such file")
    if path.is_dir():
        raise TableFileError(path, "this is a folder, not a file")
    readers = {"csv": read_text, "parquet": _read_parquet, "excel": read_book}
    if wanted.kind not in readers:
        raise TableFileError(path, f"a {path.suffix} file has no named columns")
    sheet = readers[wanted.kind](path, wanted, skip)
    if not sheet.frame.height or not sheet.frame.width:
        sheet.fail("the table is empty")
    return sheet


def _read_parquet(path: Path, wanted: TableFormat, skip: tuple[int, ...] | None) -> Sheet:
    with about_file(path, "cannot be read as Parquet"):
        frame = pl.read_parquet(path)
        names = tuple(frame.columns)
        frame.columns = [str(j) for j in range(frame.width)]
    lines = range(1, frame.height + 1)
    form = replace(wanted, header=True)
    checksum = zlib.crc32(path.read_bytes())
    return Sheet(path, frame, lines, "row", form, names, checksum=checksum)
