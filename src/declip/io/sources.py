"""Files of rows and columns: text, Parquet and Excel, opened as sheets."""

from __future__ import annotations

from pathlib import Path

from declip.io.errors import TableFileError
from declip.io.excel import read_book
from declip.io.formats import TableFormat
from declip.io.parquet import read_parquet
from declip.io.sheet import Sheet
from declip.io.text import read_text

__all__ = ["read_sheet"]


def read_sheet(path: Path, wanted: TableFormat, skip: tuple[int, ...] | None = None) -> Sheet:
    """Read a file of rows and columns; a Parquet file comes with its header taken."""
    if not path.exists():
        raise TableFileError(path, "there is no such file")
    if path.is_dir():
        raise TableFileError(path, "this is a folder, not a file")
    readers = {"csv": read_text, "parquet": read_parquet, "excel": read_book}
    if wanted.kind not in readers:
        raise TableFileError(path, f"a {path.suffix} file has no named columns")
    sheet = readers[wanted.kind](path, wanted, skip)
    if not sheet.frame.height or not sheet.frame.width:
        sheet.fail("the table is empty")
    return sheet
