"""Tables written to files, in the form of the file that they came from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import io as scipy_io
from scipy import sparse

from declip.intervals import Intervals
from declip.io.atomic import new_file
from declip.io.errors import TableFileError, about_file, shown
from declip.io.excel import write_book
from declip.io.formats import Layout, TableFile, TableFormat, kind_of
from declip.validation import check_memory

__all__ = ["cells_as_text", "values_and_labels", "write_table"]

_LONG_NAMES = ("row", "column", "value")


@dataclass(frozen=True, eq=False)
class _Content:
    """What is to be written: a dense table, or cells of a sparse one, with labels."""

    values: Any
    row_labels: NDArray | None
    col_labels: NDArray | None
    extras: dict[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape


def write_table(
    table: Any,
    path: str | Path,
    *,
    like: TableFile | None = None,
    layout: Layout | None = None,
    flags: Any = None,
    lower: Any = None,
    upper: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write a table to a file, with the labels and in the form of the file that it came from.

    The file appears whole or not at all.

    Parameters
    ----------
    table : array, data frame, scipy.sparse container or Intervals
        Numbers, or words such as flags. An `Intervals` is written with cells like ``<0.5``. Of a
        sparse table the stored cells are written.
    path : str or Path
        The file; the end of its name says its kind.
    like : TableFile, optional
        What `read_table` gave: labels that the table does not carry itself, layout and, if the kind
        is the same, separator, decimal sign, encoding and columns left aside.
    layout : {"wide", "long"}, optional
        One line a row of the table, or one line a cell; by default that of ``like``, or wide.
    flags, lower, upper : tables, optional
        What became of each cell, and the band around it. They become columns of a long table,
        sheets of an Excel file or arrays of an npz file; a wide text or Parquet file has no room
        for them.
    overwrite : bool, default=False
        Whether a file that exists may be replaced.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from declip import Intervals, write_table
    >>> cells = Intervals.from_table(np.array([[3.0, 5.0], [np.nan, 1.0]]), ceiling=5)
    >>> with TemporaryDirectory() as folder:
    ...     print(write_table(cells, Path(folder, "cells.csv")).read_text())
    3.0,>5.0
    ,1.0
    """
    path = Path(path)
    form = _form(path, like, layout)
    extras = {"flag": flags, "lower": lower, "upper": upper}
    content = _content(table, like, {name: x for name, x in extras.items() if x is not None})
    if content.extras and form.layout == "wide" and form.kind in ("csv", "parquet", "mtx"):
        raise TableFileError(
            path, "a wide table has no room for flags and bands: use the long layout, or two files"
        )
    with new_file(path, overwrite) as temporary, about_file(path, "cannot be written"):
        _WRITERS[form.kind](content, temporary, form, like)
    return path


def _form(path: Path, like: TableFile | None, layout: Layout | None) -> TableFormat:
    """Return the form of the new file: what is asked for, then that of ``like``, then the usual."""
    kind = kind_of(path)
    form = TableFormat(kind) if like is None else replace(like.format, kind=kind)
    if like is None or like.format.kind != kind:
        tab = path.suffix.lower() in (".tsv", ".tab")
        form = replace(form, separator="\t" if tab else ",", decimal=".", encoding="utf-8")
        form = replace(form, newline="\n", sheet=None)
    if layout not in (None, "wide", "long"):
        raise ValueError(f"layout must be 'wide' or 'long'; got {layout!r}")
    return replace(form, layout=layout or form.layout or "wide")


def _content(table: Any, like: TableFile | None, extras: dict[str, Any]) -> _Content:
    values, rows, cols = values_and_labels(table)
    if like is not None and like.intervals.shape == values.shape:
        rows = like.intervals.row_labels if rows is None else rows
        cols = like.intervals.col_labels if cols is None else cols
    beside = {name: values_and_labels(extra)[0] for name, extra in extras.items()}
    for name, extra in beside.items():
        if extra.shape != values.shape:
            raise ValueError(f"{name} has shape {extra.shape}, where the table has {values.shape}")
    return _Content(values, rows, cols, beside)


def values_and_labels(table: Any) -> tuple[Any, NDArray | None, NDArray | None]:
    """Return the array, COO matrix or Intervals that a table is, and labels that it carries."""
    if isinstance(table, Intervals):
        return table, table.row_labels, table.col_labels
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
    return values, None, None


def cells_as_text(lower: NDArray, upper: NDArray) -> pl.Series:
    """Return intervals as they are written in a file: ``5.0``, ``<5.0``, ``>5.0``, ``1.0-5.0``."""
    low, high = pl.col("low").cast(pl.String), pl.col("high").cast(pl.String)
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


def _frame(
    content: _Content, form: TableFormat, like: TableFile | None, path: Path
) -> pl.DataFrame:
    long = form.layout == "long"
    return _long_frame(content, form, path) if long else _wide_frame(content, form, like, path)


def _wide_frame(
    content: _Content, form: TableFormat, like: TableFile | None, path: Path
) -> pl.DataFrame:
    n, m = content.shape
    check_memory((n, m), np.float64, "a wide file", "write a long one")
    names = [str(name) for name in _labels(content.col_labels, m)]
    columns = dict(zip(names, _wide_columns(content.values), strict=True))
    if len(columns) < m:
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise TableFileError(path, f"two columns are named {shown(twice)}: names must differ")
    aside = {} if like is None or like.aside is None else dict(like.aside.to_dict())
    aside = {
        name: cells for name, cells in aside.items() if name not in columns and len(cells) == n
    }
    if content.row_labels is not None:
        aside = {_row_header(form, columns): _labels(content.row_labels, n), **aside}
    everything = {**aside, **columns}
    order = [name for name in (like.header if aside and like else ()) if name in everything]
    if set(order) != set(everything):
        order = list(everything)
    return pl.DataFrame({name: everything[name] for name in order})


def _row_header(form: TableFormat, taken: dict[str, Any]) -> str:
    wanted = "" if form.rows is None else form.rows
    free = (name for name in (wanted, "row", "row_label", "row label") if name not in taken)
    return next(free)


def _wide_columns(values: Any) -> list[pl.Series]:
    if isinstance(values, Intervals):
        lower, upper = values.to_bounds()
        if values.n_open == 0:
            return [_column(column) for column in lower.T]
        return [cells_as_text(low, high) for low, high in zip(lower.T, upper.T, strict=True)]
    dense = _dense(values)
    return [_column(column) for column in dense.T]


def _dense(values: Any) -> NDArray:
    """Return a dense table; cells that a sparse one does not store are NaN."""
    if not sparse.issparse(values):
        return values
    table = np.full(values.shape, np.nan)
    table[values.row, values.col] = values.data
    return table


def _long_frame(content: _Content, form: TableFormat, path: Path) -> pl.DataFrame:
    n, m = content.shape
    names = [
        wanted or usual
        for wanted, usual in zip((form.rows, form.columns, form.values), _LONG_NAMES, strict=True)
    ]
    if len({*names, "flag", "band_lower", "band_upper"}) < 6:
        names = list(_LONG_NAMES)
    rows, cols, text = _long_cells(content.values)
    columns = {
        names[0]: _labels(content.row_labels, n).gather(rows),
        names[1]: _labels(content.col_labels, m).gather(cols),
        names[2]: text,
    }
    for name, extra in content.extras.items():
        column = name if name == "flag" else f"band_{name}"
        columns[column] = _column(_dense(extra)[rows, cols])
    return pl.DataFrame(columns)


def _long_cells(values: Any) -> tuple[NDArray, NDArray, pl.Series]:
    """Return rows, columns and contents of the cells: all of a dense table, else the stored."""
    if isinstance(values, Intervals):
        rows, cols, lower, upper = values.triplets()
        order = np.lexsort((cols, rows))
        rows, cols, lower, upper = (x[order] for x in (rows, cols, lower, upper))
        return rows, cols, _column(lower) if values.n_open == 0 else cells_as_text(lower, upper)
    if sparse.issparse(values):
        return values.row, values.col, _column(values.data)
    rows, cols = (index.ravel() for index in np.indices(values.shape, dtype=np.int32))
    return rows, cols, _column(values.ravel())


def _write_text(content: _Content, path: Path, form: TableFormat, like: TableFile | None) -> None:
    frame = _frame(content, form, like, path)
    comma = form.decimal == ","
    if comma:
        frame = frame.with_columns(
            pl.col(pl.Float64, pl.Float32).cast(pl.String).str.replace(".", ",", literal=True)
        )
        if isinstance(content.values, Intervals):
            cells = frame.columns if form.layout == "wide" else [frame.columns[2]]
            cells = cells[content.row_labels is not None and form.layout == "wide" :]
            frame = frame.with_columns(pl.col(cells).str.replace_all(".", ",", literal=True))
    named = form.header or content.col_labels is not None or form.layout == "long"
    text = frame.write_csv(
        separator=form.separator or ",",
        line_terminator=form.newline,
        include_header=bool(named),
        # a line of nothing would be taken for a blank one
        null_value="NA" if frame.width == 1 else "",
    )
    path.write_bytes(text.encode(form.encoding or "utf-8"))


def _write_parquet(
    content: _Content, path: Path, form: TableFormat, like: TableFile | None
) -> None:
    _frame(content, form, like, path).write_parquet(path)


def _write_excel(content: _Content, path: Path, form: TableFormat, like: TableFile | None) -> None:
    sheets = {form.sheet or "table": _frame(replace(content, extras={}), form, like, path)}
    if form.layout == "long":
        sheets = {form.sheet or "table": _frame(content, form, like, path)}
    else:
        for name, extra in content.extras.items():
            beside = replace(content, values=extra, extras={})
            sheets[{"flag": "flags"}.get(name, name)] = _frame(beside, form, None, path)
    named = form.header or content.col_labels is not None or form.layout == "long"
    write_book(sheets, path, header=bool(named))


def _write_npz(content: _Content, path: Path, form: TableFormat, like: TableFile | None) -> None:
    labels = {"row_labels": content.row_labels, "col_labels": content.col_labels}
    arrays = {name: np.array(array.tolist()) for name, array in labels.items() if array is not None}
    extras = {
        {"flag": "flags"}.get(name, f"band_{name}"): np.array(_dense(extra).tolist())
        for name, extra in content.extras.items()
    }
    everything: dict[str, Any] = {**_npz_cells(content.values), **arrays, **extras}
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **everything)


def _npz_cells(values: Any) -> dict[str, NDArray]:
    if isinstance(values, Intervals):
        if values.n_open:
            return dict(zip(("lower", "upper"), values.to_bounds(), strict=True))
        rows, cols, lower, _ = values.triplets()
        return {"rows": rows, "cols": cols, "values": lower, "shape": np.array(values.shape)}
    if sparse.issparse(values):
        shape = np.array(values.shape)
        return {"rows": values.row, "cols": values.col, "values": values.data, "shape": shape}
    return {"table": values if values.dtype.kind in "fiu" else np.array(values.tolist())}


def _write_market(content: _Content, path: Path, form: TableFormat, like: TableFile | None) -> None:
    values = content.values
    if isinstance(values, Intervals):
        if values.n_open:
            raise TableFileError(
                path, "a MatrixMarket file has no room for limits: use another kind"
            )
        rows, cols, cells, _ = values.triplets()
        values = sparse.coo_array((cells, (rows, cols)), shape=values.shape)
    if values.dtype.kind not in "fiu":
        raise TableFileError(path, "a MatrixMarket file holds numbers only: use another kind")
    with path.open("wb") as file:
        scipy_io.mmwrite(file, values, precision=17)


_WRITERS = {
    "csv": _write_text,
    "parquet": _write_parquet,
    "excel": _write_excel,
    "npz": _write_npz,
    "mtx": _write_market,
}
