"""What is given where a table is expected and is none: long frames, paths, frames of Dask."""

from os import PathLike
from typing import Any

import narwhals.stable.v2 as nw

_REPEATS = 8  # cells that chance alone would have repeated: e^-8 is the chance that it repeats none
_MOST_COLUMNS = 5  # of a long table: row, column, value and two limits


def refuse_elsewhere(X: Any) -> None:
    """Refuse a path, and a frame of Dask, whose cells are not in memory."""
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"X is a path, {str(X)!r}, not a table: read a file with declip.read_table; a folder "
            "of blocks is fitted by FroCMC (of declip or declip.dask) alone. To search parameters, "
            "or to fit another estimator, take a part of the rows into memory."
        )
    if hasattr(X, "map_partitions") and hasattr(X, "columns"):
        raise TypeError(
            "X is a frame of Dask: fit it with declip.dask.FroCMC (a long one with cells=), or "
            "bring it into memory with X.compute()."
        )


def refuse_long(X: Any, remedy: str | None = None) -> None:
    """Refuse a frame that lists one cell a line where a table is expected.

    It has two columns of whole numbers or text and one of values, and no pair of the former is
    repeated where chance would have repeated many.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or not 3 <= len(frame.columns) <= _MOST_COLUMNS:
        return
    ids, value = frame.columns[:2], frame.columns[2]
    if not all(isinstance(name, str) for name in (*ids, value)):
        return
    if not (all(_may_be_id(frame[name].dtype) for name in ids) and frame[value].dtype.is_numeric()):
        return
    n, sizes = len(frame), [frame[name].n_unique() for name in ids]
    if n * (n - 1) / 2 < _REPEATS * sizes[0] * sizes[1] or frame.select(ids).is_duplicated().any():
        return
    remedy = remedy or (
        f"Read it with Intervals.from_long(X, row={ids[0]!r}, column={ids[1]!r}, value={value!r}); "
        f"if it is a table of {len(frame.columns)} columns, pass X.to_numpy()."
    )
    raise TypeError(
        f"X looks like a long table, one line a cell: no pair of {ids[0]!r} and {ids[1]!r} occurs "
        f"twice. {remedy}"
    )


def _may_be_id(dtype: Any) -> bool:
    return bool(dtype.is_integer()) or dtype in (nw.String, nw.Categorical, nw.Enum)
