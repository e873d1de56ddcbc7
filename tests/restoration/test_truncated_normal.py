"""The law of a cell beyond its limit, against quadrature of its density."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import simpson
from scipy.stats import norm, truncnorm

from declip.restoration.tails import TruncatedNormal

INF = np.inf
CASES = [  # lower, upper, centre, spread, pull
    (1.0, INF, 0.0, 1.0, 1.0),
    (1.0, INF, 0.0, 1.0, 3.0),
    (1.0, INF, 5.0, 0.5, 1.0),
    (1.0, INF, 5.0, 0.5, 2.0),
    (8.0, INF, 0.0, 1.0, 1.5),
    (-INF, -1.0, 0.0, 1.0, 1.0),
    (-INF, 2.0, -3.0, 2.0, 4.0),
    (1.0, 2.0, 0.0, 1.0, 1.0),
    (1.0, 2.0, 9.0, 1.0, 1.0),
]


def law(lower, upper, centre, spread, pull):
    arrays = (np.array([x]) for x in (lower, upper, centre, spread))
    return TruncatedNormal.of(*arrays).pulled(np.array([pull]))


def density(case, z):
    arrays = (np.full(len(z), x) for x in case[:4])
    return np.exp(TruncatedNormal.of(*arrays).pulled(np.full(len(z), case[4])).log_density(z))


def ends(lower, upper, centre, spread, pull):
    far = max(abs(centre - x) for x in (lower, upper) if np.isfinite(x)) + 12 * spread
    return max(lower, centre - far), min(upper, centre + far)


def integral(case, low, high, value=np.ones_like):
    z = np.linspace(low, high, 100_001)
    return simpson(value(z) * density(case, z), x=z)


@pytest.mark.parametrize("case", CASES)
def test_density_integrates_to_one(case):
    assert_allclose(integral(case, *ends(*case)), 1, rtol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_mean_is_the_first_moment_of_the_density(case):
    expected = integral(case, *ends(*case), value=lambda z: z)
    assert_allclose(law(*case).mean(), expected, atol=1e-6 * case[3])


@pytest.mark.parametrize("case", [c for c in CASES if np.isposinf(c[1])])
def test_mean_below_a_cap_is_that_of_the_capped_value(case):
    cap = case[0] + 1.3 * case[3]
    expected = integral(case, *ends(*case), value=lambda z: np.minimum(z, cap))
    assert_allclose(law(*case).mean(np.array([cap])), expected, atol=1e-6 * case[3])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES)
def test_no_cap_at_all_is_an_infinite_one(case):
    cell = law(*case)
    assert_allclose(cell.mean(cell.sign * INF), cell.mean(), rtol=1e-14)


@pytest.mark.parametrize("case", [c for c in CASES if np.isposinf(c[1])])
def test_quantile_leaves_the_asked_share_beyond(case):
    q = law(*case).quantile(np.log(0.1))[0]
    assert_allclose(integral(case, case[0], q), 0.9, atol=1e-6)


def test_a_law_that_is_not_drawn_in_is_the_truncated_normal():
    lower = np.array([-1.0, 0.5, 3.0])
    tails = TruncatedNormal.of(lower, np.full(3, INF), np.zeros(3), np.ones(3))
    assert_allclose(tails.mean(), truncnorm.mean(lower, INF), atol=1e-9)
    assert_allclose(tails.surprise(lower + 1), norm.logsf(lower) - norm.logsf(lower + 1))


def test_a_pull_divides_the_distances_from_the_limit():
    plain, pulled = law(1.0, INF, 0.3, 0.8, 1.0), law(1.0, INF, 0.3, 0.8, 4.0)
    assert_allclose(pulled.mean() - 1, (plain.mean() - 1) / 4)
    assert_allclose(pulled.quantile(-2.0) - 1, (plain.quantile(-2.0) - 1) / 4)


def test_a_range_is_not_drawn_in():
    assert_allclose(law(1.0, 2.0, 0.3, 0.8, 4.0).mean(), law(1.0, 2.0, 0.3, 0.8, 1.0).mean())


def test_a_certain_cell_is_restored_to_its_prediction():
    tails = law(1.0, INF, 50.0, 1e-6, 1.0)
    assert_allclose(tails.mean(), 50.0, atol=1e-5)


def test_floors_mirror_ceilings():
    up, down = law(1.0, INF, 0.3, 0.8, 2.0), law(-INF, -1.0, -0.3, 0.8, 2.0)
    assert_allclose(down.mean(), -up.mean())
    assert_allclose(down.quantile(-2.0), -up.quantile(-2.0))


def test_values_never_fall_short_of_the_limit_however_far_out_it_is():
    limit = np.array([0.0, 5.0, 30.0, 300.0])
    tails = TruncatedNormal.of(limit, np.full(4, INF), np.zeros(4), np.ones(4))
    assert (tails.mean() > limit).all()
    # far out the tail is exponential with rate limit
    assert_allclose(tails.mean()[2:] - limit[2:], 1 / limit[2:], rtol=5e-3)
