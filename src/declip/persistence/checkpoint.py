"""The state of a long fit in a file, from which a process that was killed is taken up again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

from declip.persistence.archive import LIBRARY, Archive, checksum, read_archive, write_archive
from declip.persistence.codec import decode, encode
from declip.persistence.errors import ModelFileError, about_model

__all__ = ["Checkpoint", "fingerprint"]

PAUSE = 1.0  # seconds at least between two states that are written
SHARE = 20.0  # and so many times what it takes to write one
_KIND = "checkpoint"


class Checkpoint:
    """A file in which the state of a fit is kept until the fit is complete.

    A state is written about once a second, or more rarely if it is large, so that writing takes
    no more than a twentieth of the time.

    Parameters
    ----------
    path : str or Path
        The file. If it is there, the fit goes on from the state in it.
    fit : dict
        All that determines the result, by name. A file of another fit is refused.

    Attributes
    ----------
    state : Any
        Where to go on; None to begin.
    """

    def __init__(self, path: str | PathLike[str], fit: Mapping[str, Any]) -> None:
        self.path = Path(path)
        with about_model(self.path, "cannot be used as a checkpoint"):
            parts = {"version of declip": LIBRARY, **fit}
            self.fit = {name: fingerprint(value, name) for name, value in parts.items()}
        self.state = self._found() if self.path.exists() else None
        self._next = monotonic() + PAUSE

    def put(self, state: Any, last: bool = False) -> Any:
        """Write a state, if it is time; return it."""
        began = monotonic()
        if began < self._next:
            return state
        with about_model(self.path, "cannot be written"):
            content, arrays = encode(state)
        archive = Archive(_KIND, {"fit": self.fit, "state": content}, arrays)
        write_archive(self.path, archive, overwrite=True)
        ended = monotonic()
        self._next = ended + max(PAUSE, SHARE * (ended - began))
        return state

    def done(self) -> None:
        """Remove the file: the fit is complete."""
        self.path.unlink(missing_ok=True)

    def _found(self) -> Any:
        archive = read_archive(self.path, _KIND)
        with about_model(self.path, "cannot be taken up"):
            found = archive.content["fit"]
            names = sorted(n for n in {**found, **self.fit} if found.get(n) != self.fit.get(n))
            if names:
                raise ModelFileError(
                    self.path,
                    f"this is the checkpoint of another fit, which differs in: {', '.join(names)}. "
                    "Give this fit a path of its own, or remove the file to begin anew",
                )
            return decode(archive.content["state"], archive.arrays)


def fingerprint(value: Any, name: str = "") -> str:
    """Return a digest of values, of numbers to the last bit, and of their types."""
    content, arrays = encode(value, name)
    parts = [(name, a.dtype.str, a.shape, checksum(a.tobytes("A"))) for name, a in arrays.items()]
    return checksum(json.dumps([content, parts], sort_keys=True).encode())
