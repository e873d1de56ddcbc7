"""Lists, tuples and dictionaries in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from declip.persistence.nodes import Kind, Reader, Writer
from declip.persistence.objects import fields_of, is_record, record
from declip.persistence.values import is_plain_array, read_texts, write_texts

__all__ = ["KINDS"]

_FEW = 64  # texts, or keys of a dictionary, up to which they stand in the JSON


def _write_list(writer: Writer, values: Sequence[Any], at: str) -> Any:
    """Write like things together: numbers and arrays as one array, objects field by field."""
    how = _likeness(values)
    if how == "texts":
        return {how: write_texts(writer, values, at)}
    if how == "floats":
        return {how: writer.array(np.array(values), at)}
    if how == "stack":
        return {how: writer.array(np.stack(values), at)}
    if how == "each":
        kind = type(values[0])
        columns = {name: [getattr(v, name) for v in values] for name in fields_of(kind)}
        return {how: [kind.__name__, writer.nodes(columns, at)]}
    return [writer.node(value, f"{at}.{i}") for i, value in enumerate(values)]


def _likeness(values: Sequence[Any]) -> str | None:
    """Return how all values of a list can be written together, if they can."""
    if len(values) < 2 or len({type(value) for value in values}) > 1:
        return None
    first = values[0]
    if type(first) is float:
        return "floats"
    if is_plain_array(first):
        return "stack" if len({(a.shape, a.dtype) for a in values}) == 1 else None
    if type(first) is str:
        return "texts" if len(values) > _FEW else None
    return "each" if is_record(first) else None


def _read_list(reader: Reader, payload: Any) -> list[Any]:
    if isinstance(payload, list):
        return [reader.value(node) for node in payload]
    ((how, content),) = payload.items()
    if how == "texts":
        return read_texts(reader, content)
    if how == "floats":
        return [float(x) for x in reader.arrays[content]]
    if how == "stack":
        return list(reader.arrays[content])
    if how != "each":
        raise ValueError(f"a list of {how!r} is refused")
    name, columns = content[0], reader.values(content[1])
    rows = zip(*columns.values(), strict=True)
    return [record(name, dict(zip(columns, row, strict=True))) for row in rows]


def _write_dict(writer: Writer, value: Mapping[Any, Any], at: str) -> Any:
    if len(value) <= _FEW and all(type(key) is str for key in value):
        return writer.nodes(value, at)
    parts = {"keys": list(value), "values": list(value.values())}
    return [writer.node(part, f"{at}.{name}") for name, part in parts.items()]


def _read_dict(reader: Reader, payload: Any) -> dict[Any, Any]:
    if isinstance(payload, dict):
        return reader.values(payload)
    keys, values = (reader.value(node) for node in payload)
    return dict(zip(keys, values, strict=True))


KINDS = {
    "list": Kind(lambda v: type(v) is list, _write_list, _read_list),
    "tuple": Kind(
        lambda v: type(v) is tuple, _write_list, lambda reader, p: tuple(_read_list(reader, p))
    ),
    "dict": Kind(lambda v: type(v) is dict, _write_dict, _read_dict),
}
