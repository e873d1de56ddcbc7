"""What is known, or asked for, about the form of a table in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from declip.intervals import Intervals
from declip.io.errors import TableFileError, shown

if TYPE_CHECKING:
    from declip.io.plan import ReadingPlan

__all__ = ["KINDS", "Kind", "Layout", "TableFile", "TableFormat", "kind_of"]

Kind = Literal["csv", "parquet", "excel", "npz", "mtx"]
Layout = Literal["wide", "long"]

KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
    ".npz": "npz",
    ".mtx": "mtx",
}


@dataclass(frozen=True)
class TableFormat:
    """The form of a table in a file; None stands for what has not been settled.

    Attributes
    ----------
    kind : {"csv", "parquet", "excel", "npz", "mtx"}
        Kind of file.
    layout : {"wide", "long"} or None
        One line a row of the table, or one line a cell.
    separator, decimal : str or None
        Between fields, and before fractions, of a text file.
    thousands : str
        Between groups of three digits; empty for none.
    encoding : str or None
        Codec of a text file; ``"utf-8-sig"`` is UTF-8 with a byte order mark.
    newline : str
        End of a line of a text file.
    header : bool or None
        Whether the first line names the columns.
    sheet : str or None
        Sheet of an Excel file.
    rows, columns, values : str or None
        Headers that the row labels and, in a long table, the column labels and the values get in a
        new file; which columns of a file hold them is in its `ReadingPlan`.
    """

    kind: Kind
    layout: Layout | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    newline: str = "\n"
    header: bool | None = None
    sheet: str | None = None
    rows: str | None = None
    columns: str | None = None
    values: str | None = None
    thousands: str = ""


def kind_of(path: Path) -> Kind:
    """Return the kind of a file by the end of its name."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(KINDS)
        ending = shown(path.suffix) if path.suffix else "none"
        raise TableFileError(path, f"the name must end in one of {known}; it ends in {ending}")
    return kind


@dataclass(frozen=True, eq=False)
class TableFile:
    r"""A table read from a file: its cells as intervals with labels, and the form of the file.

    Attributes
    ----------
    path : Path
        The file.
    intervals : Intervals
        The cells, with row and column labels.
    format : TableFormat
        The form of the file, every field of it settled: `write_table` gives it back.
    plan : ReadingPlan or None
        How the file was understood: which column is what, which lines were left out.
    checksum : int
        Of the file as it was read: `write_table` reads it again to give its lines back.
    arguments : dict
        Those that `read_table` was given: what reads the file again the same way.
    known : dict
        What columns of the file say of the rows, as arguments of `declip.restore`:
        ``row_features`` (``covariates=``) and ``groups``, if `read_table` was given any.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from declip import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "assay.csv")
    ...     _ = path.write_text("sample;iron;zinc\ns1;<0,05;12\ns2;0,3;>40\n")
    ...     table = read_table(path)
    >>> table.format.separator, table.format.decimal, table.format.layout
    (';', ',', 'wide')
    >>> table.intervals.n_exact
    2
    """

    path: Path
    intervals: Intervals
    format: TableFormat
    plan: ReadingPlan | None = None
    checksum: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        form = (
            f"{self.format.layout} {self.format.kind}" if self.format.layout else self.format.kind
        )
        return f"TableFile({self.path.name}, {form}, {self.intervals!r})"
