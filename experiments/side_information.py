"""What features, groups and known errors are worth: plates, cold starts, known errors.

Each study is simulated, repeated over seeds, and printed as it runs:

    python experiments/side_information.py plates cold errors --seeds 5

plates  12 plates with shifts of one standard deviation in each column and limits of their own
cold    ratings with features of users and items: rows without any rating, and warm ones
errors  the setting of ebTobit: a low-rank mean, known errors, cells below a limit of detection
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from declip import BayesCMC, FroCMC, Intervals


def rmse(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def plates(seed: int) -> dict[str, float]:
    """Return errors of clipped cells, over that of leaving them at the limit."""
    rng = np.random.default_rng(seed)
    n, m, k = 360, 20, 3
    plate = np.arange(n) % 12
    values = rng.standard_normal((n, k)) @ rng.standard_normal((k, m)) / np.sqrt(k)
    values += 0.5 * rng.standard_normal((n, m))
    truth = values + values.std(axis=0) * rng.standard_normal((12, m))[plate]
    share = rng.uniform(0.6, 0.95, (12, m))
    limit = np.array(
        [[np.quantile(truth[plate == p, j], share[p, j]) for j in range(m)] for p in range(12)]
    )[plate]
    seen, at = np.minimum(truth, limit), truth > limit
    left = rmse(limit[at], truth[at])
    found = {}
    for name, model in (
        ("BayesCMC", BayesCMC(ceiling=limit, n_samples=150, burn_in=100, random_state=seed)),
        ("FroCMC", FroCMC(ceiling=limit, clipped="tobit", random_state=seed)),
    ):
        for word, known in (("", {}), (" with groups", {"groups": plate})):
            found[name + word] = rmse(model.fit_transform(seen, **known)[at], truth[at]) / left
    return found


def ratings(seed: int) -> tuple[np.ndarray, ...]:
    """Return ratings as ML-100K has them (943 x 1682, 100,000 cells), with features."""
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
    return rows, cols, value, of_users, of_items


def cold(seed: int) -> dict[str, float]:
    """Return errors of users without a rating, and of others; CPU seconds of a sweep."""
    rows, cols, value, of_users, of_items = ratings(seed)
    rng = np.random.default_rng(seed + 100)
    n, m = len(of_users), len(of_items)
    new = np.zeros(n, bool)
    new[rng.choice(n, n // 10, replace=False)] = True
    held = ~new[rows] & (rng.random(len(rows)) < 0.1)
    train = ~new[rows] & ~held
    place = np.cumsum(~new) - 1
    cells = Intervals.from_triplets(
        place[rows[train]], cols[train], value[train], (int((~new).sum()), m)
    )
    found = {"mean, cold": rmse(value[train].mean(), value[new[rows]])}
    how = {"bias": True, "scale": "none", "clipped": "value", "random_state": seed}
    for word, known in (
        ("", {}),
        (" with features", {"row_features": of_users[~new], "column_features": of_items}),
    ):
        model = FroCMC(10, alpha=10.0, **how)
        began = time.process_time()
        model.fit(cells, **known)
        found[f"CPU s a sweep{word}"] = (time.process_time() - began) / model.n_iter_
        x = model.predict(place[rows[held]].astype(np.int32), cols[held])
        found[f"FroCMC{word}, warm"] = rmse(x, value[held])
        empty = np.full((int(new.sum()), m), np.nan)
        asked = {"row_features": of_users[new]} if known else {}
        table = model.predict(empty, **asked)
        at = new[rows]
        found[f"FroCMC{word}, cold"] = rmse(
            table[(np.cumsum(new) - 1)[rows[at]], cols[at]], value[at]
        )
    return found


def errors(seed: int) -> dict[str, float]:
    """Return errors of the means, over those of the values as they were seen."""
    rng = np.random.default_rng(seed)
    n, p = 1000, 10
    mean = np.abs(rng.standard_normal((n, 2)) @ rng.standard_normal((2, p))) + 0.5
    sd = rng.uniform(0.3, 1.5, (n, p))
    value = mean + sd * rng.standard_normal((n, p))
    lower, upper = value.copy(), value.copy()
    below = value < 0.8
    lower[below], upper[below] = 0.0, 0.8
    cells = Intervals.from_bounds(lower, upper)
    seen = np.where(below, 0.4, value)
    base = rmse(seen, mean)
    how = {"n_samples": 150, "burn_in": 100, "random_state": seed}
    return {
        "half the limit": 1.0,
        "BayesCMC": rmse(BayesCMC(**how).fit(cells).reconstruct(), mean) / base,
        "BayesCMC, known errors": rmse(BayesCMC(**how).fit(cells, errors=sd).reconstruct(), mean)
        / base,
    }


STUDIES: dict[str, Callable[[int], dict[str, float]]] = {
    "plates": plates,
    "cold": cold,
    "errors": errors,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", default=list(STUDIES))
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    for name in asked.studies:
        found = [STUDIES[name](seed) for seed in range(asked.seeds)]
        print(f"{name}, mean over {asked.seeds} seeds")
        for what in found[0]:
            numbers = [one[what] for one in found]
            print(f"  {what:<32}{np.mean(numbers):.4f}  ({min(numbers):.4f} to {max(numbers):.4f})")


if __name__ == "__main__":
    main()
