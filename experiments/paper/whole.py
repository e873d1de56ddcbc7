"""How long all of it took, from nothing, in one go: a record beside the results.

It stands for as long as no run of it has been made since by a command of another kind; runs of
studies that are new since then may be added.
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
    work: Callable[[], list[Any]], folder: Path, runs: int, workers: int, *, fresh: bool, adds: bool
) -> list[Any]:
    """Make runs; return what failed. Begin and end are kept of so many that began from nothing.

    Runs that only add to what is there leave an earlier record. An interruption leaves none, so
    that work which is taken up again does not count.
    """
    if not adds:
        _path(folder).unlink(missing_ok=True)
    began = time.time()
    failed = work()
    if fresh and not failed:
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
    if not 0 < found.get("runs", 0) <= runs:
        return "The runs shown here were not made in one go."
    added = runs - found["runs"]
    of_them = f"{found['runs']} of the {runs} runs" if added else f"the {runs} runs"
    since = f" The other {added} were added since." if added else ""
    return (
        f"In one go, from nothing, {of_them} shown here took {found['minutes']:.0f} minutes "
        f"in {found['workers']} processes ({found['began']} to {found['ended']}; "
        f"{found['machine']}).{since}"
    )
