"""What columns of a file say of the rows of its table: features, and the groups of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.errors import TableFileError
from declip.io.layouts import Listed
from declip.io.parsing import parse_cells
from declip.io.plan import Asked

__all__ = ["known_of_rows", "said_of_rows"]


def known_of_rows(listed: Listed, asked: Asked) -> dict[str, Any]:
    """Return the columns that are known of rows as arguments of `declip.restore`."""
    known: dict[str, Any] = {}
    if asked.covariates:
        columns = {name: said_of_rows(listed, name) for name in asked.covariates}
        known["row_features"] = {
            name: _numbers_or_texts(said, listed, asked) for name, said in columns.items()
        }
    for name in asked.groups:
        known["groups"] = _texts(said_of_rows(listed, name))
    return known


def said_of_rows(listed: Listed, header: str) -> pl.Series:
    """Return what a column of a file says of each row of its table.

    Raises
    ------
    TableFileError
        If there is no such column, or if lines of one row differ in it.
    """
    line = np.arange(len(listed.rows)) if listed.line is None else listed.line
    said = listed.sheet.series(header).gather(line)
    lines = pl.DataFrame({"row": listed.rows, "said": said}).unique(maintain_order=True)
    differ = lines.filter(pl.col("row").is_duplicated()).sort("row", maintain_order=True)
    if differ.height:
        one, other = differ["said"].cast(pl.String).fill_null("")[:2]
        raise TableFileError(
            listed.sheet.path,
            f"column {header!r} says nothing of rows: lines of one row have {one!r} and {other!r}",
        )
    rows = pl.DataFrame({"row": np.arange(listed.shape[0], dtype=np.int32)})
    return rows.join(lines, on="row", how="left", maintain_order="left")["said"]


def _numbers_or_texts(said: pl.Series, listed: Listed, asked: Asked) -> NDArray[Any]:
    """Return numbers if all that is there are some or missing, else the texts."""
    form = listed.sheet.format
    words = said if said.dtype.is_numeric() else said.cast(pl.String)
    found = parse_cells(words, form.decimal or ".", asked.missing, None, form.thousands)
    plain = (found.lower == found.upper) | (np.isnan(found.lower) & (found.word == 0))
    if len(found.bad) or not plain.all():
        return _texts(said)
    return found.lower


def _texts(said: pl.Series) -> NDArray[Any]:
    return np.array(said.cast(pl.String).to_list(), object)
