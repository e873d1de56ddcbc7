"""Tables brought into the frames that files hold: wide, or one line a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from declip.containers import opened
from declip.intervals import Intervals
from declip.io.errors import shown
from declip.io.formats import TableFormat
from declip.validation import check_memory

__all__ = ["Content", "as_frame", "cells_as_text", "dense", "values_and_labels"]

_LONG_NAMES = ("row", "column", "value")


@dataclass(frozen=True, eq=False)
class Content:
    """What is to be written: a dense table, or cells of a sparse one, with labels."""

    values: Any
    row_labels: NDArray | None
    col_labels: NDArray | None
    extras: dict[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape


def values_and_labels(table: Any) -> tuple[Any, NDArray | None, NDArray | None]:
    """Return the array, COO matrix or Intervals that a table is, and labels that it carries."""
    if isinstance(table, Intervals):
        return table, table.row_labels, table.col_labels
    container = opened(table)
    table = container.table
    if sparse.issparse(table):
        return table.tocoo(), None, None
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        index = getattr(table, "index", None)
        numbered = index is None or type(index).__name__ == "RangeIndex"
        names = np.array(frame.columns, dtype=object)
        return frame.to_numpy(), None if numbered else np.asarray(index), names
    values = np.ma.filled(np.ma.asarray(table, dtype=float), np.nan) if np.ma.isMA(table) else table
    values = np.asarray(values)
    if values.ndim != 2:
        raise ValueError(f"a table has two dimensions; this has {values.ndim}")
    return values, *container.labels


def cells_as_text(lower: NDArray, upper: NDArray, decimal: str = ".") -> pl.Series:
    """Return intervals as they are written in a file: ``5.0``, ``<5.0``, ``>5.0``, ``1.0-5.0``."""
    low, high = (
        pl.col(name).cast(pl.String).str.replace(".", decimal, literal=True)
        for name in ("low", "high")
    )
    text = (
        pl.when(pl.col("low").is_nan())
        .then(None)
        .when(pl.col("low") == pl.col("high"))
        .then(low)
        .when(pl.col("high") == np.inf)
        .then(">" + low)
        .when(pl.col("low") == -np.inf)
        .then("<" + high)
        .otherwise(low + "-" + high)
    )
    return pl.DataFrame({"low": lower, "high": upper}).select(value=text).to_series()


def _column(values: NDArray) -> pl.Series:
    """Return numbers with null for NaN, or words."""
    if values.dtype.kind in "OUS":
        return pl.Series([None if cell is None else str(cell) for cell in values], dtype=pl.String)
    if values.dtype.kind in "biu":
        return pl.Series(values)
    return pl.Series(np.ascontiguousarray(values)).fill_nan(None)


def _labels(labels: NDArray | None, size: int) -> pl.Series:
    if labels is None:
        return pl.Series(np.arange(size))
    names = labels.tolist()
    return pl.Series(names if len({type(name) for name in names}) == 1 else map(str, names))


def as_frame(content: Content, form: TableFormat) -> pl.DataFrame:
    """Return the frame that a file of this form holds."""
    long = form.layout == "long"
    return _long_frame(content, form) if long else _wide_frame(content, form)


def _wide_frame(content: Content, form: TableFormat) -> pl.DataFrame:
    n, m = content.shape
    check_memory((n, m), np.float64, "a wide file", "write a long one")
    names = [str(name) for name in _labels(content.col_labels, m)]
    columns = dict(zip(names, _wide_columns(content.values, form.decimal or "."), strict=True))
    if len(columns) < m:
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise ValueError(f"two columns are named {shown(twice)}: names must differ")
    if content.row_labels is not None:
        columns = {_row_header(form, columns): _labels(content.row_labels, n), **columns}
    return pl.DataFrame(columns)


def _row_header(form: TableFormat, taken: dict[str, Any]) -> str:
    wanted = "" if form.rows is None else form.rows
    free = (name for name in (wanted, "row", "row_label", "row label") if name not in taken)
    return next(free)


def _wide_columns(values: Any, decimal: str) -> list[pl.Series]:
    if isinstance(values, Intervals):
        lower, upper = values.to_bounds()
        if values.n_censored == 0:
            return [_column(column) for column in lower.T]
        return [
            cells_as_text(low, high, decimal) for low, high in zip(lower.T, upper.T, strict=True)
        ]
    return [_column(column) for column in dense(values).T]


def dense(values: Any) -> NDArray:
    """Return a dense table; cells that a sparse one does not store are NaN."""
    if not sparse.issparse(values):
        return values
    check_memory(values.shape, np.float64, "the table", "write it as a long one, or as npz")
    table = np.full(values.shape, np.nan)
    table[values.row, values.col] = values.data
    return table


def _long_frame(content: Content, form: TableFormat) -> pl.DataFrame:
    n, m = content.shape
    names = [
        wanted or usual
        for wanted, usual in zip((form.rows, form.columns, form.values), _LONG_NAMES, strict=True)
    ]
    if len({*names, "flag", "band_lower", "band_upper"}) < 6:
        names = list(_LONG_NAMES)
    rows, cols, text = _long_cells(content.values, form.decimal or ".")
    columns = {
        names[0]: _labels(content.row_labels, n).gather(rows),
        names[1]: _labels(content.col_labels, m).gather(cols),
        names[2]: text,
    }
    for name, extra in content.extras.items():
        column = name if name == "flag" else f"band_{name}"
        columns[column] = _column(dense(extra)[rows, cols])
    return pl.DataFrame(columns)


def _long_cells(values: Any, decimal: str) -> tuple[NDArray, NDArray, pl.Series]:
    """Return rows, columns and contents of the cells: all of a dense table, else the stored."""
    if isinstance(values, Intervals):
        rows, cols, lower, upper = values.triplets()
        order = np.lexsort((cols, rows))
        rows, cols, lower, upper = (x[order] for x in (rows, cols, lower, upper))
        return (
            rows,
            cols,
            _column(lower) if values.n_censored == 0 else cells_as_text(lower, upper, decimal),
        )
    if sparse.issparse(values):
        return values.row, values.col, _column(values.data)
    rows, cols = (index.ravel() for index in np.indices(values.shape, dtype=np.int32))
    return rows, cols, _column(values.ravel())
