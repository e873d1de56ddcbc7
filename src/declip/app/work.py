"""The work on one dropped file, in a process of its own that the page can end.

Files may be made to break a reader. Here that costs one answer: the page lives on, under limits of
memory (set here) and time (kept by the page). Answers are JSON, so that nothing runs on its side.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

from declip.app.said import in_page_words
from declip.app.seen import seen_file, seen_problems
from declip.io import TableFile, TableFileError, read_table, write_table
from declip.options import Restoring
from declip.report import write_cells, write_report
from declip.restoration import Restoration
from declip.validation import free_memory
from declip.wording import one_line

__all__ = ["OUTPUTS", "run"]

OUTPUTS = ("table", "flags", "report")
_ROOM_OF_A_THREAD = 2**27  # bytes of address space that are set aside, not used


def run(pipe: connection.Connection, folder: str, task: dict[str, Any]) -> None:
    """Do a task and send what came of it; ``folder`` goes if the page does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the page ends this process
    threading.Thread(target=_end_with_the_page, args=[folder], daemon=True).start()
    _limit_memory()
    upload, name = Path(task["upload"]), task["name"]

    def send(**answer: Any) -> None:
        with suppress(BrokenPipeError):  # the page is gone
            pipe.send_bytes(json.dumps(answer).encode())

    def fail(text: str, **seen: Any) -> None:
        text = text.replace(str(upload), name).replace(str(upload.parent), "")
        send(error=in_page_words(text), **seen)

    said = task["said"]
    try:
        table = read_table(upload, **said)
        outputs = task.get("outputs")
        send(done=seen_file(table, said) if outputs is None else _restored(table, task, send))
    except TableFileError as error:
        fail(_first(error), seen=seen_problems(error, said))
    except (ValueError, TypeError, ArithmeticError, MemoryError, OSError) as error:
        fail(one_line(str(error)) or type(error).__name__)
    except Exception as error:
        fail(f"an error in declip: {type(error).__name__}")


def _first(error: TableFileError) -> str:
    """Return what is wrong first, without the remedies: the page offers these itself."""
    first = error.problems[0]
    return one_line(f"{', '.join([str(error.path), *first.where])}: {first.what}")


def _end_with_the_page(folder: str) -> None:
    page = parent_process()
    if page is not None:
        connection.wait([page.sentinel])
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)


def _limit_memory() -> None:
    """Let this process ask for no more than is free."""
    try:
        import resource
    except ImportError:  # Windows
        return
    free, statm = free_memory(), Path("/proc/self/statm")
    if free < inf and statm.exists():
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
        most = int(free) + used + _ROOM_OF_A_THREAD * (os.cpu_count() or 1)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _restored(table: TableFile, task: Mapping[str, Any], send: Any) -> dict[str, Any]:
    """Restore the table and write table, list of cells and report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = Restoring(**task["options"]).restore(
            table.intervals, lambda doing, share: send(doing=doing, share=share), **table.known
        )
    paths = {kind: Path(task["outputs"][kind]) for kind in OUTPUTS}
    _write(result, table, paths["table"], task["fill"])
    write_cells(result, paths["flags"], overwrite=True, like=table, fill=task["fill"])
    named = replace(table, path=Path(task["name"]))
    write_report(result, paths["report"], source=named, fill=task["fill"], overwrite=True)
    return {
        "flags": _counts(result, task["fill"]),
        "verdict": result.verdict,
        "notes": list(dict.fromkeys(one_line(str(warning.message)) for warning in caught)),
    }


def _counts(result: Restoration, fill: bool) -> dict[str, int]:
    """Return how many cells came out how; those that nobody measured may stay empty."""
    names = {} if fill else {"filled": "left empty"}
    return {names.get(name, name): n for name, n in result.counts.items()}


def _write(result: Restoration, table: TableFile, path: Path, fill: bool) -> None:
    """Write the table in the form of the file; with flags and bands where lines have room."""
    extras = {}
    if table.format.layout == "long" and table.format.kind not in ("npz", "mtx"):
        extras = {"flags": result.flags, "lower": result.lower, "upper": result.upper}
    digits = result.lower, result.upper
    write_table(result.table, path, like=table, digits=digits, fill=fill, overwrite=True, **extras)
