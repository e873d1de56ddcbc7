"""FroCMC on two Dask workers beside the fit in memory on two threads, and the traffic of clusters.

``python -m benchmarks.distributed [speed] [traffic]`` writes results/distributed.json and prints
the tables; the 20 M ratings take some minutes on a quiet machine. ``--quick`` takes small ones.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.runner import HERE, keep, kept
from benchmarks.shapes import SHAPES, ratings

SWEEPS = (2, 8)
THREADS = 2
HOW = {"alpha": 5.0, "random_state": 0, "tol": 0.0}


def blocks_of(shape: str, n_blocks: int) -> Path:
    """Return the folder of the blocks of a shape; made once."""
    from declip import prepare_blocks

    folder = Path(tempfile.gettempdir()) / "declip-benchmarks" / f"blocks-{shape}-{n_blocks}"
    if not (folder / "manifest.json").exists():
        prepare_blocks(ratings(shape).intervals(), folder, n_blocks=n_blocks)
    return folder


def timed(
    fit: Callable[[int], Any], cpu: Callable[[], float] = time.process_time
) -> dict[str, Any]:
    """Return the seconds of a fit of many sweeps, and of one sweep: long less short fit."""
    seconds, used, model = [], [], None
    for sweeps in SWEEPS:
        begin, cpu_begin = time.perf_counter(), cpu()
        model = fit(sweeps)
        seconds.append(time.perf_counter() - begin)
        used.append(cpu() - cpu_begin)
    sweep, cpu_sweep = ((s[1] - s[0]) / (SWEEPS[1] - SWEEPS[0]) for s in (seconds, used))
    return {
        "seconds": seconds[1],
        "cpu": used[1],
        "sweep": sweep,
        "cpu_sweep": cpu_sweep,
        "objective": model.objective_,
    }


def in_memory(shape: str, k: int) -> dict[str, Any]:
    from declip import FroCMC

    cells = ratings(shape).intervals()
    found = timed(lambda n: FroCMC(k, **HOW, max_iter=n, n_jobs=THREADS).fit(cells))
    return found | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}


def by_memory_map(shape: str, k: int, n_blocks: int) -> dict[str, Any]:
    from declip import FroCMC

    folder = blocks_of(shape, n_blocks)
    found = timed(lambda n: FroCMC(k, **HOW, max_iter=n, n_jobs=THREADS).fit(folder))
    return found | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}


def peak_memory() -> tuple[float, float]:
    """Return the most memory that this process ever held, and what is private of it now, in MB."""
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return tuple(int(status[name].split()[0]) / 1e3 for name in ("VmHWM", "RssAnon"))


def received(dask_worker: Any) -> int:
    """Return the bytes that a worker got from other workers."""
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def on_dask(shape: str, k: int, n_blocks: int, n_workers: int) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    from declip.dask import FroCMC

    folder = blocks_of(shape, n_blocks)
    traffic = []

    def fit(n: int) -> Any:
        before = sum(client.run(received).values())
        model = FroCMC(k, **HOW, max_iter=n, checkpoint_every=5).fit(str(folder))
        traffic.append(sum(client.run(received).values()) - before)
        return model

    how = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**how) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers)
        found = timed(
            fit, lambda: time.process_time() + sum(client.run(time.process_time).values())
        )
        peaks = client.run(peak_memory)
    sweep = (traffic[1] - traffic[0]) / (SWEEPS[1] - SWEEPS[0])
    return found | {
        "workers": n_workers,
        "blocks": n_blocks,
        "peak_mb": max(total for total, _ in peaks.values()),
        "traffic_mb": sweep / 1e6,
        "formula_mb": formula(SHAPES[shape][1], k, n_workers, 4) / 1e6,
    }


def formula(n_cols: int, k: int, n_workers: int, itemsize: int) -> float:
    """Return the bytes that a sweep sends between workers.

    To and from all but one worker: the sums k (k + 3) / 2, the columns before and after the step
    with one sweep earlier 4 k, the step k and its slope, and 6 numbers on the censored cells.
    """
    sums, factors = k * (k + 3) / 2, 5 * k
    return (n_workers - 1) * n_cols * (itemsize * (sums + factors) + 8 * (1 + 6))


STUDIES = {"in_memory": in_memory, "by_memory_map": by_memory_map, "on_dask": on_dask}


def alone(name: str, *args: Any) -> dict[str, Any]:
    """Return what a study gives in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.distributed", name, *map(str, args)]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    found = {"study": name, "shape": args[0], "k": args[1]}
    found |= json.loads(done.stdout.splitlines()[-1])
    print(found, flush=True)
    return found


def speed(quick: bool) -> list[dict[str, Any]]:
    shape = "200k" if quick else "20m"
    ratings(shape)
    for n_blocks in (2, 4):
        blocks_of(shape, n_blocks)
    return [
        alone("in_memory", shape, 40),
        alone("on_dask", shape, 40, 2, 2),
        alone("on_dask", shape, 40, 4, 2),
        alone("by_memory_map", shape, 40, 4),
    ]


def traffic(quick: bool) -> list[dict[str, Any]]:
    ranks = (10,) if quick else (10, 40)
    return [alone("on_dask", "200k", k, workers, workers) for k in ranks for workers in (2, 3, 4)]


PARTS = {"speed": speed, "traffic": traffic}


def main(arguments: list[str]) -> None:
    quick = "--quick" in arguments
    before = kept("distributed")
    results = {} if quick or before is None else before["results"]
    for name in [name for name in PARTS if name in arguments] or PARTS:
        results[name] = PARTS[name](quick)
        if not quick:
            keep("distributed", results)
    print(table(results))


def table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    timed = results.get("speed", [])
    lines = [
        "| fit | s in all | against memory | CPU s a sweep | peak MB a process | objective |",
        "|---|---|---|---|---|---|",
    ]
    for r in timed:
        name = r["study"].replace("_", " ") + (f", {r['blocks']} blocks" if "blocks" in r else "")
        lines.append(
            f"| {name} | {r['seconds']:.1f} | {r['seconds'] / timed[0]['seconds']:.2f}x | "
            f"{r['cpu_sweep']:.2f} | "
            f"{r['peak_mb']:.0f} | {r['objective']:.6g} |"
        )
    lines += ["", "| k | workers | MB a sweep | formula |", "|---|---|---|---|"]
    for r in results.get("traffic", []):
        lines.append(
            f"| {r['k']} | {r['workers']} | {r['traffic_mb']:.2f} | {r['formula_mb']:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1 and sys.argv[1] in STUDIES:
        name, shape, *numbers = sys.argv[1:]
        print(json.dumps(STUDIES[name](shape, *map(int, numbers))))
    else:
        main(sys.argv[1:])
