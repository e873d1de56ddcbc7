"""A model that was saved and loaded is the same model, to the last bit."""

import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal, assert_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from tests.persistence.models import (
    CEILING,
    ESTIMATORS,
    FRAME,
    TABLE,
    UNFITTED,
    answers,
    fitted,
    restoration,
    same,
)

import declip
from declip import BayesCMC, FroCMC, ModelFileError, TrCMC
from declip.persistence import Archive, encode, write_archive

each_model = pytest.mark.parametrize("name", UNFITTED)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def public(model):
    """Return the names of parameters and fitted attributes, those computed on request included."""
    return {name for name in model.__getstate__() if not name.startswith("_")}


def reloaded(model, tmp_path):
    return declip.load(model.save(tmp_path / "model.npz", overwrite=True))


@each_model
def test_every_parameter_and_fitted_attribute_comes_back(name, tmp_path):
    model = fitted(name)
    twin = reloaded(model, tmp_path)
    assert type(twin) is type(model)
    assert public(twin) == public(model)
    assert same(twin, model)


@each_model
def test_a_loaded_model_gives_the_same_answers(name, tmp_path):
    assert_equal(answers(reloaded(fitted(name), tmp_path)), answers(fitted(name)))


@each_model
def test_a_loaded_model_fits_as_the_one_that_was_saved(name, tmp_path):
    twin = reloaded(fitted(name), tmp_path)
    assert same(twin.fit(FRAME), fitted(name))


@pytest.mark.parametrize("name", [n for n, e in UNFITTED.items() if hasattr(e, "warm_start")])
def test_a_warm_start_goes_on_from_a_loaded_model(name, tmp_path):
    model = pickle.loads(pickle.dumps(fitted(name))).set_params(warm_start=True)
    twin = reloaded(model, tmp_path)
    assert same(twin.fit(FRAME), model.fit(FRAME))


@each_model
def test_pickle_keeps_the_model(name):
    twin = pickle.loads(pickle.dumps(fitted(name)))
    assert public(twin) == public(fitted(name))
    assert same(twin, fitted(name))
    assert_equal(answers(twin), answers(fitted(name)))


def test_the_same_model_gives_the_same_file(tmp_path):
    one, two = (fitted("TrCMC").save(tmp_path / f"{i}.npz") for i in range(2))
    assert one.read_bytes() == two.read_bytes()


def test_samples_are_stored_once(tmp_path):
    model = fitted("BayesCMC")
    path = model.save(tmp_path / "model.npz")
    stored = sum(s.factors.A.nbytes + s.factors.B.nbytes for s in model.posterior_.samples)
    with np.load(path, allow_pickle=False) as file:
        factors = sum(file[n].nbytes for n in file.files if ".samples." in n and ".factors" in n)
    # and one number, the mean, for each sample
    assert factors == stored + 8 * len(model.posterior_.samples)


def test_single_precision_stays_single(tmp_path):
    model = FroCMC(2, ceiling=CEILING, random_state=0).fit(TABLE.astype(np.float32))
    twin = reloaded(model, tmp_path)
    assert twin.components_.dtype == np.float32
    assert same(twin, model)


LIMITS = {
    "number": CEILING,
    "numpy number": np.float32(CEILING),
    "columns": np.full(6, CEILING),
    "rows": np.full((24, 1), CEILING),
    "cells by column": np.asfortranarray(np.full(TABLE.shape, CEILING)),
    "every second of an array": np.full(12, CEILING)[::2],
    "list": [CEILING] * 6,
    "mapping": dict.fromkeys("abcdef", CEILING),
    "series": pd.Series(CEILING, index=list("abcdef")),
    "frame": FRAME.notna() * CEILING,
    "polars frame": pl.DataFrame(dict.fromkeys("abcdef", [CEILING] * 24)),
    "sparse": sparse.coo_array(np.full(TABLE.shape, CEILING)),
    "infinite": np.inf,
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_limits_of_every_form_come_back(limit, tmp_path):
    model = FroCMC(2, ceiling=limit, random_state=0).fit(FRAME)
    twin = reloaded(model, tmp_path)
    assert type(twin.ceiling) is type(limit)
    assert same(twin, model)
    assert same(clone(twin).fit(FRAME), model)


def test_a_mapping_of_many_columns_is_not_written_out_as_json(tmp_path):
    names = [f"column {j}" for j in range(1000)]
    table = pd.DataFrame(np.minimum(np.ones((4, 1000)).cumsum(axis=0), 3.0), columns=names)
    model = FroCMC(1, ceiling=dict.fromkeys(names, 3.0), random_state=0).fit(table)
    path = model.save(tmp_path / "model.npz")
    with zipfile.ZipFile(path) as file:
        assert file.getinfo("declip.json").file_size < 5000
    assert declip.load(path).ceiling == model.ceiling
    assert_array_equal(declip.load(path).feature_names_in_, names)


def test_a_random_state_goes_on_where_it_was(tmp_path):
    model = FroCMC(2, ceiling=CEILING, random_state=check_random_state(5)).fit(FRAME)
    twin = reloaded(model, tmp_path)
    assert twin.random_state.randint(2**31) == model.random_state.randint(2**31)


def test_the_output_that_was_asked_for_is_kept(tmp_path):
    model = clone(UNFITTED["TrCMC"]).set_output(transform="pandas").fit(FRAME)
    assert isinstance(reloaded(model, tmp_path).transform(FRAME), pd.DataFrame)


@pytest.mark.parametrize(
    "labels",
    [
        pd.date_range("2026-01-01", periods=24),
        pd.date_range("2026-01-01", periods=24, freq="ns", tz="Europe/Paris"),
        pd.Index([f"å{i}\udc80\0" for i in range(24)], dtype=object),
        pd.Index(range(5, 29)),
    ],
    ids=["days", "moments", "strange texts", "numbers"],
)
def test_labels_of_rows_come_back(labels, tmp_path):
    model = BayesCMC(2, n_samples=4, burn_in=2, random_state=0).fit(FRAME.set_axis(labels))
    twin = reloaded(model, tmp_path)
    assert_array_equal(twin.intervals_.row_labels, model.intervals_.row_labels)
    assert twin.intervals_.row_labels.dtype == model.intervals_.row_labels.dtype


# Restorations


TABLES = {
    "array": TABLE,
    "pandas": FRAME,
    "polars": pl.DataFrame(FRAME.to_dict("list")),
    "csr": sparse.csr_array(np.nan_to_num(TABLE)),
    "coo matrix": sparse.coo_matrix(np.nan_to_num(TABLE)),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_restoration_comes_back_as_it_was(kind, tmp_path):
    how = {"method": "tobit", "n_components": 2, "alpha": 0.3}
    before = declip.restore(TABLES[kind], ceiling=CEILING, **how)
    after = reloaded(before, tmp_path)
    assert type(after.table) is type(before.table)
    assert same(after, before)
    assert str(after) == str(before)
    assert_array_equal(after.predict([0, 3], [1, 2]), before.predict([0, 3], [1, 2]))


@pytest.mark.parametrize("method", ["bayes", "column"])
def test_a_restoration_by_any_method_comes_back(method, tmp_path):
    before = declip.restore(FRAME, ceiling=CEILING, method=method)
    assert same(reloaded(before, tmp_path), before)


def test_a_loaded_restoration_has_its_labels_and_writes_its_report(tmp_path):
    after = reloaded(restoration(), tmp_path)
    pd.testing.assert_frame_equal(after.table, restoration().table)
    pd.testing.assert_frame_equal(after.flags, restoration().flags)
    assert_equal(after.reclip.to_frame(), restoration().reclip.to_frame())
    assert after.report(tmp_path / "report.html").stat().st_size > 10_000


# What is refused


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        TrCMC().save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_cannot_be_stored_is_named(tmp_path):
    model = clone(UNFITTED["TrCMC"]).fit(FRAME).set_params(ceiling={"a": print})
    with pytest.raises(ModelFileError, match=r"cannot be saved: ceiling\.a is a builtin"):
        model.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_replaced_unless_asked(tmp_path):
    path = fitted("TrCMC").save(tmp_path / "model.npz")
    with pytest.raises(ModelFileError, match="the file exists"):
        fitted("FroCMC").save(path)
    assert same(declip.load(path), fitted("TrCMC"))
    fitted("FroCMC").save(path, overwrite=True)
    assert same(declip.load(path), fitted("FroCMC"))


def written(content, arrays, tmp_path, kind="model", library="9.9"):
    return write_archive(tmp_path / "m.npz", Archive(kind, content, arrays, library))


def test_an_unknown_class_is_named_with_the_version_that_wrote_it(tmp_path):
    path = written({"estimator": ["QuantumCMC", {}]}, {}, tmp_path)
    match = r"written by declip 9\.9\): it holds a 'QuantumCMC', which this version does not know"
    with pytest.raises(ModelFileError, match=match):
        declip.load(path)


@pytest.mark.parametrize("name", ["os.system", "system", "LowRank", "print"])
def test_nothing_but_estimators_is_built_as_one(name, tmp_path):
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        declip.load(written({"estimator": [name, {}]}, {}, tmp_path))


def test_an_unknown_parameter_of_a_later_version_is_refused(tmp_path):
    content, arrays = encode(fitted("TrCMC"))
    content["estimator"][1]["tolerance"] = 3.0
    with pytest.raises(ModelFileError, match="'tolerance'"):
        declip.load(written(content, arrays, tmp_path))


def test_a_parameter_that_this_version_forbids_is_refused(tmp_path):
    content, arrays = encode(fitted("TrCMC"))
    content["estimator"][1]["max_iter"] = -3
    with pytest.raises(ModelFileError, match="'max_iter' parameter"):
        declip.load(written(content, arrays, tmp_path))


def test_a_checkpoint_is_not_a_model(tmp_path):
    with pytest.raises(ModelFileError, match="this is a checkpoint, not a model"):
        declip.load(written({}, {}, tmp_path, kind="checkpoint"))


def test_a_later_format_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("declip.persistence.archive.FORMAT", 7)
    path = written({}, {}, tmp_path)
    monkeypatch.undo()
    match = r"written by declip 9\.9 in format 7; this is declip .*, which reads format 1"
    with pytest.raises(ModelFileError, match=match):
        declip.load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"a,b\n1,2\n" * 20, bytes(1000)])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.npz: "):
        declip.load(path)


def test_other_npz_files_and_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", table=TABLE)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(fitted("TrCMC")))
    with pytest.raises(ModelFileError, match="this is not a file of declip"):
        declip.load(tmp_path / "other.npz")
    with pytest.raises(ModelFileError, match="this is not a file of declip"):
        declip.load(tmp_path / "model.pickle")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(ModelFileError, match="No such file"):
        declip.load(tmp_path / "no.npz")
    with pytest.raises(ModelFileError, match="Is a directory"):
        declip.load(tmp_path)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_header_tells_versions_shapes_and_checksums(name, tmp_path):
    path = fitted(name).save(tmp_path / "model.npz")
    with np.load(path, allow_pickle=False) as file:
        header = json.loads(file["declip.json"])["header"]
        arrays = {n: file[n] for n in file.files if n != "declip.json"}
    assert header["format"] == 1
    assert header["library"] == declip.__version__
    assert {n: (e["dtype"], tuple(e["shape"])) for n, e in header["arrays"].items()} == {
        n: (a.dtype.str, a.shape) for n, a in arrays.items()
    }
    assert all(len(entry["checksum"]) == 32 for entry in header["arrays"].values())


FORGERIES = {
    "factors of other rank": ("components_", np.zeros((3, 6))),
    "factors of other type": ("components_", np.zeros((2, 6), np.float32)),
    "factors that are whole numbers": ("row_factors_", np.zeros((24, 2), np.int64)),
    "fewer columns": ("components_", np.zeros((2, 5))),
    "fewer offsets": ("row_offset_", np.zeros(23)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_parts_that_do_not_fit_together_are_refused(forgery, tmp_path):
    content, arrays = encode(fitted("FroCMC"))
    name, array = FORGERIES[forgery]
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        declip.load(written(content, {**arrays, name: array}, tmp_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exact_idx", 6),  # beyond the last column
        ("exact_idx", -1),
        ("exact_ptr", 10**6),
        ("censored_ptr", -5),
        ("monitor.rows", 24),
    ],
)
def test_cells_outside_of_their_table_are_refused(name, value, tmp_path):
    content, arrays = encode(fitted("BayesCMC"))
    (key,) = (key for key in arrays if key.endswith(name))
    arrays[key] = arrays[key].copy()
    arrays[key][3] = value
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        declip.load(written(content, arrays, tmp_path))
