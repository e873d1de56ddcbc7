"""Which treatment of clipped cells restores most? Complete tables, clipped by us: truth is known.

    python experiments/tables.py

Every column is clipped at its own quantile and a tenth of the cells removed. The rank and alpha are
chosen by hiding a tenth of the exact cells, never by the truth. Reported is the root mean squared
error of the clipped cells, in units of the standard deviation of their column.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, progress, publish
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from declip import FroCMC
from declip.datasets import split_cells

LEFT = "left at the limit"
MODES = ("value", "missing", "hinge", "tobit")
GRID = list(product((1, 2, 3, 5), (0.3, 1.0, 3.0, 10.0)))
TABLES = {
    "breast cancer (log)": lambda: np.log(load_breast_cancer().data + 0.01),
    "wine (log)": lambda: np.log(load_wine().data),
    "diabetes": lambda: np.delete(load_diabetes().data, 1, axis=1),  # without the two-valued sex
    "iris": lambda: load_iris().data,
}


def model(mode: str, k: int, alpha: float, ceiling: np.ndarray) -> FroCMC:
    return FroCMC(
        k, ceiling=ceiling, clipped=mode, alpha=alpha, bias=True, random_state=0, scale="none"
    )


def chosen(mode: str, table: np.ndarray, ceiling: np.ndarray, seed: int) -> tuple[int, float]:
    exact = table < ceiling  # False for NaN
    _, hidden = split_cells(exact, (0.9, 0.1), seed)
    shown = np.where(hidden, np.nan, table)

    def error(point: tuple[int, float]) -> float:
        fit = model(mode, *point, ceiling).fit(shown)
        return float(np.mean((fit.predict(*np.nonzero(hidden)) - table[hidden]) ** 2))

    return min((p for p in GRID if p[0] < table.shape[1]), key=error)


def run(truth: np.ndarray, quantile: float, seed: int) -> dict[str, Any]:
    truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
    ceiling = np.quantile(truth, quantile, axis=0)
    observed, _ = split_cells(truth.shape, (0.9, 0.1), seed)
    table = np.where(observed, np.minimum(truth, ceiling), np.nan)
    clipped = observed & (truth >= ceiling)
    level, spread = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
    scaled, limit = (table - level) / spread, (ceiling - level) / spread
    scaled[clipped] = np.broadcast_to(limit, truth.shape)[clipped]

    def rmse(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean((x - truth)[clipped] ** 2)))

    result = {LEFT: rmse(table)}
    for mode in MODES:
        k, alpha = chosen(mode, scaled, limit, seed)
        restored = model(mode, k, alpha, limit).fit_transform(scaled)
        result[mode] = rmse(restored * spread + level)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quantiles", type=float, nargs="+", default=[0.8, 0.6])
    parser.add_argument("--seeds", type=int, nargs="+", default=range(3))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    runs, lines = Runs(RESULTS / "tables.jsonl"), []
    with progress() as bar:
        todo = list(product(TABLES, args.quantiles))
        for name, quantile in bar.track(todo, description="tables"):
            found = [resumed(runs, name, quantile, seed) for seed in args.seeds]
            means = (float(np.mean([r[treatment] for r in found])) for treatment in (LEFT, *MODES))
            lines.append([name, f"{quantile:g}", *(f"{x:.2f}" for x in means)])
    publish("tables", markdown_table(["table", "clipped above quantile", LEFT, *MODES], lines))


def resumed(runs: Runs, table: str, quantile: float, seed: int) -> dict[str, Any]:
    settings = {"table": table, "quantile": quantile, "seed": seed}
    name = f"{table}, {quantile:g}, {seed}"
    return runs.resume(name, settings, lambda: run(TABLES[table](), quantile, seed))


if __name__ == "__main__":
    main()
