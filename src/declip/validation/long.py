"""Long tables, one line a cell: their ids turned into numbers, and limits in a column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.validation.columns import series_to_float
from declip.validation.limits import NO_LIMIT, Limit, Side
from declip.validation.triplets import Triplets, check_values, sort_cells

_BETWEEN = " / "  # the parts of a label that several columns name


@dataclass(frozen=True, eq=False)
class LongTable:
    """The cells of a long table and the limits that stand beside them, line by line.

    Attributes
    ----------
    cells : Triplets
        The cells, with their labels; lines without a value are left out.
    limits : dict
        By side, "ceiling" and "floor", what was given; a named column as one limit for each cell.
    """

    cells: Triplets
    limits: dict[Side, Any]


Names = str | Sequence[str]


def read_long(frame: Any, names: tuple[Names, Names, str], limits: dict[Side, Any]) -> LongTable:
    """Collect the cells that a long table lists.

    Parameters
    ----------
    frame : pandas or polars frame
        One line a cell.
    names : three str, the first two or sequences of str
        Columns that hold the row, the column and the value of a cell; several name it together.
    limits : dict
        By side, a limit as in `resolve_limit`, or the name of a column that holds it.
    """
    table = _in_memory(frame)
    named = {side: limit for side, limit in limits.items() if isinstance(limit, str)}
    keys = [[name] if isinstance(name, str) else list(name) for name in names[:2]]
    if not all(keys):
        raise ValueError("No column names the rows, or the columns: name at least one for each.")
    for name in (*keys[0], *keys[1], names[2], *named.values()):
        if name not in table.columns:
            raise ValueError(
                f"The long table has no column {name!r}; its columns are "
                f"{', '.join(map(repr, table.columns))}. Name them with row=, column= and value=."
            )
    (rows, row_labels), (cols, col_labels) = (_numbered(table, key) for key in keys)
    values = series_to_float(table[names[2]], f"column {names[2]!r}", None)
    shape = len(row_labels), len(col_labels)
    labels = {"row_labels": row_labels, "col_labels": col_labels}
    every = sort_cells(rows, cols, values, shape, "lines", **labels)
    seen = ~np.isnan(every.values)
    if not seen.any():
        raise ValueError(f"Column {names[2]!r} holds no value: every cell is missing.")
    cells = Triplets(every.rows[seen], every.cols[seen], every.values[seen], shape, **labels)
    check_values(cells)
    beside = {
        side: _limit_column(table[name], name, side)[every.order][seen]
        for side, name in named.items()
    }
    return LongTable(cells, limits | {s: Limit(s, "cell", found) for s, found in beside.items()})


def _numbered(table: nw.DataFrame[Any], key: list[str]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the ids in columns as numbers from 0, and what these stand for, sorted."""
    parts = [_complete(table[name], name) for name in key]
    ids = parts[0] if len(key) == 1 else _joined(table, key)
    asked = ids.alias("id").to_frame()
    try:
        known = asked.unique().sort("id").with_row_index("code")
    except TypeError:
        raise _of_several_kinds(asked["id"].to_list(), key[0]) from None
    codes = asked.join(known, on="id", how="left")["code"].to_numpy().astype(np.int32)
    labels = np.empty(len(known), dtype=object)
    labels[:] = known["id"].to_list()
    return codes, labels


def _joined(table: nw.DataFrame[Any], key: list[str]) -> Any:
    """Return the names that several columns make together; lines that differ have not the same."""
    parts = [nw.col(name).cast(nw.String).alias(f"{i}") for i, name in enumerate(key)]
    lines = table.select(*parts).with_columns(id=nw.concat_str(nw.all(), separator=_BETWEEN))
    different = lines.unique()["id"]
    if different.is_duplicated().any():
        name = different.filter(different.is_duplicated())[0]
        raise ValueError(
            f"Lines that differ in {' or '.join(map(repr, key))} would all be named {name!r}: "
            f"write something else for {_BETWEEN.strip()!r} in these columns."
        )
    return lines["id"]


def sorted_labels(ids: Any, name: str) -> NDArray[Any]:
    """Return different ids, a column of a frame, as sorted labels."""
    different = _complete(nw.from_native(ids, series_only=True), name).to_list()
    labels = np.empty(len(different), dtype=object)
    try:
        labels[:] = sorted(different)
    except TypeError:
        raise _of_several_kinds(different, name) from None
    return labels


def _complete(ids: Any, name: str) -> Any:
    """Return ids, categories as text, none of which is missing."""
    if ids.null_count() or (ids.dtype.is_float() and ids.is_nan().any()):
        raise ValueError(f"Column {name!r} holds a line without a label: drop it, or name it.")
    return ids.cast(nw.String) if ids.dtype in (nw.Categorical, nw.Enum) else ids


def _of_several_kinds(ids: list[Any], name: str) -> TypeError:
    """Return an error that names two ids of which it cannot be told whether they are the same."""
    other = next((label for label in ids if type(label) is not type(ids[0])), ids[-1])
    return TypeError(
        f"Column {name!r} holds ids of several kinds, such as {ids[0]!r} and {other!r}: make them "
        f"all text or all numbers, as with frame[{name!r}].astype(str)."
    )


def _in_memory(frame: Any) -> Any:
    """Return a long table as a frame in memory, or say what else to do."""
    table = nw.from_native(frame, pass_through=True)
    if isinstance(table, nw.LazyFrame):
        raise TypeError(
            f"The long table is lazy ({type(frame).__module__.partition('.')[0]}): bring it into "
            "memory with compute() or collect(), or fit one of Dask with declip.dask.FroCMC, which "
            "takes the columns as cells=."
        )
    if not isinstance(table, nw.DataFrame):
        raise TypeError(
            f"A long table is a pandas or polars frame, one line a cell; got "
            f"{type(frame).__name__}. Lists of rows, columns and values are for "
            "Intervals.from_triplets."
        )
    return table


def _limit_column(limits: Any, name: str, side: Side) -> NDArray[np.float64]:
    """Return the limits of the cells, infinite where the column is empty."""
    values = series_to_float(limits, f"column {name!r}", None)
    return np.where(np.isnan(values), NO_LIMIT[side], values)
