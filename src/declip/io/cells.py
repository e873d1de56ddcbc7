"""Cells as text turned into intervals, many at a time.

==========================  ===========================================
``12.5``, ``1e-3``          exact
``<0.5``, ``<= 0.5``        at most 0.5
``> 200``, ``≥200``         at least 200
``0.1-0.5``, ``0.1 to 0.5`` in a range
``ND``, ``BDL``, ``<LOD``   below the floor of its column
``>ULOQ``, ``saturated``    above the ceiling of its column
empty, ``NA``, ``-``        missing
==========================  ===========================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.errors import shown
from declip.io.words import ABOVE, BELOW, MISSING, QUALIFIERS

__all__ = ["Parsed", "find_decimal", "parse_cells", "parse_qualifiers", "why_not"]

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_BOUND = rf"^(<=|>=|=<|=>|<|>|≤|≥|=|)\s*({_NUMBER})$"
_DASH = "-|\u2013|\u2014"
_RANGE = rf"^({_NUMBER})\s*(?:{_DASH}|\.\.|to)\s*({_NUMBER})$"
_COMMA_NUMBER = r"^\s*[<>=≤≥]*\s*[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?\s*$"
_POINT_NUMBER = r"^\s*[<>=≤≥]*\s*[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?\s*$"
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


def parse_cells(text: pl.Series, decimal: str = ".", missing: Sequence[str] = ()) -> Parsed:
    """Read cells of text, or of numbers.

    Parameters
    ----------
    text : polars.Series
        Text or numbers; null is missing.
    decimal : {".", ","}
        Sign before the fraction.
    missing : sequence of str
        Further words for a missing cell, such as ``-999``.
    """
    if text.dtype != pl.String:
        return _numbers(text)
    if missing:
        gone = pl.col("text").str.strip_chars().is_in(list(missing))
        text = text.alias("text").to_frame().select(pl.when(~gone).then("text")).to_series()
    pointed = pl.Series([], dtype=pl.UInt32)
    if decimal == ",":
        # 1.234 would be a thousand and more here: refused, not guessed.
        pointed = text.str.contains(_POINT_NUMBER).fill_null(False).arg_true()
        text = text.str.replace_all(",", ".", literal=True)
    parsed = _numbers(text.cast(pl.Float64, strict=False))
    odd = (pl.Series(np.isnan(parsed.lower)) & text.is_not_null()).arg_true()
    bad = pointed.to_numpy().astype(np.int64)
    if len(odd):
        at = odd.to_numpy().astype(np.int64)
        rest = _parse_odd(text.gather(odd))
        for whole, part in zip(_arrays(parsed), _arrays(rest), strict=True):
            whole[at] = part
        bad = np.union1d(bad, at[rest.bad])
    return Parsed(*_arrays(parsed), np.union1d(parsed.bad, bad))


def _arrays(parsed: Parsed) -> tuple[NDArray, NDArray, NDArray]:
    return parsed.lower, parsed.upper, parsed.word


def _numbers(values: pl.Series) -> Parsed:
    lower = np.array(values.cast(pl.Float64).to_numpy())
    infinite = np.flatnonzero(np.isinf(lower))
    return Parsed(lower, lower.copy(), np.zeros(len(lower), np.int8), infinite)


def _parse_odd(text: pl.Series) -> Parsed:
    """Read what is not a plain number: limits, ranges, words."""
    clean = (
        pl.col("text").str.replace_all("\u2212", "-", literal=True).str.strip_chars(" \t\r\n\u00a0")
    )
    word = clean.str.to_lowercase().str.replace_all(r"\s", "")
    bound, span = clean.str.extract_groups(_BOUND), clean.str.extract_groups(_RANGE)
    frame = (
        text.alias("text")
        .to_frame()
        .select(
            sign=bound.struct[0],
            bound=bound.struct[1].cast(pl.Float64, strict=False),
            low=span.struct[0].cast(pl.Float64, strict=False),
            high=span.struct[1].cast(pl.Float64, strict=False),
            word=pl.when(word.is_in(list(BELOW)))
            .then(-1)
            .when(word.is_in(list(ABOVE)))
            .then(1)
            .otherwise(0)
            .cast(pl.Int8),
            missing=word.is_in(list(MISSING)),
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
    given = frame.select(pl.coalesce("bound", "low")).to_series().to_numpy()
    backwards = np.isinf(given) | (lower > upper) | np.isinf(frame["high"].to_numpy())
    return Parsed(lower, upper, words, np.flatnonzero(~known | backwards))


def parse_qualifiers(text: pl.Series) -> pl.Series:
    """Return the side of its limit for each qualifier: -1, 0 or 1, null if it is not known."""
    key = text.cast(pl.String).fill_null("").str.to_lowercase().str.replace_all(r"\s", "")
    return key.replace_strict(QUALIFIERS, default=None, return_dtype=pl.Int8)


def find_decimal(columns: Iterable[pl.Series]) -> str:
    """Return the decimal sign: a comma if some cells have one and none has a point."""
    texts = [column for column in columns if column.dtype == pl.String]
    commas = (column.str.contains(",", literal=True).any() for column in texts)
    if not any(commas) or not any(column.str.contains(_COMMA_NUMBER).any() for column in texts):
        return "."
    return "." if any(column.str.contains(_POINT_NUMBER).any() for column in texts) else ","


def why_not(cell: object, decimal: str) -> str:
    """Say why a cell cannot be read."""
    text = str(cell).strip()
    if decimal == "," and "." in text:
        return f"{shown(cell)} has a point in a table with decimal commas"
    if any(c.isdigit() for c in text) and "," in text:
        return (
            f"{shown(cell)} is not a number: give the decimal sign if the comma is one, "
            "and write thousands without a sign"
        )
    if text.strip("+-").lower() in ("inf", "infinity") or _overflows(text):
        return f"{shown(cell)} is not a finite number: write the limit, as in >200"
    return (
        f"{shown(cell)} is neither a number, a limit such as <0.5, nor a word for missing "
        "(ignore= leaves a column out, missing= takes a word for missing)"
    )


def _overflows(text: str) -> bool:
    try:
        return bool(np.isinf(float(text)))
    except ValueError:
        return False
