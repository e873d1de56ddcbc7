"""Statistics of complete values: estimates, their variance, and intervals of shares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from declip.inference.pooling import Pooled
from declip.inference.statistics import Statistic, statistics_of


def spread_over_samples(statistic, draw, n=200, repeats=2000):
    rng = np.random.default_rng(0)
    found = np.array([statistic.of(np.sort(draw(rng, n))) for _ in range(repeats)])
    return found[:, 0].std(), np.sqrt(found[:, 1].mean())


@pytest.mark.parametrize(
    ("name", "log"),
    [("mean", False), ("mean", True), ("geometric_mean", True), ("sd", False), ("median", True)],
)
def test_the_standard_error_is_the_spread_over_samples(name, log):
    def draw(rng, n):
        return np.exp(0.5 * rng.standard_normal(n))

    true, told = spread_over_samples(Statistic(name, log), draw)
    # 2,000 samples: 1.6 % of the spread is chance; the rest are approximations of order 1 / n
    assert told == pytest.approx(true, rel=0.12)


def test_the_mean_of_concentrations_covers_though_they_are_skewed():
    rng, covered = np.random.default_rng(0), 0
    mean = Statistic("mean", log=True)
    for _ in range(1000):
        estimate, variance = mean.of(np.sort(rng.lognormal(size=40)))
        covered += abs(estimate - 0.5) < 2.023 * np.sqrt(variance)  # t with 39 degrees
    assert 0.93 < covered / 1000 < 0.965  # 0.95 within two standard errors; 0.89 on the plain scale


def test_values_next_to_nothing_do_not_widen_the_mean_of_concentrations():
    # 24 of 40 drawn at 1e-9 of the others: their logarithms have a standard deviation of 10, by
    # which the mean would have a standard error of exp(51)
    seen = np.exp(np.linspace(-1, 1, 16))
    found = Statistic("mean", log=True).of(np.sort([*seen, *(1e-9 * np.ones(24))]))
    assert found[1] < 0.05


def test_wilsons_interval_of_a_share_without_imputation():
    # 3 of 20 by Wilson (1927): 0.0524 to 0.3604
    pooled = Pooled(np.array(0.15), np.sqrt(0.15 * 0.85 / 20), np.array(np.inf), np.array(0.0))
    found = Statistic("share_above", criterion=1.0).interval(pooled, np.array(20), 0.95)
    assert_allclose(found, [0.15, 0.0524, 0.3604], atol=5e-5)


def test_a_share_of_nothing_has_an_interval():
    pooled = Pooled(np.array(0.0), np.array(0.0), np.array(np.inf), np.array(0.0))
    _, low, high = Statistic("share_above", criterion=1.0).interval(pooled, np.array(20), 0.95)
    z2 = norm.ppf(0.975) ** 2
    assert_allclose([low, high], [0, z2 / (20 + z2)], atol=1e-12)


def test_logarithms_of_what_has_none_are_not_told():
    assert np.isnan(Statistic("geometric_mean").of(np.array([-1.0, 2, 3]))).all()


def test_unknown_statistics_are_refused():
    with pytest.raises(ValueError, match=r"no statistic 'mode'.*percentiles such as 'p90'"):
        statistics_of(["mean", "mode"])


@pytest.mark.filterwarnings("error")
def test_an_end_beyond_all_numbers_is_infinite_without_a_warning():
    pooled = Pooled(*(np.array(x) for x in (1.0, 1e3, 2.0, 0.5)))
    assert Statistic("sd", log=True).interval(pooled, np.array(3), 0.95)[2] == np.inf
