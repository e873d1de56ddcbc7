"""BayesCMC with cells that are missing because their values were low, or high."""

import numpy as np
import pytest
from scipy.special import ndtr

import declip
from declip import BayesCMC, Intervals

FEW = {"n_samples": 80, "burn_in": 80, "chains": 1, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def intensities(n=120, m=8, lost=0.0, width=0.2, seed=0):
    """Return a table of two factors, and what a curve about its lower third leaves of it."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((n, 2)) @ rng.standard_normal((2, m)) + 20
    truth += 0.3 * rng.standard_normal((n, m))
    limit = np.quantile(truth, 0.35, axis=0)
    seen = rng.random((n, m)) < (1 - lost) * ndtr((truth - limit) / width)
    seen[~seen.any(axis=1), 0] = True
    return truth, np.where(seen, truth, np.nan), limit


def error(found, truth, table):
    return np.sqrt(np.mean((found - truth)[np.isnan(table)] ** 2))


@pytest.fixture(scope="module")
def fitted():
    truth, table, limit = intensities(lost=0.05)
    return truth, table, limit, BayesCMC(missing="low", **FEW).fit(table)


def test_low_cells_are_restored_below_and_the_curve_is_found(fitted):
    truth, table, limit, model = fitted
    restored = model.fit_transform(table)
    random = BayesCMC(**FEW).fit_transform(table)
    # the curve removes most of what chance gets wrong here: 0.5 against 0.4 measured
    assert error(restored, truth, table) < 0.6 * error(random, truth, table)
    assert np.array_equal(restored[~np.isnan(table)], table[~np.isnan(table)])
    # 120 rows: limits to about a tenth of a column's deviation, 1.4 in the middle
    assert np.median(abs(model.detection_["limit"] - limit)) < 0.25
    assert 0.1 < np.median(model.detection_["width"]) < 0.6
    assert model.missing_ == ("low",) * 8


def test_intervals_of_missing_cells_hold_nine_in_ten(fitted):
    truth, table, _, model = fitted
    rows, cols = np.nonzero(np.isnan(table))
    low, high = model.predict_interval(rows, cols, coverage=0.9)
    share = np.mean((low <= truth[rows, cols]) & (truth[rows, cols] <= high))
    assert 0.82 < share < 0.97  # 380 cells, not independent
    drawn = model.sample(20, random_state=0)[:, rows, cols]
    inside = np.mean((drawn >= low) & (drawn <= high))
    assert 0.86 < inside < 0.94  # 7,600 draws of what the intervals are made for


def test_high_cells_are_the_mirror_of_low_ones():
    truth, table, limit = intensities(seed=1)
    model = BayesCMC(missing="high", **FEW).fit(-table)
    assert np.median(abs(model.detection_["limit"] + limit)) < 0.25
    assert error(model.fit_transform(-table), -truth, table) < 0.5


def test_words_by_column_leave_the_others_to_chance():
    _, table, _ = intensities()
    model = BayesCMC(missing={0: "low", 2: "high"}, **FEW).fit(table)
    assert model.missing_ == ("low", "random", "high", *("random",) * 5)
    assert np.isnan(model.detection_["limit"][[1, 3]]).all()
    assert model.detection_["limit"][0] < np.nanmedian(table[:, 0])


def test_new_rows_are_seen_through_the_curve_and_do_not_depend_on_each_other(fitted):
    truth, table, _, model = fitted
    some = np.flatnonzero(np.isnan(table).sum(axis=1) == 4)[:10]
    together = model.transform(table[some])
    alone = np.vstack([model.transform(table[[i]]) for i in some])
    np.testing.assert_allclose(together, alone, rtol=1e-6)
    random = BayesCMC(**FEW).fit(table).transform(table[some])
    assert error(together, truth[some], table[some]) < error(random, truth[some], table[some])


def test_mixed_tables_take_limits_and_missing_cells_together():
    truth, table, _ = intensities(lost=0.05, seed=2)
    floor = np.quantile(truth, 0.5, axis=0)
    clipped = (np.arange(8) < 3) & (truth <= floor)  # three columns with marked floors
    lower = np.where(clipped, -np.inf, np.where(np.arange(8) < 3, truth, table))
    upper = np.where(clipped, floor, np.where(np.arange(8) < 3, truth, table))
    cells = Intervals.from_bounds(lower, upper)
    restored, random = (
        BayesCMC(missing=word, **FEW).fit_transform(cells) for word in ("low", "random")
    )
    assert np.all((restored <= upper) | np.isnan(upper))
    assert error(restored, truth, lower) < 0.7 * error(random, truth, lower)


def test_a_fit_is_saved_and_loaded(fitted, tmp_path):
    _, table, _, model = fitted
    loaded = declip.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(loaded.transform(table[:3]), model.transform(table[:3]))
    assert loaded.detection_["lost"] == model.detection_["lost"]


@pytest.mark.parametrize(("why", "lost"), [("low", 0.05), ("random", 0.3)])
def test_auto_finds_why_cells_are_missing_and_says_so(why, lost):
    truth, table, _ = intensities(lost=lost, seed=4)
    if why == "random":
        table = np.where(np.random.default_rng(0).random(truth.shape) < lost, np.nan, truth)
    with pytest.warns(UserWarning, match=f'missing="auto" took "{why}"'):
        model = BayesCMC(missing="auto", **FEW).fit(table)
    assert set(model.missing_) == {why}
    assert (model.missing_evidence_.gain("low") > 0.05) == (why == "low")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"missing": {"iron": "low"}}, "missing names column 'iron'"),
        ({"missing": {0: "small"}}, r"missing\[0\] must be one of"),
        ({"missing": "low", "df": 4}, "df=None"),
        ({"missing": "low", "noise": "row+column"}, 'noise="column"'),
    ],
)
def test_what_missing_cannot_mean_is_refused(given, message):
    _, table, _ = intensities(n=20)
    with pytest.raises(ValueError, match=message):
        BayesCMC(**given, **FEW).fit(table)


def test_a_huge_table_is_refused_with_its_size():
    table = Intervals.from_triplets([0, 1, 2], [0, 1, 2], [1.0, 2.0, 3.0], shape=(10_000, 3_000))
    with pytest.raises(ValueError, match="30,000,000 cells"):
        BayesCMC(2, missing="low", **FEW).fit(table)
