"""Ratings that come in batches: `FroCMC.extend` beside a new fit after each.

    python experiments/stream.py

Half of the users are there at first, the others come in 20 batches, with ratings of their own and
more ratings of known users and of items that nobody had rated. After each batch the model that was
extended is compared with one fitted to all ratings that are there: CPU seconds, and the error of
held-out ratings of users who have come. `warm` is the same by `warm_start` and three sweeps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, publish
from ratings import DATA
from sklearn.base import clone

from declip import FroCMC, Intervals
from declip.datasets import Ratings

BATCHES = 20
METHODS = {"extend": "`extend`", "warm": "`warm_start`, 3 sweeps"}
SETTINGS = {"n_components": 10, "alpha": 5.0, "bias": True, "scale": "none"}


@dataclass(frozen=True, eq=False)
class Stream:
    """Ratings with the batch in which each comes; 0 is there from the start."""

    ratings: Ratings
    batch: np.ndarray
    test: np.ndarray

    @classmethod
    def of(cls, ratings: Ratings, seed: int) -> Stream:
        rng, n_users = np.random.default_rng(seed), ratings.shape[0]
        later = np.maximum(0, np.arange(n_users) * 2 * BATCHES // n_users - BATCHES + 1)
        joins = rng.permutation(later)[ratings.rows]
        size = ratings.values.size
        comes = np.where(rng.random(size) < 0.7, 0, rng.integers(0, BATCHES + 1, size))
        return cls(ratings, np.maximum(joins, comes), rng.random(size) < 0.1)

    def cells(self, which: np.ndarray) -> Intervals:
        """Return some of the ratings, users and items by their labels."""
        data = self.ratings
        (users, rows), (items, cols) = (
            np.unique(ids[which], return_inverse=True) for ids in (data.rows, data.cols)
        )
        found = Intervals.from_triplets(rows, cols, data.values[which], ceiling=data.ceiling)
        return Intervals(found.shape, found.by_row, users.astype(object), items.astype(object))

    def error(self, model: FroCMC, batch: int) -> float:
        """Return the error of held-out ratings of users and items that have come."""
        data, which = self.ratings, self.test & (self.batch <= batch)
        which &= np.isin(data.rows, model.row_labels_.astype(int))
        which &= np.isin(data.cols, model.column_labels_.astype(int))
        found = model.predict(*model.locate(data.rows[which], data.cols[which]))
        found = np.clip(found, data.values.min(), data.ceiling)
        return float(np.sqrt(np.mean((found - data.values[which]) ** 2)))


def timed(model: FroCMC, update: Callable[[FroCMC], Any]) -> tuple[FroCMC, float]:
    """Return the updated model and the CPU seconds of it, the least of three runs."""
    seconds = []
    for _ in range(3):
        twin = object.__new__(FroCMC)  # with the cells of the fit, which a copy would not have
        twin.__dict__.update(vars(model))
        begin = time.process_time()
        update(twin)
        seconds.append(time.process_time() - begin)
    return twin, min(seconds)


def run(name: str, seed: int) -> dict[str, Any]:
    stream, found = Stream.of(DATA[name](), seed), []
    first = stream.cells((stream.batch == 0) & ~stream.test)
    plain = FroCMC(**SETTINGS, random_state=seed)
    models = {method: clone(plain).fit(first) for method in METHODS}
    models["warm"].set_params(warm_start=True, max_iter=3)
    for batch in range(1, BATCHES + 1):
        new = stream.cells((stream.batch == batch) & ~stream.test)
        now = stream.cells((stream.batch <= batch) & ~stream.test)
        updates = {
            "extend": lambda model, cells=new: model.extend(cells),
            "warm": lambda model, cells=now: model.fit(cells),
        }
        fresh, seconds = timed(plain, lambda model, cells=now: model.fit(cells))
        line: dict[str, Any] = {"batch": batch, "cells": len(now), "new": len(new)}
        line["refit"] = {"seconds": seconds, "error": stream.error(fresh, batch)}
        for method, update in updates.items():
            models[method], seconds = timed(models[method], update)
            line[method] = {"seconds": seconds, "error": stream.error(models[method], batch)}
        found.append(line)
    return {"batches": found}


def summary(batches: list[dict[str, Any]], method: str) -> dict[str, float]:
    """Return the share of the time of a new fit, and how far the error lies above its error."""
    share = [line[method]["seconds"] / line["refit"]["seconds"] for line in batches]
    above = [line[method]["error"] / line["refit"]["error"] - 1 for line in batches]
    last = [x for x, line in zip(above, batches, strict=True) if line["batch"] == BATCHES]
    return {
        "time, median": float(np.median(share)),
        "time, largest": float(np.max(share)),
        "error, mean": float(np.mean(above)),
        "error, largest": float(np.max(above)),
        "error, after the last batch": float(np.mean(last)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=range(3))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    runs, lines = Runs(RESULTS / "stream.jsonl"), []
    for name in DATA:
        batches = []
        for seed in args.seeds:
            found = runs.resume(f"{name}, {seed}", SETTINGS, lambda n=name, s=seed: run(n, s))
            batches += found["batches"]
        for method, words in METHODS.items():
            one = summary(batches, method)
            lines.append([name, words, *(f"{100 * x:.1f} %" for x in one.values())])
    publish("stream", markdown_table(["ratings", "update", *one], lines))


if __name__ == "__main__":
    main()
