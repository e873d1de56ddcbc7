import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from tests.helpers import low_rank

from declip import BayesCMC, DTrCMC, ExactCMC, FroCMC, Intervals, TrCMC, diagnose

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

C, L = 1.5, -2.0


def table(seed=0, shape=(24, 18), sigma=0.1):
    rng = np.random.default_rng(seed)
    M = low_rank(rng, shape)
    X = np.clip(M + sigma * rng.standard_normal(shape), L, C)
    X[rng.random(shape) < 0.2] = np.nan
    X[3] = np.where(np.isnan(X[3]), np.nan, C)
    X[0, 0], X[1, 1] = C, L
    return M, X


def frame(X):
    return pd.DataFrame(X, [f"s{i}" for i in range(len(X))], [f"a{j}" for j in range(X.shape[1])])


def fro(**params):
    return FroCMC(2, ceiling=C, floor=L, alpha=0.1, random_state=0, **params, scale="none")


ESTIMATORS = [
    fro(),
    fro(clipped="tobit"),
    fro(clipped="tobit", bias=True),
    fro(bias=True, alpha_bias=0.01),
    fro(clipped="value"),
    fro(clipped="missing"),
    FroCMC(2, ceiling=C, floor=L, random_state=0, scale="columns"),
    FroCMC(2, ceiling=C, floor=L, clipped="tobit", bias=True, random_state=0, scale="columns"),
    TrCMC(1.0, ceiling=C, floor=L, scale="none"),
    TrCMC(1.0, ceiling=C, floor=L, clipped="tobit", scale="none"),
    ExactCMC(ceiling=C, floor=L),
    DTrCMC(ceiling=C, floor=L, max_iter=50, scale="none"),
    BayesCMC(2, ceiling=C, floor=L, n_samples=40, burn_in=20, random_state=0),
    BayesCMC(2, ceiling=C, floor=L, noise="global", n_samples=40, burn_in=20, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_every_estimator_can_be_diagnosed(estimator):
    _, X = table()
    found = diagnose(estimator.fit(X), X, expert=True)
    json.dumps(found.as_dict(), allow_nan=False)
    side = found.intervals.by_row
    restored = estimator._restored(found.intervals, estimator._model())
    np.testing.assert_allclose(
        found.fit.residuals.restored, restored[side.censored_rows(), side.censored_idx], atol=1e-12
    )
    assert (found.fit.sd > 0).all()
    assert np.isfinite(found.fit.sd).all()
    assert found.verdict in str(found).replace("\n", " ")
    if estimator.clipped != "value":
        assert not found.fit.determination.rows[3]


def test_certificate_is_that_of_the_estimator():
    _, X = table()
    model = TrCMC(1.0, ceiling=C, floor=L, scale="none").fit(X)
    gap = diagnose(model, X).fit.optimality.relative_gap
    assert gap == pytest.approx(model.gap_ / model.objective_, rel=1e-6)


def test_a_method_without_a_certificate_claims_none():
    _, X = table()
    found = diagnose(
        DTrCMC(ceiling=C, floor=L, max_iter=50, solver="subgradient", scale="none").fit(X), X
    )
    assert np.isnan(found.fit.optimality.relative_gap)
    assert "no certificate for this method" in str(found)


def test_parts_of_the_error_bound_it():
    M, X = table()
    model = fro().fit(X)
    parts = diagnose(model, X, truth=M).fit.parts
    X_hat = model.reconstruct()
    rms = [np.sqrt(np.mean(E**2)) for E in (M - np.clip(M, L, C), X_hat - np.clip(X_hat, L, C))]
    assert [parts.B1, parts.B2] == pytest.approx(rms)
    assert parts.error == pytest.approx(np.sqrt(np.mean((X_hat - M) ** 2)))
    assert parts.error <= parts.B1 + parts.B2 + parts.B3
    without = diagnose(model, X).fit.parts
    assert without.B2 == pytest.approx(parts.B2)
    assert np.isnan(without.error)


def test_worst_rows_are_named_by_their_labels():
    df = frame(table()[1])
    found = diagnose(fro().fit(df), df)
    assert "'s3': 0 exact" in str(found)
    assert "1 row ('s3')" in str(found)
    assert found.as_dict()["worst_rows"][0]["name"] == "s3"


def test_pandas_in_pandas_out():
    df = frame(table()[1])
    found = diagnose(fro().fit(df), df)
    rows = found.to_frame()
    assert isinstance(rows, pd.DataFrame)
    assert rows["row"].tolist() == df.index.tolist()
    assert rows.loc[3, "exact"] == 0
    assert not rows.loc[3, "determined"]
    cells = found.to_frame("cells")
    assert len(cells) == found.coverage.n_clipped
    assert set(cells["column"]) <= set(df.columns)


def test_polars_in_polars_out():
    df = pl.DataFrame(table()[1], [f"a{j}" for j in range(18)], nan_to_null=True)
    found = diagnose(df, ceiling=C, floor=L)
    assert isinstance(found.to_frame("columns"), pl.DataFrame)
    assert found.to_frame("columns")["column"].to_list() == df.columns


@pytest.mark.parametrize("of", ["rows", "columns", "cells", "ranks"])
def test_arrays_give_columns_of_equal_length(of):
    _, X = table()
    columns = diagnose(fro().fit(X), X).to_frame(of)
    assert len({len(values) for values in columns.values()}) == 1


def test_labels_of_mixed_kinds_become_text():
    df = pd.DataFrame(table()[1][:, :3], columns=["a", 2, "c"])
    assert diagnose(df, ceiling=C, floor=L).to_frame("columns")["column"].tolist() == [
        "a",
        "2",
        "c",
    ]


def test_sparse_and_dense_agree():
    _, X = table()
    rows, cols = np.nonzero(~np.isnan(X))
    S = sparse.csr_array((X[rows, cols], (rows, cols)), shape=X.shape)
    one, other = (diagnose(fro().fit(T), T).as_dict() for T in (X, S))
    assert one == other


def test_floor_is_the_mirror_of_the_ceiling():
    _, X = table()
    model, mirrored = (
        fro().fit(X),
        FroCMC(2, ceiling=-L, floor=-C, alpha=0.1, random_state=0, scale="none"),
    )
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            setattr(mirrored, name, value)
    mirrored.row_factors_ = -model.row_factors_
    one, other = diagnose(model, X).fit, diagnose(mirrored, -X).fit
    np.testing.assert_allclose(one.sd, other.sd)
    np.testing.assert_allclose(one.residuals.restored, -other.residuals.restored)
    assert one.determination.margin.value == pytest.approx(other.determination.margin.value)


def test_an_intervals_is_read_with_its_own_limits():
    _, X = table()
    intervals = Intervals.from_table(X, ceiling=C, floor=L)
    model = FroCMC(2, alpha=0.1, random_state=0, scale="none").fit(intervals)
    one = diagnose(model, intervals).as_dict()
    other = diagnose(fro().fit(X), X).as_dict()
    assert one["fit"] == other["fit"]


def test_single_precision_is_diagnosed():
    X = table()[1].astype(np.float32)
    C32, L32 = np.float32(C), np.float32(L)
    model = FroCMC(2, ceiling=C32, floor=L32, alpha=0.1, random_state=0, scale="none").fit(X)
    assert diagnose(model, X).fit.determination.rows.sum() == 23


def test_pictures_have_a_panel_for_each_finding():
    _, X = table()
    assert len(diagnose(X, ceiling=C, floor=L).plot().axes) == 2
    assert len(diagnose(fro().fit(X), X).plot().axes) == 3


def test_a_large_clip_map_is_drawn_from_tiles():
    rng = np.random.default_rng(0)
    cells = rng.choice(2000 * 700, 5000, replace=False)
    X = sparse.csr_array((rng.random(5000), (cells // 700, cells % 700)), shape=(2000, 700))
    image = diagnose(X).plot().axes[0].images[0].get_array()
    assert max(image.shape[:2]) <= 300


def test_the_cost_of_the_expert_part_is_said():
    _, X = table()
    small = diagnose(X, ceiling=C, floor=L)
    assert "expert=True: about a second at most" in str(small)
    cells = np.arange(3000)
    wide = sparse.csr_array((np.ones(3000), (cells, cells % 9)), shape=(30_000, 20_000))
    assert diagnose(wide, ceiling=1).expert_seconds > 60


def test_a_long_expert_part_is_announced_before_it_runs(monkeypatch):
    monkeypatch.setattr("declip.diagnostics.entry._WORTH_SAYING", 0.0)
    M, X = table()
    with pytest.warns(UserWarning, match="expert=True takes about"):
        diagnose(X, ceiling=C, floor=L, expert=True, truth=M)


def test_expert_says_that_it_is_sufficient_only():
    M, X = table()
    found = diagnose(X, ceiling=C, floor=L, expert=True, truth=M)
    assert "Sufficient only: failing it does not mean failure." in str(found)
    assert found.as_dict()["theory"]["sufficient_only"] is True


def test_limits_of_single_cells_leave_the_rest_open():
    _, X = table()
    rows, cols = np.nonzero(~np.isnan(X))
    limit = sparse.csr_array((np.full(len(rows), C), (rows, cols)), shape=X.shape)
    model = FroCMC(2, ceiling=limit, floor=L, alpha=0.1, random_state=0, scale="none").fit(X)
    found = diagnose(model, X, expert=True)
    assert np.isnan(found.fit.parts.B2)
    assert 0 < found.theory.nu_B <= 1


def test_a_table_of_another_shape_than_the_fit_is_refused():
    _, X = table()
    with pytest.raises(ValueError, match=r"X has the shape \(5, 18\), but the table of the fit"):
        diagnose(fro().fit(X), X[:5])


def test_calls_that_make_no_sense_are_refused():
    M, X = table()
    model = fro()
    with pytest.raises(NotFittedError):
        diagnose(model, X)
    model.fit(X)
    with pytest.raises(TypeError, match="needs X"):
        diagnose(model)
    with pytest.raises(TypeError, match="its own ceiling"):
        diagnose(model, X, ceiling=C)
    with pytest.raises(TypeError, match="takes a table, or a fitted estimator"):
        diagnose(X, X)
    with pytest.raises(ValueError, match="expert=True needs"):
        diagnose(X, ceiling=C, floor=L, expert=True)
    with pytest.raises(ValueError, match="truth has the shape"):
        diagnose(X, ceiling=C, floor=L, truth=M[:3])
    with pytest.raises(ValueError, match="There is no fit"):
        diagnose(X, ceiling=C, floor=L).sd([0], [0])
    with pytest.raises(ValueError, match="of must be one of"):
        diagnose(X, ceiling=C, floor=L).to_frame("all")


def test_a_table_without_exact_cells_cannot_be_restored():
    assert "no exact cell" in diagnose(np.ones((3, 2)), ceiling=1).verdict
