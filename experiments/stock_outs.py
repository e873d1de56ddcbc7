"""Sales with stock-outs, weekdays and drift: what an order in time is worth.

    python experiments/stock_outs.py

30 products on 56 days: Poisson demand with levels, weekdays and a drift of each product, of which
no more than the stock is sold. On the scale of square roots, where counts have one noise, each
estimator is fitted with and without `order="columns", period=7`. Reported are errors of the demand
that is to be expected (where a product sold out, and on all days), of the demand itself where it
sold out, lost sales over the true ones, how often 90 % bands of the lost sales of a product hold
them, and errors and bands of the demand of the next seven days, beside the mean of the same weekday
of what was sold.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, progress, publish
from numpy.typing import NDArray
from scipy.stats import norm

from declip import BayesCMC, FroCMC, Intervals, from_scale

N, DAYS, AHEAD = 30, 56, 7
TIME = {"order": "columns", "period": 7}
SHORT = {"n_samples": 150, "burn_in": 150, "chains": 1}
METHODS: dict[str, Callable[[int], Any]] = {
    "FroCMC": lambda seed: FroCMC(clipped="tobit", scale="table", random_state=seed),
    "FroCMC, order": lambda seed: FroCMC(clipped="tobit", **TIME, random_state=seed),
    "BayesCMC": lambda seed: BayesCMC(noise="global", **SHORT, random_state=seed),
    "BayesCMC, order": lambda seed: BayesCMC(noise="global", **TIME, **SHORT, random_state=seed),
}
HEAD = {
    "expected": "expected demand, sold out",
    "expected_all": "expected demand, all days",
    "demand": "demand, sold out",
    "lost": "lost sales, of the true ones",
    "held": "in 90 % bands",
    "ahead": "next week",
    "ahead_held": "in 90 % bands, next week",
}


def simulated(seed: int) -> tuple[NDArray, NDArray, NDArray]:
    """Return expected demand, demand and stock, of the days that are seen and of the next week."""
    rng, days = np.random.default_rng(seed), DAYS + AHEAD
    level, week = np.exp(rng.normal(2.5, 0.7, N)), np.exp(0.3 * rng.normal(size=7))
    drift = np.exp(rng.normal(0, 0.25, N)[:, None] * np.linspace(-1, 1, days))
    expected = level[:, None] * week[np.arange(days) % 7] * drift
    demand = rng.poisson(expected).astype(float)
    stock = np.round(level * rng.uniform(0.9, 1.6, N))[:, None] * rng.uniform(0.8, 1.3, (N, days))
    return expected, demand, np.maximum(stock, 1).round()


def run(seed: int, method: str) -> dict[str, float]:
    expected, demand, stock = simulated(seed)
    sold = np.minimum(demand, stock)
    out = (sold >= stock)[:, :DAYS]
    ordered = method.endswith("order")
    seen = np.where(np.arange(DAYS + AHEAD) < DAYS, sold, np.nan)
    if not ordered or method.startswith("FroCMC"):
        seen = seen[:, :DAYS]
    ceiling = stock[:, : seen.shape[1]]
    model = METHODS[method](seed)
    cells = Intervals.from_table(seen, ceiling=ceiling).on_scale("sqrt", counts=True)
    model.fit(cells)
    if ordered and method.startswith("FroCMC"):
        model.extend(np.full((N, DAYS + AHEAD), np.nan))
    told = _expected(model)
    restored, found = _restored(model, cells, sold[:, :DAYS], demand[:, :DAYS], out)
    found |= {
        "expected": _rms((told[:, :DAYS] - expected[:, :DAYS])[out]),
        "expected_all": _rms(told[:, :DAYS] - expected[:, :DAYS]),
        "demand": _rms((restored - demand[:, :DAYS])[out]),
        "lost": float((restored - sold[:, :DAYS])[out].sum() / (demand - sold)[:, :DAYS].sum()),
    }
    week = np.nanmean(sold[:, :DAYS].reshape(N, -1, 7), axis=1)
    found["seasonal_ahead"] = _rms(week - demand[:, DAYS:])
    if ordered:
        found["ahead"] = _rms(told[:, DAYS:] - demand[:, DAYS:])
        found["ahead_held"] = _held_ahead(model, np.sqrt(demand))
    return found


def _held_ahead(model: Any, roots: NDArray) -> float:
    """Return how often 90 % bands of the next week hold the demand, by mean and deviation."""
    rows, cols = (at.ravel() for at in np.indices((N, AHEAD)))
    mean, sd = model.predictive(rows, cols + DAYS)
    return float(np.mean(abs(roots[:, DAYS:].ravel() - mean) <= norm.ppf(0.95) * sd))


def _expected(model: Any) -> NDArray:
    """Return the demand that is to be expected: of x = sqrt(demand) it is mean^2 + variance."""
    shape = model.reconstruct().shape
    rows, cols = (at.ravel() for at in np.indices(shape))
    mean, sd = model.predictive(rows, cols)
    return (mean**2 + sd**2).reshape(shape)


def _restored(
    model: Any, cells: Intervals, sold: NDArray, demand: NDArray, out: NDArray
) -> tuple[NDArray, dict[str, float]]:
    """Return the demand where it was cut off, and how often bands hold the sums of products."""
    rows, cols = (at.astype(np.int32) for at in np.nonzero(out))
    lower, upper = cells.bounds_at(rows, cols)
    restored = sold.copy()
    if isinstance(model, FroCMC):
        restored[out] = from_scale(model.expected(rows, cols, lower, upper), "sqrt")
        return restored, {}
    tables = from_scale(model.sample(150, random_state=0), "sqrt").round()[:, :, : out.shape[1]]
    restored[out] = tables.mean(axis=0)[out]
    lost = (tables - sold).sum(axis=2)
    low, high = np.quantile(lost, [0.05, 0.95], axis=0)
    true, some = np.where(out, demand - sold, 0).sum(axis=1), out.any(axis=1)
    return restored, {"held": float(np.mean((true >= low) & (true <= high), where=some))}


def _rms(errors: NDArray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    runs, found = Runs(RESULTS / "stock_outs.jsonl"), {method: [] for method in METHODS}
    with progress() as bar:
        for seed in bar.track(range(args.seeds), description="tables"):
            for method, lines in found.items():
                settings = {"shape": [N, DAYS], "seed": seed, "noise": "one for all"}
                name = f"{method}, {seed}"
                lines.append(runs.resume(name, settings, lambda s=seed, m=method: run(s, m)))
    means = {m: {name: _mean(lines, name) for name in HEAD} for m, lines in found.items()}
    seasonal = _mean(found["FroCMC"], "seasonal_ahead")
    rows = [[m, *(_shown(x) for x in line.values())] for m, line in means.items()]
    rows.append(["mean of the weekday", "", "", "", "", "", _shown(seasonal), ""])
    ratios = {
        m: float(np.mean([a["expected"] / b["expected"] for a, b in _pairs(found, m)]))
        for m in ("FroCMC", "BayesCMC")
    }
    text = markdown_table(["", *HEAD.values()], rows)
    publish("stock_outs", text)
    print("with the order, over without:", ratios)


def _pairs(found: dict[str, list[Any]], method: str) -> list[tuple[Any, Any]]:
    return list(zip(found[f"{method}, order"], found[method], strict=True))


def _mean(lines: list[dict[str, Any]], name: str) -> float | None:
    values = [line[name] for line in lines if name in line]
    return float(np.mean(values)) if values else None


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
