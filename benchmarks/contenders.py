"""One fit of one contender in a process of its own; prints what it took as JSON.

python -m benchmarks.contenders cmfrec-cg 2m 40 3

With a fifth word, the strength of the penalty, it learns from all ratings but some, and tells the
error of these.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.shapes import CEILING, Ratings, centred, ratings
from declip.intervals import Intervals
from declip.lowrank import LowRank
from declip.objective import objective
from declip.penalties import Ridge

ALPHA = 5.0
Factors = tuple[np.ndarray, np.ndarray] | None
Fit = Callable[[Any, int, int], Factors]


def declip(
    clipped: str, threads: int, data: Intervals, k: int, epochs: int, half: bool | str = "auto"
) -> Factors:
    from declip import FroCMC

    how = {"alpha": ALPHA, "clipped": clipped, "tol": 0.0, "random_state": 0, "n_jobs": threads}
    model = FroCMC(n_components=k, max_iter=epochs, half_precision=half, **how, scale="none").fit(
        data
    )
    return model.row_factors_, model.components_.T


def declip_by_cholesky(clipped: str, data: Intervals, k: int, epochs: int) -> Factors:
    from declip.solvers import als

    als._CG_FROM = k + 1
    return declip(clipped, 1, data, k, epochs)


def cmfrec(by_cg: bool, data: sparse.coo_array, k: int, epochs: int) -> Factors:
    from cmfrec import CMF

    model = CMF(
        k=k,
        lambda_=ALPHA,
        niter=epochs,
        use_cg=by_cg,
        max_cg_steps=3,
        finalize_chol=False,
        user_bias=False,
        item_bias=False,
        center=False,
        use_float=True,
        nthreads=1,
        precompute_for_predictions=False,
        verbose=False,
        random_state=0,
    ).fit(data)
    return model.A_, model.B_


def implicit(data: sparse.coo_array, k: int, epochs: int) -> Factors:
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=k,
        regularization=ALPHA,
        iterations=epochs,
        use_cg=True,
        use_gpu=False,
        dtype=np.float32,
        num_threads=1,
        random_state=0,
    )
    model.fit(data.tocsr(), show_progress=False)
    return None  # another loss: its objective cannot be compared


def lenskit(data: Any, k: int, epochs: int) -> Factors:
    from lenskit.als import BiasedMFScorer

    BiasedMFScorer(embedding_size=k, epochs=epochs, regularization=ALPHA).train(data)
    return None  # it subtracts offsets first


def as_coo(data: Ratings) -> sparse.coo_matrix:
    return sparse.coo_matrix((data.values, (data.rows, data.cols)), shape=data.shape)


def as_dataset(data: Ratings) -> Any:
    import pandas as pd
    import torch
    from lenskit.data import from_interactions_df

    torch.set_num_threads(1)
    names = {"user_id": data.rows, "item_id": data.cols, "rating": data.values}
    return from_interactions_df(pd.DataFrame(names))


def as_intervals(data: Ratings) -> Intervals:
    made = data.intervals()
    _ = made.by_row, made.by_col
    return made


def as_values(data: Ratings) -> Intervals:
    made = Intervals.from_triplets(*data[:3], shape=data.shape)
    _ = made.by_row, made.by_col
    return made


# name: how it takes the data, how it fits
CONTENDERS: dict[str, tuple[Callable[[Ratings], Any], Fit]] = {
    "declip": (as_values, partial(declip, "value", 1)),
    "declip-full": (as_values, partial(declip, "value", 1, half=False)),
    "declip-2-threads": (as_values, partial(declip, "value", 2)),
    "declip-cholesky": (as_values, partial(declip_by_cholesky, "value")),
    "declip-hinge": (as_intervals, partial(declip, "hinge", 1)),
    "cmfrec-cg": (as_coo, partial(cmfrec, True)),
    "cmfrec-cholesky": (as_coo, partial(cmfrec, False)),
    "implicit-cg": (as_coo, implicit),
    "lenskit": (as_dataset, lenskit),
}


def peak_mb() -> float:
    """Return the most memory that this process has held (ru_maxrss would count its parent's)."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def forget_peak() -> None:
    """Count the peak from here on: the making of the data is not part of a fit."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def rmse(model: LowRank, test: Ratings, mean: float = 0.0) -> float:
    """Return the error of held-out ratings, by predictions within the scale; the mean is added."""
    found = np.clip(model.predict(test.rows, test.cols) + mean, 0.5, CEILING)
    return float(np.sqrt(np.mean((found - test.values) ** 2)))


def measure(name: str, shape: str, k: int, epochs: int, held_out: bool = False) -> dict[str, Any]:
    """Return CPU and wall seconds of a fit, what it added to memory, and the plain objective."""
    prepare, fit = CONTENDERS[name]
    warnings.simplefilter("ignore")
    prepare(ratings("200k"))  # what is loaded late is loaded now
    fit(prepare(ratings("200k")), 4, 1)
    raw = ratings(shape)
    raw, test, mean = centred(raw) if held_out else (raw, None, 0.0)
    data = prepare(raw)
    forget_peak()
    before, cpu, wall = resident_mb(), time.process_time(), time.perf_counter()
    factors = fit(data, k, epochs)
    found = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    found |= {"peak_mb": peak_mb(), "added_mb": peak_mb() - before}
    if factors is not None:
        model = LowRank(*(np.ascontiguousarray(F, np.float32) for F in factors))
        cells = Intervals.from_triplets(*raw[:3], shape=raw.shape)
        found["objective"] = objective(cells, model.balanced()[0], Ridge(ALPHA))
        found["error"] = None if test is None else rmse(model, test, mean)
    return {"name": name, "shape": shape, "k": k, "epochs": epochs, "ceiling": CEILING, **found}


if __name__ == "__main__":
    who, where, rank, n, *strength = sys.argv[1:]
    ALPHA = float(strength[0]) if strength else ALPHA
    print(json.dumps(measure(who, where, int(rank), int(n), bool(strength))))
