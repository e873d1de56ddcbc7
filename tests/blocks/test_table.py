"""Blocks on disk: what was written is what is read, and damage is named."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from tests.twin import random_bounds

from declip import BlockTable, FroCMC, Intervals, prepare_blocks
from declip.blocks import DamagedBlockError
from declip.blocks.summary import BlockSummary
from declip.blocks.writing import block_edges
from declip.solvers.start import start_level

NAMES = ("exact_ptr", "exact_idx", "value", "censored_ptr", "censored_idx", "lower", "upper")
SHAPES = [pytest.param((40, 9), id="tall"), pytest.param((9, 40), id="wide")]


def intervals(shape=(40, 9), seed=0, dtype=np.float64):
    bounds = random_bounds(np.random.default_rng(seed), shape)
    return Intervals.from_bounds(*(b.astype(dtype) for b in bounds))


def assert_same_cells(found, expected):
    for name in NAMES:
        assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
        assert getattr(found, name).dtype == getattr(expected, name).dtype


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "blocks"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_hold_the_cells_by_row_and_by_column(folder, shape, dtype):
    cells = intervals(shape, dtype=dtype)
    prepare_blocks(cells, folder, n_blocks=3)
    table = BlockTable.open(folder)
    cut = cells.T if table.transposed else cells
    assert len(table.blocks) == 3
    assert (table.shape, table.dtype, len(table)) == (shape, dtype, len(cells))
    for block in table.blocks:
        expected = cut.take_rows(range(block.first, block.last))
        assert_same_cells(block.by_row(), expected.by_row)
        assert_same_cells(block.by_col(0, cut.shape[1]), expected.by_col)
        assert_same_cells(block.by_col(2, 5), expected.T.take_rows([2, 3, 4]).by_row)


@pytest.mark.parametrize("clipped", ["value", "missing"])
def test_clipped_cells_are_treated_as_in_memory(folder, clipped):
    cells = intervals()
    block = prepare_blocks(cells, folder, n_blocks=1).blocks[0]
    side, expected = block.by_row(clipped), cells.treat(clipped).to_bounds()
    for ends, bound in zip((side.lower, side.upper), expected, strict=True):
        dense = np.full(cells.shape, np.nan)
        dense[side.exact_rows(), side.exact_idx] = side.value
        dense[side.censored_rows(), side.censored_idx] = ends
        assert_array_equal(dense, bound)


def test_longer_side_is_cut(folder):
    assert prepare_blocks(intervals((9, 40)), folder).transposed
    assert not prepare_blocks(intervals((40, 9)), folder / "tall").transposed


def test_blocks_have_about_equally_many_cells():
    cells_before = np.concatenate([[0], np.cumsum([0, 5, 0, 90, 1, 4, 0, 100, 0, 0])])
    edges = block_edges(cells_before, 4)
    assert edges == [0, 4, 6, 10]
    assert_array_equal(np.diff(cells_before[edges]), [95, 5, 100])


def test_more_blocks_than_rows_are_cut_to_rows_with_cells(folder):
    table = prepare_blocks(np.array([[1.0], [np.nan], [2.0], [3.0]]), folder, n_blocks=50)
    assert [b.n_exact for b in table.blocks] == [1, 1, 1]
    assert table.blocks[-1].last == 4


def test_same_data_have_the_same_digest_and_other_data_another(tmp_path):
    digests = [
        prepare_blocks(intervals(seed=seed), tmp_path / f"{i}", n_blocks=2).digest
        for i, seed in enumerate((0, 0, 1))
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_folder_that_holds_blocks_is_left_alone(folder):
    prepare_blocks(intervals(), folder)
    with pytest.raises(FileExistsError, match="holds a table of blocks already"):
        prepare_blocks(intervals(), folder)


def test_a_folder_without_manifest_is_not_opened(tmp_path):
    with pytest.raises(FileNotFoundError, match="not a folder of blocks"):
        BlockTable.open(tmp_path)


# Damage.


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("position", [0, 777, -1])
def test_one_flipped_bit_is_found_and_the_block_named(folder, position):
    table = prepare_blocks(intervals(), folder, n_blocks=3)
    flip(folder / "block-00001.bin", position)
    table.blocks[0].by_row()
    with pytest.raises(DamagedBlockError, match=r"block-00001\.bin .* is damaged: bytes 0 to"):
        table.blocks[1].by_row()


def test_damage_after_the_first_reading_is_found(folder):
    block = prepare_blocks(intervals(), folder, n_blocks=1).blocks[0]
    block.by_row()
    flip(folder / "block-00000.bin", 100)
    with pytest.raises(DamagedBlockError, match="block-00000"):
        block.by_row()


def test_a_shortened_and_a_lost_block_are_named(folder):
    table = prepare_blocks(intervals(), folder, n_blocks=2)
    path = folder / "block-00001.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedBlockError, match=r"block-00001\.bin .* bytes are expected"):
        table.blocks[1].by_row()
    path.unlink()
    with pytest.raises(DamagedBlockError, match=r"block-00001\.bin .* no file"):
        table.blocks[1].by_row()


def test_a_changed_manifest_is_refused(folder):
    prepare_blocks(intervals(), folder, n_blocks=2)
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"first": 0', '"first": 1'))
    with pytest.raises(DamagedBlockError, match=r"manifest\.json is damaged"):
        BlockTable.open(folder)
    path.write_text("{")
    with pytest.raises(DamagedBlockError, match=r"manifest\.json is damaged"):
        BlockTable.open(folder)


def test_a_later_format_is_refused(folder):
    from declip.blocks.table import _digest

    prepare_blocks(intervals(), folder)
    path = folder / "manifest.json"
    content = json.loads(path.read_text()) | {"format": 99}
    del content["digest"]
    path.write_text(json.dumps(content | {"digest": _digest(content)}))
    with pytest.raises(ValueError, match="format 99"):
        BlockTable.open(folder)


# Parquet.


def listed(table, seed=0, **extra):
    """A long table of the cells, in any order."""
    rows, cols = np.nonzero(~np.isnan(table))
    order = np.random.default_rng(seed).permutation(len(rows))
    rows, cols = rows[order], cols[order]
    more = {name: limits[rows, cols] for name, limits in extra.items()}
    return pl.DataFrame({"row": rows, "column": cols, "value": table[rows, cols], **more})


def clipped_table(seed=0, shape=(60, 11)):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.standard_normal(shape), -1.0, 1.0)
    X[rng.random(shape) < 0.4] = np.nan
    X[-1, -1] = 0.5
    return X


@pytest.mark.parametrize("shape", [(60, 11), (11, 60)])
@pytest.mark.parametrize("kind", ["scalar", "column", "row", "mapping"])
def test_parquet_gives_the_blocks_of_the_table(tmp_path, monkeypatch, shape, kind):
    monkeypatch.setattr("declip.blocks.preparing._CHUNK", 50)
    X = clipped_table(shape=shape)
    ceiling = {
        "scalar": 1.0,
        "column": np.linspace(1, 2, shape[1]),
        "row": np.linspace(1, 2, shape[0]).reshape(-1, 1),
        "mapping": {3: 1.0, 5: 2.0},
    }[kind]
    listed(X).write_parquet(tmp_path / "cells.parquet")
    found = prepare_blocks(
        tmp_path / "cells.parquet", tmp_path / "a", ceiling=ceiling, floor=-1, n_blocks=3
    )
    expected = prepare_blocks(X, tmp_path / "b", ceiling=ceiling, floor=-1, n_blocks=3)
    assert found.digest == expected.digest
    assert not list((tmp_path / "a").glob("staged*"))


@pytest.mark.parametrize("shape", [(60, 11), (11, 60)])
def test_limits_of_cells_come_from_columns_of_the_file(tmp_path, shape):
    X = clipped_table(shape=shape)
    tops = np.where(np.random.default_rng(1).random(shape) < 0.5, 1.0, np.nan)
    listed(X, top=tops).write_parquet(tmp_path / "cells.parquet")
    found = prepare_blocks(tmp_path / "cells.parquet", tmp_path / "a", ceiling="top", n_blocks=2)
    expected = prepare_blocks(
        X, tmp_path / "b", ceiling=np.where(np.isnan(tops), np.inf, tops), n_blocks=2
    )
    assert found.digest == expected.digest


def test_several_files_and_other_names_are_read(tmp_path):
    X = clipped_table()
    whole = listed(X).rename({"row": "user", "column": "item", "value": "rating"})
    (tmp_path / "in").mkdir()
    whole[:100].write_parquet(tmp_path / "in" / "1.parquet")
    whole[100:].write_parquet(tmp_path / "in" / "2.parquet")
    names = ("user", "item", "rating")
    for i, source in enumerate((tmp_path / "in", tmp_path / "in" / "*.parquet")):
        found = prepare_blocks(source, tmp_path / f"a{i}", cells=names)
        assert found.digest == prepare_blocks(X, tmp_path / f"b{i}").digest


def test_single_precision_is_kept_and_nulls_are_missing(tmp_path):
    frame = pl.DataFrame(
        {"row": [0, 1, 2], "column": [0, 1, 0], "value": pl.Series([1, None, 2], dtype=pl.Float32)}
    )
    frame.write_parquet(tmp_path / "cells.parquet")
    table = prepare_blocks(tmp_path / "cells.parquet", tmp_path / "a", shape=(5, 3))
    assert (table.dtype, table.n_exact, table.shape) == (np.float32, 2, (5, 3))


def bad(tmp_path, message, error=ValueError, **columns):
    frame = {"row": [0, 1, 1, 2], "column": [0, 1, 0, 1], "value": [1.0, 2.0, 3.0, 4.0]} | columns
    pl.DataFrame(frame).write_parquet(tmp_path / "cells.parquet")
    with pytest.raises(error, match=message):
        prepare_blocks(
            tmp_path / "cells.parquet", tmp_path / "a", ceiling=5, shape=(3, 2), n_blocks=2
        )
    assert not list((tmp_path / "a").glob("*"))[1:], "only whole blocks may be left"


def test_a_repeated_cell_is_named(tmp_path):
    bad(tmp_path, "Cell row 1, column 1 is given twice", column=[0, 1, 1, 1])


def test_a_value_above_its_ceiling_is_named(tmp_path):
    bad(tmp_path, "worst row 2, column 1", value=[1.0, 2.0, 3.0, 6.0])


def test_a_row_outside_the_shape_is_refused(tmp_path):
    bad(tmp_path, "rows must lie from 0 to 2", row=[0, 1, 1, 3])


def test_labels_in_place_of_positions_are_refused(tmp_path):
    bad(
        tmp_path, "Column 'row' holds ids that are not numbers", TypeError, row=["a", "b", "c", "d"]
    )


def test_a_column_that_is_not_there_is_named(tmp_path):
    pl.DataFrame({"row": [0], "item": [0], "value": [1.0]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="no column 'column'; its columns are 'row', 'item'"):
        prepare_blocks(tmp_path / "x.parquet", tmp_path / "a")


def test_no_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        prepare_blocks(tmp_path / "nothing.parquet", tmp_path / "a")


# The summary.


@pytest.mark.parametrize("clipped", ["hinge", "missing"])
def test_the_summary_of_parts_is_that_of_the_whole(clipped):
    cells = intervals((50, 20))
    whole = BlockSummary.of(cells.by_row)
    parts = [BlockSummary.of(cells.take_rows(rows).by_row) for rows in np.array_split(range(50), 4)]
    together = BlockSummary.together(parts)
    np.testing.assert_allclose(together.values(clipped), whole.values(clipped), rtol=1e-13)
    assert sorted(together.ceilings) == sorted(whole.ceilings)


@pytest.mark.parametrize("n", [3, 4, 1001, 5000])
def test_the_level_lies_beyond_the_median_of_the_limits(n):
    limits = np.random.default_rng(0).standard_normal((n, 1))
    cells = Intervals.from_bounds(limits, np.full((n, 1), np.inf))
    limits_of_cells = BlockSummary.of(cells.by_row).typical_limits("hinge")
    level = start_level(limits_of_cells, mean=0.0, spread=0.25)
    # More than 1024 limits are kept as so many quantiles.
    tolerance = 1e-12 if n <= 1024 else 3e-3
    np.testing.assert_allclose(level, np.median(limits) + 0.25, atol=tolerance)


def test_a_file_in_place_of_a_folder_is_refused_with_what_reads_it(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(NotADirectoryError, match=r"is a file.*declip\.read_table"):
        FroCMC().fit(tmp_path / "table.csv")
