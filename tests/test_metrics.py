"""Metrics: against their definitions, and at their edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import cohen_kappa_score, log_loss

from declip import metrics

CELLS = np.random.default_rng(0)
TRUTH, ESTIMATE = CELLS.normal(4, 2, 200), CELLS.normal(4, 2, 200)


def test_relative_rmse_is_the_error_over_the_size_of_the_truth():
    expected = np.sqrt(np.mean((ESTIMATE - TRUTH) ** 2)) / np.sqrt(np.mean(TRUTH**2))
    assert_allclose(metrics.relative_rmse(TRUTH, ESTIMATE), expected, rtol=1e-14)


def test_relative_rmse_does_not_depend_on_the_unit():
    once = metrics.relative_rmse(TRUTH, ESTIMATE)
    assert_allclose(metrics.relative_rmse(1e9 * TRUTH, 1e9 * ESTIMATE), once, rtol=1e-13)


@pytest.mark.parametrize(
    ("truth", "estimate", "expected"),
    [
        ([], [], np.nan),
        ([0.0, 0], [0.0, 0], 0.0),
        ([0.0, 0], [0.0, 1], np.inf),
        ([2.0], [2.0], 0.0),
    ],
    ids=["no cell", "zeros met", "zeros missed", "met"],
)
def test_edges_of_relative_rmse(truth, estimate, expected):
    assert_allclose(metrics.relative_rmse(truth, estimate), expected)


def test_clipped_relative_rmse_clips_both_before_comparing():
    expected = metrics.relative_rmse(np.clip(TRUTH, 1, 5), np.clip(ESTIMATE, 1, 5))
    assert metrics.clipped_relative_rmse(TRUTH, ESTIMATE, ceiling=5, floor=1) == expected


def test_estimates_beyond_the_limit_of_a_clipped_cell_are_perfect():
    assert metrics.clipped_relative_rmse([5, 1, 3], [99, -99, 3], ceiling=5, floor=1) == 0


def test_without_limits_the_clipped_error_is_the_error():
    expected = metrics.relative_rmse(TRUTH, ESTIMATE)
    assert metrics.clipped_relative_rmse(TRUTH, ESTIMATE) == expected
    assert metrics.clipped_relative_rmse(TRUTH, ESTIMATE, ceiling=np.inf) == expected


def test_limits_may_vary_by_cell_and_tables_need_not_be_flat():
    ceiling = np.linspace(3, 6, 200)
    flat = metrics.clipped_relative_rmse(TRUTH, ESTIMATE, ceiling=ceiling)
    table = [x.reshape(20, 10) for x in (TRUTH, ESTIMATE, ceiling)]
    assert metrics.clipped_relative_rmse(*table[:2], ceiling=table[2]) == flat


def test_interval_rmse_counts_exact_cells_from_both_sides_and_clipped_ones_from_one():
    lower = np.array([3.0, 3, 5, 5, -np.inf, -np.inf, 1])
    upper = np.array([3.0, 3, np.inf, np.inf, 1, 1, 2])
    estimate = np.array([2.0, 5, 4, 9, 4, -7, 1.5])
    distances = np.array([1.0, 2, 1, 0, 3, 0, 0])
    expected = np.sqrt(np.mean(distances**2))
    assert_allclose(metrics.interval_rmse(lower, upper, estimate), expected, rtol=1e-14)


def test_interval_rmse_of_no_cell_is_nan():
    assert np.isnan(metrics.interval_rmse([], [], []))


def test_f1_is_that_of_its_definition():
    at, said = TRUTH >= 5, ESTIMATE >= 5
    expected = 2 * (at & said).sum() / (at.sum() + said.sum())
    assert_allclose(metrics.at_ceiling_f1(TRUTH, ESTIMATE, 5), expected)


def test_f1_takes_a_threshold_other_than_the_ceiling():
    at, said = TRUTH >= 5, ESTIMATE >= 4.5
    expected = 2 * (at & said).sum() / (at.sum() + said.sum())
    assert_allclose(metrics.at_ceiling_f1(TRUTH, ESTIMATE, 5, threshold=4.5), expected)


def test_auc_is_the_chance_that_a_cell_at_the_ceiling_is_ranked_higher():
    at = TRUTH >= 5
    expected = (ESTIMATE[at][:, None] > ESTIMATE[~at]).mean()
    assert_allclose(metrics.at_ceiling_auc(TRUTH, ESTIMATE, 5), expected)


def test_average_precision_is_the_mean_precision_at_each_cell_found():
    at = (TRUTH >= 5)[np.argsort(-ESTIMATE)]
    expected = (np.cumsum(at) / np.arange(1, at.size + 1))[at].mean()
    assert_allclose(metrics.at_ceiling_average_precision(TRUTH, ESTIMATE, 5), expected)


def test_ceilings_that_vary_rank_cells_by_their_margin():
    # Above its ceiling by 1, and below it by 1: the higher estimate is the less likely one.
    assert metrics.at_ceiling_auc([3, 8], [4, 8], ceiling=[3, 9]) == 1


RANKINGS = [metrics.at_ceiling_f1, metrics.at_ceiling_average_precision, metrics.at_ceiling_auc]


@pytest.mark.parametrize("metric", RANKINGS)
def test_without_a_cell_at_the_ceiling_there_is_nothing_to_find(metric, recwarn):
    assert np.isnan(metric([1, 2], [3, 4], 5))
    assert np.isnan(metric([], [], 5))
    assert not recwarn.list


def test_without_an_exact_cell_nothing_can_be_ranked_below(recwarn):
    assert np.isnan(metrics.at_ceiling_auc([5, 5], [3, 4], 5))
    assert metrics.at_ceiling_average_precision([5, 5], [3, 4], 5) == 1
    assert metrics.at_ceiling_f1([5, 5], [3, 4], 5) == 0
    assert metrics.at_ceiling_f1([5, 5], [6, 7], 5) == 1
    assert not recwarn.list


@pytest.mark.parametrize("metric", RANKINGS)
def test_an_infinite_ceiling_is_refused(metric):
    with pytest.raises(ValueError, match="finite number for every cell"):
        metric([1, 2], [3, 4], [5, np.inf])


@pytest.mark.parametrize("metric", [metrics.relative_rmse, metrics.clipped_relative_rmse])
def test_shapes_that_differ_are_refused(metric):
    with pytest.raises(ValueError, match=r"same shape; got y_true \(2,\), y_pred \(3,\)"):
        metric([1, 2], [1, 2, 3])


LEVELS = [1, 2, 3, 4, 5]


def told_levels(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice(LEVELS, n), rng.choice(LEVELS, n), rng.dirichlet(np.ones(5), n)


def test_level_scores_agree_with_scikit_learn():
    truth, said, chances = told_levels()
    expected = cohen_kappa_score(truth, said, weights="quadratic", labels=LEVELS)
    assert metrics.quadratic_weighted_kappa(truth, said, LEVELS) == pytest.approx(expected)
    expected = log_loss(truth, chances, labels=LEVELS)
    assert metrics.level_log_score(truth, chances, LEVELS) == pytest.approx(expected)


def test_the_ranked_probability_score_is_a_sum_of_brier_scores():
    truth, _, chances = told_levels()
    expected = sum(np.mean((chances[:, :k].sum(axis=1) - (truth <= k)) ** 2) for k in LEVELS[:-1])
    assert metrics.ranked_probability_score(truth, chances, LEVELS) == pytest.approx(expected)


def test_level_scores_of_nothing_are_nan_and_of_the_impossible_infinite():
    assert np.isnan(metrics.level_log_score([], np.empty((0, 5)), LEVELS))
    assert np.isnan(metrics.ranked_probability_score([], np.empty((0, 5)), LEVELS))
    assert np.isnan(metrics.quadratic_weighted_kappa([2, 2], [2, 2], LEVELS))
    assert metrics.level_log_score([1], [[0, 1, 0, 0, 0]], LEVELS) == np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.level_log_score([6], [[1, 0, 0, 0, 0]], LEVELS), "6, which is none"),
        (lambda: metrics.level_log_score([1], [[0.5, 0.5]], LEVELS), r"got \(1, 2\)"),
        (lambda: metrics.level_log_score([1], [[0.5] * 5], LEVELS), "add up to 1"),
        (lambda: metrics.quadratic_weighted_kappa([1], [1, 2], LEVELS), "same length"),
    ],
)
def test_level_scores_refuse_what_makes_no_sense(call, message):
    with pytest.raises(ValueError, match=message):
        call()
