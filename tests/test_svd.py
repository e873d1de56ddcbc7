"""The only door to singular values, against numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from declip.svd import balancing_maps, operator_norm, truncated_svd

KINDS = {
    "array": np.asarray,
    "sparse": sparse.csr_array,
    "operator": aslinearoperator,
}
# Below, at and above the side from which it is iterative (64).
SHAPES = [(1, 1), (1, 30), (5, 3), (64, 64), (65, 200), (200, 65), (90, 80)]


def matrix(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_are_those_of_numpy(shape, kind):
    X = matrix(shape)
    k = min(4, *shape)
    _, S, _ = truncated_svd(KINDS[kind](X), k, 0)
    assert_allclose(S, np.linalg.svd(X, compute_uv=False)[:k], rtol=1e-10)  # ARPACK ends at eps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_triplets_are_singular_triplets(shape, kind):
    X = matrix(shape)
    U, S, V = truncated_svd(KINDS[kind](X), min(4, *shape), 0)
    identity = np.eye(len(S))
    for F in (U, V):
        assert_allclose(F.T @ F, identity, rtol=0, atol=1e-10)
    assert_allclose(X @ V, U * S, rtol=0, atol=1e-9 * S[0])


def test_asking_for_every_value_is_dense():
    X = matrix((70, 80))
    U, S, V = truncated_svd(X, 70, 0)
    assert_allclose((U * S) @ V.T, X, rtol=0, atol=1e-12)


def test_asking_for_all_but_one_value_works():
    X = matrix((70, 80))
    S = truncated_svd(X, 69, 0)[1]
    assert_allclose(S, np.linalg.svd(X, compute_uv=False)[:69], rtol=1e-8)


def test_the_same_seed_gives_the_same_vectors():
    X = matrix((80, 90))
    one, two = (truncated_svd(X, 3, 7) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_operator_norm_is_the_largest_singular_value(shape, kind):
    X = matrix(shape)
    assert_allclose(operator_norm(KINDS[kind](X)), np.linalg.norm(X, 2), rtol=1e-10)


def test_operator_norm_of_an_operator_that_only_has_products():
    X = matrix((300, 100))
    A = LinearOperator(X.shape, matvec=lambda v: X @ v, rmatvec=lambda u: X.T @ u, dtype=float)
    assert_allclose(operator_norm(A), np.linalg.norm(X, 2), rtol=1e-10)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_operator_norm_of_nothing_is_zero(shape):
    assert operator_norm(np.zeros(shape)) == 0.0


@pytest.mark.parametrize("shape", [(3, 4), (100, 90)])
@pytest.mark.parametrize("kind", KINDS)
def test_operator_norm_of_zeros_is_zero(shape, kind):
    assert operator_norm(KINDS[kind](np.zeros(shape))) == 0.0


@pytest.mark.parametrize("size", [1e-12, 1e-160, 1e12])
def test_operator_norm_follows_the_size_of_the_matrix(size):
    X = matrix((100, 90))
    assert_allclose(operator_norm(size * X), size * np.linalg.norm(X, 2), rtol=1e-10)


def test_operator_norm_of_a_rank_one_matrix():
    u, v = matrix(300), matrix(90, 1)
    norm = np.linalg.norm(u) * np.linalg.norm(v)
    assert_allclose(operator_norm(np.outer(u, v)), norm, rtol=1e-10)


def test_balancing_maps_give_balanced_singular_vectors():
    P, Q = matrix((9, 3)), matrix((6, 3), 1)
    S, M, N = balancing_maps(P, Q)
    assert_allclose(S, np.linalg.svd(P @ Q.T, compute_uv=False)[:3], rtol=1e-12)
    assert_allclose((P @ M) @ (Q @ N).T, P @ Q.T, rtol=0, atol=1e-12)
    assert_allclose((P @ M).T @ (P @ M), np.diag(S), rtol=0, atol=1e-12)


def test_balancing_maps_of_zeros_are_zero():
    S, M, N = balancing_maps(np.zeros((4, 2)), np.zeros((3, 2)))
    assert not S.any()
    assert not M.any()
    assert not N.any()
