"""Python values as JSON with arrays set apart, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from declip.persistence import collections, objects, tables, values
from declip.persistence.nodes import Kind, Reader, Writer

__all__ = ["decode", "encode"]

# In this order: a named tuple is a tuple too, and anything may be asked whether it is a table.
_KINDS: dict[str, Kind] = {**values.KINDS, **objects.KINDS, **collections.KINDS, **tables.KINDS}


def encode(value: Any, name: str = "") -> tuple[Any, dict[str, NDArray]]:
    """Return a value as JSON, and the arrays that it refers to.

    Raises
    ------
    TypeError
        If a part of it cannot be stored; the message names the part.
    """
    writer = Writer(_KINDS)
    return writer.node(value, name), writer.arrays


def decode(content: Any, arrays: Mapping[str, NDArray]) -> Any:
    """Return the value that `encode` was given; only known classes are built."""
    return Reader(_KINDS, arrays).value(content)
