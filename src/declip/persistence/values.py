"""Numbers, texts, arrays and states of random number generators in a file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from importlib import import_module
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from declip.persistence.archive import KINDS_OF_DTYPE
from declip.persistence.nodes import Kind, Reader, Writer

__all__ = ["KINDS", "is_plain_array", "read_texts", "write_texts"]


def is_plain_array(value: Any) -> bool:
    """Tell whether a value is an array of numbers, times or texts of fixed width."""
    return type(value) is np.ndarray and value.dtype.kind in KINDS_OF_DTYPE


def write_texts(writer: Writer, texts: Sequence[str], at: str) -> list[str]:
    """Write many texts as one array of bytes and one of their ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    joined = np.frombuffer(b"".join(encoded), np.uint8)
    return [writer.array(joined, f"{at}.text"), writer.array(ends, f"{at}.ends")]


def read_texts(reader: Reader, payload: Any) -> list[str]:
    """Read what `write_texts` wrote."""
    joined, ends = (reader.arrays[name] for name in payload)
    raw, cuts = joined.tobytes(), [0, *ends.tolist()]
    if cuts != sorted(cuts) or cuts[-1] != len(raw):
        raise ValueError("the ends of its texts do not fit")
    return [raw[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(cuts)]


def _write_objects(writer: Writer, value: NDArray, at: str) -> list[Any]:
    return [list(value.shape), writer.node(value.ravel().tolist(), at)]


def _read_objects(reader: Reader, payload: Any) -> NDArray:
    shape, items = payload[0], reader.value(payload[1])
    flat = np.empty(len(items), object)
    for i, item in enumerate(items):  # an item may be a tuple: no broadcasting
        flat[i] = item
    return flat.reshape(shape)


def _read_scalar(_: Reader, payload: Any) -> Any:
    dtype = np.dtype(payload[0])
    if dtype.kind not in KINDS_OF_DTYPE:
        raise ValueError(f"a number of type {payload[0]!r} is refused")
    return np.frombuffer(bytes.fromhex(payload[1]), dtype)[0]


def _write_time(_: Writer, value: Any, at: str) -> list[Any]:
    zone = getattr(value, "tzinfo", None)
    return [type(value).__name__, value.isoformat(), None if zone is None else str(zone)]


def _read_time(_: Reader, payload: Any) -> Any:
    name, text, zone = payload
    if name == "Timestamp":  # of pandas
        moment = import_module("pandas").Timestamp(text)
        return moment if zone is None else moment.tz_convert(zone)
    return {"date": date, "datetime": datetime}[name].fromisoformat(text)


def _read_generator(_: Reader, state: Any) -> np.random.Generator:
    generator = np.random.default_rng(0)
    generator.bit_generator.state = state
    return generator


def _read_random_state(reader: Reader, payload: Any) -> Any:
    found = check_random_state(0)
    found.set_state(reader.value(payload))
    return found


KINDS = {
    "float": Kind(
        lambda v: type(v) is float,  # neither finite
        lambda _, v, __: repr(v),
        lambda _, text: float(text),
    ),
    "scalar": Kind(
        lambda v: isinstance(v, np.generic) and v.dtype.kind in KINDS_OF_DTYPE,
        lambda _, v, __: [v.dtype.str, v.tobytes().hex()],
        _read_scalar,
    ),
    "array": Kind(
        is_plain_array,
        lambda writer, v, at: writer.array(v, at),
        lambda reader, name: reader.arrays[name],
    ),
    "objects": Kind(
        lambda v: type(v) is np.ndarray and v.dtype == object, _write_objects, _read_objects
    ),
    "path": Kind(
        lambda v: isinstance(v, PurePath), lambda _, v, __: str(v), lambda _, text: Path(text)
    ),
    "time": Kind(lambda v: isinstance(v, date), _write_time, _read_time),
    "generator": Kind(
        lambda v: isinstance(v, np.random.Generator) and "PCG64" in repr(v),
        lambda _, v, __: v.bit_generator.state,
        _read_generator,
    ),
    "random_state": Kind(
        lambda v: isinstance(v, type(check_random_state(0))),
        lambda writer, v, at: writer.node(v.get_state(), at),
        _read_random_state,
    ),
}
