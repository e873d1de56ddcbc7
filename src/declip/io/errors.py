"""The one exception about files of tables, the words of its messages, and new files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from polars.exceptions import PanicException, PolarsError

from declip import persistence
from declip.persistence import FileError, one_line

__all__ = ["TableFileError", "about_file", "new_file", "shown"]

_LONGEST = 60  # characters of a cell or of a foreign message that are quoted


class TableFileError(FileError):
    """A file cannot be read as a table, or a table cannot be written to it.

    The message is one line that names the file and, where there is one, the line and the column.

    Attributes
    ----------
    path : Path
        The file.
    place : str or None
        Where in it, such as ``line 7``.
    column : str or None
        Header of the column.

    Examples
    --------
    >>> from declip import read_table
    >>> from declip.io import TableFileError
    >>> try:
    ...     read_table("nowhere.csv")
    ... except TableFileError as error:
    ...     print(error)
    nowhere.csv: there is no such file
    """

    def __init__(
        self, path: Path | str, message: str, place: str | None = None, column: str | None = None
    ) -> None:
        where = [
            *([place] if place else []),
            *([f"column {shown(column)}"] if column is not None else []),
        ]
        super().__init__(path, message, *where)
        self.place, self.column = place, column


# A file that appears whole or not at all.
new_file = partial(persistence.new_file, error=TableFileError)


def shown(cell: Any) -> str:
    """Return a cell, quoted, cut if it is long."""
    text = str(cell)
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "...")


@contextmanager
def about_file(path: Path, what: str) -> Iterator[None]:
    """Turn what a reading or writing library raises into a `TableFileError`."""
    try:
        yield
    except TableFileError:
        raise
    except MemoryError as error:
        figure = one_line(str(error)) or "there is too little memory for it"
        raise TableFileError(path, f"{what}: {figure}") from error
    except OSError as error:
        raise TableFileError(path, f"{what}: {error.strerror or error}") from error
    except (PolarsError, PanicException, Exception) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        message = one_line(first) or type(error).__name__
        raise TableFileError(path, f"{what}: {message[:200]}") from error
