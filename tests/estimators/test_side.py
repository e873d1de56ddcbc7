"""Features, groups, weights and errors in the fit of FroCMC."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from declip import FroCMC, Intervals, load
from declip.losses import Hinge, Tobit
from declip.lowrank import LowRank
from declip.penalties import Ridge
from declip.solvers.als import TableProblem
from declip.solvers.groups import GroupedCells, GroupedProblem

N, M, K = 160, 12, 2


@pytest.fixture(scope="module")
def world():
    """A table whose rows follow a number and a category, and plates that shift its columns."""
    rng = np.random.default_rng(0)
    features = pd.DataFrame(
        {"dose": rng.standard_normal(N), "site": rng.choice(list("abc"), N)},
        index=[f"s{i}" for i in range(N)],
    )
    E = np.column_stack([features.dose, *((features.site == s) * 1.0 for s in "abc")])
    P = E @ rng.standard_normal((4, K)) + 0.3 * rng.standard_normal((N, K))
    truth = P @ rng.standard_normal((K, M)) + 0.2 * rng.standard_normal((N, M))
    seen = truth.copy()
    seen[rng.random(seen.shape) < 0.2] = np.nan
    plates = rng.integers(0, 8, N)
    return features, truth, pd.DataFrame(seen, index=features.index), plates


def rmse(x, truth):
    return float(np.sqrt(np.mean((x - truth) ** 2)))


def test_rows_are_predicted_from_their_features_alone(world):
    features, truth, seen, _ = world
    model = FroCMC(random_state=0).fit(seen[:120], row_features=features[:120])
    empty = seen[120:] * np.nan
    cold = model.predict(empty, row_features=features[120:])
    spread = rmse(truth[120:].mean(0), truth[120:])
    assert rmse(cold, truth[120:]) < 0.5 * spread
    few = seen[120:].copy()
    few.iloc[:, 3:] = np.nan
    warm = model.predict(few, row_features=features[120:])
    plain = FroCMC(random_state=0).fit(seen[:120]).predict(few)
    error = rmse(warm[:, 3:], truth[120:, 3:])
    assert error < rmse(cold[:, 3:], truth[120:, 3:])
    assert error < rmse(plain[:, 3:], truth[120:, 3:])


@pytest.mark.filterwarnings("ignore:.*rows:UserWarning")
def test_features_that_say_nothing_hardly_loosen_the_ridge():
    how = {"alpha": 1.0, "scale": "none", "bias": True, "random_state": 0}
    ratios = []
    for seed in (9, 10, 11):
        rng = np.random.default_rng(seed)
        truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 20))
        hidden = rng.random(truth.shape) >= 0.3
        seen = np.where(hidden, np.nan, truth) + 0.5 * rng.standard_normal(truth.shape)
        chance = rng.standard_normal((60, 4))
        fits = FroCMC(4, **how).fit(seen, row_features=chance), FroCMC(4, **how).fit(seen)
        told, plain = (rmse(m.reconstruct()[hidden], truth[hidden]) for m in fits)
        ratios.append(told / plain)
    # 1.07 were a coefficient as cheap as one factor of one row
    assert np.mean(ratios) < 1.05


def test_features_are_found_by_the_labels_of_the_rows(world):
    features, _, seen, _ = world
    shuffled = features.sample(frac=1, random_state=0)
    one, other = (FroCMC(random_state=0).fit(seen, row_features=f) for f in (features, shuffled))
    assert_array_equal(one.components_, other.components_)


def test_features_of_columns_are_those_of_rows_of_the_transpose(world):
    features, _, seen, _ = world
    how = {"alpha": 1.0, "scale": "none", "n_components": 2, "tol": 1e-10, "max_iter": 2000}
    by_row = FroCMC(random_state=0, **how).fit(seen, row_features=features)
    by_col = FroCMC(random_state=1, **how).fit(seen.T, column_features=features)
    assert_allclose(by_row.objective_, by_col.objective_, rtol=1e-5)
    assert_allclose(by_row.reconstruct(), by_col.reconstruct().T, atol=1e-2)


def test_a_fit_with_features_is_saved_with_what_new_rows_need(world, tmp_path):
    features, _, seen, plates = world
    model = FroCMC(random_state=0).fit(seen, row_features=features, groups=plates)
    twin = load(model.save(tmp_path / "model.npz"))
    new = {"row_features": features[:5], "groups": plates[:5]}
    assert_array_equal(twin.transform(seen[:5], **new), model.transform(seen[:5], **new))
    assert_array_equal(twin.reconstruct(), model.reconstruct())
    folded = model.fold_in(seen[:5], **new)
    assert_allclose(folded.reconstruct(), model.predict(seen[:5], **new))


def test_shifts_of_plates_are_taken_out(world):
    _, truth, seen, plates = world
    shift = 2 * np.random.default_rng(1).standard_normal((8, M))[plates]
    table, hidden = seen.to_numpy() + shift, seen.isna().to_numpy()
    plain = FroCMC(random_state=0).fit(table)
    model = FroCMC(random_state=0).fit(table, groups=plates)
    assert np.all(np.diff(model.history_) <= 1e-9 * model.history_[0])
    errors = [rmse(m.reconstruct()[hidden], (truth + shift)[hidden]) for m in (model, plain)]
    assert errors[0] < 0.7 * errors[1]
    again = model.predict(table, groups=plates)
    assert rmse(again, model.reconstruct()) < 0.1
    assert rmse(model.predict(table, groups=np.full(N, None)), again) > 0.5


@pytest.mark.parametrize("bias", [False, True])
def test_offsets_of_groups_are_at_a_minimum_when_the_fit_has_settled(bias):
    rng = np.random.default_rng(2)
    cells = Intervals.from_table(np.minimum(rng.standard_normal((30, 6)), 1.0), ceiling=1.0)
    index = rng.integers(-1, 4, 30).astype(np.int32)
    width = 2 + bias
    start = LowRank(rng.standard_normal((30, width)), rng.standard_normal((6, width)), bias=bias)
    problem = GroupedProblem(
        TableProblem(cells, start, Ridge(1.0)), GroupedCells(cells, index, 4), 1.5
    )
    point = problem.begin(Hinge())
    for _ in range(400):
        last, point = point, problem.balance(problem.sweep(point, 1.0, Hinge()))
        assert point.loss + point.penalty <= last.loss + last.penalty + 1e-9

    def value(offsets):
        from dataclasses import replace

        moved = problem.evaluate(replace(point, offsets=offsets), Hinge())
        return moved.loss + moved.penalty

    step, now = 1e-5, point.offsets
    for g in range(4):
        for j in range(6):
            away = np.zeros_like(now)
            away[g, j] = step
            slope = (value(now + away) - value(now - away)) / (2 * step)
            assert abs(slope) < 1e-3
    assert_array_equal(now[-1], 0)


@pytest.mark.parametrize("clipped", ["hinge", "tobit"])
def test_a_weight_of_zero_is_a_missing_cell(clipped):
    rng = np.random.default_rng(3)
    table = np.minimum(rng.standard_normal((30, 6)) + rng.standard_normal((30, 1)), 1.0)
    gone = rng.random(table.shape) < 0.2
    how = {"scale": "none", "alpha": 0.5, "clipped": clipped, "random_state": 0, "ceiling": 1.0}
    weighed = FroCMC(2, **how).fit(table, weights=np.where(gone, 0.0, 1.0))
    plain = FroCMC(2, **how).fit(np.where(gone, np.nan, table))
    assert_allclose(weighed.reconstruct(), plain.reconstruct(), atol=1e-6)
    assert_array_equal(weighed.fit_transform(table, weights=1 - gone)[table < 1], table[table < 1])


@pytest.mark.parametrize("clipped", ["hinge", "tobit"])
def test_rows_of_weight_two_are_rows_twice(clipped):
    rng = np.random.default_rng(4)
    table = np.minimum(rng.standard_normal((20, 5)) + rng.standard_normal((20, 1)), 1.0)
    how = {"scale": "none", "alpha": 0.5, "clipped": clipped, "tol": 1e-12, "max_iter": 3000}
    weight = np.where(np.arange(20)[:, None] < 8, 2.0, 1.0)
    weighed = FroCMC(1, ceiling=1.0, random_state=0, **how).fit(table, weights=weight)
    doubled = np.concatenate([table, table[:8]])
    # p is one for both copies if its ridge is halved in each: alpha / 2 (p^2 / 2 + p^2 / 2)
    Q, scale = weighed.components_.T, weighed.scale_

    def of(rows, P):
        x = P @ Q.T
        lower, upper = rows, np.where(rows >= 1, np.inf, rows)
        exact = 0.5 * (x - rows) ** 2
        soft = Tobit.at(scale).cells(x.ravel(), lower.ravel(), upper.ravel()).value
        return np.where(rows >= 1, soft.reshape(x.shape), exact).sum()

    P = weighed.row_factors_
    cells = of(doubled, np.concatenate([P, P[:8]]))
    penalty = 0.25 * ((P**2).sum() + (Q**2).sum())
    n_exact = (doubled < 1).sum()
    value = cells + penalty
    if scale:
        value = value / scale**2 + n_exact * np.log(np.sqrt(2 * np.pi) * scale)
    assert_allclose(weighed.objective_, value, rtol=1e-9)


def test_rows_under_known_errors_are_in_closed_form():
    rng = np.random.default_rng(5)
    sd = rng.uniform(0.2, 2.0, (40, 6))
    table = rng.standard_normal((40, 1)) @ rng.standard_normal((1, 6)) + sd * 0.1
    model = FroCMC(2, random_state=0, scale="none", alpha=0.5).fit(table, errors=sd)
    weight, Q = np.mean(sd**-2.0) ** -1 / sd**2, model.components_.T
    for w, m, p in zip(weight, table, model.row_factors_, strict=True):
        assert_allclose(
            p, np.linalg.solve((Q.T * w) @ Q + 0.5 * np.eye(2), Q.T @ (w * m)), rtol=1e-7
        )
    known = FroCMC(2, random_state=0, scale="none", alpha=0.5).fit(table, weights=weight)
    assert_allclose(known.reconstruct(), model.reconstruct())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": -1.0}, "weights must be a number of 0 or more at every cell: row 0, column 0"),
        ({"errors": [1.0] * 5 + [0.0]}, "errors must be a standard deviation above 0"),
        ({"weights": 1.0, "errors": 1.0}, "weights or errors, not both"),
        ({"row_features": np.ones((7, 2))}, "row_features is for 7 rows and the table has 30"),
        ({"groups": np.ones((30, 2))}, "groups has 2 columns"),
        ({"row_features": {"when": np.full(30, np.inf)}}, "feature 'when' is infinite at row 0"),
    ],
)
def test_what_does_not_fit_is_named(given, message):
    table = np.random.default_rng(6).standard_normal((30, 6))
    with pytest.raises(ValueError, match=message):
        FroCMC(1).fit(table, **given)


def test_new_rows_need_the_features_that_the_fit_had(world):
    features, _, seen, _ = world
    model = FroCMC(2, random_state=0).fit(seen, row_features=features)
    with pytest.raises(ValueError, match="give those of the new rows"):
        model.transform(seen[:3])
    with pytest.raises(ValueError, match="give those of the new rows"):
        model.score(seen[:3])
    with pytest.raises(ValueError, match="has no 'site', which the fit had"):
        model.transform(seen[:3], row_features=features[["dose"]][:3])
    with pytest.raises(ValueError, match="this fit had no row_features"):
        FroCMC(2).fit(seen).transform(seen[:3], row_features=features[:3])


def test_gaps_in_features_are_told_and_filled(world):
    features, truth, seen, _ = world
    holed = features.copy()
    holed.iloc[::7, 0] = np.nan
    holed.iloc[3::9, 1] = None
    with pytest.warns(UserWarning, match="'dose', 'site' has missing values"):
        model = FroCMC(random_state=0).fit(seen[:120], row_features=holed[:120])
    cold = model.predict(seen[120:] * np.nan, row_features=holed[120:])
    assert rmse(cold, truth[120:]) < 0.8 * rmse(truth[120:].mean(0), truth[120:])
    with pytest.warns(UserWarning, match="has the level 'z', which the fit did not see"):
        model.predict(seen[120:], row_features=holed[120:].assign(site="z"))


def test_polars_features_are_those_of_pandas(world):
    polars = pytest.importorskip("polars")
    features, _, seen, _ = world
    given = polars.from_pandas(features)
    one, other = (FroCMC(random_state=0).fit(seen, row_features=f) for f in (features, given))
    assert_array_equal(one.components_, other.components_)


def test_metadata_are_routed_through_a_pipeline(world):
    features, _, seen, _ = world
    with config_context(enable_metadata_routing=True):
        model = FroCMC(2, random_state=0)
        model.set_fit_request(row_features=True).set_transform_request(row_features=True)
        pipe = make_pipeline(FunctionTransformer(), model)
        pipe.fit(seen, row_features=features)
        found = pipe.transform(seen, row_features=features)
    direct = FroCMC(2, random_state=0).fit(seen, row_features=features)
    assert_allclose(found, direct.transform(seen, row_features=features))


def test_blocks_refuse_features(tmp_path):
    from declip import prepare_blocks

    table = np.random.default_rng(7).standard_normal((20, 5))
    prepare_blocks(table, tmp_path / "blocks")
    with pytest.raises(TypeError, match="is fitted without row_features"):
        FroCMC(1).fit(tmp_path / "blocks", row_features=np.ones(20))
