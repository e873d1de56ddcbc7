"""The paper's first two figures: histograms of the rating sets, and the illustration."""

from __future__ import annotations

from typing import Any

import numpy as np
from experiments.paper.faithful import ratings
from experiments.paper.runner import Job
from experiments.ratings import DATA

from declip import FroCMC
from declip.datasets import make_clipped_low_rank
from declip.metrics import relative_rmse

SHAPE, RANK, CEILING = (40, 60), 2, 10


def illustration() -> dict[str, Any]:
    """Restore a clipped matrix of rank 2, all of whose cells are observed (L = 15, C = 10)."""
    data = make_clipped_low_rank(
        *SHAPE, RANK, ceiling=CEILING, integer=False, observed=1.0, random_state=0
    )
    model = FroCMC(RANK, ceiling=CEILING, alpha=1e-3, random_state=0, scale="none", tol=1e-6).fit(
        data.table
    )
    restored = model.reconstruct()
    return {
        "share_clipped": data.clip_rate,
        "error": relative_rmse(data.truth, restored),
        "error_clipped": relative_rmse(data.truth[data.clipped], restored[data.clipped]),
        "largest": float(data.truth.max()),
        "truth": np.round(data.truth, 3).tolist(),
        "seen": np.round(data.table, 3).tolist(),
        "restored": np.round(restored, 3).tolist(),
    }


def histogram(data: str) -> dict[str, Any]:
    source = ratings(data)
    values, counts = np.unique(source.values, return_counts=True)
    shares = (counts / counts.sum()).tolist()
    return {"ceiling": source.ceiling, "values": values.tolist(), "shares": shares}


def run(what: str) -> dict[str, Any]:
    return illustration() if what == "illustration" else histogram(what)


def jobs(quick: bool) -> list[Job]:
    return [Job("pictures", what, {"what": what}, -1) for what in ("illustration", *DATA)]
