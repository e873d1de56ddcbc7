"""How a file was understood: which column is what, which lines were left out, and what was found.

The command, Python and the page all show this before anything else happens, and every part of it
can be said otherwise by the argument of `read_table` that has its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from declip.io.formats import Layout, TableFormat
from declip.io.problems import Problem, Spelling, in_python

__all__ = ["EXPORTS", "Asked", "Example", "ReadingPlan", "Roles", "Skipped"]

EXPORTS = {"wqp": "the Water Quality Portal", "olink": "Olink"}
_NAMED = 8  # columns that a sentence names


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a person said about a file; None or nothing where it is to be found."""

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    limit: Mapping[str, str] = field(default_factory=dict)
    qualifier: Mapping[str, str] = field(default_factory=dict)
    unit: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    skip: tuple[int, ...] | None = None
    side: str | None = None
    below_limit: str | None = None
    replicates: str | None = None

    def spread(self, header: Sequence[str]) -> Asked:
        """Return the answers with ``store,sku`` as two names, unless a column is called that."""
        lists = {
            name: tuple(part for given in getattr(self, name) for part in _parts(given, header))
            for name in ("rows", "columns", "values", "unit", "ignore", "covariates")
        }
        return replace(self, **lists)  # type: ignore[arg-type]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that are no part of the table."""
        return *self.ignore, *self.covariates, *self.groups


def _parts(name: str, header: Sequence[str]) -> list[str]:
    return [name] if name in header or "," not in name else name.split(",")


@dataclass(frozen=True)
class Skipped:
    """A line that is no part of the table, and is written back as it is.

    Attributes
    ----------
    line : int
        Line of the file, from 1.
    what : {"title", "comment", "units", "scale", "limits", "asked"}
        Why it was left out.
    text : str
        What it holds.
    """

    line: int
    what: str
    text: str


@dataclass(frozen=True)
class Example:
    """A line of the file beside what it was taken for."""

    place: str
    text: str
    understood: str


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What each column of a file is.

    Attributes
    ----------
    layout : {"wide", "long"}
        A line a row of the table, or a line a cell.
    rows, columns : tuple of str
        Headers of the columns that together name a row, and in a long table a column.
    values : tuple of str
        Headers of the values: one in a long table.
    limit, qualifier : dict
        Value column to the column that holds its limits, or its marks.
    unit : tuple of str
        Headers of the units of values, and of limits if these have their own.
    covariates, groups : tuple of str
        Headers of what is known of rows besides the table: features, and the one with groups.
    aside : tuple of str
        Headers of columns that are no part of the table; they are written back as they are.
    notes : tuple of Problem
        What else a person should know, and could say.
    """

    layout: Layout
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    limit: Mapping[str, str] = field(default_factory=dict)
    qualifier: Mapping[str, str] = field(default_factory=dict)
    unit: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    notes: tuple[Problem, ...] = ()

    def of(self, header: str) -> str:
        """Return the role of one column.

        It is row, column, value, limit, qualifier, unit, covariate, group or aside.
        """
        parts = {
            "row": self.rows,
            "column": self.columns,
            "value": self.values,
            "limit": self.limit.values(),
            "qualifier": self.qualifier.values(),
            "unit": self.unit,
            "covariate": self.covariates,
            "group": self.groups,
        }
        return next((role for role, names in parts.items() if header in names), "aside")


@dataclass(frozen=True, kw_only=True)
class ReadingPlan:
    r"""How a file was understood. `print` it for a paragraph in plain words.

    Attributes
    ----------
    format : TableFormat
        Kind, separator, signs of numbers, encoding, sheet.
    header : tuple of str
        All headers, in the order of the file.
    roles : Roles
        What each column is.
    asked : Asked
        What was said about it beforehand.
    preset : str or None
        The known export (``format=``) that it was read as.
    skipped : tuple of Skipped
        Lines that are no part of the table.
    sheets : tuple of str
        All sheets of an Excel file.
    units : dict
        Unit of a column of the table, where the file tells.
    side : {"below", "above"}
        On which side of their limits marked values lie, where the mark does not say.
    counts : dict
        "lines", "rows", "columns", and cells that are "exact", "below", "above", "ranges",
        "missing" (without a value), "absent" (no line speaks of them), and "kept_below" (values
        below their limits that count as they are).
    examples : tuple of Example
        Up to three lines with what they were taken for.
    notes : tuple of Problem
        What looks odd, and what a person could say about it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from declip import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "metals.csv")
    ...     _ = path.write_text("site,analyte,result,limit\ns1,iron,,0.5\ns1,zinc,7,\n")
    ...     plan = read_table(path).plan
    >>> plan.roles.of("limit"), plan.counts["below"]
    ('limit', 1)
    >>> plan.as_options()["rows"]
    ['site']
    """

    format: TableFormat
    header: tuple[str, ...] = ()
    roles: Roles
    asked: Asked = Asked()
    preset: str | None = None
    skipped: tuple[Skipped, ...] = ()
    sheets: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    side: str = "below"
    counts: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    notes: tuple[Problem, ...] = ()

    def as_options(self) -> dict[str, Any]:
        """Return the arguments of `read_table` that give this reading without any guess."""
        form, roles, asked = self.format, self.roles, self.asked
        lists = ("rows", "columns", "values", "unit", "covariates")
        found: dict[str, Any] = {name: list(getattr(roles, name)) for name in lists}
        found |= {name: dict(getattr(roles, name)) for name in ("limit", "qualifier")}
        found |= {name: getattr(form, name) for name in _OF_FORMAT}
        found |= {f.name: getattr(asked, f.name) for f in fields(asked) if f.name in _OF_ASKED}
        found |= {"ignore": list(roles.aside) if roles.layout == "wide" else []}
        found |= {"groups": roles.groups[0] if roles.groups else None}
        skipped = [s.line for s in self.skipped if s.what != "limits"]
        found |= {"skip": skipped or None, "layout": roles.layout}
        found |= {"side": self.side if roles.limit or roles.qualifier else None}
        if form.kind != "csv":
            found |= {"separator": None, "encoding": None}
        return {name: value for name, value in found.items() if value not in (None, [], {}, (), "")}

    def said(self, spelling: Spelling) -> str:
        """Return the paragraph, with what could be said otherwise spelled as a surface does."""
        notes = [f"{note.said(spelling)}." for note in (*self.roles.notes, *self.notes)]
        return " ".join(sentence for sentence in (*_sentences(self), *notes) if sentence)

    def __str__(self) -> str:
        return self.said(in_python)


# What lines hold that are no part of the table.
_SKIPPED = {
    "title": "a title",
    "comment": "a comment",
    "units": "units",
    "scale": "the ends of the scale",
    "limits": "the limits of words such as ND",
    "asked": "nothing of the table",
}
_OF_FORMAT = ("separator", "decimal", "thousands", "encoding", "header", "sheet")
_OF_ASKED = ("missing", "marks", "below_limit", "replicates")


def _sentences(plan: ReadingPlan) -> list[str]:
    """Return the paragraph, sentence by sentence."""
    roles = plan.roles
    how = "one line for each cell" if roles.layout == "long" else "one line for each row"
    of = f" of the sheet {plan.format.sheet!r}" if plan.format.sheet else ""
    known = f" as an export of {EXPORTS[plan.preset]}" if plan.preset else ""
    long = roles.layout == "long"
    return [
        f"The file is read{known} with {how}{of}.",
        _keys("A row", roles.rows) if roles.rows else "Rows have no labels.",
        _keys("A column", roles.columns) if long else _values_of_wide(plan),
        f"Values are in {_names(roles.values)}{_in_units(plan)}." if long else "",
        _marks(plan),
        _signs(plan),
        *(_lines(plan, what) for what in _SKIPPED),
        _counted(plan.counts),
        _known(roles),
        f"Left aside, and written back as they are: {_names(roles.aside)}." if roles.aside else "",
    ]


def _known(roles: Roles) -> str:
    """Say which columns are known of the rows."""
    parts = [f"{_names(roles.covariates, 'and')} as features"] if roles.covariates else []
    parts += [f"{_names(roles.groups)} as groups"] if roles.groups else []
    return f"Known of the rows, and not restored: {', '.join(parts)}." if parts else ""


def _keys(what: str, names: tuple[str, ...]) -> str:
    together = " together" if len(names) > 1 else ""
    return f"{what} is named by {_names(names, 'and')}{together}."


def _values_of_wide(plan: ReadingPlan) -> str:
    n = len(plan.roles.values)
    if not plan.format.header:
        return f"It has {n} columns of values, without names."
    return f"{n} column{'s' * (n != 1)} hold{'s' * (n == 1)} values: {_names(plan.roles.values)}."


def _in_units(plan: ReadingPlan) -> str:
    if not plan.roles.unit:
        return ""
    some = _names(tuple(dict.fromkeys(plan.units.values())), quoted=False)
    return f", their units in {_names(plan.roles.unit, 'or')}" + (f" ({some})" if some else "")


def _marks(plan: ReadingPlan) -> str:
    roles, long = plan.roles, plan.roles.layout == "long"
    side = "below" if plan.side == "below" else "above"
    limit, mark = (tuple(dict.fromkeys(of.values())) for of in (roles.limit, roles.qualifier))
    if not (limit or mark):
        return ""
    at = f"the limit in {_names(limit, 'and')}" if limit else "the value that stands there"
    if mark:
        who = f"{_names(mark, 'and')} mark{'s' * (len(mark) == 1)} values beyond a limit"
        return f"{who}: {side} {at} where the mark itself does not say."
    empty = "without a value, or with one at its limit," if side == "below" else "at its limit"
    if plan.asked.below_limit == "censored":
        empty = "without a value, or with one at or below its limit,"
    return f"A {'line' if long else 'cell'} {empty} lies {side} {at}."


def _signs(plan: ReadingPlan) -> str:
    comma = plan.format.decimal == ","
    parts = ["a comma stands before fractions"] if comma else []
    if plan.format.thousands:
        parts.append(f"{plan.format.thousands!r} stands between thousands")
    return f"In numbers {' and '.join(parts)}." if parts else ""


def _lines(plan: ReadingPlan, what: str) -> str:
    lines = [skipped.line for skipped in plan.skipped if skipped.what == what]
    if not lines:
        return ""
    shown = ", ".join(map(str, lines[:_NAMED])) + (", ..." if len(lines) > _NAMED else "")
    one, unit = len(lines) == 1, "Row" if plan.format.kind == "excel" else "Line"
    return f"{unit}{'s' * (not one)} {shown} hold{'s' * one} {_SKIPPED[what]}."


def _counted(counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    words = {
        "exact": "exact",
        "below": "at most a limit",
        "above": "at least a limit",
        "ranges": "in a range",
        "missing": "without a value",
        "absent": "of which no line speaks",
    }
    cells = ", ".join(f"{counts[k]:,} {word}" for k, word in words.items() if counts.get(k))
    lines = f"{counts['lines']:,} line{'s' * (counts['lines'] != 1)}"
    rows, columns = (
        f"{counts[k + 's']:,} {k}{'s' * (counts[k + 's'] != 1)}" for k in ("row", "column")
    )
    return f"{lines} give{'s' * (counts['lines'] == 1)} {rows} and {columns}: {cells}."


def _quoted(name: str) -> str:
    return repr(" ".join(name.split())) if name.strip() else "a column without a name"


def _names(names: tuple[str, ...], last: str = "", quoted: bool = True) -> str:
    """Return names in quotation marks, with a word before the last; some of them if many."""
    some = [_quoted(name) if quoted else name for name in names[:_NAMED]]
    if len(names) > _NAMED:
        return ", ".join(some) + f" and {len(names) - _NAMED} more"
    if last and len(some) > 1:
        return ", ".join(some[:-1]) + f" {last} {some[-1]}"
    return ", ".join(some)
