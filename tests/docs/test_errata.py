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
        U, S, Vt = np.linalg.svd(X)
        mu = max((U[:, :3] ** 2).sum(axis=1).max(), (Vt[:3] ** 2).sum(axis=0).max())
        assert np.linalg.norm(X * Y, "nuc") <= mu * S[0] * np.linalg.norm(Y, "nuc") + 1e-12


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
