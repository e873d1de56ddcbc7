"""Tables from files or memory brought into blocks on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

from declip.blocks.running import LocalRunner, Runner
from declip.blocks.staging import Listing, Staged, prepare, stage
from declip.blocks.table import BlockTable
from declip.blocks.writing import new_folder, write_intervals
from declip.extras import needs
from declip.intervals import as_intervals

__all__ = ["listing_of", "parquet_chunks", "parquet_files", "prepare_blocks"]

_CHUNK = 1 << 22  # cells of a file that are read at a time


def prepare_blocks(
    source: Any,
    folder: str | Path,
    *,
    ceiling: Any = None,
    floor: Any = None,
    shape: tuple[int, int] | None = None,
    cells: Sequence[str] = ("row", "column", "value"),
    n_blocks: int | None = None,
) -> BlockTable:
    """Prepare a table for fits that hold only a part of it in memory.

    The table is sorted and cut into blocks of rows (of columns, if these outnumber the rows), which
    `FroCMC` then reads by memory map, and `declip.dask.FroCMC` on a cluster.

    Parameters
    ----------
    source : path, Intervals, array-like, frame or sparse matrix
        A Parquet file, a folder of such or a pattern, which lists one cell a line and may be larger
        than memory; or a table in memory, as `FroCMC.fit` takes it.
    folder : path
        Where the blocks go; it may not hold blocks yet.
    ceiling, floor : None, scalar, array-like or mapping
        Limits of the table, one per column or one per row of shape (n_rows, 1). For files also
        the name of the column that holds the limit of each cell, empty where there is none. Of an
        `Intervals` they are known already.
    shape : tuple of int, optional
        Shape of the table in files; by default the smallest that holds all cells.
    cells : three str
        Names of the columns of a file with the row and the column of a cell, both counted from 0,
        and its value.
    n_blocks : int, optional
        Blocks to make; by default of some four million cells each.

    Returns
    -------
    BlockTable
        The prepared table; `BlockTable.open` gives it again.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from declip import FroCMC, prepare_blocks
    >>> truth = np.outer([1.0, 2, 3, 4], [1.0, 2, 3])
    >>> with TemporaryDirectory() as folder:
    ...     prepare_blocks(np.minimum(truth, 8), folder, ceiling=8, n_blocks=2)
    ...     model = FroCMC(n_components=1, alpha=1e-3, random_state=0).fit(folder)
    BlockTable(4 x 3, 12 observed, 2 blocks in ...)
    >>> np.round(model.predict([3], [2]), 1)
    array([12.])
    """
    if isinstance(source, str | os.PathLike):
        listing, limits = listing_of(cells, ceiling, floor)
        runner, chunks = LocalRunner(), parquet_chunks(source, listing, LocalRunner())
        return prepare(chunks, new_folder(folder), runner, shape=shape, n_blocks=n_blocks, **limits)
    return write_intervals(as_intervals(source, ceiling, floor), folder, n_blocks)


def listing_of(cells: Sequence[str], ceiling: Any, floor: Any) -> tuple[Listing, dict[str, Any]]:
    """Return how cells are listed, and the limits that are not listed with them."""
    given = {"ceiling": ceiling, "floor": floor}
    named = {side: limit for side, limit in given.items() if isinstance(limit, str)}
    return Listing(*cells, **named), {side: given[side] for side in given if side not in named}


def parquet_chunks(
    source: str | os.PathLike[str], listing: Listing, runner: Runner
) -> list[Callable[[str], Any]]:
    """Return what stages the cells of Parquet files, some millions at a time."""
    with needs("files"):
        import polars as pl

    def stage_later(file: str, begin: int, path: str) -> Any:
        return runner.submit(stage_parquet, file, begin, listing, path)

    chunks: list[Callable[[str], Any]] = []
    for file in parquet_files(source):
        n = pl.scan_parquet(file).select(pl.len()).collect().item()
        chunks += [partial(stage_later, file, begin) for begin in range(0, n, _CHUNK)]
    return chunks


def stage_parquet(file: str, begin: int, listing: Listing, path: str) -> Staged:
    """Stage some lines of a Parquet file."""
    import polars as pl

    scan = pl.scan_parquet(file)
    known = [name for name in listing.names if name in scan.collect_schema()]
    columns = known if len(known) == len(listing.names) else pl.all()
    return stage(listing.cells(scan.select(columns).slice(begin, _CHUNK).collect()), path)


def parquet_files(source: str | os.PathLike[str]) -> list[str]:
    """Return the Parquet files at a path: a file, all in a folder, or those of a pattern."""
    path = Path(source)
    if path.is_dir():
        found = sorted(str(file) for file in path.rglob("*.parquet"))
    else:
        found = [str(path)] if path.is_file() else sorted(glob(str(source)))
    if not found:
        raise FileNotFoundError(f"There is no Parquet file at {source}.")
    return [str(Path(file).absolute()) for file in found]
