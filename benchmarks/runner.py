"""Runs of the contenders, each in its own process, and where their results are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.shapes import ratings
from declip.environment import environment

__all__ = ["RESULTS", "keep", "kept", "per_epoch", "run", "stopwatch"]

HERE = Path(__file__).parent
RESULTS = HERE / "results"
# Libraries keep to one thread; declip's own threads are an argument.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "RAYON", "LK")}
PEERS = ("cmfrec", "implicit", "lenskit", "fancyimpute")


def run(name: str, shape: str, k: int, epochs: int, *more: str) -> dict[str, Any]:
    """Return what one fit took, measured in a process of its own."""
    ratings(shape)
    what = name, shape, str(k), str(epochs), *more
    command = [sys.executable, "-m", "benchmarks.contenders", *what]
    done = subprocess.run(
        command, cwd=HERE.parent, env=os.environ | ONE_THREAD, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def per_epoch(
    names: list[str], shape: str, k: int, epochs: tuple[int, int], rounds: int
) -> list[dict[str, Any]]:
    """Return the seconds an epoch of each contender; start-up and ending cancel out.

    Every round runs all contenders, every other round in reverse order; the least disturbed round
    counts. The epochs of declip are short, so that it makes three times as many.
    """
    few, many = epochs
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for i in range(rounds):
        for name in names if i % 2 == 0 else names[::-1]:
            n = (many - few) * (3 if name.startswith("declip") else 1)
            short, long = run(name, shape, k, few), run(name, shape, k, few + n)
            seconds = {what: (long[what] - short[what]) / n for what in ("cpu", "wall")}
            found[name].append({**long, **seconds})
            print(f"{shape} k={k} {name}: {seconds['cpu']:.3f} s an epoch", flush=True)
    return [_least(found[name]) for name in names]


def _least(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(rounds, key=lambda r: r["cpu"])
    return {**ordered[0], "all_cpu": [r["cpu"] for r in ordered]}


def keep(name: str, results: Any) -> None:
    """Write the results of one study, with what they were measured on."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({**environment(PEERS), "results": results}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def kept(name: str) -> dict[str, Any] | None:
    """Return the results of one study, if there are any."""
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


@contextmanager
def stopwatch() -> Iterator[dict[str, float]]:
    """Measure CPU and wall seconds of a block."""
    found: dict[str, float] = {}
    cpu, wall = time.process_time(), time.perf_counter()
    yield found
    found |= {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
