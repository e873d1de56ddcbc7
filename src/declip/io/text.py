"""Text files of separated values: encoding, separator and lines found, fields left as text."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.errors import TableFileError, about_file, shown
from declip.io.formats import TableFormat
from declip.io.head import FOOTNOTE, names_alone
from declip.io.plan import Skipped
from declip.io.problems import Problem, Remedy
from declip.io.sheet import Lines, Sheet

__all__ = ["read_text", "text_of"]

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_BLANKS = {"\t", "\n", "\r"}
_MARK, _REPLACEMENT = 0xFEFF, 0xFFFD
_SEPARATORS = ",;\t|"
_HEAD = 2**16  # bytes from which the separator is found
_FEW = 8  # lines of another width that may be no part of the table


def read_text(path: Path, wanted: TableFormat, skip: tuple[int, ...] | None = None) -> Sheet:
    """Read the records of a text file, each field as text, null where it is empty."""
    with about_file(path, "cannot be read"):
        data = path.read_bytes()
    checksum = zlib.crc32(data)
    data, encoding = _as_utf8(path, data, wanted.encoding)
    newline = "\r\n" if b"\r\n" in data[:_HEAD] else "\n"
    data = _unix_lines(path, data)
    if not data or data.isspace():
        raise TableFileError(path, "the file is empty")
    separator = wanted.separator or _find_separator(path, data)
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise TableFileError(path, f"the separator must be one character; got {shown(separator)}")
    data, skipped = _without_notes(data, separator, skip)
    if not data.strip():
        raise TableFileError(path, "the file has no table: every line was left out")
    frame, lines = _records(path, data, separator, skipped)
    if separator == "|" and data.count(b"|") == data.count(b" | ") and b'"' not in data:
        frame = frame.select(pl.all().str.strip_chars())  # columns drawn by hand
    done = replace(wanted, separator=separator, encoding=encoding, newline=newline)
    return Sheet(path, frame, lines, "line", done, skipped=skipped, checksum=checksum)


def text_of(path: Path, encoding: str | None) -> bytes:
    """Return the text of a file in UTF-8, with the line ends of Unix."""
    with about_file(path, "cannot be read"):
        data = path.read_bytes()
    return _unix_lines(path, _as_utf8(path, data, encoding)[0])


def _as_utf8(path: Path, data: bytes, encoding: str | None) -> tuple[bytes, str]:
    """Return the text in UTF-8 without a byte order mark, and the encoding that it had."""
    if encoding is None:
        encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data[:_HEAD]:
        raise TableFileError(path, "this is not a text file (it holds zero bytes)")
    if encoding is None and data.isascii():
        _check_characters(path, set(np.unique(np.frombuffer(data, np.uint8)).tobytes().decode()))
        return data, "utf-8"
    encoding = encoding or ("utf-8" if _has_utf8(data) else "cp1252")
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise TableFileError(path, f"there is no encoding {shown(encoding)}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TableFileError(
            path, f"the text is not {encoding}, or is damaged: give its encoding", f"line {line}"
        ) from None
    except UnicodeError as error:
        raise TableFileError(path, f"the text is not {encoding}: give its encoding") from error
    _check_characters(path, set(text), text)
    return text.encode(), encoding


def _has_utf8(data: bytes) -> bool:
    """Tell whether any character beyond ASCII is there in UTF-8, so that the others should be."""
    return any(not c.isascii() for c in set(data.decode(errors="ignore")))


def _check_characters(path: Path, characters: set[str], text: str | None = None) -> None:
    """Refuse what no writer of tables puts in a text: it is what damaged bytes decode to."""
    odd = {c for c in characters - _BLANKS if _is_damage(ord(c))}
    if odd:
        worst = min(odd)
        place = None if text is None else f"line {text[: text.index(worst)].count(chr(10)) + 1}"
        raise TableFileError(path, f"the text is damaged: it holds U+{ord(worst):04X}", place)


def _is_damage(code: int) -> bool:
    """Tell controls, marks within the text, and codes that are never characters."""
    control = code < 0x20 or 0x7F <= code < 0xA0
    never = 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
    return control or never or code in (_MARK, _REPLACEMENT)


def _unix_lines(path: Path, data: bytes) -> bytes:
    if b"\n" not in data:
        return data.replace(b"\r", b"\n")
    data = data.replace(b"\r\n", b"\n")
    if b"\r" in data:
        line = data[: data.index(b"\r")].count(b"\n") + 1
        raise TableFileError(path, "a line ends differently from the others", f"line {line}")
    return data


def _find_separator(path: Path, data: bytes) -> str:
    """Return the separator for which most lines of the head have as many fields as the first."""
    lines = data[:_HEAD].decode(errors="ignore").split("\n")
    if len(data) > _HEAD:
        lines = lines[:-1] or lines

    def agreement(separator: str, first: bool = True) -> tuple[float, int]:
        lengths = [len(record) for record in csv.reader(lines, delimiter=separator) if record]
        n = lengths[0] if first else Counter(lengths).most_common(1)[0][0]
        same = sum(length == n for length in lengths) / len(lengths)
        return (same, n) if n > 1 else (0.0, 1)

    with about_file(path, "cannot be read as separated values"):
        best = max(_SEPARATORS, key=agreement)
        if agreement(best)[0] > 0:
            return best
        # a title in one field stands above the table
        best = max(_SEPARATORS, key=lambda separator: agreement(separator, first=False))
    if agreement(best, first=False)[0] == 0:
        _check_blanks(path, [line for line in lines if line.strip()])
    return best


def _check_blanks(path: Path, lines: list[str]) -> None:
    """Refuse fields that only blanks set apart: they would be read as one."""
    widths = {len(line.split()) for line in lines}
    if len(lines) < 2 or len(widths) > 1 or widths == {1}:
        return
    single = all(len(line.split(" ")) == len(line.split()) for line in lines)
    remedies = (Remedy("separator", " "),) if single else ()
    how = "" if single else ": put commas or tabs between them"
    raise TableFileError(
        path, Problem(f"its fields are set apart by blanks{how}", remedies=remedies)
    )


def _without_notes(
    data: bytes, separator: str, skip: tuple[int, ...] | None
) -> tuple[bytes, tuple[Skipped, ...]]:
    """Blank out lines that are no part of the table: titles, comments, footnotes, or those named.

    Blank lines are passed over later, so that the others keep their numbers.
    """
    noted = dict.fromkeys(skip, "asked") if skip is not None else _notes(data, separator)
    if not noted:
        return data, ()
    lines = data.split(b"\n")
    there = {line: what for line, what in sorted(noted.items()) if 0 < line <= len(lines)}
    texts = {line: lines[line - 1].decode() for line in there}
    for line in there:
        lines[line - 1] = b""
    found = (
        Skipped(line, what, texts[line]) for line, what in there.items() if texts[line].strip()
    )
    return b"\n".join(lines), tuple(found)


def _notes(data: bytes, separator: str) -> dict[int, str]:
    """Return lines that are no records, by number: one field where the others have several."""
    mark = separator.encode()
    head = data[:_HEAD].split(b"\n")
    plain = (re.sub(rb'"[^"]*"', b"", line) for line in head if line.strip())
    widths = Counter(line.count(mark) + 1 for line in plain if mark in line)
    if not widths:
        return {}
    usual = widths.most_common(1)[0][0]
    noted: dict[int, str] = {}
    if data.startswith(b"#") or b"\n#" in data:
        lines = enumerate(data.split(b"\n"), start=1)
        noted |= {k: "comment" for k, x in lines if x[:1] == b"#" and x.count(mark) + 1 != usual}
    noted |= _titles(head, noted, separator, usual)
    return noted | (_footnotes(data, mark) if usual > 2 else {})


def _titles(head: list[bytes], noted: dict[int, str], separator: str, usual: int) -> dict[int, str]:
    """Return lines of one field, or of none, above a line of names, in which no number stands."""
    found: dict[int, str] = {}
    blank = [not line.strip(separator.encode() + b" ") for line in [*head, b""]]
    for k, line in enumerate(head, start=1):
        if not line.strip() or k in noted:
            continue
        fields = next(csv.reader([line.decode(errors="ignore")], delimiter=separator))
        filled = [field for field in fields if field.strip()]
        if len(filled) > 1 or usual < 3:
            return found if names_alone(fields) else {}
        if filled and " " not in filled[0].strip() and not blank[k]:
            return {}  # a word just above the names may be a piece of them
        found[k] = "title"
    return {}


def _footnotes(data: bytes, mark: bytes) -> dict[int, str]:
    """Return lines at the end of one field with words in it, set off by a blank line."""
    body, _, tail = data.rstrip(b"\n").rpartition(b"\n\n")
    lines = [line.rstrip(mark + b" ") for line in tail.split(b"\n")]
    if not body.strip() or any(mark in x or not FOOTNOTE.match(x.decode()) for x in lines):
        return {}
    first = body.count(b"\n") + 3
    return {first + k: "comment" for k in range(len(lines))}


def _records(
    path: Path, data: bytes, separator: str, skipped: tuple[Skipped, ...]
) -> tuple[pl.DataFrame, Lines]:
    """Return the fields of all records that are not blank, and the line of each."""
    body = data.lstrip(b"\n")
    above = len(data) - len(body)
    if body.endswith(b"\n\n"):
        body = body.rstrip(b"\n")
    _check_quotes(path, body, separator, above)
    n = _width(path, body, separator)
    scanned = _Scan(path, body, separator, above, tuple(line.line for line in skipped))
    frame = _parsed(scanned, n)
    plain = b'"' not in body and b"\n\n" not in body
    if plain and body.count(separator.encode()) == (n - 1) * frame.height:
        return frame, range(above + 1, above + 1 + frame.height)
    lengths, lines = scanned.records()
    scanned.check(n)
    if len(lengths) != frame.height:
        raise TableFileError(path, "its quotation marks do not match")
    return frame.filter(pl.Series(lengths > 0)), lines[lengths > 0]


def _check_quotes(path: Path, body: bytes, separator: str, above: int) -> None:
    """Refuse a quotation mark that neither opens nor closes a field: readers disagree about it."""
    if b'"' not in body:
        return
    mark = re.escape(separator.encode())
    fields = rb"(?:(?<=[\n" + mark + rb'])|\A)"(?:[^"]|"")*"(?=[\n' + mark + rb"]|\Z)"
    rest = re.sub(fields, lambda match: b"\n" * match[0].count(b"\n"), body)
    if b'"' in rest:
        line = rest[: rest.index(b'"')].count(b"\n") + 1 + above
        what = "its quotation marks do not match: within a quoted field, write them twice"
        raise TableFileError(path, what, f"line {line}")


def _width(path: Path, body: bytes, separator: str) -> int:
    """Return the number of fields of the first record."""
    line = body[: body.find(b"\n") + 1 or None]
    whole = io.StringIO((body if b'"' in line else line).decode(), newline="")
    with about_file(path, "cannot be read as separated values"):
        return len(next(csv.reader(whole, delimiter=separator)))


def _parsed(text: _Scan, n: int) -> pl.DataFrame:
    schema = {str(j): pl.String for j in range(n)}
    try:
        return pl.read_csv(text.body, has_header=False, separator=text.separator, schema=schema)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        text.check(n)
        reason = str(error).splitlines()[0]
        raise TableFileError(text.path, f"cannot be read as separated values: {reason}") from error


@dataclass(frozen=True)
class _Scan:
    """The records of a text looked at one by one, below ``above`` blank lines."""

    path: Path
    body: bytes
    separator: str
    above: int
    skipped: tuple[int, ...]

    def records(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of fields of each record, 0 for a blank line, and its first line."""
        reader = csv.reader(io.StringIO(self.body.decode(), newline=""), delimiter=self.separator)
        with about_file(self.path, "cannot be read as separated values"):
            found = np.array([(len(record), reader.line_num) for record in reader], np.int64)
        lengths, last = found.T if len(found) else np.empty((2, 0), np.int64)
        return lengths, np.concatenate([[1], last[:-1] + 1])[: len(last)] + self.above

    def check(self, n: int) -> None:
        """Refuse records that do not have n fields, and name them all."""
        lengths, lines = self.records()
        wrong = np.flatnonzero((lengths != n) & (lengths > 0))
        if not wrong.size:
            return
        k, others = wrong[0], lines[wrong[1:]].tolist()
        fields = "1 field" if lengths[k] == 1 else f"{lengths[k]} fields"
        more = f"; {_named(others)} also differ{'s' * (len(others) == 1)}" if others else ""
        remedies = []
        if len(wrong) <= _FEW:
            left_out = ",".join(map(str, sorted({*self.skipped, *lines[wrong].tolist()})))
            when = f"if {'they are' if others else 'it is'} no part of the table"
            remedies.append(Remedy("skip", left_out, when))
        what = f"it has {fields}, where the first has {n}{more}"
        raise TableFileError(self.path, Problem(what, f"line {lines[k]}", remedies=tuple(remedies)))


def _named(lines: list[int]) -> str:
    some = ", ".join(map(str, lines[:_FEW])) + (", ..." if len(lines) > _FEW else "")
    return f"line{'s' * (len(lines) > 1)} {some}"
