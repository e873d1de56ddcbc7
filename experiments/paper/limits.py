"""Floors, and limits that vary from column to column or from cell to cell (the paper's appendix).

A 250 x 400 matrix of rank 15, four shares of clipped cells, for each kind of limit.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from experiments.paper.runner import Job
from experiments.paper.synthetic import Table, searched, table_of
from numpy.typing import NDArray

from declip.datasets import make_clipped_low_rank

KINDS = ("ceiling", "floor", "both ends", "ceiling by column", "ceiling by cell")
SHARES = (0.2, 0.35, 0.5, 0.65)
METHODS = ("Fro-CMC", "Fro-MC", "Fro-MCi")
SHAPE = 250, 400, 15
GRID = {
    **{"k": (10, 15, 20), "first": 15, "max_iter": 200},
    **{"alpha": (1.0, 0.1, 0.01), "keep": (3, 2, 2)},
}


def limits(truth: NDArray, kind: str, share: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return limits that hide about this share of the cells.

    Those that vary are the common one plus or minus up to one standard deviation of the truth.
    """
    if kind == "floor":
        return {"floor": float(np.quantile(truth, share))}
    if kind == "both ends":
        low, high = np.quantile(truth, [share / 2, 1 - share / 2])
        return {"floor": float(low), "ceiling": float(high)}
    if kind == "ceiling":
        return {"ceiling": float(np.quantile(truth, 1 - share))}
    size = truth.shape[1:] if kind == "ceiling by column" else truth.shape
    spread = truth.std() * rng.uniform(-1, 1, size)
    # The limit L + spread hides a cell if its value minus the spread is above L.
    return {"ceiling": float(np.quantile(truth - spread, 1 - share)) + spread}


def task(kind: str, share: float, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    truth = make_clipped_low_rank(*SHAPE, integer=False, random_state=seed).truth
    found = limits(truth, kind, share, rng)
    # the same seed, the same truth, now with its limits
    data = make_clipped_low_rank(*SHAPE, integer=False, random_state=seed, **found)
    return table_of(data, rng)


def run(kind: str, share: float, seed: int, grid: dict[str, Any]) -> dict[str, Any]:
    table = task(kind, share, seed)
    found = {method: searched(table, method, seed, grid)["chosen"] for method in METHODS}
    return {"share_clipped": table.data.clip_rate, "methods": found}


def jobs(quick: bool) -> list[Job]:
    shares, seeds = (SHARES[::2], range(1)) if quick else (SHARES, range(3))
    return [
        Job(
            "limits",
            f"{kind.replace(' ', '-')}-{share:g}-seed{seed}",
            {"kind": kind, "share": share, "seed": seed, "grid": GRID},
            10 * seed + 8,
        )
        for seed, kind, share in product(seeds, KINDS, shares)
    ]
