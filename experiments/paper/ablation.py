"""What the second trace norm of DTr adds: every pair of the paper's grid, each to the end.

On tables of 150 x 240 and rank 10, where that is cheap. The paper's own descent is run on some
pairs as well: its steps, and those of the authors' code, stop short of a minimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from experiments.paper.runner import Job
from experiments.paper.synthetic import SIX, Table, Unmoved, dtr_fit, named, table

from declip.penalties import ClippedTraceNorm, TraceNorm
from declip.solvers import ClippedTraceProblem, Limits, limit_model

THRESHOLDS = (5, 6, 7, 8, 9)
SEEDS = range(3)
SIZE = "quick"
HOW = {"max_iter": 2000, "tol": 1e-3}
STEPS = (0.5, 1.0, 1.5)  # the paper's first steps
PAIRS = ((0.2, 0.2),)
N_STEPS, DECAY, FLOOR = 1000, 0.99, 0.4


def rounded(errors: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{x:.5g}") for name, x in errors.items()}


def whole_grid(task: Table) -> dict[str, Any]:
    points = [{**named((0.0, 0.0)), **rounded(task.errors(Unmoved(task).reconstruct()))}]
    for pair in product(SIX[1:], SIX):
        model = dtr_fit(task, "hinge", pair, HOW)
        how = {"converged": bool(model.converged_), "objective": round(model.objective_, 3)}
        points.append({**named(pair), **rounded(task.errors(model.reconstruct())), **how})
    return {"grid": points}


def problem(task: Table, pair: tuple[float, float]) -> ClippedTraceProblem:
    limits = Limits(*(np.full((1, 1), x) for x in (-np.inf, float(task.data.ceiling))))
    return ClippedTraceProblem(task.cells, TraceNorm(pair[0]), ClippedTraceNorm(pair[1], limits))


def descended(task: Table, pair: tuple[float, float], steps: Iterator[float]) -> dict[str, Any]:
    """Follow the paper's descent; return the last iterate, and the one with the least objective."""
    it = problem(task, pair)
    start = limit_model(task.cells, it.clipped_penalty.limits, 1.0)
    now, least, best = it.at(start, None), np.inf, start
    for eta in steps:
        found = it.step(now, eta)
        now = it.at(type(start).from_svd(found), now.clip.V)
        value = it.value(now, found.S)
        if value < least:
            least, best = value, now.X
    shown = {"last": now.X, "best": best}
    return {
        "objective": round(least, 3),
        **{name: rounded(task.errors(X.block())) for name, X in shown.items()},
    }


def of_the_paper(first: float) -> Iterator[float]:
    return (first * DECAY**t for t in range(N_STEPS))


def of_the_code(first: float) -> Iterator[float]:
    """Steps with a floor, for a loss without the factor 1/2: twice the step, half the penalties."""
    return (2 * max(eta, FLOOR) for eta in of_the_paper(first))


def descents(task: Table) -> dict[str, Any]:
    points = []
    for pair in PAIRS:
        for first in STEPS:
            point = {**named(pair), "first_step": first, "steps": "paper"}
            points.append({**point, **descended(task, pair, of_the_paper(first))})
        half = pair[0] / 2, pair[1] / 2
        point = {**named(pair), "first_step": 1.0, "steps": "code"}
        points.append({**point, **descended(task, half, of_the_code(1.0))})
    return {"descents": points}


def run(C: float, seed: int, what: str) -> dict[str, Any]:
    task = table(C, seed, "rounded", SIZE)
    rates = {"share_above": task.data.clip_rate, "share_at_or_above": task.data.at_limit_rate}
    return {**rates, **(whole_grid(task) if what == "grid" else descents(task))}


def jobs(quick: bool) -> list[Job]:
    cases = [(C, seed, "grid") for seed, C in product(SEEDS, THRESHOLDS)] + [(7, 0, "descents")]
    if quick:
        cases = [(8, 0, "grid")]
    return [
        Job(
            "ablation",
            f"{what}-C{C}-seed{seed}",
            {"C": C, "seed": seed, "what": what},
            10 * seed + 1,
        )
        for C, seed, what in cases
    ]
