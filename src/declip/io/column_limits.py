"""Limits of single columns, from a file or a mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from declip.io.errors import TableFileError
from declip.io.formats import TableFormat, kind_of
from declip.io.head import take_header
from declip.io.numbers import NumberStyle, find_style, why_not
from declip.io.parsing import parse_cells
from declip.io.sheet import Sheet
from declip.io.sources import read_sheet

__all__ = ["read_limits"]

_SIDES = {
    "floor": r"floor|lower|low|min|minimum|lod|loq|lloq|mdl|dl|rl|pql"
    r"|(?:lower|detection|reporting)[ _.-]limit",
    "ceiling": r"ceiling|upper|high|max|maximum|uloq|ul|saturation|upper[ _.-]limit",
}


def read_limits(path: str | Path) -> dict[str, dict[str, float]]:
    r"""Read a table of limits: one line a column of the data, with its floor, its ceiling, or both.

    Parameters
    ----------
    path : str or Path
        File with a header (any kind that `read_table` reads by lines). The first column names the
        columns of the data; a column ``floor`` (or ``lod``, ``loq``, ``lower``, ``min``) and a
        column ``ceiling`` (or ``uloq``, ``upper``, ``max``) hold the limits. Empty is no limit.

    Returns
    -------
    dict
        ``{"floor": {column: limit}, "ceiling": {column: limit}}``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "limits.csv")
    ...     _ = path.write_text("analyte,lod,uloq\niron,0.05,\nzinc,0.2,40\n")
    ...     read_limits(path)
    {'floor': {'iron': 0.05, 'zinc': 0.2}, 'ceiling': {'zinc': 40.0}}
    """
    path = Path(path)
    sheet = take_header(read_sheet(path, TableFormat(kind_of(path), header=True)))
    columns = {
        side: [j for j, name in enumerate(sheet.header) if re.fullmatch(words, name.strip(), re.I)]
        for side, words in _SIDES.items()
    }
    if not any(columns.values()):
        sheet.fail("a table of limits needs a column 'floor' or a column 'ceiling'")
    keys = sheet.frame.to_series(0).cast(pl.String).fill_null("").to_list()
    twice = next((k for k, key in enumerate(keys) if key in keys[:k]), None)
    if twice is not None:
        sheet.fail("this column was named before", twice, 0)
    return {side: _side(sheet, keys, where) for side, where in columns.items()}


def _side(sheet: Sheet, keys: list[str], where: list[int]) -> dict[str, float]:
    if len(where) > 1:
        sheet.fail("two columns hold the same limit", None, where[1])
    if not where:
        return {}
    text = sheet.frame.to_series(where[0])
    style = find_style([text]) if sheet.format.separator != "," else NumberStyle()
    limit = parse_cells(text, style.decimal, thousands=style.thousands)
    wrong = np.union1d(limit.bad, np.flatnonzero((limit.lower < limit.upper) | (limit.word != 0)))
    if wrong.size:
        k = int(wrong[0])
        raise TableFileError(sheet.path, sheet.placed(why_not(text[k], style), k, where[0]))
    known = np.flatnonzero(~np.isnan(limit.lower))
    return {keys[k]: float(limit.lower[k]) for k in known}


def limits_by_column(limits: Any) -> dict[str, dict[Any, float]]:
    """Return the limits of columns from a path, or from ``{column: (floor, ceiling)}``."""
    if limits is None:
        return {}
    if isinstance(limits, str | Path):
        return read_limits(limits)
    if not isinstance(limits, Mapping):
        raise TypeError(f"limits must be a path or a mapping; got {type(limits).__name__}")
    sides: dict[str, dict[Any, float]] = {"floor": {}, "ceiling": {}}
    for column, pair in limits.items():
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise TypeError(f"limits[{column!r}] must be a pair (floor, ceiling); got {pair!r}")
        for side, limit in zip(sides, pair, strict=True):
            if limit is not None:
                sides[side][column] = float(limit)
    return sides
