"""Columns with a long upper end are found, and restored on a scale of their own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from declip import Intervals, restore
from declip.restoration.expected import expected_distance, expected_squares, expected_value
from declip.restoration.predictive import CensoredMixture
from declip.restoration.settings import Settings
from declip.restoration.skewness import _misfit, _scales, skewed_columns
from declip.scaling import Scaling


def factors(n=120, p=6, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.4 * rng.normal(size=(n, p))
    return table / table.std(axis=0)


def below_ceilings(truth, share=0.8):
    ceiling = np.quantile(truth, share, axis=0)
    return np.minimum(truth, ceiling), ceiling


@pytest.fixture(scope="module")
def log_normal():
    truth = factors()
    truth[:, :3] = np.exp(truth[:, :3])
    return truth, *below_ceilings(truth)


def read(seen, ceiling):
    return Intervals.from_table(seen, ceiling=ceiling)


def test_log_normal_columns_are_found_and_normal_ones_are_not(log_normal):
    _, seen, ceiling = log_normal
    found = skewed_columns(read(seen, ceiling), Settings())
    assert_array_equal(found.skewed, [True] * 3 + [False] * 3)


@pytest.mark.parametrize(
    "settings",
    [{"log": [0, 1, 2]}, {"scale": "table"}, {"missing": "low"}],
)
def test_what_was_asked_for_is_not_changed(log_normal, settings):
    _, seen, ceiling = log_normal
    truth = np.where(seen > 0, seen, 0.1)
    assert skewed_columns(read(truth, ceiling), Settings(**settings)) is None


def test_two_clusters_are_not_taken_for_a_long_end():
    rng = np.random.default_rng(1)
    truth = factors(seed=1)
    high = rng.random(len(truth)) < 0.5
    truth[:, 0] = np.where(high, 4 + 0.5 * truth[:, 0], 0.3 * truth[:, 0])
    cells = read(*below_ceilings(truth))
    assert _misfit(cells, next(_scales(cells)))[0] > 1.2
    found = skewed_columns(cells, Settings())
    assert found is None or not found.skewed[0]


def test_the_misfit_is_that_of_kolmogorov_and_smirnov():
    x = np.random.default_rng(2).exponential(size=(80, 1))
    cells = Intervals.from_table(x)
    straight = next(_scales(cells)).only(np.zeros(1, bool))
    expected = stats.kstest((x[:, 0] - x.mean()) / x.std(), "norm").statistic * np.sqrt(80)
    # the largest distance is looked for at 63 points, between which it grows by less than 1 / 64
    assert_allclose(_misfit(cells, straight)[0], expected, atol=np.sqrt(80) / 64)


def test_restoring_them_is_better_less_biased_and_told(log_normal):
    truth, seen, ceiling = log_normal
    r = restore(seen, ceiling=ceiling)
    plain = restore(seen, ceiling=ceiling, scale="columns", missing="auto")
    assert plain.scaling.half_log is None
    at = (seen == ceiling) & r.scaling.half_log.skewed
    error, before = (np.sqrt(np.mean((x.table - truth)[at] ** 2)) for x in (r, plain))
    assert error < 0.97 * before
    assert abs((r.table - truth)[at].mean()) < abs((plain.table - truth)[at].mean())
    held = ((truth >= r.lower) & (truth <= r.upper))[at].mean()
    assert held > ((truth >= plain.lower) & (truth <= plain.upper))[at].mean()
    assert any("long upper end" in line for line in r.warnings)


def test_expected_values_are_those_of_draws(log_normal):
    _, seen, ceiling = log_normal
    cells = read(seen, ceiling)
    scaling = Scaling.of(cells, half_log=next(_scales(cells)))
    cols = np.array([0, 1])
    limit = scaling.forward(ceiling[cols], cols)
    reach = np.full((2, 2), -np.inf)
    centre, spread = np.full((1, 2), 0.3), np.full((1, 2), 0.7)
    law = CensoredMixture.of(limit, np.full(2, np.inf), reach, centre, spread)
    u = (np.arange(4000) + 0.5)[:, None] / 4000
    drawn = scaling.back(stats.truncnorm.ppf(u, (limit - 0.3) / 0.7, 9, 0.3, 0.7), cols)
    distance = expected_distance(scaling, law, cols)
    value = scaling.back(limit + distance, cols)
    assert_allclose(value, drawn.mean(axis=0), rtol=0.01)
    squares = expected_squares(scaling, law, cols, distance, np.array(law.moments()))
    unit = 0.5 * (scaling.back(np.ones(2), cols) - scaling.back(-np.ones(2), cols))
    true = [((drawn - x) ** 2).mean(axis=0) / unit**2 for x in (value, ceiling[cols])]
    # seven quantiles know little of what lies beyond the last one, at .975
    assert_allclose(squares, true, rtol=0.08)
    normal = scaling.back(stats.norm.ppf(u, 0.3, 0.7), cols)
    found = expected_value(scaling, centre[0], spread[0], cols)
    assert_allclose(found, normal.mean(axis=0), rtol=0.02)
