"""What tuning on held-out cells loses against the best parameters of the grid, synthetic task.

    python experiments/tuning.py                # 500 x 800, rank 30
    python experiments/tuning.py --small        # 150 x 240, rank 10

The search sees the clipped training cells alone, and holds out a tenth of them. Every point of the
grid is then fitted to all training cells, and scored by the relative RMSE on all cells of the
truth: the loss is the error of the chosen point over that of the best one, minus 1.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, progress, publish

from declip import EntrySearchCV, EntryShuffleSplit, FroCMC, Intervals
from declip.datasets import make_clipped_low_rank
from declip.metrics import relative_rmse

SIZES = {
    "full": {"n_rows": 500, "n_cols": 800, "rank": 30},
    "small": {"n_rows": 150, "n_cols": 240, "rank": 10},
}
RANKS = {"full": [10, 20, 25, 30, 35, 40], "small": [4, 6, 8, 10, 12, 15]}
ALPHAS = [0.01, 0.1, 0.5, 1.0]
SCORES = ["neg_interval_rmse", "neg_clipped_relative_rmse"]
HEADER = [
    *("noise", "C", "seeds", "share > C", "best on the grid"),
    *(f"loss by {name}: mean, worst" for name in SCORES),
]


def run(size: str, C: float, seed: int, noise: float, threads: int) -> dict[str, Any]:
    data = make_clipped_low_rank(**SIZES[size], ceiling=C, noise=noise, random_state=seed)
    cells = Intervals.from_table(data.table, ceiling=C)
    model = FroCMC(max_iter=200, random_state=seed, scale="none", tol=1e-6)
    grid = {"n_components": RANKS[size], "alpha": ALPHAS}
    began = perf_counter()
    search = EntrySearchCV(
        model,
        grid,
        cv=EntryShuffleSplit(test_size=0.1, random_state=seed),
        scoring=SCORES,
        refit=False,
        n_jobs=threads,
    ).fit(cells)
    seconds = perf_counter() - began
    found = search.cv_results_
    errors = [
        relative_rmse(
            data.truth,
            FroCMC(**params, max_iter=200, random_state=seed, scale="none")
            .fit(cells)
            .reconstruct(),
        )
        for params in found["params"]
    ]
    chosen = {name: int(np.nanargmax(found[f"mean_test_{name}"])) for name in SCORES}
    best = int(np.argmin(errors))
    return {
        "share_above": data.clip_rate,
        "best": {"params": found["params"][best], "error": errors[best]},
        "chosen": {
            n: {"params": found["params"][k], "error": errors[k]} for n, k in chosen.items()
        },
        "loss": {name: errors[k] / errors[best] - 1 for name, k in chosen.items()},
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--thresholds", type=float, nargs="+", default=[5, 6, 7, 8])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.5])
    parser.add_argument("--seeds", type=int, nargs="+", default=range(3))
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    size = "small" if args.small else "full"
    runs = Runs(RESULTS / "tuning.jsonl")
    with progress() as bar:
        todo = list(product(args.noise, args.thresholds, args.seeds))
        for noise, C, seed in bar.track(todo, description="tuning"):
            settings = {"size": size, "C": C, "noise": noise, "seed": seed}
            name = f"{size}-C{C:g}-noise{noise:g}-seed{seed}"
            again = lambda: run(size, C, seed, noise, args.threads)  # noqa: B023, E731
            runs.resume(name, settings, again)
    publish("tuning", page(list(runs.read().values())))


def page(runs: list[dict[str, Any]]) -> str:
    """Return a table for each size that was run."""
    parts = ["# What tuning loses\n"]
    for size, shape in SIZES.items():
        title = f"## {shape['n_rows']} x {shape['n_cols']}, rank {shape['rank']}"
        lines = [_line(point, some) for point, some in _points(runs, size).items()]
        parts += [title + "\n", markdown_table(HEADER, lines)] if lines else []
    return "\n".join(parts)


def _points(runs: list[dict[str, Any]], size: str) -> dict[tuple, list[dict[str, Any]]]:
    """Return the runs of a size by noise and ceiling."""
    points: dict[tuple, list[dict[str, Any]]] = {}
    for run in runs:
        if run["settings"]["size"] == size:
            point = run["settings"]["noise"], run["settings"]["C"]
            points.setdefault(point, []).append(run)
    return dict(sorted(points.items()))


def _line(point: tuple, runs: list[dict[str, Any]]) -> list[str]:
    best = np.mean([run["best"]["error"] for run in runs])
    losses = ([run["loss"][name] for run in runs] for name in SCORES)
    return [
        *(f"{x:g}" for x in point),
        *(str(len(runs)), f"{runs[0]['share_above']:.2f}", f"{best:.2g}"),
        *(f"{np.mean(loss):.1%}, {max(loss):.1%}" for loss in losses),
    ]


if __name__ == "__main__":
    main()
