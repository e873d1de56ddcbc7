"""What `declip.dask.FroCMC` fits: cells from Parquet files, Dask arrays and data frames."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from declip.blocks.preparing import listing_of, parquet_chunks, parquet_files
from declip.blocks.staging import Labels, Listing, Staged, listed_from_table, prepare, stage
from declip.blocks.table import MANIFEST, BlockTable
from declip.dask.running import ClusterRunner
from declip.validation import check_no_limits, refuse_long

__all__ = ["is_frame", "is_long", "table_of"]

_LONG = (
    "Name the columns that hold the row, the column and the value of a cell with cells=; if it is "
    "a table of so many columns, pass X.to_dask_array(lengths=True)."
)
Chunks = list[Callable[[str], Any]]


def table_of(
    X: Any,
    folder: Path,
    runner: ClusterRunner,
    *,
    ceiling: Any,
    floor: Any,
    cells: tuple[str, str, str],
    n_blocks: int | None,
    labels: Labels = (None, None),
) -> BlockTable:
    """Return a table as blocks: opened if it is one, else prepared in ``folder``, once."""
    if isinstance(X, str | os.PathLike) and (Path(X) / MANIFEST).is_file():
        check_no_limits("A folder of blocks", ceiling, floor)
        return BlockTable.open(Path(X).absolute())
    token = {"source": tokenize(_identity(X), ceiling, floor, cells, n_blocks)}
    blocks, note = folder / "blocks", folder / "source.json"
    if (blocks / MANIFEST).is_file():
        if not note.is_file() or json.loads(note.read_text()) != token:
            raise ValueError(
                f"{folder} holds the blocks of other data, or of the same with other limits or "
                "n_blocks. Choose another checkpoint_dir, or remove this one to begin anew."
            )
        return BlockTable.open(blocks)
    listing, limits = listing_of(cells, ceiling, floor)
    chunks, shape = _chunks(X, listing, runner)
    blocks.mkdir(exist_ok=True)
    note.write_text(json.dumps(token))
    return prepare(chunks, blocks, runner, shape=shape, n_blocks=n_blocks, labels=labels, **limits)


def _identity(X: Any) -> Any:
    """Return what tells the data from others: of files their names, sizes and times."""
    if not isinstance(X, str | os.PathLike):
        return X
    stats = [(file, os.stat(file)) for file in parquet_files(X)]
    return [(file, stat.st_size, stat.st_mtime_ns) for file, stat in stats]


def is_frame(X: Any) -> bool:
    """Return whether X is a Dask data frame."""
    return hasattr(X, "to_delayed") and hasattr(X, "columns") and hasattr(X, "map_partitions")


def is_long(X: Any, cells: tuple[str, str, str]) -> bool:
    """Return whether a data frame lists one cell a line."""
    return set(cells) <= set(X.columns)


def _chunks(
    X: Any, listing: Listing, runner: ClusterRunner
) -> tuple[Chunks, tuple[int, int] | None]:
    """Return what stages the cells, and the shape of the table if it is known."""
    if isinstance(X, str | os.PathLike):
        return parquet_chunks(X, listing, runner), None
    if is_frame(X):
        if is_long(X, (listing.rows, listing.columns, listing.values)):
            parts = X.to_delayed()
            return [partial(_later, runner, stage_frame, part, listing) for part in parts], None
        refuse_long(X.get_partition(0).compute(), _LONG)
        X = X.to_dask_array(lengths=True)
    if isinstance(X, da.Array) and X.ndim == 2:
        return _array_chunks(X, runner), X.shape
    raise TypeError(
        "X must be the path of Parquet files or of a folder of blocks, a Dask data frame or a 2-D "
        f"Dask array; got {type(X).__name__}. Tables in memory are for declip.FroCMC."
    )


def _array_chunks(X: Any, runner: ClusterRunner) -> Chunks:
    if np.isnan(X.shape).any():
        raise ValueError("The shape of X is not known: call X.compute_chunk_sizes() first.")
    rows, cols = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in X.chunks)
    return [
        partial(_later, runner, stage_block, part, int(rows[i]), int(cols[j]))
        for i, line in enumerate(X.to_delayed())
        for j, part in enumerate(line)
    ]


def _later(runner: ClusterRunner, function: Callable[..., Staged], part: Any, *args: Any) -> Any:
    return runner.submit_delayed(function, part, *args)


def stage_frame(frame: Any, listing: Listing, path: str) -> Staged:
    """Stage the cells that a frame lists."""
    return stage(listing.cells(frame), path)


def stage_block(block: NDArray, first_row: int, first_col: int, path: str) -> Staged:
    """Stage the cells of a part of a wide table."""
    return stage(listed_from_table(block, first_row, first_col), path)
