"""Rows and columns named by one or several columns of a file; dates and times in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.labels import number_labels, text_labels

__all__ = ["as_times", "joined", "number_keys"]

_JOINERS = (" / ", " | ", " // ", " || ")
_INNER = "\x1f"  # no text file holds it
_FORMATS = (
    "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%b-%Y", "%d-%m-%Y",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", "T%H:%M:%SZ")
_TIME_NAMES = re.compile(
    r"(?:year|jahr|month|monat|week|woche|day|tag|hour|wave|visit|period|quarter|time|zeit|date)s?",
    re.I,
)


def number_keys(
    keys: Sequence[pl.Series], names: Sequence[str] = ()
) -> tuple[NDArray[np.int32], NDArray]:
    """Return the number of the key on each line, and the labels; dates and times in order."""
    whole = keys[0] if len(keys) == 1 else joined(keys, _INNER)
    codes, labels = number_labels(whole)
    parts = [labels] if len(keys) == 1 else _split(labels, len(keys))
    order = _order(parts, names)
    if order is not None:
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=order.dtype)
        codes, labels = place[codes].astype(np.int32), labels.gather(order)
    return codes, text_labels(labels) if len(keys) == 1 else _shown(labels)


def joined(keys: Sequence[pl.Series], sign: str = _JOINERS[0]) -> pl.Series:
    """Return the parts of each key as one text."""
    frame = pl.DataFrame([key.cast(pl.String).alias(str(j)) for j, key in enumerate(keys)])
    return frame.select(pl.concat_str(pl.all().fill_null(""), separator=sign)).to_series()


def _split(labels: pl.Series, n: int) -> list[pl.Series]:
    fields = labels.str.split_exact(_INNER, n - 1).struct
    return [fields.field(f"field_{j}") for j in range(n)]


def _shown(labels: pl.Series) -> NDArray:
    """Return joined labels for people, by a sign that keeps them different."""
    for sign in _JOINERS:
        text = labels.str.replace_all(_INNER, sign, literal=True)
        if text.n_unique() == len(text):
            break
    return text_labels(text)


def _order(parts: list[pl.Series], names: Sequence[str]) -> NDArray | None:
    """Return the order of labels with times in it: the other parts as they first appear."""
    named = [*names, *[""] * len(parts)]
    times = [as_times(part, name) for part, name in zip(parts, named, strict=False)]
    if all(time is None for time in times):
        return None
    keys = [
        number_labels(part)[0] if time is None else time.to_numpy()
        for part, time in zip(parts, times, strict=True)
    ]
    return np.lexsort(keys[::-1])


def as_times(labels: pl.Series, name: str = "") -> pl.Series | None:
    """Return dates and times as numbers that grow with them; None if they are none, or unclear."""
    if labels.dtype.is_temporal():
        return None if labels.null_count() else labels.to_physical()
    if labels.null_count() or labels.dtype not in (pl.String, pl.Int64, pl.Int32):
        return None
    if _TIME_NAMES.fullmatch(name.strip()):
        numbers = labels.cast(pl.Int64, strict=False)
        if not numbers.null_count():
            return numbers
    if labels.dtype != pl.String:
        return None
    if labels.str.contains(r"^[0-9]{4}(?:-?W[0-9]{2}|-[0-9]{2}|-?Q[1-4])$").all():
        return labels.rank("dense").cast(pl.Int64)
    if not labels.str.contains(r"^[0-9]{1,4}[-/.][0-9A-Za-z]{1,3}[-/.][0-9]{1,4}").all():
        return None
    return _parsed_times(labels)


def _parsed_times(labels: pl.Series) -> pl.Series | None:
    """Return the times by the one form that reads them all; none if two forms disagree."""
    found = []
    for date in _FORMATS:
        for clock in _CLOCKS:
            read = labels.str.to_datetime(date + clock, strict=False)
            if not read.null_count():
                found.append(read.to_physical())
    if not found or any(not (other == found[0]).all() for other in found[1:]):
        return None
    return found[0]
