"""Complete tables, clipped by us, so that the truth is known."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from r_tables import R_TABLES
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
)

from declip import Intervals


def _cancer(part: int) -> np.ndarray:
    """Return the means, standard errors or worst values of the ten features, in logs."""
    return np.log(load_breast_cancer().data[:, 10 * part : 10 * part + 10] + 0.01)


def _factors(shape: Callable[[np.ndarray], np.ndarray], n: int, p: int, seed: int) -> np.ndarray:
    """Return a table of three factors and noise, its columns bent."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((n, 3)) @ rng.standard_normal((3, p)) / np.sqrt(3)
    return shape(table + 0.5 * rng.standard_normal((n, p)))


def _folder() -> dict[str, Callable[[], np.ndarray]]:
    """Return the tables of a local folder, one CSV file with a header each."""
    files = sorted(Path(os.environ.get("DECLIP_DATA", "."), "tables").glob("*.csv"))
    return {
        file.stem: lambda file=file: np.genfromtxt(file, delimiter=",", skip_header=1)
        for file in files
    }


TUNED: dict[str, Callable[[], np.ndarray]] = {
    "breast cancer (log)": lambda: np.log(load_breast_cancer().data + 0.01),
    "wine (log)": lambda: np.log(load_wine().data),
    "diabetes": lambda: np.delete(load_diabetes().data, 1, axis=1),  # without the two-valued sex
    "iris": lambda: load_iris().data,
    "linnerud": lambda: np.hstack([load_linnerud().data, load_linnerud().target]),
    "cancer, means": lambda: load_breast_cancer().data[:, :10],
    "factors, log-normal": lambda: _factors(np.exp, 120, 10, 1),
    **_folder(),
}
OTHER: dict[str, Callable[[], np.ndarray]] = {
    "wine": lambda: load_wine().data,
    "cancer, means (log)": lambda: _cancer(0),
    "cancer, errors (log)": lambda: _cancer(1),
    "cancer, worst (log)": lambda: _cancer(2),
    "cancer, worst": lambda: load_breast_cancer().data[:, 20:],
    "digits, every fifth": lambda: load_digits().data[::5],
    "factors, normal": lambda: _factors(lambda x: x, 120, 10, 0),
}
TABLES = TUNED | OTHER | R_TABLES
SCALE_ENDS = {name: (0.0, 16.0) for name in TABLES if name.startswith("digits")}
TREATMENTS = {
    "ceiling .8": ((), (0.8,)),
    "ceiling .6": ((), (0.6,)),
    "floor .8": ((0.2,), ()),
    "both ends .7": ((0.15,), (0.85,)),
    "three ceilings": ((), (0.9, 0.75, 0.55)),
    "three floors": ((0.1, 0.25, 0.45), ()),
}
_MISSING = 0.1
_FEWEST_EXACT = 0.3  # of a column, or it is left out


@dataclass(frozen=True, eq=False)
class ClippedTable:
    """A table whose truth is known, in standard units.

    Attributes
    ----------
    truth : ndarray
        The complete table.
    lower, upper : ndarray
        What is shown of each cell; NaN where it is missing.
    half : ndarray
        Half the limit, where values are positive and the limit is a floor; the limit elsewhere.
    between : tuple of ndarray
        Ends of the scale of each column.
    level, spread : ndarray
        Mean and standard deviation of each column in the units in which it was recorded.
    """

    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    half: np.ndarray
    between: tuple[np.ndarray, np.ndarray]
    level: np.ndarray
    spread: np.ndarray

    @property
    def recorded(self) -> tuple[Intervals, tuple[np.ndarray, np.ndarray] | str]:
        """What is shown of the cells as they were recorded, and what is told of their scale."""
        lower, upper, *ends = (
            x * self.spread + self.level for x in (self.lower, self.upper, *self.between)
        )
        known = np.isfinite(ends).any()
        return Intervals.from_bounds(lower, upper), (ends[0], ends[1]) if known else "auto"

    def standard(self, values: np.ndarray, cols: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return recorded values, of a table or of cells in some columns, in standard units."""
        return (values - self.level[cols]) / self.spread[cols]

    @property
    def cells(self) -> Intervals:
        return Intervals.from_bounds(self.lower, self.upper)

    @property
    def clipped(self) -> np.ndarray:
        return np.isinf(self.lower) | np.isinf(self.upper)

    @property
    def missing(self) -> np.ndarray:
        return np.isnan(self.lower)


def clipped_table(name: str, treatment: str, seed: int) -> ClippedTable:
    """Clip each column at its own quantiles; where there are several, each row draws one."""
    raw = np.asarray(TABLES[name](), float)
    raw = raw[:, raw.std(axis=0) > 0]
    level, spread = raw.mean(axis=0), raw.std(axis=0)
    truth = (raw - level) / spread
    rng = np.random.default_rng([seed, *treatment.encode()])
    floors, ceilings = TREATMENTS[treatment]
    floor, ceiling = _limits(truth, floors, -np.inf, rng), _limits(truth, ceilings, np.inf, rng)
    below, above = truth <= floor, truth >= ceiling
    lower = np.where(below, -np.inf, np.where(above, ceiling, truth))
    upper = np.where(above, np.inf, np.where(below, floor, truth))
    missing = rng.random(truth.shape) < _MISSING
    limit = np.where(below, floor, ceiling)
    half = np.where(
        below & (raw.min(axis=0) >= 0), (0.5 * (limit * spread + level) - level) / spread, limit
    )
    lower[missing] = upper[missing] = np.nan
    scale = SCALE_ENDS.get(name, (-np.inf, np.inf))
    low, high = ((np.full(level.shape, end) - level) / spread for end in scale)
    some = (lower == upper).mean(axis=0) > _FEWEST_EXACT * (1 - _MISSING)
    parts = (truth[:, some], lower[:, some], upper[:, some], half[:, some])
    ends = (low[some] - 1e-9, high[some] + 1e-9)
    return ClippedTable(*parts, ends, level[some], spread[some])


def _limits(
    truth: np.ndarray, quantiles: tuple[float, ...], none: float, rng: np.random.Generator
) -> np.ndarray:
    if not quantiles:
        return np.full(truth.shape, none)
    levels = np.quantile(truth, quantiles, axis=0)
    return levels[rng.integers(len(quantiles), size=len(truth))]
