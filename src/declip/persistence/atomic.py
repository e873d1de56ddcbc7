"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from declip.persistence.errors import FileError

__all__ = ["new_file", "whole_file"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``, of the same kind; rename it if the block ends well.

    If the block raises, nothing is left behind and a file that was there before is untouched. If
    the process is killed or the power fails, ``path`` holds the old file or the new one, whole;
    a temporary file may then be left beside it.
    """
    temporary = path.with_name(f".{path.stem[:100]}.{secrets.token_hex(6)}.tmp{path.suffix}")
    try:
        yield temporary
        _sync(temporary)  # else the new name could reach the disk before what it names
        os.replace(temporary, path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_file(
    path: str | Path, overwrite: bool = False, error: type[FileError] = FileError
) -> Iterator[Path]:
    """Give a `whole_file` that a user asked for, with an error that says why it cannot be written.

    Parameters
    ----------
    path : str or Path
        The file to come.
    overwrite : bool, default=False
        Whether it may replace a file.
    error : type
        What to raise if it cannot be written.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))  # a link stays a link
    _check_free(path, target, overwrite, error)
    temporary = target
    try:
        with whole_file(target) as temporary:
            yield temporary
    except FileError as problem:
        if problem.path != temporary or problem.path == path:
            raise
        raise error(path, str(problem).removeprefix(f"{problem.path}: ")) from problem
    except OSError as problem:
        raise error(path, f"cannot be written: {problem.strerror or problem}") from problem


def _check_free(path: Path, target: Path, overwrite: bool, error: type[FileError]) -> None:
    if target.is_dir():
        raise error(path, "this is a folder, not a file")
    if target.exists() and not overwrite:
        raise error(path, "the file exists; it is replaced only if you ask for it (overwrite)")
    if not target.parent.is_dir():
        raise error(path, "its folder does not exist")


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
