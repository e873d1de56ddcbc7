"""What restore says of itself, on tables whose truth is known."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from declip import BayesCMC, Intervals, restore
from declip.reclip import reclip


def two_factors(seed, n=200, p=10):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))
    ceiling = np.quantile(truth, 0.75, axis=0)
    return truth, np.minimum(truth, ceiling), ceiling


def sales(seed, n=30, days=56):
    """Poisson demand with levels, weekdays and drift; what is sold is at most the stock."""
    rng = np.random.default_rng(seed)
    level, week = np.exp(rng.normal(2.5, 0.7, n)), np.exp(0.3 * rng.normal(size=7))
    drift = np.exp(rng.normal(0, 0.25, n)[:, None] * np.linspace(-1, 1, days))
    demand = rng.poisson(level[:, None] * week[np.arange(days) % 7] * drift).astype(float)
    stock = np.round(level * rng.uniform(0.9, 1.6, n))[:, None] * rng.uniform(0.8, 1.3, (n, days))
    stock = np.maximum(stock, 1).round()
    return demand, np.minimum(demand, stock), stock


def error(x, truth, at):
    return float(np.sqrt(np.mean((x - truth)[at] ** 2)))


@pytest.fixture(scope="module")
def factors():
    truth, seen, ceiling = two_factors(0)
    return truth, seen, ceiling, restore(seen, ceiling)


def test_bands_hold_their_share_of_a_table_from_the_model(factors):
    truth, seen, ceiling, r = factors
    at = seen == ceiling
    held = ((r.lower <= truth) & (truth <= r.upper))[at].mean()
    assert 0.84 <= held <= 0.96  # 500 cells: two standard errors of a share of 0.9 are 0.027


def test_the_error_is_near_that_of_the_model_itself(factors):
    truth, seen, ceiling, r = factors
    at = seen == ceiling
    bayes = BayesCMC(ceiling=ceiling, random_state=0).fit_transform(seen)
    assert error(r.table, truth, at) < 1.3 * error(bayes, truth, at)


def test_the_expected_gain_is_near_the_true_one(factors):
    truth, seen, ceiling, r = factors
    at = seen == ceiling
    true = 1 - error(r.table, truth, at) / error(seen, truth, at)
    low, high = r.expected_gain_range
    assert low <= true <= high
    assert abs(true - r.expected_gain) < 0.15


def test_under_logarithms_the_factors_said_are_near_the_true_ones(factors):
    logs, _, ceiling, _ = factors
    truth, ceiling = np.exp(2 * logs), np.exp(2 * ceiling)
    r = restore(np.minimum(truth, ceiling), ceiling, log=True)
    at = truth >= ceiling
    true = [
        np.exp(error(np.log(x), np.log(truth), at)) for x in (r.table, np.minimum(truth, ceiling))
    ]
    # errors of 500 cells from a model that is estimated: a fifth is more than they differ by chance
    assert np.log(r.expected_factors) == pytest.approx(np.log(true), rel=0.2)
    said = f"a factor of {r.expected_factors[0]:.2g}, limits by {r.expected_factors[1]:.2g}"
    assert said in " ".join(str(r).split())


def test_without_logarithms_no_factors_are_said(factors):
    r = factors[-1]
    assert np.isnan(r.expected_factors).all()
    assert "factor of" not in r.verdict


def test_new_rows_have_an_expected_gain_of_their_own(factors):
    truth, seen, ceiling, r = factors
    new = r.fold_in(seen[:50], ceiling)
    at = (seen == ceiling)[:50]
    true = 1 - error(new.table, truth[:50], at) / error(seen[:50], truth[:50], at)
    assert abs(true - new.expected_gain) < 0.15
    assert "nan" not in str(new)


def test_a_table_of_ranges_alone_is_said_to_be_restored_within_them():
    truth, *_ = two_factors(1)
    ranges = np.random.default_rng(0).random(truth.shape) < 0.2
    lower, upper = np.where(ranges, np.floor(truth), truth), np.where(ranges, np.ceil(truth), truth)
    r = restore(Intervals.from_bounds(lower, upper), effort="quick")
    assert r.verdict.startswith("No cell lies beyond a limit")
    assert f"{ranges.sum()}  restored within their range" in str(r)
    assert (np.abs(r.table - truth) <= 1)[ranges].all()


def test_hidden_values_are_exact_cells_each_counted_once(factors):
    _, seen, ceiling, r = factors
    assert 0 < r.reclip.n_hidden <= (seen < ceiling).sum()
    assert f"{r.reclip.n_hidden:,} exact values were hidden" in str(r)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_stock_outs_are_better_restored_than_left(seed):
    demand, seen, stock = sales(seed)
    r = restore(seen, stock)
    at = seen >= stock
    assert error(r.table, demand, at) < 0.9 * error(seen, demand, at)
    lost = (r.table - seen)[at].sum() / (demand - seen)[at].sum()
    assert 0.75 < lost < 1.25
    assert any("Rows differ in scale" in w for w in r.warnings)


def test_what_a_limit_far_from_the_values_hides_does_not_depend_on_it():
    # One analyte, three laboratories with limits .08, 1 and 3, truths about .1.
    rng = np.random.default_rng(1)
    n, p = 150, 6
    logs = 0.5 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))
    truth = np.exp(logs + np.log([0.1, 1, 5, 20, 2, 0.5]))
    floor = np.tile(np.quantile(truth, 0.1, axis=0), (n, 1))
    lab = rng.integers(3, size=n)
    floor[:, 0] = np.array([0.08, 1, 3])[lab]
    r = restore(np.maximum(truth, floor), floor=floor, log=True)
    for k in range(3):
        at = (truth[:, 0] <= floor[:, 0]) & (lab == k)
        ratio = np.exp(np.mean(np.log(r.table[at, 0] / truth[at, 0])))
        assert 0.7 < ratio < 1.45
        held = (r.lower[at, 0] <= truth[at, 0]) & (truth[at, 0] <= r.upper[at, 0] * (1 + 1e-9))
        assert held.mean() >= 0.75
    near = r.upper[(lab == 2) & (truth[:, 0] <= floor[:, 0]), 0]
    assert np.median(near) < 1.0  # far below the limit of 3


def test_bands_of_a_scale_of_whole_numbers_have_width():
    rng = np.random.default_rng(0)
    latent = 3.6 + rng.normal(size=(300, 1)) + 0.7 * rng.normal(size=(300, 6))
    seen = np.clip(np.round(latent), 1, 5)
    r = restore(seen, ceiling=5)
    at = seen == 5
    assert (r.upper[at] > r.lower[at]).all()
    held = ((r.lower <= latent) & (latent <= r.upper))[at].mean()
    assert 0.82 <= held <= 0.97
    assert any("recorded in steps" in w for w in r.warnings)


def survey_of_both_ends(seed):
    """Return a survey from 1 to 5 with more beyond either end, and its restoration."""
    rng = np.random.default_rng(seed)
    latent = 3.4 + rng.normal(size=(300, 1)) + 0.7 * rng.normal(size=(300, 6))
    seen = np.clip(np.round(latent), 1, 5)
    return latent, seen, restore(seen, floor=1, ceiling=5)


def test_a_scale_is_restored_at_both_of_its_ends():
    # from 1 to 5 only three answers stay exact: either end is tested with the other one in place
    latent, seen, r = survey_of_both_ends(1)
    at = (seen == 1) | (seen == 5)
    assert r.counts["restored"] == at.sum()
    held = ((r.lower <= latent) & (latent <= r.upper))[at].mean()
    assert 0.85 <= held <= 0.95  # 365 cells: three standard errors of a share of 0.9 are 0.047


def test_what_both_ends_of_a_scale_gain_is_said_within_eight_points():
    said, true = [], []
    for seed in range(3):
        latent, seen, r = survey_of_both_ends(seed)
        at = (seen == 1) | (seen == 5)
        # leaving a 5 is an error from 5 on, not from the 4.5 that it may stand for
        true.append(1 - error(r.table, latent, at) / error(seen, latent, at))
        said.append(r.expected_gain)
        low, high = r.expected_gain_range
        assert low <= true[-1] <= high
    assert min(true) > 0
    assert abs(np.mean(true) - np.mean(said)) < 0.08


def test_half_a_step_below_the_top_is_a_ceiling_too():
    rng = np.random.default_rng(0)
    seen = np.clip(
        np.round(3.6 + rng.normal(size=(200, 1)) + 0.7 * rng.normal(size=(200, 5))), 1, 5
    )
    one, other = restore(seen, ceiling=5, method="column"), restore(seen, 4.5, method="column")
    assert_array_equal(one.table, other.table)


def test_undetermined_cells_stay_at_their_limit_unless_a_guess_is_asked_for():
    truth, seen, _ = two_factors(2, n=80, p=5)
    seen = np.column_stack([np.minimum(truth, 1.0), np.full(80, 1.0)])
    seen[3, 5] = np.nan
    left, guessed = (
        restore(seen, ceiling=1.0, method="bayes", fill=f) for f in ("determined", "all")
    )
    assert (left.flags[:, 5] == "undetermined").all()
    assert_array_equal(left.table[:3, 5], 1.0)
    assert np.isnan(left.table[3, 5])
    assert np.isfinite(guessed.table).all()


def test_a_cell_in_an_undetermined_column_says_nothing_of_its_row():
    truth, _, _ = two_factors(2, n=80, p=5)
    seen = np.column_stack([np.minimum(truth, 1.0), np.full(80, 1.0)])
    seen[3, :5] = np.nan
    r = restore(seen, ceiling=1.0, method="bayes")
    assert (r.flags[3] == "undetermined").all()
    assert np.isnan(r.table[3, :5]).all()
    assert any("1 row (3) not determined" in w for w in r.warnings)


def test_rows_of_limits_alone_are_restored_by_their_columns():
    truth, _, _ = two_factors(3, n=80, p=5)
    seen = np.minimum(truth, 1.0)
    seen[0] = 1.0
    r = restore(seen, ceiling=1.0, method="bayes")
    assert (r.flags[0] == "restored").all()
    assert (r.table[0] > 1.0).all()


@pytest.mark.slow
def test_missing_cells_are_filled_about_as_well_as_by_the_best_method():
    truth, seen, ceiling = two_factors(4)
    gaps = np.random.default_rng(0).random(seen.shape) < 0.1
    seen = np.where(gaps, np.nan, seen)
    r = restore(seen, ceiling)
    bayes = BayesCMC(ceiling=ceiling, random_state=0).fit_transform(seen)
    assert error(r.table, truth, gaps) < 1.1 * error(bayes, truth, gaps)
    held = ((r.lower <= truth) & (truth <= r.upper))[gaps].mean()
    assert 0.82 <= held <= 0.97


def test_a_time_limit_that_strikes_is_told():
    _, seen, ceiling = two_factors(5, n=60, p=5)
    r = restore(seen, ceiling, time_limit=1e-9)
    assert any("time limit struck before" in w for w in r.warnings)


def test_work_and_not_time_decides(factors):
    _, seen, ceiling, r = factors
    again = restore(seen, ceiling, n_jobs=2)
    assert_array_equal(again.table, r.table)
    assert_array_equal(again.upper, r.upper)
    assert again.chosen == r.chosen


@pytest.mark.parametrize("effort", ["quick", pytest.param("thorough", marks=pytest.mark.slow), 0.5])
def test_every_effort_gives_a_restoration(effort):
    truth, seen, ceiling = two_factors(6, n=60, p=5)
    r = restore(seen, ceiling, effort=effort)
    at = seen == ceiling
    assert error(r.table, truth, at) < error(seen, truth, at)


@pytest.mark.slow
def test_sparse_ratings_are_restored_without_a_dense_array():
    rng = np.random.default_rng(0)
    truth = (
        4 + rng.normal(size=(80, 2)) @ rng.normal(size=(2, 60)) + 0.3 * rng.normal(size=(80, 60))
    )
    seen = sparse.csr_array(np.clip(np.round(truth), 1, 5) * (rng.random(truth.shape) < 0.3))
    r = restore(seen, ceiling=5)
    assert r.table.nnz == seen.nnz
    assert (r.table.data >= np.minimum(seen.data, 4.5)).all()


def test_single_precision_stays_so():
    _, seen, ceiling = two_factors(7, n=60, p=5)
    cells = seen.astype(np.float32)
    r = restore(cells, ceiling.astype(np.float32), method="column")
    assert r.table.dtype == np.float32
    assert_array_equal(r.table[r.flags == "exact"], cells[r.flags == "exact"])


def test_the_settings_make_the_same_restoration_again():
    _, seen, ceiling = two_factors(8, n=60, p=5)
    cells = Intervals.from_table(seen, ceiling)
    r = restore(cells, method="column", coverage=0.8, between=(-50, 50), random_state=4)
    assert_array_equal(restore(cells, **r.settings).upper, r.upper)


def test_a_wide_gap_between_limits_is_tested_by_exchanging_them():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(300, 2))
    ceiling = np.where(rng.random((300, 1)) < 0.5, -0.5, 1.0) * np.ones(2)
    cells = Intervals.from_table(np.minimum(table, ceiling), ceiling)
    shown = reclip(cells, 0.1, floors=False, ceilings=True, exchanged=0.5, seed=1)
    inner = shown.limit == -0.5  # exact cells that got the limit of another row
    assert inner.sum() > 20
    assert not shown.censored[inner].any()
    assert (shown.value[inner] >= -0.5).all()


def test_rows_and_columns_change_places_where_rows_have_the_units():
    _, seen, stock = sales(3)
    one = restore(seen, stock, method="bayes")
    other = restore(seen.T, stock.T, method="bayes", scale="columns")
    assert one.transposed
    assert_array_equal(one.table, other.table.T)
    rows, cols = np.nonzero(seen >= stock)
    assert_array_equal(one.predict(rows[:5], cols[:5]), other.predict(cols[:5], rows[:5]))
