"""The values, bands and flags of every cell, from a fitted method and the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals, face_value
from declip.reclip import LEFT, RESTORED, ReclipResult
from declip.restoration.bands import TailShrinkage
from declip.restoration.bounds import Bounds
from declip.restoration.candidates import PredictiveDistribution
from declip.restoration.tails import TruncatedNormal
from declip.scaling import Scaling

__all__ = ["FLAGS", "Block", "Determined", "filled_cells", "kept_columns", "restored_cells"]

FLAGS = ("exact", "restored", "filled", "undetermined")
_EVIDENCE = 30  # judged cells from which a column is decided upon alone


@dataclass(frozen=True, eq=False)
class Block:
    """Some cells of a table: where they are, their values, bands and flags."""

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    flag: NDArray[np.str_]

    @classmethod
    def joined(cls, *blocks: Block) -> Block:
        """Put blocks together."""
        return cls(
            *(np.concatenate([getattr(b, n) for b in blocks]) for n in cls.__dataclass_fields__)
        )

    @classmethod
    def exact(cls, intervals: Intervals) -> Block:
        """Return the exact cells, untouched."""
        side = intervals.by_row
        value = side.value.astype(np.float64)
        flag = np.full(len(value), "exact", dtype="<U12")
        return cls(side.exact_rows(), side.exact_idx, value, value, value, flag)


@dataclass(frozen=True, eq=False)
class Determined:
    """Which rows and columns the data determine.

    A row needs an exact cell; a column needs exact cells of two different values, since nothing
    else says how far it spreads.
    """

    rows: NDArray[np.bool_]
    cols: NDArray[np.bool_]
    seen: NDArray[np.bool_]  # columns with any observed cell

    @classmethod
    def of(cls, intervals: Intervals) -> Determined:
        """Look at the exact cells."""
        side, by_col = intervals.by_row, intervals.by_col
        n_cols = intervals.shape[1]
        low, high = np.full(n_cols, np.inf), np.full(n_cols, -np.inf)
        np.minimum.at(low, side.exact_idx, side.value)
        np.maximum.at(high, side.exact_idx, side.value)
        seen = (np.diff(by_col.exact_ptr) + np.diff(by_col.censored_ptr)) > 0
        return cls(np.diff(side.exact_ptr) > 0, low < high, seen)

    def at(self, rows: NDArray, cols: NDArray) -> NDArray[np.bool_]:
        """Tell which cells are in determined rows and columns."""
        return self.rows[rows] & self.cols[cols]


def kept_columns(reclip: ReclipResult | None, n_cols: int) -> NDArray[np.bool_]:
    """Tell in which columns the limits stay: where restoring shows no gain over leaving them.

    A column with 30 judged cells or more decides for itself, the others go with the table.
    """
    if reclip is None or not reclip.gain > 0:
        return np.ones(n_cols, bool)
    cols = np.concatenate([t.cells.cols for t in reclip.trials])
    known = np.concatenate([~t.cells.censored for t in reclip.trials])
    gains = reclip.errors(LEFT) ** 2 - reclip.errors(RESTORED) ** 2
    enough = np.bincount(cols[known], minlength=n_cols) >= _EVIDENCE
    return enough & (np.bincount(cols, gains, n_cols) <= 0)


def restored_cells(
    intervals: Intervals,
    laws: PredictiveDistribution,
    scaling: Scaling,
    pulls: TailShrinkage | None,
    coverage: float,
    kept: NDArray[np.bool_],
    determined: Determined,
    bounds: Bounds,
) -> Block:
    """Return the clipped cells: their expected values beyond the limit, or the limit itself."""
    side, scaled = intervals.by_row, laws.intervals.by_row
    rows, cols = side.censored_rows(), side.censored_idx
    if len(rows) == 0:
        none = np.zeros(0)
        return Block(rows, cols, none, none, none, np.zeros(0, "<U12"))
    tails = TruncatedNormal.of(scaled.lower, scaled.upper, *laws.at(rows, cols))
    reach = -np.log1p(-coverage)
    if pulls is not None:
        tails, reach = pulls.pull(tails, cols), pulls.reach
    tails = tails.no_further(*(scaling.forward(end, cols) for end in bounds.at(cols)))
    lower, upper = side.lower.astype(np.float64), side.upper.astype(np.float64)
    limit = face_value(lower, upper)
    far, value = (
        np.clip(bounds.clip(scaling.back(x, cols), cols), lower, upper)
        for x in (tails.quantile(-reach), tails.mean())
    )
    ranged = np.isfinite(lower) & np.isfinite(upper)  # needs no looking beyond
    stays = ~ranged & (kept[cols] | ~determined.cols[cols])
    value = np.where(stays, limit, value)
    told = determined.cols[cols]
    low = np.where(np.isneginf(lower) & told, np.minimum(far, value), lower)
    high = np.where(np.isposinf(upper) & told, np.maximum(far, value), upper)
    sure = ~stays & determined.rows[rows]
    flag = np.where(sure, "restored", "undetermined").astype("<U12")
    return Block(rows, cols, value, low, high, flag)


def filled_cells(
    rows: NDArray,
    cols: NDArray,
    laws: PredictiveDistribution,
    scaling: Scaling,
    reach: float,
    determined: Determined,
    bounds: Bounds,
) -> Block:
    """Return missing cells: predicted, or at the location of their column if undetermined.

    A cell of a column without any observed cell is NaN: nothing is known of it.
    """
    known = determined.at(rows, cols)
    centre, spread = np.zeros(len(rows)), np.ones(len(rows))
    if known.any():
        centre[known], spread[known] = laws.at(rows[known], cols[known])
    centre[~determined.seen[cols]] = np.nan
    low, value, high = (
        bounds.clip(scaling.back(centre + step * spread, cols), cols)
        for step in (-reach, 0.0, reach)
    )
    flag = np.where(known, "filled", "undetermined").astype("<U12")
    return Block(rows, cols, value, low, high, flag)
