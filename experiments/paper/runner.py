"""Runs, each a line that says what was run: in two processes, resumable, the same every time.

A study is a module with ``jobs(quick)``, what there is to run, the most telling first, and
``run(**settings)``, which returns what was found. Its runs are one file of JSON Lines; what is
there with the same settings is not run again.
"""

from __future__ import annotations

import importlib
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
from typing import Any

from experiments.common import RESULTS, Runs, as_stored, progress

from declip.environment import environment

__all__ = [
    "FULL",
    "QUICK",
    "Job",
    "changed",
    "found",
    "run_again",
    "run_all",
    "run_and_keep",
    "run_one",
    "stored",
    "to_do",
]

FULL, QUICK = RESULTS / "paper", RESULTS / "quick-paper"
_OF_THE_DAY = ("seconds", "cpu", "date", "machine", "versions")  # what a rerun may change
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


@dataclass(frozen=True)
class Job:
    """One run: the study, what tells it from others (its name), its settings, and its turn."""

    study: str
    name: str
    settings: dict[str, Any]
    turn: float = 0.0  # the lowest is run first

    def runs(self, folder: Path) -> Runs:
        return Runs(folder / f"{self.study}.jsonl")


def stored(job: Job, folder: Path) -> dict[str, Any] | None:
    """Return the result of a job, None if it was not run with these settings."""
    return job.runs(folder).with_settings(job.name, job.settings)


def found(jobs: Iterable[Job], folder: Path) -> list[dict[str, Any]]:
    """Return the results of the jobs that have been run."""
    results = (result for _, result in _looked_up(jobs, folder))
    return [result for result in results if result is not None]


def _looked_up(jobs: Iterable[Job], folder: Path) -> Iterator[tuple[Job, dict[str, Any] | None]]:
    """Give each job with its result, None without one; each file is read once."""
    read: dict[str, dict[str, Any]] = {}
    for job in jobs:
        if job.study not in read:
            read[job.study] = job.runs(folder).read()
        result = read[job.study].get(job.name)
        same = result is not None and result["settings"] == as_stored(job.settings)
        yield job, result if same else None


def run_one(job: Job) -> dict[str, Any]:
    """Run a job; return its result, with the seconds that it took."""
    study = importlib.import_module(f"experiments.paper.{job.study}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows without exact cells, caps of sweeps
        wall, cpu = time.perf_counter(), time.process_time()
        result = study.run(**as_stored(job.settings))
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    seconds = {name: round(value, 3) for name, value in seconds.items()}
    return as_stored({"settings": job.settings, **environment(), "seconds": seconds, **result})


def run_and_keep(job: Job, folder: Path) -> dict[str, Any]:
    result = run_one(job)
    job.runs(folder).add(job.name, result)
    return result


def changed(job: Job, folder: Path) -> dict[str, tuple[Any, Any]]:
    """Run a job that has a result again; return the figures that differ, before and after."""
    before, after = (dict(_figures(result)) for result in (stored(job, folder), run_one(job)))
    pairs = {name: (x, after.get(name)) for name, x in before.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _figures(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Give what is in a result, by its path, without what depends on the day."""
    if isinstance(result, dict | list):
        inside = result.items() if isinstance(result, dict) else enumerate(result)
        for key, x in inside:
            if key not in _OF_THE_DAY:
                yield from _figures(x, f"{name}.{key}" if name else str(key))
    else:
        yield name, result


def run_again(
    jobs: Sequence[Job], folder: Path, n: int, workers: int = 2
) -> Iterator[tuple[Job, dict[str, tuple[Any, Any]]]]:
    """Run some of the jobs that have a result again; give each, and what is `changed`."""
    timeless = [job for job in jobs if job.study != "times"]
    made = [job for job, result in _looked_up(timeless, folder) if result is not None]
    some = random.sample(made, min(n, len(made)))
    with _pool(workers) as pool:
        yield from zip(some, pool.map(changed, some, [folder] * len(some)), strict=True)


def to_do(jobs: Iterable[Job], folder: Path) -> list[Job]:
    """Return the jobs that have not been run."""
    return [job for job, result in _looked_up(jobs, folder) if result is None]


def is_new(job: Job, folder: Path) -> bool:
    """Say whether there is no result of its name, not even one of other settings."""
    return job.name not in job.runs(folder).read()


def run_all(jobs: Sequence[Job], folder: Path, workers: int = 2) -> list[tuple[Job, str]]:
    """Run what has no result yet; return the jobs that failed, with the reason."""
    todo, failed = sorted(to_do(jobs, folder), key=lambda job: job.turn), []
    with progress() as bar:
        task = bar.add_task("paper", total=len(jobs), completed=len(jobs) - len(todo))
        for job, error in _outcomes(todo, folder, workers):
            bar.update(task, advance=1, description=f"{job.study} {job.name}")
            if error:
                bar.print(f"{job.study} {job.name} failed: {error.splitlines()[-1]}")
                failed.append((job, error))
    for path in {job.runs(folder).path for job in todo}:
        Runs(path).sort()
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
            run_and_keep(job, folder)
    except Exception:
        return traceback.format_exc()
    return ""
