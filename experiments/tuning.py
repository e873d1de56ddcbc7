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
from common import RESULTS, Runs, markdown_table, mean_and_error, progress, write_json

from declip import EntrySearchCV, EntryShuffleSplit, FroCMC, Intervals
from declip.datasets import make_clipped_low_rank
from declip.environment import environment
from declip.metrics import relative_rmse

SIZES = {
    "full": {"n_rows": 500, "n_cols": 800, "rank": 30},
    "small": {"n_rows": 150, "n_cols": 240, "rank": 10},
}
RANKS = {"full": [10, 20, 25, 30, 35, 40], "small": [4, 6, 8, 10, 12, 15]}
ALPHAS = [0.01, 0.1, 0.5, 1.0]
SCORES = ["neg_interval_rmse", "neg_clipped_relative_rmse"]


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
    kept, rows = Runs(RESULTS / "tuning.jsonl"), []
    with progress() as bar:
        todo = list(product(args.noise, args.thresholds))
        task = bar.add_task("tuning", total=len(todo) * len(args.seeds))
        for noise, C in todo:
            runs = []
            for seed in args.seeds:
                settings = {"size": size, "C": C, "noise": noise, "seed": seed}
                name = f"{size}-C{C:g}-noise{noise:g}-seed{seed}"
                again = lambda: run(size, C, seed, noise, args.threads)  # noqa: B023, E731
                runs.append(kept.resume(name, settings, again))
                bar.advance(task)
            rows.append(
                {
                    **{"noise": noise, "C": C, "share_above": runs[0]["share_above"]},
                    "best": mean_and_error([r["best"]["error"] for r in runs])[0],
                    **{name: [r["loss"][name] for r in runs] for name in SCORES},
                }
            )
    write_json(RESULTS / f"tuning-{size}.json", {**environment(), "rows": rows})
    table = markdown_table(
        [
            "noise",
            "C",
            "share > C",
            "best on the grid",
            *(f"loss by {name}: mean, worst" for name in SCORES),
        ],
        (
            [
                *(
                    f"{row['noise']:g}",
                    f"{row['C']:g}",
                    f"{row['share_above']:.2f}",
                    f"{row['best']:.2g}",
                ),
                *(f"{np.mean(row[name]):.1%}, {max(row[name]):.1%}" for name in SCORES),
            ]
            for row in rows
        ),
    )
    (RESULTS / f"tuning-{size}.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
