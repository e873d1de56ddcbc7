"""A table on disk, cut into blocks of rows that are read by memory map.

A folder holds ``manifest.json`` and one file a block. The file is the arrays of `Cells`, by row and
by column of the block, one after the other, each from a multiple of 64 bytes on; where they begin
follows from their sizes. The manifest holds the sizes, the rows at which the table is cut, what a
fit needs to begin, and a checksum of every MiB. If columns outnumber rows, it is the transposed
table that is cut.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from declip.blocks.summary import BlockSummary
from declip.cells import Cells
from declip.intervals import face_value
from declip.losses import CLIPPED_MODES
from declip.persistence import whole_file

__all__ = [
    "MANIFEST",
    "Block",
    "BlockTable",
    "DamagedBlockError",
    "checksums",
    "stretch",
]

FORMAT = 1
MANIFEST = "manifest.json"
PAGE = 1 << 20
_ALIGN = 64
_NAMES_OF_0_1 = {"n_open": "n_censored", "open": "censored"}
_NAMES = ("exact_ptr", "exact_idx", "value", "censored_ptr", "censored_idx", "lower", "upper")


class DamagedBlockError(ValueError):
    """A file of a folder of blocks, or of a checkpoint, is not what was written."""


@dataclass(frozen=True)
class Block:
    """One block of rows: where its cells are, and how many.

    Attributes
    ----------
    path : str
        The file.
    first, last : int
        Rows of the table that it holds, the last excluded.
    n_cols, n_exact, n_censored : int
        Columns, exact and censored cells.
    dtype : str
        Type of the bounds.
    pages : tuple of int
        Checksum of each MiB of the file.
    """

    path: str
    first: int
    last: int
    n_cols: int
    n_exact: int
    n_censored: int
    dtype: str
    pages: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.last - self.first

    def layout(self) -> tuple[list[tuple[Any, int, int]], int]:
        """Return (type, length, first byte) of each array, and the length of the file."""
        real = np.dtype(self.dtype)
        arrays, end = [], 0
        for n in (self.n_rows, self.n_cols):
            exact, censored = self.n_exact, self.n_censored
            for kind, length in (
                (np.int64, n + 1),
                (np.int32, exact),
                (real, exact),
                (np.int64, n + 1),
                (np.int32, censored),
                (real, censored),
                (real, censored),
            ):
                begin = -(-end // _ALIGN) * _ALIGN
                arrays.append((np.dtype(kind), length, begin))
                end = begin + length * np.dtype(kind).itemsize
        return arrays, end

    def by_row(self, clipped: str = "hinge") -> Cells:
        """Return the cells row by row, as ``clipped`` asks; they are read when they are used."""
        return _treated(Cells(*self._arrays()[:7]), clipped)

    def by_col(self, first: int, last: int, clipped: str = "hinge") -> Cells:
        """Return the cells of some columns, column by column; rows count from the block's first."""
        return _treated(stretch(Cells(*self._arrays()[7:]), first, last), clipped)

    def _arrays(self) -> list[Any]:
        arrays, size = self.layout()
        path = Path(self.path)
        if not path.is_file() or path.stat().st_size != size:
            found = f"{path.stat().st_size} bytes" if path.is_file() else "no file"
            raise DamagedBlockError(f"{self._name()}: {found}, where {size} bytes are expected.")
        self._check(size)
        plain = np.asarray(np.memmap(path, np.uint8, "r"))
        return [
            plain[begin : begin + length * kind.itemsize].view(kind)
            for kind, length, begin in arrays
        ]

    def _check(self, size: int) -> None:
        """Compare the pages with their checksums, once in a process for each state of the file."""
        stat = os.stat(self.path)
        state = (self.path, stat.st_ino, stat.st_mtime_ns, self.pages)
        if state in _CHECKED:
            return
        found = checksums(Path(self.path))
        if found != self.pages:
            page = next(i for i, (a, b) in enumerate(zip(found, self.pages, strict=True)) if a != b)
            raise DamagedBlockError(
                f"{self._name()}: bytes {page * PAGE} to {min((page + 1) * PAGE, size)} are "
                "not those that were written."
            )
        _CHECKED.add(state)

    def _name(self) -> str:
        return f"Block {self.path} (rows {self.first} to {self.last - 1}) is damaged"


_CHECKED: set[Any] = set()


@dataclass(frozen=True)
class BlockTable:
    """A table cut into blocks on disk, prepared by `prepare_blocks`.

    Attributes
    ----------
    folder : Path
        Where it is.
    shape : tuple of int
        Rows and columns of the table.
    transposed : bool
        Whether the blocks hold columns of the table in place of rows.
    blocks : tuple of Block
        The blocks, in the order of their rows.
    summary : BlockSummary
        What a fit needs to know of all cells to begin.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from declip import BlockTable, prepare_blocks
    >>> with TemporaryDirectory() as folder:
    ...     prepared = prepare_blocks(np.arange(6.0).reshape(3, 2), folder, n_blocks=2)
    ...     BlockTable.open(folder).shape
    (3, 2)
    """

    folder: Path
    shape: tuple[int, int]
    transposed: bool
    blocks: tuple[Block, ...]
    summary: BlockSummary

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> BlockTable:
        """Read the manifest of a folder of blocks."""
        folder = Path(folder)
        path = folder / MANIFEST
        if folder.is_file():
            raise NotADirectoryError(
                f"{folder} is a file, not a folder of blocks: read a table with declip.read_table, "
                "and make a folder of a Parquet file with declip.prepare_blocks."
            )
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} is not a folder of blocks: it has no {MANIFEST}. "
                "Make one with declip.prepare_blocks."
            )
        try:
            content = json.loads(path.read_text())
            digest = content.pop("digest")
        except (ValueError, KeyError, UnicodeDecodeError) as error:
            raise DamagedBlockError(f"{path} is damaged: {error}.") from error
        if digest != _digest(content):
            raise DamagedBlockError(f"{path} is damaged: it is not what was written.")
        if content["format"] != FORMAT:
            raise ValueError(
                f"{path} has format {content['format']}, and this version of declip reads {FORMAT}."
            )
        return cls(
            folder,
            tuple(content["shape"]),
            content["transposed"],
            tuple(_block(folder, _renamed(entry)) for entry in content["blocks"]),
            BlockSummary(**_renamed(content["summary"])),
        )

    def save(self) -> None:
        """Write the manifest: only then is the folder one of blocks."""
        content = self._content()
        with whole_file(self.folder / MANIFEST) as path:
            path.write_text(json.dumps(content | {"digest": _digest(content)}, indent=1))

    def _content(self) -> dict[str, Any]:
        entries = [
            asdict(b) | {"path": Path(b.path).name, "pages": list(b.pages)} for b in self.blocks
        ]
        return {
            "format": FORMAT,
            "shape": list(self.shape),
            "transposed": self.transposed,
            "edges": [0, *(b.last for b in self.blocks)],
            "blocks": entries,
            "summary": asdict(self.summary),
        }

    @cached_property
    def digest(self) -> str:
        """Fingerprint of the data: it changes with any byte of them."""
        return _digest(self._content())

    @property
    def dtype(self) -> np.dtype:
        """Type of the bounds."""
        return np.dtype(self.blocks[0].dtype)

    @property
    def cut_shape(self) -> tuple[int, int]:
        """Shape of what is cut: of the table, or of the transposed one."""
        return self.shape[::-1] if self.transposed else self.shape

    @property
    def n_exact(self) -> int:
        """Number of exact cells."""
        return sum(b.n_exact for b in self.blocks)

    @property
    def n_censored(self) -> int:
        """Number of cells known only by an interval."""
        return sum(b.n_censored for b in self.blocks)

    def __len__(self) -> int:
        """Return the number of observed cells."""
        return self.n_exact + self.n_censored

    def __repr__(self) -> str:
        return (
            f"BlockTable({self.shape[0]} x {self.shape[1]}, {len(self)} observed, "
            f"{len(self.blocks)} blocks in {str(self.folder)!r})"
        )


def checksums(path: Path) -> tuple[int, ...]:
    """Return the checksum of each MiB of a file."""
    with path.open("rb", buffering=0) as file:
        return tuple(zlib.crc32(page) for page in iter(lambda: file.read(PAGE), b""))


def _digest(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _renamed(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry that version 0.1 may have written, with the names of today."""
    return {_NAMES_OF_0_1.get(name, name): value for name, value in entry.items()}


def _block(folder: Path, entry: dict[str, Any]) -> Block:
    return Block(**(entry | {"path": str(folder / entry["path"]), "pages": tuple(entry["pages"])}))


def stretch(cells: Cells, first: int, last: int) -> Cells:
    """Return rows first to last of the cells, without a copy of the cells."""
    exact, censored = (
        slice(int(ptr[first]), int(ptr[last])) for ptr in (cells.exact_ptr, cells.censored_ptr)
    )
    return Cells(
        cells.exact_ptr[first : last + 1] - exact.start,
        cells.exact_idx[exact],
        cells.value[exact],
        cells.censored_ptr[first : last + 1] - censored.start,
        cells.censored_idx[censored],
        cells.lower[censored],
        cells.upper[censored],
    )


def _treated(cells: Cells, clipped: str) -> Cells:
    """Return the cells as `Intervals.treat` would count them, exact ones untouched.

    A censored cell with equal bounds costs what an exact one does, so that "value" moves no cell.
    """
    become = CLIPPED_MODES[clipped].cells
    if become == "kept" or len(cells.lower) == 0:
        return cells
    if become == "left out":
        none = {name: getattr(cells, name)[:0] for name in ("censored_idx", "lower", "upper")}
        return replace(cells, censored_ptr=np.zeros_like(cells.censored_ptr), **none)
    value = face_value(cells.lower, cells.upper)
    return replace(cells, lower=value, upper=value)
