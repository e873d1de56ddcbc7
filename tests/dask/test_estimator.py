"""declip.dask.FroCMC in one process: what it takes, what it gives, what it refuses."""

import subprocess
import sys

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.dask.cluster import bits, intervals, ratings

import declip
from declip import prepare_blocks
from declip.blocks import DamagedBlockError
from declip.blocks.running import WorkersReplacedError
from declip.dask import FroCMC, estimator
from declip.dask.running import ClusterRunner

HOW = {"n_components": 3, "alpha": 2.0, "random_state": 0, "max_iter": 4, "tol": 0.0}
pytestmark = pytest.mark.filterwarnings("ignore:.*before it had settled")


@pytest.fixture(scope="module", autouse=True)
def client():
    """Threads of this process in place of workers: the same tasks, quick to start."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
    ) as client:
        yield client


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The fit of the same blocks on one machine."""
    folder = tmp_path_factory.mktemp("blocks")
    prepare_blocks(intervals(), folder, n_blocks=3)
    return bits(declip.FroCMC(**HOW).fit(folder))


def long_frame(X, **extra):
    rows, cols = np.nonzero(~np.isnan(X))
    order = np.random.default_rng(0).permutation(len(rows))
    rows, cols = rows[order], cols[order]
    more = {name: limits[rows, cols] for name, limits in extra.items()}
    return pd.DataFrame({"row": rows, "column": cols, "value": X[rows, cols], **more})


def parquet(tmp_path, X):
    long_frame(X).to_parquet(tmp_path / "cells.parquet")
    return str(tmp_path / "cells.parquet")


SOURCES = {
    "array": lambda X, tmp_path: da.from_array(X, chunks=(70, 13)),
    "wide frame": lambda X, tmp_path: dd.from_pandas(
        pd.DataFrame(X, columns=[f"item {j}" for j in range(X.shape[1])]), npartitions=3
    ),
    "long frame": lambda X, tmp_path: dd.from_pandas(long_frame(X), npartitions=3),
    "parquet": lambda X, tmp_path: parquet(tmp_path, X),
}


def named(frame, row="user {}", column="item {}"):
    """The same cells with text for ids, in another order than the numbers."""
    texts = {"row": frame["row"].map(row.format), "column": frame["column"].map(column.format)}
    return frame.assign(**texts)


def fitted_by_name(X, **how):
    return FroCMC(**HOW | {"ceiling": 2.0} | how).fit(dd.from_pandas(named(X), npartitions=3))


def test_text_ids_of_a_long_frame_are_labels():
    frame = long_frame(ratings())
    cells = declip.Intervals.from_long(named(frame), ceiling=2.0)
    model = fitted_by_name(frame)
    assert model.row_labels_.tolist() == cells.row_labels.tolist()
    assert model.feature_names_in_.tolist() == cells.col_labels.tolist()


def test_text_ids_change_no_bit_of_the_fit(tmp_path):
    frame = long_frame(ratings())
    prepare_blocks(declip.Intervals.from_long(named(frame), ceiling=2.0), tmp_path, n_blocks=3)
    assert bits(fitted_by_name(frame, n_blocks=3)) == bits(declip.FroCMC(**HOW).fit(tmp_path))


def test_text_ids_are_predicted_by_their_labels():
    model = fitted_by_name(long_frame(ratings()))
    rows, cols = model.locate(["user 7"], ["item 3"])
    assert_array_equal(model.predict(["user 7"], ["item 3"]), model.predict(rows, cols))


def test_text_ids_are_kept_in_a_file(tmp_path):
    model = fitted_by_name(long_frame(ratings()))
    kept = declip.load(model.save(tmp_path / "model.npz"))
    cell = ["user 7"], ["item 3"]
    assert_array_equal(kept.predict(*cell), model.predict(*cell))


def test_limits_go_by_the_text_ids_of_columns():
    frame = long_frame(ratings())
    model = fitted_by_name(frame, ceiling={"item 3": 2.0})
    cells = declip.Intervals.from_long(named(frame), ceiling={"item 3": 2.0})
    plain = declip.FroCMC(**HOW, scale="none").fit(cells)
    assert_allclose(model.objective_, plain.objective_, rtol=0.05)  # four sweeps from other starts


def test_text_ids_stand_in_errors():
    frame = named(long_frame(ratings()))
    twice = dd.from_pandas(pd.concat([frame, frame[:1]], ignore_index=True), npartitions=3)
    row, column = frame["row"][0], frame["column"][0]
    with pytest.raises(ValueError, match=f"Cell row '{row}', column '{column}' is given twice"):
        FroCMC(**HOW, ceiling=2.0).fit(twice)


def test_a_line_without_an_id_is_refused():
    frame = named(long_frame(ratings()))
    frame.loc[4, "row"] = None
    with pytest.raises(ValueError, match="Column 'row' holds a line without a label"):
        FroCMC(**HOW, ceiling=2.0).fit(dd.from_pandas(frame, npartitions=3))


def test_text_ids_in_parquet_are_refused_by_the_name_of_their_column(tmp_path):
    named(long_frame(ratings())).to_parquet(tmp_path / "cells.parquet")
    with pytest.raises(TypeError, match=r"Column 'row' holds ids that are not numbers.*Dask data"):
        prepare_blocks(tmp_path / "cells.parquet", tmp_path / "blocks", ceiling=2.0)


def test_cells_of_a_wide_frame_are_predicted_by_the_names_of_columns():
    X = SOURCES["wide frame"](ratings(), None)
    model = FroCMC(**HOW, ceiling=2.0).fit(X)
    assert_array_equal(model.predict([0], ["item 3"]), model.predict([0], [3]))


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_fit_of_the_table(tmp_path, expected, source):
    X = SOURCES[source](ratings(), tmp_path)
    model = FroCMC(**HOW, ceiling=2.0, n_blocks=3).fit(X)
    assert bits(model) == expected
    assert model.n_features_in_ == 30


def test_it_fits_what_the_blocks_on_one_machine_give(tmp_path):
    prepare_blocks(intervals(), tmp_path, n_blocks=3)
    local = declip.FroCMC(**HOW).fit(tmp_path)
    assert bits(FroCMC(**HOW).fit(str(tmp_path))) == bits(local)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("clipped", ["hinge", "tobit", "value", "missing"])
def test_the_modes_are_those_of_one_machine(tmp_path, clipped, bias):
    how = HOW | {"clipped": clipped, "bias": bias}
    prepare_blocks(intervals(), tmp_path, n_blocks=2)
    local, model = declip.FroCMC(**how).fit(tmp_path), FroCMC(**how).fit(str(tmp_path))
    assert bits(model) == bits(local)
    assert (model.mean_, model.scale_) == (local.mean_, local.scale_)
    assert_array_equal(model.row_offset_, local.row_offset_)
    assert_array_equal(model.column_offset_, local.column_offset_)
    assert_allclose(model.predict([5, 3, 5], [1, 2, 0]), local.predict([5, 3, 5], [1, 2, 0]))


def test_a_wide_table_is_cut_across_its_columns(tmp_path):
    X = ratings(shape=(30, 150))
    model = FroCMC(**HOW, ceiling=2.0, n_blocks=3, checkpoint_dir=tmp_path).fit(da.from_array(X))
    assert model.row_factors_.shape == (30, 3)
    assert model.components_.shape == (3, 150)
    local = declip.FroCMC(**HOW).fit(tmp_path / "blocks")
    assert bits(model) == bits(local)


@pytest.mark.parametrize("kind", ["column", "row", "mapping"])
def test_limits_of_rows_and_columns_apply(tmp_path, kind):
    X = ratings()
    ceiling = {
        "column": np.linspace(2, 3, 30),
        "row": np.linspace(2, 3, 150).reshape(-1, 1),
        "mapping": {0: 2.0, 7: 2.5},
    }[kind]
    FroCMC(**HOW, ceiling=ceiling, n_blocks=2, checkpoint_dir=tmp_path).fit(da.from_array(X))
    expected = prepare_blocks(X, tmp_path / "expected", ceiling=ceiling, n_blocks=2)
    assert declip.BlockTable.open(tmp_path / "blocks").digest == expected.digest


def test_limits_go_by_the_names_of_a_frame(tmp_path):
    X = SOURCES["wide frame"](ratings(), None)
    FroCMC(**HOW, ceiling={"item 3": 2.0}, n_blocks=2, checkpoint_dir=tmp_path).fit(X)
    expected = prepare_blocks(ratings(), tmp_path / "expected", ceiling={3: 2.0}, n_blocks=2)
    assert declip.BlockTable.open(tmp_path / "blocks").digest == expected.digest


def test_limits_of_cells_come_from_a_column(tmp_path):
    X = ratings()
    tops = np.where(np.random.default_rng(1).random(X.shape) < 0.5, 2.0, np.nan)
    frame = dd.from_pandas(long_frame(X, top=tops), npartitions=2)
    FroCMC(**HOW, ceiling="top", n_blocks=2, checkpoint_dir=tmp_path).fit(frame)
    limits = np.where(np.isnan(tops), np.inf, tops)
    expected = prepare_blocks(X, tmp_path / "expected", ceiling=limits, n_blocks=2)
    assert declip.BlockTable.open(tmp_path / "blocks").digest == expected.digest


# What it gives.


def test_transform_is_lazy_and_restores_as_on_one_machine():
    X = ratings()
    model = FroCMC(**HOW, ceiling=2.0, n_blocks=2).fit(da.from_array(X, chunks=(40, 30)))
    local = model._on_one_machine()
    lazy = model.transform(da.from_array(X, chunks=(40, 10)))
    assert isinstance(lazy, da.Array)
    assert_array_equal(lazy.compute(), local.transform(X))
    assert_array_equal(model.transform(X), local.transform(X))


def test_transform_of_a_frame_keeps_its_labels():
    X = SOURCES["wide frame"](ratings(), None)
    model = FroCMC(**HOW, ceiling=2.0, n_blocks=2).fit(X)
    assert list(model.feature_names_in_) == list(X.columns)
    restored = model.transform(X)
    assert hasattr(restored, "compute")
    assert_array_equal(restored.compute(), model._on_one_machine().transform(X.compute()))
    assert list(restored.compute().columns) == list(X.columns)


def test_row_factors_are_lazy_and_outlive_the_fit(tmp_path):
    X = da.from_array(ratings())
    for how in ({}, {"checkpoint_dir": tmp_path}):
        model = FroCMC(**HOW, ceiling=2.0, n_blocks=3, **how).fit(X)
        assert isinstance(model.row_factors_, da.Array)
        block = model.reconstruct(rows=[4, 9], cols=slice(0, 5))
        P = model.row_factors_.compute()
        assert_allclose(block, P[[4, 9]] @ model.components_[:, :5], rtol=1e-12)


def test_progress_is_printed_and_callbacks_are_told(capsys):
    FroCMC(**HOW | {"verbose": 2}, ceiling=2.0).fit(da.from_array(ratings()))
    assert capsys.readouterr().out.count("objective") == 2


def test_parameters_are_cloned():
    model = FroCMC(3, ceiling=2.0, checkpoint_dir="somewhere", n_blocks=7)
    assert clone(model).get_params() == model.get_params()


# Resuming.


def test_a_second_fit_resumes_the_first(tmp_path):
    X = da.from_array(ratings())
    how = HOW | {"ceiling": 2.0, "n_blocks": 2, "checkpoint_dir": tmp_path, "checkpoint_every": 2}
    FroCMC(**how).fit(X)
    longer = FroCMC(**how | {"max_iter": 6}).fit(X)
    whole = FroCMC(**how | {"max_iter": 6, "checkpoint_dir": tmp_path / "other"}).fit(X)
    assert bits(longer) == bits(whole)


@pytest.mark.parametrize("moment", [0.0, 0.5, 1.0], ids=["start", "sweeps", "polishing"])
def test_workers_that_are_all_replaced_change_no_bit(monkeypatch, expected, moment):
    X, values, calls = da.from_array(ratings(), chunks=(70, 13)), ClusterRunner.values, []
    model = FroCMC(**HOW, ceiling=2.0, n_blocks=3)

    def counted(self, handles):
        calls.append(len(handles))
        if len(calls) == fails_at:
            raise WorkersReplacedError
        return values(self, handles)

    def began(*args, **how):
        begun.append(len(calls))
        return fit_blocks(*args, **how)

    fit_blocks, begun, fails_at = estimator.fit_blocks, [], 0
    monkeypatch.setattr(ClusterRunner, "values", counted)
    monkeypatch.setattr(estimator, "fit_blocks", began)
    model.fit(X)
    fails_at = begun[0] + 1 + round(moment * (len(calls) - begun[0] - 1))
    calls.clear()
    assert bits(model.fit(X)) == expected


def test_another_fit_in_the_same_folder_is_refused(tmp_path):
    X = da.from_array(ratings())
    how = HOW | {"ceiling": 2.0, "n_blocks": 2, "checkpoint_dir": tmp_path}
    FroCMC(**how).fit(X)
    with pytest.raises(ValueError, match=r"another fit: alpha was 2\.0 and is 3\.0"):
        FroCMC(**how | {"alpha": 3.0}).fit(X)
    with pytest.raises(ValueError, match="blocks of other data"):
        FroCMC(**how).fit(da.from_array(ratings(seed=1)))
    with pytest.raises(ValueError, match="other limits"):
        FroCMC(**how | {"ceiling": 2.5}).fit(X)


# What it refuses.


def test_a_damaged_block_is_named(tmp_path):
    prepare_blocks(intervals(), tmp_path, n_blocks=3)
    path = tmp_path / "block-00001.bin"
    data = bytearray(path.read_bytes())
    data[99] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedBlockError, match=r"block-00001\.bin"):
        FroCMC(**HOW).fit(str(tmp_path))


def test_a_table_in_memory_is_refused():
    with pytest.raises(TypeError, match=r"for declip\.FroCMC"):
        FroCMC(**HOW).fit(ratings())


def test_a_value_above_its_ceiling_is_named():
    with pytest.raises(ValueError, match="above their ceiling, worst row"):
        FroCMC(**HOW, ceiling=1.5).fit(da.from_array(ratings()))


def test_a_repeated_cell_in_different_partitions_is_named():
    frame = long_frame(ratings())
    twice = dd.from_pandas(pd.concat([frame, frame[:1]], ignore_index=True), npartitions=3)
    row, column = frame["row"][0], frame["column"][0]
    with pytest.raises(ValueError, match=f"Cell row {row}, column {column} is given twice"):
        FroCMC(**HOW, ceiling=2.0).fit(twice)


def test_a_long_table_is_not_transformed():
    X = dd.from_pandas(long_frame(ratings()), npartitions=2)
    with pytest.raises(TypeError, match="long table"):
        FroCMC(**HOW, ceiling=2.0).fit_transform(X)


def test_other_columns_are_refused():
    model = FroCMC(**HOW, ceiling=2.0).fit(da.from_array(ratings()))
    with pytest.raises(ValueError, match="expecting 30 features"):
        model.transform(da.zeros((4, 7)))


_ALONE = """
import sys
import declip
from declip import FroCMC, restore
assert not [name for name in sys.modules if name.split(".")[0] in ("dask", "distributed")]
import dask.array as da
from declip.blocks.running import WorkersReplacedError
from declip.dask import FroCMC, estimator
from declip.dask.running import ClusterRunner
try:
    FroCMC().fit(da.zeros((4, 3)))
except RuntimeError as error:
    print(error)
"""


def test_dask_is_not_imported_unasked_and_no_cluster_started():
    done = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True)
    assert "There is no Dask client, and declip starts none" in done.stdout, done.stderr


def test_a_fit_is_saved_as_one_of_this_machine(tmp_path):
    X = ratings()
    model = FroCMC(**HOW, ceiling=5).fit(da.from_array(X, chunks=(40, -1)))
    kept = declip.load(model.save(tmp_path / "model.npz"))
    assert type(kept) is declip.FroCMC
    assert_array_equal(kept.predict([0, 5], [1, 2]), model.predict([0, 5], [1, 2]))
    assert_array_equal(kept.transform(X[:3]), model.transform(X[:3]))


def test_a_long_frame_whose_columns_are_not_named_is_refused():
    frame = long_frame(ratings()).set_axis(["user", "item", "stars"], axis=1)
    with pytest.raises(TypeError, match=r"looks like a long table.*with cells="):
        FroCMC(**HOW).fit(dd.from_pandas(frame, npartitions=2))
    with pytest.raises(TypeError, match=r"frame of Dask: fit it with declip.dask.FroCMC"):
        declip.FroCMC(**HOW).fit(dd.from_pandas(frame, npartitions=2))


def test_limits_beside_blocks_that_have_theirs_are_refused(tmp_path):
    prepare_blocks(intervals(), tmp_path / "blocks")
    with pytest.raises(TypeError, match="A folder of blocks carries its own limits: leave out"):
        FroCMC(**HOW, ceiling=4).fit(tmp_path / "blocks")


def test_a_fit_of_blocks_is_not_extended():
    model = FroCMC(**HOW, ceiling=5).fit(da.from_array(ratings(), chunks=(40, -1)))
    with pytest.raises(TypeError, match="has no cells of its fit"):
        model.extend(ratings())
