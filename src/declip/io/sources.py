"""Files opened: text, Parquet and Excel as sheets, npz and MatrixMarket as intervals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import io as scipy_io
from scipy import sparse

from declip.intervals import Intervals
from declip.io.errors import TableFileError, about_file, shown
from declip.io.formats import TableFormat
from declip.io.sheet import Sheet
from declip.io.text import read_text
from declip.validation import check_memory

__all__ = ["read_arrays", "read_sheet"]

_LABELS = ("row_labels", "col_labels")


def read_sheet(path: Path, wanted: TableFormat) -> Sheet:
    """Read a file of rows and columns; a Parquet file comes with its header taken."""
    if not path.exists():
        raise TableFileError(path, "there is no such file")
    if path.is_dir():
        raise TableFileError(path, "this is a folder, not a file")
    readers = {"csv": read_text, "parquet": _read_parquet, "excel": _read_excel}
    if wanted.kind not in readers:
        raise TableFileError(path, f"a {path.suffix} file has no named columns")
    sheet = readers[wanted.kind](path, wanted)
    if not sheet.frame.height or not sheet.frame.width:
        sheet.fail("the table is empty")
    return sheet


def _read_parquet(path: Path, wanted: TableFormat) -> Sheet:
    with about_file(path, "cannot be read as Parquet"):
        frame = pl.read_parquet(path)
        names = tuple(frame.columns)
        frame.columns = [str(j) for j in range(frame.width)]
    lines = range(1, frame.height + 1)
    return Sheet(path, frame, lines, "row", replace(wanted, header=True), names)


def _read_excel(path: Path, wanted: TableFormat) -> Sheet:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError as error:
        raise TableFileError(path, "Excel files need: pip install 'declip[excel]'") from error
    with about_file(path, "cannot be read as Excel"):
        book = CalamineWorkbook.from_path(str(path))
        sheet = wanted.sheet or book.sheet_names[0]
        if sheet not in book.sheet_names:
            some = ", ".join(shown(name) for name in book.sheet_names[:5])
            raise TableFileError(path, f"there is no sheet {shown(sheet)}; there are {some}")
        records = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
        width = max(map(len, records), default=0)
        columns = ([_excel_text(record[j]) for record in records] for j in range(width))
        frame = pl.DataFrame([pl.Series(str(j), x, pl.String) for j, x in enumerate(columns)])
    seen = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    lines = np.flatnonzero(seen.to_numpy()) + 1
    return Sheet(path, frame.filter(seen), lines, "row", replace(wanted, sheet=sheet))


def _excel_text(cell: Any) -> str | None:
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    return None if cell == "" else str(cell)


def read_arrays(path: Path, kind: str, ceiling: Any, floor: Any) -> tuple[Intervals, bool]:
    """Read a file of arrays; the second value says whether absent cells were not stored."""
    with about_file(path, f"cannot be read as {kind}"):
        if kind == "mtx":
            table = _read_market(path)
            return Intervals.from_table(table, ceiling, floor), sparse.issparse(table)
        return _read_npz(path, ceiling, floor)


def _read_market(path: Path) -> Any:
    n_rows, n_cols, entries, form, field, _ = scipy_io.mminfo(path)
    if field not in ("real", "integer", "double", "unsigned-integer"):
        raise TableFileError(path, f"a MatrixMarket file of {field} numbers is not a table")
    size = entries if form == "coordinate" else n_rows * n_cols
    check_memory((size, 2), np.float64, "the matrix", "read it in parts")
    return scipy_io.mmread(path)


def _read_npz(path: Path, ceiling: Any, floor: Any) -> tuple[Intervals, bool]:
    with np.load(path, allow_pickle=False) as file:
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise TableFileError(path, "this is a single array (.npy), not an .npz file")
        names = set(file.files)
        labels = {name: file[name] for name in _LABELS if name in names}
        if {"format", "shape", "data"} <= names:
            table = sparse.load_npz(path)
            return _labelled(path, Intervals.from_table(table, ceiling, floor), labels), True
        if {"rows", "cols", "values"} <= names:
            shape = file["shape"].tolist() if "shape" in names else None
            cells = Intervals.from_triplets(
                file["rows"], file["cols"], file["values"], shape, ceiling, floor
            )
            return _labelled(path, cells, labels), True
        if {"lower", "upper"} <= names and "table" not in names:
            return _labelled(
                path, Intervals.from_bounds(file["lower"], file["upper"]), labels
            ), False
        table = file[_the_table(path, file, names)]
    return _labelled(path, Intervals.from_table(table, ceiling, floor), labels), False


def _the_table(path: Path, file: Any, names: set[str]) -> str:
    if "table" in names:
        return "table"
    tables = sorted(name for name in names if file[name].ndim == 2)
    if len(tables) != 1:
        found = ", ".join(shown(name) for name in sorted(names)[:5]) or "nothing"
        raise TableFileError(path, f"it needs an array 'table' of two dimensions; it has {found}")
    return tables[0]


def _labelled(path: Path, cells: Intervals, labels: dict[str, np.ndarray]) -> Intervals:
    for name, size in zip(_LABELS, cells.shape, strict=True):
        if name in labels and labels[name].shape != (size,):
            raise TableFileError(
                path, f"{name} has shape {labels[name].shape}, where the table needs ({size},)"
            )
    rows, cols = (_as_labels(labels.get(name)) for name in _LABELS)
    return replace(cells, row_labels=rows, col_labels=cols)


def _as_labels(array: np.ndarray | None) -> np.ndarray | None:
    return array.astype(object) if array is not None and array.dtype.kind == "U" else array
