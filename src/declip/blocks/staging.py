"""Cells listed anywhere, in any order, brought into blocks: each input is read once.

Every chunk of the input is written as it comes (`stage`), counted (`count`) and put in the order of
the blocks (`sort_by_block`); then every block picks its cells from all of them (`build`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.blocks.running import Runner
from declip.blocks.summary import BlockSummary
from declip.blocks.table import Block, BlockTable
from declip.blocks.writing import block_edges, finish, write_block
from declip.intervals import Intervals
from declip.persistence import whole_file
from declip.validation import check_cells, check_triplets, limits_of_all_cells, refuse_repeated

__all__ = ["Labels", "Listing", "Staged", "listed_from_table", "prepare"]

Labels = tuple[NDArray[Any] | None, NDArray[Any] | None]
_MOST = np.iinfo(np.int32).max
_BINS = 1 << 20  # rows are counted in at most so many bins


@dataclass(frozen=True)
class Listing:
    """How the columns of a long table are called, and which of them hold limits of cells."""

    rows: str = "row"
    columns: str = "column"
    values: str = "value"
    ceiling: str | None = None
    floor: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        found = [self.rows, self.columns, self.values, self.ceiling, self.floor]
        return [name for name in found if name is not None]

    def cells(self, frame: Any) -> NDArray:
        """Return the cells that a frame lists; those without a value are missing."""
        table = nw.from_native(frame, eager_only=True)
        absent = [name for name in self.names if name not in table.columns]
        if absent:
            raise ValueError(
                f"The table has no column {absent[0]!r}; its columns are "
                f"{', '.join(map(repr, table.columns[:8]))}. Name the columns with the row, the "
                "column and the value of a cell."
            )
        for name in (self.rows, self.columns):
            if not (table[name].dtype.is_numeric() or table[name].dtype == nw.Boolean):
                raise TypeError(
                    f"Column {name!r} holds ids that are not numbers ({table[name].dtype}): number "
                    "them from 0 first and keep what they stand for, or fit them from a Dask data "
                    "frame with declip.dask.FroCMC, which keeps ids as labels."
                )
        given = {name: table[name].to_numpy() for name in self.names}
        rows, cols = check_cells(given[self.rows], given[self.columns], (_MOST, _MOST))
        limits = {
            side: given[name]
            for side, name in (("ceiling", self.ceiling), ("floor", self.floor))
            if name is not None
        }
        return cell_array(rows, cols, given[self.values], **limits)


def cell_array(rows: NDArray, cols: NDArray, values: NDArray, **limits: NDArray) -> NDArray:
    """Return cells as one array of records, without those that have no value."""
    real = np.float32 if values.dtype == np.float32 else np.float64
    fields = {"row": rows, "col": cols, "value": values, **limits}
    kinds = {"row": np.int32, "col": np.int32}
    out = np.empty(len(rows), [(name, kinds.get(name, real)) for name in fields])
    for name, data in fields.items():
        out[name] = data
    return out[~np.isnan(out["value"])]


def listed_from_table(block: Any, first_row: int, first_col: int) -> NDArray:
    """Return the cells of a part of a wide table that begins at a row and a column."""
    values = np.asarray(block)
    rows, cols = np.nonzero(~np.isnan(values))
    return cell_array(rows + first_row, cols + first_col, values[rows, cols])


class Staged(NamedTuple):
    """A chunk of cells on disk."""

    path: str
    n: int
    most: tuple[int, int]
    dtype: str


def stage(cells: NDArray, path: str) -> Staged:
    """Write a chunk of cells as it comes."""
    with whole_file(Path(path)) as temporary, temporary.open("wb") as file:
        np.save(file, cells)
    most = tuple(int(cells[name].max(initial=-1)) for name in ("row", "col"))
    return Staged(path, len(cells), (most[0], most[1]), cells.dtype["value"].str)


def count(chunk: Staged, side: str, size: int, shift: int) -> NDArray[np.int64]:
    """Return the number of cells in each bin of 2^shift rows (or columns)."""
    cells = np.load(chunk.path, mmap_mode="r")
    return np.bincount(cells[side] >> shift, minlength=(size >> shift) + 1).astype(np.int64)


def sort_by_block(chunk: Staged, side: str, edges: Sequence[int]) -> NDArray[np.int64]:
    """Put the cells of a chunk in the order of the blocks; return where each block begins."""
    cells = np.load(chunk.path)
    block = np.searchsorted(edges, cells[side], "right") - 1
    stage(cells[np.argsort(block, kind="stable")], chunk.path)
    return np.concatenate([[0], np.cumsum(np.bincount(block, minlength=len(edges) - 1))])


@dataclass(frozen=True)
class Plan:
    """What is to be built: a table of this shape, cut across this side."""

    folder: str
    shape: tuple[int, int]
    dtype: str
    ceiling: NDArray
    floor: NDArray
    labels: Labels = (None, None)

    @property
    def transposed(self) -> bool:
        """Whether columns are cut in place of rows."""
        return self.shape[1] > self.shape[0]

    @property
    def side(self) -> str:
        """What is cut."""
        return "col" if self.transposed else "row"

    def slice_limits(self, first: int, last: int) -> Plan:
        """Return the plan with the limits and labels of one block alone."""
        at = np.s_[:, first:last] if self.transposed else np.s_[first:last]
        axis = int(self.transposed)
        ceiling, floor = (
            limit[at] if limit.shape[axis] > 1 else limit for limit in (self.ceiling, self.floor)
        )
        cut, whole = self.labels[axis], self.labels[1 - axis]
        cut = np.arange(first, last) if cut is None else cut[first:last]
        labels = (whole, cut) if self.transposed else (cut, whole)
        return replace(self, ceiling=ceiling, floor=floor, labels=labels)


def build(
    plan: Plan, number: int, span: tuple[int, int], stretches: list[tuple[str, int, int]]
) -> tuple[Block, BlockSummary]:
    """Write one block from the cells that the chunks have of it."""
    cells = np.concatenate(
        [np.load(path, mmap_mode="r")[begin:end] for path, begin, end in stretches]
    )
    cells = cells[np.lexsort((cells["col"], cells["row"]))]
    first, last = span
    before = (0, first) if plan.transposed else (first, 0)
    refuse_repeated(cells["row"] - before[0], cells["col"] - before[1], plan.labels)
    rows, cols = (np.ascontiguousarray(cells[name]) for name in ("row", "col"))
    found = check_triplets(rows, cols, cells["value"].astype(plan.dtype), plan.shape)
    found = replace(
        found,
        rows=found.rows - before[0],
        cols=found.cols - before[1],
        shape=(plan.shape[0], last - first) if plan.transposed else (last - first, plan.shape[1]),
        row_labels=plan.labels[0],
        col_labels=plan.labels[1],
    )
    names = cells.dtype.names or ()
    limits = (
        _cell_limits(cells[side], found, fill) if side in names else _squeezed(given)
        for side, given, fill in (("ceiling", plan.ceiling, np.inf), ("floor", plan.floor, -np.inf))
    )
    table = Intervals.from_cells(found, *limits)
    cut = table.T if plan.transposed else table
    return write_block(Path(plan.folder), number, cut, first)


def prepare(
    chunks: Sequence[Callable[[str], Any]],
    folder: Path,
    runner: Runner,
    *,
    ceiling: Any = None,
    floor: Any = None,
    shape: tuple[int, int] | None = None,
    n_blocks: int | None = None,
    labels: Labels = (None, None),
) -> BlockTable:
    """Bring chunks of cells into blocks.

    Parameters
    ----------
    chunks : sequence of callables
        Each takes a path, writes its cells there (`stage`), and returns a handle of what it wrote.
    folder : Path
        Where the blocks go; every worker must see it.
    runner : Runner
        Where the work is done.
    ceiling, floor
        Limits of the table, of its columns or of its rows; None where the cells have their own.
    shape : tuple of int, optional
        Shape of the table; by default the smallest that holds all cells.
    n_blocks : int, optional
        Blocks to make; by default of some four million cells each.
    labels : pair of ndarray or None
        Of the rows and of the columns: what errors name, and limits may go by.
    """
    paths = [folder / f"staged-{i:06d}.npy" for i in range(len(chunks))]
    try:
        handles = [chunk(str(path)) for chunk, path in zip(chunks, paths, strict=True)]
        staged = [s for s in runner.values(handles) if s.n]
        plan = _plan(staged, folder, shape, (ceiling, floor), labels)
        edges = _edges(staged, plan, runner, n_blocks)
        starts = runner.values([runner.submit(sort_by_block, s, plan.side, edges) for s in staged])

        def stretches(b: int) -> list[tuple[str, int, int]]:
            """Return where the chunks have the cells of a block."""
            both = zip(staged, starts, strict=True)
            return [(chunk.path, int(at[b]), int(at[b + 1])) for chunk, at in both]

        written = [
            runner.submit(build, plan.slice_limits(*span), b, span, stretches(b), near=b)
            for b, span in enumerate(pairwise(edges))
        ]
        return finish(folder, plan.shape, plan.transposed, runner.values(written))
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _plan(
    staged: list[Staged],
    folder: Path,
    shape: tuple[int, int] | None,
    limits: tuple[Any, Any],
    labels: Labels,
) -> Plan:
    if not staged:
        raise ValueError("There are no cells: at least one observed cell is needed.")
    if shape is None:
        shape = (max(s.most[0] for s in staged) + 1, max(s.most[1] for s in staged) + 1)
    last_row, last_col = (np.array([max(s.most[axis] for s in staged)]) for axis in (0, 1))
    check_cells(last_row, last_col, shape)
    dtype = np.result_type(*(s.dtype for s in staged))
    low, high = limits_of_all_cells(*limits, shape, dtype, labels[1])
    return Plan(str(folder), shape, dtype.str, high, low, labels)


def _edges(staged: list[Staged], plan: Plan, runner: Runner, n_blocks: int | None) -> list[int]:
    size = max(plan.shape)
    shift = max(0, (size // _BINS).bit_length())
    counts = sum(runner.values([runner.submit(count, s, plan.side, size, shift) for s in staged]))
    bins = block_edges(np.concatenate([[0], np.cumsum(counts)]), n_blocks)
    return [*(e << shift for e in bins[:-1]), size]


def _cell_limits(limits: NDArray, cells: Any, fill: float) -> Any:
    """Return limits given with the cells as a sparse table; NaN is no limit."""
    from scipy import sparse

    values = np.where(np.isnan(limits), fill, limits)
    return sparse.csr_array((values, (cells.rows, cells.cols)), shape=cells.shape)


def _squeezed(limit: NDArray) -> Any:
    return limit if limit.size > 1 else limit.reshape(()).item()
