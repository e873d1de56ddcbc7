"""What the experiments share: results that survive an interruption, tables, a progress bar."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from declip.environment import environment

RESULTS = Path(__file__).parent / "results"


def write_text(path: Path, text: str) -> None:
    """Write a file all at once: an interrupted run leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(text)
    os.replace(draft, path)


class Runs:
    """The runs of one study: a file of JSON Lines, to which each is added when it is done.

    Of lines with the same name the last one counts. A line that is not whole, as a killed run may
    leave it, counts as not run, and the next one begins a line of its own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the runs by name."""
        found: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(self._lines(), 1):
            try:
                run = json.loads(line)
            except ValueError:
                torn = f"{self.path.name}, line {number}: not whole, run again"
                warnings.warn(torn, stacklevel=2)
                continue
            found[run.pop("run")] = run
        return found

    def with_settings(self, name: str, settings: dict[str, Any]) -> dict[str, Any] | None:
        """Return the run of this name, None if it was not made with these settings."""
        run = self.read().get(name)
        return run if run and run["settings"] == as_stored(settings) else None

    def add(self, name: str, run: dict[str, Any]) -> None:
        """Add a run by one write, which no other process can come between."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            own_line = "" if file.read() in (b"", b"\n") else "\n"
            file.write(f"{own_line}{_line(name, run)}".encode())

    def forget(self, name: str) -> None:
        """Take a run away, all at once, so that it is made again."""
        kept = (run for run in self.read().items() if run[0] != name)
        write_text(self.path, "".join(_line(*run) for run in kept))

    def sort(self) -> None:
        """Write one line for each name, in their order, all at once."""
        write_text(self.path, "".join(_line(*run) for run in sorted(self.read().items())))

    def resume(
        self, name: str, settings: dict[str, Any], run: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the stored run of the same settings, or run and add it."""
        found = self.with_settings(name, settings)
        if found is None:
            found = {"settings": settings, **environment(), **run()}
            self.add(name, found)
        return found

    def _lines(self) -> Sequence[str]:
        return self.path.read_text().splitlines() if self.path.exists() else ()


def _line(name: str, run: dict[str, Any]) -> str:
    return json.dumps({"run": name, **run}) + "\n"


def as_stored(content: dict[str, Any]) -> dict[str, Any]:
    """Return settings or a result as they come back from a file: tuples as lists."""
    return json.loads(json.dumps(content))


def publish(study: str, page: str) -> None:
    """Write the page of a study beside its runs, from which it was made, and print it."""
    write_text(RESULTS / f"{study}.md", page)
    print(page)


def progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error (NaN for a single value)."""
    x = np.asarray(values, float)
    return float(x.mean()), float(x.std(ddof=1) / np.sqrt(x.size)) if x.size > 1 else float("nan")
