"""What a restored table says of its columns: the cells of a summary, and their groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.inference.statistics import statistics_of
from declip.inference.summary import (
    Questions,
    Segments,
    Summary,
    as_frame,
    check_criteria,
    library_of_frames,
    notes_of,
    summarise,
)

if TYPE_CHECKING:
    from declip.intervals import Intervals
    from declip.restoration.result import Restoration

__all__ = ["questions_of", "summary_of"]

_FEWEST_ROWS = 3
_FEWEST_TABLES = 2
_MOST_GROUPS = 0.5  # of the rows: with more, labels are those of rows


def summary_of(
    r: Restoration,
    statistics: Sequence[str],
    *,
    by: Any,
    criterion: Any,
    confidence: float,
    n: int,
    random_state: int | None,
) -> Summary:
    """Return statistics of the columns of a restored table, over its imputations."""
    library_of_frames(r.lower)  # refused before the work
    asked = questions_of(r.intervals, statistics, criterion, confidence, n, _in_logs(r))
    cells, names = r.imputation, _names(r.intervals)
    rows, cols = (cells.cols, cells.rows) if r.transposed else (cells.rows, cells.cols)
    known = _known(r, len(rows))
    labels = None if by is None else _labels(r, by, names)
    there = cells.is_drawn | ~np.isnan(known[0])
    segments = Segments.of((rows, cols), there, names, labels)
    tables = cells.draws(n, random_state, settled=asked.criteria is not None)
    columns = summarise(_without_guesses(tables, cells.is_guess), segments, asked, known)
    guessed = segments.shares(cells.is_guess) > 0
    return Summary(as_frame(columns, r.lower), confidence, n, notes_of(segments, guessed))


def questions_of(
    intervals: Intervals,
    statistics: Sequence[str],
    criterion: Any,
    confidence: float,
    n: int,
    log: NDArray[np.bool_] | None = None,
) -> Questions:
    """Read what is asked of the columns of a table, and refuse what cannot be answered."""
    n_rows, n_cols = intervals.shape
    if n_rows < _FEWEST_ROWS:
        raise ValueError(f"A summary needs at least {_FEWEST_ROWS} rows; the table has {n_rows}.")
    if isinstance(n, int | np.integer) and n < _FEWEST_TABLES:
        raise ValueError(f"A summary needs n of at least {_FEWEST_TABLES} imputations; got {n}.")
    names = _names(intervals)
    in_logs = np.zeros(n_cols, bool) if log is None else log
    asked = Questions.of(statistics_of(statistics), in_logs, criterion, names, confidence)
    _, cols, *known = intervals.triplets()
    check_criteria(asked, np.array(known), cols, names)
    return asked


def _without_guesses(tables: Iterator[NDArray], guess: NDArray[np.bool_]) -> Iterator[NDArray]:
    """Yield tables in which what is a guess is no value."""
    for table in tables:
        table[:, guess] = np.nan
        yield table


def _known(r: Restoration, n_cells: int) -> NDArray[np.float64]:
    """Return the bounds of all cells in the order of the imputation, NaN for missing ones."""
    intervals = r.intervals.T if r.transposed else r.intervals
    known = np.full((2, n_cells), np.nan)
    known[:, : len(intervals)] = intervals.triplets()[2:]
    return known


def _names(intervals: Intervals) -> list[Any]:
    labels = intervals.col_labels
    return list(range(intervals.shape[1])) if labels is None else list(labels)


def _in_logs(r: Restoration) -> NDArray[np.bool_]:
    """Tell which columns were restored in logarithms; of rows it is all or none."""
    if not r.transposed:
        return r.scaling.log
    return np.full(r.intervals.shape[1], bool(r.scaling.log.all()))


def _labels(r: Restoration, by: Any, names: Sequence[Any]) -> list[Any]:
    """Return the group of each row, from the name of a column or from labels."""
    n_rows = r.intervals.shape[0]
    if isinstance(by, str) or np.ndim(by) == 0:
        return _values_of(r, by, names)
    series = nw.from_native(by, series_only=True, pass_through=True)
    labels = series.to_list() if isinstance(series, nw.Series) else np.asarray(by).tolist()
    if len(labels) != n_rows:
        raise ValueError(f"by must have a label for each of the {n_rows} rows; got {len(labels)}.")
    return [None if _is_missing(label) else label for label in labels]


def _is_missing(label: Any) -> bool:
    """Tell None, NaN, NaT and the NA of pandas, which is neither equal to itself nor not."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def _values_of(r: Restoration, by: Any, names: Sequence[Any]) -> list[Any]:
    """Return the values of a column that names groups."""
    if by not in names:
        some = ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
        raise ValueError(
            f"by names column {by!r}, which the table does not have (it has {some}); "
            "for another grouping give a label for each row."
        )
    side, j = r.intervals.by_col, names.index(by)
    exact = slice(side.exact_ptr[j], side.exact_ptr[j + 1])
    values = np.full(r.intervals.shape[0], np.nan)
    values[side.exact_idx[exact]] = side.value[exact]
    kinds = np.unique(values)
    if np.isnan(values).any() or len(kinds) > _MOST_GROUPS * len(values):
        raise ValueError(
            f"by names column {by!r}, whose values are no groups: some are missing or clipped, or "
            "nearly all differ. Give a label for each row."
        )
    return values.tolist()
