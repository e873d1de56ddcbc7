"""Frames, series and sparse matrices in a file."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import narwhals.stable.v2 as nw
from scipy import sparse

from declip.persistence.nodes import Kind, Reader, Writer

__all__ = ["KINDS"]

_LIBRARIES = ("pandas", "polars")


def _native(value: Any) -> Any:
    return nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)


def _library(value: Any) -> str:
    name = nw.get_native_namespace(_native(value)).__name__
    if name not in _LIBRARIES:
        raise TypeError(f"a table of {name} cannot be stored")
    return name


def _write_frame(writer: Writer, value: Any, at: str) -> list[Any]:
    frame = _native(value)
    columns = [frame[name].to_numpy() for name in frame.columns]
    parts = {"columns": list(frame.columns), "values": columns, "index": _index(frame)}
    return [_library(value), writer.nodes(parts, at)]


def _read_frame(reader: Reader, payload: Any) -> Any:
    library, parts = _known(payload[0]), reader.values(payload[1])
    columns = dict(zip(parts["columns"], parts["values"], strict=True))
    return _indexed(nw.from_dict(columns, backend=library).to_native(), parts["index"])


def _write_series(writer: Writer, value: Any, at: str) -> list[Any]:
    series = _native(value)
    parts = {"name": series.name, "values": series.to_numpy(), "index": _index(series)}
    return [_library(value), writer.nodes(parts, at)]


def _read_series(reader: Reader, payload: Any) -> Any:
    library, parts = _known(payload[0]), reader.values(payload[1])
    series = nw.new_series(parts["name"], parts["values"], backend=library).to_native()
    return _indexed(series, parts["index"])


def _index(table: Any) -> Any:
    """Return the labels and names of an index; None where there is none but the numbers."""
    index: Any = nw.maybe_get_index(table)
    numbered = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    return None if index is None or numbered else [index.to_numpy(), list(index.names)]


def _indexed(table: Any, index: Any) -> Any:
    if index is not None:
        table.index = index[0]
        table.index.names = index[1]
    return table


def _known(library: str) -> Any:
    if library not in _LIBRARIES:
        raise ValueError(f"a table of {library!r} is refused")
    return library


def _write_sparse(writer: Writer, value: Any, at: str) -> list[Any]:
    kind = "array" if isinstance(value, sparse.sparray) else "matrix"
    stored = value if value.format in ("csr", "csc") else value.tocsr()
    parts = {name: getattr(stored, name) for name in ("data", "indices", "indptr")}
    names = [f"{stored.format}_{kind}", value.format]
    return [*names, list(value.shape), writer.nodes(parts, at)]


def _read_sparse(reader: Reader, payload: Any) -> Any:
    name, wanted, shape, nodes = payload
    if name not in ("csr_array", "csr_matrix", "csc_array", "csc_matrix"):
        raise ValueError(f"a sparse table of kind {name!r} is refused")
    parts = reader.values(nodes)
    stored = getattr(sparse, name)(tuple(parts.values()), shape=tuple(shape))
    stored.check_format(full_check=True)
    return stored if stored.format == wanted else stored.asformat(wanted)


KINDS = {
    "sparse": Kind(sparse.issparse, _write_sparse, _read_sparse),
    "frame": Kind(lambda v: isinstance(_native(v), nw.DataFrame), _write_frame, _read_frame),
    "series": Kind(lambda v: isinstance(_native(v), nw.Series), _write_series, _read_series),
    "module": Kind(
        lambda v: isinstance(v, ModuleType) and v.__name__ in _LIBRARIES,
        lambda _, v, __: v.__name__,
        lambda _, name: import_module(_known(name)),
    ),
}
