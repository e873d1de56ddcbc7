"""Cells written as blocks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from declip.blocks.summary import BlockSummary
from declip.blocks.table import MANIFEST, Block, BlockTable, checksums, stretch
from declip.intervals import Intervals
from declip.persistence import whole_file

__all__ = ["block_edges", "finish", "new_folder", "write_block", "write_intervals"]

CELLS_PER_BLOCK = 1 << 22


def new_folder(folder: str | Path) -> Path:
    """Make a folder for blocks; refuse one that holds some already."""
    folder = Path(folder).absolute()
    if (folder / MANIFEST).exists():
        raise FileExistsError(
            f"{folder} holds a table of blocks already: open it, or remove it first."
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def block_edges(cells_before: NDArray, n_blocks: int | None) -> list[int]:
    """Return the rows at which to cut, so that blocks hold about equally many cells, and some each.

    ``cells_before[i]`` is the number of cells of rows 0 to i - 1.
    """
    total = int(cells_before[-1])
    count = n_blocks or -(-total // CELLS_PER_BLOCK)
    targets = np.arange(1, count) * (total / count)
    edges = np.unique(np.searchsorted(cells_before, targets))
    inner = edges[(cells_before[edges] > 0) & (cells_before[edges] < total)]
    return [0, *(int(e) for e in inner), len(cells_before) - 1]


def write_block(
    folder: Path, number: int, cells: Intervals, first: int
) -> tuple[Block, BlockSummary]:
    """Write rows from ``first`` on, by row and by column."""
    path = folder / f"block-{number:05d}.bin"
    sides = cells.by_row, cells.by_col
    block = Block(
        str(path),
        first,
        first + cells.shape[0],
        cells.shape[1],
        cells.n_exact,
        cells.n_censored,
        cells.dtype.str,
    )
    layout, _ = block.layout()
    arrays = [array for side in sides for array in side.arrays]
    with whole_file(path) as temporary:
        with temporary.open("wb") as file:
            for array, (kind, length, begin) in zip(arrays, layout, strict=True):
                assert array.dtype == kind
                assert len(array) == length
                file.write(bytes(begin - file.tell()))
                file.write(np.ascontiguousarray(array).data)
        pages = checksums(temporary)
    return Block(**(vars(block) | {"pages": pages})), BlockSummary.of(cells.by_row)


def finish(
    folder: Path,
    shape: tuple[int, int],
    transposed: bool,
    written: Iterable[tuple[Block, BlockSummary]],
) -> BlockTable:
    """Write the manifest of blocks that were written."""
    blocks, summaries = zip(*written, strict=True)
    table = BlockTable(folder, shape, transposed, tuple(blocks), BlockSummary.together(summaries))
    table.save()
    return table


def write_intervals(
    cells: Intervals, folder: str | Path, n_blocks: int | None = None
) -> BlockTable:
    """Write a table that is in memory as blocks."""
    folder = new_folder(folder)
    transposed = cells.shape[1] > cells.shape[0]
    cut = cells.T if transposed else cells
    side = cut.by_row
    edges = block_edges(side.exact_ptr + side.censored_ptr, n_blocks)
    written = (
        write_block(
            folder, b, Intervals((last - first, cut.shape[1]), stretch(side, first, last)), first
        )
        for b, (first, last) in enumerate(pairwise(edges))
    )
    return finish(folder, cells.shape, transposed, written)
