"""Which column of a file is what: found by name and by content, unless it is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io import names as called
from declip.io.keys import as_times
from declip.io.numbers import NumberStyle
from declip.io.parsing import parse_cells, parse_qualifiers
from declip.io.plan import Asked, Roles
from declip.io.problems import Problem, Remedy
from declip.io.sheet import Sheet
from declip.io.words import EMPTY, NO

__all__ = ["find_roles"]

_SAMPLE = 2000  # lines from which the content of a column is judged
_MOST_ANSWERS = 11  # that a question has in words
_SHORT = 4  # lines in which nothing need come again


def find_roles(sheet: Sheet, asked: Asked, style: NumberStyle) -> Roles:
    """Return what each column of a sheet with a header is."""
    for name in (*asked.rows, *asked.columns, *asked.unit, *asked.left_out):
        sheet.column(name)
    for name in (*asked.limit.values(), *asked.qualifier.values()):
        sheet.column(name)
    finder = _Finder(sheet, asked, style)
    layout = sheet.format.layout or ("long" if finder.looks_long() else "wide")
    if layout not in ("wide", "long"):
        sheet.fail(f"layout must be 'wide' or 'long'; got {layout!r}")
    found = finder.long() if layout == "long" else finder.wide()
    aside = tuple(name for name in found.aside if name not in (*asked.covariates, *asked.groups))
    return replace(found, covariates=asked.covariates, groups=asked.groups, aside=aside)


@dataclass(frozen=True)
class _Finder:
    """A look at the columns of a sheet."""

    sheet: Sheet
    asked: Asked
    style: NumberStyle

    @cached_property
    def free(self) -> list[str]:
        """Columns of which nothing was said."""
        said = {*self.asked.rows, *self.asked.columns, *self.asked.values, *self.asked.unit}
        said |= {*self.asked.limit.values(), *self.asked.qualifier.values(), *self.asked.left_out}
        return [name for name in self.sheet.header if name not in said]

    @cached_property
    def _known(self) -> dict[str, str]:
        """Columns that may hold values, by their plain names."""
        names = (n for n in self.sheet.header if n not in (*self.asked.rows, *self.asked.left_out))
        return {called.plain(name): name for name in names}

    def named(self, pattern: object, taken: Sequence[str] = ()) -> Iterator[str]:
        """Yield free columns whose name is of a kind."""
        for name in self.free:
            if name not in taken and pattern.fullmatch(called.plain(name)):  # type: ignore[attr-defined]
                yield name

    def looks_long(self) -> bool:
        """Tell a line for each cell from a line for each row, by what was said and by names."""
        asked = self.asked
        if asked.columns or (len(asked.values) == 1 and not _is_pattern(asked.values[0])):
            return True
        if asked.values:
            return False
        value = next(self.named(called.VALUE), None)
        row = asked.rows or tuple(self.named(called.ROW, [value or ""]))
        column = next(self.named(called.COLUMN, [value or "", *row[:1]]), None)
        if value and row and column:  # a cell a line: some row or some column comes again
            short = len(self.free) <= 3 or self.sheet.frame.height < _SHORT
            return short or self.sheet.repeats(row[:1]) or self.sheet.repeats([column])
        return bool(value and row and self._times([value, *row]) and self.sheet.repeats(row[:1]))

    def _times(self, taken: Sequence[str]) -> list[str]:
        """Return free columns with dates or times, by content or by name."""
        return [name for name in self.free if name not in taken and self._is_time(name)]

    def _is_time(self, name: str) -> bool:
        some = self.sheet.series(name).drop_nulls()[:_SAMPLE]
        return len(some) > 0 and as_times(some, called.plain(name)) is not None

    # long tables

    def long(self) -> Roles:
        """Return the roles in a table with a line for each cell."""
        value = self._the_value()
        columns = self.asked.columns or self._column_keys(value)
        rows = self.asked.rows or self._row_keys(value, columns)
        if rows and columns and value and not self.asked.columns:
            more = self.named(called.PART_OF_COLUMN, [*rows, *columns, value])
            columns = self._more_keys(columns, more, rows)
        if not (rows and columns and value):
            lost = {"rows": rows, "columns": columns, "values": value}
            missing = [name for name, found in lost.items() if not found]
            self.sheet.fail(
                f"a long table: say which column holds the {' and the '.join(missing)}",
                None, None, *(Remedy(name) for name in missing),
            )  # fmt: skip
        if len({*rows, *columns, value}) < len(rows) + len(columns) + 1:
            self.sheet.fail("rows, columns and values of a long table must be different columns")
        taken = [*rows, *columns, value]
        limits = list(self.asked.limit.values()) or self._limits(taken)
        limit = self._at_which_values_lie(limits, value)
        qualifier = next(iter(self.asked.qualifier.values()), None) or self._qualifier(
            [*taken, limit]
        )
        unit = self.asked.unit or self._units(taken, columns, limit)
        used = {*taken, *unit, limit, qualifier}
        return Roles(
            layout="long",
            rows=tuple(rows),
            columns=tuple(columns),
            values=(value,),
            limit={value: limit} if limit else {},
            qualifier={value: qualifier} if qualifier else {},
            unit=tuple(unit),
            aside=tuple(name for name in self.sheet.header if name not in used),
            notes=(*self._other_limits(limits, limit), *self._unused_marks(used)),
        )

    def _units(
        self, taken: Sequence[str], columns: Sequence[str], limit: str | None
    ) -> tuple[str, ...]:
        """Return the column of units and, after it, that of limits if these have their own."""
        of_limits = list(self.named(called.UNIT_OF_LIMIT, taken))[:1] if limit else []
        keys = [n for n in columns if called.UNIT_NAME.fullmatch(called.plain(n))]
        own = keys or list(self.named(called.UNIT_NAME, [*taken, *of_limits]))
        return (*own[:1], *of_limits)

    def _the_value(self) -> str:
        if self.asked.values:
            self.sheet.column(self.asked.values[0])
            return self.asked.values[0]
        if not self.sheet.format.header and not (self.asked.rows or self.asked.columns):
            return self.free[2] if len(self.free) > 2 else ""
        return next(self.named(called.VALUE), "") or self._third()

    def _third(self) -> str:
        plain = not (self.asked.rows or self.asked.columns)
        return self.free[2] if plain and len(self.free) == 3 else ""

    def _column_keys(self, value: str) -> tuple[str, ...]:
        if not self.sheet.format.header and value:
            return tuple(self.free[1:2])
        column = next(self.named(called.COLUMN, [value]), None)
        if column is None:
            times = self._times([value])
            if times:
                return (times[0],)
            return (self.free[1],) if self._third() == value and value else ()
        return (column,)

    def _row_keys(self, value: str, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the first column that names rows, and more while lines are not told apart."""
        taken = [value, *columns]
        if not self.sheet.format.header and value:
            return tuple(self.free[:1])
        first = next(self.named(called.ROW, taken), None) or next(iter(self._times(taken)), None)
        if first is None:
            return (self.free[0],) if self._third() == value and value else ()
        named = set(self.named(called.PART_OF_ROW))
        rest = [name for name in self.free if name not in [*taken, first]]
        more = (n for n in rest if (n in named or self._is_time(n)) and self._is_key(n))
        return self._more_keys([first], more, columns)

    def _more_keys(
        self, first: Sequence[str], more: Iterable[str], others: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the first keys, and others that tell lines apart, while some are not."""
        keys = list(first)
        for name in more:
            if not self.sheet.repeats([*keys, *others]):
                break
            if self._count([*keys, name, *others]) > self._count([*keys, *others]):
                keys.append(name)
        return tuple(keys)

    def _is_key(self, name: str) -> bool:
        """Tell a key from a remark: it is given on nearly every line."""
        column = self.sheet.series(name)
        return column.null_count() <= 0.1 * len(column)

    def _count(self, keys: Sequence[str]) -> int:
        return self.sheet.frame.select(str(self.sheet.column(name)) for name in keys).n_unique()

    def _limits(self, taken: Sequence[str]) -> list[str]:
        """Return the columns of limits: named so, and with numbers in them."""
        named = self.named(called.LIMIT, taken)
        return [n for n in named if self._numbers(n) or not self.sheet.series(n).count()]

    def _numbers(self, name: str) -> int:
        return int((~np.isnan(self._lower(name))).sum())

    def _lower(self, name: str) -> NDArray[np.float64]:
        column = self.sheet.series(name)
        return parse_cells(column, self.style.decimal, thousands=self.style.thousands).lower

    def _at_which_values_lie(self, limits: Sequence[str], value: str) -> str | None:
        """Return the column of limits that most values stand at: that of detection, or another."""
        if len(limits) < 2:
            return next(iter(limits), None)
        values = self._lower(value)
        return max(limits, key=lambda name: int((self._lower(name) == values).sum()))

    def _other_limits(self, limits: Sequence[str], chosen: str | None) -> Iterator[Problem]:
        for name in limits:
            if name != chosen and name in self.free:
                remedy = Remedy("limit", name, "if values were censored there")
                yield Problem(
                    f"{name!r} holds limits as well, and is left aside", remedies=(remedy,)
                )

    def _qualifier(self, taken: Sequence[str | None]) -> str | None:
        """Return the column of marks: by its name, or because all that it holds are marks."""
        used = [name for name in taken if name]
        for name in self.named(called.QUALIFIER, used):
            if self._marks(name) is not None:
                return name
        for name in self.free:
            sides = None if name in used else self._marks(name, all_known=True)
            if sides and sides & {-1, 1}:
                return name
        return next(self.named(called.SURE_QUALIFIER, used), None)

    def _marks(self, name: str, all_known: bool = False) -> set[int] | None:
        """Return what the marks of a column say, None if it holds other things."""
        column = self.sheet.series(name)
        if column.dtype.is_float():
            return None
        seen = column.unique()
        sides = parse_qualifiers(seen, self.asked.marks)
        known = set(sides.drop_nulls().to_list()) - {0}
        if sides.null_count() and (all_known or not known - {NO}):
            return None
        return known if len(seen) <= 50 else None

    def _unused_marks(self, used: set[str | None]) -> Iterator[Problem]:
        for name in self.free:
            if name not in used and self._is_yes_or_no(name):
                remedy = Remedy("qualifier", name, "if it marks values beyond a limit")
                yield Problem(f"{name!r} holds yes and no and is left aside", remedies=(remedy,))

    def _is_yes_or_no(self, name: str) -> bool:
        column = self.sheet.series(name)
        if column.dtype != pl.String:
            return column.dtype == pl.Boolean
        words = {str(word).strip().lower() for word in column.drop_nulls().unique()[:10]}
        return bool(words) and words <= {"true", "false", "yes", "no", "t", "f", "y", "n"}

    # wide tables

    def wide(self) -> Roles:
        """Return the roles in a table with a line for each row."""
        asked = self.asked
        beside = {role: self._beside(role) for role in ("qualifier", "limit")}
        pairs = {name for columns in beside.values() for name in columns.values()}
        rows = asked.rows or self._labels(pairs)
        apart = {*rows, *pairs, *asked.left_out, *asked.unit}
        rest = [name for name in self.sheet.header if name not in apart]
        of_rows = next((n for n in rest if self._limits_rows(n)), None)
        rest = [name for name in rest if name != of_rows or name in asked.values]
        values = self._named_values(rest) if asked.values else self._values(rest)
        if of_rows is not None and of_rows not in values:
            beside["limit"] = dict.fromkeys(values, of_rows) | beside["limit"]
            pairs.add(of_rows)
        if not values:
            self.sheet.fail("there is no column of values")
        words = [n for n in rest if n not in values and self._is_words(n)]
        if len(values) == 1 and words and not (self.sheet.format.layout or asked.values):
            self.sheet.fail(
                f"there is one column of values, {values[0]!r}, and words in {words[0]!r}",
                None,
                None,
                Remedy("columns", words[0], "if these name the columns of the table"),
                Remedy("layout", "wide", "if they are no part of it"),
            )
        used = {*rows, *values, *pairs, *asked.unit}
        return Roles(
            layout="wide",
            rows=tuple(rows),
            values=tuple(values),
            limit={v: c for v, c in beside["limit"].items() if v in values},
            qualifier={v: c for v, c in beside["qualifier"].items() if v in values},
            unit=asked.unit,
            aside=tuple(name for name in self.sheet.header if name not in used),
        )

    def _named_values(self, rest: list[str]) -> list[str]:
        wanted = self.asked.values
        for name in wanted:
            if not _is_pattern(name):
                self.sheet.column(name)
        return [name for name in rest if any(name == w or fnmatchcase(name, w) for w in wanted)]

    def _values(self, rest: list[str]) -> list[str]:
        """Return columns that hold values: not those of words alone, of dates, or named so."""
        found = [name for name in rest if not self._is_text(name)]
        if len(rest) > 1 and not found:
            self._fail_for_words(rest)
        return _measured(found) or found or [name for name in rest if not self._is_time(name)]

    def _fail_for_words(self, names: list[str]) -> None:
        """Refuse a table of words, if a few come again and again: answers on a scale."""
        columns = [self.sheet.series(name).drop_nulls().unique()[:_SAMPLE] for name in names]
        words = {str(word) for column in columns for word in column}
        if len(words) <= _MOST_ANSWERS:
            some = ", ".join(repr(word) for word in sorted(words)[:3])
            self.sheet.fail(
                f"its cells are words ({some}): write answers on a scale as numbers in their order"
            )

    def _is_text(self, name: str) -> bool:
        """Tell a column without any number, limit or word for one in it."""
        if called.NEVER_VALUES.fullmatch(called.plain(name)) and self.sheet.format.header:
            return True
        column = self.sheet.series(name)
        if column.dtype != pl.String or self._has_numbers(column):
            return False
        if self._is_yes_or_no(name):
            return False
        some = column.drop_nulls()
        parsed = parse_cells(some, self.style.decimal, (), self.asked.marks, self.style.thousands)
        if len(parsed.bad) < 2 or len(parsed.bad) < len(some) - int(np.isnan(parsed.lower).sum()):
            return False
        words = some.str.to_lowercase().is_in(list(EMPTY)).not_().sum()
        # s01 is a code, 5 mg may be a number
        numbers = some.str.contains(r"^[^A-Za-z]*[0-9]").sum()
        return len(parsed.bad) == words and (numbers == 0 or self._is_time(name))

    def _has_numbers(self, column: pl.Series) -> bool:
        plain = column[:_SAMPLE].str.replace(",", ".", literal=True)
        return plain.cast(pl.Float64, strict=False).count() > 0

    def _labels(self, pairs: set[str]) -> tuple[str, ...]:
        """Return the row labels: the first column if it is one, and more if it repeats."""
        sheet = self.sheet
        free = [name for name in self.free if name not in pairs]
        if len(free) < 2:
            return ()
        first = free[0]
        if not (sheet.format.header and self._is_label_name(first)) and not self._is_words(first):
            return ()
        keys = [first]
        for name in free[1:]:
            if not self.sheet.repeats(keys):
                return tuple(keys)
            if called.PART_OF_ROW.fullmatch(called.plain(name)) and (
                self._is_text(name) or self._is_time(name)
            ):
                keys.append(name)
        return (first,) if self.sheet.repeats(keys) else tuple(keys)

    def _is_label_name(self, name: str) -> bool:
        return not name.strip() or bool(called.ROW.fullmatch(called.plain(name)))

    def _is_words(self, name: str) -> bool:
        # Words, dates and codes make labels of a column; a few of them are slips of the pen.
        column = self.sheet.series(name)
        if column.dtype != pl.String:
            return not column.dtype.is_numeric()
        odd = len(parse_cells(column, self.style.decimal).bad)
        return odd > (len(column) - column.null_count()) / 2

    def _beside(self, role: str) -> dict[str, str]:
        """Map a column to the one beside it: ``iron`` to ``iron_qualifier``, and those said."""
        said = dict(getattr(self.asked, role))
        known = self._known
        found: dict[str, str] = {}
        for name in self.free:
            of = called.of_another(name, known, role)
            if of is not None and of != name:
                found[of] = name
        for of, name in said.items():
            found[of or self._before(name)] = name
        if role == "qualifier":
            found = dict(self._marks_of_the_one_before(found)) | found
        return found

    def _marks_of_the_one_before(self, found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield columns called ``qual`` and no more, each with the values before it."""
        for name in self.named(called.SURE_QUALIFIER, tuple(found.values())):
            before = self._before(name)
            if before in self.free and before != name and self._marks(name) is not None:
                yield before, name

    def _limits_rows(self, name: str) -> bool:
        """Tell a column with the limit of each row, as of tables with a line for each analyte."""
        if name not in self.free or not called.LIMIT_OF_ROW.fullmatch(called.plain(name)):
            return False
        parsed = parse_cells(
            self.sheet.series(name), self.style.decimal, thousands=self.style.thousands
        )
        return not parsed.bad.size and bool((parsed.lower == parsed.upper).any())

    def _before(self, name: str) -> str:
        """Return the column that a mark is of: by its name, or the one before it."""
        roles = ("qualifier", "limit")
        found = next(filter(None, (called.of_another(name, self._known, r) for r in roles)), None)
        at = self.sheet.header.index(name)
        return found or self.sheet.header[max(at - 1, 0)]


def _measured(names: list[str]) -> list[str]:
    """Return the columns of one measure of an export, ``LFQ intensity *``, if there are some."""
    groups: dict[str, list[str]] = {}
    for name in names:
        match = called.MEASURED.fullmatch(called.plain(name))
        groups.setdefault(match[1] if match else "", []).append(name)
    groups = {measure: some for measure, some in groups.items() if measure and len(some) > 2}
    return groups[max(groups, key=lambda measure: "lfq" in measure)] if groups else []


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")
