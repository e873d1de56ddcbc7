"""Tables read from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from declip.io.arrays import read_arrays
from declip.io.assemble import assemble, bounds_of_cells
from declip.io.column_limits import limits_by_column
from declip.io.errors import TableFileError
from declip.io.formats import Layout, TableFile, TableFormat, kind_of
from declip.io.head import take_header, take_limits
from declip.io.known import known_of_rows
from declip.io.layouts import Listed, list_cells
from declip.io.limits import LimitsGiven
from declip.io.numbers import NumberStyle, find_style
from declip.io.plan import Asked
from declip.io.presets import with_preset
from declip.io.roles import find_roles
from declip.io.sheet import Sheet
from declip.io.sources import read_sheet
from declip.io.understand import filled_in, plan_of
from declip.io.words import SIDES

__all__ = ["listed_again", "read_table"]


def read_table(
    path: str | Path,
    *,
    ceiling: Any = None,
    floor: Any = None,
    limits: Any = None,
    format: str | None = None,
    layout: Layout | None = None,
    rows: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    values: str | Sequence[str] | None = None,
    limit: str | Mapping[str, str] | None = None,
    qualifier: str | Mapping[str, str] | None = None,
    unit: str | Sequence[str] | None = None,
    side: str | None = None,
    below_limit: str | None = None,
    replicates: str | None = None,
    ignore: str | Sequence[str] = (),
    covariates: str | Sequence[str] = (),
    groups: str | None = None,
    missing: str | Sequence[str] = (),
    marks: Mapping[str, str] | None = None,
    skip: Sequence[int] | None = None,
    header: bool | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> TableFile:
    r"""Read a table with clipped, censored and missing cells from a file.

    CSV, TSV and other separated text, Excel (.xlsx), Parquet, npz and
    MatrixMarket. Cells may be numbers, limits (``<0.5``, ``> 200``), ranges (``0.1-0.5``), numbers
    with a mark (``0.05 U``), words for a value beyond the limit of its column (``ND``, ``BDL``,
    ``>ULOQ``) and words for missing (empty, ``NA``, ``-``). What is None below is found in the
    file; ``plan`` of the result says how it was understood.

    Parameters
    ----------
    path : str or Path
        The file; the end of its name says its kind.
    ceiling, floor : None, number, array-like or mapping
        Limits of the table or of its columns. A value at its limit is clipped, a value beyond it is
        an error, and words such as ``ND`` stand for them.
    limits : path or mapping, optional
        Limits of single columns: a file (see `read_limits`), or ``{column: (floor, ceiling)}``.
    format : {"wqp", "olink"}, optional
        An export whose columns are known: Water Quality Portal, Olink.
    layout : {"wide", "long"}, optional
        One line a row of the table, or one line a cell (row, column, value).
    rows : str or sequence of str, optional
        Headers of the columns that together name a row.
    columns : str or sequence of str, optional
        Headers of the columns of a long table that together name a column.
    values : str or sequence of str, optional
        Header of the values of a long table; headers or patterns (``"Intensity *"``) of those of a
        wide one.
    limit, qualifier : str or mapping, optional
        Headers of the columns with the limit of a cell, and with ``<``, ``U``, ``TRUE`` or the like
        where its value lies beyond. In a wide table ``{"iron": "iron_flag"}``.
    unit : str or sequence of str, optional
        Header of the units of a long table, and of those of limits if they have their own.
    side : {"below", "above"}, optional
        On which side of its limit a marked value lies, where the mark does not say it.
    below_limit : {"value", "censored"}, optional
        Whether a value below its limit that nothing marks counts as it is, or as censored.
    replicates : {"mean", "separate"}, optional
        What becomes of cells that a long table gives several times; an error by default.
    ignore : sequence of str
        Headers of columns that are no part of the table.
    covariates : sequence of str
        Headers of columns that are known of each row and not restored, numbers or categories.
    groups : str, optional
        Header of the column that names plates, batches or conditions.
    missing : sequence of str
        Further words for missing, such as ``-999``.
    marks : mapping, optional
        What further words and marks mean: ``{"B": "exact", "trace": "below"}``, or "above",
        "missing"; ``"()"`` is a number in parentheses.
    skip : sequence of int, optional
        Lines that are no part of the table, from 1; titles, comments and units are found.
    header : bool, optional
        Whether the first line holds names.
    separator, decimal, thousands, encoding : str, optional
        Of a text file.
    sheet : str, optional
        Of an Excel file; by default the first with numbers in two columns or more.

    Returns
    -------
    TableFile
        The cells (``intervals``) with labels, the form of the file (``format``), and how it was
        understood (``plan``); `write_table` gives its lines back. ``known`` are covariates and
        groups as arguments of `declip.restore`.

    Raises
    ------
    TableFileError
        If the file cannot be read; one line that names the file, the line and the column, and all
        that is wrong in ``problems``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from declip import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "assay.csv")
    ...     _ = path.write_text("sample,iron,zinc\ns1,<0.05,12\ns2,0.3,>40\ns3,NA,ND\n")
    ...     assay = read_table(path, floor={"zinc": 0.2})
    >>> assay
    TableFile(assay.csv, wide csv, Intervals(3 x 2, 5 observed: 2 exact, 1 at or above a ceiling,
    2 at or below a floor, 0 in a range))
    >>> assay.intervals.col_labels
    array(['iron', 'zinc'], dtype=object)
    """
    given = {name: x for name, x in locals().items() if name != "path" and _is_said(x)}
    path = Path(path)
    kind = kind_of(path)
    asked = Asked(
        rows=_names(rows),
        columns=_names(columns),
        values=_names(values),
        limit=_pairs(limit),
        qualifier=_pairs(qualifier),
        unit=_names(unit),
        ignore=_names(ignore),
        covariates=_names(covariates),
        groups=_names(groups),
        missing=_names(missing),
        marks=_meanings(path, marks),
        skip=None if skip is None else tuple(skip),
        side=_choice(path, "side", side, ("below", "above")),
        below_limit=_choice(path, "below_limit", below_limit, ("value", "censored")),
        replicates=_choice(path, "replicates", replicates, ("mean", "separate")),
    )
    wanted = TableFormat(
        kind, layout, separator, decimal, encoding, "\n", header, sheet, thousands=thousands or ""
    )
    ends = LimitsGiven(ceiling, floor, limits_by_column(limits))
    if kind in ("npz", "mtx"):
        for name in asked.left_out:
            raise TableFileError(path, f"it has no lines, and so no column {name!r}")
        return replace(_from_arrays(path, wanted, ends), arguments=given)
    found = read_sheet(path, wanted, asked.skip)
    return replace(_from_sheet(found, asked, ends, format), arguments=given)


def _is_said(argument: Any) -> bool:
    return argument is not None and not (isinstance(argument, tuple) and not argument)


def _from_sheet(found: Sheet, asked: Asked, limits: LimitsGiven, preset: str | None) -> TableFile:
    """Understand a sheet, then read its cells; all that is wrong is reported at once."""
    named = found if found.header else take_header(found, asked.skip)
    asked = with_preset(named, asked.spread(named.header), preset)
    named, style = _settle_numbers(named)
    roles = find_roles(named, asked, style)
    named, of_words = take_limits(named, roles, style)
    plan = plan_of(named, roles, asked, preset)
    try:
        listed = list_cells(named, roles, asked)
        bounds = bounds_of_cells(listed, limits.or_else(of_words), asked, style, plan.side)
        if bounds.problems:
            first, *more = bounds.problems
            raise TableFileError(named.path, first, more=more)
        plan = filled_in(plan, listed, bounds)
        intervals = assemble(listed, bounds.parsed, limits, asked)
    except TableFileError as error:
        error.plan = plan
        raise
    known = known_of_rows(listed, asked)
    return TableFile(named.path, intervals, plan.format, plan, named.checksum, known=known)


def listed_again(table: TableFile) -> Listed:
    """Read the lines of a file again as they were read, if it is still the same."""
    plan, path = table.plan, table.path
    assert plan is not None
    changed = "it has changed since it was read, so that its lines cannot be given back"
    found = read_sheet(path, table.format, plan.asked.skip)
    if found.checksum != table.checksum:
        raise TableFileError(path, changed)
    named = found if found.header else take_header(found, plan.asked.skip)
    style = NumberStyle(table.format.decimal or ".", table.format.thousands)
    named, _ = take_limits(named, plan.roles, style)
    return list_cells(named, plan.roles, plan.asked)


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _pairs(given: str | Mapping[str, str] | None) -> dict[str, str]:
    """Return value column to the one beside it; no value column where there is but one."""
    return {} if given is None else {"": given} if isinstance(given, str) else dict(given)


def _meanings(path: Path, marks: Mapping[str, str] | None) -> dict[str, str]:
    for mark, meaning in (marks or {}).items():
        _choice(path, f"the meaning of {mark!r}", meaning, tuple(SIDES))
    return dict(marks or {})


def _choice(path: Path, name: str, given: str | None, known: tuple[str, ...]) -> str | None:
    if given is not None and given not in known:
        some = " or ".join(map(repr, known))
        raise TableFileError(path, f"{name} must be {some}; got {given!r}")
    return given


def _from_arrays(path: Path, wanted: TableFormat, limits: LimitsGiven) -> TableFile:
    if not path.is_file():
        raise TableFileError(path, "there is no such file")
    sides = (limits.of(side, None) for side in ("ceiling", "floor"))
    intervals, stored = read_arrays(path, wanted.kind, *sides)
    return TableFile(path, intervals, replace(wanted, layout="long" if stored else "wide"))


def _settle_numbers(sheet: Sheet) -> tuple[Sheet, NumberStyle]:
    """Find the signs of numbers, unless they are given; report what is unclear with its cells."""
    form = sheet.format
    if form.decimal is not None:
        if form.decimal not in (".", ","):
            sheet.fail(f"the decimal sign must be '.' or ','; got {form.decimal!r}")
        return sheet, NumberStyle(form.decimal, form.thousands)
    if form.thousands:
        decimal = "," if form.thousands == "." else "."
        style = NumberStyle(decimal, form.thousands)
    elif form.kind == "parquet":
        style = NumberStyle()
    else:
        commas = form.kind == "csv" and form.separator != ","
        style = find_style(sheet.frame, commas)
    done = replace(form, decimal=style.decimal, thousands=style.thousands)
    return replace(sheet, format=done), style
