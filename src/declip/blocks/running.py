"""Where the work on blocks is done: one algorithm, and several ways to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Here", "Runner", "tree"]


class Runner(Protocol):
    """Runs functions on values that it may keep elsewhere, and which are known by handles."""

    def submit(self, function: Callable[..., Any], *args: Any, near: int | None = None) -> Any:
        """Return a handle of ``function(*args)``; handles among ``args`` stand for their values.

        ``near`` is the block that the work is about: neighbouring blocks are best kept together.
        """

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """Return the values of handles."""


class Here:
    """Runs everything at once in this process: a handle is the value itself."""

    def submit(self, function: Callable[..., Any], *args: Any, near: int | None = None) -> Any:
        """Return ``function(*args)``."""
        return function(*args)

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """Return the handles, which are the values."""
        return list(handles)


def tree(
    runner: Runner,
    combine: Callable[[Any, Any], Any],
    leaf: Callable[[int], Any],
    last: int,
    first: int = 0,
    toward: int = 0,
) -> Any:
    """Return a handle of leaf(first), ..., leaf(last - 1) combined in pairs, and so on up.

    The shape of the tree depends on their number alone, so that sums are the same wherever they are
    made. Leaves are asked for when their turn comes: run here, no more than log2(n) + 1 are held.
    The work is done near the block ``toward``.
    """
    size = last - first
    if size == 1:
        return leaf(first)
    middle = first + (1 << ((size - 1).bit_length() - 1))  # the largest power of 2 below size
    left = tree(runner, combine, leaf, middle, first, toward)
    right = tree(runner, combine, leaf, last, middle, toward)
    return runner.submit(combine, left, right, near=min(max(toward, first), last - 1))
