"""Tables of any kind (arrays, frames, scipy.sparse) turned into observed cells."""

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from declip.censoring import unbounded
from declip.containers import label_array, opened
from declip.validation.columns import column_to_float, refuse_dates, series_to_float
from declip.validation.looks_long import refuse_elsewhere, refuse_long
from declip.validation.sizes import check_memory
from declip.validation.triplets import (
    LARGEST,
    IntervalTriplets,
    Triplets,
    as_float,
    axis_name,
    check_shape,
    check_values,
    refuse_large,
    sort_cells,
    where,
)


@dataclass(frozen=True, eq=False)
class Table:
    """A dense table of floats, NaN where a cell is missing, with its labels if it has any."""

    values: NDArray[Any]
    row_labels: NDArray[Any] | None = None
    col_labels: NDArray[Any] | None = None


def table_to_triplets(X: Any, *, estimator: Any = None, allow_empty: bool = False) -> Triplets:
    """Collect the observed cells of a table.

    Parameters
    ----------
    X : array, masked array, list of lists, data frame, scipy.sparse or other container
        NaN, None, NA, null and masked cells are missing. In sparse input the stored cells are
        observed, a stored 0 is a value, and the table is never made dense.
    estimator : estimator or str, optional
        Named in the errors of scikit-learn.
    allow_empty : bool, default=False
        Whether a table without any observed cell is accepted.

    Returns
    -------
    Triplets
        float32 data stay float32, all other numbers become float64.
    """
    X = opened(X)
    refuse_elsewhere(X.X)
    stored = sp.issparse(X.table)
    cells = _drop_nan(stored_cells(X.table, estimator)) if stored else _dense_cells(X, estimator)
    if not cells.values.size and not allow_empty:
        raise ValueError(f"X has no observed cell: the {cells.shape} table is missing throughout.")
    check_values(cells)
    return cells


def check_bounds(lower: Any, upper: Any) -> IntervalTriplets:
    """Collect the cells whose range is known from tables of lower and upper bounds.

    Parameters
    ----------
    lower, upper : arrays, masked arrays, lists of lists or data frames
        Tables of the same shape. A cell that is NaN in both, or unbounded both ways, is missing.

    Returns
    -------
    IntervalTriplets
    """
    low, high = as_table(lower, "lower"), as_table(upper, "upper")
    if low.values.shape != high.values.shape:
        raise ValueError(
            "lower and upper must have the same shape; "
            f"got {low.values.shape} and {high.values.shape}."
        )
    _check_same_labels(low, high)
    check_memory((3, *low.values.shape), np.float64, "from_bounds", "use from_triplets.")
    observed = ~(np.isnan(low.values) & np.isnan(high.values))
    observed &= ~unbounded(low.values, high.values)
    dtype = np.result_type(low.values, high.values)
    bounds = IntervalTriplets(
        *_positions(observed),
        low.values[observed].astype(dtype, copy=False),
        high.values[observed].astype(dtype, copy=False),
        low.values.shape,
        low.row_labels if low.row_labels is not None else high.row_labels,
        low.col_labels if low.col_labels is not None else high.col_labels,
    )
    _check_ranges(bounds)
    return bounds


def as_table(X: Any, name: str = "X", estimator: Any = None) -> Table:
    """Convert a dense table of any kind to floats, with NaN for missing cells."""
    container = opened(X)
    X = container.table
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        table = _frame_table(frame)
    elif hasattr(X, "collect"):
        raise TypeError(f"{name} is a lazy frame: call its collect() first.")
    else:
        table = Table(X if sp.issparse(X) else _plain_array(X, name), *container.labels)
    values = _check_array(
        table.values,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        estimator=estimator,
        input_name=name,
    )
    return Table(values, table.row_labels, table.col_labels)


def backend_of(X: Any) -> Any:
    """Return the library of a data frame, None for any other table."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return nw.get_native_namespace(frame) if isinstance(frame, nw.DataFrame) else None


def _dense_cells(X: Any, estimator: Any) -> Triplets:
    refuse_long(X.table)
    table = as_table(X, estimator=estimator)
    check_memory((2, *table.values.shape), np.float64, "X", "pass it as a scipy.sparse matrix.")
    observed = ~np.isnan(table.values)
    rows, cols = _positions(observed)
    shape = check_shape(table.values.shape)
    return Triplets(rows, cols, table.values[observed], shape, table.row_labels, table.col_labels)


def _positions(observed: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    n_rows, n_cols = observed.shape
    rows = np.repeat(np.arange(n_rows, dtype=np.int32), observed.sum(axis=1))
    cols = np.broadcast_to(np.arange(n_cols, dtype=np.int32), observed.shape)[observed]
    return rows, cols


def stored_cells(X: Any, estimator: Any = None) -> Triplets:
    """Collect the stored cells of a scipy.sparse container, a stored NaN or 0 among them."""
    # dtype=None: scipy sums duplicates, in place, when it converts the type of the data.
    X = _check_array(
        X, accept_sparse=True, dtype=None, ensure_all_finite=False, estimator=estimator
    )
    if X.ndim != 2:
        raise ValueError(f"Expected a 2D sparse table, got {X.ndim} dimensions.")
    shape = check_shape(X.shape)
    stored = _stored_dia_cells(X) if X.format == "dia" else X.tocoo()
    cells = sort_cells(stored.row, stored.col, as_float(stored.data), shape, "stored entries")
    return replace(cells, order=None)


def _drop_nan(cells: Triplets) -> Triplets:
    seen = ~np.isnan(cells.values)
    if seen.all():
        return cells
    return Triplets(cells.rows[seen], cells.cols[seen], cells.values[seen], cells.shape)


def _stored_dia_cells(X: Any) -> Any:
    # scipy drops the zeros of a diagonal: convert the (nonzero) positions of its data instead.
    positions = np.arange(1, X.data.size + 1).reshape(X.data.shape)
    stored = sp.dia_array((positions, X.offsets), shape=X.shape).tocoo()
    return sp.coo_array((X.data.ravel()[stored.data - 1], stored.coords), shape=X.shape)


def _frame_table(frame: nw.DataFrame[Any]) -> Table:
    index = nw.maybe_get_index(frame)
    row_labels = None if index is None else label_array(index)
    col_labels = label_array(frame.columns)
    columns = list(frame.iter_columns())
    single = bool(columns) and all(column.dtype == nw.Float32 for column in columns)
    values = np.empty(frame.shape, np.float32 if single else np.float64, order="F")
    for j, column in enumerate(columns):
        values[:, j] = series_to_float(column, axis_name("column", j, col_labels), row_labels)
    return Table(values, row_labels, col_labels)


def _plain_array(X: Any, name: str) -> NDArray[Any]:
    array = np.asarray(X)
    if array.dtype.kind in "Mm":
        refuse_dates(array.ravel(), name)
    if array.dtype.kind in "UST":
        array = np.asarray(X, dtype=object)  # numbers in a list with text stay numbers
    if isinstance(X, np.ma.MaskedArray):
        missing: Any = None if array.dtype == object else np.nan
        array = np.where(np.ma.getmaskarray(X), missing, array)
    if array.dtype.kind in "Oc" and array.ndim == 2:
        columns = [column_to_float(cells, f"column {j}", None) for j, cells in enumerate(array.T)]
        array = np.array(columns, dtype=np.float64).reshape(array.shape[::-1]).T
    return array


def _check_same_labels(low: Table, high: Table) -> None:
    for axis, one, other in (
        ("row", low.row_labels, high.row_labels),
        ("column", low.col_labels, high.col_labels),
    ):
        if one is not None and other is not None and list(one) != list(other):
            raise ValueError(f"lower and upper must have the same {axis} labels in the same order.")


def _check_ranges(bounds: IntervalTriplets) -> None:
    lower, upper = bounds.lower, bounds.upper
    if not lower.size:
        raise ValueError("lower and upper bound no cell: the table is missing throughout.")
    half = np.flatnonzero(np.isnan(lower) != np.isnan(upper))
    if half.size:
        raise ValueError(
            f"Only one of lower and upper is NaN at {where(bounds, half[:1])}, {half.size} such "
            "in all. Use -inf or +inf for no bound, and NaN in both for a missing cell."
        )
    hidden = np.flatnonzero(np.isposinf(lower) | np.isneginf(upper))
    if hidden.size:
        raise ValueError(
            f"lower must be below +inf and upper above -inf; see {where(bounds, hidden[:1])}."
        )
    with np.errstate(invalid="ignore"):
        excess = np.where(lower > upper, lower - upper, 0)
    worst = int(np.argmax(excess))
    if excess[worst] > 0:
        raise ValueError(
            f"lower must not exceed upper: {np.count_nonzero(excess)} cells do, worst "
            f"{where(bounds, [worst])} with {lower[worst]} > {upper[worst]}. Are they swapped?"
        )
    for end in (lower, upper):
        finite = np.where(np.isfinite(end), end, 0)
        if np.abs(finite).max() > LARGEST[end.dtype]:
            refuse_large(bounds, finite)


def _check_array(X: Any, **how: Any) -> Any:
    # Imported when used: workers of a cluster read no tables, and save its 130 MB.
    from sklearn.utils.validation import check_array

    return check_array(X, **how)
