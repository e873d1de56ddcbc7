"""The values, bands and flags of every cell, from the methods that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals, face_value
from declip.reclip import LEFT, RESTORED, ReclipResult
from declip.restoration.candidates import components
from declip.restoration.choose import Member, pooled_moments
from declip.restoration.predictive import CensoredMixture
from declip.restoration.settings import Settings
from declip.restoration.tasks import Scaled

__all__ = [
    "FLAGS",
    "CellBlock",
    "CensoredCells",
    "Determined",
    "Pool",
    "filled_cells",
    "kept_columns",
    "restored_cells",
]

FLAGS = ("exact", "restored", "filled", "undetermined")
_EVIDENCE = 30  # judged cells from which a column is decided upon alone
# Gauss-Hermite nodes of the uncertain shrinkage, and their weights
_NODES = ((-np.sqrt(3), 1 / 6), (0.0, 2 / 3), (np.sqrt(3), 1 / 6))
_NEARLY_ALL = 0.75  # of an interval that ends: a band of so much of it takes in its end
_AWAY = 1.8  # standard deviations from its limit from which a cell has a band with two ends


@dataclass(frozen=True, eq=False)
class CellBlock:
    """Some cells of a table: where they are, their values, bands and flags."""

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    flag: NDArray[np.str_]

    @classmethod
    def joined(cls, *blocks: CellBlock) -> CellBlock:
        """Put blocks together."""
        return cls(
            *(np.concatenate([getattr(b, n) for b in blocks]) for n in cls.__dataclass_fields__)
        )

    @classmethod
    def exact(cls, intervals: Intervals) -> CellBlock:
        """Return the exact cells, untouched."""
        side = intervals.by_row
        value = side.value.astype(np.float64)
        flag = np.full(len(value), "exact", dtype="<U12")
        return cls(side.exact_rows(), side.exact_idx, value, value, value, flag)

    @property
    def T(self) -> CellBlock:
        """The same cells of the transposed table."""
        return replace(self, rows=self.cols, cols=self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells with each flag."""
        return {flag: int((self.flag == flag).sum()) for flag in FLAGS}


@dataclass(frozen=True, eq=False)
class Determined:
    """Which rows and columns the data determine.

    A row needs an observed cell, of which a limit will do; a column needs exact cells of two
    different values, since nothing else says how far it spreads.
    """

    rows: NDArray[np.bool_]
    cols: NDArray[np.bool_]

    @classmethod
    def of(cls, intervals: Intervals) -> Determined:
        """Look at the exact cells."""
        side, n_cols = intervals.by_row, intervals.shape[1]
        low, high = np.full(n_cols, np.inf), np.full(n_cols, -np.inf)
        np.minimum.at(low, side.exact_idx, side.value)
        np.maximum.at(high, side.exact_idx, side.value)
        return cls(np.diff(side.exact_ptr) + np.diff(side.censored_ptr) > 0, low < high)

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


@dataclass(frozen=True, eq=False)
class Pool:
    """The fitted methods that count, and the table in standard units.

    Attributes
    ----------
    members : sequence of Member
        What counts, and by how much.
    estimators : sequence of estimator
        The same, fitted.
    table : Scaled
        The table that they were fitted to.
    """

    members: Sequence[Member]
    estimators: Sequence[Any]
    table: Scaled

    def predictive(
        self, rows: NDArray, cols: NDArray, *, beyond: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of cells in standard units, whatever is seen of them.

        Weighted as for missing cells, or as for what lies ``beyond`` limits.
        """
        weights = [m.weight if beyond else m.fill_weight for m in self.members]
        return pooled_moments([components(e, rows, cols) for e in self.estimators], weights)

    def censored(self, rows: NDArray, cols: NDArray) -> tuple[CensoredMixture, CensoredMixture]:
        """Return the distributions of the censored cells, for their values and for their bands."""
        side = self.table.cells.by_row
        ends = side.lower, side.upper
        of_values, of_bands = [], []
        for member, estimator in zip(self.members, self.estimators, strict=True):
            mixture = self.table.mixture(estimator, rows, cols, ends)
            n_groups = len(member.shrinkage.mean) // 2
            group = (mixture.sign > 0) * n_groups + (cols if n_groups > 1 else 0)
            mean, sd = member.shrinkage.mean[group], member.shrinkage.sd[group]
            of_values.append(member.shrinkage.for_values(mixture, group))
            of_bands.append(mixture.shrunk(mean).spread_over(_NODES, sd))
        weights = np.array([m.weight for m in self.members])
        weights /= weights.sum()
        return CensoredMixture.pooled(of_values, weights), CensoredMixture.pooled(of_bands, weights)


@dataclass(frozen=True, eq=False)
class CensoredCells:
    """The censored cells of a table restored.

    Attributes
    ----------
    block : CellBlock
        Values, bands and flags, in the units of the table.
    columns : ndarray of int
        Of the cells beyond a limit.
    expected_squares : ndarray of shape (2, n_cells)
        Expected squared errors of the restored value and of the limit, in standard units.
    """

    block: CellBlock
    columns: NDArray[np.int32]
    expected_squares: NDArray[np.float64]


def restored_cells(
    intervals: Intervals,
    pool: Pool,
    settings: Settings,
    kept: NDArray[np.bool_],
    determined: Determined,
) -> CensoredCells:
    """Return the censored cells: their expected values within the interval, or the limit itself."""
    side, scaling = intervals.by_row, pool.table.scaling
    rows, cols = side.censored_rows(), side.censored_idx
    if len(rows) == 0:
        none = np.zeros(0)
        block = CellBlock(rows, cols, none, none, none, np.zeros(0, "<U12"))
        return CensoredCells(block, cols, np.zeros((2, 0)))
    low, high = settings.bounds.at(cols)
    between = scaling.forward(low, cols), scaling.forward(high, cols)
    of_values, of_bands = (law.within(*between) for law in pool.censored(rows, cols))
    distance = of_values.in_blocks(lambda law: law.moments()[0])
    mean, square = of_bands.in_blocks(lambda law: np.array(law.moments()))
    widened = pool.table.steps.inside(
        side.lower.astype(np.float64), side.upper.astype(np.float64), cols
    )
    ranged = np.isfinite(side.lower) & np.isfinite(side.upper)  # needs no looking beyond
    sure = ranged | determined.at(rows, cols) if settings.fill == "determined" else ranged | True
    stays = ~sure | (~ranged & kept[cols])
    ends = _bands(of_bands, mean, square, settings.coverage)

    def in_units(z: NDArray) -> NDArray:
        values = scaling.back(of_values.sign * z, cols)
        return np.clip(np.clip(values, low, high), *widened)

    limit = face_value(side.lower, side.upper).astype(np.float64)
    value = np.where(stays, limit, in_units(of_values.limit + distance))
    at_limit = np.where(of_values.sign > 0, *widened)
    near, far = (in_units(end) for end in ends)
    near = np.where(ends[0] > of_bands.limit, near, at_limit)
    band_low = np.minimum(np.minimum(near, far), value)
    band_high = np.maximum(np.maximum(near, far), value)
    band_low = np.where(sure, band_low, np.maximum(widened[0], low))
    band_high = np.where(sure, band_high, np.minimum(widened[1], high))
    flag = np.where(stays, "undetermined", "restored").astype("<U12")
    moved = np.where(stays, 0.0, distance)
    # E (v - d)^2 and E d^2 for the distance d of the truth from the limit
    squares = np.array([square - 2 * moved * mean + moved**2, square])[:, ~ranged]
    block = CellBlock(rows, cols, value, band_low, band_high, flag)
    return CensoredCells(block, cols[~ranged], squares)


def _bands(
    law: CensoredMixture, mean: NDArray, square: NDArray, coverage: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the near and the far ends of bands, from the limit outwards.

    A cell that lies away from its limit has a band with equal tails instead, unless its interval
    ends: at the end of a scale, as at a limit, values may be tied.
    """
    away = mean > _AWAY * np.sqrt(np.maximum(square - mean**2, 0.0))
    away &= np.isposinf(law.far)
    tail = 0.5 * (1 - coverage)
    near, far = law.limit.copy(), np.empty(len(law))
    one, two = law.take(~away), law.take(away)
    far[~away] = one.in_blocks(lambda part: part.quantile(1 - coverage))
    far[away] = two.in_blocks(lambda part: part.quantile(tail))
    near[away] = two.in_blocks(lambda part: part.quantile(1 - tail))
    tied = far - law.limit > _NEARLY_ALL * (law.far - law.limit)
    return near, np.where(tied, law.far, far)


def filled_cells(
    at: tuple[NDArray, NDArray],
    pool: Pool,
    settings: Settings,
    half_width: float,
    determined: Determined,
) -> CellBlock:
    """Return missing cells: predicted, or left empty if the data do not determine them."""
    rows, cols = at
    scaling = pool.table.scaling
    known = determined.at(rows, cols)
    filled = known if settings.fill == "determined" else np.ones(len(rows), bool)
    centre, spread = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    if filled.any():
        centre[filled], spread[filled] = pool.predictive(rows[filled], cols[filled])
    low, value, high = (
        settings.bounds.clip(scaling.back(centre + step * spread, cols), cols)
        for step in (-half_width, 0.0, half_width)
    )
    flag = np.where(known, "filled", "undetermined").astype("<U12")
    return CellBlock(rows, cols, value, low, high, flag)
