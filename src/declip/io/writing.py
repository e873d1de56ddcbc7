"""Tables written to files, in the form of the file that they came from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import io as scipy_io
from scipy import sparse

from declip.intervals import Intervals
from declip.io.book import edited_book
from declip.io.edits import Edits, edits_of
from declip.io.errors import TableFileError, about_file, new_file
from declip.io.excel import write_book
from declip.io.formats import Layout, TableFile, TableFormat, kind_of
from declip.io.frames import Content, as_frame, dense, values_and_labels
from declip.io.lines import edited_frame, edited_text
from declip.io.reading import listed_again
from declip.io.sheet import Sheet

__all__ = ["write_table"]


def write_table(
    table: Any,
    path: str | Path,
    *,
    like: TableFile | None = None,
    layout: Layout | None = None,
    flags: Any = None,
    lower: Any = None,
    upper: Any = None,
    digits: tuple[Any, Any] | None = None,
    in_place: bool = False,
    fill: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write a table to a file, with the labels and in the form of the file that it came from.

    Of a file that `read_table` read, all lines come back in their order with all their columns, and
    what is untouched keeps its text: cells that were not restored stay as they were reported, as in
    ``<3``. The file appears whole or not at all.

    Parameters
    ----------
    table : array, data frame, scipy.sparse container or Intervals
        Numbers, or words such as flags. An `Intervals` is written with cells like ``<0.5``. Of a
        sparse table the stored cells are written.
    path : str or Path
        The file; the end of its name says its kind.
    like : TableFile, optional
        What `read_table` gave: its lines are given back with what is new in them. Without lines
        (arrays, another layout) labels and, if the kind is the same, separator, decimal sign and
        encoding are taken from it.
    layout : {"wide", "long"}, optional
        One line a row of the table, or one line a cell; by default that of ``like``, or wide.
    flags, lower, upper : tables, optional
        What became of each cell, and the band around it. They become columns of a long table,
        sheets of an Excel file or arrays of an npz file; a wide text or Parquet file has no room
        for them.
    digits : pair of tables, optional
        Lower and upper bands by which new values are rounded, where these are not written: two
        digits of the nearer end count.
    in_place : bool, default=False
        Whether new values of a long file replace the reported ones; by default they stand in a
        column "restored" beside them. Marks of values that were replaced go.
    fill : bool, default=True
        Whether cells without a value get the one that the table has, and cells of which a long file
        does not speak a line of their own, at the end.
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
    extras = {name: x for name, x in extras.items() if x is not None}
    if like is not None and _gives_back(like, table, form, extras):
        listed = listed_again(like)
        in_place = in_place or isinstance(table, Intervals)
        bands = dict(zip(("lower", "upper"), digits or (), strict=False))
        edits = edits_of(like.intervals, listed, table, {**bands, **extras}, in_place, fill)
        with new_file(path, overwrite) as temporary, about_file(path, "cannot be written"):
            _write_back(listed.sheet, edits, temporary, form, like)
        return path
    content = _content(table, like, extras)
    if content.extras and form.layout == "wide" and form.kind in ("csv", "parquet", "mtx"):
        raise TableFileError(
            path, "a wide table has no room for flags and bands: use the long layout, or two files"
        )
    with new_file(path, overwrite) as temporary, about_file(path, "cannot be written"):
        _WRITERS[form.kind](content, temporary, form)
    return path


def _gives_back(like: TableFile, table: Any, form: TableFormat, extras: dict[str, Any]) -> bool:
    """Tell whether the lines of a file can be given back: known, and of this form."""
    if like.plan is None or form.layout != like.format.layout or form.kind in ("npz", "mtx"):
        return False
    wide_extras = extras and form.layout == "wide"
    return not wide_extras and _shape(table) == like.intervals.shape


def _shape(table: Any) -> tuple[int, ...]:
    return tuple(table.shape) if hasattr(table, "shape") else np.shape(table)


def _write_back(sheet: Sheet, edits: Edits, path: Path, form: TableFormat, like: TableFile) -> None:
    """Write the lines of a file with what is new in them, in its kind or in another."""
    if form.kind == like.format.kind == "csv":
        path.write_bytes(edited_text(sheet, edits))
    elif form.kind == like.format.kind == "excel":
        edited_book(sheet, edits, path)
    else:
        _write_frame(edited_frame(sheet, edits), path, form)


def _write_frame(frame: pl.DataFrame, path: Path, form: TableFormat) -> None:
    if form.kind == "parquet":
        frame.write_parquet(path)
    elif form.kind == "excel":
        write_book({form.sheet or "table": _with_numbers(frame)}, path, header=True)
    else:
        text = frame.write_csv(separator=form.separator or ",", include_header=bool(form.header))
        path.write_bytes(text.encode(form.encoding or "utf-8"))


def _with_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return columns of numbers as numbers, where all their texts are some."""
    numbers = frame.cast(pl.Float64, strict=False)
    same = [c for c in frame.columns if numbers[c].null_count() == frame[c].null_count()]
    return frame.with_columns(numbers[c] for c in same)


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


def _content(table: Any, like: TableFile | None, extras: dict[str, Any]) -> Content:
    values, rows, cols = values_and_labels(table)
    if like is not None and like.intervals.shape == values.shape:
        rows = like.intervals.row_labels if rows is None else rows
        cols = like.intervals.col_labels if cols is None else cols
    beside = {name: values_and_labels(extra)[0] for name, extra in extras.items()}
    for name, extra in beside.items():
        if extra.shape != values.shape:
            raise ValueError(f"{name} has shape {extra.shape}, where the table has {values.shape}")
    return Content(values, rows, cols, beside)


def _has_header(content: Content, form: TableFormat) -> bool:
    if form.header is not None:
        return form.header
    return content.col_labels is not None or form.layout == "long"


def _write_text(content: Content, path: Path, form: TableFormat) -> None:
    frame = as_frame(content, form)
    if form.decimal == ",":
        numbers = pl.col(pl.Float64, pl.Float32).cast(pl.String)
        frame = frame.with_columns(numbers.str.replace(".", ",", literal=True))
    text = frame.write_csv(
        separator=form.separator or ",",
        line_terminator=form.newline,
        include_header=_has_header(content, form),
        # a line of nothing would be taken for a blank one
        null_value="NA" if frame.width == 1 else "",
    )
    path.write_bytes(text.encode(form.encoding or "utf-8"))


def _write_parquet(content: Content, path: Path, form: TableFormat) -> None:
    as_frame(content, form).write_parquet(path)


def _write_excel(content: Content, path: Path, form: TableFormat) -> None:
    sheets = {form.sheet or "table": as_frame(replace(content, extras={}), form)}
    if form.layout == "long":
        sheets = {form.sheet or "table": as_frame(content, form)}
    else:
        for name, extra in content.extras.items():
            beside = replace(content, values=extra, extras={})
            sheets[{"flag": "flags"}.get(name, name)] = as_frame(beside, form)
    write_book(sheets, path, header=_has_header(content, form))


def _write_npz(content: Content, path: Path, form: TableFormat) -> None:
    labels = {"row_labels": content.row_labels, "col_labels": content.col_labels}
    arrays = {name: np.array(array.tolist()) for name, array in labels.items() if array is not None}
    extras = {
        {"flag": "flags"}.get(name, f"band_{name}"): np.array(dense(extra).tolist())
        for name, extra in content.extras.items()
    }
    everything: dict[str, Any] = {**_npz_cells(content.values), **arrays, **extras}
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **everything)


def _npz_cells(values: Any) -> dict[str, NDArray]:
    if isinstance(values, Intervals):
        if values.n_censored:
            return dict(zip(("lower", "upper"), values.to_bounds(), strict=True))
        rows, cols, lower, _ = values.triplets()
        return {"rows": rows, "cols": cols, "values": lower, "shape": np.array(values.shape)}
    if sparse.issparse(values):
        shape = np.array(values.shape)
        return {"rows": values.row, "cols": values.col, "values": values.data, "shape": shape}
    return {"table": values if values.dtype.kind in "fiu" else np.array(values.tolist())}


def _write_market(content: Content, path: Path, form: TableFormat) -> None:
    values = content.values
    if isinstance(values, Intervals):
        if values.n_censored:
            raise ValueError("a MatrixMarket file has no room for limits: use another kind")
        rows, cols, cells, _ = values.triplets()
        values = sparse.coo_array((cells, (rows, cols)), shape=values.shape)
    if values.dtype.kind not in "fiu":
        raise ValueError("a MatrixMarket file holds numbers only: use another kind")
    with path.open("wb") as file:
        scipy_io.mmwrite(file, values, precision=17)


_WRITERS = {
    "csv": _write_text,
    "parquet": _write_parquet,
    "excel": _write_excel,
    "npz": _write_npz,
    "mtx": _write_market,
}
