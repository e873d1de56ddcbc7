"""Standard normal noise between two ends, against quadrature of its density and against scipy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import simpson
from scipy.stats import truncnorm

from declip.truncated import log_mass, moments, quantile

INF = np.inf
ENDS = {
    "whole line": (-INF, INF),
    "half line": (0.0, INF),
    "about the middle": (-1.0, 2.0),
    "tail above": (8.0, INF),
    "tail below": (-INF, -8.0),
    "40 deviations out": (40.0, INF),
    "40 deviations below": (-INF, -40.0),
    "a piece of the tail": (40.0, 40.5),
    "a narrow piece of the tail": (-40.0 - 1e-9, -40.0),
    "narrow": (1.0, 1.0 + 1e-9),
    "almost all": (-40.0, 40.0),
    "from far below": (-40.0, 1.0),
}
each_interval = pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)


def grid(a, b):
    """Return points that hold all of the mass, and the density there, relative to its highest."""
    peak = np.clip(0.0, a, b)
    width = 40 / (1 + abs(peak))
    z = np.linspace(max(a, peak - width), min(b, peak + width), 20_001)
    return z, np.exp(-0.5 * (z - peak) * (z + peak)), peak


def arrays(ends):
    return (np.array([end]) for end in ends)


@each_interval
def test_moments_are_those_of_the_density(ends):
    z, density, peak = grid(*ends)
    mass = simpson(density, x=z)
    mean = simpson((z - peak) * density, x=z) / mass
    variance = simpson((z - peak - mean) ** 2 * density, x=z) / mass
    found = [x[0] for x in moments(*arrays(ends))]
    # the variance is 1 minus a number near 1 in a tail: so many digits are left of 16
    assert_allclose(found[0], peak + mean, atol=1e-9, rtol=1e-12)
    assert_allclose(found[1], variance, atol=1e-9)


@each_interval
def test_mass_is_the_integral_of_the_density(ends):
    z, density, peak = grid(*ends)
    expected = np.log(simpson(density, x=z)) - 0.5 * peak**2 - 0.5 * np.log(2 * np.pi)
    assert_allclose(log_mass(*arrays(ends))[0], expected, rtol=1e-8, atol=1e-8)


@each_interval
@pytest.mark.parametrize("survival", [0.9, 0.5, 0.05])
def test_so_much_lies_beyond_a_quantile(ends, survival):
    (at,) = quantile(*arrays(ends), np.log(survival))
    assert ends[0] <= at <= ends[1]
    beyond = log_mass(np.array([at]), np.array([ends[1]])) - log_mass(*arrays(ends))
    # near 40 deviations numbers are 7e-15 apart: in an interval 1e-9 wide, 1e-5 of it
    assert_allclose(np.exp(beyond), survival, rtol=3e-5)


def test_scipy_agrees_where_it_is_sure_of_itself():
    a, b = np.array([-1.0, 0.5, -INF]), np.array([2.0, INF, 0.3])
    assert_allclose(moments(a, b), truncnorm.stats(a, b), rtol=1e-10)
    assert_allclose(quantile(a, b, np.log(0.3)), truncnorm.isf(0.3, a, b), rtol=1e-10)


def test_an_interval_without_width_is_its_point():
    a = np.array([-40.0, 0.0, 3.0])
    mean, variance = moments(a, a)
    assert_allclose(mean, a)
    assert_allclose(variance, 0, atol=1e-12)
    assert_allclose(quantile(a, a, np.log(0.5)), a)
    assert (log_mass(a, a) < -700).all()
