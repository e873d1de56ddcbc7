"""Lists in files: frames that are results and not tables to be read again."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from polars import selectors as cs

from declip.io.errors import TableFileError, about_file, new_file
from declip.io.excel import write_book
from declip.io.formats import TableFile, kind_of
from declip.io.known import said_of_rows
from declip.io.reading import listed_again

__all__ = ["groups_of_rows", "write_frame"]


def write_frame(frame: pl.DataFrame, path: Path, name: str, overwrite: bool = False) -> Path:
    """Write a list as text, Parquet or Excel, by the end of the file's name."""
    kind = kind_of(path)
    with new_file(path, overwrite) as temporary, about_file(path, "cannot be written"):
        if kind == "parquet":
            frame.write_parquet(temporary)
        elif kind == "excel":
            write_book({name: frame}, temporary, header=True)
        elif kind == "csv":
            tab = path.suffix.lower() in (".tsv", ".tab")
            whole = cs.float().cast(pl.String).str.replace(r"\.0$", "")
            frame.with_columns(whole).write_csv(temporary, separator="\t" if tab else ",")
        else:
            raise TableFileError(path, "a list is written as .csv, .tsv, .parquet or .xlsx")
    return path


def groups_of_rows(table: TableFile, header: str) -> list[str]:
    """Return what a column of a file says of each row of its table.

    Raises
    ------
    TableFileError
        If there is no such column, or if lines of one row differ in it.
    """
    if table.plan is None:
        raise TableFileError(table.path, f"it has no lines, and so no column {header!r}")
    said = said_of_rows(listed_again(table), header)
    return said.cast(pl.String).fill_null("").to_list()
