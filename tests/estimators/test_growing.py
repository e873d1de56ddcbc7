"""New rows, columns and cells are taken into a fit, at a small part of its work."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import declip
from declip import FroCMC, Intervals, TrCMC

rng = np.random.default_rng(0)
N, M = 120, 40
VALUES = rng.normal(size=(N, 3)) @ rng.normal(size=(3, M)) + 0.1 * rng.normal(size=(N, M))
SEEN = rng.random((N, M)) < 0.5
SEEN[0, 0] = True
NAMES = {"row": [f"u{i:03d}" for i in range(N)], "column": [f"i{j:02d}" for j in range(M)]}
CEILING = 2.0


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def cells(where):
    """Return the observed cells of a part of the table, by name."""
    rows, cols = np.nonzero(SEEN & where)
    names = {"row": np.take(NAMES["row"], rows), "column": np.take(NAMES["column"], cols)}
    frame = pd.DataFrame({**names, "value": np.minimum(VALUES[rows, cols], CEILING)})
    return Intervals.from_long(frame, ceiling=CEILING)


def corner(n_rows, n_cols):
    return np.outer(np.arange(N) < n_rows, np.arange(M) < n_cols)


OLD = corner(100, 34) & (rng.random((N, M)) < 0.9)
OLD[0, 0] = True
FRO = FroCMC(3, alpha=0.5, scale="none", init="svd", random_state=0, tol=1e-9, max_iter=3000)
TRACE = TrCMC(3.0, scale="none", tol=1e-7, max_iter=5000)


@pytest.mark.parametrize("model", [FRO, TRACE], ids=["FroCMC", "TrCMC"])
def test_with_many_sweeps_an_extended_fit_is_a_new_fit(model):
    model = clone(model)
    whole = clone(model).fit(cells(OLD | ~OLD))
    extended = model.fit(cells(OLD)).extend(cells(~OLD), sweeps=1500)
    assert_allclose(extended.objective_, whole.objective_, rtol=1e-5)
    assert_array_equal(np.sort(extended.row_labels_), whole.row_labels_)
    at = np.repeat(NAMES["row"], M), np.tile(NAMES["column"], N)
    assert_allclose(extended.predict(*at), whole.predict(*at), atol=0.02)


def test_one_sweep_comes_near_a_new_fit():
    whole = clone(FRO).fit(cells(OLD | ~OLD))
    model = clone(FRO).fit(cells(OLD)).extend(cells(~OLD))
    hidden = ~SEEN
    at = (
        np.take(NAMES["row"], np.nonzero(hidden)[0]),
        np.take(NAMES["column"], np.nonzero(hidden)[1]),
    )
    errors = [np.sqrt(np.mean((m.predict(*at) - VALUES[hidden]) ** 2)) for m in (model, whole)]
    assert model.n_iter_ == 1
    assert errors[0] < 1.25 * errors[1]  # of noise 0.1, and values of size 1.7


def test_a_fit_by_parts_knows_what_a_fit_knows(tmp_path):
    model = clone(FRO).fit(cells(OLD)).extend(cells(~OLD))
    assert model.n_features_in_ == M
    assert set(model.feature_names_in_) == set(NAMES["column"])
    mean, sd = model.predictive(["u119", "u000"], ["i39", "i38"])
    assert np.all(sd > 0)
    assert np.all(np.isfinite(mean))
    assert 0 <= model.gap_ < np.inf
    again = declip.load(model.save(tmp_path / "model.npz"))
    assert_array_equal(again.predict(["u119"], ["i39"]), model.predict(["u119"], ["i39"]))


def test_new_columns_have_units_of_their_own():
    rows = 10 + 3 * rng.normal(size=(80, 1))
    table = rows * [1, 2, 3, 4] + 0.1 * rng.normal(size=(80, 4))
    frame = pd.DataFrame(table, columns=list("abcd"), index=[f"r{i}" for i in range(80)])
    frame["e"] = 1000 * frame["a"] + rng.normal(size=80)
    hidden = frame["e"].iloc[40:].to_numpy()
    model = FroCMC(1, alpha=0.1, random_state=0).fit(frame[list("abcd")])
    model.extend(frame[["e"]].iloc[:40], sweeps=3)
    found = model.predict(frame.index[40:], ["e"] * 40)
    assert np.sqrt(np.mean((found - hidden) ** 2)) < 0.2 * hidden.std()
    assert_allclose(model.scaling_.units.shift[4], frame["e"].iloc[:40].mean())


def test_a_shared_unit_is_that_of_new_columns_too():
    model = FroCMC(2, scale="table", random_state=0).fit(VALUES[:, :30])
    extra = Intervals.from_triplets(np.arange(50), np.full(50, 30), VALUES[:50, 30])
    model.extend(extra)
    assert np.ptp(model.scaling_.units.scale) == 0
    assert len(model.scaling_.units.scale) == 31


def test_a_cell_that_is_better_known_now_is_replaced():
    frame = pd.DataFrame({"row": ["u000"], "column": ["i00"], "value": [VALUES.max()]})
    model = clone(FRO).fit(cells(OLD))
    with pytest.raises(ValueError, match="row 'u000', column 'i00' is known already"):
        model.extend(Intervals.from_long(frame))
    before = model.predict(["u000"], ["i00"])
    model.extend(Intervals.from_long(frame), replace_known=True)
    assert model.predict(["u000"], ["i00"]) > before


def test_partial_fit_appends_rows_and_begins_with_a_fit():
    model = clone(FRO).set_params(ceiling=CEILING, n_jobs=1)
    table = np.minimum(np.where(SEEN, VALUES, np.nan), CEILING)
    model.partial_fit(table[:60])
    assert_array_equal(model.components_, clone(model).fit(table[:60]).components_)
    for rows in (slice(60, 90), slice(90, 120)):
        model.partial_fit(table[rows])
    whole = clone(model).fit(table)
    assert model.row_factors_.shape == whole.row_factors_.shape
    assert model.objective_ < 1.05 * whole.objective_


def test_partial_fit_of_other_columns_is_refused_as_scikit_learn_does():
    model = FroCMC(2, random_state=0).partial_fit(VALUES)
    with pytest.raises(ValueError, match="X has 39 features, but FroCMC is expecting 40"):
        model.partial_fit(VALUES[:, 1:])


def test_frames_that_continue_are_new_rows():
    frame = pd.DataFrame(VALUES)
    model = FroCMC(2, random_state=0).fit(frame[:100]).extend(frame[100:])
    assert model.row_labels_ is None
    assert len(model.row_factors_) == N


def test_a_loaded_model_says_that_it_cannot_be_extended(tmp_path):
    model = declip.load(clone(FRO).fit(cells(OLD)).save(tmp_path / "model.npz"))
    with pytest.raises(TypeError, match=r"has no cells of its fit.*warm_start=True"):
        model.extend(cells(~OLD))


def test_what_fails_leaves_the_model_as_it_was():
    model = clone(FRO).fit(cells(OLD))
    before = model.components_
    with pytest.raises(ValueError, match="sweeps must be 1, 2, 3"):
        model.extend(cells(~OLD), sweeps=0)
    with pytest.raises(ValueError, match="is known already"):
        model.extend(cells(OLD))
    assert model.components_ is before


def test_parameters_set_after_the_fit_do_not_count():
    model = clone(FRO).fit(cells(OLD)).set_params(alpha=50.0, clipped="missing")
    assert_array_equal(
        model.extend(cells(~OLD)).components_,
        clone(FRO).fit(cells(OLD)).extend(cells(~OLD)).components_,
    )


def test_trace_norm_warm_start_of_a_grown_table_begins_at_the_old_factors():
    model = TrCMC(3.0, scale="none", warm_start=True, solver="proximal", tol=1e-4)
    now = cells(OLD | ~OLD)
    cold = clone(model).fit(now)
    warm = model.fit(cells(OLD)).fit(now)
    assert warm.history_[0] < 0.5 * cold.history_[0]
    assert warm.n_iter_ < cold.n_iter_
    assert_allclose(warm.objective_, cold.objective_, rtol=1e-3)


def test_rows_of_one_name_are_not_extended():
    table = pd.DataFrame(np.eye(4), index=["a", "a", "b", "c"], columns=list("wxyz"))
    model = FroCMC(1, random_state=0).fit(table)
    with pytest.raises(ValueError, match="Two rows of the fitted table are named 'a'"):
        model.extend(table[2:] + 1, replace_known=True)
