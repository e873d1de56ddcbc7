"""The values, bands and flags of every cell, from the methods that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip.cells import Cells
from declip.censoring import ranged, right_censored
from declip.intervals import Intervals, face_value
from declip.restoration.model import RestorationModel
from declip.restoration.output_kind import OutputKind
from declip.restoration.predictive import CensoredMixture

__all__ = [
    "FLAGS",
    "CellBlock",
    "CensoredCells",
    "Flags",
    "counts_of",
    "filled_cells",
    "restored_cells",
    "tables_of",
]

FLAGS = ("exact", "restored", "filled", "undetermined")
EXACT, RESTORED, FILLED, UNDETERMINED = np.arange(len(FLAGS), dtype=np.int8)
_STEPS, _FEW_STEPS = 10, 5  # to a band's end; the few leave 1 % of a standard deviation
_BLOCK = 1 << 16  # cells that are looked at together
_NEARLY_ALL = 0.9  # of an interval that ends: a band of so much of it takes in its end
_AWAY = 1.8  # standard deviations from its limit from which a cell has a band with two ends


@dataclass(frozen=True, eq=False)
class CellBlock:
    """Some cells of a table: where they are, their values, bands and flags (places in FLAGS)."""

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    flag: NDArray[np.int8]

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
        value = side.value.astype(np.float64, copy=False)
        flag = np.full(len(value), EXACT)
        return cls(side.exact_rows(), side.exact_idx, value, value, value, flag)

    @property
    def T(self) -> CellBlock:
        """The same cells of the transposed table."""
        return replace(self, rows=self.cols, cols=self.rows)


@dataclass(frozen=True, eq=False)
class Flags:
    """The flags of a table, as places in `FLAGS` (-1 for no cell) of one byte each."""

    codes: NDArray[np.int8]

    def to_numpy(self) -> NDArray[np.str_]:
        """Return the flags as words."""
        return np.array([*FLAGS, ""])[self.codes]


def tables_of(blocks: Sequence[CellBlock], output_kind: OutputKind) -> dict[str, Any]:
    """Return values, flags and bands as tables of the kind of the input."""
    parts: dict[str, Any] = {
        table: output_kind.numbers(*((b.rows, b.cols, getattr(b, name)) for b in blocks))
        for table, name in (("table", "value"), ("lower", "lower"), ("upper", "upper"))
    }
    parts["flags"] = Flags(output_kind.codes(*((b.rows, b.cols, b.flag) for b in blocks)))
    return parts | {"table": output_kind.X.joined(**parts)}


def counts_of(blocks: Sequence[CellBlock]) -> dict[str, int]:
    """Return the number of cells with each flag."""
    counts = sum(np.bincount(b.flag, minlength=len(FLAGS)) for b in blocks)
    return dict(zip(FLAGS, np.asarray(counts).tolist(), strict=True))


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

    @classmethod
    def none(cls) -> CensoredCells:
        """Return no cells."""
        at, values = np.zeros(0, np.int32), np.zeros(0)
        block = CellBlock(at, at, values, values, values, np.zeros(0, np.int8))
        return cls(block, at, np.zeros((2, 0)))

    @classmethod
    def joined(cls, parts: Sequence[CensoredCells]) -> CensoredCells:
        """Put parts together."""
        return cls(
            CellBlock.joined(*(part.block for part in parts)),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.expected_squares for part in parts], axis=1),
        )


class _Censored(NamedTuple):
    """Columns and bounds of some censored cells."""

    cols: NDArray[np.int32]
    lower: NDArray[np.floating]
    upper: NDArray[np.floating]

    @classmethod
    def of(cls, side: Cells, part: slice) -> _Censored:
        return cls(side.censored_idx[part], side.lower[part], side.upper[part])


def restored_cells(intervals: Intervals, model: RestorationModel) -> CensoredCells:
    """Return the censored cells: their expected values within the interval, or the limit itself."""
    n = intervals.n_censored
    rows = intervals.by_row.censored_rows()
    parts = (slice(i, i + _BLOCK) for i in range(0, n, _BLOCK))
    found = [_restored(intervals, model, rows[part], part) for part in parts]
    return CensoredCells.joined(found) if found else CensoredCells.none()


def _restored(
    intervals: Intervals, model: RestorationModel, rows: NDArray[np.int32], part: slice
) -> CensoredCells:
    """Return some of the censored cells, one after the other in the table by rows."""
    side, scaling = _Censored.of(intervals.by_row, part), model.table.scaling
    scaled, cols = _Censored.of(model.table.cells.by_row, part), side.cols
    low, high = model.settings.bounds.at(cols)
    of_values, of_bands = model.censored(rows, cols, (scaled.lower, scaled.upper))
    distance = of_values.in_blocks(lambda mixture: mixture.moments()[0])
    moments = of_bands.in_blocks(lambda mixture: np.array(mixture.moments()))
    widened = model.table.steps.inside(
        side.lower.astype(np.float64), side.upper.astype(np.float64), cols
    )
    in_range = ranged(side.lower, side.upper)  # needs no looking beyond
    ends = _bands(of_bands, moments, model.settings.coverage, _FEW_STEPS if model.large else _STEPS)
    lost = np.isnan(distance) | np.isnan(ends[0]) | np.isnan(ends[1])  # beyond what floats hold
    sure = (in_range | model.gets_value(rows, cols)) & ~lost
    stays = ~sure | (~in_range & model.kept[cols])

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
    flag = np.where(stays, UNDETERMINED, RESTORED)
    # where values are rounded, what is reported at a limit lies half a step beyond where it begins
    reported = of_values.sign * scaling.forward(limit, cols) - of_values.limit
    moved = np.where(stays, reported, distance)
    # E (v - d)^2 for the distance d of the truth, of the restored value and of what is reported
    mean, square = moments
    squares = np.array([square - 2 * v * mean + v**2 for v in (moved, reported)])[:, ~in_range]
    block = CellBlock(rows, cols, value, band_low, band_high, flag)
    return CensoredCells(block, cols[~in_range], squares)


def _bands(
    mixture: CensoredMixture, moments: NDArray, coverage: float, steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the near and the far ends of bands, from the limit outwards.

    A cell that lies away from its limit has a band with equal tails instead, unless its interval
    ends: at the end of a scale, as at a limit, values may be tied.
    """

    def end(which: NDArray, survival: float) -> NDArray[np.float64]:
        return mixture.take(which).in_blocks(
            lambda part, *known: part.quantile(survival, known, steps),
            *(moment[which] for moment in moments),
        )

    mean, square = moments
    away = mean > _AWAY * np.sqrt(np.maximum(square - mean**2, 0.0))
    away &= right_censored(mixture.far)
    tail = 0.5 * (1 - coverage)
    near, far = mixture.limit.copy(), np.empty(len(mixture))
    far[~away] = end(~away, 1 - coverage)
    far[away], near[away] = end(away, tail), end(away, 1 - tail)
    tied = far - mixture.limit > _NEARLY_ALL * (mixture.far - mixture.limit)
    return near, np.where(tied, mixture.far, far)


def filled_cells(at: tuple[NDArray, NDArray], model: RestorationModel) -> CellBlock:
    """Return missing cells: predicted, or left empty if the data do not determine them."""
    rows, cols = at
    known, filled = model.determined.at(rows, cols), model.gets_value(rows, cols)
    centre, spread = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    if filled.any():
        centre[filled], spread[filled] = model.missing(rows[filled], cols[filled])
    scaling, bounds = model.table.scaling, model.settings.bounds
    low, value, high = (
        bounds.clip(scaling.back(centre + step * spread, cols), cols)
        for step in (-model.half_width, 0.0, model.half_width)
    )
    flag = np.where(known, FILLED, UNDETERMINED)
    return CellBlock(rows, cols, value, low, high, flag)
