"""Imputations as a file in the long form that mice of R reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from declip.io import TableFileError, new_file
from declip.io.errors import about_file
from declip.io.formats import kind_of
from declip.report.view import View

__all__ = ["write_imputations"]


def write_imputations(
    restoration: Any,
    path: str | Path,
    n: int = 20,
    *,
    random_state: int | None = None,
    overwrite: bool = False,
) -> Path:
    """Write imputations of a restored table, one below the other, for ``as.mids`` of mice.

    Column ``.imp`` counts the tables: 0 is the table with its exact cells alone, 1 to n are drawn.
    Column ``.id`` names the row, with a count where several have one name. Only one table at a time
    is in memory.

    Parameters
    ----------
    restoration : Restoration
        What `declip.restore` gave.
    path : str or Path
        File to come: .csv or .tsv.
    n : int, default=20
        Tables to draw.
    random_state : int or None, default=None
        Seed of what is drawn; None is that of the restoration.
    overwrite : bool, default=False
        Whether a file that exists may be replaced.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import declip
    >>> from declip.report import write_imputations
    >>> table = np.minimum(np.random.default_rng(0).normal(size=(40, 2)), 1)
    >>> r = declip.restore(table, ceiling=1, method="column")
    >>> with TemporaryDirectory() as folder:
    ...     lines = write_imputations(r, Path(folder, "long.csv"), n=3).read_text().splitlines()
    >>> lines[0], len(lines)  # a header, the table itself and three imputations
    ('.imp,.id,0,1', 161)
    """
    path = Path(path)
    if kind_of(path) != "csv":
        raise TableFileError(path, "imputations are written as .csv or .tsv")
    separator = "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    view, cells = View(restoration), restoration.imputation
    at = (cells.cols, cells.rows) if restoration.transposed else (cells.rows, cells.cols)
    seen = np.full(len(cells.rows), np.nan)
    seen[: len(restoration.intervals.by_row.value)] = _exact(restoration)
    with (
        new_file(path, overwrite) as temporary,
        about_file(path, "cannot be written"),
        temporary.open("wb") as file,
    ):
        file.write(_lines(view, 0, at, seen).write_csv(separator=separator).encode())
        for k, values in enumerate(cells.tables(n, random_state), 1):
            frame = _lines(view, k, at, values)
            text = frame.write_csv(include_header=False, separator=separator)
            file.write(text.encode())
    return path


def _exact(restoration: Any) -> np.ndarray:
    intervals = restoration.intervals
    return (intervals.T if restoration.transposed else intervals).by_row.value


def _lines(view: View, number: int, at: tuple[Any, Any], values: np.ndarray) -> pl.DataFrame:
    table = np.full(view.shape, np.nan)
    table[at] = values
    columns = {
        ".imp": np.full(view.shape[0], number),
        ".id": _ids(view),
    }
    columns |= dict(zip(view.col_names, table.T, strict=True))
    return pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))


def _ids(view: View) -> Any:
    """Return what names the rows; mice refuses names that come again, so that these are counted."""
    if view.cells.row_labels is None:
        return np.arange(1, view.shape[0] + 1)
    names = view.row_names
    often, seen = Counter(names), Counter[str]()
    ids = []
    for name in names:
        seen[name] += 1
        ids.append(f"{name} / {seen[name]}" if often[name] > 1 else name)
    return ids if len({*ids}) == len(ids) else np.arange(1, len(ids) + 1)
