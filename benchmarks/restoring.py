"""Time and memory of `restore`, beside those of another version of declip in the same run.

    python -m benchmarks.restoring 40x5 100x5 400x5 150x10 2000x100
    python -m benchmarks.restoring 200000x30 --before OTHER/src

Tables of three factors and noise, 30 % of each column at a ceiling, 5 % missing. Each restoration
has a process of its own, with one thread; with ``--before`` the sources in that folder (with their
compiled kernels) take turns with those at hand, so that both see the same machine. Reported are CPU
seconds of `restore` (the least of the rounds), the peak of its memory above what the process held
before it (libraries and input), and against the truth the error of clipped cells relative to the
limit, the coverage of their bands, the gain that is said, and the error of missing cells.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import HERE, ONE_THREAD

__all__ = ["clipped_table", "measured"]

SMALL = ("40x5", "100x5", "400x5", "150x10", "2000x100")
_FACTORS, _NOISE, _CLIPPED, _MISSING = 3, 0.5, 0.3, 0.05


def clipped_table(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a table, the same with clipped and missing cells, and the ceilings."""
    rng, k = np.random.default_rng(seed), min(_FACTORS, m - 1)
    truth = rng.normal(size=(n, k)) @ rng.normal(size=(k, m)) + _NOISE * rng.normal(size=(n, m))
    ceiling = np.quantile(truth, 1 - _CLIPPED, axis=0)
    seen = np.minimum(truth, ceiling)
    seen[rng.random(truth.shape) < _MISSING] = np.nan
    return truth, seen, ceiling


def measured(size: str, seed: int = 0) -> dict[str, Any]:
    """Restore a table in this process; return what it took and how good it is."""
    import declip
    from benchmarks.contenders import forget_peak, peak_mb, resident_mb

    n, m = map(int, size.split("x"))
    warnings.simplefilter("ignore")
    warm = clipped_table(30, 4)
    declip.restore(warm[1], ceiling=warm[2], effort="quick", progress=False)
    truth, seen, ceiling = clipped_table(n, m, seed)
    forget_peak()
    before, began = resident_mb(), time.process_time()
    r = declip.restore(seen, ceiling=ceiling, progress=False)
    seconds = time.process_time() - began
    return {
        "size": size,
        "cpu_seconds": seconds,
        "peak_mb_above": peak_mb() - before,
        **_quality(r, truth, seen, ceiling),
    }


def _quality(r: Any, truth: np.ndarray, seen: np.ndarray, ceiling: np.ndarray) -> dict[str, Any]:
    clipped, missing = seen >= ceiling, np.isnan(seen)
    error, left = r.table - truth, np.minimum(truth, ceiling) - truth
    held = (r.lower <= truth) & (truth <= r.upper)
    return {
        "error": float(_rms(error[clipped]) / _rms(left[clipped])),
        "coverage": float(held[clipped].mean()),
        "said_gain": r.expected_gain,
        "missing_error": float(_rms(error[missing])),
        "missing_coverage": float(held[missing].mean()),
        "weights": r.chosen["weights"],
    }


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _in_process(size: str, source: Path | None) -> dict[str, Any]:
    """Measure a restoration in a process of its own, by these sources or others."""
    path = {} if source is None else {"PYTHONPATH": str(source.resolve())}
    code = f"import json, benchmarks.restoring as b; print(json.dumps(b.measured({size!r})))"
    made = subprocess.run(
        [sys.executable, "-c", code],
        cwd=HERE.parent,
        env=os.environ | ONE_THREAD | path,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(made.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("size", nargs="*", default=SMALL, help="rows x columns, such as 400x5")
    parser.add_argument("--before", type=Path, help="sources of another version to measure too")
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    versions = {"now": None} | ({"before": asked.before} if asked.before else {})
    for size in asked.size:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in versions}
        for _ in range(asked.rounds):
            for name, source in versions.items():
                found[name].append(_in_process(size, source))
        best = {n: min(runs, key=lambda run: run["cpu_seconds"]) for n, runs in found.items()}
        for name, run in best.items():
            print(name, json.dumps(run), flush=True)
        if asked.before:
            ratio = best["before"]["cpu_seconds"] / best["now"]["cpu_seconds"]
            print(f"{size}: {ratio:.2f} times as fast as before", flush=True)


if __name__ == "__main__":
    main()
