"""Tables read from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from declip.io.arrays import read_arrays
from declip.io.assemble import Limits, assemble
from declip.io.cells import find_decimal
from declip.io.errors import TableFileError
from declip.io.formats import Layout, TableFile, TableFormat, kind_of
from declip.io.layouts import list_cells
from declip.io.limits import limits_by_column
from declip.io.sheet import Sheet, take_header
from declip.io.sources import read_sheet

__all__ = ["read_table"]


def read_table(
    path: str | Path,
    *,
    ceiling: Any = None,
    floor: Any = None,
    limits: Any = None,
    layout: Layout | None = None,
    rows: str | None = None,
    columns: str | None = None,
    values: str | None = None,
    limit: str | None = None,
    qualifier: str | None = None,
    ignore: Sequence[str] = (),
    missing: Sequence[str] = (),
    header: bool | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> TableFile:
    r"""Read a table with clipped, censored and missing cells from a file.

    CSV, TSV and other separated text, Excel (.xlsx), Parquet, npz and
    MatrixMarket. Cells may be numbers, limits (``<0.5``, ``> 200``), ranges (``0.1-0.5``), words
    for a value beyond the limit of its column (``ND``, ``BDL``, ``>ULOQ``) and words for missing
    (empty, ``NA``, ``-``). What is None below is found in the file.

    Parameters
    ----------
    path : str or Path
        The file; the end of its name says its kind.
    ceiling, floor : None, number, array-like or mapping
        Limits of the table or of its columns. A value at its limit is clipped, a value beyond it is
        an error, and words such as ``ND`` stand for them.
    limits : path or mapping, optional
        Limits of single columns: a file (see `read_limits`), or ``{column: (floor, ceiling)}``.
    layout : {"wide", "long"}, optional
        One line a row of the table, or one line a cell (row, column, value).
    rows : str, optional
        Header of the column that holds the row labels.
    columns, values : str, optional
        Headers of the columns of a long table that hold the column labels and the values.
    limit, qualifier : str, optional
        Headers of the columns of a long table that hold the limit of a cell, and ``<`` or ``>``
        where its value lies beyond. In a wide table ``iron_qualifier`` qualifies ``iron``.
    ignore : sequence of str
        Headers of columns that are no part of the table.
    missing : sequence of str
        Further words for missing, such as ``-999``.
    header : bool, optional
        Whether the first line holds names.
    separator, decimal, encoding : str, optional
        Of a text file.
    sheet : str, optional
        Of an Excel file; the first by default.

    Returns
    -------
    TableFile
        The cells (``intervals``) with labels, and the form of the file (``format``), which
        `write_table` gives back.

    Raises
    ------
    TableFileError
        If the file cannot be read; one line that names the file, the line and the column.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from declip import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "assay.csv")
    ...     _ = path.write_text("sample,iron,zinc\ns1,<0.05,12\ns2,0.3,>40\ns3,NA,ND\n")
    ...     assay = read_table(path, floor={"zinc": 0.2})
    >>> assay
    TableFile(assay.csv, wide csv, Intervals(3 x 2, 5 observed: 2 exact, 1 at or above a ceiling,
    2 at or below a floor, 0 in a range))
    >>> assay.intervals.col_labels
    array(['iron', 'zinc'], dtype=object)
    """
    path = Path(path)
    wanted = TableFormat(
        kind_of(path),
        layout,
        separator,
        decimal,
        encoding,
        "\n",
        header,
        sheet,
        rows,
        columns,
        values,
    )
    by_column = limits_by_column(limits)
    if wanted.kind in ("npz", "mtx"):
        return _from_arrays(path, wanted, Limits(ceiling, floor, by_column))
    found = read_sheet(path, wanted)
    found = _settle_decimal(found if found.header else take_header(found))
    listed = list_cells(found, ignore, limit, qualifier)
    intervals = assemble(listed, Limits(ceiling, floor, by_column), missing)
    aside = found.frame.select(str(found.column(name)) for name in ignore)
    aside.columns = list(ignore)
    return TableFile(
        path, intervals, listed.sheet.format, aside if ignore else None, listed.sheet.header
    )


def _from_arrays(path: Path, wanted: TableFormat, limits: Limits) -> TableFile:
    if not path.is_file():
        raise TableFileError(path, "there is no such file")
    sides = (limits.of(side, None) for side in ("ceiling", "floor"))
    intervals, stored = read_arrays(path, wanted.kind, *sides)
    return TableFile(path, intervals, replace(wanted, layout="long" if stored else "wide"))


def _settle_decimal(sheet: Sheet) -> Sheet:
    """Find the decimal sign: a comma only where it separates no fields and no point is used."""
    form = sheet.format
    if form.decimal is not None:
        if form.decimal not in (".", ","):
            sheet.fail(f"the decimal sign must be '.' or ','; got {form.decimal!r}")
        return sheet
    separated = form.kind == "csv" and form.separator != ","
    decimal = find_decimal(sheet.frame) if separated else "."
    return replace(sheet, format=replace(form, decimal=decimal))
