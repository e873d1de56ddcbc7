"""The fitted matrix: factors, offsets, and what they stand for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from declip.lowrank import LowRank


def make(seed=0, shape=(7, 5), k=3, *, bias=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A, B = (rng.standard_normal((n, k + bias)).astype(dtype) for n in shape)
    return LowRank(A, B, 1.5 if bias else 0.0, bias)


@pytest.fixture(params=[False, True], ids=["factors", "offsets"])
def model(request):
    return make(bias=request.param)


def test_block_is_factors_plus_offsets_plus_mean():
    model = make(bias=True)
    X = model.A[:, :3] @ model.B[:, :3].T + model.A[:, 3:] + model.B[:, 3] + 1.5
    assert_allclose(model.block(), X, rtol=1e-14, atol=1e-14)


def test_a_part_of_a_block_is_the_part_of_the_whole(model):
    rows, cols = np.array([4, 0, 4]), np.array([1, 3])
    assert_allclose(
        model.block(rows, cols), model.block()[np.ix_(rows, cols)], rtol=1e-13, atol=1e-14
    )
    assert_allclose(model.block(slice(2, 5)), model.block()[2:5], rtol=1e-13, atol=1e-14)


def test_predict_agrees_with_block(model):
    rng = np.random.default_rng(1)
    rows, cols = rng.integers(0, 7, 40, np.int32), rng.integers(0, 5, 40, np.int32)
    X = model.block()[rows, cols]
    assert_allclose(model.predict(rows, cols), X, rtol=1e-13, atol=1e-14)
    assert_array_equal(model.predict(rows, cols, threads=3), model.predict(rows, cols))


def test_predict_of_no_cells_is_empty(model):
    none = np.array([], np.int32)
    assert model.predict(none, none).shape == (0,)


def test_transpose_stands_for_the_transpose(model):
    assert_allclose(model.T.block(), model.block().T, rtol=1e-13, atol=1e-14)
    assert model.T.shape == model.shape[::-1]


def test_rank_counts_factors_not_offsets(model):
    assert model.rank == 3
    assert model.P.shape == (7, 3)
    assert model.Q.shape == (5, 3)


def test_offsets_are_zero_without_bias():
    model = make()
    assert not model.row_offset.any()
    assert not model.col_offset.any()


def test_seen_from_rows_is_linear_in_the_rows(model):
    for seen in (model, model.T):
        design, offset = seen.design()
        assert_allclose(seen.A @ design.T + offset, seen.block(), rtol=1e-13, atol=1e-14)


def test_seen_from_rows_leaves_the_model_alone(model):
    before = model.B.copy()
    model.design()
    assert_array_equal(model.B, before)


def test_squared_norm_counts_everything(model):
    assert_allclose(model.squared_norm(), (model.A**2).sum() + (model.B**2).sum(), rtol=1e-14)


def test_squared_norm_of_single_precision_is_summed_in_double():
    ones = np.ones((2**13, 2**12), np.float32)
    assert LowRank(ones, ones[:1]).squared_norm() == 2**25 + 2**12  # beyond 2^24, where 1 is lost


# Balancing.


def test_balancing_keeps_the_matrix(model):
    assert_allclose(model.balanced()[0].block(), model.block(), rtol=1e-12, atol=1e-13)


def test_balancing_leaves_offsets_alone():
    model = make(bias=True)
    balanced = model.balanced()[0]
    assert_array_equal(balanced.row_offset, model.row_offset)
    assert_array_equal(balanced.col_offset, model.col_offset)


def test_half_the_squared_norm_of_balanced_factors_is_the_trace_norm():
    model = make()
    balanced, S, _ = model.balanced()
    trace_norm = np.linalg.norm(model.block(), "nuc")
    assert_allclose(0.5 * balanced.squared_norm(), trace_norm, rtol=1e-13)
    assert_allclose(S.sum(), trace_norm, rtol=1e-13)


def test_balanced_factors_are_orthogonal_and_alike(model):
    balanced, S, _ = model.balanced()
    for F in (balanced.P, balanced.Q):
        assert_allclose(F.T @ F, np.diag(S), rtol=0, atol=1e-13 * S[0])


def test_balancing_returns_the_maps_it_used(model):
    balanced, _, (M, N) = model.balanced()
    assert_allclose(balanced.P, model.P @ M, rtol=1e-13, atol=1e-14)
    assert_allclose(balanced.Q, model.Q @ N, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("case", ["repeated column", "zero column", "all zero", "one side zero"])
def test_balancing_keeps_rank_deficient_matrices(case):
    model = make()
    A, B = model.A.copy(), model.B.copy()
    if case == "repeated column":
        A[:, 2] = A[:, 1]
    elif case == "zero column":
        B[:, 0] = 0
    else:
        A[:] = 0
        B *= case == "one side zero"
    deficient = LowRank(A, B)
    balanced, S, _ = deficient.balanced()
    assert_allclose(balanced.block(), deficient.block(), rtol=0, atol=1e-13)
    assert_allclose(0.5 * balanced.squared_norm(), S.sum(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(2, 9), (9, 2), (1, 1), (3, 3)])
def test_balancing_keeps_matrices_with_more_factors_than_rows(shape):
    model = make(shape=shape, k=6)
    balanced, S, _ = model.balanced()
    assert balanced.A.shape == (shape[0], 6)
    assert_allclose(balanced.block(), model.block(), rtol=0, atol=1e-12)
    assert_allclose(0.5 * balanced.squared_norm(), S.sum(), rtol=1e-12)


def test_balancing_keeps_single_precision():
    balanced = make(dtype=np.float32).balanced()[0]
    assert balanced.A.dtype == balanced.B.dtype == np.float32


# Moving.


def test_toward_runs_through_both_points(model):
    other = make(seed=5, bias=model.bias)
    assert_array_equal(model.toward(other, 0.0).A, model.A)
    assert_allclose(model.toward(other, 1.0).B, other.B, rtol=1e-14, atol=1e-14)
    assert_allclose(model.toward(other, 2.0).A, 2 * other.A - model.A, rtol=1e-14, atol=1e-14)


def test_toward_keeps_single_precision():
    one, other = make(dtype=np.float32), make(seed=5, dtype=np.float32)
    assert one.toward(other, 1.3).A.dtype == np.float32


def test_mapped_multiplies_the_factors_only():
    model = make(bias=True)
    mapped = model.mapped(2 * np.eye(3), 3 * np.eye(3))
    assert_array_equal(mapped.P, 2 * model.P)
    assert_array_equal(mapped.Q, 3 * model.Q)
    assert_array_equal(mapped.row_offset, model.row_offset)


def test_astype_changes_the_precision_and_keeps_the_rest():
    model = make(bias=True)
    single = model.astype(np.float32)
    assert single.A.dtype == np.float32
    assert (single.mean, single.bias) == (model.mean, model.bias)
    # Three products and three sums of numbers below 4.
    assert_allclose(single.block(), model.block(), rtol=0, atol=50 * np.finfo(np.float32).eps)
