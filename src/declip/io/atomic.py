"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from declip.io.errors import TableFileError

__all__ = ["new_file"]


@contextmanager
def new_file(path: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path beside ``path``, of the same kind; rename it if the block ends well.

    If the block raises, nothing is left behind and a file that was there before is untouched.

    Parameters
    ----------
    path : str or Path
        The file to come.
    overwrite : bool, default=False
        Whether it may replace a file.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))  # a link stays a link
    _check_free(path, target, overwrite)
    temporary = target.with_name(f".{target.stem[:100]}.{secrets.token_hex(6)}.tmp{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise TableFileError(path, f"cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _check_free(path: Path, target: Path, overwrite: bool) -> None:
    if target.is_dir():
        raise TableFileError(path, "this is a folder, not a file")
    if target.exists() and not overwrite:
        raise TableFileError(
            path, "the file exists; it is replaced only if you ask for it (overwrite)"
        )
    if not target.parent.is_dir():
        raise TableFileError(path, "its folder does not exist")
