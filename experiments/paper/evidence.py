"""Where the error that is left sits: in rows and columns with fewer exact cells than the rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from experiments.paper.runner import Job
from experiments.paper.synthetic import SIZES, table

from declip import FroCMC
from declip.metrics import relative_rmse

ALPHAS = (1.0, 0.1, 0.01)


def run(C: float, seed: int, size: str, alphas: list[float]) -> dict[str, Any]:
    """Fit Fro-CMC with the true rank; score it with and without what cannot be determined."""
    task, rank = table(C, seed, "rounded", size), SIZES[size][2]
    model = FroCMC(rank, max_iter=200, random_state=seed, warm_start=True, scale="none", tol=1e-6)
    for alpha in alphas:
        model.set_params(alpha=alpha).fit(task.cells)
    truth, estimate = task.data.truth, model.reconstruct()
    exact = task.data.observed & ~task.data.at_limit
    rows, cols = (exact.sum(axis=axis) >= rank for axis in (1, 0))
    kept = np.ix_(rows, cols)
    squares = (estimate - truth) ** 2
    return {
        "all_cells": relative_rmse(truth, estimate),
        "determined": relative_rmse(truth[kept], estimate[kept]),
        "rows_out": int((~rows).sum()),
        "cols_out": int((~cols).sum()),
        "share_of_error": float(1 - squares[kept].sum() / squares.sum()),
    }


def jobs(quick: bool) -> list[Job]:
    size, thresholds = ("quick", (8,)) if quick else ("full", (6, 5))
    return [
        Job(
            "evidence",
            f"rounded-C{C}-seed0",
            {"C": C, "seed": 0, "size": size, "alphas": ALPHAS},
            1.5,
        )
        for C in thresholds
    ]
