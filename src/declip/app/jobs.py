"""Tables that were dropped on the page, and what became of them, kept in a folder of their own."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import declip
from declip.io import TableFile, read_table, write_table
from declip.io.formats import KINDS
from declip.options import Restoring
from declip.persistence import one_line
from declip.report import View, write_cells, write_report

__all__ = ["Job", "Jobs", "safe_name"]

_MOST_JOBS = 20


def safe_name(given: str) -> str:
    """Return a name for people, made of harmless characters; it is never opened as a path."""
    last = re.split(r"[/\\]", given)[-1]
    name = re.sub(r"[^\w.() +-]", "_", last).strip(". ")
    return name[-80:] or "table"


@dataclass
class Job:
    """One dropped file."""

    folder: Path
    name: str
    suffix: str
    state: str = "new"
    message: str = ""
    started: float = 0.0
    seconds: float = 0.0
    doing: str = ""
    share: float = 0.0
    table: TableFile | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def upload(self) -> Path:
        """The file as it came."""
        return self.folder / f"upload{self.suffix}"

    def output(self, kind: str) -> Path:
        """Return where one of the results is kept."""
        names = {"table": f"restored{self.suffix}", "flags": "cells.csv", "report": "report.html"}
        return self.folder / names[kind]

    def read(self, **options: Any) -> None:
        """Read the file under limits, and look at it."""
        self.table = read_table(self.upload, **options)
        cells = self.table.intervals
        side = cells.by_row
        self.summary = {
            "rows": cells.shape[0],
            "columns": cells.shape[1],
            "exact": cells.n_exact,
            "above": int((side.upper == float("inf")).sum()),
            "below": int((side.lower == float("-inf")).sum()),
            "open": cells.n_censored,
            "missing": cells.shape[0] * cells.shape[1] - len(cells),
        }
        proposal = declip.detect_limits(cells)
        found = proposal.ceiling is not None or proposal.floor is not None
        self.summary["proposal"] = str(proposal) if found else ""

    def restore(self, options: Restoring) -> None:
        """Restore the table and keep table, list of cells and report."""
        if self.table is None:
            raise ValueError("the file was not read")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = options.restore(self.table.intervals, self.note)
        self.notes = list(dict.fromkeys(one_line(str(warning.message)) for warning in caught))
        write_table(result.table, self.output("table"), like=self.table, overwrite=True)
        write_cells(result, self.output("flags"), overwrite=True)
        write_report(result, self.output("report"), source=self.name, overwrite=True)
        self.summary |= {"flags": View(result).counts, "kept_limits": bool(result.kept_limits)}

    def note(self, doing: str, share: float) -> None:
        """Keep how far a restoration has come."""
        self.doing, self.share = doing, share

    def status(self) -> dict[str, Any]:
        """Return what the page shows."""
        running = time.monotonic() - self.started if self.state == "running" else self.seconds
        return {
            "name": self.name,
            "state": self.state,
            "message": self.message,
            "seconds": round(running, 1),
            "doing": self.doing,
            "share": round(self.share, 2),
            "summary": self.summary,
            "notes": self.notes,
        }


class Jobs:
    """The dropped files of one run of the page; restored one after the other, then forgotten."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="declip-"))
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="declip")

    def new(self, name: str) -> tuple[str, Job]:
        """Make room for a file; only the end of its name says what it is."""
        name = safe_name(name)
        suffix = Path(name).suffix.lower()
        if suffix not in KINDS:
            raise ValueError(f"this kind of file is not read; use one of {', '.join(KINDS)}")
        key = secrets.token_urlsafe(16)
        job = Job(self.folder / key, name, suffix)
        job.folder.mkdir()
        with self._lock:
            self._jobs[key] = job
            while len(self._jobs) > _MOST_JOBS:
                _, old = self._jobs.popitem(last=False)
                shutil.rmtree(old.folder, ignore_errors=True)
        return key, job

    def get(self, key: str) -> Job | None:
        """Return a job by its key."""
        return self._jobs.get(key)

    def run(self, job: Job, work: Callable[[], None]) -> None:
        """Do work on a job in the background, and keep what went wrong in words."""

        def task() -> None:
            try:
                work()
                job.state = "done"
            except (ValueError, TypeError, MemoryError, OSError) as error:
                job.state, job.message = "failed", self._without_paths(str(error), job)
            except Exception as error:
                job.state, job.message = "failed", f"an error in declip: {type(error).__name__}"
                raise
            finally:
                job.seconds = time.monotonic() - job.started

        job.state, job.message, job.started = "running", "", time.monotonic()
        job.note("", 0.0)
        self._worker.submit(task)

    def _without_paths(self, text: str, job: Job) -> str:
        return one_line(text).replace(str(job.upload), job.name).replace(str(job.folder), "")

    def explain(self, error: Exception, job: Job) -> str:
        """Return an error about a file in words that name it as the user does."""
        return self._without_paths(str(error), job)

    def close(self) -> None:
        """Forget everything."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)
