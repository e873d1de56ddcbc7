"""What the JSON of a file is made of.

Texts, whole numbers and finite numbers stand for themselves. Everything else is a dictionary with
one key, which names the kind of the value; arrays are set apart, under a name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Kind", "Reader", "Writer"]


class Kind(NamedTuple):
    """How values of one kind are recognised, written and read."""

    fits: Callable[[Any], bool]
    write: Callable[[Writer, Any, str], Any]
    read: Callable[[Reader, Any], Any]


class Writer:
    """Turns values into nodes, and sets arrays apart.

    Attributes
    ----------
    arrays : dict of str to ndarray
        What was set apart.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = kinds
        self.arrays: dict[str, NDArray] = {}
        self._names: dict[int, tuple[str, Any]] = {}  # with the array, lest its id be used again

    def node(self, value: Any, at: str) -> Any:
        """Return the node of a value; ``at`` is where it stands, for names and messages."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float and math.isfinite(value):
            return value
        for name, kind in self.kinds.items():
            if kind.fits(value):
                return {name: kind.write(self, value, at)}
        raise TypeError(f"{at or 'it'} is a {type(value).__name__}, which cannot be stored")

    def nodes(self, values: Mapping[str, Any], at: str) -> dict[str, Any]:
        """Return the nodes of named values."""
        where = f"{at}." if at else ""
        return {name: self.node(value, where + name) for name, value in values.items()}

    def array(self, value: NDArray, at: str) -> str:
        """Set an array apart, once if it is met again, and return its name."""
        if id(value) not in self._names:
            name = at if at not in self.arrays else f"{at}#{len(self.arrays)}"
            self._names[id(value)] = name, value
            self.arrays[name] = value if value.flags.forc else np.array(value, order="K")
        return self._names[id(value)][0]


@dataclass(frozen=True)
class Reader:
    """Turns nodes back into values."""

    kinds: Mapping[str, Kind]
    arrays: Mapping[str, NDArray]

    def value(self, node: Any) -> Any:
        """Return the value of a node."""
        if node is None or isinstance(node, bool | int | float | str):
            return node
        ((name, payload),) = node.items()
        return self.kinds[name].read(self, payload)

    def values(self, nodes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of named nodes."""
        return {name: self.value(node) for name, node in nodes.items()}
