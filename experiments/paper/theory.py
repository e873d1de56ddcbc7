"""Recovery against what the theory looks at: nu_B of Theorem 1, and the identifiability margin.

Matrices of 48 x 64 and rank 3, without ties, clipped at a quantile and observed in part. A matrix
counts as recovered if the relative error of all its cells is below 1e-2, the paper's rule.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from experiments.paper.runner import Job
from scipy.sparse import csr_array

from declip import ExactCMC, FroCMC
from declip.datasets import make_clipped_low_rank
from declip.diagnostics.tangent import Tangent
from declip.metrics import relative_rmse

SHAPE = 48, 64, 3
CLIPPED = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
OBSERVED = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
ALPHAS = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
RECOVERED = 1e-2
TRACE_NORMS = {"trace norm": "hinge", "trace norm, clipped left out": "missing"}


def weights(cells: np.ndarray) -> csr_array:
    return csr_array(cells.astype(float))


def run(clipped: list[float], observed: float, seed: int) -> dict[str, Any]:
    return {"points": [{"clipped": share, **_point(share, observed, seed)} for share in clipped]}


def _point(clipped: float, observed: float, seed: int) -> dict[str, Any]:
    data = make_clipped_low_rank(*SHAPE, integer=False, observed=observed, random_state=seed)
    truth, rank = data.truth, SHAPE[2]
    C = float(np.quantile(truth, 1 - clipped)) if clipped else float(truth.max() + 1)
    U, _, Vt = np.linalg.svd(truth, full_matrices=False)
    tangent = Tangent(U[:, :rank], Vt[:rank].T)
    hidden = truth >= C
    seen = np.where(data.observed, np.minimum(truth, C), np.nan)
    model = FroCMC(
        rank, ceiling=C, max_iter=500, random_state=seed, warm_start=True, scale="none", tol=1e-6
    )
    for alpha in ALPHAS:
        model.set_params(alpha=alpha).fit(seen)
    errors = {"Fro-CMC": relative_rmse(truth, model.reconstruct())}
    for name, treatment in TRACE_NORMS.items():
        exact = ExactCMC(ceiling=C, clipped=treatment, max_iter=2000, tol=1e-4).fit(seen)
        errors[name] = relative_rmse(truth, exact.reconstruct())
    return {
        "nu_B": tangent.largest(weights(hidden), tol=1e-8)[0] if hidden.any() else 0.0,
        "margin": max(tangent.smallest(weights(data.observed & ~hidden), tol=1e-8), 0.0),
        "least_exact": int(min((data.observed & ~hidden).sum(axis=a).min() for a in (0, 1))),
        "errors": errors,
    }


def jobs(quick: bool) -> list[Job]:
    clipped, observed = (CLIPPED[::3], OBSERVED[::3]) if quick else (CLIPPED, OBSERVED)
    return [
        Job(
            "theory",
            f"observed{p:g}-seed{seed}",
            {"clipped": clipped, "observed": p, "seed": seed},
            10 * seed + 7,
        )
        for seed, p in product(range(1 if quick else 3), observed)
    ]
