"""TruncatedNormal and bands fitted to hidden cells."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from declip.restoration.bands import Observation, TailShrinkage, calibrated
from declip.restoration.tails import TruncatedNormal


def drawn(pull, n=4000, seed=0, cap=np.inf, cols=0):
    """Cells of one column at a ceiling, whose distances are those of their laws over ``pull``.

    ``cap`` is the surprise from which on only a bound of them is known.
    """
    rng = np.random.default_rng(seed)
    limit = rng.normal(size=n)
    tails = TruncatedNormal.of(limit, np.full(n, np.inf), np.zeros(n), np.ones(n))
    exponent = rng.exponential(size=n)
    value = tails.pulled(np.full(n, pull)).quantile(-np.minimum(exponent, cap))
    return Observation(np.full(n, cols), tails, value, exponent > cap)


def test_the_pull_of_columns_that_end_sooner_is_found():
    assert_allclose(TailShrinkage.of([drawn(3.0)], 1, 0.9).values[1], 3.0, rtol=0.1)


def test_the_pull_is_found_from_censored_cells_too():
    assert_allclose(TailShrinkage.of([drawn(2.0, cap=0.5)], 1, 0.9).values[1], 2.0, rtol=0.1)


def test_the_pull_does_not_depend_on_the_side():
    up = drawn(3.0, 200)
    down = Observation(up.cols, replace(up.tails, sign=-up.tails.sign), -up.value, up.censored)
    found = [TailShrinkage.of([side], 1, 0.9).values for side in (up, down)]
    assert_allclose(found[0][::-1], found[1])


def test_heavier_tails_widen_the_bands_and_leave_the_values():
    found = TailShrinkage.of([drawn(0.5)], 1, 0.9)
    assert found.values[1] == 1.0
    assert found.reach > 2 * -np.log(0.1)


def test_bands_hold_their_share_of_the_cells_that_calibrate_them():
    seen = drawn(2.0, 500)
    found = TailShrinkage.of([seen], 1, 0.9)
    far = found.pull(seen.tails, seen.cols).quantile(-found.reach)
    assert_allclose(np.mean(seen.value <= far), 0.9, atol=0.01)


def test_little_evidence_is_used_with_caution():
    # of laws that are right: the fewer cells, the nearer to the limit values stay
    few, many = (
        np.mean(
            [TailShrinkage.of([drawn(1.0, n, seed)], 1, 0.9).values[1, 0] for seed in range(10)]
        )
        for n in (5, 500)
    )
    assert 1 <= many < 1.1 < few < 2


def test_columns_with_little_evidence_go_with_the_table():
    rich, poor = drawn(4.0, 400, cols=0), drawn(4.0, 1, cols=1)
    parts = (
        TruncatedNormal(
            *(np.concatenate(x) for x in zip(*map(_arrays, (rich, poor)), strict=True))
        ),
        *(np.concatenate([getattr(s, k) for s in (rich, poor)]) for k in ("value", "censored")),
    )
    both = Observation(np.repeat([0, 1], [400, 1]), *parts)
    assert_allclose(np.log(TailShrinkage.of([both], 2, 0.9).values[1]), np.log(4), atol=0.8)


def _arrays(seen):
    return [getattr(seen.tails, name) for name in TruncatedNormal.__dataclass_fields__]


def test_a_side_without_hidden_cells_does_not_hold_back_the_other():
    values = TailShrinkage.of([drawn(3.0, 500)], 1, 0.9).values
    assert_allclose(values[1], 3.0, rtol=0.3)


def test_laws_that_are_sharp_and_right_are_left_alone():
    limit, n = np.zeros(50), 50
    centre = np.linspace(0.5, 2, n)
    tails = TruncatedNormal.of(limit, np.full(n, np.inf), centre, np.full(n, 1e-4))
    seen = Observation(np.zeros(n, int), tails, centre, np.zeros(n, bool))
    assert_allclose(TailShrinkage.of([seen], 1, 0.9).values[1], 1, atol=1e-3)


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
