"""Columns of a file that are known but not restored: covariates and groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from declip.options import Reading, option

if TYPE_CHECKING:
    from pathlib import Path

    from declip.io import TableFile

__all__ = ["Knowing"]

_PANEL = "What else is known of a row"


@dataclass(frozen=True, kw_only=True)
class Knowing:
    """What is known besides the table."""

    covariates: list[str] | None = option(
        "Columns that are known and not restored, numbers or categories: age,sex,site.",
        panel=_PANEL,
        shown="NAME[,NAME]",
    )
    groups: str | None = option(
        "Column that names plates, batches or conditions, each with offsets of its own.",
        panel=_PANEL,
        shown="NAME",
    )

    def read(self, file: Path, reading: Reading) -> TableFile:
        """Read a file as options say, with these columns apart from the table."""
        from declip.io import read_table

        said = {name: value for name, value in vars(self).items() if value}
        return read_table(file, **reading.arguments(), **said)
