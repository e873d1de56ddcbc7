"""Options that commands share, and how they become arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["Limits", "Reading", "limit_argument"]

_READING = "How the file is read (found by itself unless given)"
_LIMITS = "Limits"


def _option(help_: str, *names: str, panel: str = _READING, **more: Any) -> Any:
    return typer.Option(*names, help=help_, rich_help_panel=panel, **more)


class Limits:
    """Types of the options about limits."""

    Ceiling = Annotated[
        list[str] | None,
        _option("A number for the table, or COLUMN=NUMBER; may be repeated.", panel=_LIMITS),
    ]
    Floor = Annotated[list[str] | None, _option("The same for the lower end.", panel=_LIMITS)]
    File = Annotated[
        Path | None,
        _option("File with the columns: name, floor, ceiling.", "--limits", panel=_LIMITS),
    ]


class Reading:
    """Types of the options about the form of the file."""

    Layout = Annotated[str | None, _option("wide (a line a row) or long (a line a cell).")]
    Rows = Annotated[str | None, _option("Header of the row labels.")]
    Columns = Annotated[str | None, _option("Header of the column labels of a long table.")]
    Values = Annotated[str | None, _option("Header of the values of a long table.")]
    Ignore = Annotated[
        list[str] | None, _option("Header of a column that is no part of it; may be repeated.")
    ]
    Missing = Annotated[
        list[str] | None, _option("A further word for missing, as -999; may be repeated.")
    ]
    Separator = Annotated[str | None, _option("Between fields; \\t for a tab.")]
    Decimal = Annotated[str | None, _option("Sign before the fraction: . or ,")]
    Encoding = Annotated[str | None, _option("Such as utf-8 or cp1252.")]
    Sheet = Annotated[str | None, _option("Of an Excel file.")]
    Header = Annotated[
        bool | None, _option("Whether the first line holds names.", "--header/--no-header")
    ]


def limit_argument(given: list[str] | None, side: str) -> Any:
    """Return a number, or ``{column: number}``, from ``5`` or ``iron=5``."""
    if not given:
        return None
    pairs = [text.rpartition("=") for text in given]
    named = {column: _number(number, side) for column, sign, number in pairs if sign}
    plain = [_number(number, side) for _, sign, number in pairs if not sign]
    if len(plain) > 1 or (plain and named):
        raise typer.BadParameter(
            f"--{side} takes one number for the table, or COLUMN=NUMBER for each column; "
            "for both, use --limits for the columns"
        )
    return plain[0] if plain else named


def _number(text: str, side: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"--{side} must be a number or COLUMN=NUMBER; got {text!r}"
        ) from None
