import numpy as np
import pytest
from scipy import sparse
from tests.diagnostics import dense
from tests.helpers import low_rank

from declip.diagnostics.tangent import Tangent
from declip.lowrank import LowRank


def random_case(seed):
    rng = np.random.default_rng(seed)
    n1, n2 = rng.integers(5, 14, 2)
    r = int(rng.integers(1, 4))
    M = low_rank(rng, (n1, n2), r)
    return rng, M, *dense.bases(M, r)


def test_coordinates_keep_the_norm():
    rng, M, U, V = random_case(0)
    tangent = Tangent(U, V)
    x = tangent.project(rng.standard_normal(tangent.n_coordinates))
    rows, cols = (i.ravel().astype(np.int32) for i in np.indices(M.shape))
    Z = tangent.at_cells(x, rows, cols)
    assert np.linalg.norm(Z) == pytest.approx(np.linalg.norm(x), rel=1e-13)
    np.testing.assert_allclose(dense.projector(U, V) @ Z, Z, atol=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_margin_equals_the_dense_computation(seed):
    rng, M, U, V = random_case(seed)
    mask = rng.random(M.shape) < 0.8
    found = Tangent(U, V).smallest(sparse.csr_array(mask.astype(float)))
    assert found == pytest.approx(max(dense.margin(U, V, mask), 0), abs=1e-10)


def test_all_cells_exact_gives_margin_one():
    _, M, U, V = random_case(1)
    assert Tangent(U, V).smallest(sparse.csr_array(np.ones(M.shape))) == pytest.approx(1, abs=1e-12)


def test_a_row_without_cells_gives_margin_zero():
    _, M, U, V = random_case(2)
    mask = np.ones(M.shape)
    mask[3] = 0
    assert Tangent(U, V).smallest(sparse.csr_array(mask)) == pytest.approx(0, abs=1e-12)


def test_no_cells_weigh_nothing():
    _, M, U, V = random_case(3)
    assert Tangent(U, V).largest(sparse.csr_array(np.zeros(M.shape)))[0] == 0


def test_many_equal_eigenvalues_do_not_keep_lanczos_from_an_answer():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((16, 14))  # T is everything, all eigenvalues are 0 or 1
    U, V = dense.bases(M, 14)
    found = Tangent(U, V).largest(sparse.csr_array((M > 0).astype(float)))[0]
    assert found == pytest.approx(1, abs=1e-12)


def test_offsets_add_the_constant_to_both_spaces():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((9, 3)), rng.standard_normal((8, 3))
    tangent = Tangent.of(LowRank(A, B, 0.3, bias=True))
    # derivative of P Q^T + b 1^T + 1 c^T in a random direction lies in the space, and all of it
    dA, dB = rng.standard_normal(A.shape), rng.standard_normal(B.shape)
    Z = dA[:, :2] @ B[:, :2].T + A[:, :2] @ dB[:, :2].T + dA[:, 2:] + dB[:, 2:].T
    P = dense.projector(tangent.U, tangent.V)
    np.testing.assert_allclose(P @ Z.ravel(), Z.ravel(), atol=1e-12)
    assert tangent.n_factors == (3, 3)
    assert tangent.dimension == round(np.trace(P))


def test_offsets_already_in_the_factors_are_not_counted_twice():
    rng = np.random.default_rng(0)
    A = np.column_stack([np.ones(9), rng.standard_normal(9)])
    B = rng.standard_normal((8, 2))
    assert Tangent.of(LowRank(A, B, bias=True)).n_factors == (1, 2)


def test_factors_without_weight_are_left_out():
    rng = np.random.default_rng(0)
    P, Q = rng.standard_normal((9, 3)), rng.standard_normal((8, 3))
    Q[:, 2] *= 1e-9
    assert Tangent.of(LowRank(P, Q)).n_factors == (2, 2)
