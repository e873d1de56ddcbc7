"""The list of all cells of a restoration, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from declip.io import TableFile
from declip.io.edits import listed_cells
from declip.io.frames import cells_as_text
from declip.io.listing import write_frame
from declip.io.reading import listed_again
from declip.report.view import View
from declip.validation import check_memory

__all__ = ["write_cells"]


def write_cells(
    restoration: Any,
    path: str | Path,
    overwrite: bool = False,
    like: TableFile | None = None,
    fill: bool = True,
) -> Path:
    """Write one line for each cell: what was reported, its value now, its flag and its band.

    Parameters
    ----------
    restoration : Restoration
        What `declip.restore` gave.
    path : str or Path
        File to come: text, Parquet or Excel.
    overwrite : bool, default=False
        Whether a file that exists may be replaced.
    like : TableFile, optional
        The file that the table came from: its cells are then listed in its order, with the text
        that it has for each.
    fill : bool, default=True
        Whether cells of that file without a value are listed with the one that they got.

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
    >>> from declip.report import write_cells
    >>> rng = np.random.default_rng(0)
    >>> table = np.minimum(rng.normal(size=(40, 1)) + 0.2 * rng.normal(size=(40, 4)), 1)
    >>> r = declip.restore(table, ceiling=1, method="tobit", n_components=1)
    >>> with TemporaryDirectory() as folder:
    ...     text = write_cells(r, Path(folder, "cells.csv")).read_text()
    >>> text.splitlines()[0]
    'row,column,reported,value,flag,band_lower,band_upper'
    """
    with_file = like is not None and like.plan is not None
    frame = _of_file(restoration, like, fill) if with_file else _listed(View(restoration))
    return write_frame(frame, Path(path), "cells", overwrite)


def _of_file(restoration: Any, like: Any, fill: bool) -> pl.DataFrame:
    extras = {"flag": restoration.flags, "lower": restoration.lower, "upper": restoration.upper}
    listed = listed_again(like)
    return listed_cells(like.intervals, listed, restoration.table, extras, fill)


def _listed(view: View) -> pl.DataFrame:
    check_memory((*view.shape, 6), np.float64, "the list of cells", "write the table alone")
    n, m = view.shape
    columns = [view.column(j) for j in range(m)]
    stack = {
        name: np.stack([getattr(column, name) for column in columns], axis=1).ravel()
        for name in ("known_lower", "known_upper", "value", "flag", "low", "high")
    }
    return pl.DataFrame(
        {
            "row": np.repeat(np.array(view.row_names, dtype=object), m).tolist(),
            "column": np.tile(np.array(view.col_names, dtype=object), n).tolist(),
            "reported": cells_as_text(stack["known_lower"], stack["known_upper"]),
            "value": stack["value"],
            "flag": stack["flag"].tolist(),
            "band_lower": stack["low"],
            "band_upper": stack["high"],
        }
    ).with_columns(pl.col("value", "band_lower", "band_upper").fill_nan(None))
