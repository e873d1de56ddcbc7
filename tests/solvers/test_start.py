"""Where a fit begins: beyond the limits, not of rank one, and the same for the same seed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.helpers import low_rank

from declip import Intervals
from declip.lowrank import LowRank
from declip.solvers import restart_dead_factors, start_model, start_scale

INITS = ["random", "svd"]
SHAPE = (30, 20)


def table(seed=0):
    return 3 + low_rank(seed, SHAPE, 4)


def clipped(seed=0):
    X = table(seed)
    return Intervals.from_table(np.minimum(X, 5.0), ceiling=5.0)


def start(intervals, rank=3, *, bias=False, init="random", seed=0):
    return start_model(intervals, rank, bias, init, np.random.default_rng(seed))


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("bias", [False, True])
def test_the_start_has_the_rank_that_was_asked_for(init, bias):
    model = start(clipped(), 3, bias=bias, init=init)
    S = np.linalg.svd(model.P @ model.Q.T, compute_uv=False)
    # A perturbation of a hundredth of the spread; a start of rank one would leave 1e-16.
    assert S[2] > 1e-4 * S[0]
    assert (model.rank, model.shape, model.bias) == (3, SHAPE, bias)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("bias", [False, True])
def test_the_same_seed_gives_the_same_start(init, bias):
    one, two = (start(clipped(), bias=bias, init=init, seed=4) for _ in range(2))
    assert_array_equal(one.A, two.A)
    assert_array_equal(one.B, two.B)


def test_another_seed_gives_another_random_start():
    assert (start(clipped(), seed=0).A != start(clipped(), seed=1).A).all()


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("bias", [False, True])
def test_the_start_of_the_mirrored_table_is_the_mirrored_start(init, bias):
    X = np.minimum(table(), 5.0)
    up = start(Intervals.from_table(X, ceiling=5.0), bias=bias, init=init)
    down = start(Intervals.from_table(-X, floor=-5.0), bias=bias, init=init)
    if bias and init == "random":  # factors without a level: only the mean has a sign
        assert down.mean == -up.mean
        assert_array_equal(down.A, up.A)
    else:
        assert_allclose(down.block(), -up.block(), rtol=1e-10, atol=1e-10)


def test_a_random_start_lies_beyond_a_ceiling():
    assert start(clipped()).block().min() > 5.0


def test_a_random_start_lies_beyond_a_floor():
    intervals = Intervals.from_table(np.maximum(table(), 1.0), floor=1.0)
    assert start(intervals).block().max() < 1.0


def test_a_random_start_between_ceiling_and_floor_lies_at_the_mean():
    intervals = Intervals.from_table(np.clip(table(), 1.0, 5.0), ceiling=5.0, floor=1.0)
    mean = np.clip(table(), 1.0, 5.0).mean()
    # Perturbed by about a hundredth of a spread of 1.5, times sqrt of the level over the spread.
    assert_allclose(start(intervals).block(), mean, atol=1.0)


def test_with_offsets_the_mean_carries_the_level():
    model = start(clipped(), bias=True)
    assert_allclose(model.mean, np.minimum(table(), 5.0).mean(), rtol=1e-12)
    assert not model.row_offset.any()
    assert not model.col_offset.any()


def test_an_svd_start_of_a_complete_table_is_its_truncated_svd():
    X = table()
    U, S, Vt = np.linalg.svd(X)
    best = (U[:, :3] * S[:3]) @ Vt[:3]
    assert_allclose(start(Intervals.from_table(X), init="svd").block(), best, rtol=0, atol=1e-9)


def test_an_svd_start_puts_missing_cells_at_the_mean():
    X = table()
    X[np.random.default_rng(1).random(SHAPE) < 0.3] = np.nan
    filled = np.where(np.isnan(X), np.nanmean(X), X)
    U, S, Vt = np.linalg.svd(filled)
    best = (U[:, :3] * S[:3]) @ Vt[:3]
    assert_allclose(start(Intervals.from_table(X), init="svd").block(), best, rtol=0, atol=1e-9)


def test_an_svd_start_with_offsets_takes_deviations_from_the_mean():
    X = table()
    U, S, Vt = np.linalg.svd(X - X.mean())
    best = X.mean() + (U[:, :3] * S[:3]) @ Vt[:3]
    model = start(Intervals.from_table(X), init="svd", bias=True)
    assert_allclose(model.block(), best, rtol=0, atol=1e-9)


def test_an_svd_start_of_a_large_table_agrees_with_numpy():
    rng = np.random.default_rng(2)
    X = 1 + rng.standard_normal((150, 3)) @ rng.standard_normal((3, 120))
    model = start(Intervals.from_table(X), 4, init="svd")  # iterative, of exact rank 4
    assert_allclose(model.block(), X, rtol=0, atol=1e-8)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_start_has_the_precision_of_the_table(init, dtype):
    model = start(clipped().astype(dtype), init=init)
    assert model.A.dtype == model.B.dtype == dtype


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("value", [0.0, 4.0])
def test_a_constant_table_has_a_finite_start(init, value):
    model = start(Intervals.from_table(np.full((5, 4), value)), 2, init=init)
    assert np.isfinite(model.block()).all()


def test_a_random_start_of_a_constant_table_is_not_of_rank_one():
    model = start(Intervals.from_table(np.full((5, 4), 4.0)), 2)
    assert np.linalg.matrix_rank(model.block()) == 2


def test_the_scale_begins_at_the_spread_of_the_values():
    assert_allclose(start_scale(clipped()), np.minimum(table(), 5.0).std(), rtol=1e-12)


@pytest.mark.parametrize(("value", "scale"), [(4.0, 4.0), (-4.0, 4.0), (0.0, 1.0)])
def test_the_scale_of_a_constant_table_is_positive(value, scale):
    assert start_scale(Intervals.from_table(np.full((5, 4), value))) == scale


# A warm start.


def revived_model(P):
    rng = np.random.default_rng(0)
    intervals = Intervals.from_table(rng.normal(size=(12, 8)))
    model = LowRank(P, rng.normal(size=(8, P.shape[1])))
    return model, restart_dead_factors(model, intervals, rng)


def test_factors_that_are_there_are_left_as_they_are():
    model, again = revived_model(np.ones((12, 3)))
    assert again is model


def test_a_factor_that_has_faded_away_begins_anew_and_the_others_stay():
    P = np.ones((12, 3))
    P[:, 1] = 0
    model, again = revived_model(P)
    assert (again.P[:, 1] != 0).all()
    assert np.array_equal(again.P[:, [0, 2]], model.P[:, [0, 2]])
    assert np.array_equal(again.Q[:, [0, 2]], model.Q[:, [0, 2]])
