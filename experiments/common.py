"""What the experiments share: results that survive an interruption, tables, a progress bar."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from declip.environment import environment

RESULTS = Path(__file__).parent / "results"


def write_json(path: Path, content: Any) -> None:
    """Write a file all at once: an interrupted run leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(draft, path)


def resume(
    path: Path, settings: dict[str, Any], run: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return the stored result of the same settings, or run and store it."""
    if path.exists():
        stored = json.loads(path.read_text())
        if stored["settings"] == settings:
            return stored
    result = {"settings": settings, **environment(), **run()}
    write_json(path, result)
    return result


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
