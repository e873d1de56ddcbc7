"""Wide and long sheets brought to one form: a list of cells, still as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from declip.io.keys import joined, number_keys
from declip.io.labels import text_labels
from declip.io.plan import Asked, Roles
from declip.io.problems import Problem
from declip.io.sheet import Sheet
from declip.io.units import column_keys, units_of_lines
from declip.validation import check_memory

__all__ = ["Listed", "list_cells"]


@dataclass(frozen=True, eq=False)
class Listed:
    """Cells of a sheet, one after the other: position in the table, text, and what stands beside.

    Attributes
    ----------
    rows, cols : int32 arrays
        Position of each cell in the table.
    text : polars.Series
        What the cell holds.
    qualifier, limit, unit : polars.Series or None
        What the columns beside it hold, if there are any.
    line : array or None
        Row of the sheet of each cell; None for 0, 1, 2, ...
    field : array or int
        Column of the sheet of each column of the table, or of all cells.
    """

    sheet: Sheet
    roles: Roles
    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    text: pl.Series
    row_labels: NDArray | None
    col_labels: NDArray | None
    field: NDArray | int
    line: NDArray | None = None
    qualifier: pl.Series | None = None
    limit: pl.Series | None = None
    unit: pl.Series | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        labels = self.row_labels, self.col_labels
        known = [0 if names is None else len(names) for names in labels]
        return (
            known[0] or (int(self.rows.max()) + 1 if len(self.rows) else 0),
            known[1] or (int(self.cols.max()) + 1 if len(self.cols) else 0),
        )

    def place(self, k: int) -> tuple[int, int]:
        """Return row and column of the sheet of a cell."""
        row = k if self.line is None else int(self.line[k])
        return row, self.field if isinstance(self.field, int) else int(self.field[self.cols[k]])

    def problem(self, cells: NDArray, what: str | Problem) -> Problem:
        """Return what is wrong with some cells, placed at the first in the order of the file."""
        given = what if isinstance(what, Problem) else Problem(what)
        return self.sheet.placed(given, *self.place(self.first(cells)), len(cells))

    def first(self, cells: NDArray) -> int:
        """Return which of some cells comes first in the file."""
        return int(cells[0] if self.line is None else cells[np.argmin(self.line[cells])])

    def named(self, k: int) -> tuple[object, object]:
        """Return the labels of a cell, or its numbers."""
        row, column = (
            index if labels is None else labels[index]
            for labels, index in (
                (self.row_labels, int(self.rows[k])),
                (self.col_labels, int(self.cols[k])),
            )
        )
        return row, column


def list_cells(sheet: Sheet, roles: Roles, asked: Asked) -> Listed:
    """List the cells of a sheet whose columns are known."""
    listed = _long(sheet, roles, asked) if roles.layout == "long" else _wide(sheet, roles)
    rows, columns, values = (
        " / ".join(names) or None for names in (roles.rows, roles.columns, roles.values)
    )
    if roles.layout == "wide":
        columns = values = None
    form = replace(sheet.format, layout=roles.layout, rows=rows, columns=columns, values=values)
    return replace(listed, sheet=replace(sheet, format=form))


def _long(sheet: Sheet, roles: Roles, asked: Asked) -> Listed:
    value = roles.values[0]
    row_keys = [sheet.series(name) for name in roles.rows]
    cols, col_labels = number_keys(column_keys(sheet, roles), roles.columns)
    row_names: Sequence[str] = roles.rows
    if asked.replicates == "separate":
        row_keys, row_names = [*row_keys, _repeat(row_keys, cols)], [*roles.rows, "replicate"]
    rows, row_labels = number_keys(row_keys, row_names)
    limit, qualifier = (
        sheet.series(found[value]) if value in found else None
        for found in (roles.limit, roles.qualifier)
    )
    return Listed(
        sheet,
        roles,
        rows,
        cols,
        sheet.series(value),
        row_labels,
        col_labels,
        sheet.column(value),
        qualifier=qualifier,
        limit=limit,
        unit=units_of_lines(sheet, roles),
    )


def _repeat(keys: list[pl.Series], cols: NDArray) -> pl.Series:
    """Return how often a row and column was given up to each line, from 1."""
    frame = pl.DataFrame({"row": joined(keys), "col": cols})
    return frame.select(pl.int_range(pl.len()).over("row", "col") + 1).to_series()


def _wide(sheet: Sheet, roles: Roles) -> Listed:
    fields = [sheet.column(name) for name in roles.values]
    n, m = sheet.frame.height, len(fields)
    check_memory((n, m), np.float64, "a wide table", "write it as a long one")
    rows = np.tile(np.arange(n, dtype=np.int32), m)
    keys = [sheet.series(name) for name in roles.rows]
    labels = None if not keys else text_labels(keys[0] if len(keys) == 1 else joined(keys))
    return Listed(
        sheet,
        roles,
        rows,
        np.repeat(np.arange(m, dtype=np.int32), n),
        _stacked(sheet, fields),
        labels,
        text_labels(pl.Series(list(roles.values))) if sheet.format.header else None,
        np.array(fields),
        rows,
        _stacked_beside(sheet, roles.values, roles.qualifier),
        _stacked_beside(sheet, roles.values, roles.limit),
    )


def _stacked(sheet: Sheet, fields: list[int]) -> pl.Series:
    """Return columns one below the other, as numbers if all are, else as text."""
    columns = [sheet.frame.to_series(j) for j in fields]
    for j, column in zip(fields, columns, strict=True):
        if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean, pl.Null)):
            sheet.fail(f"a column of {column.dtype} is neither numbers nor text", None, j)
    types = {column.dtype for column in columns if column.dtype != pl.Null}
    if pl.String in types:
        target: type[pl.DataType] = pl.String
    else:
        target = pl.Float32 if types == {pl.Float32} else pl.Float64
    return pl.concat([column.cast(target).alias("text") for column in columns])


def _stacked_beside(
    sheet: Sheet, values: Sequence[str], beside: Mapping[str, str]
) -> pl.Series | None:
    """Return what stands beside the cells of each column, null for columns that have nothing."""
    if not beside:
        return None
    none = pl.Series([None], dtype=pl.String).new_from_index(0, sheet.frame.height)
    columns = [
        sheet.series(beside[name]).cast(pl.String) if name in beside else none for name in values
    ]
    return pl.concat([column.alias("beside") for column in columns])
