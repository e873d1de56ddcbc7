"""Parquet files: what their pages claim is checked before a library trusts it.

A page says how many values it holds, and its reader makes room for them. Where one byte of that is
damaged, the reader asks for more memory than there is and takes the program down, or reads other
values. The claims are in Thrift's compact protocol, which is read here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from declip.io.errors import TableFileError, about_file
from declip.io.formats import TableFormat
from declip.io.sheet import Sheet

__all__ = ["read_parquet"]

_DICTIONARY_PAGE, _INDEX_PAGE = 2, 1
_DEEPEST = 20  # structs within structs


def read_parquet(path: Path, wanted: TableFormat, skip: tuple[int, ...] | None = None) -> Sheet:
    """Read the columns of a Parquet file, with their names for a header."""
    with about_file(path, "cannot be read as Parquet"):
        data = path.read_bytes()
        gone = _missing_by_column(data)
        frame = None if gone is None else pl.read_parquet(path)
        if frame is None or any(frame[name].null_count() != n for name, n in (gone or {}).items()):
            raise TableFileError(path, "the file is damaged: its pages are not what it says")
        names = tuple(frame.columns)
        frame.columns = [str(j) for j in range(frame.width)]
    lines = range(1, frame.height + 1)
    form = replace(wanted, header=True)
    return Sheet(path, frame, lines, "row", form, names, checksum=zlib.crc32(data))


def _missing_by_column(data: bytes) -> dict[str, int] | None:
    """Return how many cells of a column are missing, as far as the file tells.

    None if the pages of some column hold another number of values than the column.
    """
    if data[:4] != b"PAR1" or data[-4:] != b"PAR1" or len(data) < 12:
        return {}  # the library says what it is
    (length,) = struct.unpack("<I", data[-8:-4])
    try:
        groups = _Thrift(data, len(data) - 8 - length).struct()[4]
        chunks = [(column[3], group[3]) for group in groups for column in group[1]]
        if not all(_is_whole(data, column, n_rows) for column, n_rows in chunks):
            return None
        return _counted(column for column, _ in chunks)
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _counted(chunks: Iterable[dict[int, Any]]) -> dict[str, int]:
    """Return the sum of missing cells of columns whose every part says it."""
    parts: dict[str, list[int | None]] = {}
    for column in chunks:
        if len(column[3]) == 1:
            nulls = column.get(12, {}).get(3)
            parts.setdefault(column[3][0].decode(), []).append(nulls)
    return {name: sum(filter(None, n)) for name, n in parts.items() if None not in n}


def _is_whole(data: bytes, column: dict[int, Any], n_rows: int) -> bool:
    begin, size, flat = column[9], column[7], len(column[3]) == 1
    if column[5] == n_rows == 0:
        return True
    begin = min(begin, column.get(11) or begin)
    pages = list(_pages(data, begin, begin + size))
    claimed = [n for kind, n in pages if kind != _DICTIONARY_PAGE]
    return (
        min((n for _, n in pages), default=0) >= 0
        and sum(claimed) == column[5]
        and (not flat or column[5] == n_rows)
    )


def _pages(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield kind and number of values of the pages between two places, which they must fill."""
    at = begin
    while at < end:
        thrift = _Thrift(data, at)
        page = thrift.struct()
        at = thrift.at + page[3]
        if page[3] < 0 or page[2] < 0 or at > min(end, len(data)):
            raise ValueError("a page reaches beyond its column")
        inner = page.get(5) or page.get(7) or page.get(8)
        if page[1] != _INDEX_PAGE and inner is not None:
            yield page[1], inner[1]


@dataclass
class _Thrift:
    """A place in bytes of Thrift's compact protocol."""

    data: bytes
    at: int
    depth: int = 0

    def struct(self) -> dict[int, Any]:
        """Return the fields of a struct by number."""
        if self.at < 0 or self.depth > _DEEPEST:
            raise ValueError("no struct")
        self.depth += 1
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        self.depth -= 1
        return fields

    def _value(self, kind: int) -> Any:
        if kind == 3 or kind in (1, 2):  # a byte, or a truth in a list
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            return self._list()
        if kind == 12:
            return self.struct()
        raise ValueError(f"a field of kind {kind}")

    def _list(self) -> list[Any]:
        head = self._byte()
        n = head >> 4 if head >> 4 < 15 else self._varint()
        if n > len(self.data):
            raise ValueError("a list longer than the file")
        return [self._value(head & 15) for _ in range(n)]

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, n: int) -> bytes:
        self.at += n
        if self.at > len(self.data):
            raise ValueError("a text beyond the end")
        return self.data[self.at - n : self.at]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 70:
                raise ValueError("a number without end")

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
