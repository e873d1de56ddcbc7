"""Dataclasses of options as parameters of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from declip.options import UsageError, option

__all__ = ["Outputs", "Printing", "with_options"]


@dataclass(frozen=True, kw_only=True)
class Printing:
    """What is said, and to whom."""

    quiet: bool = option("Say nothing but errors.", False, ("--quiet", "-q"))
    as_json: bool = option("Print one JSON object.", False, ("--json",))


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The files that a restoration leaves."""

    output: Path | None = option(
        "Restored table; FILE-restored.SUFFIX by default.", names=("--output", "-o")
    )
    report: Path | None = option("Page to look at (.html).")
    flags: Path | None = option(
        "List of all cells: what was reported, restored, its flag, its band."
    )
    overwrite: bool = option("Replace files that exist.", False, ("--overwrite",))

    def paths(self, file: Path) -> dict[str, Path]:
        """Return what is to be written of a file, and where, if it can be."""
        table = self.output or file.with_name(f"{file.stem}-restored{file.suffix}")
        named = {"table": table, "flags": self.flags, "report": self.report}
        paths = {name: path for name, path in named.items() if path is not None}
        self._check_kinds(table)
        real = [path.resolve() for path in (file, *paths.values())]
        if len(set(real)) < len(real):
            raise UsageError("the file and its outputs must be different files")
        return paths

    def _check_kinds(self, table: Path) -> None:
        from declip.io.formats import kind_of

        kind_of(table)
        if self.flags and kind_of(self.flags) not in ("csv", "parquet", "excel"):
            raise UsageError("--flags must end in .csv, .tsv, .parquet or .xlsx")
        if self.report and self.report.suffix.lower() not in (".html", ".htm"):
            raise UsageError("--report must end in .html")


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of the dataclasses that a function takes."""
    hints = get_type_hints(function, include_extras=True)
    own = inspect.signature(function).parameters
    groups = {name: hints[name] for name in own if is_dataclass(hints[name])}
    plain = [p.replace(annotation=hints[p.name]) for p in own.values() if p.name not in groups]
    flat = [*plain, *(p for kind in groups.values() for p in _parameters(kind))]

    def command(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
        function(**given)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {p.name: p.annotation for p in flat}
    command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return command


def _parameters(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind)
    return [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=f.default,
            annotation=Annotated[hints[f.name], _shown(f)],
        )
        for f in fields(kind)
    ]


def _shown(field: Field) -> Any:
    about = field.metadata
    return typer.Option(*about["names"], help=about["help"], rich_help_panel=about["panel"] or None)
