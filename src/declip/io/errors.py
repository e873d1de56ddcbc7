"""The one exception about files of tables, the words of its messages, and new files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polars.exceptions import PanicException, PolarsError

from declip import persistence
from declip.io.problems import Problem, in_python
from declip.persistence import FileError
from declip.wording import one_line

if TYPE_CHECKING:
    from declip.io.plan import ReadingPlan

__all__ = ["TableFileError", "about_file", "new_file", "shown"]

_NAMED = 4  # columns with further problems that a message names
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
    problems : tuple of Problem
        All that was found wrong, by column, each with what would solve it. The message is about the
        first, and names the others; they are notes of the exception.
    plan : ReadingPlan or None
        How the file was understood as far as that went.

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
        self,
        path: Path | str,
        message: str | Problem,
        place: str | None = None,
        column: str | None = None,
        more: Sequence[Problem] = (),
    ) -> None:
        first = message
        if not isinstance(first, Problem):
            first = Problem(str(message), place, None if column is None else str(column))
        said = one_line(first.said(in_python))
        super().__init__(path, said + _others(more), *first.where)
        self.place, self.column = first.place, first.column
        self.problems: tuple[Problem, ...] = (first, *more)
        self.plan: ReadingPlan | None = None
        for problem in more:
            self.add_note(one_line(f"{', '.join([*problem.where, ''])}{problem.said(in_python)}"))


def _others(more: Sequence[Problem]) -> str:
    if not more:
        return ""
    columns = list(dict.fromkeys(shown(p.column) for p in more if p.column is not None))
    of = f" (column {', '.join(columns[:_NAMED])})" if columns else ""
    return f"; and {len(more)} more problem{'s' * (len(more) > 1)}{of}"


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
