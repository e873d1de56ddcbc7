"""Observed cells: what every kind of input becomes, sorted by row, then column."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from declip.censoring import right_censored

Shape = tuple[int, int]

# The squares of the values are summed, and the sum must stay finite.
LARGEST = {np.dtype(np.float64): 1e150, np.dtype(np.float32): 1e15}
MOST_INDICES = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Triplets:
    """Observed cells and their values in row-major order, without duplicates.

    Parameters
    ----------
    rows, cols : int32 arrays
        Position of each cell.
    values : float32 or float64 array
        Finite value of each cell.
    shape : (int, int)
        Shape of the table.
    row_labels, col_labels : object arrays or None
        Names of the rows and columns, if the input had any.
    order : array, slice or None
        ``given[order]`` sorts an array with one element for each given triplet; None if the
        cells did not come from triplets.
    """

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    values: NDArray[Any]
    shape: Shape
    row_labels: NDArray[Any] | None = None
    col_labels: NDArray[Any] | None = None
    order: NDArray[Any] | slice | None = None


@dataclass(frozen=True, eq=False)
class IntervalTriplets:
    """Observed cells in row-major order, each known to lie in ``[lower, upper]``."""

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    lower: NDArray[Any]
    upper: NDArray[Any]
    shape: Shape
    row_labels: NDArray[Any] | None = None
    col_labels: NDArray[Any] | None = None


def axis_name(axis: str, position: int, labels: NDArray[Any] | None) -> str:
    """Name of one row or column, such as ``row 3`` or ``column 'CRP'``."""
    if labels is None:
        return f"{axis} {position}"
    label = labels[position]
    return f"{axis} {label.item() if isinstance(label, np.generic) else label!r}"


def where(cells: Triplets | IntervalTriplets, positions: Iterable[int]) -> str:
    """Names of the first three of the cells at these positions."""
    names = [
        f"{axis_name('row', cells.rows[k], cells.row_labels)}, "
        f"{axis_name('column', cells.cols[k], cells.col_labels)}"
        for k in list(positions)[:3]
    ]
    numbered = cells.row_labels is None or cells.col_labels is None
    return "; ".join(names) + (" (counting from 0)" if numbered else "")


def check_triplets(rows: Any, cols: Any, values: Any, shape: Any = None) -> Triplets:
    """Check and sort observed cells given as three sequences.

    Parameters
    ----------
    rows, cols : 1-D sequences of integers
        Position of each observed cell.
    values : 1-D sequence of numbers
        Value of each observed cell; float32 is kept, all else becomes float64.
    shape : (int, int), optional
        Shape of the table; by default the smallest that holds all cells.

    Returns
    -------
    Triplets
    """
    rows, cols, values = _as_index(rows, "rows"), _as_index(cols, "cols"), _as_values(values)
    if not rows.size == cols.size == values.size:
        raise ValueError(
            "rows, cols and values must have equal lengths; "
            f"got {rows.size}, {cols.size} and {values.size}."
        )
    if not rows.size:
        raise ValueError("There are no triplets: at least one observed cell is needed.")
    shape = _smallest_shape(rows, cols) if shape is None else check_shape(shape)
    for index, size, axis in ((rows, shape[0], "rows"), (cols, shape[1], "cols")):
        _check_range(index, size, axis, shape)
    cells = sort_cells(rows, cols, values, shape, "triplets")
    check_values(cells)
    return cells


def check_cells(rows: Any, cols: Any, shape: Shape) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Check positions of cells to look up: integers within a table of this shape."""
    rows, cols = _as_index(rows, "rows"), _as_index(cols, "cols")
    if rows.size != cols.size:
        raise ValueError(
            f"rows and cols must have equal lengths, one pair for each cell; "
            f"got {rows.size} and {cols.size}. For a block, use reconstruct(rows=, cols=)."
        )
    for index, size, name in ((rows, shape[0], "rows"), (cols, shape[1], "cols")):
        if index.size:
            _check_range(index, size, name, shape)
    return rows.astype(np.int32, copy=False), cols.astype(np.int32, copy=False)


def places_of(
    known: NDArray[Any] | None, asked: NDArray[Any] | None, n_known: int, n_asked: int
) -> NDArray[np.intp] | None:
    """Return where the rows or columns of a table are in one that has grown: -1 if nowhere.

    By their labels, or if one has none by their order; None if there are then too few.
    """
    if known is None or asked is None:
        return np.arange(n_known) if n_known <= n_asked else None
    position = {label: i for i, label in enumerate(asked.tolist())}
    return np.array([position.get(label, -1) for label in known.tolist()], np.intp)


def label_positions(given: Any, labels: NDArray[Any] | None, axis: str) -> NDArray[np.int32]:
    """Return where rows or columns with these labels are in a table that has ``labels``."""
    if labels is None:
        raise ValueError(
            f"The {axis}s of the table of the fit have no labels, by which to look up {given!r}: "
            "give their positions, counted from 0."
        )
    names = labels.tolist()
    position = {label: i for i, label in enumerate(names)}
    asked = np.asarray(given, dtype=object).ravel().tolist()
    unknown = [label for label in asked if label not in position]
    if unknown:
        raise KeyError(
            f"The table of the fit has no {axis} {unknown[0]!r}"
            + (f", nor {len(unknown) - 1} others that were asked for." if unknown[1:] else ".")
        )
    if len(position) < len(names):
        several = Counter(names)
        for label in asked:
            if several[label] > 1:
                raise ValueError(
                    f"{several[label]} {axis}s of the table of the fit are named {label!r}: give "
                    "their positions, counted from 0."
                )
    return np.array([position[label] for label in asked], np.int32)


def cells_asked_for(
    rows: Any, cols: Any, shape: Shape, labels: tuple[NDArray[Any] | None, NDArray[Any] | None]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the positions of cells to look up, given by position or by text labels."""
    if _are_texts(rows):
        rows = label_positions(rows, labels[0], "row")
    if _are_texts(cols):
        cols = label_positions(cols, labels[1], "column")
    return check_cells(rows, cols, shape)


def _are_texts(given: Any) -> bool:
    array = np.asarray(given)
    return array.dtype.kind in "US" or (
        array.dtype == object and any(isinstance(label, str) for label in array.flat)
    )


def check_selection(which: Any, size: int, name: str) -> NDArray[np.intp]:
    """Turn a choice of rows or columns (None, slice, integers or a mask) into positions."""
    if which is None or isinstance(which, slice):
        return np.arange(size)[slice(None) if which is None else which]
    index = np.atleast_1d(np.asarray(which))
    if index.dtype == bool:
        if index.shape != (size,):
            raise IndexError(
                f"{name} is a mask of shape {index.shape}, but there are {size} {name}."
            )
        return np.flatnonzero(index)
    index = _as_index(index, name)
    if index.size and not -size <= index.min() <= index.max() < size:
        worst = index[(index < -size) | (index >= size)][0]
        raise IndexError(
            f"{name} holds {worst}, but there are {size} {name}, from 0 to {size - 1}."
        )
    return np.arange(size)[index.astype(np.intp)]


def sort_cells(
    rows: Any, cols: Any, values: Any, shape: Shape, what: str, **labels: Any
) -> Triplets:
    """Sort cells by row, then column, and refuse duplicates; ``labels`` name them in the error.

    The sort is scipy's conversion from COO to CSR of the positions, linear in the cells up to
    the order within each row. It would sum duplicates, so that fewer cells come out than went in.
    """
    rows, cols = rows.astype(np.int32, copy=False), cols.astype(np.int32, copy=False)
    if _is_sorted(rows, cols):
        return Triplets(rows, cols, values, shape, order=slice(None))
    positions = np.arange(rows.size, dtype=np.int32 if rows.size <= MOST_INDICES else np.int64)
    by_row = sp.coo_array((positions, (rows, cols)), shape=shape).tocsr()
    if by_row.nnz < rows.size:
        _refuse_duplicates(Triplets(rows, cols, values, shape, **labels), what)
    sorted_rows = np.repeat(np.arange(shape[0], dtype=np.int32), np.diff(by_row.indptr))
    sorted_cols = by_row.indices.astype(np.int32, copy=False)
    return Triplets(sorted_rows, sorted_cols, values[by_row.data], shape, order=by_row.data)


def check_values(cells: Triplets) -> None:
    """Refuse cells that hold NaN, infinities or numbers whose squares may overflow."""
    values, largest = cells.values, LARGEST[cells.values.dtype]
    if not values.size or (values.min() >= -largest and values.max() <= largest):
        return
    missing, infinite = np.flatnonzero(np.isnan(values)), np.flatnonzero(np.isinf(values))
    if missing.size:
        raise ValueError(
            f"{_count(missing, 'triplet')} NaN as value, first {where(cells, missing)}. "
            "Triplets are observed cells: leave these out, and they count as missing."
        )
    if infinite.size:
        raise ValueError(
            f"{_count(infinite, 'cell')} an infinite value (inf), first {where(cells, infinite)}. "
            "Write NaN for a missing cell, and the limit itself for a clipped one."
        )
    refuse_large(cells, values)


def check_truth(truth: NDArray[Any], cells: IntervalTriplets, tol: float) -> None:
    """Check that the values of a matrix at the observed cells agree with what was observed."""
    off = np.flatnonzero((truth < cells.lower - tol) | (truth > cells.upper + tol))
    if off.size:
        k = off[0]
        raise ValueError(
            f"truth does not agree with the table in {_count(off, 'cell')}: {where(cells, off)}. "
            f"The first is {truth[k]:g}, and was seen in [{cells.lower[k]:g}, {cells.upper[k]:g}]."
        )


def check_logarithms(
    table: Any, rows: NDArray[Any], cols: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any]
) -> None:
    """Refuse cells of which a logarithm says nothing; ``table`` gives shape and labels."""
    cells = IntervalTriplets(
        rows, cols, lower, upper, table.shape, table.row_labels, table.col_labels
    )
    unbounded = np.flatnonzero((lower <= 0) & right_censored(upper))
    if unbounded.size:
        raise ValueError(
            f"{_count(unbounded, 'cell')} a ceiling that is not positive, first "
            f"{where(cells, unbounded[:1])} with {lower[unbounded[0]]:g}: its logarithm says "
            "nothing. Leave the column out of log=, or make such cells missing (NaN)."
        )
    negative = np.flatnonzero(upper <= 0)
    if negative.size:
        least = upper[(upper > 0) & np.isfinite(upper)]
        floor = f"{0.5 * least.min() if least.size else 1.0:.1g}"
        raise ValueError(
            f"{_count(negative, 'cell')} no logarithm, first {where(cells, negative[:1])} with "
            f"{upper[negative[0]]:g}. Leave the column out of log=, or raise such cells to a floor "
            f"above zero and pass it, as in X.clip({floor}) with floor={floor}."
        )


def check_not_negative(
    table: Any, rows: NDArray[Any], cols: NDArray[Any], upper: NDArray[Any]
) -> None:
    """Refuse cells below zero, where a scale for counts has no place for them."""
    below = np.flatnonzero(upper < 0)
    if below.size:
        cells = IntervalTriplets(
            rows, cols, upper, upper, table.shape, table.row_labels, table.col_labels
        )
        raise ValueError(
            f"{_count(below, 'cell')} a value below zero, first {where(cells, below[:1])} with "
            f"{upper[below[0]]:g}: the scale is for counts and amounts. Leave such cells out (NaN)."
        )


def refuse_large(cells: Triplets | IntervalTriplets, values: NDArray[Any]) -> NoReturn:
    """Raise the error about numbers that are too large to be squared and summed."""
    worst = int(np.argmax(np.abs(values)))
    raise ValueError(
        f"The value {values[worst]} at {where(cells, [worst])} is too large: {values.dtype} data "
        f"must lie within +-{LARGEST[values.dtype]:g}. Rescale the data, for instance by a power "
        "of ten" + (", or pass float64." if values.dtype == np.float32 else ".")
    )


def as_float(values: NDArray[Any]) -> NDArray[Any]:
    """Return float32 data as it is, other numbers as float64."""
    return values.astype(np.float32 if values.dtype == np.float32 else np.float64, copy=False)


def check_shape(shape: Any) -> Shape:
    """Check the shape of a table: two integers from 1 to the largest int32."""
    sizes = tuple(shape) if np.iterable(shape) else (shape,)
    if len(sizes) != 2 or not all(isinstance(size, Integral) for size in sizes):
        raise TypeError(f"shape must be two integers (n_rows, n_cols); got {shape!r}.")
    if min(sizes) < 1 or max(sizes) > MOST_INDICES:
        raise ValueError(f"shape must lie between 1 and {MOST_INDICES} each way; got {shape!r}.")
    return int(sizes[0]), int(sizes[1])


def _smallest_shape(rows: NDArray[Any], cols: NDArray[Any]) -> Shape:
    return max(int(rows.max()), 0) + 1, max(int(cols.max()), 0) + 1


def _as_index(given: Any, name: str) -> NDArray[Any]:
    index = np.asarray(given)
    if index.ndim != 1:
        raise ValueError(f"{name} must be 1-D; got shape {index.shape}.")
    if index.dtype.kind in "iu" or not index.size:
        return index
    remedies = {
        "f": "convert them with .astype(int)",
        "b": "turn the mask into positions with numpy.flatnonzero",
    }
    by_label = "number the labels first, for instance with numpy.unique(..., return_inverse=True)"
    remedy = remedies.get(index.dtype.kind, by_label)
    raise TypeError(f"{name} must hold integers, not {index.dtype}: {remedy}.")


def _as_values(values: Any) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError("values are masked in part: leave out the triplets that are missing.")
    values = np.asarray(values)
    if values.ndim != 1:
        raise ValueError(f"values must be 1-D; got shape {values.shape}.")
    if values.dtype.kind not in "biuf":
        raise TypeError(f"values must hold real numbers, not {values.dtype}: convert them first.")
    return as_float(values)


def _check_range(index: NDArray[Any], size: int, name: str, shape: Shape) -> None:
    if index.min() >= 0 and index.max() < size and size <= MOST_INDICES:
        return
    first = int(np.argmax((index < 0) | (index >= min(size, MOST_INDICES))))
    limit = f"lie from 0 to {min(size, MOST_INDICES) - 1}, for shape {shape}"
    raise ValueError(f"{name}[{first}] is {index[first]}, but {name} must {limit}.")


def _is_sorted(rows: NDArray[Any], cols: NDArray[Any]) -> bool:
    later = rows[1:] > rows[:-1]
    later |= (rows[1:] == rows[:-1]) & (cols[1:] > cols[:-1])
    return bool(later.all())


def _refuse_duplicates(cells: Triplets, what: str) -> NoReturn:
    rows, cols = cells.rows, cells.cols
    keys = rows.astype(np.int64) * cells.shape[1] + cols
    order = np.argsort(keys, kind="stable")
    repeats = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    k = repeats[np.argmin(order[repeats + 1])]
    earlier, later = order[k], order[k + 1]
    row, column = (
        axis_name("row", rows[later], cells.row_labels),
        axis_name("column", cols[later], cells.col_labels),
    )
    raise ValueError(
        f"Cell {row}, {column} is given twice, as {what} {earlier} and "
        f"{later} (counting from 0); repeated {what} in all: {repeats.size}. "
        "Repeated cells are never summed: keep one value for each cell."
    )


def refuse_repeated(
    rows: NDArray[Any], cols: NDArray[Any], labels: tuple[NDArray[Any] | None, NDArray[Any] | None]
) -> None:
    """Refuse cells in row-major order of which two are the same."""
    same = np.flatnonzero((rows[1:] == rows[:-1]) & (cols[1:] == cols[:-1]))
    if same.size:
        k = same[0]
        named = all(known is not None and known.dtype == object for known in labels)
        row, column = axis_name("row", rows[k], labels[0]), axis_name("column", cols[k], labels[1])
        raise ValueError(
            f"Cell {row}, {column} is given twice{'' if named else ' (counting from 0)'}. "
            "Repeated cells are never summed: keep one value for each cell."
        )


def _count(positions: NDArray[Any], noun: str) -> str:
    return f"1 {noun} has" if positions.size == 1 else f"{positions.size} {noun}s have"
