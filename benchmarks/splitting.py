"""The splitting beside the solvers that were before it, in full SVDs of the same table, one thread.

Times are CPU seconds in one process; over the time of one SVD of the table (the least of five) they
may be compared between machines. The solver before is stopped when it has reached the objective of
the splitting, or after so many times its time. `ExactCMC` is run on random tables, beside its
matrix-free steps, which a cap on the rank asks for.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from experiments.paper.faithful import ratings, training_cells, training_table
from experiments.paper.synthetic import table
from experiments.ratings import Task
from threadpoolctl import threadpool_limits

from declip import DTrCMC, ExactCMC, TrCMC
from declip.svd import operator_norm

__all__ = ["splitting"]

WITHIN = {"TrCMC": 1e-4, "DTrCMC": 1e-3}  # of the objective that the splitting ends with
EXACT = ((150, 240, 5), (300, 400, 8), (60, 80, 3))  # rows, columns, rank


def splitting(quick: bool) -> dict[str, Any]:
    """Seconds of the splitting and of the solvers before to the same objective, in SVDs."""
    names = ["synthetic"] if quick else ["synthetic", "MovieLens-100K", "FilmTrust"]
    at_most, tables = (3, 1) if quick else (21, 10)
    fits = []
    for name in names:
        try:
            fits += on_data(name, quick, at_most)
        except OSError as error:
            print(f"{name} is left out: {error}", flush=True)
    return {
        "fits": fits,
        "exact": sorted(before / ours for ours, before in map(exact_times, range(tables))),
    }


def on_data(name: str, quick: bool, at_most: float) -> list[dict[str, Any]]:
    """Return both methods on one data set, at the penalties of the paper and of its grid."""
    cells, X, ceiling = problem(name, quick)
    svd = min(svd_seconds(X) for _ in range(5))
    alpha = 1e-4 * operator_norm(X)
    tr = {s: TrCMC(alpha, solver=s, max_iter=2000, scale="none") for s in ("splitting", "proximal")}
    dtr = {
        s: DTrCMC(0.2, 0.2, ceiling=ceiling, solver=s, tol=1e-2, scale="none")
        for s in ("splitting", "subgradient")
    }
    said = {"data": name, "svd": svd, "at_most": at_most}
    return [said | compare(models, cells, at_most) for models in (tr, dtr)]


def problem(name: str, quick: bool) -> tuple[Any, Any, float]:
    """Return the cells, the observed table with zeros, and the ceiling."""
    if name == "synthetic":
        task = table(7, 0, "rounded", "quick" if quick else "full")
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


def first(history: np.ndarray, seconds: list[float], target: float) -> float | None:
    """Return when the target was reached."""
    reached = np.flatnonzero(history[1:] <= target)
    return seconds[reached[0]] if len(reached) else None


def compare(models: dict[str, Any], cells: Any, at_most: float) -> dict[str, Any]:
    """Return the seconds of both solvers to an objective, and which of them reached it."""
    solver, method = list(models)[1], type(models["splitting"]).__name__
    clock = Clock()
    ends = fit(models["splitting"], cells, clock)
    target = ends[-1] * (1 + WITHIN[method])
    ours = first(ends, clock.seconds, target)
    before = Clock(target, at_most * ours)
    theirs = first(fit(models[solver], cells, before), before.seconds, target)
    return {
        "method": method,
        "within": WITHIN[method],
        "cpu": ours,
        "solver_before": solver,
        "reached": theirs is not None,
        "cpu_before": theirs or before.seconds[-1],
    }


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


def svd_seconds(X: np.ndarray) -> float:
    """Return the CPU seconds of one full decomposition."""
    began = time.process_time()
    np.linalg.svd(X, full_matrices=False)
    return time.process_time() - began
