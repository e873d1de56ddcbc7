"""The errata of the paper (docs/guide/errata.md) that no other test shows."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from declip import ExactCMC

C, K = 5.0, 4


def printed_start(n1, n2):
    return tuple((C + 1) / np.sqrt(K) * np.ones((n, K)) for n in (n1, n2))


def ridge(M, other, alpha):
    """Return the update of one side of a table without clipped cells."""
    return np.linalg.solve(other.T @ other + alpha * np.eye(K), other.T @ M.T).T


def objective(M, P, Q, alpha):
    return 0.5 * np.sum((M - P @ Q.T) ** 2) + 0.5 * alpha * (np.sum(P**2) + np.sum(Q**2))


def coherence(X, rank):
    U, _, Vt = np.linalg.svd(X)
    return max((U[:, :rank] ** 2).sum(axis=1).max(), (Vt[:rank] ** 2).sum(axis=0).max())


def test_1_the_printed_start_has_the_square_of_the_level_in_every_cell():
    P, Q = printed_start(3, 5)
    assert_allclose(P @ Q.T, (C + 1) ** 2)


def test_2_from_the_printed_start_the_rank_stays_one():
    # In exact arithmetic: sqrt(K) is 2, and the table is of whole numbers.
    M = np.minimum(np.add.outer(np.arange(4), np.arange(5)), int(C))
    P, Q = (np.full((n, K), Fraction(3)) for n in M.shape)
    for _ in range(2):
        Q = exact_half(M.T, P, (P @ Q.T).T)
        P = exact_half(M, Q, P @ Q.T)
    assert np.all(P == P[:, :1])
    assert np.all(Q == Q[:, :1])
    assert len(set(P[:, 0])) > 1  # the sweeps did something


def exact_half(M, other, before):
    """Return the printed update of one side, alpha = 1/10, by elimination in fractions."""
    rows = []
    for m, x in zip(M, before, strict=True):
        active = other[(m < C) | (x < m)]
        A = active.T @ active + np.diag([Fraction(1, 10)] * K)
        b = active.T @ m[(m < C) | (x < m)]
        for i in range(K):
            b[i], A[i] = b[i] / A[i, i], A[i] / A[i, i]
            for j in set(range(K)) - {i}:
                b[j], A[j] = b[j] - A[j, i] * b[i], A[j] - A[j, i] * A[i]
        rows.append(b)
    return np.array(rows)


def test_a_the_update_is_the_minimum_of_half_the_printed_penalty():
    rng = np.random.default_rng(0)
    Q, m, alpha = rng.normal(size=(10, K)), rng.normal(size=10), 0.7
    p = np.linalg.solve(Q.T @ Q + alpha * np.eye(K), Q.T @ m)
    slope = Q.T @ (Q @ p - m)
    assert_allclose(slope + alpha * p, 0, atol=1e-12)  # alpha / 2 |p|^2, the appendix
    assert np.linalg.norm(slope + 2 * alpha * p) > 0.1  # alpha |p|^2, the main text


def test_3_updating_both_sides_at_once_raises_the_objective_without_any_clipping():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 30))
    start = rng.normal(size=(20, K)), rng.normal(size=(30, K))
    at_once, in_turn = [start], [start]
    for _ in range(20):
        P, Q = at_once[-1]
        at_once.append((ridge(M, Q, 0.1), ridge(M.T, P, 0.1)))
        Q = ridge(M.T, in_turn[-1][0], 0.1)
        in_turn.append((ridge(M, Q, 0.1), Q))
    falls = [np.diff([objective(M, *pair, 0.1) for pair in run]) for run in (in_turn, at_once)]
    assert np.all(falls[0] <= 1e-9)
    assert np.any(falls[1] > 1)


def test_6_a_missing_cell_is_not_held_to_anything():
    truth = np.outer([1.0, 2, 3, 4], [1.0, 2, 3, 4])
    seen = np.clip(truth, 2, 9)
    seen[1, 1] = np.nan  # 4 in truth
    shown = ExactCMC(floor=2, ceiling=9).fit(seen)
    for held in (2.5, 8.5):  # "otherwise" would hold it to a value that the table does not have
        full = seen.copy()
        full[1, 1] = held
        assert shown.objective_ < ExactCMC(floor=2, ceiling=9).fit(full).objective_ - 0.1


def test_8_lemma_3_fails_for_a_matrix_of_ones():
    rng = np.random.default_rng(0)
    X, Y = np.ones((20, 20)), rng.normal(size=(20, 20))
    mu = 1 / 20  # the largest squared row norm of the singular vectors of X
    left = np.linalg.norm(X * Y, "nuc")
    right = mu**2 * np.linalg.norm(X, "nuc") * np.linalg.norm(Y, "nuc")
    assert_allclose(left, 20 * right)


@pytest.mark.parametrize("beta_2", [0.0, 0.3, 2.0])
def test_9_the_bounds_on_the_first_two_parts_add_up_to_no_less_than_the_trivial_one(beta_2):
    beta_1, k, n = 1.3, 5, 200 * 300
    printed = 2 * (np.sqrt(beta_1) + np.sqrt(beta_2)) * k**0.25 * n**-0.25
    # |M_hat - M|_F <= |M_hat|_tr + |M|_tr <= 2 sqrt(beta_1) (k n)^(1/4), over sqrt(n)
    assert printed >= 2 * np.sqrt(beta_1) * (k * n) ** 0.25 / np.sqrt(n) - 1e-15


def test_7_the_objective_of_equation_6_is_bounded_by_twice_the_loss_only():
    m, x, c = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 1.0]), 3.0
    clipped = m == c
    r = np.where(clipped, np.minimum(x - m, 0), x - m)
    loss, of_equation_6 = 0.5 * np.sum(r**2), np.sum((m - np.minimum(x, c)) ** 2)
    assert loss < of_equation_6 <= 2 * loss


def test_8_lemma_3_holds_with_the_operator_norm_and_one_coherence():
    rng = np.random.default_rng(1)
    for _ in range(50):
        X = rng.normal(size=(8, 3)) @ rng.normal(size=(3, 6))
        Y = rng.normal(size=(8, 6))
        bound = coherence(X, 3) * np.linalg.norm(X, 2) * np.linalg.norm(Y, "nuc")
        assert np.linalg.norm(X * Y, "nuc") <= bound + 1e-12


def test_10_the_constant_must_be_16_times_1_plus_root_6_times_e():
    n = 1300
    h, sampling = np.log(n), 1 + np.sqrt(6)
    # symmetrisation 2^h, Lemma 2 2^h, and the four terms of the square 4^h
    share = {
        c: (2 * 2 * 4 * sampling / c) ** h for c in (8 * sampling / np.e, 16 * sampling * np.e)
    }
    printed, right = share.values()
    assert printed > 1  # no probability
    assert_allclose(right, 1 / n)


def test_11_a_single_cell_has_the_largest_coherence_and_is_a_hypothesis():
    X = np.zeros((30, 40))
    X[3, 5] = 1e-3  # its trace norm, and that of what is clipped at C > 0
    U, S, Vt = np.linalg.svd(np.minimum(X, 1.0))
    assert_allclose(S.sum(), 1e-3)
    assert_allclose([U[3, 0] ** 2, Vt[0, 5] ** 2], 1.0)


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_12_the_hypotheses_shrink_as_the_table_grows(n):
    beta_1, k = 2.0, 3
    # the largest constant matrix that is in G: trace norm n * level
    level = np.sqrt(beta_1 * np.sqrt(k * n * n)) / n
    assert_allclose(level, np.sqrt(beta_1) * (k / n**2) ** 0.25)


def test_13_lemma_2_fails_for_large_powers():
    n, p, h = 100, 0.05, 1e6
    bound = 2 * (1 + np.sqrt(6)) * np.sqrt(p * 2 * n + np.log(2 * n))
    # All cells seen with signs of rank one: norm n, with a probability of (p / 2)^(n^2) at least.
    least = n * (p / 2) ** (n**2 / h)
    assert least > 3 * bound


@pytest.mark.parametrize("p", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(2, 2), (20, 30), (10**4, 10**5)])
def test_9_the_bound_on_the_third_part_is_above_the_trivial_one(shape, p):
    (n1, n2), k, beta_2 = shape, 2, 0.7
    n = n1 * n2
    printed_constant = 8 * (1 + np.sqrt(6)) / np.e
    inner = (p * k * (n1 + n2) + k * np.log(n1 + n2)) / n
    printed = np.sqrt(2 * printed_constant * beta_2 / p) * inner**0.25  # mu_G = 1
    # |Clip(M_hat) - Clip(M)|_F <= the sum of their trace norms, over sqrt(n)
    trivial = 2 * np.sqrt(beta_2) * (k * n) ** 0.25 / np.sqrt(n)
    assert printed >= np.sqrt(printed_constant / 2) * ((n1 + n2) / p) ** 0.25 * trivial
    assert printed > trivial


def of_rows(F):
    return np.sort(np.linalg.norm(F, axis=1))[::-1]


def test_14_the_sum_of_lemma_3_over_columns_fails_if_a_small_one_comes_first():
    P = np.column_stack([1e-3 * np.eye(4)[0], np.eye(4)[1]])
    X, Y = P @ P.T, np.ones((4, 4))  # the singular values of Y are 4, 0, 0, 0
    printed = np.linalg.norm(P[:, 0]) ** 2 * 4
    assert np.linalg.norm(X * Y, "nuc") > 1e5 * printed


def test_14_the_sum_of_lemma_3_over_rows_has_to_go_beyond_the_rank():
    n = 6
    P, Y = np.ones((n, 1)), np.eye(n)
    left, terms = np.linalg.norm((P @ P.T) * Y, "nuc"), of_rows(P) ** 2
    assert left > terms[:1].sum()  # up to the rank
    assert_allclose(left, terms.sum())  # up to n


def test_14_the_sum_of_lemma_3_over_rows_to_the_smaller_side_holds():
    rng = np.random.default_rng(2)
    for _ in range(100):
        P, Q, Y = (rng.normal(size=shape) for shape in ((7, 2), (5, 2), (7, 5)))
        bound = np.sum(of_rows(P)[:5] * of_rows(Q)[:5] * np.linalg.svd(Y)[1])
        assert np.linalg.norm((P @ Q.T) * Y, "nuc") <= bound * (1 + 1e-12)


def tangent_projection(U, V):
    """Return P_T as a matrix on vectors of cells, row by row."""
    p, q = U @ U.T, V @ V.T
    one, other = np.eye(len(p)), np.eye(len(q))
    return np.kron(p, other) + np.kron(one, q) - np.kron(p, q)


def test_15_without_the_division_by_p_more_cells_do_not_meet_the_condition_of_the_main_lemma():
    rng, p = np.random.default_rng(3), 0.4
    norms = {}
    for n in (10, 30):
        P_T = tangent_projection(*(np.ones((n, 1)) / np.sqrt(n) for _ in range(2)))
        seen = rng.random(n * n)[:, None] < p
        for weight in (1.0, 1 / p):
            norms[n, weight] = np.linalg.norm(P_T @ (weight * seen * P_T) - P_T, 2)
    # No cell is clipped, so that 1/2 is allowed; the mean of P_Omega is p.
    assert min(norms[10, 1.0], norms[30, 1.0]) > 1 - p
    assert norms[30, 1 / p] < 0.8 * norms[10, 1 / p]  # falls like n^-1/2


def test_16_the_two_norms_of_the_main_lemma_are_equal():
    rng = np.random.default_rng(4)
    U, V = (np.linalg.qr(rng.normal(size=(n, 2)))[0] for n in (6, 7))
    P_T = tangent_projection(U, V)
    seen = rng.random(42) < 0.5
    H = np.where(seen, 0, rng.normal(size=42))  # two feasible matrices agree at the exact cells
    on, off = (np.linalg.norm((P @ H)[seen]) for P in (P_T, np.eye(42) - P_T))
    assert_allclose(on, off)
    assert on > 0.1


def test_17_without_the_dropped_factor_the_next_line_of_the_proof_fails():
    n1, n2, beta, rho = 50, 80, 3.0, 0.05
    m, gap = max(n1, n2), 0.25 - rho
    printed = 8 * beta / 3 * np.log(n1 + n2) / m
    for q, holds in ((printed, False), (printed / gap**2, True)):
        deviation = np.sqrt(8 / 3 * beta * m * np.log(n1 + n2) / q)
        assert (deviation <= gap * m * (1 + 1e-12)) == holds


def test_18_the_identity_is_of_the_size_of_the_factors():
    M = np.random.default_rng(5).normal(size=(9, 2)) @ np.ones((2, 7))  # r = 1, k = 4
    assert ridge(M, np.ones((7, K)), 0.1).shape == (9, K)
    with pytest.raises(ValueError, match="broadcast"):
        np.ones((7, K)).T @ np.ones((7, K)) + 0.1 * np.eye(3)


def test_19_a_clipped_matrix_can_be_far_more_coherent_than_the_matrix():
    signs = np.r_[1.0, -np.ones(9)]
    X = np.outer(signs, signs)
    assert_allclose(coherence(X, 1), 0.1)
    assert_allclose(coherence(np.minimum(X, 0), 2), 1.0)  # one row and one column are left


def test_b_one_newton_step_on_the_active_set_raises_the_loss():
    v, c = np.array([0.1, -1.0]), 1.0

    def loss(u):
        return 0.5 * np.sum(np.maximum(c - u * v, 0) ** 2)

    active = -2 * v < c
    u = np.sum(c * v[active]) / np.sum(v[active] ** 2)
    assert_allclose([loss(-2.0), loss(u)], [0.72, 60.5])


@pytest.mark.filterwarnings("ignore::UserWarning")  # rows and columns without an exact cell
@pytest.mark.parametrize("seed", range(6))
def test_without_ties_ceilings_do_not_decide_exact_recovery(seed):
    rng = np.random.default_rng(seed)
    truth = np.outer(rng.uniform(1, 2, 12), rng.uniform(1, 2, 10))
    ceiling = np.quantile(truth, [0.95, 0.7, 0.3][seed % 3])
    seen = np.minimum(truth, ceiling)
    how = {"tol": 1e-7, "max_iter": 20_000}
    with_them = ExactCMC(ceiling=ceiling, **how).fit(seen).reconstruct()
    without = ExactCMC(ceiling=ceiling, clipped="missing", **how).fit(seen).reconstruct()
    size = np.linalg.norm(truth)
    errors = [np.linalg.norm(X - truth) / size for X in (with_them, without)]
    # Recovered to the tolerance of the solver, or far from it.
    assert (errors[0] < 1e-3) == (errors[1] < 1e-3)
