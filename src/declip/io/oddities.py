"""What can be read and may yet mean something else: reported with the reading, with remedies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.assemble import ParsedBounds
from declip.io.keys import as_times
from declip.io.layouts import Listed
from declip.io.names import MEASURED, SUMS, plain
from declip.io.problems import Problem, Remedy
from declip.io.sheet import Sheet
from declip.io.words import CODES, CODES_OF_ANSWERS

__all__ = ["odd_values"]

_FAR = 5.0  # times the largest other value: what lies there is a code
_LAST = 6  # rows at the end among which a sum may stand


def odd_values(listed: Listed, bounds: ParsedBounds) -> Iterator[Problem]:
    """Yield what a person should look at before the table is used."""
    if bounds.below_value:
        yield Problem(
            f"{bounds.below_value:,} values lie below their limit and count as they were measured",
            remedies=(Remedy("below_limit", "censored", "takes them as below it"),),
        )
    parsed = bounds.parsed
    exact = np.flatnonzero(parsed.lower == parsed.upper)
    yield from _codes(parsed.lower[exact], listed.cols[exact])
    yield from _zeros(listed, parsed.lower[exact])
    yield from _sums(listed)
    yield from _lines_of_cells(listed)
    yield from _same_but_for_blanks("rows", listed.row_labels)
    yield from _same_but_for_blanks("columns", listed.col_labels)


def _same_but_for_blanks(what: str, labels: NDArray | None) -> Iterator[Problem]:
    """Yield two labels that look the same."""
    seen: dict[str, str] = {}
    for label in () if labels is None else labels.tolist():
        if isinstance(label, str):
            other = seen.setdefault(" ".join(label.split()), label)
            if other != label:
                yield Problem(f"the {what} {other!r} and {label!r} differ in blanks alone")
                return


def _codes(values: NDArray, cols: NDArray) -> Iterator[Problem]:
    """Yield numbers such as -999 that lie far from all others of their columns."""
    coded = np.isin(values, (*CODES, *CODES_OF_ANSWERS))
    for code in np.unique(values[coded]).tolist():
        at = values == code
        others = values[~coded & np.isin(cols, cols[at])]
        far = others.size and (others.min() >= 0 if code < 0 else others.max() < code / _FAR)
        if far and (code in CODES or np.all(others == np.rint(others))):
            n = int(at.sum())
            cells = f"{n:,} cells hold" if n > 1 else "1 cell holds"
            remedy = Remedy("missing", f"{code:g}", "if it stands for a missing value")
            yield Problem(f"{cells} {code:g}, far from all others", remedies=(remedy,))


def _zeros(listed: Listed, values: NDArray) -> Iterator[Problem]:
    """Yield zeros of intensities: exports write them where nothing was found."""
    measured = all(MEASURED.fullmatch(plain(name)) for name in listed.roles.values)
    n = int((values == 0).sum())
    if n and measured and values.min() >= 0:
        remedy = Remedy("missing", "0", "if nothing was found there")
        yield Problem(f"{n:,} intensities are 0", remedies=(remedy,))


def _lines_of_cells(listed: Listed) -> Iterator[Problem]:
    """Yield rows of one label that a column of words, left aside, tells apart: cells, not rows."""
    sheet, roles = listed.sheet, listed.roles
    if roles.layout != "wide" or listed.row_labels is None or not roles.aside:
        return
    n, dates = sheet.frame.height, [x for x in roles.aside if _is_time(sheet, x)]
    if not sheet.repeats(roles.rows):
        return
    for name in (x for x in roles.aside if x not in dates):
        words = sheet.series(name).dtype == pl.String and sheet.repeats([name])
        if words and not sheet.repeats([*roles.rows, *dates, name]):
            rows = ",".join([*roles.rows, *dates])
            remedy = Remedy("columns", name, f"if each line is one cell, of the row {rows}")
            what = f"Of {n:,} lines several have one label, and {name!r} tells them apart"
            yield Problem(what, remedies=(remedy,))
            return
    if any(_is_time(sheet, name) for name in roles.rows):
        remedies = tuple(Remedy(name, "...") for name in ("rows", "columns", "values"))
        what = f"Of {n:,} lines several have one date, as where each line is one cell"
        yield Problem(f"{what}; then name the columns of that", remedies=remedies)


def _is_time(sheet: Sheet, name: str) -> bool:
    return as_times(sheet.series(name), plain(name)) is not None


def _sums(listed: Listed) -> Iterator[Problem]:
    """Yield rows at the end that are called by what they sum up."""
    if listed.roles.layout != "wide" or listed.row_labels is None:
        return
    n, sheet = len(listed.row_labels), listed.sheet
    for k in range(max(0, n - _LAST), n):
        name = str(listed.row_labels[k])
        if SUMS.fullmatch(plain(name)):
            lines = sorted([*(skipped.line for skipped in sheet.skipped), int(sheet.lines[k])])
            remedy = Remedy("skip", ",".join(map(str, lines)), "if it sums up the others")
            where = f"{sheet.unit.capitalize()} {sheet.lines[k]}"
            yield Problem(f"{where} is named {name!r}", remedies=(remedy,))
