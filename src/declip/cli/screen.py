"""What the command says: progress and notes on stderr, results on stdout."""

from __future__ import annotations

import json
import math
import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from declip.cli.options import Printing
from declip.options import in_own_words
from declip.wording import one_line

__all__ = ["Screen"]


class Screen:
    """Where words go: to a person, or as one JSON object to a program, or nowhere."""

    def __init__(self, printing: Printing) -> None:
        self.quiet, self.as_json = printing.quiet or printing.as_json, printing.as_json
        self.notes: list[str] = []

    @contextmanager
    def work(self, title: str) -> Iterator[None]:
        """Turn warnings into notes, and show that work goes on unless it shows that itself ("")."""
        with warnings.catch_warnings(record=True) as caught, self._spinner(title):
            warnings.simplefilter("always")
            yield
        for warning in caught:
            self.note(in_own_words(str(warning.message)))

    @property
    def alive(self) -> bool:
        """Whether a person looks on, to whom progress is shown."""
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def _spinner(self, title: str) -> Iterator[None]:
        if not self.alive or not title:
            yield
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            progress.add_task(title, total=None)
            yield

    def note(self, text: str) -> None:
        """Say something on the side, once."""
        text = one_line(text)
        if text not in self.notes:
            self.notes.append(text)
            if not self.quiet:
                print(f"note: {text}", file=sys.stderr)

    def aside(self, text: str) -> None:
        """Say beside the result, in lines of a readable width, to a person alone."""
        if text and not self.quiet:
            print(textwrap.fill(text, 96), file=sys.stderr)

    def result(self, text: str, facts: dict[str, Any], warned: Sequence[str] = ()) -> None:
        """Print the outcome: a page for a person, or facts for a program."""
        if self.as_json:
            facts = {**facts, "warnings": [*warned, *self.notes]}
            print(json.dumps(_plain(facts), ensure_ascii=False, allow_nan=False))
        elif not self.quiet:
            print(text)


def _plain(value: Any) -> Any:
    """Return what JSON can hold, with None for numbers that it cannot."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)
