"""Run times of the methods beside the paper's appendix: one thread, the paper's iteration counts.

The paper reports the longest run among its settings: the largest rank, the most iterations. Here
so many iterations are made whether or not the fit has settled before; how soon it was within one
percent of its last objective is the time "to the same accuracy". The splitting, which is not the
paper's, ends at a gap of its own.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from experiments.paper.faithful import CAP, ratings, training_cells, training_table
from experiments.paper.runner import Job
from experiments.paper.synthetic import table
from experiments.ratings import DATA, Task

from declip import DTrCMC, FroCMC, TrCMC
from declip.svd import operator_norm

K, ALPHA = 40, {"synthetic": 0.01, "FilmTrust": 0.001, "MovieLens-100K": 0.001}  # the slowest
TR, DTR = 500, 2000
TOL = 2e-3  # gap of the splitting, of the objective
FEW = 20  # iterations of what would take too long: its time is that of one, times the count


def _problem(data: str, size: str) -> tuple[Any, Any, float, float]:
    """Return cells, table, ceiling and the norm of the observed table."""
    if data == "synthetic":
        task = table(7, 0, "rounded", size)
        X = task.data.table
        return task.cells, X, 7.0, operator_norm(np.nan_to_num(X))
    split = Task.of(ratings(data), 1, 0)
    X = training_table(split)
    return training_cells(split), X, split.ceiling, operator_norm(X)


def run(data: str, method: str, n_iter: int, made: int, size: str) -> dict[str, Any]:
    cells, X, ceiling, norm = _problem(data, size)
    splits, cap = "splitting" in method, True if "rank" in method else None
    if method == "Fro-CMC":
        model: Any = FroCMC(K, alpha=ALPHA[data], random_state=0, scale="none", tol=1e-6)
    elif method.startswith("Tr-CMC"):
        solver = "splitting" if splits else "proximal"
        model = TrCMC(1e-4 * norm, max_rank=cap and CAP, solver=solver, scale="none")
    else:
        solver = "splitting" if splits else "subgradient"
        model = DTrCMC(0.2, 0.2, ceiling=ceiling, max_rank=cap and 20, solver=solver, scale="none")
    given = X if method.startswith("DTr") else cells
    began = time.process_time()
    model.set_params(max_iter=made, tol=TOL if splits else 0.0).fit(given)
    seconds = time.process_time() - began
    last = model.history_[-1]
    near = int(np.argmax(model.history_ <= last + 0.01 * abs(last)))
    gap = {"gap": float(f"{model.gap_ / model.objective_:.2g}")} if splits else {}
    return {
        **gap,
        "cpu": seconds if splits else seconds * n_iter / made,
        "estimated": made < n_iter,
        "made": model.n_iter_,
        "near": near if 2 * made >= n_iter else None,
        "cpu_near": seconds * near / model.n_iter_,
        "history": [float(f"{x:.5g}") for x in model.history_[:: max(1, made // 100)]],
    }


def jobs(quick: bool) -> list[Job]:
    size = "quick" if quick else "full"
    cases = [
        ("synthetic", "Fro-CMC", 200, 200),
        ("synthetic", "Tr-CMC", TR, 100 if quick else TR),
        ("synthetic", "DTr-CMC", DTR, 100 if quick else 1000),
        ("synthetic", "Tr-CMC, splitting", 1000, 1000),
        ("synthetic", "DTr-CMC, splitting", 1000, 1000),
    ]
    for data in DATA:
        cases += [
            (data, "Fro-CMC", 1500, 100 if quick else 1500),
            (data, f"Tr-CMC, rank {CAP}", TR, 50 if quick else TR),
            (data, "DTr-CMC, rank 20", DTR, 50 if quick else 1000),
        ]
        if not quick:
            cases += [(data, "Tr-CMC", TR, FEW), (data, "DTr-CMC", DTR, FEW)]
            cases += [(data, "Tr-CMC, splitting", 1000, 1000)]
            cases += [(data, "DTr-CMC, splitting", 300, 300)]  # within 1e-3 of the objective
    return [
        Job(
            "times",
            f"{data}-{method.replace(', ', '-').replace(' ', '')}",
            {"data": data, "method": method, "n_iter": n_iter, "made": made, "size": size},
            8.5,
        )
        for data, method, n_iter, made in cases
    ]
