"""Ceilings and floors: their many shapes, and the intervals that they make of the cells."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from declip.censoring import ranged
from declip.validation.tables import Table, as_table, stored_cells
from declip.validation.triplets import Triplets, axis_name, where

Side = Literal["ceiling", "floor"]
Kind = Literal["table", "column", "row", "cell"]
NO_LIMIT = {"ceiling": np.inf, "floor": -np.inf}


@dataclass(frozen=True, eq=False)
class Limit:
    """The ceiling or the floor of the observed cells, in the data's dtype.

    Parameters
    ----------
    side : {"ceiling", "floor"}
        An infinite value (+inf for a ceiling, -inf for a floor) is no limit.
    kind : {"table", "column", "row", "cell"}
        What one element of `values` is the limit of.
    values : array
        One element, one a column, one a row, or one an observed cell.
    """

    side: Side
    kind: Kind
    values: NDArray[Any]

    def at(self, cells: Triplets) -> NDArray[Any]:
        """Limit of each observed cell; a single element if all share it."""
        if self.kind == "column":
            return self.values[cells.cols]
        return self.values[cells.rows] if self.kind == "row" else self.values


def resolve_limit(limit: Any, cells: Triplets, side: Side) -> Limit:
    """Find the limit of each observed cell.

    Parameters
    ----------
    limit : None, number, array, data frame, scipy.sparse container, mapping or pandas Series
        One for all; ``(n_cols,)`` or ``(1, n_cols)``; ``(n_rows, 1)``; ``(n_rows, n_cols)``,
        where cells that sparse input does not store have no limit; a mapping or Series from
        column label or number to limit; a Series with the labels of the rows; for triplets also one
        limit for each of them. Frames are aligned by their labels.
    cells : Triplets
        The observed cells.
    side : {"ceiling", "floor"}
        Which limit it is.

    Returns
    -------
    Limit
    """
    resolved = numbers_of_cells(limit, cells, side)
    _check_limit(resolved, cells)
    return resolved


def numbers_of_cells(limit: Any, cells: Triplets, side: Any) -> Limit:
    """Return numbers in any of these shapes; where none is given there is no limit, or NaN."""
    kind: Kind
    if isinstance(limit, Limit):
        kind, values = limit.kind, limit.values
    elif limit is None:
        kind, values = "table", np.asarray(NO_LIMIT[side])
    elif isinstance(limit, Mapping):
        kind, values = "column", _from_mapping(limit, cells, side)
    elif _is_series(limit) and not (cells.order is not None and len(limit) == cells.values.size):
        if not limit.index.is_unique:
            raise ValueError(
                f"{side} names a column twice, or a row: the index of the Series must be unique."
            )
        kind, values = _from_series(limit, cells, side)
    elif sp.issparse(limit):
        kind, values = "cell", _from_sparse(limit, cells, side)
    else:
        kind, values = _from_shape(_as_numbers(limit, cells, side), cells, side)
    with np.errstate(over="ignore"):
        return Limit(side, kind, values.astype(cells.values.dtype, copy=False))


def check_no_limits(what: str, ceiling: Any = None, floor: Any = None, tol: float = 0.0) -> None:
    """Refuse limits given beside data that have their own."""
    given = {"ceiling": ceiling is not None, "floor": floor is not None, "tol": tol != 0}
    if any(given.values()):
        names = " and ".join(name for name, is_given in given.items() if is_given)
        raise TypeError(f"{what} carries its own limits: leave out {names}.")


def apply_limits(
    cells: Triplets, ceiling: Any = None, floor: Any = None, tol: float = 0.0
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Turn values and limits into the interval of each observed cell.

    Parameters
    ----------
    cells : Triplets
        The observed cells.
    ceiling, floor : see `resolve_limit`
        A value at its ceiling becomes ``[ceiling, inf]``, at its floor ``[-inf, floor]``.
    tol : float, default=0.0
        A value that differs from a limit by at most `tol` is at the limit.

    Returns
    -------
    lower, upper : arrays
        Equal where the value is exact.
    """
    if not isinstance(tol, Real) or not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a finite number that is not negative; got {tol!r}.")
    upper_limit, lower_limit = (
        resolve_limit(ceiling, cells, "ceiling"),
        resolve_limit(floor, cells, "floor"),
    )
    _check_order(lower_limit, upper_limit, cells)
    at_ceiling = _at_limit(cells, upper_limit, float(tol))
    at_floor = _at_limit(cells, lower_limit, float(tol))
    both = np.flatnonzero(at_ceiling & at_floor)
    if both.size:
        raise ValueError(
            f"{where(cells, both[:1])} is within tol={tol} of both its floor and its ceiling: "
            "choose a smaller tol."
        )
    lower = np.where(at_ceiling, upper_limit.at(cells), cells.values)
    upper = np.where(at_floor, lower_limit.at(cells), cells.values)
    lower[at_floor], upper[at_ceiling] = -np.inf, np.inf
    return lower, upper


def limits_of_all_cells(
    ceiling: Any,
    floor: Any,
    shape: tuple[int, int],
    dtype: Any,
    col_labels: NDArray[Any] | None = None,
    row_labels: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return floor and ceiling as arrays that broadcast to a table, unobserved cells included."""
    none = np.zeros(0, np.int32)
    cells = Triplets(none, none, np.zeros(0, dtype), shape, row_labels, col_labels)
    spread = {"table": (1, 1), "column": (1, -1), "row": (-1, 1)}
    found = []
    limits: list[tuple[Any, Side]] = [(floor, "floor"), (ceiling, "ceiling")]
    for limit, side in limits:
        if getattr(limit, "shape", ()) == shape and not sp.issparse(limit) and min(shape) > 1:
            values = _as_numbers(limit, cells, side).astype(dtype)  # one for each cell
        else:
            resolved = resolve_limit(limit, cells, side)
            if resolved.kind == "cell":
                raise ValueError(
                    f"{side} must be known for every cell of the table, observed or not: give a "
                    "number, one a column, one a row, or a dense table."
                )
            values = resolved.values.reshape(spread[resolved.kind])
        found.append(values)
    return found[0], found[1]


def check_some_exact(lower: NDArray[Any], upper: NDArray[Any], n_cells: int | None = None) -> None:
    """Refuse cells that are all clipped: nothing then says how far beyond the limits they lie.

    Parameters
    ----------
    lower, upper : arrays
        Bounds of the cells that are to be fitted.
    n_cells : int, optional
        Number of observed cells, if some of them are left out.
    """
    if not np.any(ranged(lower, upper)):
        count = lower.size if n_cells is None else n_cells
        raise ValueError(
            f"All {count} observed cells are clipped, so that nothing fixes their values. "
            "Are ceiling and floor right? Some cells must lie between them."
        )


def _at_limit(cells: Triplets, limit: Limit, tol: float) -> NDArray[np.bool_]:
    """Tell which values are at the limit; refuse those beyond it."""
    excess = cells.values - limit.at(cells)
    if limit.side == "floor":
        np.negative(excess, out=excess)
    # tol holds up to the rounding of decimals: 0.8 is within 0.1 of 0.7.
    reach = tol + 4 * np.finfo(excess.dtype).eps * np.abs(cells.values) if tol else 0.0
    beyond = np.count_nonzero(excess > reach)
    if beyond:
        worst = int(np.argmax(excess))
        relation, verb = ("above", "raise") if limit.side == "ceiling" else ("below", "lower")
        raise ValueError(
            f"{beyond} of {excess.size} values ({beyond / excess.size:.1%}) are {relation} their "
            f"{limit.side}, worst {where(cells, [worst])} with {cells.values[worst]} {relation} "
            f"{np.broadcast_to(limit.at(cells), excess.shape)[worst]}. Is the {limit.side} right? "
            f"If so clip the data to it, else {verb} it; tol= allows for rounding."
        )
    return np.asarray(excess >= -reach)


def _check_limit(limit: Limit, cells: Triplets) -> None:
    nan = np.flatnonzero(np.isnan(limit.values))
    if nan.size:
        raise ValueError(
            f"{limit.side} is NaN{_place(limit.kind, nan[0], cells)}. "
            f"Use {NO_LIMIT[limit.side]} where there is no {limit.side}."
        )
    hidden = np.flatnonzero(limit.values == -NO_LIMIT[limit.side])
    if hidden.size:
        raise ValueError(
            f"{limit.side} is {-NO_LIMIT[limit.side]}{_place(limit.kind, hidden[0], cells)}, which "
            f"leaves no room for data. Use {NO_LIMIT[limit.side]} where there is no {limit.side}."
        )


def _check_order(floor: Limit, ceiling: Limit, cells: Triplets) -> None:
    kinds: set[Kind] = {floor.kind, ceiling.kind} - {"table"}
    kind: Kind
    if len(kinds) == 2:
        kind, low, high = "cell", floor.at(cells), ceiling.at(cells)
    else:
        kind = next(iter(kinds), "table")
        low, high = np.broadcast_arrays(floor.values, ceiling.values)
    wrong = np.flatnonzero(low >= high)
    if wrong.size:
        k = wrong[0]
        raise ValueError(
            f"floor must lie below ceiling, but{_place(kind, k, cells)} "
            f"floor {low.flat[k]} >= ceiling {high.flat[k]}."
        )


def _place(kind: Kind, k: int, cells: Triplets) -> str:
    if kind == "table":
        return ""
    if kind == "cell":
        return f" in {where(cells, [k])}"
    labels = cells.row_labels if kind == "row" else cells.col_labels
    return f" in {axis_name(kind, k, labels)}" + (" (counting from 0)" if labels is None else "")


def _is_series(limit: Any) -> bool:
    series = nw.from_native(limit, series_only=True, pass_through=True)
    return isinstance(series, nw.Series) and nw.maybe_get_index(series) is not None


def _as_numbers(limit: Any, cells: Triplets, side: Side) -> NDArray[Any]:
    frame = nw.from_native(limit, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        table, rows = as_table(limit, side), cells.row_labels
        if table.row_labels is None and nw.maybe_get_index(frame) is not None and rows is not None:
            table = replace(table, row_labels=_counted_rows(rows, len(frame)))
        return _aligned(table, cells, side)
    if np.ma.is_masked(limit):
        limit = limit.astype(float).filled(np.nan)
    values = np.asarray(limit)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{side} must hold numbers; got {limit!r} ({values.dtype}).")
    return values


def _counted_rows(rows: NDArray[Any], n: int) -> NDArray[Any] | None:
    """Return the labels 0, 1, 2, ... of a frame if the rows of a table are the same, moved."""
    counted = list(range(n))
    same = all(isinstance(label, Integral) for label in rows) and sorted(rows) == counted
    return np.array(counted, object) if same else None


def _aligned(limit: Table, cells: Triplets, side: Side) -> NDArray[Any]:
    """Return the limits of a frame with its rows and columns in the order of the table."""
    values = limit.values
    if values.shape[0] == cells.shape[0]:
        values = values[_order(limit.row_labels, cells.row_labels, "row", side)]
    if values.shape[1] == cells.shape[1]:
        values = values[:, _order(limit.col_labels, cells.col_labels, "column", side)]
    return values


def _from_series(limit: Any, cells: Triplets, side: Side) -> tuple[Kind, NDArray[Any]]:
    """Return the limits of a Series by column; by row, if it has the labels of the rows."""
    labels, rows = list(limit.index), cells.row_labels
    if rows is None and cells.shape[0] > cells.shape[1]:  # then they number no columns
        rows = np.arange(cells.shape[0])
    columns = set() if cells.col_labels is None else set(cells.col_labels)
    if rows is None or set(labels) != set(rows) or columns.issuperset(labels):
        return "column", _from_mapping(limit.to_dict(), cells, side)
    position = {label: i for i, label in enumerate(labels)}
    numbers = _as_numbers(limit.to_numpy(), cells, side)
    return "row", numbers[[position[label] for label in rows]]


def _order(
    given: NDArray[Any] | None, known: NDArray[Any] | None, axis: str, side: Side
) -> slice | list[int]:
    if given is not None and known is None and axis == "row":
        known = np.arange(len(given))  # the labels of a table that says no more than the order
    if given is None or known is None or list(given) == list(known):
        return slice(None)
    position = {label: i for i, label in enumerate(given)}
    for label in (*position, *known):
        if label not in position or label not in set(known):
            lacking = "the table" if label in position else f"{side}"
            raise ValueError(
                f"{lacking} has no {axis} {label!r}: the {axis}s of {side} must be those of the "
                "table, in any order, or carry no labels."
            )
    if len(position) < len(given):
        raise ValueError(f"{side} names a {axis} twice.")
    return [position[label] for label in known]


def _from_shape(values: NDArray[Any], cells: Triplets, side: Side) -> tuple[Kind, NDArray[Any]]:
    (n_rows, n_cols), n_cells = cells.shape, cells.values.size
    per_triplet = cells.order is not None and values.shape == (n_cells,)
    if per_triplet and n_cells == n_cols:
        raise ValueError(
            f"{side} of shape {values.shape} is ambiguous, with as many triplets as columns: "
            f"pass shape (1, {n_cols}) for one a column, or a (n_rows, n_cols) table."
        )
    if values.ndim == 0:
        return "table", values
    if values.shape in ((n_cols,), (1, n_cols)):
        return "column", values.ravel()
    if values.shape == (n_rows, 1):
        return "row", values.ravel()
    if values.shape == cells.shape:
        return "cell", values[cells.rows, cells.cols]
    if per_triplet:
        return "cell", values[cells.order]
    raise ValueError(_wrong_shape(values.shape, cells, side))


def _wrong_shape(shape: tuple[int, ...], cells: Triplets, side: Side) -> str:
    n_rows, n_cols = cells.shape
    accepted = (
        f"({n_cols},) or (1, {n_cols}) per column, ({n_rows}, 1) per row, {cells.shape} per cell"
    )
    if cells.order is not None:
        accepted += f", ({cells.values.size},) per triplet"
    hint = " For one a row, use reshape(-1, 1)." if shape == (n_rows,) else ""
    if len(shape) == 2 and shape[0] != n_rows and shape[1] in (1, n_cols):
        hint = (
            f" It is for {shape[0]} rows and the table has {n_rows}: give new rows with their own "
            "limits, as Intervals.from_table(rows, ceiling=, floor=)."
        )
    return (
        f"{side} has shape {shape}, which does not fit the table's shape {cells.shape}. "
        f"Accepted are a number, {accepted}.{hint}"
    )


def _from_sparse(limit: Any, cells: Triplets, side: Side) -> NDArray[Any]:
    if limit.shape != cells.shape:
        raise ValueError(_wrong_shape(limit.shape, cells, side))
    values = np.full(cells.values.size, NO_LIMIT.get(side, np.nan))
    given = stored_cells(limit)
    if given.values.size:
        given_keys, keys = _keys(given), _keys(cells)
        position = np.minimum(np.searchsorted(given_keys, keys), given_keys.size - 1)
        found = given_keys[position] == keys
        values[found] = given.values[position[found]]
    return values


def _keys(cells: Triplets) -> NDArray[np.int64]:
    return cells.rows.astype(np.int64) * cells.shape[1] + cells.cols


def _from_mapping(limit: Mapping[Any, Any], cells: Triplets, side: Side) -> NDArray[Any]:
    columns = _columns(limit, cells, side)
    given = _as_numbers(list(limit.values()), cells, side) if limit else np.empty(0)
    if given.ndim != 1:
        raise ValueError(f"{side} must give one number for each column that it names.")
    values = np.full(cells.shape[1], NO_LIMIT.get(side, np.nan))
    values[columns] = given
    return values


def _columns(keys: Iterable[Any], cells: Triplets, side: Side) -> list[int]:
    """Positions of the columns that these labels, or numbers, name."""
    labels = [] if cells.col_labels is None else cells.col_labels.tolist()
    position = {label: j for j, label in enumerate(labels)}
    if not any(isinstance(label, Integral) for label in labels):
        position |= {j: j for j in range(cells.shape[1])}
    columns = []
    for key in keys:
        if key not in position:
            raise ValueError(_unknown_column(key, labels, cells.shape[1], side))
        columns.append(position[key])
    if len(set(columns)) < len(columns):
        raise ValueError(f"{side} names a column twice, by its label and by its number.")
    return columns


def _unknown_column(key: Any, labels: list[Any], n_cols: int, side: Side) -> str:
    unknown = f"{side} names column {key!r}, which the table does not have"
    if not labels:
        return f"{unknown}: its {n_cols} columns have the numbers 0 to {n_cols - 1}."
    close = get_close_matches(str(key), [str(label) for label in labels])
    if close:
        return f"{unknown}. Did you mean {' or '.join(repr(label) for label in close)}?"
    some = ", ".join(repr(label) for label in labels[:5])
    return f"{unknown}. Its columns are {some}{', ...' if n_cols > 5 else ''}."
