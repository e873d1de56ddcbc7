"""Tables of ordered levels: numbers or ordered categories, turned into cells and scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.containers import Container, label_array, opened
from declip.levels import Levels, Scale
from declip.validation.tables import table_to_triplets
from declip.validation.triplets import Triplets, axis_name, where

__all__ = ["check_level_model", "check_level_sides", "level_scales", "one_scale", "read_levels"]

_MOST_LEVELS = 50  # found in a table that does not say which levels it has
_SAME = 1e-6  # of the smallest step between levels: closer numbers are equal

Names = dict[int, NDArray]


def read_levels(
    X: Any, levels: Any = None, edges: Any = None, *, allow_empty: bool = False
) -> tuple[Triplets, Levels]:
    """Collect the cells of a table in levels, as their numbers, and the scales of its columns.

    Parameters
    ----------
    X : table
        As in `table_to_triplets`; columns may be ordered categories, or texts that ``levels`` has.
    levels, edges : see `Intervals.from_levels`
        Or the `Levels` of another table with the same columns.
    allow_empty : bool, default=False
        Whether a table without any observed cell is accepted.
    """
    container = opened(X)
    labels, n_cols = _labels_of(container)
    names = levels if isinstance(levels, Levels) else _names_given(container, levels, labels)
    known = _names_of(names) if isinstance(names, Levels) else names
    numbered = _numbered(container, known or {}, labels)
    cells = table_to_triplets(numbered, allow_empty=allow_empty)
    if cells.col_labels is None and labels is not None and n_cols == cells.shape[1]:
        cells = replace(cells, col_labels=labels)
    scales = names if isinstance(names, Levels) else _scales_of(cells, names, edges)
    _check_on_scale(cells, scales)
    return cells, scales


def level_scales(cells: Triplets, levels: Any, edges: Any) -> Levels:
    """Return the scales of columns whose cells are known by the numbers of their levels."""
    if isinstance(levels, Levels):
        scales = levels
    elif isinstance(levels, Mapping):
        places = {_place(c, cells.col_labels, "levels"): v for c, v in levels.items()}
        names = {j: _as_names(places[j]) for j in sorted(places)}
        scales = _scales_of(cells, names, edges)
    else:
        all_columns = range(cells.shape[1])
        named = None if levels is None else dict.fromkeys(all_columns, _as_names(levels))
        scales = _scales_of(cells, named, edges)
    _check_on_scale(cells, scales)
    return scales


def _scales_of(cells: Triplets, names: Names | None, edges: Any) -> Levels:
    """Return the scales of columns: as named, or the values of the whole table for all.

    Parameters
    ----------
    cells : Triplets
        The numbers of the levels.
    names : dict or None
        Levels of columns, by position; the other columns hold numbers.
    edges : None, sequence of numbers or mapping
        See `Intervals.from_levels`.
    """
    n_cols = cells.shape[1]
    if names is None:
        names = dict.fromkeys(range(n_cols), _found_levels(cells.values))
    given = _edges_given(edges, names, cells)
    scales: dict[tuple, Scale] = {}
    of_column = np.full(n_cols, -1, np.int32)
    for j, own in names.items():
        cut = given[j]
        key = tuple(own), None if cut is None else tuple(cut)
        if key not in scales:
            scales[key] = _scale(own, cut, axis_name("column", j, cells.col_labels))
        of_column[j] = list(scales).index(key)
    if not scales:
        raise ValueError("levels names no column: which of them are recorded in levels?")
    return Levels(tuple(scales.values()), of_column)


def check_level_model(table: Any, levels: Any, missing: Any) -> None:
    """Refuse what levels do not go with."""
    if levels and table.levels is None:
        raise ValueError(
            f"levels={levels!r} needs to know the levels: this Intervals has none. Make it with "
            "Intervals.from_levels, which takes an Intervals as well."
        )
    if levels and missing != "random":
        raise ValueError('levels go with missing="random" only.')


def check_level_sides(levels: Any, names: Any) -> None:
    """Refuse what is known of single cells beside levels whose edges are sampled."""
    for name in ("weights", "errors"):
        if levels and name in names:
            raise ValueError(f"levels={levels!r} does not go with {name}=: leave one of them out.")


def one_scale(levels: Levels | None, cols: NDArray, labels: NDArray | None) -> Scale:
    """Return the scale that all these columns share."""
    if levels is None:
        raise ValueError(
            "The fitted table is not recorded in levels: fit with levels= or Intervals.from_levels."
        )
    found = np.unique(levels.of_column[cols])
    if len(found) > 1 or found[0] < 0:
        first, other = (int(cols[levels.of_column[cols] == which][0]) for which in found[[0, -1]])
        named = [axis_name("column", j, labels) for j in dict.fromkeys((first, other))]
        raise ValueError(
            f"{' and '.join(named)} {'differ in their levels' if len(named) > 1 else ''}"
            f"{'holds numbers, not levels' if len(named) == 1 else ''}: ask for columns of one "
            "scale at a time."
        )
    return levels.scales[found[0]]


def _labels_of(container: Container) -> tuple[NDArray | None, int]:
    frame = nw.from_native(container.table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return label_array(frame.columns), len(frame.columns)
    shape = np.shape(container.table)
    return container.labels[1], int(shape[1]) if len(shape) == 2 else 0


def _names_of(levels: Levels) -> Names:
    return {j: levels.scales[s].names for j, s in enumerate(levels.of_column) if s >= 0}


def _names_given(container: Container, levels: Any, labels: NDArray | None) -> Names | None:
    """Return the levels of columns as given, or those of ordered categories; None for neither."""
    frame = nw.from_native(container.table, eager_only=True, pass_through=True)
    if levels is not None and not isinstance(levels, Mapping):
        return dict.fromkeys(range(_labels_of(container)[1]), _as_names(levels))
    found = {_place(column, labels, "levels"): _as_names(v) for column, v in (levels or {}).items()}
    own = _categories(frame, found) if isinstance(frame, nw.DataFrame) else {}
    both = own | found
    return {j: both[j] for j in sorted(both)} or None


def _categories(frame: nw.DataFrame[Any], given: Names) -> Names:
    """Return the levels of columns that are ordered categories; refuse those without an order."""
    found = {}
    for j, column in enumerate(frame.iter_columns()):
        if j in given:
            continue
        if isinstance(column.dtype, nw.Enum):
            found[j] = _as_names(column.cat.get_categories().to_list())
        elif isinstance(column.dtype, nw.Categorical):
            raise ValueError(
                f"Column {column.name!r} has categories without an order: make them ordered "
                "(pandas: ordered=True; polars: an Enum), or give levels={...} from low to high."
            )
    return found


def _as_names(levels: Any) -> NDArray:
    if isinstance(levels, str) or not isinstance(levels, Sequence | np.ndarray):
        raise TypeError(
            f"levels must be listed from low to high, or a mapping from columns to such lists; "
            f"got {levels!r}."
        )
    array = np.asarray(levels)
    if array.dtype.kind in "iufb":
        array = array.astype(np.float64)
        if len(array) > 1 and not np.all(np.diff(array) > 0):
            raise ValueError(f"Levels must rise; got {list(levels)!r}.")
        return array
    names = np.array([str(name) for name in levels], dtype=object)
    if len(set(names)) < len(names):
        raise ValueError(f"A level is listed twice in {list(levels)!r}.")
    return names


def _place(column: Any, labels: NDArray | None, what: str) -> int:
    places = {} if labels is None else {label: j for j, label in enumerate(labels)}
    is_number = isinstance(column, int | np.integer) and not isinstance(column, bool)
    place = places.get(column, int(column) if is_number and labels is None else None)
    if place is None or place < 0:
        raise ValueError(f"{what} names column {column!r}, which the table does not have.")
    return place


def _numbered(container: Container, names: Names, labels: NDArray | None) -> Any:
    """Return the table with texts and categories as the numbers of their levels."""
    table = container.table
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _numbered_frame(frame, names, labels)
    array = table if hasattr(table, "dtype") else np.asarray(table, dtype=object)
    if getattr(array, "dtype", None) is None or array.dtype.kind not in "OUST" or array.ndim != 2:
        return container
    texts = np.array(array, dtype=object)
    for j, own in names.items():
        texts[:, j] = _marks(list(texts[:, j]), own, j, labels)
    return texts


def _numbered_frame(frame: nw.DataFrame[Any], names: Names, labels: NDArray | None) -> Any:
    columns = list(frame.iter_columns())
    texts = {j: own for j, own in names.items() if _is_text(columns[j].dtype)}
    marks = {j: _marks(columns[j].to_list(), own, j, labels) for j, own in texts.items()}
    if nw.maybe_get_index(frame) is None:
        named = ((frame.columns[j], column) for j, column in marks.items())
        made = [nw.new_series(name, v, backend=frame.implementation) for name, v in named]
        return frame.with_columns(*made).to_native()
    native = frame.to_native().copy(deep=False)
    for j, column in marks.items():  # by position: names may be numbers
        native.isetitem(j, column)
    return native


def _is_text(dtype: Any) -> bool:
    return not (dtype.is_numeric() or dtype == nw.Boolean)


def _marks(cells: list[Any], names: NDArray, column: int, labels: NDArray | None) -> NDArray:
    """Return the numbers of texts, NaN where a cell is missing."""
    scale = Scale(names, np.zeros(0))
    numbers = dict(zip(names, scale.marks, strict=True))
    read: Callable[[Any], Any] = float if names.dtype.kind == "f" else str
    found = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType"):
            continue
        try:
            found[i] = numbers[read(cell)]
        except (KeyError, ValueError):
            at = f"{axis_name('column', column, labels)} holds {cell!r} at row {i}"
            raise ValueError(f"{at}, which is none of its levels {_listed(names)}.") from None
    return found


def _listed(names: NDArray) -> str:
    shown = [f"{name:g}" if isinstance(name, float) else repr(str(name)) for name in names]
    return ", ".join(shown if len(shown) <= 8 else [*shown[:3], "...", *shown[-2:]])


def _found_levels(values: NDArray) -> NDArray:
    found = np.unique(values).astype(np.float64)
    if len(found) > _MOST_LEVELS:
        raise ValueError(
            f"The table has {len(found)} different values: these are not levels. Name the columns "
            "that are recorded in levels, levels={column: [lowest, ..., highest]}."
        )
    return found


def _edges_given(edges: Any, names: Names, cells: Triplets) -> dict[int, NDArray | None]:
    if isinstance(edges, Mapping):
        found = {
            _place(c, cells.col_labels, "edges"): np.asarray(e, float) for c, e in edges.items()
        }
        for j in found:
            if j not in names:
                at = axis_name("column", j, cells.col_labels)
                raise ValueError(f"edges are given for {at}, which is not recorded in levels.")
        return {j: found.get(j) for j in names}
    return dict.fromkeys(names, None if edges is None else np.asarray(edges, np.float64))


def _scale(names: NDArray, edges: NDArray | None, column: str) -> Scale:
    if len(names) < 2:
        raise ValueError(f"{column} has fewer than two levels ({_listed(names)}).")
    marks = Scale(names, np.zeros(0)).marks
    edges = 0.5 * (marks[1:] + marks[:-1]) if edges is None else edges
    if edges.shape != (len(names) - 1,):
        raise ValueError(
            f"{column} has {len(names)} levels, and so {len(names) - 1} edges between them; got "
            f"{edges.size}."
        )
    if not (np.isfinite(edges).all() and np.all(np.diff(edges) > 0)):
        raise ValueError(f"The edges of {column} must be finite and rise; got {edges.tolist()}.")
    return Scale(names, edges)


def _check_on_scale(cells: Triplets, levels: Levels) -> None:
    """Refuse numbers that are no level of their column."""
    if cells.shape[1] != len(levels.of_column):
        raise ValueError(
            f"The table has {cells.shape[1]} columns, but levels are known for "
            f"{len(levels.of_column)}."
        )
    for which, scale in enumerate(levels.scales):
        here = np.flatnonzero(levels.of_column[cells.cols] == which)
        marks, values = scale.marks, cells.values[here].astype(np.float64)
        nearest = marks[np.searchsorted(0.5 * (marks[1:] + marks[:-1]), values)]
        off = here[abs(values - nearest) > _SAME * max(np.diff(marks).min(), abs(marks).max())]
        if len(off):
            raise ValueError(
                f"{cells.values[off[0]]:g} at {where(cells, off[:1])} is none of the levels "
                f"{_listed(scale.names)}; {len(off)} such in all."
            )
