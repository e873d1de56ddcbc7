"""BayesCMC, untuned: real tables, the two rating tasks, and data from its own model.

    DECLIP_DATA=folder python experiments/bayes.py      # without the folder the data are fetched

Tables: every column is clipped at its own quantile and a tenth of the cells removed. Reported are
the root mean squared error of the clipped cells, in standard deviations of their column as it was
seen, and the share of truths in the 90 % intervals: of clipped cells [limit, quantile], of missing
cells with equal tails. For the calibrated intervals the table is clipped once more, lower, and the
tail of the posterior taken to the power that fits what that hid.

Ratings: the tasks of `ratings.py`, the cells ranked by the posterior probability of the top rating.
Simulated: tables drawn from the model, clipped at their 70 % quantile, a tenth removed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, mean_and_error, progress, publish
from ratings import DATA, Task
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from declip import BayesCMC, Intervals
from declip.datasets import split_cells
from declip.environment import environment

TABLES = {
    "breast cancer (log)": lambda: np.log1p(load_breast_cancer().data),
    "wine (log)": lambda: np.log(load_wine().data),
    "diabetes": lambda: load_diabetes().data,
    "iris": lambda: load_iris().data,
}
QUANTILES = (0.8, 0.6)
COVERAGE = 0.9
PARTS = ("tables", "ratings", "simulated")


def clipped_at(truth: np.ndarray, ceiling: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return np.where(seen, np.minimum(truth, ceiling), np.nan)


def shares_below(model: BayesCMC, cells: np.ndarray, limit: np.ndarray, value: np.ndarray) -> Any:
    """Return P(cell < value | cell >= limit) of marked cells, limit -inf for missing ones."""
    rows, cols = (a.astype(np.int32) for a in np.nonzero(cells))
    shape = cells.shape
    low, at = (np.broadcast_to(a, shape)[cells].astype(float) for a in (limit, value))
    return model.posterior_.share_below(rows, cols, low, np.full(len(low), np.inf), at)


def hazard(table: np.ndarray, ceiling: np.ndarray, quantile: float, seed: int) -> float:
    """Return the power of the posterior's tail that fits what a second, lower clipping hid.

    If P(cell > v) is the posterior's to the power g, minus its log is exponential of rate g; what
    the first clipping hid is known to lie beyond the ceiling, and g is events over exposure.
    """
    exact = table < ceiling
    lower = np.nanquantile(np.where(exact, table, np.nan), quantile, axis=0)
    model = BayesCMC(ceiling=lower, random_state=seed).fit(np.minimum(table, lower))
    hidden = table >= lower
    exposure = -np.log1p(-np.minimum(shares_below(model, hidden, lower, table), 1 - 1e-12))
    return float(exact[hidden].sum() / exposure.sum())


def run_table(name: str, quantile: float, seed: int) -> dict[str, float]:
    truth = TABLES[name]()
    ceiling = np.quantile(truth, quantile, axis=0)
    seen, missing = split_cells(truth.shape, (0.9, 0.1), seed)
    table = clipped_at(truth, ceiling, seen)
    model = BayesCMC(ceiling=ceiling, random_state=seed)
    restored = model.fit_transform(table)
    clipped = seen & (truth >= ceiling)
    unit = np.broadcast_to(np.nanstd(table, axis=0), truth.shape)
    limit = np.broadcast_to(ceiling, truth.shape)

    def rmse(x: np.ndarray, cells: np.ndarray) -> float:
        return float(np.sqrt(np.mean(((x - truth) / unit)[cells] ** 2)))

    below = shares_below(model, clipped, limit, truth)
    below_missing = shares_below(model, missing, np.array(-np.inf), truth)
    power = hazard(table, ceiling, quantile, seed)
    tail = 0.5 * (1 - COVERAGE)
    return {
        "left at the limit": rmse(limit, clipped),
        "BayesCMC": rmse(restored, clipped),
        "missing": rmse(restored, missing),
        "coverage": float(np.mean(below <= COVERAGE)),
        "coverage, calibrated": float(np.mean(below <= 1 - (1 - COVERAGE) ** (1 / power))),
        "coverage, missing": float(np.mean(abs(below_missing - 0.5) <= 0.5 - tail)),
        "converged": float(model.converged_),
    }


def run_simulated(seed: int, shape: tuple[int, int] = (200, 20), rank: int = 3) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    P, Q = rng.standard_normal((shape[0], rank)), rng.standard_normal((shape[1], rank))
    scale = rng.uniform(0.3, 1.0, shape[1])
    truth = (
        P @ Q.T / np.sqrt(rank) + rng.standard_normal(shape[1]) + scale * rng.standard_normal(shape)
    )
    ceiling = np.quantile(truth, 0.7, axis=0)
    seen, missing = split_cells(shape, (0.9, 0.1), seed)
    clipped = seen & (truth >= ceiling)
    model = BayesCMC(ceiling=ceiling, random_state=seed).fit(clipped_at(truth, ceiling, seen))
    ends = model.predict_interval(*np.nonzero(clipped), coverage=COVERAGE)[1]
    low, high = model.predict_interval(*np.nonzero(missing), coverage=COVERAGE)
    return {
        "clipped": float(np.mean(truth[clipped] <= ends)),
        "missing": float(np.mean((low <= truth[missing]) & (truth[missing] <= high))),
    }


def calibration_error(truth: np.ndarray, probability: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error: |share - mean probability| over equal bins."""
    where = np.minimum((bins * probability).astype(int), bins - 1)
    size = np.bincount(where, minlength=bins)
    gap = np.bincount(where, truth - probability, bins)
    return float(np.abs(gap).sum() / size.sum())


def run_ratings(name: str, number: int, seed: int) -> dict[str, float]:
    task = Task.of(DATA[name](), number, seed)
    cells: Intervals = task.intervals(task.ceiling - 0.5)
    model = BayesCMC(random_state=seed, n_jobs=-1).fit(cells)
    data = task.ratings
    probability = model.probability_above(data.rows, data.cols, data.ceiling - 0.5)
    high = task.high[task.test].astype(float)
    return {
        "F1": task.f1(probability),
        **task.scores(probability, task.test),
        "ECE": calibration_error(high, probability[task.test]),
        "converged": float(model.converged_),
    }


def cases(args: argparse.Namespace) -> Iterator[tuple[str, tuple, Any]]:
    if "tables" in args.parts:
        for name, quantile in product(TABLES, QUANTILES):
            yield f"{name}, {quantile:g}", (name, quantile), run_table
    if "ratings" in args.parts:
        for name, number in product(DATA, (1, 2)):
            yield f"{name}, task {number}", (name, number), run_ratings
    if "simulated" in args.parts:
        yield "simulated", (), run_simulated


def summaries(args: argparse.Namespace) -> list[dict[str, Any]]:
    runs, rows = Runs(RESULTS / "bayes.jsonl"), []
    with progress() as bar:
        for label, what, run in bar.track(list(cases(args)), description="BayesCMC"):
            found = []
            for seed in args.seeds:
                name = f"{label.replace(' ', '').replace(',', '-')}-seed{seed}"
                settings = {"case": label, "seed": seed}
                found.append(runs.resume(name, settings, lambda: run(*what, seed)))  # noqa: B023
            keys = [k for k in found[0] if k not in ("settings", *environment())]
            values = {k: mean_and_error([f[k] for f in found]) for k in keys}
            rows.append(
                {"case": label, "kind": run.__name__, "seeds": len(found), "values": values}
            )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    parts = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        header = list(mine[0]["values"])
        lines = ([r["case"], *(_shown(*r["values"][h]) for h in header)] for r in mine)
        parts.append(markdown_table(["", *header], lines))
    return "\n".join(parts)


def _shown(mean: float, error: float) -> str:
    return f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ({error:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    publish("bayes", table(summaries(args)))


if __name__ == "__main__":
    main()
