"""How long all of it took, from nothing, in one go: a record beside the results.

It stands for as long as no run has been made since by a command of another kind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.common import write_text

from declip.environment import environment

__all__ = ["recorded", "said"]

_CLOCK = "%Y-%m-%d %H:%M:%S"


def _path(folder: Path) -> Path:
    return folder / "whole.json"


def recorded(
    work: Callable[[], list[Any]], folder: Path, runs: int, workers: int, whole: bool
) -> list[Any]:
    """Do the work, which returns what failed; keep its begin and end if it was the whole.

    An interruption leaves no record, so that work which is taken up again does not count.
    """
    _path(folder).unlink(missing_ok=True)
    began = time.time()
    failed = work()
    if whole and not failed:
        ended = time.time()
        times = {
            name: time.strftime(_CLOCK, time.localtime(t))
            for name, t in (("began", began), ("ended", ended))
        }
        of_all = {"runs": runs, "workers": workers, "minutes": round((ended - began) / 60, 1)}
        write_text(_path(folder), json.dumps({**times, **of_all, **environment()}) + "\n")
    return failed


def said(folder: Path, runs: int) -> str:
    """Return how long so many runs took in one go, or that they were not made so."""
    found = json.loads(_path(folder).read_text()) if _path(folder).exists() else {}
    if found.get("runs") != runs:
        return "The runs shown here were not made in one go."
    return (
        f"In one go, from nothing, the {runs} runs shown here took {found['minutes']:.0f} minutes "
        f"in {found['workers']} processes ({found['began']} to {found['ended']}; "
        f"{found['machine']})."
    )
