"""Complete tables, clipped by us, so that the truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
)


def _cancer(part: int) -> np.ndarray:
    """Return the means, standard errors or worst values of the ten features, in logs."""
    return np.log(load_breast_cancer().data[:, 10 * part : 10 * part + 10] + 0.01)


def _factors(shape: Callable[[np.ndarray], np.ndarray], n: int, p: int, seed: int) -> np.ndarray:
    """Return a table of three factors and noise, its columns bent."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((n, 3)) @ rng.standard_normal((3, p)) / np.sqrt(3)
    return shape(table + 0.5 * rng.standard_normal((n, p)))


ISSUED: dict[str, Callable[[], np.ndarray]] = {
    "digits": lambda: load_digits().data,
    "breast cancer (log)": lambda: np.log(load_breast_cancer().data + 0.01),
    "wine (log)": lambda: np.log(load_wine().data),
    "diabetes": lambda: np.delete(load_diabetes().data, 1, axis=1),  # without the two-valued sex
    "iris": lambda: load_iris().data,
    "linnerud": lambda: np.hstack([load_linnerud().data, load_linnerud().target]),
}
OTHER: dict[str, Callable[[], np.ndarray]] = {
    "wine": lambda: load_wine().data,
    "cancer, means (log)": lambda: _cancer(0),
    "cancer, errors (log)": lambda: _cancer(1),
    "cancer, worst (log)": lambda: _cancer(2),
    "cancer, means": lambda: load_breast_cancer().data[:, :10],
    "digits, every fifth": lambda: load_digits().data[::5],
    "factors, normal": lambda: _factors(lambda x: x, 120, 10, 0),
    "factors, log-normal": lambda: _factors(np.exp, 120, 10, 1),
}
TABLES = ISSUED | OTHER
SCALE_ENDS = {name: (0.0, 16.0) for name in TABLES if name.startswith("digits")}
ENDS = ("ceiling", "floor", "both")


def clipped_table(name: str, quantile: float, ends: str, seed: int) -> tuple[np.ndarray, ...]:
    """Return truth, table, floor, ceiling and ends of the scale, in standard units."""
    truth = TABLES[name]()
    truth = truth[:, truth.std(axis=0) > 0]
    level, spread = truth.mean(axis=0), truth.std(axis=0)
    truth = (truth - level) / spread
    scale_ends = SCALE_ENDS.get(name, (-np.inf, np.inf))
    lowest, highest = ((np.full(level.shape, end) - level) / spread for end in scale_ends)
    share = (1 - quantile) / (2 if ends == "both" else 1)
    none = np.full(truth.shape[1], np.inf)
    floor = np.quantile(truth, share, axis=0) if ends != "ceiling" else -none
    ceiling = np.quantile(truth, 1 - share, axis=0) if ends != "floor" else none
    some = ((truth > floor) & (truth < ceiling)).mean(axis=0) > 0.3
    truth, floor, ceiling = truth[:, some], floor[some], ceiling[some]
    observed = np.random.default_rng(seed).random(truth.shape) >= 0.1
    table = np.where(observed, np.clip(truth, floor, ceiling), np.nan)
    return truth, table, floor, ceiling, lowest[some] - 1e-9, highest[some] + 1e-9
