"""Errors about files: one line that names the file and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from declip.wording import one_line

__all__ = ["FileError", "ModelFileError", "about_model"]

_LONGEST = 200  # characters of a foreign message that are quoted


class FileError(ValueError):
    """A file cannot be read or written; the message is one line that names it.

    Attributes
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path | str, message: str, *where: str) -> None:
        place = ", ".join([one_line(str(path)), *where])
        super().__init__(f"{place}: {one_line(message)}")
        self.path = Path(path)


class ModelFileError(FileError):
    """A file cannot be read as a model or a checkpoint, or one cannot be written to it.

    Attributes
    ----------
    path : Path
        The file.

    Examples
    --------
    >>> from declip import ModelFileError, load
    >>> try:
    ...     load("nowhere.npz")
    ... except ModelFileError as error:
    ...     print(error)
    nowhere.npz: cannot be read: No such file or directory
    """


@contextmanager
def about_model(path: Path, what: str) -> Iterator[None]:
    """Turn whatever is raised while a file is read or written into a `ModelFileError`."""
    try:
        yield
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(path, f"{what}: {error.strerror or error}") from error
    except MemoryError as error:
        raise ModelFileError(path, f"{what}: there is too little memory for it") from error
    except Exception as error:
        message = str(error)[:_LONGEST] or type(error).__name__
        raise ModelFileError(path, f"{what}: {message}") from error
