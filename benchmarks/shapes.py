"""Synthetic ratings of the shape of MovieLens-20M, and smaller ones of the same density."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip import Intervals

__all__ = ["CEILING", "SHAPES", "Ratings", "centred", "ratings", "split"]

CEILING = 5.0
HELD_OUT = 0.02  # of the ratings, to tell errors by
# rows, columns, ratings: each side shrinks by the root of what the ratings do
SHAPES = {
    "20m": (138_493, 26_744, 20_000_000),
    "5m": (69_246, 13_372, 5_000_000),
    "2m": (43_795, 8_457, 2_000_000),
    "200k": (13_849, 2_674, 200_000),
}


class Ratings(NamedTuple):
    """Ratings as triplets, sorted by row and column."""

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    values: NDArray[np.float32]
    shape: tuple[int, int]

    def intervals(self) -> Intervals:
        return Intervals.from_triplets(*self[:3], shape=self.shape, ceiling=CEILING)

    def where(self, chosen: NDArray[np.bool_]) -> Ratings:
        return Ratings(*(part[chosen] for part in self[:3]), self.shape)


def ratings(name: str) -> Ratings:
    """Return the ratings of a shape; made once, then kept in the temporary folder."""
    kept = Path(tempfile.gettempdir()) / "declip-benchmarks" / f"ratings-{name}.npz"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        made = make_ratings(*SHAPES[name])
        np.savez(kept, rows=made.rows, cols=made.cols, values=made.values)
    with np.load(kept) as arrays:
        return Ratings(*(arrays[a] for a in ("rows", "cols", "values")), SHAPES[name][:2])


def split(data: Ratings) -> tuple[Ratings, Ratings]:
    """Return the ratings to learn from and those that are held out."""
    test = np.random.default_rng(1).random(len(data.values)) < HELD_OUT
    return data.where(~test), data.where(test)


def centred(data: Ratings) -> tuple[Ratings, Ratings, float]:
    """Return the same, with the mean taken from those to learn from, and the mean."""
    train, test = split(data)
    mean = train.values.mean(dtype=np.float64)
    return train._replace(values=train.values - np.float32(mean)), test, float(mean)


def make_ratings(n_rows: int, n_cols: int, n_cells: int, seed: int = 0) -> Ratings:
    """Return ratings .5, 1, ..., 5 of rank 8 plus offsets plus noise; activity is log-normal."""
    rng = np.random.default_rng(seed)
    rows, cols = _cells(rng, n_rows, n_cols, n_cells)
    x = 3.65 + 0.4 * rng.standard_normal(n_rows)[rows] + 0.4 * rng.standard_normal(n_cols)[cols]
    for _ in range(8):
        x += 0.1225 * rng.standard_normal(n_rows)[rows] * rng.standard_normal(n_cols)[cols]
    x += 0.75 * rng.standard_normal(n_cells)
    values = np.clip(np.round(2 * x) / 2, 0.5, CEILING).astype(np.float32)
    return Ratings(rows, cols, values, (n_rows, n_cols))


def _cells(
    rng: np.random.Generator, n_rows: int, n_cols: int, n_cells: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return distinct cells, of rows and columns with log-normal activity."""
    cumulated = [np.cumsum(rng.lognormal(0, s, n)) for s, n in ((1.1, n_rows), (2.0, n_cols))]
    keys = np.empty(0, np.int64)
    while len(keys) < n_cells:
        rows, cols = (np.searchsorted(c, c[-1] * rng.random(n_cells)) for c in cumulated)
        keys = np.unique(np.concatenate([keys, rows * n_cols + cols]))
    keys = np.sort(rng.choice(keys, n_cells, replace=False, shuffle=False))
    rows, cols = np.divmod(keys, n_cols)
    return rows.astype(np.int32), cols.astype(np.int32)
