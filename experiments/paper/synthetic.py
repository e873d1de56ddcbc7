"""The synthetic task of the paper (its Figure 3): restore a clipped 500 x 800 matrix of rank 30.

Cells are split .8 / .1 / .1 into training, validation and test cells; training cells are clipped at
C. Settings are chosen by the relative RMSE after clipping on the validation cells, for each run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from experiments.paper.runner import Job
from numpy.typing import NDArray

from declip import DTrCMC, FroCMC, Intervals, TrCMC
from declip.datasets import ClippedLowRank, make_clipped_low_rank, split_cells
from declip.metrics import clipped_relative_rmse, relative_rmse
from declip.svd import operator_norm

THRESHOLDS = (7, 6, 5, 8, 9, 11, 13)  # the most telling first
METHODS = ("Fro-CMC", "Tr-CMC", "Fro-MC", "Fro-MCi", "Tr-MC", "Tr-MCi", "DTr-CMC")
TREATMENT = {"CMC": "hinge", "MC": "value", "MCi": "missing"}
SEEDS = range(5)
SIZES = {"full": (500, 800, 30), "quick": (150, 240, 10)}

# The paper's grids. Ranks are raced: before each penalty only so many go on, the best on the
# validation cells; at first after a few sweeps. So are the pairs of penalties of DTr.
SIX = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
GRIDS = {
    "full": {
        "Fro": {
            **{"k": tuple(range(5, 41, 5)), "first": 15, "max_iter": 200},
            **{"alpha": (1.0, 0.5, 0.1, 0.01), "keep": (3, 2, 1, 1)},
        },
        "Tr": {"share": 1e-4, "max_iter": 1000, "tol": 1e-3},
        "DTr": {"penalties": SIX, "first": 10, "rises": 1, "max_iter": 500, "tol": 2e-3},
    },
    "quick": {
        "Fro": {
            **{"k": (5, 10, 15), "first": 15, "max_iter": 200},
            **{"alpha": (1.0, 0.1, 0.01), "keep": (2, 2, 2)},
        },
        "Tr": {"share": 1e-4, "max_iter": 1000, "tol": 1e-3},
        "DTr": {"penalties": SIX[::2], "first": 10, "rises": 1, "max_iter": 500, "tol": 2e-3},
    },
}


class Table(NamedTuple):
    """The clipped training cells, and the truth with its validation and test cells."""

    data: ClippedLowRank
    validation: NDArray[np.bool_]
    test: NDArray[np.bool_]
    cells: Intervals

    def errors(self, estimate: NDArray) -> dict[str, float]:
        """Return what chooses, and the two errors of the paper."""
        truth, limits = self.data.truth, self.limits
        within = self.test & (truth > limits["floor"]) & (truth < limits["ceiling"])
        held_out = {name: np.broadcast_to(x, truth.shape) for name, x in limits.items()}
        return {
            "validation": clipped_relative_rmse(
                truth[self.validation],
                estimate[self.validation],
                **{name: x[self.validation] for name, x in held_out.items()},
            ),
            "all_cells": relative_rmse(truth, estimate),
            "unclipped_test_cells": relative_rmse(truth[within], estimate[within]),
        }

    @property
    def limits(self) -> dict[str, Any]:
        floor, ceiling = self.data.floor, self.data.ceiling
        return {
            "floor": -np.inf if floor is None else floor,
            "ceiling": np.inf if ceiling is None else ceiling,
        }


@lru_cache(maxsize=2)
def table(C: float, seed: int, generator: str, size: str) -> Table:
    rng = np.random.default_rng(seed)
    shape = SIZES[size]
    data = make_clipped_low_rank(
        *shape, ceiling=C, integer=generator == "rounded", random_state=rng
    )
    return table_of(data, rng)


def table_of(data: ClippedLowRank, rng: np.random.Generator) -> Table:
    validation, test = split_cells(~data.observed, (0.5, 0.5), rng)
    cells = Intervals.from_table(data.table, data.ceiling, data.floor)
    return Table(data, validation, test, cells)


Point = tuple[dict[str, Any], Any]  # settings of a fit, and the fit


def fro_path(task: Table, clipped: str, seed: int, grid: dict[str, Any]) -> Iterator[Point]:
    """Go through the penalties from the largest to the smallest, each fit from the last.

    In single precision: its rounding, 1e-7, is far below the errors, and it takes two thirds of
    the time.
    """
    cells = task.cells.astype(np.float32)
    models = {
        k: FroCMC(
            k,
            clipped=clipped,
            alpha=grid["alpha"][0],
            max_iter=grid["first"],
            random_state=seed,
            warm_start=True,
            scale="none",
            tol=1e-6,
        ).fit(cells)
        for k in grid["k"]
    }
    for alpha, keep in zip(grid["alpha"], grid["keep"], strict=True):
        error = {k: task.errors(model.reconstruct())["validation"] for k, model in models.items()}
        models = {k: models[k] for k in sorted(error, key=error.__getitem__)[:keep]}
        for k, model in models.items():
            model.set_params(alpha=alpha, max_iter=grid["max_iter"])
            yield {"k": k, "alpha": alpha}, model.fit(cells)


def tr_path(task: Table, clipped: str, seed: int, grid: dict[str, Any]) -> Iterator[Point]:
    """Fit the one penalty of the paper, a share of the norm of the observed table."""
    alpha = grid["share"] * operator_norm(np.nan_to_num(task.data.table))
    how = {"max_iter": grid["max_iter"], "tol": grid["tol"], "scale": "none"}
    yield {"alpha": alpha}, TrCMC(alpha, clipped=clipped, **how).fit(task.cells)


def dtr_race(task: Table, clipped: str, seed: int, grid: dict[str, Any]) -> Iterator[Point]:
    """Fit every penalty to the end without a second norm, and the best of the pairs with it.

    These are fitted a little first, to choose by the validation cells: for each penalty on X, those
    on Clip(X) from the least until the error has risen.
    """
    alphas, error = grid["penalties"][1:], {}
    yield named((0.0, 0.0)), Unmoved(task)
    for alpha in alphas:
        yield named((alpha, 0.0)), dtr_fit(task, clipped, (alpha, 0.0), grid)
        errors: list[float] = []
        for pair in product((alpha,), alphas):
            if np.sum(np.diff(errors) > 0) == grid["rises"]:
                break
            model = dtr_fit(task, clipped, pair, {**grid, "max_iter": grid["first"]})
            errors.append(task.errors(model.reconstruct())["validation"])
            yield {**named(pair), "screened": True}, model
            error[pair] = errors[-1]
    best = min(error, key=error.__getitem__)
    yield named(best), dtr_fit(task, clipped, best, grid)


def named(pair: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("alpha", "alpha_clipped"), pair, strict=True))


def dtr_fit(task: Table, clipped: str, pair: tuple[float, float], how: dict[str, Any]) -> DTrCMC:
    stop = {name: how[name] for name in ("max_iter", "tol")}
    return DTrCMC(*pair, **_given(task), clipped=clipped, scale="none", **stop).fit(task.data.table)


class Unmoved:
    """What DTr without a penalty on X comes to, for any penalty on Clip(X).

    A missing cell that begins beyond the ceiling has no slope there: not from the loss, nor from
    the second norm, whose weight W is 0 beyond the limits. It stays where it began, at C + 1.
    """

    n_iter_, converged_ = 0, True

    def __init__(self, task: Table) -> None:
        self.task = task

    def reconstruct(self) -> NDArray:
        data = self.task.data
        start = np.full(data.truth.shape, float(data.ceiling) + 1)
        return np.where(data.observed & ~data.at_limit, data.table, start)


def _given(task: Table) -> dict[str, Any]:
    return {"ceiling": task.data.ceiling, "floor": task.data.floor}


PATHS: dict[str, Callable[..., Iterator[Point]]] = {
    "Fro": fro_path,
    "Tr": tr_path,
    "DTr": dtr_race,
}


def searched(task: Table, method: str, seed: int, grid: dict[str, Any]) -> dict[str, Any]:
    """Fit the grid of a method; return all points and the one that validation chooses."""
    family, kind = method.split("-")
    points = []
    began = time.process_time()
    for settings, model in PATHS[family](task, TREATMENT[kind], seed, grid):
        seconds = time.process_time() - began
        how = {"n_iter": model.n_iter_, "converged": bool(model.converged_)}
        errors = {name: float(f"{x:.6g}") for name, x in task.errors(model.reconstruct()).items()}
        if np.isfinite(gap := getattr(model, "gap_", np.nan)):
            how["gap"] = float(f"{gap / model.objective_:.2g}")
        points.append({**settings, **errors, **how, "cpu": round(seconds, 2)})
        began = time.process_time()
    finished = [point for point in points if "screened" not in point]
    return {"chosen": min(finished, key=lambda point: point["validation"]), "grid": points}


def run(
    C: float, seed: int, method: str, generator: str, size: str, grid: dict[str, Any]
) -> dict[str, Any]:
    task = table(C, seed, generator, size)
    shares = {"share_above": task.data.clip_rate, "share_at_or_above": task.data.at_limit_rate}
    return {**shares, **searched(task, method, seed, grid)}


def jobs(quick: bool) -> list[Job]:
    """Return the runs: seed by seed, what tells most first, the rounded generator first."""
    if quick:
        cases = list(product(("rounded",), (8, 9, 11), SEEDS[:1], METHODS))
    else:
        cases = list(product(("rounded", "continuous"), THRESHOLDS, SEEDS, METHODS))
    return [_job(*case, "quick" if quick else "full") for case in cases]


def _job(generator: str, C: float, seed: int, method: str, size: str) -> Job:
    settings = {"C": C, "seed": seed, "method": method, "generator": generator, "size": size}
    family = method.split("-")[0]
    turn = 10 * seed + (0 if C <= 8 and method in ("Fro-CMC", "Tr-CMC") else 4)
    turn += (generator == "continuous") + 2 * (family == "DTr") + THRESHOLDS.index(C) / 10
    name = f"{generator}-C{C:g}-seed{seed}-{method}"
    return Job("synthetic", name, {**settings, "grid": GRIDS[size][family]}, turn)
