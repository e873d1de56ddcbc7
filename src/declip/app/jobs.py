"""Tables that were dropped on the page, and what became of them, kept in a folder of their own."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import secrets
import shutil
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any

from declip.app import work
from declip.io.formats import KINDS

__all__ = ["Job", "Jobs", "TaskError", "safe_name"]

_MOST_JOBS = 20
_READING_SECONDS = 60.0
_GONE_SECONDS = 0.5  # for the system to end a process
_LONGEST_ANSWER = 2**22  # bytes
_PREFIX = "declip-page-"
_POSIX = "forkserver" in multiprocessing.get_all_start_methods()  # else Windows
_PROCESSES = (
    multiprocessing.get_context("forkserver") if _POSIX else multiprocessing.get_context("spawn")
)


class TaskError(ValueError):
    """What went wrong with a file, in words for the page; ``seen`` is what it shows of the file."""

    def __init__(self, message: str, seen: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.seen = seen or {}


def safe_name(given: str) -> str:
    """Return a name for people, made of harmless characters; it is never opened as a path."""
    last = re.split(r"[/\\]", given)[-1]
    name = re.sub(r"[^\w.() +-]", "_", last).strip(". ")
    return name[-80:] or "table"


class _Worker:
    """A process that does one task."""

    def __init__(self, folder: Path, task: dict[str, Any]) -> None:
        self._pipe, theirs = _PROCESSES.Pipe(duplex=False)
        arguments = (theirs, str(folder), task)
        self._process = _PROCESSES.Process(target=work.run, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def result(self, note: Callable[[str, float], None], seconds: float | None) -> dict[str, Any]:
        """Wait for the end of the task, and pass on how far it has come."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                if not self._pipe.poll(None if end is None else max(0, end - time.monotonic())):
                    raise TaskError(f"the file was not read within {seconds:.0f} s")
                answer = json.loads(self._pipe.recv_bytes(_LONGEST_ANSWER))
                if "error" in answer:
                    raise TaskError(answer["error"], answer.get("seen"))
                if "done" in answer:
                    return answer["done"]
                note(answer["doing"], answer["share"])
        except (EOFError, OSError) as error:
            raise TaskError("the file is too large for the memory, or breaks its reader") from error
        finally:
            self.stop()

    def stop(self) -> None:
        """End the process, wherever it is."""
        self._process.kill()

    def wait(self) -> None:
        """Wait until a process that was stopped is gone and writes no more."""
        self._process.join(_GONE_SECONDS)


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
    asked: dict[str, Any] = field(default_factory=dict)  # the fields of the page
    said: dict[str, Any] | None = None  # as it was read, if it could be
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    attempt: int = 0  # at a restoration; the end of an earlier one that was cancelled says nothing
    _worker: _Worker | None = None

    @property
    def upload(self) -> Path:
        """The file as it came."""
        return self.folder / f"upload{self.suffix}"

    def output(self, kind: str) -> Path:
        """Return where one of the results is kept."""
        names = {"table": f"restored{self.suffix}", "flags": "cells.csv", "report": "report.html"}
        return self.folder / names[kind]

    def read(self, asked: dict[str, Any], said: dict[str, Any]) -> None:
        """Read the file as the page asked, and look at it."""
        self.asked, self.said, self.summary, self.notes = asked, None, {}, []
        self.state = "new"
        try:
            self.summary = self._done({"said": said}, _READING_SECONDS, self.attempt)
        except TaskError as error:
            self.summary = error.seen
            self.state, self.message = "unread", str(error)
            return
        self.said, self.state, self.message = said, "read", ""

    def restore(self, options: dict[str, Any], fill: bool, attempt: int) -> None:
        """Restore the table and keep table, list of cells and report."""
        outputs = {kind: str(self.output(kind)) for kind in work.OUTPUTS}
        task = {"said": self.said, "options": options, "outputs": outputs, "fill": fill}
        done = self._done(task, None, attempt)
        self.notes = done.pop("notes")
        self.summary |= done

    def runs(self, attempt: int) -> bool:
        """Tell whether an attempt at a restoration is still wanted."""
        return self.state == "running" and self.attempt == attempt

    def _done(self, task: dict[str, Any], seconds: float | None, attempt: int) -> dict[str, Any]:
        given = {"upload": str(self.upload), "name": self.name, **task}
        try:
            self._worker = worker = _Worker(self.folder.parent, given)
        except (EOFError, OSError) as error:
            raise TaskError("no process could be started to read the file") from error
        if self.state == "cancelled" or self.attempt != attempt:
            worker.stop()
        return worker.result(self.note, seconds)

    def cancel(self, wait: bool = False) -> None:
        """Stop what is being done, and wait until it is gone."""
        self.state = "cancelled"
        if self._worker is not None:
            self._worker.stop()
            if wait:
                self._worker.wait()

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
            "asked": self.asked,
        }


class Jobs:
    """The dropped files of one run of the page; restored one after the other, then forgotten."""

    def __init__(self) -> None:
        if _POSIX:
            _remove_left_behind()
            _prepare_processes()
        self.folder = Path(mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))  # for this user alone
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._queue = ThreadPoolExecutor(max_workers=1, thread_name_prefix="declip")

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
            old = [self._jobs.popitem(last=False)[1] for _ in range(len(self._jobs) - _MOST_JOBS)]
        for forgotten in old:
            forgotten.cancel()
            shutil.rmtree(forgotten.folder, ignore_errors=True)
        return key, job

    def get(self, key: str) -> Job | None:
        """Return a job by its key."""
        return self._jobs.get(key)

    def run(self, job: Job, options: dict[str, Any], fill: bool = False) -> None:
        """Restore a table in the background, and keep what went wrong in words."""

        def task() -> None:
            if not job.runs(attempt):
                return
            try:
                job.restore(options, fill, attempt)
                ended = "done", ""
            except TaskError as error:
                ended = "failed", str(error)
            if job.runs(attempt):
                job.state, job.message = ended
            job.seconds = time.monotonic() - job.started

        job.attempt += 1
        attempt = job.attempt
        job.state, job.message, job.started = "running", "", time.monotonic()
        job.note("", 0.0)
        self._queue.submit(task)

    def close(self) -> None:
        """End what is being done, and forget everything."""
        self._queue.shutdown(wait=False, cancel_futures=True)
        for job in list(self._jobs.values()):
            job.cancel(wait=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def _prepare_processes() -> None:
    """Let that from which all processes are forked load its modules; the terminal's Ctrl-C is ours.

    A signal that is blocked now is blocked there, and comes here when it no longer is.
    """
    from multiprocessing import forkserver, resource_tracker

    _PROCESSES.set_forkserver_preload(["declip.app.work"])
    resource_tracker.ensure_running()  # first, since it ends with the signal let through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _remove_left_behind() -> None:
    """Remove folders of pages of this user that were killed."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*-*"):
        number = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError, ValueError):
            if folder.lstat().st_uid == os.getuid() and not _is_alive(int(number)):
                shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
