"""Fits in common units: results, limits and labels are those of the table."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes

import declip
from declip import DTrCMC, FroCMC, Intervals, TrCMC

_rng = np.random.default_rng(0)
TRUTH = _rng.standard_normal((60, 2)) @ _rng.standard_normal((2, 6))
TRUTH += 0.1 * _rng.standard_normal(TRUTH.shape)
UNIT, LEVEL = np.array([1.0, 1000, 0.01, 3, 50, 7]), np.array([0.0, 5e4, 1, -20, 8, 300])
CEILING = np.quantile(TRUTH, 0.8, axis=0)
SEEN = np.where(_rng.random(TRUTH.shape) < 0.9, np.minimum(TRUTH, CEILING), np.nan)

each_estimator = pytest.mark.parametrize(
    "estimator",
    [
        FroCMC(3, random_state=0),
        FroCMC(3, clipped="tobit", bias=True, random_state=0),
        TrCMC(),
        TrCMC(clipped="tobit"),
        DTrCMC(),
    ],
    ids=["FroCMC", "FroCMC tobit bias", "TrCMC", "TrCMC tobit", "DTrCMC"],
)


@each_estimator
def test_the_units_of_columns_do_not_matter(estimator):
    # Standard units of y = unit x + level are those of x, up to rounding; a solver that stops at
    # a tolerance may stop one step apart, so that 1e-3 of a standard deviation is allowed.
    plain = estimator.set_params(ceiling=CEILING).fit_transform(SEEN)
    other = UNIT * SEEN + LEVEL
    limits = UNIT * CEILING + LEVEL
    other = np.where(SEEN == CEILING, limits, other)
    scaled = estimator.set_params(ceiling=limits).fit_transform(other)
    assert_allclose((scaled - LEVEL) / UNIT, plain, atol=1e-3 * TRUTH.std())
    assert (scaled >= np.where(SEEN == CEILING, limits, -np.inf)).all()


@each_estimator
def test_predictions_new_rows_and_files_are_in_the_units_of_the_table(estimator, tmp_path):
    table, limits = UNIT * SEEN + LEVEL, UNIT * CEILING + LEVEL
    table = np.where(SEEN == CEILING, limits, table)
    model = estimator.set_params(ceiling=limits).fit(table)
    rows, cols = np.nonzero(np.isnan(table))
    predicted = model.predict(rows, cols)
    assert_allclose(predicted, model.reconstruct()[rows, cols])
    errors = (predicted - (UNIT * TRUTH + LEVEL)[rows, cols]) / UNIT[cols]
    assert np.sqrt(np.mean(errors**2)) < 0.6 * TRUTH.std()
    mean, sd = model.predictive(rows, cols)
    assert_allclose(mean, predicted)
    assert np.all(sd / UNIT[cols] < 3)
    assert np.all(sd / UNIT[cols] > 0.01)
    twin = declip.load(model.save(tmp_path / "model.npz"))
    assert_array_equal(twin.transform(table), model.transform(table))
    if not isinstance(estimator, DTrCMC):  # whose new rows have one of its two penalties
        again, fitted = model.transform(table), model.fit_transform(table)
        assert_allclose(again / UNIT, fitted / UNIT, atol=0.02)


def test_ratings_stay_in_their_units_and_tables_do_not():
    ratings = np.where(_rng.random((60, 40)) < 0.1, 3.0, np.nan)
    ratings[:, 0], ratings[0] = np.arange(60) % 5, np.arange(40) % 5
    assert FroCMC(2, random_state=0).fit(ratings).scaling_ is None
    assert FroCMC(2, random_state=0).fit(SEEN).scaling_ is not None
    shared = TrCMC(scale="table").fit(SEEN).scaling_.units
    assert np.all(shared.scale == shared.scale[0])


def test_a_raw_table_is_filled_better_than_by_means_with_default_settings():
    truth = load_diabetes(scaled=False).data
    hidden = np.random.default_rng(0).random(truth.shape) < 0.25
    table = np.where(hidden, np.nan, truth)
    spread = truth.std(axis=0)

    def error(filled):
        return np.sqrt(np.mean(((filled - truth) / spread)[hidden] ** 2))

    by_means = error(np.where(hidden, np.nanmean(table, axis=0), table))
    for model in (FroCMC(random_state=0), TrCMC()):
        assert error(model.fit_transform(table)) < 0.8 * by_means


@pytest.mark.parametrize("n_cols", [1, 2, 4])
def test_default_settings_take_narrow_tables(n_cols):
    filled = FroCMC(random_state=0).fit_transform(SEEN[:, :n_cols])
    assert np.isfinite(filled).all()


def test_a_warm_start_goes_on_in_the_units_of_the_new_fit():
    cold = FroCMC(3, random_state=0).fit(UNIT * SEEN)
    again = FroCMC(3, random_state=0, warm_start=True).fit(UNIT * SEEN)
    more = UNIT * np.where(_rng.random(SEEN.shape) < 0.02, np.nan, SEEN)
    again.fit(more)
    assert again.n_iter_ < FroCMC(3, random_state=0).fit(more).n_iter_
    assert_allclose(again.objective_, cold.objective_, rtol=0.1)


def _ratings(n_users, n_items):
    """Return ratings of the first users and items of one table of rank 3, as a long frame."""
    rng = np.random.default_rng(3)
    P, Q = rng.standard_normal((300, 3)), rng.standard_normal((80, 3))
    values = P @ Q.T + 0.3 * rng.standard_normal((300, 80))
    seen = rng.random(values.shape) < 0.2
    rows, cols = np.nonzero(seen[:n_users, :n_items])
    ids = {"row": [f"u{i}" for i in rows], "column": [f"i{j}" for j in cols]}
    return Intervals.from_long(pd.DataFrame({**ids, "value": values[rows, cols]}))


def test_a_warm_start_after_rows_and_columns_were_added_begins_at_the_old_factors():
    params = {"n_components": 3, "alpha": 1.0, "tol": 1e-6, "random_state": 0}
    before, now = _ratings(280, 70), _ratings(300, 80)
    cold = FroCMC(**params).fit(now)
    warm = FroCMC(**params, warm_start=True).fit(before).fit(now)
    assert warm.n_iter_ < 0.7 * cold.n_iter_
    assert_allclose(warm.objective_, cold.objective_, rtol=1e-3)
    few = FroCMC(**params, warm_start=True).fit(before).set_params(max_iter=3).fit(now)
    assert few.objective_ < 1.02 * cold.objective_


LONG = pd.DataFrame(
    {
        "site": np.repeat([f"s{i}" for i in range(12)], 6),
        "metal": np.tile(list("abcdef"), 12),
        "value": SEEN[:12].ravel(),
        "limit": np.tile(CEILING, 12),
    }
)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_long_frame_is_the_table_that_it_lists(kind):
    frame = LONG.sample(frac=1, random_state=0)
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    cells = Intervals.from_long(frame, "site", "metal", "value", ceiling="limit")
    order = np.argsort([f"s{i}" for i in range(12)])
    wide = Intervals.from_table(SEEN[:12][order], ceiling=CEILING)
    for one, other in zip(cells.triplets(), wide.triplets(), strict=True):
        assert_array_equal(one, other)


def test_cells_are_asked_for_by_label_also_after_a_file(tmp_path):
    cells = Intervals.from_long(LONG, "site", "metal", "value", ceiling="limit")
    model = FroCMC(2, random_state=0).fit(cells)
    twin = declip.load(model.save(tmp_path / "model.npz"))
    at = model.locate(["s10", "s2"], ["b", "f"])
    assert_array_equal(twin.predict(["s10", "s2"], ["b", "f"]), model.predict(*at))
    assert list(cells.row_labels[at[0]]) == ["s10", "s2"]
    with pytest.raises(KeyError, match="no row 's99'"):
        model.predict(["s99"], ["a"])
    with pytest.raises(ValueError, match="have no labels"):
        FroCMC(2, random_state=0).fit(SEEN).predict(["s1"], [0])


def test_a_cell_that_is_listed_twice_is_named_by_its_labels():
    with pytest.raises(ValueError, match="row 's0', column 'a' is given twice, as lines 0 and 72"):
        Intervals.from_long(pd.concat([LONG, LONG[:1]]), "site", "metal")


@pytest.mark.parametrize("ids", [int, str])
def test_a_long_frame_is_not_fitted_as_a_table_of_three_columns(ids):
    rows, cols = np.nonzero(_rng.random((40, 30)) < 0.5)
    frame = pd.DataFrame({"user": rows.astype(ids), "item": cols.astype(ids), "stars": 1.0 + cols})
    with pytest.raises(TypeError, match=r"from_long\(X, row='user', column='item', value='stars'"):
        FroCMC().fit(frame)


def test_whole_numbers_in_three_columns_may_be_a_table():
    scores = pd.DataFrame(_rng.integers(1, 6, (200, 3)), columns=["a", "b", "c"])
    assert FroCMC(1, random_state=0).fit(scores).n_features_in_ == 3


def test_limits_in_another_order_are_those_of_their_labels():
    table = pd.DataFrame(SEEN, columns=list("abcdef"))
    each = np.where(np.isnan(SEEN), 9.0, np.maximum(SEEN, CEILING))
    limits = pd.DataFrame(each, columns=list("abcdef"))
    expected = Intervals.from_table(SEEN, ceiling=each).triplets()
    shuffled = limits.sample(frac=1, random_state=1)[list("fedcba")]
    for one, other in zip(
        Intervals.from_table(table, ceiling=shuffled).triplets(), expected, strict=True
    ):
        assert_array_equal(one, other)
    named = table.set_axis([f"s{i}" for i in range(60)])
    by_row = pd.Series(np.nanmax(SEEN, axis=1), index=named.index)
    cells = Intervals.from_table(named, ceiling=by_row.iloc[::-1])
    assert cells.n_censored == 60
    with pytest.raises(ValueError, match="the table has no row 7000"):
        Intervals.from_table(table, ceiling=limits.set_axis(np.arange(60) + 7000))


def _some_ratings(seed=0, n_rows=300, n_cols=200, n_cells=9000):
    """Return ratings with offsets and three factors, and the mask of those to be told."""
    rng = np.random.default_rng(seed)
    keys = rng.choice(n_rows * n_cols, n_cells, replace=False)
    rows, cols = np.divmod(keys, n_cols)
    x = 3.5 + 0.4 * rng.standard_normal(n_rows)[rows] + 0.4 * rng.standard_normal(n_cols)[cols]
    factors = rng.standard_normal((n_rows, 3)), 0.3 * rng.standard_normal((n_cols, 3))
    x += np.sum(factors[0][rows] * factors[1][cols], axis=1) + 0.7 * rng.standard_normal(n_cells)
    return rows, cols, np.clip(np.round(x), 1, 5), rng.random(n_cells) < 0.2


@pytest.mark.parametrize("bias", [False, True])
def test_the_penalty_of_ratings_is_near_the_best_of_a_grid(bias):
    rows, cols, values, test = _some_ratings()
    seen = rows[~test], cols[~test], values[~test]
    cells = Intervals.from_triplets(*seen, shape=(300, 200), ceiling=5)

    def error(alpha):
        model = FroCMC(bias=bias, alpha=alpha, random_state=0).fit(cells)
        found = np.clip(model.predict(rows[test], cols[test]), 1, 5)
        return np.sqrt(np.mean((found - values[test]) ** 2))

    best = min(error(alpha) for alpha in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0))
    assert error("auto") < 1.06 * best  # the grid saw the held-out ratings, "auto" did not
    assert error("auto") < 0.9 * error(0.1)


@pytest.mark.parametrize("bias", [False, True])
def test_the_penalty_of_ratings_goes_along_with_their_units(bias):
    # With y = s x the objective of factors sqrt(s) P, sqrt(s) Q is s^2 times that of P, Q if alpha
    # is s times as strong; of offsets, s b, the penalty is then s times too large, so without them.
    rows, cols, values, _ = _some_ratings()
    plain, other = (
        FroCMC(2, bias=bias, random_state=0).fit(
            Intervals.from_triplets(rows, cols, s * values, shape=(300, 200))
        )
        for s in (1.0, 8.0)
    )
    assert_allclose(other.alpha_, 8 * plain.alpha_)
    if not bias:
        at = rows[:500], cols[:500]
        assert_allclose(other.predict(*at), 8 * plain.predict(*at), atol=1e-2)


def test_ratings_that_are_all_the_same_have_a_penalty():
    rows, cols, values, _ = _some_ratings()
    cells = Intervals.from_triplets(rows, cols, np.full_like(values, 3.0), shape=(300, 200))
    model = FroCMC(2, random_state=0).fit(cells)
    assert model.alpha_ > 0
    assert_allclose(model.predict(rows, cols), 3.0, atol=0.01)
