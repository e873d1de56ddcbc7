"""Raw tables with missing cells: what declip fills in, beside scikit-learn's imputers.

    python experiments/dropin.py

A quarter of the cells of complete tables is removed at random. Every method has its default
settings, and gets the columns as they are. Reported is the root mean squared error of the removed
cells, in units of the standard deviation of their column.
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
    "Restorer": lambda seed: Restorer(random_state=seed),
    "IterativeImputer": lambda seed: IterativeImputer(random_state=seed),
    "KNNImputer": lambda _: KNNImputer(),
}


def run(truth: NDArray, method: str, seed: int) -> dict[str, float]:
    hidden = np.random.default_rng(seed).random(truth.shape) < MISSING
    table = np.where(hidden, np.nan, truth)
    filled = METHODS[method](seed).fit_transform(table)
    errors = ((filled - truth) / truth.std(axis=0))[hidden]
    return {"error": float(np.sqrt(np.mean(errors**2)))}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=range(3))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = Runs(RESULTS / "dropin.jsonl")
    errors: dict[str, dict[str, float]] = {}
    with progress() as bar:
        for name, load in bar.track(list(TABLES.items()), description="tables"):
            truth = load()
            errors[name] = {
                method: float(np.mean([_error(runs, name, truth, method, s) for s in args.seeds]))
                for method in METHODS
            }
    lines = (_line(*row) for row in errors.items())
    publish("dropin", markdown_table(["table", *METHODS], lines))


def _error(runs: Runs, name: str, truth: NDArray, method: str, seed: int) -> float:
    settings = {"missing": MISSING, "shape": list(truth.shape), "seed": seed}
    return runs.resume(f"{name}, {method}, {seed}", settings, lambda: run(truth, method, seed))[
        "error"
    ]


def _line(name: str, row: dict[str, float]) -> list[str]:
    return [name, *(f"{error:.3f}" for error in row.values())]


if __name__ == "__main__":
    main()
