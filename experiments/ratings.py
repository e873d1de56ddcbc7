"""The two rating tasks of the paper, on FilmTrust and MovieLens-100K.

    DECLIP_DATA=folder python experiments/ratings.py    # without the folder the data are fetched

Task 1: training ratings clipped at C (7 of 8, 4 of 5); which test ratings were above C? Task 2: raw
ratings; which test ratings are at the top of the scale? Ratings are split .8 / .1 / .1; users and
items without a training rating are removed, as in the paper. Unlike the paper, cells are ranked by
their prediction, the threshold of F1 is chosen on the validation cells and never on the test cells,
the penalties by the mean average precision (AP) there, one setting for all splits.

A whole number v stands for [v - 1/2, v + 1/2): for Tobit a rating at the ceiling C is at least
C - 1/2. One file for each run is kept in experiments/results/ratings, so that an interrupted
experiment goes on where it stopped; remove the files after a change of the solver.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from common import RESULTS, markdown_table, mean_and_error, progress, resume, versions, write_json
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve, roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from declip import FroCMC, Intervals
from declip.datasets import Ratings, fetch_filmtrust, fetch_movielens_100k

DATA: dict[str, Callable[[], Ratings]] = {
    "FilmTrust": fetch_filmtrust,
    "MovieLens-100K": fetch_movielens_100k,
}
FACTOR_GRID = [
    {"k": 20, "alpha": a, "alpha_bias": b} for a, b in product((8, 16, 24, 32), (1, 2, 4))
]
OFFSET_GRID = [{"alpha": a} for a in (1, 2, 4, 8, 16)]


@dataclass(frozen=True, eq=False)
class Task:
    """Ratings of one task: those to learn from, and cells to find the high ones among."""

    ratings: Ratings
    ceiling: float
    high: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    @classmethod
    def of(cls, ratings: Ratings, number: int, seed: int) -> Task:
        order = np.random.default_rng(seed).permutation(ratings.values.size)
        train, *held_out = np.split(order, np.rint(np.array([0.8, 0.9]) * order.size).astype(int))
        known = np.isin(ratings.rows, ratings.rows[train]) & np.isin(
            ratings.cols, ratings.cols[train]
        )
        ceiling = ratings.ceiling - 1 if number == 1 else ratings.ceiling
        high = ratings.values > ratings.ceiling - 1
        return cls(ratings, ceiling, high, train, *(part[known[part]] for part in held_out))

    def intervals(self, cut: float) -> Intervals:
        """Return the training ratings, those of the ceiling or more clipped at ``cut``."""
        data, train = self.ratings, self.train
        values = np.where(data.values >= self.ceiling, cut, data.values)[train]
        return Intervals.from_triplets(
            data.rows[train], data.cols[train], values, data.shape, ceiling=cut
        )

    def scores(self, prediction: np.ndarray, part: np.ndarray) -> dict[str, float]:
        truth, x = self.high[part], prediction[part]
        return {
            "AP": float(average_precision_score(truth, x)),
            "AUC": float(roc_auc_score(truth, x)),
        }

    def f1(self, prediction: np.ndarray) -> float:
        """Return F1 of the test cells at the threshold that is best for the validation cells."""
        p, r, thresholds = precision_recall_curve(
            self.high[self.validation], prediction[self.validation]
        )
        f1 = 2 * p * r / np.maximum(p + r, 1e-12)
        best = thresholds[np.argmax(f1[:-1])]
        return float(f1_score(self.high[self.test], prediction[self.test] >= best))


def offsets(task: Task) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Predict by a mean and ridge-penalised offsets of users and items, clipped at face value."""
    data, train = task.ratings, task.train
    cells = np.column_stack([data.rows, data.cols])
    X = OneHotEncoder(categories=[np.arange(n) for n in data.shape]).fit_transform(cells)
    y = np.minimum(data.values, task.ceiling)
    for point in OFFSET_GRID:
        model = Ridge(point["alpha"], solver="sparse_cg", tol=1e-6).fit(X[train], y[train])
        yield point, model.predict(X)


def factors(clipped: str, below: float) -> Callable[[Task], Iterator]:
    """Return predictions by FroCMC with offsets and the cut so much below the ceiling."""

    def predictions(task: Task) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
        cells = task.intervals(task.ceiling - below)
        for point in FACTOR_GRID:
            model = FroCMC(
                point["k"],
                clipped=clipped,
                alpha=point["alpha"],
                alpha_bias=point["alpha_bias"],
                bias=True,
                random_state=0,
            ).fit(cells)
            yield point, model.predict(task.ratings.rows, task.ratings.cols)

    return predictions


MODELS = {
    "bias only": offsets,
    "bias + MC": factors("value", 0.0),
    "bias + hinge": factors("hinge", 0.0),
    "bias + Tobit": factors("tobit", 0.5),
}


def run(ratings: Ratings, number: int, seed: int, model: str) -> dict[str, Any]:
    task = Task.of(ratings, number, seed)
    grid = [
        {
            **point,
            "validation": task.scores(prediction, task.validation),
            "test": {"F1": task.f1(prediction), **task.scores(prediction, task.test)},
        }
        for point, prediction in MODELS[model](task)
    ]
    return {"share_high": float(task.high[task.test].mean()), "grid": grid}


def runs(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    todo = list(product(args.data, args.seeds, (1, 2), args.models))
    loaded = {name: DATA[name]() for name in args.data}
    with progress() as bar:
        label = bar.add_task("ratings", total=len(todo))
        for name, seed, number, model in todo:
            bar.update(label, description=f"{name}, task {number}, seed {seed}, {model}")
            settings = {
                **{"data": name, "task": number, "seed": seed, "model": model},
                "grid": OFFSET_GRID if model == "bias only" else FACTOR_GRID,
            }
            file = f"{name}-task{number}-seed{seed}-{model.replace(' ', '')}.json"
            yield resume(
                RESULTS / "ratings" / file,
                settings,
                lambda: run(loaded[name], number, seed, model),  # noqa: B023
            )
            bar.advance(label)


def summarise(results: list[dict[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for name, number, model in product(args.data, (1, 2), args.models):
        key = {"data": name, "task": number, "model": model}
        mine = [r for r in results if key.items() <= _plain(r["settings"]).items()]
        points = mine[0]["settings"]["grid"]
        best = int(np.argmax([_mean_validation(mine, i) for i in range(len(points))]))
        row: dict[str, Any] = {**key, "seeds": len(mine), "chosen": points[best]}
        for metric in ("F1", "AP", "AUC"):
            row[metric], row[f"{metric}_se"] = mean_and_error(
                [r["grid"][best]["test"][metric] for r in mine]
            )
        rows.append(row)
    return rows


def _mean_validation(results: list[dict[str, Any]], i: int) -> float:
    return float(np.mean([r["grid"][i]["validation"]["AP"] for r in results]))


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != "grid"}


def table(summary: list[dict[str, Any]], args: argparse.Namespace) -> str:
    columns = list(product(args.data, (1, 2)))
    cells = {
        (row["model"], row["data"], row["task"]): "/".join(
            f"{row[metric]:.3f}".lstrip("0") for metric in ("F1", "AP", "AUC")
        )
        for row in summary
    }
    return "F1 / AP / AUC on the test cells, mean over the seeds.\n\n" + markdown_table(
        ["model", *(f"{name}, task {number}" for name, number in columns)],
        ([model, *(cells[model, *column] for column in columns)] for model in args.models),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--name", default="ratings", help="name of the summary files")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message=".*(exact|observed) cell", category=UserWarning)
    summary = summarise(list(runs(args)), args)
    write_json(RESULTS / f"{args.name}.json", {"versions": versions(), "rows": summary})
    (RESULTS / f"{args.name}.md").write_text(table(summary, args))
    print(table(summary, args))


if __name__ == "__main__":
    main()
