"""The only door to singular values, against numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, aslinearoperator

from declip import svd
from declip.svd import (
    SparsePlusLowRank,
    balancing_maps,
    leading,
    operator_norm,
    product_svd,
    shrink,
    trace_norm,
    truncated_svd,
)

KINDS = {
    "array": np.asarray,
    "sparse": sparse.csr_array,
    "operator": aslinearoperator,
}
# Below, at and above the side from which it is iterative (128).
SHAPES = [(1, 1), (1, 30), (5, 3), (90, 80), (128, 128), (129, 200), (200, 129)]


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
    X = matrix((130, 140))
    U, S, V = truncated_svd(X, 130, 0)
    assert_allclose((U * S) @ V.T, X, rtol=0, atol=1e-12)


def test_asking_for_all_but_one_value_works():
    X = matrix((130, 140))
    S = truncated_svd(X, 129, 0)[1]
    assert_allclose(S, np.linalg.svd(X, compute_uv=False)[:129], rtol=1e-8)


def test_the_same_seed_gives_the_same_vectors():
    X = matrix((130, 140))
    one, two = (truncated_svd(X, 3, 7) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_operator_norm_is_the_largest_singular_value(shape, kind):
    X = matrix(shape)
    assert_allclose(operator_norm(KINDS[kind](X)), np.linalg.norm(X, 2), rtol=1e-10)


@pytest.mark.parametrize("shape", [(250, 300), (700, 600)], ids=["dense", "iterative"])
def test_a_cluster_of_largest_singular_values_does_not_hold_up_the_norm(shape):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((n, min(shape))))[0] for n in shape)
    S = np.linspace(0.5, 0, min(shape))
    S[:12] = 1 - 1e-8 * np.arange(12)  # as of a gradient at the optimum
    assert_allclose(operator_norm((U * S) @ V.T), 1.0, rtol=1e-10)
    assert_allclose(truncated_svd((U * S) @ V.T, 1, 0).S, 1.0, rtol=1e-8)


def test_a_search_that_does_not_end_is_made_again_with_less_to_ask(monkeypatch):
    real = svd.svds
    asked = []

    def stubborn(A, *, tol, **how):
        asked.append(tol)
        if len(asked) == 1:
            raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))
        return real(A, tol=tol, **how)

    monkeypatch.setattr(svd, "svds", stubborn)
    X = matrix((130, 140))
    assert_allclose(truncated_svd(X, 2, 0).S, np.linalg.svd(X, compute_uv=False)[:2], rtol=1e-8)
    assert asked == [1e-5, 1e-4]


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_norm_of_extreme_numbers_neither_overflows_nor_vanishes(size):
    X = matrix((30, 40))
    assert_allclose(operator_norm(size * X) / size, np.linalg.norm(X, 2), rtol=1e-10)


def test_operator_norm_of_an_operator_that_only_has_products():
    X = matrix((300, 150))
    A = LinearOperator(X.shape, matvec=lambda v: X @ v, rmatvec=lambda u: X.T @ u, dtype=float)
    assert_allclose(operator_norm(A), np.linalg.norm(X, 2), rtol=1e-10)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_operator_norm_of_nothing_is_zero(shape):
    assert operator_norm(np.zeros(shape)) == 0.0


@pytest.mark.parametrize("shape", [(3, 4), (150, 140)])
@pytest.mark.parametrize("kind", KINDS)
def test_operator_norm_of_zeros_is_zero(shape, kind):
    assert operator_norm(KINDS[kind](np.zeros(shape))) == 0.0


@pytest.mark.parametrize("size", [1e-12, 1e-160, 1e12])
def test_operator_norm_follows_the_size_of_the_matrix(size):
    X = matrix((150, 140))
    # ARPACK takes eigenvalues of X^T X below eps^(2/3) for small and iterates less on them.
    assert_allclose(operator_norm(size * X), size * np.linalg.norm(X, 2), rtol=1e-8)


def test_operator_norm_of_a_rank_one_matrix():
    u, v = matrix(300), matrix(150, 1)
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


# Sparse plus low rank.


def sparse_plus_low_rank(shape=(9, 6), k=2, seed=0):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((shape[0], k)), rng.standard_normal((shape[1], k))
    parts = [
        sparse.random_array(shape, density=0.3, rng=rng, data_sampler=rng.standard_normal).tocsr()
        for _ in range(2)
    ]
    return SparsePlusLowRank(A, B, parts), A @ B.T + parts[0].toarray() + parts[1].toarray()


def test_sparse_plus_low_rank_is_the_sum_of_its_parts():
    operator, dense = sparse_plus_low_rank()
    # Sums of a dozen products of size 1, in another order: here and in the next tests.
    assert_allclose(operator.toarray(), dense, rtol=0, atol=1e-14)


@pytest.mark.parametrize("width", [1, 4])
def test_products_with_sparse_plus_low_rank_are_those_of_its_matrix(width):
    operator, _ = sparse_plus_low_rank()
    dense, V, U = operator.toarray(), matrix((6, width), 1), matrix((9, width), 2)
    assert_allclose(operator @ V, dense @ V, rtol=0, atol=1e-13)
    assert_allclose(operator.T @ U, dense.T @ U, rtol=0, atol=1e-13)
    assert_allclose(operator @ V[:, 0], dense @ V[:, 0], rtol=0, atol=1e-13)
    assert_allclose(operator.rmatvec(U[:, 0]), dense.T @ U[:, 0], rtol=0, atol=1e-13)


def test_a_low_rank_matrix_alone_has_no_sparse_part():
    A, B = matrix((5, 2)), matrix((4, 2), 1)
    assert_allclose(SparsePlusLowRank(A, B).toarray(), A @ B.T, rtol=0, atol=1e-15)


# The prox of the trace norm.


def product(found):
    return (found.U * found.S) @ found.V.T


def shrunk(X, threshold, most=1000):
    """Singular value thresholding, from the definition."""
    U, S, Vt = np.linalg.svd(X, full_matrices=False)
    S = np.maximum(S - threshold, 0)
    S[most:] = 0
    return (U * S) @ Vt


def with_spectrum(shape, S, seed=0):
    """A matrix with given singular values, and its right singular vectors."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((n, len(S))))[0] for n in shape)
    return (U * S) @ V.T, V


# Beyond 128 in the smaller side the eigenvectors of the Gram matrix are used.
DENSE = [(1, 1), (1, 30), (5, 3), (30, 40), (150, 140), (140, 200)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", DENSE)
@pytest.mark.parametrize("share", [0.0, 1e-7, 0.5, 0.999])
def test_shrink_is_singular_value_thresholding(shape, kind, share):
    X = matrix(shape)
    threshold = share * np.linalg.norm(X, 2)
    found = product(shrink(KINDS[kind](X), threshold))
    # From the Gram matrix a singular value s is off by eps |X|^2 / s; it is not used where s may
    # be below 1e-5 of |X| (about 20), which leaves 1e-10.
    assert_allclose(found, shrunk(X, threshold), rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", DENSE)
def test_shrink_returns_orthonormal_vectors_and_falling_values(shape):
    X = matrix(shape)
    found = shrink(X, 0.3 * np.linalg.norm(X, 2))
    for F in (found.U, found.V):
        assert_allclose(F.T @ F, np.eye(len(found.S)), rtol=0, atol=1e-9)
    assert (found.S > 0).all()
    assert (np.diff(found.S) <= 0).all()


@pytest.mark.parametrize("shape", DENSE)
@pytest.mark.parametrize("cells", [svd._DENSE_UP_TO, 0], ids=["dense", "matrix-free"])
def test_shrink_by_more_than_the_norm_leaves_nothing(shape, cells, monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", cells)
    X = matrix(shape)
    U, S, V = shrink(X, 1.001 * np.linalg.norm(X, 2))
    assert (U.shape, S.shape, V.shape) == ((shape[0], 0), (0,), (shape[1], 0))


@pytest.mark.parametrize("shape", [(30, 40), (150, 140)])
def test_shrink_keeps_no_more_than_max_rank(shape):
    X = matrix(shape)
    found = shrink(X, 0.1, max_rank=3)
    assert len(found.S) == 3
    assert_allclose(product(found), shrunk(X, 0.1, 3), rtol=0, atol=1e-9)


# Singular values that fall by 5 from one to the next: after two power steps with a width of 8, the
# first three are off by (s_9 / s_3)^3 = (5^-6)^3 = 3e-13 of s_1 = 100 at most.
FALLING = 100 * 0.2 ** np.arange(30)


def around_a_large_level(shape, seed=0):
    """A matrix in single precision whose mean is 10,000 times what varies around it."""
    return (1e4 + matrix(shape, seed)).astype(np.float32)


@pytest.mark.parametrize("shape", [(129, 200), (200, 129)])
def test_shrink_in_single_precision_finds_values_far_below_the_largest(shape):
    A = around_a_large_level(shape)
    exact = np.linalg.svd(A.astype(float), compute_uv=False)
    threshold = 1.05 * exact[1]  # 2e-5 of the largest, which alone exceeds it
    found = shrink(A, threshold)
    assert found.U.dtype == found.V.dtype == np.float32
    assert_allclose(found.S, exact[:1] - threshold, rtol=1e-6)


@pytest.mark.parametrize("shape", [(129, 200), (200, 129)])
def test_leading_in_single_precision_has_orthonormal_vectors(shape):
    found = leading(around_a_large_level(shape), None)
    assert len(found.S) == min(shape)
    for F in (found.U, found.V):
        # Rounding, 6e-8, is of the level, 1e4 times the smaller directions.
        assert_allclose(F.T @ F, np.eye(len(found.S)), atol=1e-2)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (150, 140)])
def test_matrix_free_shrink_is_singular_value_thresholding(shape, warm, monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    X, V = with_spectrum(shape, FALLING)
    found = shrink(aslinearoperator(X), 2.0, V[:, :3] if warm else None)
    assert len(found.S) == 3
    assert_allclose(product(found), shrunk(X, 2.0), rtol=0, atol=1e-9)


def test_matrix_free_shrink_from_the_vectors_sought_needs_no_decay(monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    # With V the leading vectors exactly, A V spans their images: no power step is needed.
    X, V = with_spectrum((60, 40), np.linspace(2, 1, 40))
    found = shrink(aslinearoperator(X), 1.5, V[:, :20])
    assert_allclose(product(found), shrunk(X, 1.5), rtol=0, atol=1e-12)


def test_matrix_free_shrink_widens_until_all_values_above_the_threshold_are_found(monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    X, _ = with_spectrum((90, 70), np.r_[np.linspace(20, 10, 25), np.full(45, 1e-6)])
    found = shrink(aslinearoperator(X), 5.0)
    # The rest is 1e-7 of the least value sought; its cube is below rounding.
    assert_allclose(product(found), shrunk(X, 5.0), rtol=0, atol=1e-11)


def test_matrix_free_shrink_keeps_no_more_than_max_rank(monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    X, _ = with_spectrum((60, 40), FALLING)
    found = shrink(aslinearoperator(X), 0.0, max_rank=2)
    assert_allclose(product(found), shrunk(X, 0.0, 2), rtol=0, atol=1e-9)


def test_matrix_free_shrink_from_a_start_of_zeros(monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    X, _ = with_spectrum((60, 40), FALLING)
    found = shrink(aslinearoperator(X), 2.0, np.zeros((40, 1)))
    assert_allclose(product(found), shrunk(X, 2.0), rtol=0, atol=1e-9)


# The leading triplets.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", DENSE)
def test_leading_of_a_small_matrix_is_all_of_it(shape, kind):
    X = matrix(shape)
    # The least singular values of these are above 1e-3 of the largest: 1e-12 by the Gram matrix.
    assert_allclose(product(leading(KINDS[kind](X), None)), X, rtol=0, atol=1e-9)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_matrix_free_leading_finds_the_largest_triplets(warm, monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    X, V = with_spectrum((60, 40), FALLING)
    found = leading(aslinearoperator(X), 3, V[:, :2] if warm else None)
    assert_allclose(found.S, FALLING[:3], rtol=1e-9)
    assert_allclose(product(found), shrunk(X, 0.0, 3), rtol=0, atol=1e-9)


def test_matrix_free_leading_of_all_triplets_is_the_matrix(monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    X = matrix((30, 20))
    assert_allclose(product(leading(aslinearoperator(X), None)), X, rtol=0, atol=1e-12)


# The trace norm.


def test_few_triplets_of_a_table_that_is_not_large_are_those_of_numpy():
    # rank 5 plus noise a thousand times smaller: power steps find the five to rounding of the gap
    rng = np.random.default_rng(0)
    A = rng.standard_normal((520, 5)) @ rng.standard_normal((5, 600))
    A += 1e-3 * rng.standard_normal(A.shape)
    wanted = np.linalg.svd(A, compute_uv=False)[:5]
    assert_allclose(shrink(A, 1.0, max_rank=5).S, wanted - 1.0, rtol=1e-8)
    assert_allclose(leading(A, 5).S, wanted, rtol=1e-8)


def test_the_trace_norm_of_a_small_matrix_is_exact():
    operator, dense = sparse_plus_low_rank()
    expected = np.linalg.svd(dense, compute_uv=False).sum()
    assert_allclose(trace_norm(operator, np.nan, np.array([np.nan])), expected, rtol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_the_trace_norm_of_a_large_matrix_is_bounded_from_above(seed, monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    operator, dense = sparse_plus_low_rank(seed=seed)
    low_rank = np.linalg.norm(operator.A @ operator.B.T, "nuc")
    rest = sum(part.toarray() for part in operator.parts)
    bound = trace_norm(operator, low_rank, rest)
    assert bound >= np.linalg.norm(dense, "nuc")
    assert_allclose(bound, low_rank + np.sqrt(6) * np.linalg.norm(rest), rtol=1e-13)


def test_product_svd_is_that_of_the_product():
    rng = np.random.default_rng(0)
    P, Q = rng.standard_normal((9, 3)), rng.standard_normal((7, 3))
    P[:, 2] = P[:, 0]  # rank 2
    U, S, V = product_svd(P, Q)
    assert_allclose((U * S) @ V.T, P @ Q.T, atol=1e-13)
    assert_allclose(U.T @ U, np.eye(2), atol=1e-14)
    assert_allclose(V.T @ V, np.eye(2), atol=1e-14)


@pytest.mark.parametrize("least", [1e-1, 1e-9], ids=["well posed", "ill posed"])
def test_a_power_step_from_the_singular_vectors_returns_the_triplets(least):
    rng = np.random.default_rng(11)
    U, V = (np.linalg.qr(rng.normal(size=(n, 20)))[0] for n in (200, 300))
    S = np.geomspace(1, least, 20)
    found = svd._power_steps((U * S) @ V.T, V, 1)
    # Rounding, 1e-16 of the largest, moves the least singular value by 1e-7 of itself.
    assert_allclose(found.S, S, rtol=1e-6)
    assert_allclose(found.U.T @ found.U, np.eye(20), atol=1e-6)
    assert_allclose((found.U * found.S) @ found.V.T, (U * S) @ V.T, atol=1e-12)


def test_triplets_of_a_span_in_single_precision_are_orthonormal():
    rng = np.random.default_rng(12)
    Q, V, W = (np.linalg.qr(rng.normal(size=(n, 20)))[0] for n in (200, 300, 20))
    S = np.geomspace(1, 1e-3, 20)
    found = svd._ritz(Q.astype(np.float32), ((V * S) @ W).astype(np.float32))
    # Rounding, 6e-8 of the largest, is 6e-5 of the least; of squares it would be 0.06.
    assert_allclose(found.V.T @ found.V, np.eye(20), atol=1e-3)
    assert_allclose(found.S, S, rtol=1e-3)
