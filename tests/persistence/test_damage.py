"""Whatever is done to the file of a model, loading it gives that model or one clear error."""

import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from tests.persistence.models import ESTIMATORS, answers, fitted, restoration, same
from tests.persistence.mutations import HEADER, MUTATIONS, forge, members, zipped

import declip
from declip import ModelFileError
from declip.persistence import read_archive, write_archive

N_MUTATIONS = 6  # of each kind for each file; reliability.persistence has thousands
N_FORGERIES = 60
FILES = [*ESTIMATORS, "Restoration"]
each_file = pytest.mark.parametrize("name", FILES)
MIB = 2**20


def saved(name, tmp_path):
    model = restoration() if name == "Restoration" else fitted(name)
    return model, model.save(tmp_path / "seed.npz").read_bytes()


def loaded(path):
    """Return what a file gives, or the message of the error."""
    try:
        return declip.load(path), None
    except ModelFileError as error:
        return None, str(error)


@each_file
@pytest.mark.parametrize("damage", MUTATIONS, ids=lambda f: f.__name__)
def test_a_damaged_file_never_gives_another_model(name, damage, tmp_path):
    model, raw = saved(name, tmp_path)
    path = tmp_path / "damaged.npz"
    for seed in range(N_MUTATIONS):
        path.write_bytes(damage(raw, np.random.default_rng(seed)))
        found, message = loaded(path)
        assert same(found, model) if message is None else message.startswith(f"{path}: ")


@pytest.mark.filterwarnings("ignore")
@each_file
def test_a_forged_file_is_refused_or_gives_a_model_that_answers(name, tmp_path):
    # With the checksums made anew the file is another model: it must not crash, that is all.
    _, raw = saved(name, tmp_path)
    path = tmp_path / "forged.npz"
    for seed in range(N_FORGERIES):
        path.write_bytes(forge(raw, np.random.default_rng(seed)))
        found, message = loaded(path)
        if message is None:
            # of numbers that no fit would give, or of sizes that no memory holds
            with suppress(ValueError, ArithmeticError, MemoryError):
                answers(found)


def peak_of_loading(path):
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError) as caught:
            declip.load(path)
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    _, raw = saved("TrCMC", tmp_path)
    path = tmp_path / "bomb.npz"
    parts = {**members(raw), "components_.npy": bytes(256 * MIB)}
    path.write_bytes(zipped(parts.items(), zipfile.ZIP_DEFLATED))
    del parts
    message, peak = peak_of_loading(path)
    assert "compressed members" in message
    assert peak < 4 * MIB


def test_a_long_header_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "long.npz"
    path.write_bytes(zipped([(HEADER, b"[" * (64 * MIB))]))
    message, peak = peak_of_loading(path)
    assert "its header is too long" in message
    assert peak < 4 * MIB


def test_a_deeply_nested_header_is_refused(tmp_path):
    path = tmp_path / "deep.npz"
    path.write_bytes(zipped([(HEADER, b"[" * MIB)]))
    message, peak = peak_of_loading(path)
    assert "recursion" in message
    assert peak < 64 * MIB


def test_a_crowd_of_members_is_refused_before_they_are_listed(tmp_path):
    path = tmp_path / "crowd.npz"
    path.write_bytes(zipped([(f"{i:060d}", b"") for i in range(50_000)]))
    message, peak = peak_of_loading(path)
    assert "its directory is too long" in message
    assert peak < 4 * MIB


def test_an_array_larger_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    saved("TrCMC", tmp_path)
    monkeypatch.setattr("declip.persistence.archive.free_memory", lambda: 100)
    monkeypatch.setattr("declip.persistence.archive._SMALL", 100)
    with pytest.raises(ModelFileError, match="GiB of memory, more than is free"):
        declip.load(tmp_path / "seed.npz")


def test_loading_takes_no_more_memory_than_the_file(tmp_path):
    table = np.random.default_rng(0).standard_normal((100_000, 4))
    path = declip.FroCMC(4, alpha=1.0, max_iter=1).fit(table).save(tmp_path / "m.npz")
    declip.load(path)
    tracemalloc.start()
    model = declip.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(model, BaseEstimator)
    assert peak < path.stat().st_size + 4 * MIB


def test_damage_brings_no_warnings(tmp_path):
    _, raw = saved("TrCMC", tmp_path)
    path = tmp_path / "damaged.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for damage in MUTATIONS:
            path.write_bytes(damage(raw, np.random.default_rng(3)))
            loaded(path)


def _units(arrays):
    return [name for name in arrays if name.endswith("units.scale")]


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_forged_units_are_refused_before_anything_is_drawn_in_them(tmp_path, value):
    path = fitted("BayesCMC").save(tmp_path / "model.npz")
    archive = read_archive(path, "model")
    arrays = {name: np.array(array) for name, array in archive.arrays.items()}
    for name in _units(arrays):
        arrays[name][1] = value
    assert _units(arrays)
    write_archive(path, replace(archive, arrays=arrays), overwrite=True)
    with pytest.raises(ModelFileError, match="units of a table"):
        declip.load(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_forged_factors_are_refused(tmp_path, value):
    path = fitted("FroCMC").save(tmp_path / "model.npz")
    archive = read_archive(path, "model")
    arrays = {name: np.array(array) for name, array in archive.arrays.items()}
    arrays["row_factors_"][3, 0] = value
    write_archive(path, replace(archive, arrays=arrays), overwrite=True)
    with pytest.raises(ModelFileError, match="a factor is not finite"):
        declip.load(path)
