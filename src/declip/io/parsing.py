"""Cells as text turned into intervals, many at a time.

==============================  ===========================================
``12.5``, ``1e-3``              exact
``<0.5``, ``<= 0.5``, ``0.5 U`` at most 0.5
``> 200``, ``≥200``             at least 200
``0.1-0.5``, ``0.1 to 0.5``     in a range
``0.03 J``                      exact: an estimate of the laboratory
``ND (0.5)``, ``ND<0.5``        at most 0.5
``ND``, ``BDL``, ``<LOD``       below the floor of its column
``>ULOQ``, ``saturated``        above the ceiling of its column
empty, ``NA``, ``-``            missing
==============================  ===========================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.words import ABOVE, BELOW, GONE, MARKS, MISSING, QUALIFIERS, SIDES, folded

__all__ = ["Parsed", "mark_of", "parse_cells", "parse_qualifiers"]

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_BOUND = rf"^(<=|>=|=<|=>|<|>|≤|≥|=|)\s*({NUMBER})$"
_DASH = "-|\u2013|\u2014"
_RANGE = rf"^({NUMBER})\s*(?:{_DASH}|\.\.|to)\s*({NUMBER})$"
_POINT_NUMBER = r"^\s*[<>=≤≥]*\s*[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?\s*$"
# A number with a mark before it, behind it, or both; or in parentheses.
_MARKED = re.compile(
    rf"(?P<before>[<>]?(?:[^0-9().<>≤≥]|(?<=[A-Za-z])\.)*?)\s*(?P<open>\()?\s*(?P<sign>[<>≤≥]=?)?\s*(?P<number>{NUMBER})"
    rf"\s*(?P<close>\))?\s*(?P<after>[^0-9().<>≤≥]*|\([^0-9()<>≤≥]+\))"
)
_UNKNOWN = 9
_BELOW_SIGNS, _ABOVE_SIGNS = ["<", "<=", "=<", "≤"], [">", ">=", "=>", "≥"]


@dataclass(frozen=True, eq=False)
class Parsed:
    """Bounds of each cell, NaN if it is missing; word: -1 below its floor, 1 above its ceiling.

    A text that means nothing is in `bad`, by position.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    word: NDArray[np.int8]
    bad: NDArray[np.int64]


def parse_cells(
    text: pl.Series,
    decimal: str = ".",
    missing: Sequence[str] = (),
    marks: Mapping[str, str] | None = None,
    thousands: str = "",
) -> Parsed:
    """Read cells of text, or of numbers.

    Parameters
    ----------
    text : polars.Series
        Text or numbers; null is missing.
    decimal : {".", ","}
        Sign before the fraction.
    missing : sequence of str
        Further words for a missing cell, such as ``-999``.
    marks : mapping of str to {"below", "above", "exact", "missing"}
        What words, and marks beside numbers, mean beyond those that are known.
    thousands : str
        Sign between groups of three digits; empty for none.
    """
    if text.dtype != pl.String:
        return _numbers(text)
    if missing:
        gone = pl.col("text").str.strip_chars().is_in(list(missing))
        text = text.alias("text").to_frame().select(pl.when(~gone).then("text")).to_series()
    text, wrong = _plain_numbers(text, decimal, thousands)
    parsed = _numbers(text.cast(pl.Float64, strict=False))
    odd = (pl.Series(np.isnan(parsed.lower)) & text.is_not_null()).arg_true()
    bad = wrong.to_numpy().astype(np.int64)
    if len(odd):
        at = odd.to_numpy().astype(np.int64)
        rest = _parse_odd(text.gather(odd), marks or {})
        for whole, part in zip(_arrays(parsed), _arrays(rest), strict=True):
            whole[at] = part
        bad = np.union1d(bad, at[rest.bad])
    return Parsed(*_arrays(parsed), np.union1d(parsed.bad, bad))


def _plain_numbers(text: pl.Series, decimal: str, thousands: str) -> tuple[pl.Series, pl.Series]:
    """Return texts with a point before fractions and no sign between thousands; and the wrong."""
    if thousands:
        sign, point = re.escape(thousands), re.escape(decimal)
        grouped = rf"^(\D*[0-9]{{1,3}})((?:{sign}[0-9]{{3}})+)((?:{point}[0-9]+)?[^0-9]*)$"
        parts = pl.col("text").str.extract_groups(grouped)
        joined = parts.struct[0] + parts.struct[1].str.replace_all(thousands, "", literal=True)
        whole = pl.coalesce(joined + parts.struct[2], "text")
        text = text.alias("text").to_frame().select(whole).to_series()
    if decimal == ".":
        return text, pl.Series([], dtype=pl.UInt32)
    # 1.234 would be a thousand and more here: refused, not guessed.
    pointed = text.str.contains(_POINT_NUMBER).fill_null(False).arg_true()
    return text.str.replace_all(",", ".", literal=True), pointed


def _arrays(parsed: Parsed) -> tuple[NDArray, NDArray, NDArray]:
    return parsed.lower, parsed.upper, parsed.word


def _numbers(values: pl.Series) -> Parsed:
    lower = np.array(values.cast(pl.Float64).to_numpy())
    infinite = np.flatnonzero(np.isinf(lower))
    return Parsed(lower, lower.copy(), np.zeros(len(lower), np.int8), infinite)


def _parse_odd(text: pl.Series, marks: Mapping[str, str]) -> Parsed:
    """Read what is not a plain number: limits, ranges, words, numbers with marks."""
    clean = (
        pl.col("text").str.replace_all("\u2212", "-", literal=True).str.strip_chars(" \t\r\n\u00a0")
    )
    word = clean.str.to_lowercase().str.replace_all(r"\s", "")
    bound, span = clean.str.extract_groups(_BOUND), clean.str.extract_groups(_RANGE)
    below, above, none = _with_marks(marks)
    frame = (
        text.alias("text")
        .to_frame()
        .select(
            clean.alias("clean"),
            sign=bound.struct[0],
            bound=bound.struct[1].cast(pl.Float64, strict=False),
            low=span.struct[0].cast(pl.Float64, strict=False),
            high=span.struct[1].cast(pl.Float64, strict=False),
            word=pl.when(word.is_in(below))
            .then(-1)
            .when(word.is_in(above))
            .then(1)
            .otherwise(0)
            .cast(pl.Int8),
            missing=word.is_in(none),
        )
    )
    ends = frame.select(
        lower=pl.when(pl.col("sign").is_in(_BELOW_SIGNS))
        .then(-np.inf)
        .otherwise(pl.coalesce("bound", "low")),
        upper=pl.when(pl.col("sign").is_in(_ABOVE_SIGNS))
        .then(np.inf)
        .otherwise(pl.coalesce("bound", "high")),
    )
    lower, upper = (np.array(ends[name].to_numpy()) for name in ("lower", "upper"))
    words = np.array(frame["word"].to_numpy())
    known = ~np.isnan(lower) | (words != 0) | frame["missing"].to_numpy()
    marked = np.flatnonzero(~known)
    if marked.size:
        found = _parse_marked(frame["clean"].gather(marked), marks)
        lower[marked], upper[marked], known[marked] = found.T
    given = frame.select(pl.coalesce("bound", "low")).to_series().to_numpy()
    backwards = np.isinf(given) | (lower > upper) | np.isinf(frame["high"].to_numpy())
    backwards |= np.isinf(lower) & np.isinf(upper)
    return Parsed(lower, upper, words, np.flatnonzero(~known | backwards))


def _with_marks(marks: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Return the words for below, above and missing, with those that the user named."""
    sets: dict[str, set[str]] = {"below": set(BELOW), "above": set(ABOVE), "missing": set(MISSING)}
    for mark, meaning in marks.items():
        for name, words in sets.items():
            (words.add if name == meaning else words.discard)(folded(mark))
    return list(sets["below"]), list(sets["above"]), list(sets["missing"])


def _parse_marked(text: pl.Series, marks: Mapping[str, str]) -> NDArray:
    """Read numbers with marks, each different text once: lower, upper, and whether it is known."""
    sides = MARKS | {folded(mark): SIDES[side] for mark, side in marks.items()}
    found = {cell: _marked(cell, sides) for cell in text.unique().drop_nulls().to_list()}
    return np.array([found[cell] for cell in text.to_list()])


def _marked(cell: str, sides: Mapping[str, int]) -> tuple[float, float, bool]:
    match = _MARKED.fullmatch(cell)
    used = _marks_of(match)
    at = {sides.get(mark, _UNKNOWN) for mark in used} - {0}
    if match is None or not used or len(at) > 1 or _UNKNOWN in at:
        return np.nan, np.nan, False
    side, number = (at.pop() if at else 0), float(match["number"])
    if side == GONE:
        return np.nan, np.nan, True
    return (-np.inf if side < 0 else number), (np.inf if side > 0 else number), True


def _marks_of(match: re.Match | None) -> list[str]:
    """Return the marks of a number, folded; ``()`` for parentheses with no word before them."""
    if match is None or bool(match["open"]) != bool(match["close"]) or _is_torn(match):
        return []
    marks = [folded(match[name] or "") for name in ("before", "sign", "after")]
    if (marks[0] in ("<", ">") and marks[1]) or marks[2].startswith("="):
        return []
    alone = bool(match["open"]) and not marks[0]
    return [mark for mark in marks if mark] + ["()"] * alone


def _is_torn(match: re.Match) -> bool:
    """Tell what is left of a number that lost digits: ``e-3``, ``12e``; a letter marks none so."""
    letter = re.fullmatch(r"\s*[A-Za-z]\s*", match["before"])
    return bool(letter) or match.string[match.end("number") :][:1] in ("e", "E")


def mark_of(cell: str) -> tuple[str, str] | None:
    """Return the number of a cell, and the mark beside it that is not known, if that is all."""
    match = _MARKED.fullmatch(cell.strip())
    unknown = [mark for mark in _marks_of(match) if mark not in MARKS]
    if match is None or not unknown:
        return None
    if unknown[0] == "()":
        return match["number"], "()"
    plain = next(
        match[name].strip() for name in ("before", "after") if folded(match[name]) == unknown[0]
    )
    return match["number"], plain


def parse_qualifiers(text: pl.Series, marks: Mapping[str, str] | None = None) -> pl.Series:
    """Return what each qualifier says: -1, 0, 1, YES, NO or GONE; null if it is not known."""
    own = {folded(mark): SIDES[side] for mark, side in (marks or {}).items()}
    key = text.cast(pl.String).fill_null("").str.to_lowercase().str.replace_all(r"\s", "")
    return key.replace_strict(QUALIFIERS | own, default=None, return_dtype=pl.Int8)
