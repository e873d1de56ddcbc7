"""The sign before fractions and the sign between thousands, found in the numbers of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from declip.io.errors import shown
from declip.io.parsing import mark_of
from declip.io.problems import Problem, Remedy

__all__ = ["NumberStyle", "find_style", "why_not"]

_SIGNED = r"^\s*[<>=≤≥]*\s*[+-]?"
_GAPS = " '\u00a0\u202f\u2019"
_END = r"(?:[eE][+-]?[0-9]+)?\s*[A-Za-z]{0,2}\s*$"


@dataclass(frozen=True)
class NumberStyle:
    """How numbers are written: a sign before the fraction, and one between thousands or none.

    Attributes
    ----------
    unclear : str
        A number that could be read in two ways, if nothing in the file decides.
    """

    decimal: str = "."
    thousands: str = ""
    unclear: str = ""


@dataclass(frozen=True)
class _Uses:
    """What one sign is seen to do: set off fractions, set off thousands, or either of them."""

    fraction: bool
    thousands: bool
    either: str | None

    @classmethod
    def of(cls, sign: str, texts: list[pl.Series]) -> _Uses:
        mark, other = re.escape(sign), re.escape({".": ",", ",": "."}[sign])
        lead = r"[1-9][0-9]{0,2}"
        one = rf"{_SIGNED}{lead}{mark}[0-9]{{3}}{_END}"
        several = rf"{_SIGNED}{lead}(?:{mark}[0-9]{{3}}){{2,}}{_END}"
        split = rf"{_SIGNED}{lead}(?:{mark}[0-9]{{3}})+{other}[0-9]+{_END}"
        fraction = rf"{_SIGNED}(?:[0-9]{{1,3}}(?:{other}[0-9]{{3}})+|[0-9]*){mark}[0-9]+{_END}"
        seen = [
            column.filter(column.str.contains(sign, literal=True).fill_null(False))
            for column in texts
        ]
        seen = [column for column in seen if len(column)]
        as_fraction = any(
            (column.str.contains(fraction) & ~column.str.contains(one)).any() for column in seen
        )
        as_groups = any(
            (column.str.contains(several) | column.str.contains(split)).any() for column in seen
        )
        found = (column.filter(column.str.contains(one)) for column in seen)
        either = next((column[0] for column in found if len(column)), None)
        return cls(bool(as_fraction), bool(as_groups), either)


def find_style(columns: Iterable[pl.Series], commas: bool = True) -> NumberStyle:
    """Return how numbers are written; without ``commas`` none of them is before a fraction."""
    texts = [column for column in columns if column.dtype == pl.String]
    style = _points_and_commas(texts, commas)
    if style.thousands or style.unclear:
        return style
    return replace(style, thousands=_blank_between_thousands(texts, style.decimal))


def _blank_between_thousands(texts: list[pl.Series], decimal: str) -> str:
    """Return the blank or apostrophe of ``1 201,5``: the fraction shows that it is one number."""
    point = re.escape(decimal)
    grouped = (
        rf"{_SIGNED}[0-9]{{1,3}}([{_GAPS}])[0-9]{{3}}(?:[{_GAPS}][0-9]{{3}})*{point}[0-9]+{_END}"
    )
    found = (column.str.extract(grouped).drop_nulls() for column in texts)
    return next((column[0] for column in found if len(column)), "")


def _points_and_commas(texts: list[pl.Series], commas: bool) -> NumberStyle:
    comma = _Uses.of(",", texts)
    if not (comma.fraction or comma.thousands or comma.either):
        return NumberStyle()
    point = _Uses.of(".", texts)
    if comma.thousands and not comma.fraction and not point.thousands:
        return NumberStyle(".", ",")
    if comma.fraction and not point.fraction and commas:
        return NumberStyle(",", "." if point.thousands or point.either else "")
    if comma.fraction or not comma.either:
        return NumberStyle()
    if point.fraction:
        return NumberStyle(".", ",")
    return NumberStyle(unclear=comma.either.strip())


def why_not(cell: object, style: NumberStyle) -> Problem:
    """Say why a cell cannot be read, and what could be said about it."""
    text = str(cell).strip()
    if style.unclear and "," in text:
        plain = re.sub(r"[^0-9,]", "", text)
        return Problem(
            f"{shown(cell)} is {plain.replace(',', '')} or {plain.replace(',', '.')}",
            remedies=(
                Remedy("thousands", ",", "if the comma is between thousands"),
                Remedy("decimal", ",", "if it is before the fraction"),
            ),
        )
    if style.decimal == "," and "." in text:
        return Problem(
            f"{shown(cell)} has a point in a table with decimal commas",
            remedies=(Remedy("thousands", ".", "if it is between thousands"),),
        )
    if style.decimal != "," and re.search(r"[0-9]", text) and "," in text:
        return Problem(
            f"{shown(cell)} is not a number",
            remedies=(Remedy("decimal", ",", "if the comma is before the fraction"),),
        )
    if text.strip("+-").lower() in ("inf", "infinity") or _overflows(text):
        return Problem(f"{shown(cell)} is not a finite number: write the limit, as in >200")
    if any(sign.isdigit() and not sign.isascii() for sign in text):
        return Problem(f"{shown(cell)} has digits other than 0 to 9")
    return _strange(cell, text)


def _strange(cell: object, text: str) -> Problem:
    """Ask what a mark or a word means: it may well be a value that was not detected."""
    if re.fullmatch(rf"[+-]?[0-9]{{1,3}}([{_GAPS}][0-9]{{3}})+([.,][0-9]+)?", text):
        sign = re.sub(r"[0-9+-]", "", text)[0]
        when = "if this is one number"
        return Problem(
            f"{shown(cell)} is not a number", remedies=(Remedy("thousands", sign, when),)
        )
    marked = mark_of(text)
    if marked is not None:
        number, mark = marked
        named = "parentheses around it mean" if mark == "()" else f"{shown(mark)} beside it means"
        return Problem(
            f"{shown(cell)}: what {named} is not known",
            remedies=(
                Remedy("marks", f"{mark}=exact", f"if it is {number}"),
                Remedy("marks", f"{mark}=below", f"if it is at most {number}"),
                Remedy("marks", f"{mark}=above", f"if it is at least {number}"),
            ),
        )
    what = f"{shown(cell)} is neither a number, a limit such as <0.5, nor a word that is known"
    if not text or len(text) > 30 or re.search(r"[0-9]", text):
        return Problem(what)
    return Problem(
        what,
        remedies=(
            Remedy("marks", f"{text}=below", "if the value is below its limit"),
            Remedy("marks", f"{text}=above", "if it is above it"),
            Remedy("marks", f"{text}=missing", "if nothing was measured"),
        ),
    )


def _overflows(text: str) -> bool:
    try:
        return bool(np.isinf(float(text)))
    except ValueError:
        return False
