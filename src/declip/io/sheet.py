"""A table as it stands in a file: columns of text or numbers, and the line of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.errors import TableFileError, shown
from declip.io.formats import TableFormat
from declip.io.plan import Skipped
from declip.io.problems import Problem, Remedy

__all__ = ["Lines", "Sheet"]

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
    header : tuple of str
        Names of the columns; empty before the header is taken.
    fields : tuple of int
        Field of the file of each column, where some were left out; empty if none was.
    skipped : tuple of Skipped
        Lines that are no part of the table.
    units : mapping
        Unit of a column, from a row below the header.
    spanned : frozenset of int
        Rows with cells merged across columns: headings, not names.
    sheets : tuple of str
        All sheets of the book that it comes from.
    checksum : int
        Of the file.
    header_line : int
        Line of the names; 0 if there is none.
    """

    path: Path
    frame: pl.DataFrame
    lines: Lines
    unit: str
    format: TableFormat
    header: tuple[str, ...] = ()
    fields: tuple[int, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    spanned: frozenset[int] = frozenset()
    sheets: tuple[str, ...] = ()
    checksum: int = 0
    header_line: int = 0

    def fail(
        self, message: str, row: int | None = None, column: int | None = None, *remedies: Remedy
    ) -> NoReturn:
        """Raise the error about a row and a column, both counted from 0."""
        raise TableFileError(self.path, self.problem(message, row, column, *remedies))

    def problem(
        self, message: str, row: int | None = None, column: int | None = None, *remedies: Remedy
    ) -> Problem:
        """Return what is wrong with a row and a column, both counted from 0."""
        place = None if row is None else f"{self.unit} {self.lines[row]}"
        name = None if column is None else self.header[column]
        return Problem(message, place, name, remedies=remedies)

    def placed(self, problem: Problem, row: int, column: int, count: int = 1) -> Problem:
        """Return a problem with its place."""
        place = f"{self.unit} {self.lines[row]}"
        return replace(problem, place=place, column=self.header[column], count=count)

    def column(self, name: str) -> int:
        """Return the position of the column with a header."""
        if name not in self.header:
            some = ", ".join(shown(known) for known in self.header[:5])
            more = ", ..." if len(self.header) > 5 else ""
            self.fail(f"there is no column {shown(name)}; there are {some}{more}")
        return self.header.index(name)

    def series(self, name: str) -> pl.Series:
        """Return the fields of the column with a header."""
        return self.frame.to_series(self.column(name))

    def repeats(self, names: Sequence[str]) -> bool:
        """Tell whether two lines agree in all of these columns."""
        keys = self.frame.select(str(self.column(name)) for name in names)
        return keys.n_unique() < keys.height
