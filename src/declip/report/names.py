"""Names shortened so that those that differ are shown so that they differ."""

from __future__ import annotations

from collections import defaultdict
from itertools import takewhile

__all__ = ["apart", "one_name"]

_SPACES = str.maketrans({" ": "\u2423", "\t": "\u21e5", "\n": "\u21b5"})


def one_name(label: object) -> str:
    """Return a label as words; those of several levels are joined."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def apart(names: list[str], most: int) -> list[str]:
    """Return names of at most so many characters; different names stay different.

    A name is cut at its end. Where that makes two alike, what they begin with in common is cut out
    instead; where they differ in blanks alone, these are shown.

    Examples
    --------
    >>> from declip.report.names import apart
    >>> apart(["iron (total), mg/l", "iron (total), ug/l", "zinc"], 12)
    ['iro…l), mg/l', 'iro…l), ug/l', 'zinc']
    """
    shown = [_cut(" ".join(name.split()), most) for name in names]
    for alike in _groups(shown, names):
        group = sorted({names[k] for k in alike})
        plain = len({" ".join(name.split()) for name in group}) == len(group)
        begun = _alike(group[0], group[-1])
        for k in alike:
            visible = names[k].translate(_SPACES)
            shown[k] = _middle(names[k], begun, most) if plain else _cut(visible, most)
    for alike in _groups(shown, names):  # nothing short tells them apart: number them
        for number, k in enumerate(alike, 1):
            shown[k] = f"{shown[k][: max(1, most - 4)]}… {number}"
    return shown


def _groups(shown: list[str], names: list[str]) -> list[list[int]]:
    """Return the positions of different names that are shown alike."""
    found = defaultdict(list)
    for k, name in enumerate(shown):
        found[name].append(k)
    return [group for group in found.values() if len({names[k] for k in group}) > 1]


def _alike(one: str, other: str) -> int:
    """Return how many characters two names begin with in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _middle(name: str, begun: int, most: int) -> str:
    """Return a name without the middle of what it begins with in common with others."""
    head = max(2, most // 4)
    room = most - head - 1
    tail = name[max(head, min(begun, len(name) - room)) :]
    return f"{name[:head]}…{_cut(tail, room)}"
