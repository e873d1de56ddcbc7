"""The rating tasks as the paper prints them (its Table 3): F1 at a fixed threshold.

Settings are chosen by the F1 of the validation cells, for each split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from experiments.paper import nnls
from experiments.paper.runner import Job
from experiments.paper.synthetic import TREATMENT, Point
from experiments.ratings import DATA, Task
from scipy.sparse import csr_array

from declip import FroCMC, Intervals, TrCMC
from declip.lowrank import LowRank
from declip.penalties import ClippedTraceNorm, TraceNorm
from declip.solvers import (
    ClippedTraceProblem,
    Limits,
    Solution,
    Stopping,
    limit_model,
    subgradient_descent,
)
from declip.svd import operator_norm

SEEDS = range(5)
CAP = 25  # rank of the capped Tr methods
METHODS = (
    *("Fro-CMC", "Fro-MC", "Tr-CMC", "Tr-MC", "DTr-CMC"),
    *("Tr-CMC, uncapped", "Tr-MC, uncapped", "Tr-CMC, at the minimum"),
    "Tr-CMC, rank as in NNLS",
)
FRO_GRID = {
    "k": (24, 28, 32, 36, 40),
    "alpha": (0.1, 0.01, 0.001),
    "rungs": ((25, 15), (100, 15), (500, 1)),  # sweeps, and how many settings are given so many
}
TR_GRID = {"share": 1e-4, "max_iter": (100, 500), "tol": 0.0}
OTHER_TR_GRIDS = {
    "uncapped": {**TR_GRID, "max_iter": (100,)},
    "at the minimum": {**TR_GRID, "max_iter": (2000,), "tol": 1e-3},
    "rank as in NNLS": TR_GRID,
}
DTR_GRID = {
    "penalties": ((1.0, 1.0),),
    "first_step": 1.5,
    "max_rank": None,
    "stops": (10, 20, 30, 40, 50, 60, 80, 100),
    "patience": 1,
}
QUICK_GRIDS = {
    "Fro": {"k": (24, 32), "alpha": (0.1, 0.01), "rungs": ((10, 4), (50, 1))},
    "Tr": {"share": 1e-4, "max_iter": (30,), "tol": 0.0},
    "DTr": {**DTR_GRID, "max_rank": 50, "stops": (10, 20)},
}
GRIDS = {"Fro": FRO_GRID, "Tr": TR_GRID, "DTr": DTR_GRID}


def training_cells(task: Task) -> Intervals:
    return task.intervals(task.ceiling)


def training_table(task: Task) -> csr_array:
    data, train = task.ratings, task.train
    values = np.minimum(data.values[train], task.ceiling)
    return csr_array((values, (data.rows[train], data.cols[train])), shape=data.shape)


def raced(
    settings: list[dict[str, Any]],
    fit: Callable[[dict[str, Any], int], Any],
    score: Callable[[Any], float],
    rungs: list[list[int]],
) -> Iterator[Point]:
    """Fit all settings a little, the best of them more, and so on."""
    left = list(settings)
    for n_iter, n_best in rungs:
        fitted = []
        for point in left[:n_best]:
            model = fit(point, n_iter)
            yield {**point, "max_iter": n_iter}, model
            fitted.append((score(model), point))
        left = [point for _, point in sorted(fitted, key=lambda pair: -pair[0])]


def fro(task: Task, clipped: str, grid: dict[str, Any], score: Any, seed: int) -> Iterator[Point]:
    cells = training_cells(task)

    def fit(point: dict[str, Any], n_iter: int) -> FroCMC:
        how = {"clipped": clipped, "max_iter": n_iter, "random_state": seed, "tol": 1e-6}
        return FroCMC(point["k"], alpha=point["alpha"], **how, scale="none").fit(cells)

    points = [{"k": k, "alpha": alpha} for k, alpha in product(grid["k"], grid["alpha"])]
    return raced(points, fit, score, grid["rungs"])


def trace(
    task: Task,
    clipped: str,
    grid: dict[str, Any],
    score: Any,
    seed: int,
    max_rank: int | None = None,
    solver: str = "proximal",
) -> Iterator[Point]:
    """Fit the one penalty of the paper, for its two numbers of iterations.

    They stop the proximal solver long before the minimum, which is part of the method.
    """
    cells = training_cells(task)
    alpha = grid["share"] * operator_norm(training_table(task))
    for n_iter in grid["max_iter"]:
        model = TrCMC(
            alpha,
            clipped=clipped,
            max_rank=max_rank,
            solver=solver,
            max_iter=n_iter,
            tol=grid["tol"],
            scale="none",
        )
        yield {"alpha": alpha, "max_iter": n_iter}, model.fit(cells)


def trace_by_nnls(
    task: Task, clipped: str, grid: dict[str, Any], score: Any, seed: int
) -> Iterator[Point]:
    """Fit the same, with the rank that an iteration keeps set as in the paper's solver."""
    cells, norm = training_cells(task).treat(clipped), operator_norm(training_table(task))
    alpha = grid["share"] * norm
    for n_iter, model in nnls.iterates(cells, alpha, norm, grid["max_iter"]):
        yield {"alpha": alpha, "max_iter": n_iter}, Stopped(model, n_iter)


def dtr(task: Task, clipped: str, grid: dict[str, Any], score: Any, seed: int) -> Iterator[Point]:
    """Fit pairs of penalties, each stopped after several numbers of steps on its way.

    A fit ends when its score has been below the best one so many times in a row.
    """
    cells = training_cells(task).treat(clipped).astype(np.float32)
    limits = Limits(*(np.full((1, 1), x, np.float32) for x in (-np.inf, task.ceiling)))
    for alpha, alpha_clipped in grid["penalties"]:
        stops: list[Point] = []
        scores: list[float] = []

        def keep(state: Solution) -> bool:
            if state.n_iter in grid["stops"]:
                how = {"alpha": alpha, "alpha_clipped": alpha_clipped, "max_iter": state.n_iter}  # noqa: B023
                stops.append((how, Stopped(state.model, state.n_iter)))  # noqa: B023
                scores.append(score(stops[-1][1]))  # noqa: B023
            since_best = len(scores) - 1 - int(np.argmax(scores)) if scores else 0  # noqa: B023
            return state.n_iter >= max(grid["stops"]) or since_best >= grid["patience"]

        penalties = TraceNorm(alpha), ClippedTraceNorm(alpha_clipped, limits)
        problem = ClippedTraceProblem(cells, *penalties, grid["max_rank"])
        start, stopping = limit_model(cells, limits, 1.0), Stopping(1000, 1e-6, keep)
        subgradient_descent(problem, start, stopping, grid["first_step"])
        yield from stops


class Stopped:
    """A fit that was stopped on its way, as an estimator shows itself."""

    def __init__(self, model: LowRank, n_iter: int) -> None:
        self.model, self.n_iter_ = model, n_iter
        self.components_ = model.Q.T

    def predict(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self.model.predict(rows.astype(np.int32), cols.astype(np.int32))


def fits_of(method: str) -> tuple[Callable[..., Iterator[Point]], str]:
    """Return how a method is fitted, and how it treats clipped cells."""
    name, _, how = method.partition(", ")
    family, kind = name.split("-")
    fits_trace = {
        "": partial(trace, max_rank=CAP),
        "uncapped": trace,
        "at the minimum": partial(trace, solver="splitting"),
        "rank as in NNLS": trace_by_nnls,
    }
    return {"Fro": fro, "Tr": fits_trace[how], "DTr": dtr}[family], TREATMENT[kind]


@lru_cache(maxsize=2)
def ratings(name: str) -> Any:
    return DATA[name]()


def run(data: str, task: int, seed: int, method: str, grid: dict[str, Any]) -> dict[str, Any]:
    split = Task.of(ratings(data), task, seed)

    def predict(model: Any) -> np.ndarray:
        return model.predict(split.ratings.rows, split.ratings.cols)

    def score(model: Any) -> float:
        return split.printed_f1(predict(model), split.validation)

    fits, clipped = fits_of(method)
    points = [
        {
            **settings,
            **scores(split, predict(model)),
            "n_iter": model.n_iter_,
            "rank": int(model.components_.shape[0]),
        }
        for settings, model in fits(split, clipped, grid, score, seed)
    ]
    share = float(split.high[split.test].mean())
    return {
        "share_high": share,
        "all_positive_f1": 2 * share / (1 + share),  # precision = share, recall = 1
        "chosen": max(points, key=lambda point: point["validation"]),
        "grid": points,
    }


def scores(split: Task, prediction: np.ndarray) -> dict[str, float]:
    """Return what chooses, F1 as printed, and what a ranking is judged by."""
    return {
        "validation": split.printed_f1(prediction, split.validation),
        "test": split.printed_f1(prediction, split.test),
        "test_tuned": split.f1(prediction),
        **split.scores(prediction, split.test),
    }


def jobs(quick: bool) -> list[Job]:
    """Return the runs; the uncapped methods, which are slow, are last, with one split."""
    found = []
    grids = QUICK_GRIDS if quick else GRIDS
    for i, method in enumerate(METHODS):
        name, _, how = method.partition(", ")
        if quick and how:
            continue
        grid = OTHER_TR_GRIDS[how] if how else grids[name.split("-")[0]]
        seeds = SEEDS[:1] if quick or how else SEEDS
        for seed, data, task in product(seeds, DATA, (1, 2)):
            settings = {"data": data, "task": task, "seed": seed, "method": method}
            of_run = f"{data}-task{task}-seed{seed}-{method.replace(', ', '-')}"
            found.append(Job("faithful", of_run, {**settings, "grid": grid}, _turn(i, seed)))
    return found


def _turn(method: int, seed: int) -> float:
    name, _, how = METHODS[method].partition(", ")
    return 10 * seed + (9 if how else 5 if name == "DTr-CMC" else 2 + method / 10)
