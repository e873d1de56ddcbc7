"""The lines of a file given back with some fields changed, columns added and lines appended."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

import numpy as np
import polars as pl

from declip.io.edits import Edits
from declip.io.sheet import Sheet
from declip.io.text import text_of

__all__ = ["edited_frame", "edited_text"]

# What stands for separators and line breaks within quotation marks: no text file holds them.
_SEPARATOR, _BREAK = b"\x01", b"\x02"


def edited_text(sheet: Sheet, edits: Edits) -> bytes:
    """Return the text of a file, all that is untouched as it was, in its encoding."""
    form = sheet.format
    separator = form.separator or ","
    data = _one_line_each(text_of(sheet.path, form.encoding), separator.encode()).decode()
    ends = data.endswith("\n")
    lines = data.removesuffix("\n").split("\n")
    place = _record_of_line(lines)
    records = [place[int(line)] for line in sheet.lines]
    fields = sheet.fields or tuple(range(len(sheet.header)))
    for row, changes in edits.changed.items():
        parts = lines[records[row]].split(separator)
        for column, text in changes.items():
            parts[fields[column]] = _quoted(text, separator)
        lines[records[row]] = separator.join(parts)
    if edits.added:
        header = place[sheet.header_line] if sheet.header_line else None
        _add_columns(lines, records, header, edits, separator)
    names = [*sheet.header, *edits.added]
    for new in edits.appended:
        lines.append(separator.join(_quoted(new.get(name, ""), separator) for name in names))
    text = "\n".join(lines).replace("\x01", separator).replace("\x02", "\n") + "\n" * ends
    return text.replace("\n", form.newline).encode(form.encoding or "utf-8")


def _one_line_each(data: bytes, separator: bytes) -> bytes:
    """Hide separators and line breaks within quotation marks, so that a record is a line."""
    if b'"' not in data:
        return data
    mark = re.escape(separator)
    quoted = rb"(?:(?<=[\n" + mark + rb'])|\A)"(?:[^"]|"")*"(?=[\n' + mark + rb"]|\Z)"

    def hidden(match: re.Match[bytes]) -> bytes:
        return match[0].replace(separator, _SEPARATOR).replace(b"\n", _BREAK)

    return re.sub(quoted, hidden, data)


def _record_of_line(lines: list[str]) -> dict[int, int]:
    """Map the first line of each record, from 1, to its place."""
    inner = np.array([line.count("\x02") for line in lines])
    starts = 1 + np.arange(len(lines)) + np.concatenate([[0], np.cumsum(inner)[:-1]])
    return dict(zip(starts.tolist(), range(len(lines)), strict=True))


def _add_columns(
    lines: list[str], records: list[int], header: int | None, edits: Edits, separator: str
) -> None:
    """Append fields to the header and to each record; lines above the table stay as they are."""
    if header is not None:
        lines[header] += "".join(separator + _quoted(name, separator) for name in edits.added)
    columns = list(edits.added.values())
    for k, record in enumerate(records):
        lines[record] += "".join(separator + _quoted(texts[k], separator) for texts in columns)


def _quoted(text: str, separator: str) -> str:
    """Return a field as a text file writes it."""
    if not any(sign in text for sign in (separator, '"', "\n", "\r")):
        return text
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="").writerow([text])
    return out.getvalue().replace(separator, "\x01").replace("\n", "\x02")


def edited_frame(sheet: Sheet, edits: Edits) -> pl.DataFrame:
    """Return the table of a file as a frame with its headers, numbers where a column has them."""
    frame = sheet.frame.rename(dict(zip(sheet.frame.columns, sheet.header, strict=True)))
    changed: dict[int, dict[int, str]] = {}
    for row, changes in edits.changed.items():
        for column, text in changes.items():
            changed.setdefault(column, {})[row] = text
    for column, new in changed.items():
        name = sheet.header[column]
        frame = frame.with_columns(_replaced(frame[name], new))
    for name, texts in edits.added.items():
        frame = frame.with_columns(_typed(pl.Series(name, texts), frame))
    return pl.concat([frame, *_new_rows(frame, edits)], how="vertical_relaxed")


def _replaced(column: pl.Series, texts: dict[int, str]) -> pl.Series:
    new = pl.Series(list(texts.values()), dtype=pl.String)
    if column.dtype.is_numeric():
        column, new = column.cast(pl.Float64), new.cast(pl.Float64, strict=False)
    elif column.dtype != pl.String:
        return column
    return column.scatter(list(texts), new)


def _typed(column: pl.Series, frame: pl.DataFrame) -> pl.Series:
    """Return numbers where the file itself has numbers; what is no number is empty there."""
    if not any(kind.is_numeric() for kind in frame.dtypes) or column.name.endswith("flag"):
        return column
    return column.cast(pl.Float64, strict=False)


def _new_rows(frame: pl.DataFrame, edits: Edits) -> Iterable[pl.DataFrame]:
    if edits.appended:
        texts = {name: [line.get(name) for line in edits.appended] for name in frame.columns}
        new = pl.DataFrame(texts, schema=dict.fromkeys(frame.columns, pl.String))
        yield new.cast(dict(frame.schema), strict=False)  # type: ignore[arg-type]
