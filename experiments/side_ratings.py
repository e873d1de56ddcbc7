"""Ratings with features of users and items: users without a rating, beside cmfrec.

Two kinds of tables: simulated ones of the size and sparsity of MovieLens-100K, and MovieLens-100K
itself with what its file says besides ratings (when a user came, when and how often an item was
rated). Of each method the ridge is chosen on users (cold) or cells (warm) held out for it.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from declip import FroCMC, Intervals

RANK = 10
RIDGES = (2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 25.0)
SIDE_WEIGHTS = (0.1, 1.0, 10.0)  # of the features in cmfrec, which its objective has besides
SWEEPS = 20
TIMED = (5, 45)  # sweeps: what one costs is the difference over 40
NAMES = ("FroCMC", "FroCMC, features", "cmfrec, features")
SETTINGS = {"rank": RANK, "ridges": RIDGES, "side_weights": SIDE_WEIGHTS, "sweeps": SWEEPS}


class Ratings(NamedTuple):
    """Rated cells, and features of all users and items."""

    rows: NDArray
    cols: NDArray
    value: NDArray
    of_users: NDArray
    of_items: NDArray

    def take(self, which: NDArray) -> Ratings:
        """Return some of the cells."""
        return Ratings(
            self.rows[which], self.cols[which], self.value[which], self.of_users, self.of_items
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return len(self.of_users), len(self.of_items)


def simulated(seed: int) -> Ratings:
    """Return 100,000 ratings of 943 users and 1,682 items, half of whose tastes features say."""
    rng = np.random.default_rng(seed)
    n, m, k = 943, 1682, 8
    of_users, of_items = rng.standard_normal((n, 10)), rng.standard_normal((m, 18))
    P = of_users @ rng.standard_normal((10, k)) / np.sqrt(10) + 0.7 * rng.standard_normal((n, k))
    Q = of_items @ rng.standard_normal((18, k)) / np.sqrt(18) + 0.7 * rng.standard_normal((m, k))
    b, c = 0.3 * of_users[:, 0] + 0.3 * rng.standard_normal(n), 0.4 * rng.standard_normal(m)
    truth = 3.5 + b[:, None] + c + 0.5 * P @ Q.T / np.sqrt(k)
    popular = rng.zipf(1.4, m).clip(max=300) * 1.0
    cells = rng.choice(n * m, 100_000, replace=False, p=np.tile(popular / popular.sum() / n, n))
    rows, cols = np.divmod(cells, m)
    value = np.clip(np.round(truth[rows, cols] + 0.8 * rng.standard_normal(len(rows))), 1, 5)
    return Ratings(rows, cols, value, of_users, of_items)


def movielens(seed: int) -> Ratings:
    """Return MovieLens-100K with the day and hour users came, and how items were rated."""
    path = Path(os.environ["DECLIP_DATA"]) / "ml-100k" / "u.data"
    users, items, value, when = np.loadtxt(path, np.int64).T
    rows, cols = users - 1, items - 1
    return Ratings(rows, cols, value.astype(float), *features_of_times(rows, cols, when))


def features_of_times(rows: NDArray, cols: NDArray, when: NDArray) -> tuple[NDArray, NDArray]:
    """Return of each user the first day, hour and weekday; of each item popularity and age."""
    first = np.full((2, max(rows.max(), cols.max()) + 1), when.max())
    np.minimum.at(first[0], rows, when)
    np.minimum.at(first[1], cols, when)
    of_users, of_items = first[0, : rows.max() + 1], first[1, : cols.max() + 1]
    day = of_users / 86400.0
    users = [day, np.sin(2 * np.pi * day), np.cos(2 * np.pi * day), (day // 1 % 7) >= 5]
    items = [np.log1p(np.bincount(cols)), of_items / 86400.0]
    return tuple(_standardised(np.column_stack(parts).astype(float)) for parts in (users, items))


def _standardised(X: NDArray) -> NDArray:
    return (X - X.mean(0)) / X.std(0)


TABLES: dict[str, Callable[[int], Ratings]] = {"simulated": simulated, "ml-100k": movielens}


@dataclass(frozen=True)
class Split:
    """Cells to learn from, and cells of cold users and of others to choose and to judge by."""

    train: Ratings
    cold_choose: Ratings
    cold_judge: Ratings
    warm_choose: Ratings
    warm_judge: Ratings

    @classmethod
    def of(cls, table: Ratings, seed: int) -> Split:
        """Set two tenths of the users aside, and two tenths of the cells of the others."""
        rng = np.random.default_rng(1000 + seed)
        user = rng.integers(0, 10, table.shape[0])[table.rows]
        cell = np.where(user < 2, -1, rng.integers(0, 10, len(table.rows)))
        parts = (cell >= 2, user == 0, user == 1, cell == 0, cell == 1)
        return cls(*(table.take(part) for part in parts))


class Method(NamedTuple):
    """Parameters to choose from, a fit under some of them, and how it predicts."""

    parameters: list[dict[str, float]]
    fit: Callable[..., Any]
    warm: Callable[[Any, Ratings], NDArray]
    cold: Callable[[Any, Ratings], NDArray]


def fro(features: bool) -> Method:
    """Return FroCMC, with what is known besides or without."""

    def fit(train: Ratings, alpha: float, sweeps: int = SWEEPS) -> FroCMC:
        known = {"row_features": train.of_users, "column_features": train.of_items}
        cells = Intervals.from_triplets(train.rows, train.cols, train.value, train.shape)
        how = {"bias": True, "scale": "none", "clipped": "value", "random_state": 0, "tol": 0}
        model = FroCMC(RANK, alpha=alpha, max_iter=sweeps, **how)
        return model.fit(cells, **(known if features else {}))

    def cold(model: FroCMC, asked: Ratings) -> NDArray:
        users, place = np.unique(asked.rows, return_inverse=True)
        empty = np.full((len(users), asked.shape[1]), np.nan)
        known = {"row_features": asked.of_users[users]} if features else {}
        return model.predict(empty, **known)[place, asked.cols]

    def warm(model: FroCMC, asked: Ratings) -> NDArray:
        return model.predict(asked.rows, asked.cols)

    return Method([{"alpha": ridge} for ridge in RIDGES], fit, warm, cold)


def cmf() -> Method:
    """Return the collective factorisation of cmfrec, by Cholesky factors: here the quicker way."""
    from cmfrec import CMF

    def fit(train: Ratings, lambda_: float, weight: float = 1.0, sweeps: int = SWEEPS) -> CMF:
        cells = sparse.coo_matrix((train.value, (train.rows, train.cols)), train.shape)
        model = CMF(
            RANK,
            lambda_=lambda_,
            w_user=weight,
            w_item=weight,
            niter=sweeps,
            use_cg=False,
            nthreads=1,
        )
        return model.fit(cells, U=train.of_users, I=train.of_items)

    def cold(model: CMF, asked: Ratings) -> NDArray:
        return model.predict_cold_multiple(asked.cols, U=asked.of_users[asked.rows])

    def warm(model: CMF, asked: Ratings) -> NDArray:
        return model.predict(asked.rows, asked.cols)

    grid = [{"lambda_": ridge, "weight": w} for ridge in RIDGES for w in SIDE_WEIGHTS]
    return Method(grid, fit, warm, cold)


def methods() -> dict[str, Method]:
    """Return the methods by name; cmfrec where it is installed."""
    ours = [fro(features=False), fro(features=True)]
    return dict(zip(NAMES, [*ours, cmf()] if find_spec("cmfrec") else ours, strict=False))


def study(name: str, seed: int) -> dict[str, Any]:
    """Return errors of cold and of warm cells of each method, and CPU seconds of a sweep."""
    split, found = Split.of(TABLES[name](seed), seed), {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the sweeps are counted: no fit is to settle
        for word, method in methods().items():
            found[word] = _judged(method, split) | {"seconds": _seconds_of_a_sweep(method, split)}
    return found


def _judged(method: Method, split: Split) -> dict[str, Any]:
    """Return errors under the parameters that the cells to choose by prefer, for each task."""
    best: dict[str, Any] = {}
    for given in method.parameters:
        model = method.fit(split.train, **given)
        for task, predict in (("cold", method.cold), ("warm", method.warm)):
            choose = _rmse(predict(model, getattr(split, f"{task}_choose")), split, task, "choose")
            if choose < best.get(task, {"choose": np.inf})["choose"]:
                judge = _rmse(predict(model, getattr(split, f"{task}_judge")), split, task, "judge")
                best[task] = {"choose": choose, "judge": judge, **given}
    return best


def _rmse(found: NDArray, split: Split, task: str, part: str) -> float:
    truth = getattr(split, f"{task}_{part}").value
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def _seconds_of_a_sweep(method: Method, split: Split) -> float:
    """Return the least of three: fits of more sweeps less fits of fewer, in CPU seconds."""
    given: Mapping[str, float] = method.parameters[len(method.parameters) // 2]

    def spent(sweeps: int) -> float:
        began = time.process_time()
        method.fit(split.train, **given, sweeps=sweeps)
        return time.process_time() - began

    return min((spent(TIMED[1]) - spent(TIMED[0])) / (TIMED[1] - TIMED[0]) for _ in range(3))
