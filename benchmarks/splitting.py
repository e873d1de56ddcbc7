"""The convex methods in full SVDs of the same table, one thread: `python -m benchmarks.convex`.

Times are CPU seconds in one process, each over the time of one SVD of the table (the least of
five), so that they may be compared between machines. The solver before is stopped when it has
reached the objective of the splitting, or after so many times its time. "exact": `ExactCMC` on ten
random tables, beside its matrix-free steps, which a cap on the rank asks for.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from experiments.paper.faithful import ratings, training_cells, training_table
from experiments.paper.synthetic import table
from experiments.ratings import Task
from threadpoolctl import threadpool_limits

from declip import DTrCMC, ExactCMC, TrCMC
from declip.svd import operator_norm

WITHIN = {"TrCMC": 1e-4, "DTrCMC": 1e-3}  # of the objective that the splitting ends with


EXACT = ((150, 240, 5), (300, 400, 8), (60, 80, 3))  # rows, columns, rank


def problem(name: str) -> tuple[Any, Any, float]:
    """Return the cells, the observed table with zeros, and the ceiling."""
    if name == "synthetic":
        task = table(7, 0, "rounded", "full")
        return task.cells, np.nan_to_num(task.data.table), 7.0
    split = Task.of(ratings(name), 1, 0)
    return training_cells(split), training_table(split).toarray(), split.ceiling


class Clock:
    """A callback of the fit: seconds at each sweep, and when to stop."""

    def __init__(self, target: float = -np.inf, at_most: float = np.inf) -> None:
        self.target, self.at_most, self.began = target, at_most, time.process_time()
        self.seconds: list[float] = []

    def __call__(self, state: Any) -> bool:
        self.seconds.append(time.process_time() - self.began)
        return state.history[-1] <= self.target or self.seconds[-1] > self.at_most


def fit(model: Any, cells: Any, clock: Clock) -> np.ndarray:
    """Return the history of a fit."""
    with threadpool_limits(1):
        treated, settled = model._settled(cells.treat(model.clipped))
        return model._solve(treated, settled, on_sweep=clock).history


def first(history: np.ndarray, seconds: list[float], target: float) -> float:
    """Return when the target was reached."""
    reached = np.flatnonzero(history[1:] <= target)
    return seconds[reached[0]] if len(reached) else np.inf


def compare(
    name: str, models: dict[str, Any], solver: str, cells: Any, svd: float, at_most: float
) -> str:
    kind = type(models[solver]).__name__
    clock = Clock()
    ends = fit(models["splitting"], cells, clock)
    target = ends[-1] * (1 + WITHIN[kind])
    ours = first(ends, clock.seconds, target)
    before = Clock(target, at_most * ours)
    theirs = first(fit(models[solver], cells, before), before.seconds, target)
    more = "" if np.isfinite(theirs) else "more than "
    theirs = min(theirs, before.seconds[-1])
    return (
        f"{name:15s} {kind:7s} {ours / svd:7.1f} SVDs; {solver} {more}{theirs / svd:.0f} SVDs: "
        f"{more}{theirs / ours:.1f} times"
    )


def exact_times(seed: int) -> tuple[float, float]:
    """Return the seconds of `ExactCMC`, and by matrix-free steps, to a gap of 1e-4."""
    rng, (n_rows, n_cols, k) = np.random.default_rng(seed), EXACT[seed % len(EXACT)]
    M = rng.normal(1, 0.5, (n_rows, k)) @ rng.normal(1, 0.5, (k, n_cols))
    ceiling = np.quantile(M, rng.choice([0.6, 0.8, 0.9]))
    X = np.where(rng.random(M.shape) < 0.7, np.minimum(M, ceiling), np.nan)
    times = []
    for cap in (None, n_rows):
        began = time.process_time()
        model = ExactCMC(ceiling=ceiling, max_rank=cap, tol=1e-4).fit(X)
        assert model.converged_
        times.append(time.process_time() - began)
    return times[0], times[1]


def exact() -> str:
    with threadpool_limits(1):
        ratios = sorted(b / a for a, b in map(exact_times, range(10)))
    return f"ExactCMC, 10 tables: {ratios[0]:.1f} to {ratios[-1]:.1f} times, median {ratios[5]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.convex", description=__doc__)
    parser.add_argument(
        "data", nargs="*", default=["exact", "synthetic", "MovieLens-100K", "FilmTrust"]
    )
    parser.add_argument(
        "--at-most", type=float, default=25, help="times the seconds of the splitting to wait"
    )
    args = parser.parse_args()
    for name in args.data:
        if name == "exact":
            print(exact(), flush=True)
            continue
        cells, X, ceiling = problem(name)
        with threadpool_limits(1):
            svd = min(timed_svd(X) for _ in range(5))
        alpha = 1e-4 * operator_norm(X)
        tr = {
            s: TrCMC(alpha, solver=s, max_iter=2000, scale="none")
            for s in ("splitting", "proximal")
        }
        print(compare(name, tr, "proximal", cells, svd, args.at_most), flush=True)
        dtr = {
            s: DTrCMC(0.2, 0.2, ceiling=ceiling, solver=s, tol=1e-2, scale="none")
            for s in ("splitting", "subgradient")
        }
        print(compare(name, dtr, "subgradient", cells, svd, args.at_most), flush=True)


def timed_svd(X: np.ndarray) -> float:
    began = time.process_time()
    np.linalg.svd(X, full_matrices=False)
    return time.process_time() - began


if __name__ == "__main__":
    main()
