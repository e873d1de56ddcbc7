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
from math import inf
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

from declip.detect import detect_limits
from declip.intervals import Intervals
from declip.io import TableFile, read_table, write_table
from declip.options import Restoring
from declip.persistence import one_line
from declip.report import write_cells, write_report
from declip.validation import free_memory

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
        pipe.send_bytes(json.dumps(answer).encode())

    try:
        table = read_table(upload, **task["limits"])
        outputs = task.get("outputs")
        send(done=_summary(table.intervals) if outputs is None else _restored(table, task, send))
    except (ValueError, TypeError, ArithmeticError, MemoryError, OSError) as error:
        text = one_line(str(error)) or type(error).__name__
        send(error=text.replace(str(upload), name).replace(str(upload.parent), ""))
    except Exception as error:
        send(error=f"an error in declip: {type(error).__name__}")


def _end_with_the_page(folder: str) -> None:
    page = parent_process()
    if page is not None:
        connection.wait([page.sentinel])
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)


def _limit_memory() -> None:
    """Let this process ask for no more than is free."""
    import resource

    free, statm = free_memory(), Path("/proc/self/statm")
    if free < inf and statm.exists():
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
        most = int(free) + used + _ROOM_OF_A_THREAD * (os.cpu_count() or 1)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _summary(cells: Intervals) -> dict[str, Any]:
    side, proposal = cells.by_row, detect_limits(cells)
    found = proposal.ceiling is not None or proposal.floor is not None
    return {
        "rows": cells.shape[0],
        "columns": cells.shape[1],
        "exact": cells.n_exact,
        "above": int((side.upper == float("inf")).sum()),
        "below": int((side.lower == float("-inf")).sum()),
        "open": cells.n_censored,
        "missing": cells.shape[0] * cells.shape[1] - len(cells),
        "proposal": str(proposal) if found else "",
    }


def _restored(table: TableFile, task: Mapping[str, Any], send: Any) -> dict[str, Any]:
    """Restore the table and write table, list of cells and report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = Restoring(**task["options"]).restore(
            table.intervals, lambda doing, share: send(doing=doing, share=share)
        )
    paths = {kind: Path(task["outputs"][kind]) for kind in OUTPUTS}
    write_table(result.table, paths["table"], like=table, overwrite=True)
    write_cells(result, paths["flags"], overwrite=True)
    write_report(result, paths["report"], source=task["name"], overwrite=True)
    return {
        "flags": result.counts,
        "kept_limits": bool(result.kept_limits),
        "notes": list(dict.fromkeys(one_line(str(warning.message)) for warning in caught)),
    }
