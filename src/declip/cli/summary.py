"""The command ``declip summary``: what a file says of its columns, its limits counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from declip.cli.options import Printing
from declip.cli.screen import Screen
from declip.options import Reading, Restoring, UsageError, option

if TYPE_CHECKING:
    from declip.inference import Summary

__all__ = ["Summarising", "run"]

_DIGITS = 6  # that count, in a file


@dataclass(frozen=True, kw_only=True)
class Summarising:
    """What is asked of the columns."""

    by: str | None = option("Header of the column that names groups of rows.")
    criterion: list[str] | None = option(
        "Adds the share above it: a number for all columns, or COLUMN=NUMBER, with commas between; "
        "may be repeated."
    )
    statistics: str = option(
        "Of mean, geometric_mean, sd, median and percentiles as p90, with commas between.",
        "mean,geometric_mean,sd,median,p95",
    )
    confidence: float = option("Of the intervals.", 0.95)
    imputations: int = option("Tables that are drawn.", 50)
    output: Path | None = option("List as a file.", names=("--output", "-o"))
    overwrite: bool = option("Replace a file that exists.", False, ("--overwrite",))

    @property
    def names(self) -> list[str]:
        """The statistics."""
        return [name.strip() for name in self.statistics.split(",") if name.strip()]

    def criteria(self) -> Any:
        """Return one number, or a mapping from column to number."""
        if not self.criterion:
            return None
        pairs = [part.rpartition("=") for text in self.criterion for part in _parts(text)]
        named = {column: _number(number) for column, sign, number in pairs if sign}
        plain = [_number(number) for _, sign, number in pairs if not sign]
        if len(plain) > 1 or (plain and named):
            raise UsageError("--criterion takes one number for all columns, or COLUMN=NUMBER")
        return plain[0] if plain else named


def run(
    file: Path, asked: Summarising, restoring: Restoring, reading: Reading, printing: Printing
) -> None:
    """Read a file, restore it, sum it up, and print or write the list."""
    from declip.io.listing import groups_of_rows, write_frame
    from declip.restoration.conclusions import questions_of

    screen, criteria = Screen(printing), asked.criteria()
    if asked.output is not None and asked.output.resolve() == file.resolve():
        raise UsageError("the file and its outputs must be different files")
    if asked.by is not None:
        reading = replace(reading, ignore=[*(reading.ignore or []), asked.by])
    with screen.work("reading"):
        table = reading.read(file)
        groups = None if asked.by is None else groups_of_rows(table, asked.by)
    questions_of(table.intervals, asked.names, criteria, asked.confidence, asked.imputations)
    with screen.work(""):
        result = restoring.restore(table.intervals, screen.alive)
    with screen.work("summing up"):
        found = result.summary(
            asked.names,
            by=groups,
            criterion=criteria,
            confidence=asked.confidence,
            n=asked.imputations,
        )
        if asked.output is not None:
            write_frame(_frame(found), asked.output, "summary", asked.overwrite)
    columns = found.as_columns()
    lines = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
    facts = {"file": file, "summary": lines, "output": asked.output}
    screen.result(str(found), facts, [*result.warnings, *found.notes])


def _frame(found: Summary) -> Any:
    import polars as pl

    return pl.DataFrame(found.as_columns(), strict=False).with_columns(
        pl.col(pl.Float64).fill_nan(None).round_sig_figs(_DIGITS)
    )


def _parts(text: str) -> list[str]:
    """Return criteria between which commas stand; one of a column may itself be in its name."""
    parts = text.split(",")
    return parts if all("=" in part for part in parts) else [text]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"--criterion must be a number in the units of the column, or COLUMN=NUMBER; got "
            f"{text!r}"
        ) from None
