"""What is wrong with a file, and what a person could say to mend it, in no surface's own words.

A remedy names an argument of `read_table` and what to give it. Python, the command and the page
each write it their own way: ``marks={'B': 'exact'}``, ``--mark B=exact``, a field with a label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Problem", "Remedy", "Spelling", "in_python"]


@dataclass(frozen=True)
class Remedy:
    """One answer that a person may give.

    Attributes
    ----------
    option : str
        Argument of `read_table`.
    value : str
        What to give it, as the command takes it: ``B=exact``, ``store,sku``; ``...`` where only
        the person knows it.
    when : str
        In which case it is the right answer, such as ``if the comma is one``; may be empty.

    Examples
    --------
    >>> from declip.io import Remedy
    >>> from declip.io.problems import in_python
    >>> in_python(Remedy("marks", "B=exact"))
    "marks={'B': 'exact'}"
    """

    option: str
    value: str = "..."
    when: str = ""


Spelling = Callable[[Remedy], str]


@dataclass(frozen=True)
class Problem:
    """Something in a file that cannot be read, or could be read in two ways.

    Attributes
    ----------
    what : str
        What is wrong, without the name of any option.
    place : str or None
        Where it is first seen, such as ``line 7``.
    column : str or None
        Header of the column.
    count : int
        Number of cells like it.
    remedies : tuple of Remedy
        What would solve it.

    Examples
    --------
    >>> from declip.io import Problem, Remedy
    >>> problem = Problem("the mark 'B' is not known", remedies=(Remedy("marks", "B=exact"),))
    >>> problem.said(lambda remedy: f"--{remedy.option} {remedy.value}")
    "the mark 'B' is not known: --marks B=exact"
    """

    what: str
    place: str | None = None
    column: str | None = None
    count: int = 1
    remedies: tuple[Remedy, ...] = ()

    @property
    def where(self) -> list[str]:
        """Where it is, in words."""
        column = [] if self.column is None else [f"column {_cut(self.column)!r}"]
        return [*([self.place] if self.place else []), *column]

    def said(self, spelling: Spelling) -> str:
        """Return what is wrong and what to do, with remedies spelled as a surface does."""
        remedies = "; ".join(
            " ".join(part for part in (spelling(remedy), remedy.when) if part)
            for remedy in self.remedies
        )
        return f"{self.what}: {remedies}" if remedies else self.what


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


_LONGEST = 60  # characters of a header that are quoted
_LISTS = {"rows", "columns", "values", "ignore", "missing", "unit"}
_WORDS = _LISTS | {
    "layout", "limit", "qualifier", "decimal", "thousands", "separator", "encoding", "sheet",
    "replicates", "below_limit", "side", "limits", "format",
}  # fmt: skip


def in_python(remedy: Remedy) -> str:
    """Return a remedy as an argument of `read_table`."""
    name, value = remedy.option, remedy.value
    if value == "...":
        return f"{name}="
    if name == "marks":
        mark, _, meaning = value.rpartition("=")
        return f"marks={{{mark!r}: {meaning!r}}}"
    if name in ("floor", "ceiling") and "=" in value:
        column, _, number = value.rpartition("=")
        return f"{name}={{{column!r}: {number}}}"
    if name == "skip":
        return f"skip=[{value}]"
    if name in _LISTS:
        return f"{name}={value.split(',') if name in ('rows', 'columns') else [value]!r}"
    return f"{name}={value!r}" if name in _WORDS else f"{name}={value}"
