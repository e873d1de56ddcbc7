"""Is what `restore` says true of tables that are drawn from a model?

    python experiments/simulated_restore.py

Stock-outs: demand of 30 products on 56 days, Poisson with levels, weekdays and drift, of which no
more than the stock is sold. Laboratories: 150 samples of six analytes in three laboratories whose
limits of the first one are .08, 1 and 3 where the truth is about .1. Two factors: the model of
`BayesCMC` itself, with ceilings at the upper quartiles. Surveys: six items from 1 to 5, rounded; a
5 is a ceiling, at both ends a 1 is a floor too. No seed from 120 on was used to settle anything in
`restore`. The page is of all runs that are stored; with ``--again`` those of `restore` are made
anew, and those of `BayesCMC` kept.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, progress, publish

from declip import BayesCMC, restore

RUNS = Runs(RESULTS / "simulated_restore.jsonl")
PEERS_RUNS = Runs(RESULTS / "peers" / "simulated_restore.jsonl")
_LABORATORIES = (0.08, 1.0, 3.0)


def stock_outs(seed: int) -> dict[str, float]:
    """Return the error of what was not sold, and the sum of lost sales, against the truth."""
    rng = np.random.default_rng(seed)
    n, days = 30, 56
    level, week = np.exp(rng.normal(2.5, 0.7, n)), np.exp(0.3 * rng.normal(size=7))
    drift = np.exp(rng.normal(0, 0.25, n)[:, None] * np.linspace(-1, 1, days))
    demand = rng.poisson(level[:, None] * week[np.arange(days) % 7] * drift).astype(float)
    stock = np.round(level * rng.uniform(0.9, 1.6, n))[:, None] * rng.uniform(0.8, 1.3, (n, days))
    stock = np.maximum(stock, 1).round()
    sold = np.minimum(demand, stock)
    r = restore(sold, stock)
    at = sold >= stock
    return {
        "relative": _rms((r.table - demand)[at]) / _rms((sold - demand)[at]),
        "lost_sales": float((r.table - sold)[at].sum() / (demand - sold)[at].sum()),
        "cover": _held(r, demand, at),
    }


def laboratories(seed: int) -> dict[str, float]:
    """Return coverage and mean factor over the truth by laboratory, and typical factors of all."""
    rng = np.random.default_rng(seed)
    n, p = 150, 6
    logs = 0.5 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))
    truth = np.exp(logs + np.log([0.1, 1, 5, 20, 2, 0.5]))
    floor = np.tile(np.quantile(truth, 0.1, axis=0), (n, 1))
    lab = rng.integers(3, size=n)
    floor[:, 0] = np.array(_LABORATORIES)[lab]
    r = restore(np.maximum(truth, floor), floor=floor, log=True)
    below, said = truth <= floor, r.expected_factors
    found = {
        "off_said": said[0],
        "off": _factor_off(r.table, truth, below),
        "limits_off_said": said[1],
        "limits_off": _factor_off(floor, truth, below),
    }
    for k, limit in enumerate(_LABORATORIES):
        at = np.zeros(truth.shape, bool)
        at[:, 0] = (truth[:, 0] <= floor[:, 0]) & (lab == k)
        found[f"factor_{limit:g}"] = float(np.exp(np.mean(np.log(r.table[at] / truth[at]))))
        found[f"cover_{limit:g}"] = _held(r, truth, at)
    return found


def _two_factors(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of two factors and noise, and its upper quartiles."""
    rng = np.random.default_rng(seed)
    n, p = 200, 10
    truth = rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))
    return truth, np.quantile(truth, 0.75, axis=0)


def two_factors(seed: int) -> dict[str, float]:
    """Return the error of the clipped cells, and the coverage."""
    truth, ceiling = _two_factors(seed)
    at = truth >= ceiling
    r = restore(np.minimum(truth, ceiling), ceiling)
    return {"error": _rms((r.table - truth)[at]), "cover": _held(r, truth, at)}


def by_bayes(seed: int) -> dict[str, float]:
    """Return the error of BayesCMC, whose model the tables of two factors are drawn from."""
    truth, ceiling = _two_factors(seed)
    model = BayesCMC(ceiling=ceiling, random_state=seed)
    table = model.fit_transform(np.minimum(truth, ceiling))
    return {"error": _rms((table - truth)[truth >= ceiling])}


def surveys(seed: int, **floor: float) -> dict[str, float]:
    """Return error and gain against leaving the end answers, and the coverage behind them."""
    rng = np.random.default_rng(seed)
    latent = 3.6 + rng.normal(size=(300, 1)) + 0.7 * rng.normal(size=(300, 6))
    seen = np.clip(np.round(latent), 1, 5)
    r, at = restore(seen, ceiling=5, **floor), (seen == 5) | ((seen == 1) & bool(floor))
    return {
        "relative": _rms((r.table - latent)[at]) / _rms((seen - latent)[at]),
        "gain_said": r.expected_gain,
        "cover": _held(r, latent, at),
    }


def surveys_at_both_ends(seed: int) -> dict[str, float]:
    """Return the same where a 1 is a floor, too."""
    return surveys(seed, floor=1)


STUDIES: dict[str, Callable[[int], dict[str, float]]] = {
    "stock-outs": stock_outs,
    "laboratories": laboratories,
    "two factors": two_factors,
    "surveys": surveys,
    "surveys, both ends": surveys_at_both_ends,
}


def _factor_off(values: np.ndarray, truth: np.ndarray, at: np.ndarray) -> float:
    """Return the factor by which some values are off: root mean square of logarithms."""
    return float(np.exp(_rms(np.log(values[at] / truth[at]))))


def _rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _held(r: Any, truth: np.ndarray, at: np.ndarray) -> float:
    """Return the share of the truths that the bands hold."""
    held = (r.lower[at] <= truth[at] * (1 + 1e-9)) & (truth[at] <= r.upper[at] * (1 + 1e-9))
    return float(held.mean())


def page(rows: Sequence[dict[str, Any]]) -> str:
    """Return mean and extremes of each figure of each study."""
    lines = []
    for study in STUDIES:
        some = [r for r in rows if r["study"] == study]
        for name in some[0] if some else ():
            if name not in ("study", "seed"):
                values = np.array([r[name] for r in some])
                shown = (f"{x:.3f}" for x in (values.mean(), values.min(), values.max()))
                lines.append([study, name.replace("_", " "), str(len(some)), *shown])
    return (
        "# What `restore` says of simulated tables\n\nMade by `experiments/simulated_restore.py`, "
        "whose head says how. `relative` is the error of the clipped cells against leaving them "
        "at their limit, `lost sales` the sum of what was restored beyond the stock against the "
        "true one, `gain said` the share of the error that `restore` says it takes away, "
        "`against bayes` the error against that of BayesCMC, `off` and `limits off` the factors by "
        "which restored values and limits are off (root mean square) and are said to be, `factor` "
        "the geometric mean of restored values over true ones by the limit of the laboratory, "
        "`cover` what the 90 % bands hold.\n\n"
        + markdown_table(["study", "figure", "seeds", "mean", "least", "most"], lines)
        + _lost_sales([r for r in rows if r["study"] == "stock-outs"])
    )


def _lost_sales(rows: Sequence[dict[str, Any]]) -> str:
    near = sum(abs(r["lost_sales"] - 1) <= 0.15 for r in rows)
    better = sum(r["relative"] < 1 for r in rows)
    return (
        f"\nStock-outs: better than leaving in {better} of {len(rows)} seeds; lost sales within "
        f"15 % of the truth in {near}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", nargs="+", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(120, 140)))
    parser.add_argument("--again", action="store_true", help="run restore anew")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with progress() as bar:
        for study, seed in bar.track(list(product(args.studies, args.seeds)), description="tables"):
            settings, name = {"study": study, "seed": seed}, f"{study} {seed}"
            if args.again:
                RUNS.forget(name)
            RUNS.resume(name, settings, lambda s=settings: _figures(**s))
            if study == "two factors":
                work = lambda seed=seed: {"figures": by_bayes(seed)}  # noqa: E731
                PEERS_RUNS.resume(name, settings, work)
    RUNS.sort()
    PEERS_RUNS.sort()
    publish("simulated_restore", page(_stored()))


def _figures(study: str, seed: int) -> dict[str, Any]:
    return {"figures": STUDIES[study](seed)}


def _stored() -> list[dict[str, Any]]:
    """Return all runs that are stored, their errors against those of BayesCMC."""
    others = PEERS_RUNS.read()
    rows = []
    for name, run in RUNS.read().items():
        figures = dict(run["figures"])
        if name in others:
            figures["against_bayes"] = figures.pop("error") / others[name]["figures"]["error"]
        rows.append(run["settings"] | figures)
    return rows


if __name__ == "__main__":
    main()
