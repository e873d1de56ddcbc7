"""Excel files written."""

from __future__ import annotations

from pathlib import Path

import polars as pl

__all__ = ["write_book"]

_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384


def write_book(sheets: dict[str, pl.DataFrame], path: Path, header: bool) -> None:
    """Write frames as sheets: text stays text, also where it looks like a formula or an address."""
    try:
        import xlsxwriter
    except ImportError as error:
        raise ValueError("Excel files need: pip install 'declip[excel]'") from error
    plain = {"strings_to_formulas": False, "strings_to_urls": False, "constant_memory": True}
    with xlsxwriter.Workbook(str(path), plain) as book:
        bold = book.add_format({"bold": True})
        for name, frame in sheets.items():
            if frame.height + header > _MOST_ROWS or frame.width > _MOST_COLUMNS:
                raise ValueError(
                    f"{frame.height} x {frame.width} is too large for Excel: use CSV or Parquet",
                )
            sheet = book.add_worksheet(name[:31])
            if header:
                sheet.write_row(0, 0, frame.columns, bold)
                sheet.freeze_panes(1, 1)
            for i, record in enumerate(frame.iter_rows(), start=int(header)):
                for j, cell in enumerate(record):
                    if cell is not None:
                        sheet.write(i, j, cell)
