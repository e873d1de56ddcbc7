"""The options that belong to the command alone: files in and out, and what is said."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from declip.options import UsageError, option

__all__ = ["Input", "Outputs", "Printing", "argument"]


def argument(help_: str, shown: str, default: Any = None) -> Any:
    """Return a field that is known by its place in the line."""
    metadata = {"help": help_, "names": (), "panel": "", "shown": shown, "positional": True}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Input:
    """The file to read."""

    file: Path = argument("CSV, TSV, Excel, Parquet, npz or MatrixMarket file.", "FILE")


@dataclass(frozen=True, kw_only=True)
class Printing:
    """What is said, and to whom."""

    quiet: bool = option("Say nothing but errors.", False, ("--quiet", "-q"))
    as_json: bool = option("Print one JSON object.", False, ("--json",))


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The files that a restoration leaves."""

    output: Path | None = option(
        "Restored table; FILE-restored.SUFFIX by default.", names=("--output", "-o"), shown="FILE"
    )
    report: Path | None = option("Page to look at (.html).", shown="FILE")
    flags: Path | None = option(
        "List of the cells: what was reported, the value now, its flag, its band.", shown="FILE"
    )
    in_place: bool = option(
        "Put restored values in place of reported ones; by default a long file gets columns.",
        False,
        ("--in-place",),
    )
    fill: bool = option("Also fill cells that nobody measured.", False, ("--fill",))
    imputations: int | None = option(
        "Also draw so many complete tables, for mice of R: OUTPUT-imputations.csv."
    )
    overwrite: bool = option("Replace files that exist.", False, ("--overwrite",))

    def paths(self, file: Path) -> dict[str, Path]:
        """Return what is to be written of a file, and where, if it can be."""
        table = self.output or file.with_name(f"{file.stem}-restored{file.suffix}")
        named = {"table": table, "flags": self.flags, "report": self.report}
        if self.imputations is not None:
            named["imputations"] = table.with_name(f"{table.stem}-imputations.csv")
        paths = {name: path for name, path in named.items() if path is not None}
        self._check_kinds(table)
        real = [path.resolve() for path in (file, *paths.values())]
        if len(set(real)) < len(real):
            raise UsageError("the file and its outputs must be different files")
        return paths

    def _check_kinds(self, table: Path) -> None:
        from declip.io.formats import kind_of

        kind_of(table)
        if self.imputations is not None and self.imputations < 1:
            raise UsageError("--imputations must be a number of tables from 1 on")
        if self.flags and kind_of(self.flags) not in ("csv", "parquet", "excel"):
            raise UsageError("--flags must end in .csv, .tsv, .parquet or .xlsx")
        if self.report and self.report.suffix.lower() not in (".html", ".htm"):
            raise UsageError("--report must end in .html")
