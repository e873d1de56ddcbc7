"""Raw tables with missing cells: what declip fills in, beside scikit-learn's imputers.

    python experiments/dropin.py

A quarter of the cells of complete tables is removed at random. Every method has its default
settings (`Restorer` with ``fill="all"``, which changes no value but leaves no cell empty), and gets
the columns as they are. Reported is the root mean squared error of the removed cells, in units of
the standard deviation of their column. The second table is of rows that come later: a quarter of
the rows is left out of the fit, and restored by `transform`; reported is their mean error over that
of the same rows in a fit of all of them, with its standard error over seeds. In small tables these
rows have few missing cells, so that more seeds are drawn.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, progress, publish
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from statsmodels.datasets import macrodata, statecrime

from declip import BayesCMC, FroCMC, Restorer, TrCMC

MISSING = 0.25
LATER = 0.25  # of the rows
SMALL, SEEDS_IF_SMALL = 1000, 20  # cells of a table; of rows that come later


def linnerud() -> NDArray:
    found = datasets.load_linnerud()
    return np.hstack([found.data, found.target])


def digits() -> NDArray:
    pixels = datasets.load_digits().data[:300]
    return pixels[:, np.ptp(pixels, axis=0) > 0]


TABLES: dict[str, Callable[[], NDArray]] = {
    "iris": lambda: datasets.load_iris().data,
    "wine": lambda: datasets.load_wine().data,
    "breast cancer": lambda: datasets.load_breast_cancer().data,
    "diabetes": lambda: datasets.load_diabetes(scaled=False).data,
    "linnerud": linnerud,
    "state crime": lambda: statecrime.load_pandas().data.to_numpy(float),
    "US economy": lambda: macrodata.load_pandas().data.to_numpy(float)[:, 2:],
    "digits": digits,
}
METHODS: dict[str, Callable[[int], Any]] = {
    "FroCMC": lambda seed: FroCMC(random_state=seed),
    "TrCMC": lambda _: TrCMC(),
    "BayesCMC": lambda seed: BayesCMC(random_state=seed),
    "Restorer": lambda seed: Restorer(fill="all", random_state=seed),
    "IterativeImputer": lambda seed: IterativeImputer(random_state=seed),
    "KNNImputer": lambda _: KNNImputer(),
}


OURS = ("FroCMC", "TrCMC", "BayesCMC", "Restorer")


def without_some(truth: NDArray, seed: int) -> NDArray:
    hidden = np.random.default_rng(seed).random(truth.shape) < MISSING
    return np.where(hidden, np.nan, truth)


def error(filled: NDArray, table: NDArray, truth: NDArray, unit: NDArray) -> float:
    errors = ((filled - truth) / unit)[np.isnan(table)]
    return float(np.sqrt(np.mean(errors**2)))


def run(truth: NDArray, method: str, seed: int) -> dict[str, float]:
    table = without_some(truth, seed)
    filled = METHODS[method](seed).fit_transform(table)
    return {"error": error(filled, table, truth, truth.std(axis=0))}


def run_later(truth: NDArray, method: str, seed: int) -> dict[str, float]:
    """Return the errors of rows that were not fitted, and of the same rows if they were."""
    table, unit = without_some(truth, seed), truth.std(axis=0)
    later = np.random.default_rng(seed + 1000).random(len(truth)) < LATER
    known = METHODS[method](seed).fit(table[~later])
    found = known.transform(table[later]), METHODS[method](seed).fit_transform(table)[later]
    errors = (error(x, table[later], truth[later], unit) for x in found)
    return dict(zip(("transform", "joint"), errors, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=range(3))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    errors, later = Runs(RESULTS / "dropin.jsonl"), Runs(RESULTS / "new_rows.jsonl")
    lines: list[list[str]] = []
    ratios: list[list[str]] = []
    with progress() as bar:
        for name, load in bar.track(list(TABLES.items()), description="tables"):
            truth = load()
            found = [_runs(errors, name, truth, method, args.seeds, run) for method in METHODS]
            lines.append([name, *(f"{_mean(runs, 'error'):.3f}" for runs in found)])
            seeds = range(SEEDS_IF_SMALL) if truth.size < SMALL else args.seeds
            found = [_runs(later, name, truth, method, seeds, run_later) for method in OURS]
            ratios.append([name, str(len(seeds)), *map(_ratio_with_error, found)])
    publish("dropin", markdown_table(["table", *METHODS], lines))
    publish("new_rows", markdown_table(["table", "seeds", *OURS], ratios))


def _runs(
    runs: Runs, name: str, truth: NDArray, method: str, seeds: Any, make: Callable[..., Any]
) -> list[dict[str, Any]]:
    """Return the runs of a method on a table, one a seed."""
    settings = {"missing": MISSING, "shape": list(truth.shape)}
    return [
        runs.resume(
            f"{name}, {method}, {seed}",
            settings | {"seed": seed},
            lambda s=seed: make(truth, method, s),
        )
        for seed in seeds
    ]


def _mean(runs: list[dict[str, Any]], what: str) -> float:
    return float(np.mean([found[what] for found in runs]))


def _ratio(runs: list[dict[str, Any]]) -> float:
    return _mean(runs, "transform") / _mean(runs, "joint")


def _ratio_with_error(runs: list[dict[str, Any]]) -> str:
    """Return the ratio of mean errors, and its standard error by the jackknife over seeds."""
    left = [_ratio(runs[:i] + runs[i + 1 :]) for i in range(len(runs))] if len(runs) > 1 else []
    spread = np.sqrt(len(left) - 1) * np.std(left) if left else np.nan
    return f"{_ratio(runs):.3f} ± {spread:.3f}"


if __name__ == "__main__":
    main()
