"""Packages that come with an extra of declip: a line that names it where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["MissingExtra", "needs"]


class MissingExtra(ModuleNotFoundError):
    """A package that is not installed; the message names the extra that brings it."""


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Name the extra if an import within fails for want of a package.

    Examples
    --------
    >>> from declip.extras import needs
    >>> with needs("files"):
    ...     import no_such_reader
    Traceback (most recent call last):
    declip.extras.MissingExtra: this needs no_such_reader: pip install 'declip[files]'
    """
    try:
        yield
    except MissingExtra:
        raise
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise MissingExtra(f"this needs {package}: pip install 'declip[{extra}]'") from None
