"""Runs, each a JSON file that says what was run: in two processes, resumable, the same every time.

A study is a module with ``jobs(quick)``, what there is to run, the most telling first, and
``run(**settings)``, which returns what was found. A run whose file has the same settings is not
run again.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import random
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.common import RESULTS, progress

from declip.environment import environment

__all__ = [
    "FULL",
    "QUICK",
    "Job",
    "as_stored",
    "found",
    "is_repeated",
    "run_again",
    "run_all",
    "run_one",
    "stored",
]

FULL, QUICK = RESULTS / "paper", RESULTS / "quick-paper"
_OF_THE_DAY = ("seconds", "cpu", "date", "machine", "versions")  # what a rerun may change
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


@dataclass(frozen=True)
class Job:
    """One run: the study, what tells it from others (its file), its settings, and its turn."""

    study: str
    name: str
    settings: dict[str, Any]
    turn: float = 0.0  # the lowest is run first

    def path(self, folder: Path) -> Path:
        return folder / self.study / f"{self.name}.json"


def as_stored(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as they come back from a file: tuples as lists."""
    return json.loads(json.dumps(settings))


def stored(job: Job, folder: Path) -> dict[str, Any] | None:
    """Return the result of a job, None if it was not run with these settings."""
    path = job.path(folder)
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    return result if result["settings"] == as_stored(job.settings) else None


def found(jobs: Iterable[Job], folder: Path) -> list[dict[str, Any]]:
    """Return the results of the jobs that have been run."""
    return [result for job in jobs if (result := stored(job, folder)) is not None]


def run_one(job: Job, folder: Path) -> Path:
    """Run a job and keep its result, with the seconds that it took."""
    study = importlib.import_module(f"experiments.paper.{job.study}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows without exact cells, caps of sweeps
        wall, cpu = time.perf_counter(), time.process_time()
        result = study.run(**as_stored(job.settings))
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    seconds = {name: round(value, 3) for name, value in seconds.items()}
    content = {"settings": job.settings, **environment(), "seconds": seconds, **result}
    return _write(job.path(folder), content)


def is_repeated(job: Job, folder: Path) -> bool:
    """Run a job that has a result again, and say whether all numbers are the same."""
    with TemporaryDirectory() as elsewhere:
        again = json.loads(run_one(job, Path(elsewhere)).read_text())
    return _numbers(again) == _numbers(json.loads(job.path(folder).read_text()))


def run_again(
    jobs: Sequence[Job], folder: Path, n: int, workers: int = 2
) -> Iterator[tuple[Job, bool]]:
    """Run some of the jobs that have a result again; give each, and whether it is the same."""
    made = [job for job in jobs if stored(job, folder) is not None and job.study != "times"]
    some = random.sample(made, min(n, len(made)))
    with _pool(workers) as pool:
        yield from zip(some, pool.map(is_repeated, some, [folder] * len(some)), strict=True)


def _numbers(result: Any) -> Any:
    """Return a result without what depends on the day."""
    if isinstance(result, dict):
        return {key: _numbers(x) for key, x in result.items() if key not in _OF_THE_DAY}
    return [_numbers(x) for x in result] if isinstance(result, list) else result


def _write(path: Path, content: dict[str, Any]) -> Path:
    """Write a file all at once, a line for each entry: an interrupted run leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    lines = (f" {json.dumps(key)}: {_lines(value)}" for key, value in content.items())
    draft.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(draft, path)
    return path


def _lines(value: Any) -> str:
    """Return JSON with a line for each element of a list of records."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(json.dumps(item) for item in value) + "\n ]"
    return json.dumps(value)


def run_all(jobs: Sequence[Job], folder: Path, workers: int = 2) -> list[tuple[Job, str]]:
    """Run what has no result yet; return the jobs that failed, with the reason."""
    todo = sorted((job for job in jobs if stored(job, folder) is None), key=lambda job: job.turn)
    failed = []
    with progress() as bar:
        task = bar.add_task("paper", total=len(jobs), completed=len(jobs) - len(todo))
        for job, error in _outcomes(todo, folder, workers):
            bar.update(task, advance=1, description=f"{job.study} {job.name}")
            if error:
                bar.print(f"{job.study} {job.name} failed: {error.splitlines()[-1]}")
                failed.append((job, error))
    return failed


def _outcomes(todo: Sequence[Job], folder: Path, workers: int) -> Iterator[tuple[Job, str]]:
    """Give each job when it is done, with its error if it had one."""
    with _pool(workers) as pool:
        running = {pool.submit(_attempt, job, folder): job for job in todo}
        for done in as_completed(running):
            yield running[done], done.result()


def _pool(workers: int) -> ProcessPoolExecutor:
    os.environ |= _ONE_THREAD  # for the processes to come
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def _attempt(job: Job, folder: Path) -> str:
    try:
        if stored(job, folder) is None:  # another command may have run it since
            run_one(job, folder)
    except Exception:
        return traceback.format_exc()
    return ""
