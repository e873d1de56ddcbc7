"""What a person may say about a file, to the command and to the page: each option once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from declip.intervals import Intervals
    from declip.io import Remedy, TableFile
    from declip.restoration import Restoration

__all__ = ["Reading", "Restoring", "UsageError", "as_option", "in_own_words", "option"]

_COLUMNS = "Which column is what (found by name and content unless given)"
_FORM = "The form of the file (found unless given)"
_LIMITS = "Limits that the file does not tell"
_METHOD = "How it is restored"


class UsageError(ValueError):
    """An option that cannot mean anything."""


def option(
    help_: str, default: Any = None, names: tuple[str, ...] = (), panel: str = "", shown: str = ""
) -> Any:
    """Return a field with what the command shows of it; ``shown`` stands for its value."""
    metadata = {"help": help_, "names": names, "panel": panel, "shown": shown}
    return field(default=default, metadata=metadata)


def _form(help_: str, *names: str, shown: str = "") -> Any:
    return option(help_, names=names, panel=_FORM, shown=shown)


def _column(help_: str, shown: str = "NAME[,NAME]") -> Any:
    return option(help_, panel=_COLUMNS, shown=shown)


def _method(help_: str, default: Any = None, *names: str, shown: str = "") -> Any:
    return option(help_, default, names, _METHOD, shown)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file is read, and the limits of its cells."""

    format: Literal["wqp", "olink"] | None = _column(
        "An export whose columns are known: Water Quality Portal, Olink."
    )
    rows: list[str] | None = _column("Columns that together name a row.")
    columns: list[str] | None = _column("Columns of a long table that together name a column.")
    values: list[str] | None = _column(
        "Column of the values of a long table; columns or patterns ('Intensity *') of a wide one."
    )
    limit: list[str] | None = _column(
        "Column with the limit of each cell; in a wide table VALUES=LIMITS.", "NAME"
    )
    qualifier: list[str] | None = _column(
        "Column that marks cells beyond a limit (<, U, TRUE, Not Detected, ...); in a wide table "
        "VALUES=MARKS.",
        "NAME",
    )
    unit: list[str] | None = _column("Column of units of a long table, and of those of limits.")
    ignore: list[str] | None = _column("Columns that are no part of the table.")
    side: Literal["below", "above"] | None = _column(
        "Side of the limit of a marked cell, where the mark does not say."
    )
    below_limit: Literal["value", "censored"] | None = _column(
        "How a value below its limit counts that nothing marks."
    )
    replicates: Literal["mean", "separate"] | None = _column(
        "What becomes of cells that a long table gives several times."
    )
    ceiling: list[str] | None = option(
        "A number for the table, or COLUMN=NUMBER; may be repeated.", panel=_LIMITS, shown="NUMBER"
    )
    floor: list[str] | None = option("The same for the lower end.", panel=_LIMITS, shown="NUMBER")
    limits: Path | None = option(
        "File with the columns: name, floor, ceiling.", panel=_LIMITS, shown="FILE"
    )
    layout: Literal["wide", "long"] | None = _form("A line a row of the table, or a line a cell.")
    missing: list[str] | None = _form("A further word for missing, as -999.", shown="WORD")
    mark: list[str] | None = _form(
        "What a further word or mark means: below, above, exact or missing.", shown="WORD=MEANING"
    )
    skip: list[str] | None = _form("Lines that are no part of the table: 1-3,5.", shown="LINES")
    header: bool | None = _form("Whether the first line holds names.", "--header", "--no-header")
    separator: str | None = _form("Between fields; \\t for a tab.", shown="SIGN")
    decimal: Literal[".", ","] | None = _form("Sign before the fraction.")
    thousands: str | None = _form("Sign between thousands.", shown="SIGN")
    encoding: str | None = _form("Such as utf-8 or cp1252.", shown="NAME")
    sheet: str | None = _form("Of an Excel file.", shown="NAME")

    def read(self, file: Path) -> TableFile:
        """Read a file as these options say."""
        from declip.io import read_table

        return read_table(file, **self.arguments())

    def spelled(self) -> Iterator[str]:
        """Yield the words by which these options are given to the command."""
        for name, value in vars(self).items():
            option_ = "--" + name.replace("_", "-")
            if isinstance(value, bool):
                yield option_ if value else option_.replace("--", "--no-", 1)
            elif value is not None:
                for text in value if isinstance(value, list) else [value]:
                    yield from (option_, str(text))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `read_table`."""
        said = {name: value for name, value in vars(self).items() if value not in (None, [])}
        for side in {"ceiling", "floor"} & said.keys():
            said[side] = _limit(said[side], side)
        for name in {"limit", "qualifier"} & said.keys():
            said[name] = dict(_pair(text) for text in said[name])
        if self.mark:
            said["marks"] = _meanings(said.pop("mark"))
        if self.skip:
            said["skip"] = [line for text in self.skip for line in _lines(text)]
        if self.separator == "\\t":
            said["separator"] = "\t"
        return said


@dataclass(frozen=True, kw_only=True)
class Restoring:
    """How a table is restored."""

    log: list[str] | bool = _method(
        "Work on logarithms (concentrations); of some columns: --log iron,zinc.",
        False,
        "--log",
        shown="NAME[,NAME]",
    )
    scale: Literal["auto", "sqrt", "log1p"] = _method(
        "Work on square roots, or log(1 + x), of counts and amounts that may be zero.", "auto"
    )
    between: list[str] | None = _method(
        "What the truth cannot pass, as 0, or 0,100; COLUMN=0,100 for a column; may be repeated. "
        "Default: zero for columns that are never negative; none: nothing.",
        shown="LOW,HIGH",
    )
    missing_means: Literal["random", "low", "high", "auto"] = _method(
        "Why cells are missing: low if they were too low to be seen; auto lets cells decide.",
        "random",
    )
    coverage: float = _method("Share of the truths that the bands are to hold.", 0.9)
    effort: Literal["quick", "normal", "thorough"] = _method("How much work is done.", "normal")
    time_limit: float | None = _method(
        "Seconds after which no more methods are tried.", shown="SECONDS"
    )
    seed: int = _method("Of what is random: the same seed, the same answer.", 0)
    rounding: Literal["auto", "none"] = _method(
        "auto takes values on a coarse grid as rounded.", "auto"
    )
    guess: bool = _method("Also guess what the data do not determine.", False, "--guess")
    method: Literal[
        "auto",
        "bayes",
        "bayes+known",
        "bayes+rows",
        "normal",
        "classes",
        "column",
        "tobit",
        "tobit+bias",
        "hinge",
        "hinge+bias",
        "trace",
    ] = _method("auto weighs several by the table itself.", "auto")
    rank: int | None = _method("Number of factors.")
    alpha: float | None = _method("Strength of the penalty.")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Restoring:
        """Return what a page gave, leaving out what is no option."""
        said = {f.name: given[f.name] for f in fields(cls) if f.name in given}
        for f in fields(cls):
            if f.name in said and not _fits(said[f.name], f):
                raise UsageError(f"{f.name} cannot be {said[f.name]!r}")
        return cls(**said)

    def restore(
        self,
        cells: Intervals,
        progress: bool | Callable[[str, float], None] | None = None,
        **known: Any,
    ) -> Restoration:
        """Restore a table as these options say, on all processors."""
        import declip

        said = {_OTHER_NAMES.get(name, name): value for name, value in vars(self).items()}
        said["fill"] = "all" if said.pop("fill") else "determined"
        said["between"] = _between(self.between) if self.between else "auto"
        if isinstance(self.log, list):
            said["log"] = [name for text in self.log for name in text.split(",")]
        return declip.restore(cells, **said, **known, n_jobs=-1, progress=progress)


# Arguments of Python whose options have another name.
_OTHER_NAMES = {
    "rank": "n_components",
    "seed": "random_state",
    "guess": "fill",
    "mark": "marks",
    "missing_means": "missing",
}


def as_option(remedy: Remedy) -> str:
    """Return a remedy as the command takes it."""
    of_reading = {_OTHER_NAMES.get(f.name, f.name): f.name for f in fields(Reading)}
    name = "--" + of_reading.get(remedy.option, remedy.option).replace("_", "-")
    if remedy.value == "...":
        return name
    plain = re.fullmatch(r"[\w.,=/+-]+", remedy.value)
    return f"{name} {remedy.value if plain else repr(remedy.value)}"


def in_own_words(message: str) -> str:
    """Return what Python says with options of the command in place of its arguments."""
    named = {
        _OTHER_NAMES.get(f.name, f.name): f.name for f in (*fields(Reading), *fields(Restoring))
    }
    message = re.sub(r",? as in X\.clip\([^)]*\) with", ":", message)
    words = "|".join(map(re.escape, named))

    def spelled(match: re.Match[str]) -> str:
        return "--" + named[match[1]].replace("_", "-")

    message = message.replace("; tol= allows for rounding", "")  # the command has no such option
    message = re.sub(rf"\b({words})=(?=[\s.,;:)]|$)", spelled, message)
    message = re.sub(rf"\b({words})=None\b", lambda m: f"{spelled(m)} none", message)
    message = re.sub(rf"\b({words})='([^' ]+)'", lambda m: f"{spelled(m)} {m[2]}", message)
    message = re.sub(rf"\b({words})=(?=\S)", lambda m: spelled(m) + " ", message)
    return re.sub(rf"(?:(?<=: )|^)({words})(?= (?:must|names|has|takes|needs)\b)", spelled, message)


def _fits(value: Any, option_: Field) -> bool:
    """Tell whether a value is of the kind of an option: a number unless its default tells."""
    if isinstance(option_.default, bool | str):
        return isinstance(value, type(option_.default))
    if "list[str]" in str(option_.type):
        return isinstance(value, list) and all(isinstance(text, str) for text in value)
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


def _pair(text: str) -> tuple[str, str]:
    """Return value column and the one beside it, from ``iron=iron_flag`` or ``flag``."""
    of, _, name = text.rpartition("=")
    return of, name


def _meanings(given: list[str]) -> dict[str, str]:
    pairs = [text.rpartition("=") for text in given]
    for mark, sign, meaning in pairs:
        if not sign or not mark:
            raise UsageError(f"--mark must be WORD=MEANING, as B=exact; got {meaning!r}")
    return {mark: meaning for mark, _, meaning in pairs}


def _lines(text: str) -> list[int]:
    """Return lines from ``1-3,5``; none from ``none``."""
    if text == "none":
        return []
    if not re.fullmatch(r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*", text):
        raise UsageError(f"--skip must be lines, as 1-3,5; got {text!r}")
    ends = [part.partition("-") for part in text.split(",")]
    return [k for a, _, b in ends for k in range(int(a), int(b or a) + 1)]


def _between(given: list[str]) -> tuple[Any, Any] | None:
    """Return bounds from ``0``, ``0,100``, ``,100``, ``none`` or, for columns, ``iron=0,100``."""
    if [text.lower() for text in given] == ["none"]:
        return None
    pairs = [text.rpartition("=") for text in given]
    named = {column: _ends(bounds) for column, sign, bounds in pairs if sign}
    plain = [_ends(bounds) for _, sign, bounds in pairs if not sign]
    if len(plain) > 1 or (plain and named) or len(plain) + len(named) < len(given):
        raise UsageError(
            "--between takes LOW,HIGH for the table, or COLUMN=LOW,HIGH once for each column"
        )
    if plain:
        return plain[0]
    low, high = (
        {column: ends[k] for column, ends in named.items() if ends[k] is not None} for k in (0, 1)
    )
    return low or None, high or None


def _ends(text: str) -> tuple[float | None, float | None]:
    low, _, high = text.partition(",")
    try:
        return tuple(float(end) if end.strip() else None for end in (low, high))  # type: ignore[return-value]
    except ValueError:
        raise UsageError(f"--between must be LOW,HIGH, as 0,100, or none; got {text!r}") from None
