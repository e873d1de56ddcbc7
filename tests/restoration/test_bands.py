"""Tails and bands fitted to hidden cells."""

import numpy as np
from numpy.testing import assert_allclose

from declip.restoration.bands import Hazards, Observation, calibrated
from declip.restoration.tails import Tails


def drawn(rate, n=20_000, seed=0, cap=np.inf):
    """Cells of one column whose surprise is exponential with a known rate."""
    rng = np.random.default_rng(seed)
    limit = rng.normal(size=n)
    tails = Tails.of(limit, np.full(n, np.inf), np.zeros(n), np.ones(n))
    exponent = rng.exponential(1 / rate, n)
    value = tails.quantile(-np.minimum(exponent, cap))
    return Observation(np.zeros(n, int), tails, value, exponent > cap)


def test_the_rate_of_lighter_tails_is_found():
    assert_allclose(Hazards.of([drawn(3.0, 4000)], 1, 0.9).values[1], 3.0, rtol=0.06)  # 4 s.e.


def test_the_rate_is_found_from_censored_cells_too():
    found = Hazards.of([drawn(2.0, 4000, cap=0.3)], 1, 0.9).values[1]
    assert_allclose(found, 2.0, rtol=0.08)


def test_heavier_tails_widen_the_bands_and_leave_the_values():
    found = Hazards.of([drawn(0.5, 4000)], 1, 0.9)
    assert found.values[1] == 1.0
    assert_allclose(found.reach, -np.log(0.1) / 0.5, rtol=0.1)


def test_a_side_without_hidden_cells_has_normal_tails():
    assert Hazards.of([drawn(3.0, 500)], 1, 0.9).values[0, 0] == 1.0


def test_calibrated_is_the_quantile_if_all_is_known():
    sizes = np.random.default_rng(0).exponential(size=4001)
    found = calibrated(sizes, np.ones(4001, bool), 0.9, lambda share: -np.log1p(-share))
    assert_allclose(found, np.quantile(sizes, 0.9), rtol=0.01)


def test_calibrated_sees_through_censoring():
    rng = np.random.default_rng(0)
    sizes, bound = rng.exponential(2.0, 20_000), rng.exponential(8.0, 20_000)
    known = sizes <= bound
    found = calibrated(np.minimum(sizes, bound), known, 0.9, lambda share: -np.log1p(-share))
    assert_allclose(found, 2 * np.log(10), rtol=0.05)


def test_calibrated_extends_the_nominal_law_where_nothing_is_seen():
    sizes = np.random.default_rng(0).exponential(2.0, 20_000)
    found = calibrated(np.minimum(sizes, 1.0), sizes < 1, 0.9, lambda share: -np.log1p(-share))
    assert_allclose(found, 2 * np.log(10), rtol=0.05)


def test_calibrated_falls_back_on_the_nominal_law_without_any_known_size():
    assert calibrated(np.ones(3), np.zeros(3, bool), 0.9, lambda share: 10 * share) == 9
