"""The rating tasks beyond the paper: offsets, a censored likelihood, and honest thresholds.

Unlike the paper, cells are ranked by their prediction, the threshold of F1 is chosen on the
validation cells and never on the test cells, the penalties by the mean average precision (AP)
there, one setting for all splits.

A whole number v stands for [v - 1/2, v + 1/2): for Tobit a rating at the ceiling C is at least
C - 1/2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from experiments.common import mean_and_error
from experiments.paper.faithful import ratings
from experiments.paper.runner import Job
from experiments.ratings import DATA, Task
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder

from declip import FroCMC

SEEDS = range(5)
FACTOR_GRID = [
    {"k": 20, "alpha": a, "alpha_bias": b} for a, b in product((8, 16, 24, 32), (1, 2, 4))
]
OFFSET_GRID = [{"alpha": a} for a in (1, 2, 4, 8, 16)]
QUICK_GRID = [{"k": 20, "alpha": a, "alpha_bias": 2} for a in (8, 24)]
METRICS = ("F1", "AP", "AUC")

Predictions = Iterator[tuple[dict[str, Any], np.ndarray]]


def offsets(task: Task, grid: list[dict[str, Any]]) -> Predictions:
    """Predict by a mean and ridge-penalised offsets of users and items, clipped at face value."""
    data, train = task.ratings, task.train
    cells = np.column_stack([data.rows, data.cols])
    X = OneHotEncoder(categories=[np.arange(n) for n in data.shape]).fit_transform(cells)
    y = np.minimum(data.values, task.ceiling)
    for point in grid:
        model = Ridge(point["alpha"], solver="sparse_cg", tol=1e-6).fit(X[train], y[train])
        yield point, model.predict(X)


def factors(clipped: str, below: float) -> Callable[[Task, list[dict[str, Any]]], Predictions]:
    """Return predictions by FroCMC with offsets and the cut so much below the ceiling."""

    def predictions(task: Task, grid: list[dict[str, Any]]) -> Predictions:
        cells = task.intervals(task.ceiling - below)
        for point in grid:
            model = FroCMC(
                point["k"],
                clipped=clipped,
                alpha=point["alpha"],
                alpha_bias=point["alpha_bias"],
                bias=True,
                random_state=0,
                scale="none",
                tol=1e-6,
            ).fit(cells)
            yield point, model.predict(task.ratings.rows, task.ratings.cols)

    return predictions


MODELS = {
    "bias only": offsets,
    "bias + MC": factors("value", 0.0),
    "bias + hinge": factors("hinge", 0.0),
    "bias + Tobit": factors("tobit", 0.5),
}


def run(data: str, task: int, seed: int, model: str, grid: list[dict[str, Any]]) -> dict[str, Any]:
    split = Task.of(ratings(data), task, seed)
    points = [
        {
            **point,
            "validation": split.scores(prediction, split.validation),
            "test": {"F1": split.f1(prediction), **split.scores(prediction, split.test)},
        }
        for point, prediction in MODELS[model](split, grid)
    ]
    return {"share_high": float(split.high[split.test].mean()), "grid": points}


def jobs(quick: bool) -> list[Job]:
    found = []
    for seed, data, task, model in product(SEEDS[:1] if quick else SEEDS, DATA, (1, 2), MODELS):
        many = QUICK_GRID if quick else FACTOR_GRID
        grid = OFFSET_GRID if model == "bias only" else many
        settings = {"data": data, "task": task, "seed": seed, "model": model, "grid": grid}
        name = f"{data}-task{task}-seed{seed}-{model.replace(' ', '')}"
        found.append(Job("beyond", name, settings, 10 * seed + 3))
    return found


def chosen(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over the splits, at the setting with the best mean validation AP."""
    AP = np.array([[p["validation"]["AP"] for p in r["grid"]] for r in results]).mean(axis=0)
    best = int(AP.argmax())
    tests = [r["grid"][best]["test"] for r in results]
    scores = {metric: mean_and_error([test[metric] for test in tests]) for metric in METRICS}
    return {"setting": results[0]["settings"]["grid"][best], "seeds": len(results), **scores}
