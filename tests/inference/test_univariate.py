"""One column alone under censoring, against lifelines, statsmodels and a textbook."""

import warnings

import numpy as np
import pytest
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time
from numpy.testing import assert_allclose
from scipy.stats import norm
from statsmodels.imputation.ros import impute_ros

from declip.inference.univariate import half_limit, kaplan_meier, max_likelihood, ros

# Arsenic in Manoa Stream, Oahu: Helsel (2005), Nondetects and Data Analysis, chapter 6; `Oahu` of
# the R package NADA, and of the tests of statsmodels.
OAHU = np.array([3.2, 2.8, *[2.0] * 8, 1.7, 1.5, *[1.0] * 4, 0.9, 0.9, 0.7, 0.7, 0.6, *[0.5] * 3])
BELOW = np.isin(np.arange(24), [*range(2, 10), *range(12, 16), 17])


def floors(values, below):
    return np.where(below, -np.inf, values), values


@pytest.fixture
def exposure():
    """Lognormal values below three limits."""
    rng = np.random.default_rng(0)
    truth, limit = rng.lognormal(size=120), rng.choice([0.3, 0.7, 1.1], 120)
    return np.maximum(truth, limit), truth < limit


@pytest.mark.parametrize(
    ("estimator", "mean", "sd", "median"),
    [
        # survfit (mirrored, the last time at 0.5) of survival 3.5 in R, statsmodels, and survreg
        (kaplan_meier, 0.949, None, 0.700),
        (ros, 0.972, 0.718, 0.700),
        (max_likelihood, 0.945, 0.656, 0.777),
    ],
)
def test_arsenic_of_the_textbook(estimator, mean, sd, median):
    found = estimator(*floors(OAHU, BELOW), log=True)
    assert found.mean() == pytest.approx(mean, abs=5e-4)
    assert found.quantile(0.5) == pytest.approx(median, abs=5e-4)
    assert sd is None or found.sd() == pytest.approx(sd, abs=5e-4)


def test_the_arsenic_and_its_regression_are_those_of_statsmodels():
    from statsmodels.imputation.tests import test_ros as theirs

    book = theirs.Test_ROS_HelselArsenic
    np.testing.assert_array_equal(np.sort(book.res), np.sort(OAHU))
    np.testing.assert_array_equal(np.sort(book.res[book.cen]), np.sort(OAHU[BELOW]))
    found = ros(*floors(OAHU, BELOW), log=True)
    assert found.mean() == pytest.approx(book.expected_final.mean(), abs=5e-3)  # two decimals
    assert found.sd() == pytest.approx(book.expected_final.std(ddof=1), abs=5e-3)


def test_kaplan_meier_of_ceilings_is_that_of_lifelines():
    rng = np.random.default_rng(0)
    truth, limit = rng.weibull(1.5, 90), rng.uniform(0.2, 2, 90)
    time, seen = np.minimum(truth, limit), truth <= limit
    km = kaplan_meier(time, np.where(seen, time, np.inf))
    peer = KaplanMeierFitter().fit(time, seen)
    at = np.linspace(0.05, time[seen].max() * 0.999, 7)
    assert_allclose([km.above(t) for t in at], peer.predict(at), atol=1e-12)
    assert km.quantile(0.5) == peer.median_survival_time_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        last = restricted_mean_survival_time(peer, t=time.max())
    assert km.mean() == pytest.approx(last, rel=1e-9)


def test_kaplan_meier_of_floors_is_that_of_the_mirrored_values(exposure):
    values, below = exposure
    km = kaplan_meier(*floors(values, below))
    peer = KaplanMeierFitter().fit(10 - values, ~below)
    at = [0.8, 1.5, 3.0]
    # P(X > x) = P(10 - X < 10 - x), just short of it
    assert_allclose([km.above(x) for x in at], 1 - peer.predict([10 - x - 1e-9 for x in at]))


def test_limits_on_both_sides_come_to_kaplan_meier_if_one_side_is_empty(exposure):
    values, below = exposure
    lower, upper = floors(values, below)
    one_more = np.append(lower, [0.0]), np.append(upper, [1e9])  # a range that says nothing
    km, both = kaplan_meier(lower, upper), kaplan_meier(*one_more)
    assert both.above(1.2) == pytest.approx(km.above(1.2), abs=0.01)
    assert both.weight.sum() == pytest.approx(1)


def test_ros_is_that_of_statsmodels(exposure):
    values, below = exposure
    found = ros(*floors(values, below), log=True)
    assert_allclose(found.value, np.sort(impute_ros(values, below)), rtol=1e-10)


def test_ros_of_ceilings_is_that_of_mirrored_values():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=60)
    seen = np.minimum(truth, 0.5)
    low = ros(np.where(truth > 0.5, -np.inf, -seen), -seen)
    high = ros(seen, np.where(truth > 0.5, np.inf, seen))
    assert_allclose(high.value, -low.value[::-1])


def test_maximum_likelihood_makes_the_likelihood_largest(exposure):
    values, below = exposure
    found = max_likelihood(*floors(values, below), log=True)

    def loss(centre, scale):
        z = (np.log(values) - centre) / scale
        return -np.where(below, norm.logcdf(z), norm.logpdf(z) - np.log(scale)).sum()

    best = loss(found.centre, found.scale)
    for step in (-0.01, 0.01):
        assert loss(found.centre + step, found.scale) > best
        assert loss(found.centre, found.scale + step) > best


def test_without_limits_all_agree_on_the_mean():
    x = np.random.default_rng(0).normal(10, 1, 50)
    for estimator in (kaplan_meier, ros, max_likelihood, half_limit):
        assert estimator(x, x).mean() == pytest.approx(x.mean())


def test_nothing_is_estimated_without_exact_values():
    lower, upper = np.full(5, -np.inf), np.ones(5)
    assert kaplan_meier(lower, upper) is ros(lower, upper) is max_likelihood(lower, upper) is None
