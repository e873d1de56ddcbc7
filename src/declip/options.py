"""What a person may say about a file, to the command and to the page: each option once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from declip.intervals import Intervals
    from declip.io import TableFile
    from declip.restoration import Restoration

__all__ = ["Reading", "Restoring", "UsageError", "option"]

_FORM = "How the file is read (found by itself unless given)"
_LIMITS = "Limits"


class UsageError(ValueError):
    """An option that cannot mean anything."""


def option(help_: str, default: Any = None, names: tuple[str, ...] = (), panel: str = "") -> Any:
    """Return a field with what the command shows of it."""
    return field(default=default, metadata={"help": help_, "names": names, "panel": panel})


def _form(help_: str, *names: str) -> Any:
    return option(help_, names=names, panel=_FORM)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file is read, and the limits of its cells."""

    ceiling: list[str] | None = option(
        "A number for the table, or COLUMN=NUMBER; may be repeated.", panel=_LIMITS
    )
    floor: list[str] | None = option("The same for the lower end.", panel=_LIMITS)
    limits: Path | None = option("File with the columns: name, floor, ceiling.", panel=_LIMITS)
    layout: str | None = _form("wide (a line a row) or long (a line a cell).")
    rows: str | None = _form("Header of the row labels.")
    columns: str | None = _form("Header of the column labels of a long table.")
    values: str | None = _form("Header of the values of a long table.")
    ignore: list[str] | None = _form("Header of a column that is no part of it; may be repeated.")
    missing: list[str] | None = _form("A further word for missing, as -999; may be repeated.")
    separator: str | None = _form("Between fields; \\t for a tab.")
    decimal: str | None = _form("Sign before the fraction: . or ,")
    encoding: str | None = _form("Such as utf-8 or cp1252.")
    sheet: str | None = _form("Of an Excel file.")
    header: bool | None = _form("Whether the first line holds names.", "--header/--no-header")

    def read(self, file: Path) -> TableFile:
        """Read a file as these options say."""
        from declip.io import read_table

        said = {name: value for name, value in vars(self).items() if value is not None}
        for side in {"ceiling", "floor"} & said.keys():
            said[side] = _limit(said[side], side)
        if self.separator == "\\t":
            said["separator"] = "\t"
        return read_table(file, **said)


@dataclass(frozen=True, kw_only=True)
class Restoring:
    """How a table is restored."""

    log: bool = option("Work on logarithms (concentrations).", False, ("--log",))
    method: str = option("auto weighs several by the table itself.", "auto")
    rank: int | None = option("Number of factors.")
    alpha: float | None = option("Strength of the penalty.")
    rounding: str = option("auto takes values on a coarse grid as rounded; none does not.", "auto")
    fill: str = option("determined leaves what nothing determines; all guesses it.", "determined")
    coverage: float = option("Share of the truths that the bands are to hold.", 0.9)
    effort: str = option("quick, normal or thorough: how much work is done.", "normal")
    time_limit: float | None = option("Seconds after which no more methods are tried.")
    seed: int = option("Of what is random: the same seed, the same answer.", 0)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Restoring:
        """Return what a page gave, leaving out what is no option."""
        defaults = {f.name: f.default for f in fields(cls)}
        said = {name: value for name, value in given.items() if name in defaults}
        for name, value in said.items():
            if not _fits(value, defaults[name]):
                raise UsageError(f"{name} cannot be {value!r}")
        return cls(**said)

    def restore(
        self, cells: Intervals, progress: bool | Callable[[str, float], None] | None = None
    ) -> Restoration:
        """Restore a table as these options say, on all processors."""
        import declip

        named = {"rank": "n_components", "seed": "random_state"}
        said = {named.get(name, name): value for name, value in vars(self).items()}
        return declip.restore(cells, **said, n_jobs=-1, progress=progress)


def _fits(value: Any, default: Any) -> bool:
    """Tell whether a value is of the kind of the default: a number where there is none."""
    if isinstance(default, bool | str):
        return isinstance(value, type(default))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _limit(given: list[str], side: str) -> float | dict[str, float]:
    """Return a number, or ``{column: number}``, from ``5`` or ``iron=5``."""
    pairs = [text.rpartition("=") for text in given]
    named = {column: _number(number, side) for column, sign, number in pairs if sign}
    plain = [_number(number, side) for _, sign, number in pairs if not sign]
    if len(plain) > 1 or (plain and named):
        raise UsageError(
            f"--{side} takes one number for the table, or COLUMN=NUMBER for each column; "
            "for both, use --limits for the columns"
        )
    return plain[0] if plain else named


def _number(text: str, side: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--{side} must be a number or COLUMN=NUMBER; got {text!r}") from None
