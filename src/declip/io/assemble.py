"""A list of cells as text turned into intervals, with the limits of the table applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.cells import Cells
from declip.censoring import left_censored, right_censored
from declip.intervals import Intervals
from declip.io.errors import TableFileError, shown
from declip.io.layouts import Listed
from declip.io.limits import LimitsGiven, apply_given
from declip.io.names import DETECTED, plain
from declip.io.numbers import NumberStyle, why_not
from declip.io.parsing import Parsed, parse_cells, parse_qualifiers
from declip.io.plan import Asked
from declip.io.problems import Problem, Remedy
from declip.io.units import unit_problems
from declip.io.words import EMPTY, GONE, NO, YES
from declip.validation import Triplets, resolve_limit
from declip.validation.triplets import LARGEST, sort_cells

__all__ = ["ParsedBounds", "assemble", "bounds_of_cells"]

_MOST_KINDS = 20  # kinds of text that cannot be read, of one column
_MOST_CELLS = 20_000  # of such cells that are looked at
_MOST_LINES = 50  # of such lines that may be no part of the table
# answers that hold everywhere
_OF_ALL_COLUMNS = ("marks", "missing", "thousands", "decimal", "skip")


@dataclass(frozen=True, eq=False)
class ParsedBounds:
    """What is known of each listed cell, and all that is wrong with them.

    Attributes
    ----------
    parsed : Parsed
        Bounds, NaN where missing.
    problems : list of Problem
        By column, in the order of the file.
    below_value : int
        Number of values below their limits that were kept as they are.
    """

    parsed: Parsed
    problems: list[Problem]
    below_value: int = 0


def bounds_of_cells(
    listed: Listed, limits: LimitsGiven, asked: Asked, style: NumberStyle, side: str
) -> ParsedBounds:
    """Read the cells with their marks and limits; what is wrong is collected, not raised."""
    parsed = parse_cells(listed.text, style.decimal, asked.missing, asked.marks, style.thousands)
    marked = _Marked(listed, asked, style, side)
    of_marks = list(marked.problems(parsed))
    problems = [*_bad_cells(listed, parsed, style), *of_marks]
    kept = 0
    if not of_marks:
        kept = marked.apply(parsed)
        parsed.word[parsed.bad] = 0  # they are among the problems
        problems += _resolve_words(listed, parsed, limits)
        problems += _sizes(listed, parsed)
        problems += unit_problems(listed, parsed)
        problems += _repeated(listed, parsed, asked)
    order = {name: j for j, name in enumerate(listed.sheet.header)}
    problems.sort(key=lambda p: order.get(p.column or "", -1))
    return ParsedBounds(parsed, _merged(problems), kept)


def _merged(problems: list[Problem]) -> list[Problem]:
    """Return problems of several columns that one answer solves as one, at the first column."""
    groups: dict[Any, list[Problem]] = {}
    for problem in problems:
        answer = [(r.option, r.value) for r in problem.remedies if r.option in _OF_ALL_COLUMNS]
        groups.setdefault(tuple(answer) or id(problem), []).append(problem)
    return [_joined(some) if len(some) > 1 else some[0] for some in groups.values()]


def _joined(problems: list[Problem]) -> Problem:
    first, count = problems[0], sum(problem.count for problem in problems)
    n = len({problem.column for problem in problems}) - 1
    also = f" (and in {n} more column{'s' * (n > 1)})" if n else ""
    return replace(first, what=f"{first.what}{also}", count=count)


def assemble(listed: Listed, parsed: Parsed, limits: LimitsGiven, asked: Asked) -> Intervals:
    """Return the observed cells as intervals, in row-major order, with the labels of the sheet."""
    if np.isnan(parsed.lower).all():
        listed.sheet.fail("the table has no observed cell: all are missing")
    rows, cols, lower, upper = _sorted(listed, parsed, asked)
    apply_given(listed, limits, rows, cols, lower, upper)
    by_row = Cells.from_sorted(listed.shape[0], rows, cols, lower, upper)
    whole = Intervals(listed.shape, by_row, listed.row_labels, listed.col_labels)
    return whole.astype(np.float32) if listed.text.dtype == pl.Float32 else whole


def _bad_cells(listed: Listed, parsed: Parsed, style: NumberStyle) -> Iterator[Problem]:
    """Yield one problem for each kind of text of each column that cannot be read."""
    seen: dict[tuple[int, str], list[int]] = {}
    alone = _no_lines_of_values(listed, parsed)
    for k in parsed.bad[:_MOST_CELLS].tolist():
        row, column = listed.place(k)
        if row in alone:
            continue
        kind = why_not(listed.text[k], style)
        alike = kind.what.removeprefix(shown(listed.text[k]))
        key = kind.remedies[0].value if kind.remedies else alike
        if (column, key) in seen or sum(c == column for c, _ in seen) < _MOST_KINDS:
            seen.setdefault((column, key), []).append(k)
    for (column, _), cells in seen.items():
        first = listed.first(np.array(cells))
        reason = why_not(listed.text[first], style)
        name = listed.sheet.header[column]
        yield _with_column_remedies(listed.problem(np.array(cells), reason), listed, name, parsed)
    for row, words in alone.items():
        yield listed.problem(words, _left_out(listed, row, listed.text[listed.first(words)]))


def _no_lines_of_values(listed: Listed, parsed: Parsed) -> dict[int, NDArray]:
    """Return lines of a wide table of which nothing can be read, with the cells that hold words."""
    if listed.line is None or not parsed.bad.size:
        return {}
    rows = np.unique(listed.line[parsed.bad[:_MOST_CELLS]])[:_MOST_LINES]
    cells = {int(row): np.flatnonzero(listed.line == row) for row in rows}
    bad = {row: np.intersect1d(some, parsed.bad) for row, some in cells.items()}
    return {
        row: bad[row]
        for row, some in cells.items()
        if len(bad[row]) > 1 and np.isnan(parsed.lower[some]).all() and not parsed.word[some].any()
    }


def _left_out(listed: Listed, row: int, text: Any) -> Problem:
    sheet = listed.sheet
    lines = sorted([*(s.line for s in sheet.skipped), int(sheet.lines[row])])
    remedy = Remedy("skip", ",".join(map(str, lines)), "if it is no part of the table")
    what = f"the {sheet.unit} holds {shown(text)} and other words, and no number"
    return Problem(what, remedies=(remedy,))


def _with_column_remedies(problem: Problem, listed: Listed, name: str, parsed: Parsed) -> Problem:
    """Add what could be said of the column as a whole, if no cell of it can be read."""
    cells = np.arange(len(listed.text))
    if listed.roles.layout == "wide":
        cells = cells[listed.cols == listed.roles.values.index(name)]
    read = ~np.isnan(parsed.lower[cells]) | (parsed.word[cells] != 0)
    if read.any():
        return problem
    texts = {str(t).strip().lower() for t in listed.text.gather(cells).drop_nulls().unique()[:9]}
    if texts <= {"true", "false", "yes", "no", "t", "f", "y", "n"}:
        remedies = (
            Remedy("qualifier", name, "if it marks values beyond a limit"),
            Remedy("ignore", name, "if it says nothing about the values"),
        )
        return replace(
            problem, what=f"the column holds {' and '.join(sorted(texts))}", remedies=remedies
        )
    if not problem.remedies:
        only = Remedy("ignore", name, "if it says nothing about the values")
        return replace(problem, remedies=(only,))
    return problem


@dataclass(frozen=True)
class _Marked:
    """The columns of qualifiers and limits, applied to the cells that they stand beside."""

    listed: Listed
    asked: Asked
    style: NumberStyle
    side: str

    @property
    def sign(self) -> int:
        """Side of a limit whose mark does not say it."""
        return 1 if self.side == "above" else -1

    def problems(self, parsed: Parsed) -> Iterator[Problem]:
        """Yield what is wrong with the marks, the limits, or both together with the values."""
        listed, qualifier = self.listed, self.listed.qualifier
        limit = self._limits()
        if limit is not None:
            wrong = np.union1d(
                limit.bad, np.flatnonzero((limit.lower < limit.upper) | (limit.word != 0))
            )
            if wrong.size:
                yield self._no_limit(wrong)
        if qualifier is None:
            return
        sides = parse_qualifiers(qualifier, self.asked.marks)
        strange = sides.is_null().arg_true().to_numpy()
        for word in list(dict.fromkeys(qualifier.gather(strange).to_list()))[:_MOST_KINDS]:
            cells = strange[(qualifier.gather(strange) == word).to_numpy()]
            yield listed.problem(cells, _unknown_mark(word))
        yield from self._disagreements(parsed)

    def _no_limit(self, cells: NDArray) -> Problem:
        """Return what is wrong with limits that are no numbers, in the column where they stand."""
        listed, limits = self.listed, self.listed.limit
        first = listed.first(cells)
        text = None if limits is None else limits[first]
        unclear = self.style.unclear and "," in str(text)
        what = f"the limit {shown(text)} is not a number"
        problem = listed.problem(cells, why_not(text, self.style) if unclear else what)
        return replace(
            problem, column=listed.roles.limit[listed.sheet.header[listed.place(first)[1]]]
        )

    def _disagreements(self, parsed: Parsed) -> Iterator[Problem]:
        own, side = _own_side(parsed), self._sides()
        clear = np.isin(side, (-1, 1))
        against = np.flatnonzero(clear & (own == -side))
        if against.size:
            yield self.listed.problem(
                against, "the cell and its qualifier point to different sides"
            )
        ranged = np.flatnonzero(clear & (own == 0) & (parsed.lower < parsed.upper))
        if ranged.size:
            yield self.listed.problem(ranged, "a range with a qualifier: keep one of the two")

    def _limits(self) -> Parsed | None:
        if self.listed.limit is None:
            return None
        return parse_cells(
            self.listed.limit, self.style.decimal, self.asked.missing, None, self.style.thousands
        )

    def _sides(self) -> NDArray:
        """Return what the mark beside each cell says: -1, 0, 1 or GONE."""
        if self.listed.qualifier is None:
            return np.zeros(len(self.listed.text), np.int8)
        sides = parse_qualifiers(self.listed.qualifier, self.asked.marks).fill_null(0).to_numpy()
        name = next(iter(self.listed.roles.qualifier.values()), "")
        detected = bool(DETECTED.fullmatch(plain(name)))
        yes, no = (0, -1) if detected else (self.sign, 0)
        return np.where(sides == YES, yes, np.where(sides == NO, no, sides)).astype(np.int8)

    def apply(self, parsed: Parsed) -> int:
        """Open the cells that lie beyond a limit; return how many values below one were kept."""
        sides, limits = self._sides(), self._limits()
        limit = None if limits is None else limits.lower
        gone = sides == GONE
        parsed.lower[gone] = parsed.upper[gone] = np.nan
        _move(parsed, np.where(gone, 0, sides), limit)
        if limit is None:
            return 0
        self._words_at(parsed, limit)
        return self._beside_limit(parsed, limit, sides)

    def _words_at(self, parsed: Parsed, limit: NDArray) -> None:
        """Put the limit beside it in place of a word such as ND."""
        for sign, end, other in ((-1, parsed.upper, parsed.lower), (1, parsed.lower, parsed.upper)):
            cells = ~np.isnan(limit) & (parsed.word == sign)
            end[cells], other[cells] = limit[cells], sign * np.inf
            parsed.word[cells] = 0

    def _beside_limit(self, parsed: Parsed, limit: NDArray, sides: NDArray) -> int:
        """Open cells without a value, and values at their limits, where no mark speaks of them."""
        exact = parsed.lower == parsed.upper
        with np.errstate(invalid="ignore"):
            beyond = exact & (self.sign * (parsed.lower - limit) > 0)
            at = exact & (parsed.lower == limit)
        if not np.isin(sides, (-1, 1)).any():
            opened = at
            if self.sign < 0:
                opened = at | (self._blank() & np.isnan(parsed.lower) & ~np.isnan(limit))
            self._open(parsed, opened, limit)
        if self.asked.below_limit == "censored" and self.sign < 0:
            self._open(parsed, beyond, limit)
            beyond = np.zeros(0, bool)
        return int(beyond.sum()) if self.sign < 0 else 0

    def _open(self, parsed: Parsed, cells: NDArray, limit: NDArray) -> None:
        end, other = (parsed.upper, parsed.lower)[:: -self.sign]
        end[cells], other[cells] = limit[cells], self.sign * np.inf
        parsed.word[cells] = 0

    def _blank(self) -> NDArray:
        """Tell cells that hold nothing from those that say that nothing was measured."""
        text = self.listed.text
        if text.dtype != pl.String:
            return np.isnan(text.cast(pl.Float64).fill_null(np.nan).to_numpy())
        said = [word.lower() for word in self.asked.missing]
        key = text.fill_null("").str.to_lowercase().str.replace_all(r"\s", "")
        return key.is_in([word for word in EMPTY if word not in said]).to_numpy()


def _unknown_mark(word: Any) -> Problem:
    return Problem(
        f"the qualifier {shown(word)} is not known",
        remedies=(
            Remedy("marks", f"{word}=exact", "if the value stands"),
            Remedy("marks", f"{word}=below", "if it lies below its limit"),
            Remedy("marks", f"{word}=above", "if it lies above it"),
            Remedy("marks", f"{word}=missing", "if it does not count"),
        ),
    )


def _own_side(parsed: Parsed) -> NDArray:
    own = np.where(left_censored(parsed.lower), -1, np.where(right_censored(parsed.upper), 1, 0))
    return np.where(parsed.word != 0, parsed.word, own)


def _move(parsed: Parsed, side: NDArray, limit: NDArray | None) -> None:
    """Open the cells that a qualifier puts on one side: from their limit or their value on."""
    moved = (side != 0) & (_own_side(parsed) == 0)
    at = parsed.lower if limit is None else np.where(np.isnan(limit), parsed.lower, limit)
    at = at.copy()
    known = moved & ~np.isnan(at)
    below, above = known & (side < 0), known & (side > 0)
    parsed.lower[below], parsed.upper[below] = -np.inf, at[below]
    parsed.lower[above], parsed.upper[above] = at[above], np.inf
    parsed.word[moved & ~known] = side[moved & ~known]


def _resolve_words(listed: Listed, parsed: Parsed, limits: LimitsGiven) -> Iterator[Problem]:
    """Put the limit of its column in place of a word such as ND."""
    for sign, side in ((-1, "floor"), (1, "ceiling")):
        cells = np.flatnonzero(parsed.word == sign)
        if not cells.size:
            continue
        at = _limit_at(listed, cells, limits.of(side, listed.col_labels), side)
        unknown = cells[~np.isfinite(at)]
        for column in np.unique(listed.cols[unknown]):
            yield _needs_limit(listed, unknown[listed.cols[unknown] == column], side)
        ends = (parsed.lower, parsed.upper) if sign > 0 else (parsed.upper, parsed.lower)
        ends[0][cells], ends[1][cells] = at, sign * np.inf


def _needs_limit(listed: Listed, cells: NDArray, side: str) -> Problem:
    first = listed.first(cells)
    text = listed.text[first]
    mark = None if listed.qualifier is None else listed.qualifier[first]
    word = shown(text if text is not None else mark)
    name = "" if listed.col_labels is None else f"{listed.col_labels[listed.cols[first]]}="
    of = f" {name[:-1]!r}" if listed.roles.layout == "long" else ""
    remedies = [Remedy(side, f"{name}NUMBER"), Remedy("limits", "...", "for a file of limits")]
    if listed.limit is None and listed.roles.layout == "long":
        remedies.append(Remedy("limit", "...", "for a column of limits"))
    what = f"{word} needs the {side} of its column{of}"
    return listed.problem(cells, Problem(what, remedies=tuple(remedies)))


def _limit_at(listed: Listed, cells: NDArray, limit: Any, side: Any) -> NDArray:
    where = Triplets(
        listed.rows[cells],
        listed.cols[cells],
        np.zeros(len(cells)),
        listed.shape,
        listed.row_labels,
        listed.col_labels,
    )
    try:
        return np.broadcast_to(resolve_limit(limit, where, side).at(where), cells.shape)
    except (TypeError, ValueError) as error:
        raise TableFileError(listed.sheet.path, str(error)) from error


def _sizes(listed: Listed, parsed: Parsed) -> Iterator[Problem]:
    largest = LARGEST[np.dtype(np.float32 if listed.text.dtype == pl.Float32 else np.float64)]
    huge = [(np.abs(end) > largest) & np.isfinite(end) for end in (parsed.lower, parsed.upper)]
    cells = np.flatnonzero(huge[0] | huge[1])
    if cells.size:
        yield listed.problem(cells, f"the number is too large: it must lie within +-{largest:g}")


def _repeated(listed: Listed, parsed: Parsed, asked: Asked) -> Iterator[Problem]:
    """Yield the cells that the file gives more than once."""
    if asked.replicates == "mean" or listed.roles.layout == "wide":
        return
    seen = np.flatnonzero(~np.isnan(parsed.lower))
    keys = listed.rows[seen].astype(np.int64) * listed.shape[1] + listed.cols[seen]
    twice = pl.Series(keys).is_first_distinct().not_().arg_true().to_numpy()
    if not twice.size:
        return
    k = int(seen[twice[0]])
    earlier = seen[np.flatnonzero(keys == keys[twice[0]])[0]]
    row, column = listed.named(k)
    sheet = listed.sheet
    yield listed.problem(
        seen[twice],
        Problem(
            f"row {shown(row)}, column {shown(column)} was given before, at {sheet.unit} "
            f"{sheet.lines[int(earlier)]}",
            remedies=(
                Remedy("replicates", "mean", "takes their mean"),
                Remedy("replicates", "separate", "makes rows of them"),
                Remedy(
                    "rows",
                    ",".join([*listed.roles.rows, _telling(listed)]),
                    "names what tells them apart",
                ),
            ),
        ),
    )


def _telling(listed: Listed) -> str:
    """Return a column left aside that tells all lines apart and is not the number of a line."""
    sheet, keys = listed.sheet, [*listed.roles.rows, *listed.roles.columns]
    found = (n for n in listed.roles.aside if sheet.repeats([n]) and not sheet.repeats([*keys, n]))
    return next(found, "...")


def _sorted(
    listed: Listed, parsed: Parsed, asked: Asked
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return the observed cells in row-major order, the mean of those given several times."""
    seen = ~np.isnan(parsed.lower)
    at = slice(None) if seen.all() else seen
    rows, cols, lower, upper = (
        x[at] for x in (listed.rows, listed.cols, parsed.lower, parsed.upper)
    )
    if asked.replicates == "mean":
        frame = pl.DataFrame({"r": rows, "c": cols, "low": lower, "high": upper})
        means = frame.group_by("r", "c", maintain_order=True).mean()
        rows, cols, lower, upper = (np.array(means[name].to_numpy()) for name in means.columns)
    cells = sort_cells(rows, cols, lower, listed.shape, "cells")
    return cells.rows, cells.cols, cells.values, upper[cells.order]
