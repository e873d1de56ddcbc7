"""Files of arrays (npz, MatrixMarket), read as intervals."""

from __future__ import annotations

import re
import zipfile
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from declip.intervals import Intervals
from declip.io.errors import TableFileError, about_file, shown
from declip.validation import check_memory

__all__ = ["read_arrays"]

_LABELS = ("row_labels", "col_labels")
_BANNER = re.compile(rb"%%MatrixMarket\s+matrix\s+(\w+)\s+([\w-]+)\s+([\w-]+)\s*", re.I)
_NUMBERS = ("real", "integer", "double", "unsigned-integer")
_MIRRORS = {"general": 0, "symmetric": 1, "skew-symmetric": -1}  # sign of the other triangle


def read_arrays(path: Path, kind: str, ceiling: Any, floor: Any) -> tuple[Intervals, bool]:
    """Read a file of arrays; the second value says whether absent cells were not stored."""
    with about_file(path, f"cannot be read as {kind}"):
        if kind == "npz":
            return _read_npz(path, ceiling, floor)
        table = _read_market(path)
        return Intervals.from_table(table, ceiling, floor), sparse.issparse(table)


@dataclass(frozen=True)
class _Market:
    """What the head of a MatrixMarket file says."""

    coordinates: bool
    mirror: int
    shape: tuple[int, int]
    entries: int

    @classmethod
    def of(cls, path: Path, head: bytes, sizes: bytes) -> _Market:
        banner = _BANNER.fullmatch(head)
        if banner is None:
            raise ValueError("it does not begin with %%MatrixMarket matrix")
        form, field, symmetry = (word.decode().lower() for word in banner.groups())
        if field not in _NUMBERS or symmetry not in _MIRRORS:
            kind = field if symmetry in _MIRRORS else symmetry
            raise TableFileError(path, f"a MatrixMarket file of {kind} numbers is not a table")
        if form not in ("coordinate", "array"):
            raise TableFileError(path, f"{shown(form)} is neither coordinate nor array")
        n_rows, n_cols, *entries = (int(size) for size in sizes.split())
        if len(entries) != (form == "coordinate") or min(n_rows, n_cols) < 1:
            raise TableFileError(path, "the line with its size is damaged")
        mirror = _MIRRORS[symmetry]
        if mirror and n_rows != n_cols:
            raise TableFileError(path, f"a {symmetry} matrix has as many rows as columns")
        whole = n_rows * n_cols if mirror == 0 else n_rows * (n_rows + mirror) // 2
        return cls(form == "coordinate", mirror, (n_rows, n_cols), *entries or [whole])


def _read_market(path: Path) -> Any:
    data = path.read_bytes().replace(b"\r\n", b"\n")
    head, _, rest = data.partition(b"\n")
    while rest.startswith((b"%", b"\n")):
        rest = rest.partition(b"\n")[2]
    sizes, _, body = rest.partition(b"\n")
    market = _Market.of(path, head, sizes)
    if market.entries > len(body):
        raise TableFileError(path, f"it is too short for {market.entries} entries, as it claims")
    above = data[: len(data) - len(body)].count(b"\n")
    columns = _market_columns(path, body, above, 3 if market.coordinates else 1)
    if len(columns[0]) != market.entries:
        found = f"it has {len(columns[0])} entries, where its header gives {market.entries}"
        raise TableFileError(path, found)
    if not market.coordinates:
        return _dense(market, *columns)
    _check_inside(path, market.shape, columns, body, above)
    return _coordinates(market, *columns)


def _market_columns(path: Path, body: bytes, above: int, n: int) -> list[NDArray]:
    """Return the columns of lines with numbers between blanks."""
    text = re.sub(rb"[ \t]+", b" ", body) if b"  " in body or b"\t" in body else body
    text = re.sub(rb" ?\n ?", b"\n", text) if b" \n" in text or b"\n " in text else text
    text = re.sub(rb"\n{2,}", b"\n", text).strip()
    kinds = [pl.Int64, pl.Int64, pl.Float64][-n:]
    schema = {str(j): kind for j, kind in enumerate(kinds)}
    if not text:
        return [np.empty(0)] * n
    with suppress(pl.exceptions.PolarsError):
        frame = pl.read_csv(text, has_header=False, separator=" ", quote_char=None, schema=schema)
        if not any(frame.null_count().row(0)):
            return [column.to_numpy() for column in frame]
    number = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    entry = re.compile(rb"[0-9]+\s+[0-9]+\s+" + number if n == 3 else number)
    lines = enumerate(body.split(b"\n"), start=above + 1)
    bad = next((k for k, line in lines if line.strip() and not entry.fullmatch(line.strip())), None)
    what = "a row, a column and a number" if n == 3 else "one number"
    raise TableFileError(path, f"it is not {what}", None if bad is None else f"line {bad}")


def _check_inside(
    path: Path, shape: tuple[int, int], columns: list[NDArray], body: bytes, above: int
) -> None:
    for index, size in zip(columns, shape, strict=False):
        outside = np.flatnonzero((index < 1) | (index > size))
        if outside.size:
            lines = [k for k, line in enumerate(body.split(b"\n"), above + 1) if line.strip()]
            place = f"line {lines[outside[0]]}"
            raise TableFileError(path, "the entry lies outside of the matrix", place)


def _coordinates(
    market: _Market, rows: NDArray, cols: NDArray, values: NDArray
) -> sparse.coo_array:
    rows, cols = rows - 1, cols - 1
    if market.mirror:
        other = rows != cols
        rows, cols = np.concatenate([rows, cols[other]]), np.concatenate([cols, rows[other]])
        values = np.concatenate([values, market.mirror * values[other]])
    return sparse.coo_array((values, (rows, cols)), shape=market.shape)


def _dense(market: _Market, values: NDArray) -> NDArray:
    """Return a matrix from its columns, or from the columns of its lower triangle."""
    if not market.mirror:
        return values.reshape(market.shape[::-1]).T
    table = np.zeros(market.shape)
    cols, rows = np.triu_indices(market.shape[0], market.mirror < 0)
    table[cols, rows] = market.mirror * values
    table[rows, cols] = values
    return table


def _read_npz(path: Path, ceiling: Any, floor: Any) -> tuple[Intervals, bool]:
    arrays = _npz_arrays(path)
    names = set(arrays)
    labels = {name: arrays[name] for name in _LABELS if name in names}
    if {"format", "shape", "data"} <= names:
        table = _checked(sparse.load_npz(path))
        return _labelled(path, Intervals.from_table(table, ceiling, floor), labels), True
    if {"rows", "cols", "values"} <= names:
        shape = arrays["shape"].tolist() if "shape" in names else None
        triplets = arrays["rows"], arrays["cols"], arrays["values"]
        return _labelled(
            path, Intervals.from_triplets(*triplets, shape, ceiling, floor), labels
        ), True
    if {"lower", "upper"} <= names and "table" not in names:
        cells = Intervals.from_bounds(arrays["lower"], arrays["upper"])
        return _labelled(path, cells, labels), False
    if "table" not in names and names & {"lower", "upper"}:
        raise TableFileError(path, "it has an array of bounds on one side only")
    table = arrays[_the_table(path, arrays)]
    return _labelled(path, Intervals.from_table(table, ceiling, floor), labels), False


def _npz_arrays(path: Path) -> dict[str, NDArray]:
    """Return the arrays of a file, none of them larger than what the file unpacks to."""
    if path.read_bytes()[:6] == npy.MAGIC_PREFIX:
        raise TableFileError(path, "this is a single array (.npy), not an .npz file")
    with zipfile.ZipFile(path) as file:
        members = {m.filename.removesuffix(".npy"): m for m in file.infolist()}
        if len(members) < len(file.infolist()):
            raise TableFileError(path, "two of its arrays have the same name")
        total = sum(member.file_size for member in members.values())
        check_memory((total,), np.uint8, "the unpacked file", "read it in parts")
        return {name: _array(path, file, name, member) for name, member in members.items()}


def _array(path: Path, file: zipfile.ZipFile, name: str, member: zipfile.ZipInfo) -> NDArray:
    with file.open(member) as raw:
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, columnwise, dtype = readers[npy.read_magic(raw)](raw)
        body = raw.read()
    if dtype.hasobject:
        raise ValueError(f"its array {shown(name)} holds objects")
    if len(body) != prod(shape) * dtype.itemsize:
        raise TableFileError(path, f"its array {shown(name)} is not as large as its header says")
    return np.frombuffer(body, dtype).reshape(shape, order="F" if columnwise else "C")


def _checked(table: Any) -> Any:
    """Refuse a sparse matrix whose cells lie outside of it."""
    if hasattr(table, "check_format"):
        table.check_format(full_check=True)
    return table


def _the_table(path: Path, arrays: dict[str, NDArray]) -> str:
    if "table" in arrays:
        return "table"
    tables = sorted(name for name, array in arrays.items() if array.ndim == 2)
    if len(tables) != 1:
        found = ", ".join(shown(name) for name in sorted(arrays)[:5]) or "nothing"
        raise TableFileError(path, f"it needs an array 'table' of two dimensions; it has {found}")
    return tables[0]


def _labelled(path: Path, cells: Intervals, labels: dict[str, NDArray]) -> Intervals:
    for name, size in zip(_LABELS, cells.shape, strict=True):
        if name in labels and labels[name].shape != (size,):
            raise TableFileError(
                path, f"{name} has shape {labels[name].shape}, where the table needs ({size},)"
            )
    rows, cols = (_as_labels(labels.get(name)) for name in _LABELS)
    return replace(cells, row_labels=rows, col_labels=cols)


def _as_labels(array: NDArray | None) -> NDArray | None:
    return array.astype(object) if array is not None and array.dtype.kind == "U" else array
