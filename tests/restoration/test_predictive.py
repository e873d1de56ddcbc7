"""The predictive distribution of a censored cell, against numerical integration."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from declip.restoration.predictive import CensoredMixture

INF = np.inf


def law(lower, upper, centre, spread, reach=-INF, log_c=0.0):
    """One cell with some components."""
    ends = np.array([float(lower)]), np.array([float(upper)])
    centre, spread = (np.array(x, float)[:, None] for x in (centre, spread))
    return CensoredMixture.of(*ends, np.full((2, 1), reach), centre, spread).shrunk(
        np.array([float(log_c)])
    )


def density(mixture, v):
    return float(np.exp(mixture.log_density(np.array([v])))[0])


CASES = {
    "ceiling": law(1.0, INF, [0.0, 0.5], [1.0, 0.7]),
    "drawn in": law(1.0, INF, [0.0, 1.5], [1.0, 0.7], log_c=0.6),
    "drawn out": law(1.0, INF, [0.0], [1.0], log_c=-0.4),
    "floor": law(-INF, -0.3, [0.2, -1.0], [0.5, 0.6], log_c=0.3),
    "seen beyond its limit": law(-1.0, INF, [0.5, 0.0], [0.6, 0.9], reach=0.8, log_c=0.7),
    "bounded": law(1.0, INF, [0.5], [1.0], log_c=0.5).within(np.array([-9.0]), np.array([2.0])),
    "range": law(0.0, 1.0, [0.7, 0.2], [0.4, 1.0], log_c=0.9),
}


@pytest.mark.parametrize("mixture", CASES.values(), ids=CASES)
def test_the_density_integrates_to_one(mixture):
    far = min(float(mixture.far[0]), 12.0)
    parts = sorted({float(mixture.limit[0]), min(float(mixture.anchor[0]), far), far})
    total = sum(quad(lambda v: density(mixture, v), a, b)[0] for a, b in pairwise(parts))
    assert_allclose(total, 1, atol=1e-7)  # what quad promises


@pytest.mark.parametrize("mixture", CASES.values(), ids=CASES)
def test_moments_are_those_of_the_density(mixture):
    limit, far = float(mixture.limit[0]), min(float(mixture.far[0]), 12.0)
    parts = sorted({limit, min(float(mixture.anchor[0]), far), far})
    found = [m[0] for m in mixture.moments()]
    for power, moment in zip((1, 2), found, strict=True):
        whole = sum(
            quad(lambda v, k=power: (v - limit) ** k * density(mixture, v), a, b)[0]
            for a, b in pairwise(parts)
        )
        assert_allclose(moment, whole, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("mixture", CASES.values(), ids=CASES)
@pytest.mark.parametrize("survival", [0.05, 0.1, 0.5, 0.95])
def test_quantiles_invert_the_survival(mixture, survival):
    at = mixture.quantile(survival)
    assert_allclose(np.exp(mixture.log_survival(at)), survival, rtol=1e-6)


@pytest.mark.parametrize("sds", [-60.0, -3.0, 8.0, 60.0])
def test_quantiles_hold_wherever_the_limit_lies(sds):
    survival = 0.1
    at = law(sds, INF, [0.0], [1.0]).quantile(survival)
    assert_allclose(norm.logsf(at) - norm.logsf(sds), np.log(survival), rtol=1e-6)


def test_a_floor_mirrors_a_ceiling():
    up, down = law(1.0, INF, [0.3], [0.5]), law(-INF, -1.0, [-0.3], [0.5])
    assert_allclose(up.moments(), down.moments())
    assert_allclose(down.sign, -1)


def test_what_was_seen_beyond_a_limit_is_not_drawn_in():
    # a limit of -3 says next to nothing of a cell at 0 +- 0.1, whatever the shrinkage beyond 0.5
    plain = law(-3.0, INF, [0.0], [0.1], reach=0.5)
    drawn = law(-3.0, INF, [0.0], [0.1], reach=0.5, log_c=1.0)
    assert_allclose(drawn.moments()[0], plain.moments()[0], rtol=1e-6)
    assert_allclose(drawn.moments()[0], 3.0, rtol=1e-6)


def test_a_pool_is_the_weighted_mean_of_its_members():
    one, two = law(1.0, INF, [0.0], [1.0]), law(1.0, INF, [2.0], [0.5], log_c=0.3)
    pool = CensoredMixture.pooled([one, two], [0.25, 0.75])
    at = np.array([1.7])
    for ask in (lambda m: m.moments()[0], lambda m: np.exp(m.log_survival(at))):
        assert_allclose(ask(pool), 0.25 * ask(one) + 0.75 * ask(two))


@pytest.mark.parametrize("sds", [8.0, 40.0])
def test_a_limit_far_out_in_the_tail_is_taken(sds):
    mean, square = law(sds, INF, [0.0], [1.0]).moments()
    hazard = np.exp(norm.logpdf(sds) - norm.logsf(sds))
    assert_allclose(mean, hazard - sds, rtol=1e-6)
    assert np.isfinite(square).all()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("survival", [0.05, 0.5, 0.95])
def test_the_quantile_of_one_component_needs_no_search(name, survival):
    mixture, first = CASES[name], slice(1)
    shrinkage = np.broadcast_to(mixture.log_shrinkage, mixture.centre.shape)[first]
    parts = {"centre": mixture.centre[first], "spread": mixture.spread[first]}
    one = replace(mixture, weight=np.ones(1), log_shrinkage=shrinkage, **parts)
    found = one.at_survival(np.full(len(one), np.log(survival)))
    assert_allclose(found, one.quantile(survival), atol=1e-6)
