"""Rows of a large table from which its columns are learnt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.reclip import ReclipResult
from declip.restoration.settings import Settings

__all__ = ["in_whole_table", "rows_to_learn_from"]

_CELLS = 300_000  # observed cells, in normal effort
_ROWS = 5_000  # at least,
_ROWS_A_COLUMN = 50  # and for each column
_EXACT = 200  # exact cells of each column, as far as there are
_WORTH = 0.5  # of the rows: a larger part is no gain over all


def rows_to_learn_from(intervals: Intervals, settings: Settings) -> NDArray[np.intp] | None:
    """Return rows drawn at random that tell as much of the columns as is needed; None for all.

    What is known of a column grows with the root of its cells, and methods differ by more than some
    thousand hidden cells can err: beyond that, rows only cost time. Of a column with few exact
    cells in these rows, rows that have some are added.
    """
    n, n_cols = intervals.shape
    share = settings.work * _CELLS / max(len(intervals), 1)
    wanted = int(max(share * n, _ROWS, _ROWS_A_COLUMN * n_cols))
    if wanted > _WORTH * n:
        return None
    chosen = np.zeros(n, bool)
    rng = np.random.default_rng(settings.random_state)
    chosen[rng.choice(n, wanted, replace=False)] = True
    for more in _rows_of_rare_columns(intervals, chosen):
        chosen[more] = True
    return np.flatnonzero(chosen) if chosen.sum() <= _WORTH * n else None


def _rows_of_rare_columns(
    intervals: Intervals, chosen: NDArray[np.bool_]
) -> Iterator[NDArray[np.int32]]:
    """Yield rows with exact cells of columns that have few of them in the chosen rows."""
    side, n_cols = intervals.by_row, intervals.shape[1]
    rows, cols = side.exact_rows(), side.exact_idx
    for j in np.flatnonzero(np.bincount(cols[chosen[rows]], minlength=n_cols) < _EXACT):
        yield rows[cols == j][:_EXACT]


def in_whole_table(found: ReclipResult | None, rows: NDArray[np.intp]) -> ReclipResult | None:
    """Return a test of some rows with their numbers in the whole table."""
    if found is None:
        return None
    trials = [
        replace(t, cells=replace(t.cells, rows=rows[t.cells.rows].astype(np.int32)))
        for t in found.trials
    ]
    return replace(found, trials=trials)
