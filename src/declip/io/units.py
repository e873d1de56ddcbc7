"""The unit on each line of a long table: of its value or, where it has none, of its limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.errors import shown
from declip.io.problems import Problem, Remedy
from declip.io.sheet import Sheet

if TYPE_CHECKING:
    from declip.io.layouts import Listed
    from declip.io.parsing import Parsed
    from declip.io.plan import Roles

__all__ = ["column_keys", "unit_problems", "units_of_lines"]


def units_of_lines(sheet: Sheet, roles: Roles) -> pl.Series | None:
    """Return the unit on each line; a line without a value is in the unit of its limit."""
    if not roles.unit:
        return None
    units = [_text(sheet.series(name)) for name in roles.unit]
    own, of_limit = units[0], units[-1]
    no_value = _text(sheet.series(roles.values[0])).is_null()
    limit_first = of_limit.zip_with(no_value & of_limit.is_not_null(), own)
    return limit_first.zip_with(limit_first.is_not_null(), of_limit)


def column_keys(sheet: Sheet, roles: Roles) -> list[pl.Series]:
    """Return what names the columns of the table; units among it are those of the lines."""
    units = units_of_lines(sheet, roles)
    if units is None:
        return [sheet.series(name) for name in roles.columns]
    return [
        _first_spelled(units) if name == roles.unit[0] else sheet.series(name)
        for name in roles.columns
    ]


def unit_problems(listed: Listed, parsed: Parsed) -> Iterator[Problem]:
    """Yield columns in several units, and values whose limits are in another."""
    if listed.unit is None:
        return
    frame = pl.DataFrame({"column": listed.cols, "unit": listed.unit, "same": _plain(listed.unit)})
    seen = frame.with_row_index().filter(pl.Series(~np.isnan(parsed.lower))).drop_nulls()
    several = seen.group_by("column").agg(pl.col("same").n_unique())
    for column in sorted(several.filter(pl.col("same") > 1)["column"].to_list()):
        yield _in_several(listed, seen.filter(pl.col("column") == column))
    if len(listed.roles.unit) > 1 and listed.limit is not None:
        yield from _unlike_limits(listed, parsed)


def _in_several(listed: Listed, lines: pl.DataFrame) -> Problem:
    kinds = lines.unique("same", keep="first", maintain_order=True)
    other = lines.filter(pl.col("same") != kinds["same"][0])["index"].to_numpy()
    name = shown(listed.named(int(other[0]))[1])
    units = " and in ".join(map(shown, kinds["unit"].to_list()[:3]))
    keys = ",".join([*listed.roles.columns, listed.roles.unit[0]])
    remedy = Remedy("columns", keys, "keeps them apart")
    return listed.problem(other, Problem(f"{name} is in {units}", remedies=(remedy,)))


def _unlike_limits(listed: Listed, parsed: Parsed) -> Iterator[Problem]:
    """Yield values that are censored at a limit in another unit than their own."""
    units = [_text(listed.sheet.series(name)) for name in listed.roles.unit]
    own, of_limit = units[0], units[-1]
    cells = np.flatnonzero(_limit_counts(listed, parsed) & _differ(own, of_limit))
    if cells.size:
        k = listed.first(cells)
        what = f"the value is in {shown(own[k])}, its limit in {shown(of_limit[k])}"
        yield listed.problem(cells, f"{what}: give both in one unit")


def _limit_counts(listed: Listed, parsed: Parsed) -> NDArray[np.bool_]:
    """Tell lines with a value and a limit, of which the limit was taken."""
    assert listed.limit is not None
    text = _text(listed.text)
    own_limit = text.str.contains("[<>]").fill_null(value=True)
    taken = ~own_limit & _text(listed.limit).is_not_null()
    return taken.to_numpy() & (parsed.lower < parsed.upper)


def _differ(own: pl.Series, of_limit: pl.Series) -> NDArray[np.bool_]:
    return (_plain(own) != _plain(of_limit)).fill_null(value=False).to_numpy()


def _text(fields: pl.Series) -> pl.Series:
    """Return fields as text, null where they are blank."""
    text = fields.cast(pl.String).str.strip_chars()
    return text.set(text == "", None)


def _first_spelled(units: pl.Series) -> pl.Series:
    """Return units as they are spelled where they come first."""
    frame = pl.DataFrame({"unit": units, "same": _plain(units)})
    return frame.select(pl.col("unit").first().over("same")).to_series()


def _plain(units: pl.Series) -> pl.Series:
    """Return units in one spelling: µg/L and UG/L are ug/l, but MPa is not mPa."""
    micro = units.str.replace_all("[µμ]", "u").str.replace_all(r"\s", "")
    shout = micro.str.to_uppercase() == micro
    lower = micro.str.replace_all(r"/L\b", "/l")
    return micro.str.to_lowercase().zip_with(shout.fill_null(value=False), lower)
