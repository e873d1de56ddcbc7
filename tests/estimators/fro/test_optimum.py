"""The optimum of FroCMC, against what is known of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.estimators.fro.tables import HIGH, SEEN, TRUTH, X, each_bias, each_mode, fro, seen_part

from declip import FroCMC, Intervals

pytestmark = pytest.mark.filterwarnings("ignore:.*fewer exact cells than the rank")


def ridge_als(table, P, Q, alpha, n_sweeps):
    """Return the factors and the objective of plain ridge completion, row by row in NumPy."""
    ridge = alpha * np.eye(P.shape[1])
    for _ in range(n_sweeps):
        for own, other, cells in ((P, Q, table), (Q, P, table.T)):
            for i, row in enumerate(cells):
                V = other[~np.isnan(row)]
                own[i] = np.linalg.solve(V.T @ V + ridge, V.T @ row[~np.isnan(row)])
    fall = 0.5 * np.nansum((P @ Q.T - table) ** 2) + 0.5 * alpha * ((P**2).sum() + (Q**2).sum())
    return P, Q, fall


def test_without_limits_it_is_plain_ridge_completion():
    table, alpha, rank = seen_part(), 1.0, X.shape[1]
    model = FroCMC(rank, alpha=alpha, tol=1e-13, max_iter=2000, random_state=0, scale="none").fit(
        table
    )
    rng = np.random.default_rng(5)
    P, Q, value = ridge_als(
        table, rng.standard_normal((len(X), rank)), rng.standard_normal((rank, rank)), alpha, 300
    )
    # The optimum lies at most gap_ below the fit, and the loss is 1-strongly convex in the observed
    # cells: a point whose objective is e above the optimum is within sqrt(2 e) of it there.
    apart = np.sqrt(2 * model.gap_) + np.sqrt(2 * (model.gap_ + max(value - model.objective_, 0)))
    assert apart < 0.05
    assert np.linalg.norm((P @ Q.T - model.reconstruct())[SEEN]) <= apart
    assert abs(value - model.objective_) <= model.gap_


def test_a_full_table_without_limits_is_soft_thresholded():
    # min 1/2 |X - M|^2 + alpha |X|_tr has the solution U max(S - alpha, 0) V^T.
    alpha = 2.0
    U, S, Vt = np.linalg.svd(TRUTH, full_matrices=False)
    model = FroCMC(4, alpha=alpha, tol=1e-13, max_iter=2000, random_state=0, scale="none").fit(
        TRUTH
    )
    # 1-strongly convex: within sqrt(2 gap) of the optimum.
    apart = np.sqrt(2 * model.gap_)
    assert apart < 0.01
    assert np.linalg.norm(U * np.maximum(S - alpha, 0) @ Vt - model.reconstruct()) <= apart


def test_without_penalty_a_full_table_gets_its_best_approximation():
    # Eckart and Young: the squared singular values that are left out.
    table = TRUTH + np.random.default_rng(4).standard_normal(TRUTH.shape)
    S = np.linalg.svd(table, compute_uv=False)
    model = FroCMC(2, alpha=0.0, tol=1e-12, max_iter=2000, random_state=0, scale="none").fit(table)
    # Alternation contracts by (S[2] / S[1])^2 < 0.4 a sweep: what is left after the last is < tol.
    assert (S[2] / S[1]) ** 2 < 0.4
    assert_allclose(model.objective_, 0.5 * (S[2:] ** 2).sum(), rtol=1e-11)


@pytest.mark.parametrize("clipped", ["hinge", "value", "missing"])
def test_a_strength_above_the_largest_useful_one_gives_the_zero_solution(clipped):
    # Zero is optimal if |G|_op <= alpha for the gradient G = -clip(0, lower, upper) at zero.
    lower, upper = Intervals.from_table(X, HIGH).treat(clipped).to_bounds()
    G = np.nan_to_num(np.clip(0.0, lower, upper))
    alpha = 1.1 * np.linalg.norm(G, 2)
    model = fro(4, clipped=clipped, alpha=alpha, tol=1e-13, max_iter=2000).fit(X)
    # The penalty alone exceeds what the loss can gain by a tenth of alpha |X|_tr.
    assert 0.1 / 1.1 * alpha * model.singular_values_.sum() <= model.gap_ + 1e-9
    assert model.gap_ <= 1e-6 * model.objective_


@each_mode
@each_bias
def test_a_fit_of_full_rank_is_certified_as_the_optimum(clipped, bias):
    how = {"clipped": clipped, "bias": bias, "alpha": 1.0, "tol": 1e-12, "max_iter": 2000}
    model = fro(X.shape[1], **how).fit(X)
    # The gap falls like the square root of what is left of the objective, tol * objective: 1e-6 of
    # it, with room for the sweeps that were not made. The unit of Tobit is a cell.
    unit = SEEN.sum() if clipped == "tobit" else model.objective_
    assert 0 <= model.gap_ <= 1e-5 * unit


@each_mode
def test_a_fit_of_too_low_a_rank_is_not_certified(clipped):
    model = fro(1, clipped=clipped, alpha=0.1).fit(X)
    # Rank 2 fits this table almost perfectly, rank 1 does not: the gap is of the size of the loss.
    better = fro(2, clipped=clipped, alpha=0.1).fit(X)
    if clipped != "tobit":  # whose scale, and so objective, differs between the two
        assert model.gap_ >= model.objective_ - better.objective_ > 0.1 * model.objective_
    assert model.gap_ > 10 * fro(X.shape[1], clipped=clipped, alpha=0.1).fit(X).gap_


@each_mode
@each_bias
def test_both_starts_reach_the_same_optimum_at_full_rank(clipped, bias):
    how = {"clipped": clipped, "bias": bias, "alpha": 1.0, "tol": 1e-12, "max_iter": 2000}
    random, svd = (fro(X.shape[1], init=init, **how).fit(X) for init in ("random", "svd"))
    # Convex but for the scale of Tobit; each within its gap of the optimum.
    slack = max(random.gap_, svd.gap_)
    if clipped == "tobit":
        assert_allclose(random.scale_, svd.scale_, rtol=1e-4)
        slack += 1e-6 * SEEN.sum()
    assert abs(random.objective_ - svd.objective_) <= slack


@pytest.mark.parametrize("init", ["random", "svd"])
def test_the_start_is_not_stuck_at_rank_one(init):
    S = fro(2, init=init).fit(X).singular_values_
    # The second singular value of the truth is a sixth of the first or more.
    assert S[1] > 0.1 * S[0]


def test_another_seed_is_another_start():
    starts = [fro(random_state=seed).fit(X).history_[0] for seed in (0, 1)]
    assert starts[0] != starts[1]


def test_the_random_state_is_not_used_up_by_a_fit():
    model = fro(random_state=np.random.RandomState(0)).fit(X)
    assert model.history_[0] == fro(random_state=0).fit(X).history_[0]
