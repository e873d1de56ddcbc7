"""Where the work on blocks is done: one algorithm, and several ways to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["LocalRunner", "Runner", "WorkersReplacedError", "fold", "tree"]


class Runner(Protocol):
    """Runs functions on values that it may keep elsewhere, and which are known by handles."""

    def submit(self, function: Callable[..., Any], *args: Any, near: int | None = None) -> Any:
        """Return a handle of ``function(*args)``; handles among ``args`` stand for their values.

        ``near`` is the block that the work is about: neighbouring blocks are best kept together.
        """

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """Return the values of handles."""

    def together(self, first: int, last: int) -> bool:
        """Return whether blocks first to last - 1 are best worked on one after the other."""


class WorkersReplacedError(RuntimeError):
    """All workers that held the parts are gone, and others have come."""


class LocalRunner:
    """Runs everything at once in this process: a handle is the value itself."""

    def submit(self, function: Callable[..., Any], *args: Any, near: int | None = None) -> Any:
        """Return ``function(*args)``."""
        return function(*args)

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """Return the handles, which are the values."""
        return list(handles)

    def together(self, first: int, last: int) -> bool:
        """Return True: all work is done here."""
        return True


def fold(
    combine: Callable[[Any, Any], Any], leaf: Callable[[int], Any], last: int, first: int = 0
) -> Any:
    """Return leaf(first), ..., leaf(last - 1) combined in pairs of neighbours, and so on up.

    Leaves are asked for when their turn comes: no more than log2 of their number and one are held.
    """
    if last - first == 1:
        return leaf(first)
    middle = _middle(first, last)
    left = fold(combine, leaf, middle, first)
    return combine(left, fold(combine, leaf, last, middle))


def tree(
    runner: Runner,
    combine: Callable[[Any, Any], Any],
    branch: Callable[[int, int], Any],
    last: int,
    first: int = 0,
    toward: int = 0,
) -> Any:
    """Return a handle of what `fold` gives, with branches that are made where their blocks are.

    ``branch(first, last)`` is a handle of such a fold over some blocks. The shape of the whole tree
    depends on their number alone, so that sums are the same wherever they are made. What joins
    branches is done near the block ``toward``.
    """
    if last - first == 1 or runner.together(first, last):
        return branch(first, last)
    middle = _middle(first, last)
    left = tree(runner, combine, branch, middle, first, toward)
    right = tree(runner, combine, branch, last, middle, toward)
    return runner.submit(combine, left, right, near=min(max(toward, first), last - 1))


def _middle(first: int, last: int) -> int:
    """Return where to part: after the largest power of 2 that is less than their number."""
    return first + (1 << ((last - first - 1).bit_length() - 1))
