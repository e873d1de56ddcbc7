"""What a method is judged by: the table with limits moved inwards, and some cells held out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from declip.censoring import left_censored, right_censored
from declip.intervals import Intervals
from declip.model_selection import EntryShuffleSplit, HeldOutCells
from declip.model_selection.splits import keep_cells
from declip.reclip import Reclipped, reclip
from declip.restoration.bounds import Bounds
from declip.restoration.candidates import components
from declip.restoration.ends import ColumnEnds
from declip.restoration.predictive import CensoredMixture
from declip.restoration.settings import NOTHING, Settings
from declip.restoration.shrinkage import HiddenCells
from declip.rounding import RoundingGrid
from declip.scaling import Scaling

__all__ = ["Evidence", "Scaled", "Task", "fitted", "tasks_of"]

_HELD_OUT = 0.1  # of the cells
_LEAST_HIDDEN, _MOST_HIDDEN = 0.1, 0.4  # of the exact cells of a column, by one limit
_PARTS = (1.0, 0.25)  # of the share that the real limits hide
_TWO_TASKS_UP_TO = 30_000  # observed cells
_EXCHANGED = 0.15  # of the exact cells, where limits differ within a column
_MOST_JUDGED = 20_000  # held-out cells


@dataclass(frozen=True, eq=False)
class Scaled:
    """A table in standard units, before it was rounded."""

    cells: Intervals
    scaling: Scaling
    steps: RoundingGrid
    bounds: Bounds
    ends: ColumnEnds

    @classmethod
    def of(cls, intervals: Intervals, settings: Settings) -> Scaled:
        """Widen the limits of rounded values, and scale the columns."""
        steps = _grid_of(intervals, settings)
        widened = steps.widen(intervals)
        scaling = Scaling.of(widened, settings.units, settings.log, settings.values)
        cells = scaling.apply(widened)
        bounds = settings.bounds.in_units(scaling, np.arange(intervals.shape[1]))
        on_scale = scaling.log | bool(scaling.values)
        ends = ColumnEnds.of(cells, bounds, settings.shared, on_scale)
        return cls(cells, scaling, steps, settings.bounds, ends)

    def for_rows(self, intervals: Intervals) -> Scaled:
        """Return other rows in the same units."""
        return replace(self, cells=self.scaling.apply(self.steps.widen(intervals)))

    def mixture(
        self, cols: NDArray, ends: tuple[NDArray, NDArray], centre: NDArray, spread: NDArray
    ) -> CensoredMixture:
        """Return the distributions of cells within ends, of which a method says components."""
        mixture = CensoredMixture.of(*ends, self.ends.reach_at(cols), centre, spread)
        return mixture.within(*self.bounds_at(cols))

    def bounds_at(self, cols: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what the truth of cells of these columns cannot pass, in standard units."""
        return self.bounds.in_units(self.scaling, cols)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a fitted method says of the cells of a task.

    Attributes
    ----------
    hidden : HiddenCells
        Those behind moved limits.
    centre, spread : ndarray of shape (K, n_held_out)
        Components of those held out.
    """

    hidden: HiddenCells
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """A table as methods are shown it, and the cells that they are asked for.

    Attributes
    ----------
    cells : Reclipped
        Cells behind moved limits, in the units of the table.
    table : Scaled
        What is shown.
    real : RoundingGrid
        Of the table as it is.
    held : HeldOutCells
        Cells that are not shown, in the units of what is.
    quantile : float
        Where the limits were put, in most columns.
    shared : bool
        Whether all columns are judged as one.
    """

    cells: Reclipped
    table: Scaled
    real: RoundingGrid
    held: HeldOutCells
    quantile: float
    shared: bool

    @classmethod
    def of(cls, intervals: Intervals, hidden: NDArray, settings: Settings, number: int = 0) -> Task:
        """Move limits so that they hide shares of the exact cells; hold out some of the rest."""
        cells = _reclipped(intervals, hidden, settings, settings.random_state + number)
        shown, out = _hold_out(cells.intervals, settings.random_state + number)
        table = Scaled.of(shown, settings)
        some = hidden[hidden > 0]
        return cls(
            cells,
            table,
            _grid_of(intervals, settings),
            HeldOutCells.of(intervals).at(*out).mapped(table.scaling.forward),
            round(1 - float(np.median(some)), 3) if some.size else 1.0,
            settings.shared,
        )

    @property
    def n_groups(self) -> int:
        """Columns that are judged apart."""
        return 1 if self.shared else self.cells.intervals.shape[1]

    @property
    def group(self) -> NDArray[np.intp]:
        """Side and column of the hidden cells."""
        col = np.zeros_like(self.cells.cols) if self.shared else self.cells.cols
        return self.cells.above.astype(np.intp) * self.n_groups + col

    def evidence(self, estimator: Any, known: Mapping[str, Any] = NOTHING) -> Evidence:
        """Fit a method, and ask it for the hidden and the held-out cells."""
        cells, scaling = self.cells, self.table.scaling
        method = fitted(estimator, self.table.cells, known)
        lower, upper = self.table.steps.inside(cells.lower, cells.upper, cells.cols)
        ends = scaling.forward(lower, cells.cols), scaling.forward(upper, cells.cols)
        parts = components(method, cells.rows, cells.cols)
        mixture = self.table.mixture(cells.cols, ends, *parts)
        value = mixture.sign * scaling.forward(self._known(), cells.cols)
        hidden = HiddenCells(self.group, mixture, value, cells.censored)
        return Evidence(hidden, *components(method, self.held.rows, self.held.cols))

    def _known(self) -> NDArray:
        """Return the truth of the hidden cells, or what those clipped before lie beyond."""
        cells = self.cells
        low, high = 0.5 * self.real.at(cells.cols)
        inside = np.where(cells.above, cells.value - high, cells.value + low)
        return np.where(cells.censored, inside, cells.value)

    def in_units(self, mixture: CensoredMixture, distance: NDArray) -> NDArray:
        """Return restored values of the hidden cells, in the units of the table."""
        cells = self.cells
        value = mixture.sign * (mixture.limit + distance)
        return cells.within_reach(self.table.scaling.back(value, cells.cols))


def tasks_of(intervals: Intervals, settings: Settings) -> list[Task]:
    """Return the tasks of a table: limits moved to hide as many cells again, and a quarter of them.

    What lies just inside a real limit tells most of what lies beyond it. Without limits there is
    one task, of held-out cells alone.
    """
    share = _clipped_share(intervals, settings.shared)
    hidden = np.where(share > 0, np.clip(share, _LEAST_HIDDEN, _MOST_HIDDEN), 0.0)
    two = len(intervals) <= _TWO_TASKS_UP_TO and settings.work >= 1 and intervals.n_censored > 0
    parts = _PARTS if two else _PARTS[:1]
    return [Task.of(intervals, part * hidden, settings, n) for n, part in enumerate(parts)]


def fitted(estimator: Any, shown: Intervals, known: Mapping[str, Any] = NOTHING) -> Any:
    """Fit a copy of an estimator, without the warnings that the user could do nothing about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return clone(estimator).fit(shown, **known)


def _grid_of(intervals: Intervals, settings: Settings) -> RoundingGrid:
    if settings.rounding == "none":
        return RoundingGrid.none()
    return RoundingGrid.of(intervals, settings.shared).coarse(intervals)


def _clipped_share(intervals: Intervals, shared: bool) -> NDArray[np.float64]:
    """Return the share of the observed cells at floors and at ceilings, by column."""
    _, cols, lower, upper = intervals.triplets()
    group = np.zeros_like(cols) if shared else cols
    n = 1 if shared else intervals.shape[1]
    observed = np.maximum(np.bincount(group, minlength=n), 1)
    clipped = left_censored(lower), right_censored(upper)
    return np.array([np.bincount(group[c], minlength=n) / observed for c in clipped])


def _reclipped(intervals: Intervals, hidden: NDArray, settings: Settings, seed: int) -> Reclipped:
    floors, ceilings = (bool(line.any()) for line in hidden)
    return reclip(
        intervals,
        hidden,
        floors=floors,
        ceilings=ceilings,
        by_column=not settings.shared,
        exchanged=_EXCHANGED,
        seed=seed,
    )


def _hold_out(intervals: Intervals, seed: int) -> tuple[Intervals, tuple[NDArray, NDArray]]:
    """Return the table without some cells, and rows and columns of these."""
    try:
        splitter = EntryShuffleSplit(1, test_size=_HELD_OUT, random_state=seed)
        [(kept, out)] = splitter.split(intervals)
    except ValueError:  # every row and column needs all of its cells
        return intervals, (np.zeros(0, np.int32), np.zeros(0, np.int32))
    rows, cols, _, _ = intervals.triplets()
    judged = out[:: -(-len(out) // _MOST_JUDGED) or 1]
    return keep_cells(intervals, kept), (rows[judged], cols[judged])
