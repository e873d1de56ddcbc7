"""The synthetic task of the paper: restore a clipped 500 x 800 matrix of rank 30.

    python experiments/synthetic.py             # rounded generator, all thresholds and methods
    python experiments/synthetic.py --thresholds 5 6 7 --methods Fro-CMC
    python experiments/synthetic.py --continuous

Cells are split .8 / .1 / .1 into training, validation and test cells; training cells are clipped
at C. alpha and the rank are chosen by the relative RMSE after clipping on the validation cells,
separately for each run. One file for each run is kept in experiments/results/synthetic, so that an
interrupted experiment goes on where it stopped; the summary covers all that is there. Remove the
files after a change of the solver.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from common import RESULTS, markdown_table, mean_and_error, progress, resume, versions, write_json
from sklearn.exceptions import ConvergenceWarning

from declip import FroCMC, Intervals
from declip.datasets import make_clipped_low_rank, split_cells

METHODS = {"Fro-CMC": "hinge", "Fro-MC": "value", "Fro-MCi": "missing"}
THRESHOLDS = (5, 6, 7, 8, 9, 11, 13)
ALPHAS = (0.01, 0.1, 0.5, 1.0)
RANKS = tuple(range(5, 41, 5))
SWEEPS = 200


def relative_rmse(estimate: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))


def run(C: float, seed: int, method: str, integer: bool, threads: int) -> dict[str, Any]:
    """Fit the whole grid, each point from its own start; score what validation chooses."""
    rng = np.random.default_rng(seed)
    data = make_clipped_low_rank(ceiling=C, integer=integer, random_state=rng)
    validation, test = split_cells(~data.observed, (0.5, 0.5), rng)
    truth, clip = data.truth, lambda x: np.minimum(x, C)
    below = test & (truth < C)
    cells = Intervals.from_table(data.table, ceiling=C)
    grid = []
    for k, alpha in product(RANKS, ALPHAS):
        began = perf_counter()
        model = FroCMC(
            k,
            clipped=METHODS[method],
            alpha=alpha,
            max_iter=SWEEPS,
            random_state=seed,
            n_jobs=threads,
        ).fit(cells)
        estimate = model.reconstruct()
        grid.append(
            {
                "k": k,
                "alpha": alpha,
                "validation": relative_rmse(clip(estimate[validation]), clip(truth[validation])),
                "all_cells": relative_rmse(estimate, truth),
                "unclipped_test_cells": relative_rmse(estimate[below], truth[below]),
                "sweeps": model.n_iter_,
                "converged": model.converged_,
                "seconds": round(perf_counter() - began, 3),
            }
        )
    return {
        "share_above": data.clip_rate,
        "share_at_or_above": data.at_limit_rate,
        "chosen": min(grid, key=lambda point: point["validation"]),
        "grid": grid,
    }


def run_all(args: argparse.Namespace) -> None:
    generator = "continuous" if args.continuous else "rounded"
    todo = list(product(args.seeds, args.thresholds, args.methods))
    with progress() as bar:
        task = bar.add_task("synthetic", total=len(todo))
        for seed, C, method in todo:
            bar.update(task, description=f"C = {C:g}, seed {seed}, {method}")
            settings = {
                **{"generator": generator, "C": C, "seed": seed, "method": method},
                **{"alphas": ALPHAS, "ranks": RANKS, "max_iter": SWEEPS},
            }
            settings = {key: list(v) if isinstance(v, tuple) else v for key, v in settings.items()}
            path = RESULTS / "synthetic" / f"{generator}-C{C:g}-seed{seed}-{method}.json"
            resume(
                path,
                settings,
                lambda: run(C, seed, method, not args.continuous, args.threads),  # noqa: B023
            )
            bar.advance(task)


def summarise(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over the seeds, one row for each threshold and method."""
    groups: dict[tuple[float, str], list[dict[str, Any]]] = {}
    for result in results:
        settings = result["settings"]
        groups.setdefault((settings["C"], settings["method"]), []).append(result)
    rows = []
    for (C, method), mine in sorted(groups.items()):
        row: dict[str, Any] = {"C": C, "method": method, "seeds": len(mine)}
        for name in ("share_above", "share_at_or_above"):
            row[name] = float(np.mean([r[name] for r in mine]))
        for name in ("all_cells", "unclipped_test_cells"):
            row[name], row[f"{name}_se"] = mean_and_error([r["chosen"][name] for r in mine])
        row["chosen"] = [(r["chosen"]["k"], r["chosen"]["alpha"]) for r in mine]
        row["seconds_per_fit"] = float(np.mean([p["seconds"] for r in mine for p in r["grid"]]))
        rows.append(row)
    return rows


def table(summary: list[dict[str, Any]]) -> str:
    def number(row: dict[str, Any], name: str) -> str:
        error = row[f"{name}_se"]
        return f"{row[name]:.2g}" + (f" ({error:.1g})" if np.isfinite(error) else "")

    return markdown_table(
        ["C", "share > C", "share >= C", "method", "seeds", "all cells", "unclipped test cells"],
        (
            [
                *(f"{row['C']:g}", f"{row['share_above']:.2f}", f"{row['share_at_or_above']:.2f}"),
                *(row["method"], str(row["seeds"])),
                *(number(row, "all_cells"), number(row, "unclipped_test_cells")),
            ]
            for row in summary
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--thresholds", type=float, nargs="+", default=THRESHOLDS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--continuous", action="store_true", help="W H instead of rint(W) rint(H)")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # T = 200 is the paper's; it is recorded
    warnings.filterwarnings("ignore", message=".*(exact|observed) cell", category=UserWarning)
    run_all(args)
    generator = "continuous" if args.continuous else "rounded"
    stored = sorted((RESULTS / "synthetic").glob(f"{generator}-*.json"))
    summary = summarise([json.loads(path.read_text()) for path in stored])
    name = "synthetic-continuous" if args.continuous else "synthetic"
    write_json(RESULTS / f"{name}.json", {"versions": versions(), "rows": summary})
    (RESULTS / f"{name}.md").write_text(table(summary))
    print(table(summary))


if __name__ == "__main__":
    main()
