"""Named arrays and a JSON text in one npz file, checked before anything of it is used.

The file is an uncompressed zip, so that it cannot hold more than its own size. Its first member,
``declip.json``, names the format, the library, and of every array its type, shape and checksum; it
has a checksum itself. Every other member is an array in NumPy's own format, as `numpy.load` reads.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from declip.persistence.atomic import new_file
from declip.persistence.errors import ModelFileError, about_model
from declip.validation import free_memory

__all__ = ["LIBRARY", "Archive", "checksum", "read_archive", "write_archive"]

LIBRARY = version("declip")
FORMAT = 1
HEADER = "declip.json"
KINDS_OF_DTYPE = "biufcUMm"  # none that could hold an object
_LONGEST_HEADER = _LONGEST_DIRECTORY = 2**22
_LONGEST_NPY_HEADER = 4096
_PART = 2**20  # bytes read at a time
_SMALL = 2**26  # bytes that are read whatever the system says is free
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same content gives the same file
_END = struct.Struct("<4s4H2LH")  # end of the central directory
_LARGE = 2**31 - 1  # bytes from which a zip needs its 64-bit records


@dataclass(frozen=True)
class Archive:
    """What a file holds.

    Attributes
    ----------
    kind : str
        What it is, such as "model".
    content : JSON
        Texts, numbers, lists and dictionaries.
    arrays : mapping of str to ndarray
        Arrays by name.
    library : str
        Version of declip that wrote it.
    """

    kind: str
    content: Any
    arrays: Mapping[str, NDArray]
    library: str = LIBRARY


@dataclass(frozen=True)
class _Entry:
    """What the header says of an array."""

    dtype: str
    shape: list[int]
    checksum: str

    def __post_init__(self) -> None:
        dtype = np.dtype(self.dtype)
        sizes_fit = all(type(n) is int and n >= 0 for n in self.shape)
        if dtype.kind not in KINDS_OF_DTYPE or dtype.str != self.dtype or not sizes_fit:
            raise ValueError(f"an array of type {self.dtype!r} and shape {self.shape!r} is refused")

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def checksum(*parts: Any) -> str:
    """Return the digest of bytes or of contiguous arrays, one after the other."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def write_archive(path: str | Path, archive: Archive, *, overwrite: bool = False) -> Path:
    """Write a file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file to come.
    archive : Archive
        What it will hold.
    overwrite : bool, default=False
        Whether it may replace a file.
    """
    path = Path(path)
    with about_model(path, "cannot be written"):
        heads = {name: _npy_header(array) for name, array in archive.arrays.items()}
        bodies = {name: _bytes_of(array) for name, array in archive.arrays.items()}
        entries = {
            name: asdict(_Entry(a.dtype.str, list(a.shape), checksum(heads[name], bodies[name])))
            for name, a in archive.arrays.items()
        }
        header = _sealed(
            {
                "format": FORMAT,
                "library": archive.library,
                "kind": archive.kind,
                "arrays": entries,
                "content": archive.content,
            }
        )
        if len(header) > _LONGEST_HEADER:
            raise ModelFileError(path, "cannot be written: it has too many different parts")
        with (
            new_file(path, overwrite, ModelFileError) as temporary,
            zipfile.ZipFile(temporary, "x") as file,
        ):
            _write(file, HEADER, header)
            for name in entries:
                _write(file, f"{name}.npy", heads[name], bodies[name])
    return path


def _write(file: zipfile.ZipFile, name: str, *parts: Any) -> None:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.file_size = sum(memoryview(part).nbytes for part in parts)  # tells of 64-bit records
    with file.open(member, "w") as out:
        for part in parts:
            out.write(part)


def _npy_header(array: NDArray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, np.lib.format.header_data_from_array_1_0(array))
    return out.getvalue()


def _bytes_of(array: NDArray) -> NDArray[np.uint8]:
    """Return the bytes of an array in the order of memory, by columns only if it lies so."""
    columnwise = array.flags.f_contiguous and not array.flags.c_contiguous
    return np.ascontiguousarray(array.T if columnwise else array).reshape(-1).view(np.uint8)


def _sealed(header: dict[str, Any]) -> bytes:
    return json.dumps({"checksum": checksum(_canonical(header)), "header": header}).encode()


def _canonical(header: Any) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def read_archive(path: str | Path, kind: str) -> Archive:
    """Read a file that `write_archive` wrote; anything else is a `ModelFileError`.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : str
        What it must be.
    """
    path = Path(path)
    with about_model(path, "cannot be read"), path.open("rb") as raw:
        size = _check_ends(path, raw)
        with zipfile.ZipFile(raw) as file:
            members = _members(path, file, size)
            header = _opened(path, file, members)
            if header["kind"] != kind:
                raise ModelFileError(path, f"this is a {header['kind']}, not a {kind}")
            entries = {name: _Entry(**entry) for name, entry in header["arrays"].items()}
            _check_sizes(path, members, entries)
            arrays = {name: _read(path, file, name, entry) for name, entry in entries.items()}
    return Archive(kind, header["content"], arrays, header["library"])


def _check_ends(path: Path, raw: BinaryIO) -> int:
    """Return the size of a file that begins and ends as a zip with a directory of sane size."""
    size = raw.seek(0, io.SEEK_END)
    raw.seek(0)
    begins = raw.read(4) == b"PK\x03\x04"
    raw.seek(max(size - _END.size - 20, 0))
    tail = raw.read()
    if not begins or len(tail) < _END.size + 20:
        raise ModelFileError(path, "this is not a file of declip, or its beginning is damaged")
    signature, *_, directory, _, comment = _END.unpack(tail[20:])
    large = tail[:4] == b"PK\x06\x07"
    if signature != b"PK\x05\x06" or comment or (large and size < _LARGE):
        raise ModelFileError(path, "it is cut off, or something was appended to it")
    if directory > _LONGEST_DIRECTORY:
        raise ModelFileError(path, "its directory is too long")
    return size


def _members(path: Path, file: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    found = file.infolist()
    members = {member.filename: member for member in found}
    if len(members) < len(found):
        raise ModelFileError(path, "two of its members have the same name")
    plain = all(
        m.compress_type == zipfile.ZIP_STORED and m.compress_size == m.file_size for m in found
    )
    if not plain or sum(m.file_size for m in found) > size:
        raise ModelFileError(path, "it has compressed members, which declip does not write")
    if HEADER not in members:
        raise ModelFileError(path, f"it has no {HEADER}: this is not a file of declip")
    return members


def _opened(
    path: Path, file: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]
) -> dict[str, Any]:
    """Return the header, if its checksum is right and its format is known."""
    if members[HEADER].file_size > _LONGEST_HEADER:
        raise ModelFileError(path, "its header is too long")
    sealed = json.loads(file.read(HEADER))
    header = sealed["header"]
    if sealed["checksum"] != checksum(_canonical(header)):
        raise ModelFileError(path, "its header is damaged: the checksum is wrong")
    if header["format"] != FORMAT:
        raise ModelFileError(
            path,
            f"it was written by declip {header['library']} in format {header['format']}; this is "
            f"declip {LIBRARY}, which reads format {FORMAT}",
        )
    return header


def _check_sizes(
    path: Path, members: Mapping[str, zipfile.ZipInfo], entries: Mapping[str, _Entry]
) -> None:
    if set(members) != {HEADER, *(f"{name}.npy" for name in entries)}:
        raise ModelFileError(path, "its members are not those that its header names")
    for name, entry in entries.items():
        extra = members[f"{name}.npy"].file_size - entry.nbytes
        if not 0 < extra <= _LONGEST_NPY_HEADER:
            raise ModelFileError(path, f"its array {name!r} is not as large as its header says")
    total = sum(entry.nbytes for entry in entries.values())
    if total > max(free_memory(), _SMALL):
        raise ModelFileError(path, f"it needs {total / 2**30:.1f} GiB of memory, more than is free")


def _read(path: Path, file: zipfile.ZipFile, name: str, entry: _Entry) -> NDArray:
    member = file.getinfo(f"{name}.npy")
    buffer, filled = np.empty(member.file_size, np.uint8), 0
    with file.open(member) as source:
        while part := source.read(_PART):
            buffer[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
            filled += len(part)
    if filled < len(buffer) or checksum(buffer) != entry.checksum:
        raise ModelFileError(path, f"its array {name!r} is damaged: the checksum is wrong")
    head = io.BytesIO(buffer[:_LONGEST_NPY_HEADER].tobytes())
    layout = np.lib.format.read_magic(head)
    shape, columnwise, dtype = np.lib.format.read_array_header_1_0(head)
    if layout != (1, 0) or list(shape) != entry.shape or dtype.str != entry.dtype:
        raise ModelFileError(path, f"its array {name!r} is not the one that the header describes")
    flat = buffer[head.tell() :].view(dtype)
    return flat.reshape(shape[::-1]).T if columnwise else flat.reshape(shape)
