"""FroCMC: what it restores, what it leaves alone, and what must not change the answer."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from declip import FroCMC, Intervals
from declip.datasets import fetch_filmtrust, fetch_movielens_100k, make_clipped_low_rank

pytestmark = pytest.mark.filterwarnings("ignore:.*fewer exact cells than the rank")

MODES = ["hinge", "tobit", "value", "missing"]
ESTIMATORS = [FroCMC(n_components=2, random_state=0)]

each_mode = pytest.mark.parametrize("clipped", MODES)
each_bias = pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
each_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__
)

# A sum of n products is off by at most n eps times the sum of their sizes; the tables here have
# n < 50 and entries up to 10, so that numbers computed in another order agree to well within this.
ROUNDING = 1e-12


def low_rank(shape=(24, 14), rank=2, seed=0):
    rng = np.random.default_rng(seed)
    P, Q = (0.7 + rng.standard_normal((n, rank)) for n in shape)
    return P @ Q.T


TRUTH = low_rank()
_rng = np.random.default_rng(1)
SEEN = _rng.random(TRUTH.shape) < 0.9
HIGH, LOW = np.quantile(TRUTH, [0.8, 0.15])
LIMITS = {
    "ceiling": {"ceiling": HIGH},
    "floor": {"floor": LOW},
    "both": {"ceiling": HIGH, "floor": LOW},
    "per column": {"ceiling": np.quantile(TRUTH, 0.8, axis=0)},
    "per row": {"ceiling": np.quantile(TRUTH, 0.8, axis=1)[:, np.newaxis]},
    "per cell": {
        "ceiling": np.where(_rng.random(TRUTH.shape) < 0.2, TRUTH - 0.3, np.inf),
        "floor": np.where(_rng.random(TRUTH.shape) < 0.1, TRUTH - 0.5, -np.inf),
    },
}
LIMITS["per cell"]["floor"][5] = TRUTH[5] - 0.4
each_limit = pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)


def clip(truth, ceiling=np.inf, floor=-np.inf):
    return np.clip(truth, floor, ceiling)


def seen_part(truth=TRUTH, **limits):
    """Return the table that is left of a truth: clipped, and NaN where unobserved."""
    return np.where(SEEN, clip(truth, **limits), np.nan)


def at_limits(X, ceiling=np.inf, floor=-np.inf):
    """Return masks of the cells at their ceiling, at their floor, and of the exact ones."""
    above, below = np.broadcast_to(ceiling, X.shape), np.broadcast_to(floor, X.shape)
    return above == X, below == X, (below < X) & (above > X)


X = seen_part(ceiling=HIGH)


def fro(n_components=2, **params):
    return FroCMC(n_components, **{"random_state": 0, "ceiling": HIGH, **params})


def sweeps(number):
    """Parameters of a fit that stops after so many sweeps, or when nothing changes any more."""
    return {"max_iter": number, "tol": 0.0}


# What comes back


@each_estimator
@each_mode
@each_limit
def test_exact_cells_come_back_untouched(estimator, clipped, limits):
    table = seen_part(**limits)
    model = clone(estimator).set_params(clipped=clipped, **limits)
    exact = at_limits(table, **limits)[2]
    assert exact.sum() > 150
    assert_array_equal(model.fit_transform(table)[exact], table[exact])
    assert_array_equal(model.transform(table)[exact], table[exact])


@each_estimator
@each_mode
@each_limit
def test_clipped_cells_never_come_back_inside_their_limit(estimator, clipped, limits):
    table = seen_part(**limits)
    model = clone(estimator).set_params(clipped=clipped, **limits)
    above, below, _ = at_limits(table, **limits)
    assert (above | below).any()
    for restored in (model.fit_transform(table), model.transform(table)):
        assert (restored[above] >= table[above]).all()
        assert (restored[below] <= table[below]).all()


@each_estimator
@each_mode
@each_limit
def test_missing_cells_are_filled_by_the_low_rank_estimate(estimator, clipped, limits):
    model = clone(estimator).set_params(clipped=clipped, **limits)
    restored = model.fit_transform(seen_part(**limits))
    assert_array_equal(restored[~SEEN], model.reconstruct()[~SEEN])
    assert np.isfinite(restored).all()


@each_bias
def test_hinge_moves_a_clipped_cell_to_the_nearest_value_that_is_possible(bias):
    model = fro(bias=bias)
    restored, clipped = model.fit_transform(X), at_limits(X, HIGH)[0]
    assert_array_equal(restored[clipped], np.maximum(model.reconstruct(), HIGH)[clipped])


@each_bias
@pytest.mark.parametrize("limits", [LIMITS["ceiling"], LIMITS["floor"]], ids=["ceiling", "floor"])
def test_tobit_restores_the_mean_of_the_censored_normal(limits, bias):
    table = seen_part(**limits)
    model = FroCMC(2, clipped="tobit", bias=bias, random_state=0, **limits)
    restored, x = model.fit_transform(table), model.reconstruct()
    above, below, _ = at_limits(table, **limits)
    clipped, sign = above | below, 1.0 if "ceiling" in limits else -1.0
    # E[v | v > C] = x + s phi(a) / Phi(-a) with a = (C - x) / s, mirrored for a floor.
    a = sign * (table[clipped] - x[clipped]) / model.scale_
    mean = x[clipped] + sign * model.scale_ * np.exp(norm.logpdf(a) - norm.logsf(a))
    # The compiled normal tail and scipy's agree to some 1e-12; entries are up to 10.
    assert_allclose(restored[clipped], mean, atol=1e-9)
    assert (sign * (restored - table)[clipped] > 0).all()


def test_a_restored_table_is_closer_to_the_truth_than_the_clipped_one():
    restored = fro(alpha=1e-3).fit_transform(X)
    clipped = at_limits(X, HIGH)[0]
    # The truth has rank 2 and no noise, and the penalty is slight: what is left of the error is far
    # less than a tenth of what clipping took away.
    error = np.abs(restored - TRUTH)[clipped].max()
    assert error < 0.1 * np.abs(X - TRUTH)[clipped].max()


def test_the_synthetic_task_is_solved():
    data = make_clipped_low_rank(ceiling=7, random_state=0)
    model = FroCMC(30, ceiling=7, alpha=0.01, random_state=0)
    restored = model.fit_transform(data.table)
    # The bound that the project promises for a ceiling of 7, on all cells.
    assert np.linalg.norm(restored - data.truth) <= 5e-4 * np.linalg.norm(data.truth)


@each_estimator
@each_mode
def test_a_cell_known_to_lie_in_a_range_comes_back_within_it(estimator, clipped):
    rng = np.random.default_rng(0)
    width = np.where(rng.random(TRUTH.shape) < 0.3, 0.5, 0.0)
    below = np.where(SEEN, TRUTH - width * rng.random(TRUTH.shape), np.nan)
    above = below + width
    intervals = Intervals.from_bounds(below, above)
    restored = clone(estimator).set_params(clipped=clipped).fit_transform(intervals)
    assert (restored[SEEN] >= below[SEEN]).all()
    assert (restored[SEEN] <= above[SEEN]).all()


@each_estimator
@each_mode
def test_an_all_clipped_row_and_an_empty_one_are_restored(estimator, clipped):
    table = X.copy()
    table[3], table[5] = HIGH, np.nan
    model = clone(estimator).set_params(ceiling=HIGH, clipped=clipped)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        restored = model.fit_transform(table)
    assert (restored[3] >= HIGH).all()
    assert np.isfinite(restored[5]).all()


@each_estimator
def test_an_empty_column_is_filled(estimator):
    table = X.copy()
    table[:, 4] = np.nan
    with pytest.warns(UserWarning, match=r"1 column \(4\) without any observed cell"):
        restored = clone(estimator).set_params(ceiling=HIGH).fit_transform(table)
    assert np.isfinite(restored).all()


# transform, predict, reconstruct, score


@each_mode
@each_bias
def test_transform_of_the_fitted_table_equals_fit_transform(clipped, bias):
    model = fro(clipped=clipped, bias=bias)
    restored = model.fit_transform(X)
    # Both solve the same strongly convex problem of each row, Newton to rounding. The Hessian is at
    # least alpha = 0.1 and at most about 100: a gradient at rounding, 1e-14, or for Tobit at the
    # square root of the smallest fall that can be seen, 1e-8, leaves an error of 1e-7 at most.
    assert_allclose(model.transform(X), restored, atol=1e-7)


def row_objective(p, design, offset, lower, upper, alpha, scale):
    """Return the objective of one row, from its definition."""
    x = design @ p + offset
    if scale == 0:
        loss = 0.5 * (x - np.clip(x, lower, upper)) ** 2
    else:
        exact = lower == upper
        open_ = -(scale**2) * np.where(
            np.isinf(upper), norm.logsf((lower - x) / scale), norm.logcdf((upper - x) / scale)
        )
        loss = np.where(exact, 0.5 * (x - np.where(exact, lower, 0)) ** 2, open_)
    return loss.sum() + 0.5 * alpha * p @ p


@each_mode
@each_bias
def test_new_rows_are_solved_under_their_own_limits(clipped, bias):
    model = fro(clipped=clipped, bias=bias, alpha=0.5).fit(X[:16])
    limits = np.random.default_rng(2).uniform(HIGH - 2, HIGH, (8, 1))
    rows = Intervals.from_table(np.minimum(X[16:], limits), ceiling=limits)
    design, offset = model.components_.T, np.zeros(X.shape[1])
    if bias:
        design = np.column_stack([design, np.ones(len(design))])
        offset = model.mean_ + model.column_offset_
    found = model.predict(rows)
    lower, upper = rows.treat(clipped).to_bounds()
    for x, low, high in zip(found, lower, upper, strict=True):
        known = ~np.isnan(low)
        problem = (design[known], offset[known], low[known], high[known], 0.5, model.scale_)
        best = minimize(
            row_objective,
            np.zeros(design.shape[1]),
            problem,
            method="BFGS",
            options={"gtol": 1e-9},
        )
        # BFGS by differences of the objective sees falls of 1e-16 times its size, up to 100: with
        # strong convexity alpha, |p - p*|^2 <= 2 * 1e-14 / alpha, times the size of the design.
        assert_allclose(x, design @ best.x + offset, atol=1e-6 * np.abs(design).max())


@each_estimator
@each_mode
def test_rows_are_transformed_each_by_itself(estimator, clipped):
    model = clone(estimator).set_params(ceiling=HIGH, clipped=clipped).fit(X[:16])
    together = model.transform(X[16:])
    # The matrix product may sum in another order for another number of rows.
    alone = np.vstack([model.transform(row[np.newaxis]) for row in X[16:]])
    assert_allclose(alone, together, rtol=ROUNDING, atol=ROUNDING)


@each_estimator
def test_transform_does_not_change_the_fit(estimator):
    model = clone(estimator).set_params(ceiling=HIGH).fit(X)
    before = model.reconstruct()
    model.transform(X[:5])
    assert_array_equal(model.reconstruct(), before)


@each_estimator
@each_bias
def test_predict_equals_reconstruct(estimator, bias):
    model = clone(estimator).set_params(ceiling=HIGH, bias=bias).fit(X)
    rows, cols = np.divmod(np.random.default_rng(0).permutation(X.size), X.shape[1])
    expected = model.reconstruct()[rows, cols]
    assert_allclose(model.predict(rows, cols), expected, rtol=ROUNDING, atol=ROUNDING)


@each_estimator
def test_predict_of_a_table_is_the_low_rank_estimate_of_its_rows(estimator):
    model = clone(estimator).set_params(ceiling=HIGH).fit(X)
    estimate, restored = model.predict(X[:5]), model.transform(X[:5])
    above, _, exact = at_limits(X[:5], HIGH)
    estimate_there = np.where(above, np.maximum(estimate, HIGH), estimate)
    assert_array_equal(estimate_there[~exact], restored[~exact])
    # Rank 2: no more than two singular values beyond rounding.
    assert np.linalg.matrix_rank(estimate, tol=1e-9) <= 2


@each_estimator
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("rows", "cols"),
    [
        (None, None),
        (slice(2, 9, 3), None),
        ([5, 1, 1], [0, 13]),
        (np.arange(24) % 5 == 0, slice(None, None, -1)),
        ([-1], np.arange(14) < 2),
        ([], None),
    ],
)
def test_blocks_of_the_reconstruction_are_blocks_of_the_whole(estimator, bias, rows, cols):
    model = clone(estimator).set_params(ceiling=HIGH, bias=bias).fit(X)
    whole = model.reconstruct()
    r, c = (slice(None) if which is None else which for which in (rows, cols))
    expected = whole[r][:, c]
    block = model.reconstruct(rows=rows, cols=cols)
    assert block.shape == expected.shape
    assert_allclose(block, expected, rtol=ROUNDING, atol=ROUNDING)


@each_bias
@each_mode
def test_the_reconstruction_is_made_of_the_fitted_attributes(clipped, bias):
    model = fro(clipped=clipped, bias=bias).fit(X)
    made = model.row_factors_ @ model.components_ + model.mean_
    made = made + model.row_offset_[:, np.newaxis] + model.column_offset_
    assert_allclose(model.reconstruct(), made, rtol=ROUNDING, atol=ROUNDING)
    if not bias:
        assert model.mean_ == 0
        assert not model.row_offset_.any()
        assert not model.column_offset_.any()


@each_mode
@each_bias
def test_singular_values_are_those_of_the_reconstruction(clipped, bias):
    model = fro(3, clipped=clipped, bias=bias).fit(X)
    offsets = model.mean_ + model.row_offset_[:, np.newaxis] + model.column_offset_
    S = np.linalg.svd(model.reconstruct() - offsets, compute_uv=False)
    assert_allclose(model.singular_values_, S[:3], atol=ROUNDING * S[0])
    assert_allclose(S[3:], 0, atol=ROUNDING * S[0])


@each_mode
def test_the_scale_is_that_of_tobit_alone(clipped):
    assert (fro(clipped=clipped).fit(X).scale_ > 0) == (clipped == "tobit")


def test_tobit_finds_the_scale_of_the_noise():
    rng = np.random.default_rng(0)
    truth = low_rank((200, 40), rank=1, seed=3)
    table = np.minimum(truth + 0.3 * rng.standard_normal(truth.shape), 2.0)
    model = FroCMC(1, ceiling=2.0, clipped="tobit", alpha=1e-3, random_state=0).fit(table)
    # 8000 cells and 240 parameters: 1.5 % too small for the parameters, and a standard error of
    # about 0.3 / sqrt(2 * 6000 exact cells), 1 %; four of them on top.
    assert_allclose(model.scale_, 0.3, rtol=0.055)


@each_estimator
def test_a_model_of_the_right_rank_scores_better(estimator):
    rank_1, rank_2 = (
        clone(estimator).set_params(n_components=k, ceiling=HIGH).fit(X).score(X) for k in (1, 2)
    )
    assert rank_1 < rank_2 < 0


@each_estimator
def test_a_model_shrunk_to_nothing_scores_worse(estimator):
    strong, weak = (
        clone(estimator).set_params(alpha=a, ceiling=HIGH).fit(X).score(X) for a in (1e4, 1e-1)
    )
    assert strong < weak


def test_the_score_is_the_root_mean_square_distance_from_the_intervals():
    # alpha so large that all predictions are zero: the distance is the value itself, or for a
    # clipped cell the limit.
    model = fro(alpha=1e12).fit(X)
    assert_allclose(model.score(X), -np.sqrt(np.nanmean(X**2)), rtol=1e-6)


# What must not change the answer


@each_estimator
@each_mode
@each_limit
def test_an_intervals_table_gives_what_the_table_gives(estimator, clipped, limits):
    table = seen_part(**limits)
    with_limits = clone(estimator).set_params(clipped=clipped, **limits)
    without = clone(estimator).set_params(clipped=clipped)
    intervals = Intervals.from_table(table, **limits)
    assert_array_equal(without.fit_transform(intervals), with_limits.fit_transform(table))
    assert_array_equal(without.transform(intervals), with_limits.transform(table))


@each_estimator
@each_mode
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_equals_dense(estimator, clipped, container):
    rows, cols = np.nonzero(SEEN)
    cells = sp.coo_array((X[SEEN], (rows, cols)), shape=X.shape)
    model = clone(estimator).set_params(ceiling=HIGH, clipped=clipped)
    dense = model.fit_transform(X)
    assert_array_equal(model.fit_transform(container(cells)), dense)


@each_estimator
def test_a_stored_zero_is_a_value_and_an_absent_cell_is_missing(estimator):
    table = X.copy()
    table[2, SEEN[2]] = 0.0
    rows, cols = np.nonzero(SEEN)
    stored = sp.coo_array((table[SEEN], (rows, cols)), shape=X.shape)
    model = clone(estimator).set_params(ceiling=HIGH)
    assert_array_equal(model.fit_transform(stored), model.fit_transform(table))


@each_estimator
@each_mode
def test_frames_equal_arrays(estimator, clipped):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    model = clone(estimator).set_params(ceiling=HIGH, clipped=clipped)
    array = model.fit_transform(X)
    assert_array_equal(model.fit_transform(frame), array)
    assert_array_equal(model.fit_transform(pl.from_pandas(frame)), array)


@each_estimator
def test_limits_by_column_name_equal_limits_by_position(estimator):
    ceiling = LIMITS["per column"]["ceiling"]
    table = seen_part(ceiling=ceiling)
    names = [f"c{j}" for j in range(X.shape[1])]
    by_name = clone(estimator).set_params(ceiling=dict(zip(names, ceiling, strict=True)))
    by_position = clone(estimator).set_params(ceiling=ceiling)
    assert_array_equal(
        by_name.fit_transform(pd.DataFrame(table, columns=names)), by_position.fit_transform(table)
    )


@each_estimator
def test_masked_cells_are_missing_whatever_they_hold(estimator):
    hidden = np.ma.masked_array(np.where(SEEN, X, np.inf), mask=~SEEN)
    model = clone(estimator).set_params(ceiling=HIGH)
    assert_array_equal(model.fit_transform(hidden), model.fit_transform(X))


@each_estimator
@each_mode
@each_bias
def test_float32_stays_float32(estimator, clipped, bias):
    model = clone(estimator).set_params(ceiling=np.float32(HIGH), clipped=clipped, bias=bias)
    table = X.astype(np.float32)
    for result in (model.fit_transform(table), model.transform(table), model.reconstruct()):
        assert result.dtype == np.float32
    assert model.row_factors_.dtype == model.components_.dtype == np.float32
    assert model.predict([0], [0]).dtype == np.float32


@each_estimator
def test_exact_float64_cells_come_back_untouched_from_a_float32_fit(estimator):
    model = clone(estimator).set_params(ceiling=HIGH).fit(X.astype(np.float32))
    exact = at_limits(X, HIGH)[2]
    assert_array_equal(model.transform(X)[exact], X[exact])


@each_estimator
def test_float32_restores_what_float64_restores(estimator):
    # With the same number of sweeps the two differ by rounding alone: eps = 1.2e-7, times the
    # condition of the row problems (at most 100 / alpha = 1e3).
    model = clone(estimator).set_params(ceiling=np.float32(HIGH), **sweeps(10))
    table = X.astype(np.float32)
    with pytest.warns(ConvergenceWarning):
        single, double = model.fit_transform(table), model.fit_transform(table.astype(np.float64))
    assert_allclose(single, double, atol=1.2e-4 * np.abs(double).max())


@each_estimator
def test_integers_are_taken_as_float64(estimator):
    counts = np.rint(2 * np.clip(TRUTH, -3, 3)).astype(int)
    model = clone(estimator).set_params(ceiling=6)
    restored = model.fit_transform(counts)
    assert restored.dtype == np.float64
    assert_array_equal(restored, model.fit_transform(counts.astype(float)))


@each_mode
@each_bias
@pytest.mark.parametrize("init", ["random", "svd"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_mirrored_table_is_restored_to_the_mirror_image(clipped, bias, init):
    # The start is mirrored too, and so is every step: they differ by rounding, which ten sweeps
    # amplify by the condition of the row problems (at most 1e3) when they do not contract.
    how = {"clipped": clipped, "bias": bias, "init": init, **sweeps(10)}
    up = fro(**how).fit_transform(X)
    down = fro(ceiling=None, floor=-HIGH, **how).fit_transform(-X)
    assert_allclose(-down, up, atol=1e-9)


@each_mode
@each_bias
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_permuted_rows_and_columns_give_the_permuted_table(clipped, bias):
    # From the singular vectors the start is equivariant, but for the signs, which cancel in P Q^T;
    # the sums of a sweep run in another order. Rounding is amplified as in the mirror test.
    rng = np.random.default_rng(0)
    rows, cols = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    model = fro(clipped=clipped, bias=bias, init="svd", **sweeps(10))
    restored = model.fit_transform(X)
    permuted = model.fit_transform(X[rows][:, cols])
    assert_allclose(permuted, restored[rows][:, cols], atol=1e-9)


@pytest.mark.parametrize("clipped", ["hinge", "value", "missing"])
@each_bias
def test_permuted_rows_and_columns_have_the_same_optimum(clipped, bias):
    # A random start is not permuted along with the table. At full rank each fit is within its own
    # gap of the one optimum, so they are within the larger gap of each other.
    rng = np.random.default_rng(0)
    rows, cols = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    how = {"clipped": clipped, "bias": bias, "alpha": 1.0, "tol": 1e-12, "max_iter": 1000}
    one, other = (fro(X.shape[1], **how).fit(table) for table in (X, X[rows][:, cols]))
    assert abs(one.objective_ - other.objective_) <= max(one.gap_, other.gap_)
    assert one.gap_ <= 1e-4 * one.objective_


@each_mode
@each_bias
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_do_not_change_a_bit(clipped, bias, n_jobs):
    one, many = (fro(clipped=clipped, bias=bias, n_jobs=n) for n in (1, n_jobs))
    assert_array_equal(many.fit_transform(X), one.fit_transform(X))
    assert_array_equal(many.transform(X), one.transform(X))
    assert_array_equal(many.history_, one.history_)
    assert many.gap_ == one.gap_


@each_estimator
@each_mode
def test_an_infinite_ceiling_is_none(estimator, clipped):
    table = seen_part()
    model = clone(estimator).set_params(clipped=clipped)
    plain = model.fit(table).reconstruct()
    with pytest.warns(UserWarning, match="nothing is at the ceiling"):
        model.set_params(ceiling=np.inf).fit(table)
    assert_array_equal(model.reconstruct(), plain)


@each_estimator
@each_limit
def test_clipped_cells_at_face_value_give_the_fit_without_limits(estimator, limits):
    table = seen_part(**limits)
    model = clone(estimator).set_params(clipped="value", **limits).fit(table)
    assert_array_equal(model.reconstruct(), clone(estimator).fit(table).reconstruct())


@each_estimator
@each_limit
def test_clipped_cells_left_out_give_the_fit_with_nan_in_their_place(estimator, limits):
    table = seen_part(**limits)
    model = clone(estimator).set_params(clipped="missing", **limits).fit(table)
    left = np.where(at_limits(table, **limits)[2], table, np.nan)
    assert_array_equal(model.reconstruct(), clone(estimator).fit(left).reconstruct())


# The optimum


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
    model = FroCMC(rank, alpha=alpha, tol=1e-13, max_iter=2000, random_state=0).fit(table)
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
    model = FroCMC(4, alpha=alpha, tol=1e-13, max_iter=2000, random_state=0).fit(TRUTH)
    # 1-strongly convex: within sqrt(2 gap) of the optimum.
    apart = np.sqrt(2 * model.gap_)
    assert apart < 0.01
    assert np.linalg.norm(U * np.maximum(S - alpha, 0) @ Vt - model.reconstruct()) <= apart


def test_without_penalty_a_full_table_gets_its_best_approximation():
    # Eckart and Young: the squared singular values that are left out.
    table = TRUTH + np.random.default_rng(4).standard_normal(TRUTH.shape)
    S = np.linalg.svd(table, compute_uv=False)
    model = FroCMC(2, alpha=0.0, tol=1e-12, max_iter=2000, random_state=0).fit(table)
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


# The way down


def highest_rise(history, n_cells, clipped):
    """Return the largest rise of an objective, relative to it (for Tobit: or to the cells)."""
    size = np.abs(history[:-1])
    # A log-likelihood may pass through zero, where it is known only to eps times its terms.
    unit = np.maximum(size, n_cells) if clipped == "tobit" else size
    return (np.diff(history) / unit).max(initial=-np.inf)


def random_problem(rng):
    """Draw a small table with limits of all kinds, and a model for it."""
    shape = tuple(rng.integers(2, 16, 2))
    rank = int(rng.integers(1, min(shape) + 1))
    size = 10.0 ** rng.uniform(-3, 3)
    truth = size * (rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1])))
    truth += size * rng.standard_normal() + 0.1 * size * rng.standard_normal(shape)
    kept = np.zeros(shape, bool)
    kept[0, :], kept[:, 0] = True, True  # exact, so that not everything is clipped
    high, low = (np.where(kept | (rng.random(shape) < 0.6), inf, 0.0) for inf in (np.inf, -np.inf))
    high += truth - size * rng.exponential(1, shape)
    low += np.where(np.isfinite(high), -np.inf, truth + size * rng.exponential(1, shape))
    table = np.clip(truth, low, high)
    table[~kept & (rng.random(shape) < 0.2)] = np.nan
    return table, FroCMC(
        rank,
        ceiling=high,
        floor=low,
        alpha=size * 10.0 ** rng.uniform(-4, 1),
        bias=bool(rng.integers(2)),
        init=str(rng.choice(["random", "svd"])),
        random_state=int(rng.integers(1000)),
        **sweeps(40),
    )


@each_mode
@pytest.mark.filterwarnings("ignore")
def test_the_objective_never_rises_on_random_problems(clipped):
    rng = np.random.default_rng(MODES.index(clipped))
    for _ in range(125):
        table, model = random_problem(rng)
        model.set_params(clipped=clipped).fit(table)
        assert len(model.history_) == model.n_iter_ + 1
        assert np.isfinite(model.history_).all()
        assert highest_rise(model.history_, table.size, clipped) <= 1e-10, model


def fetched(fetch):
    try:
        return fetch()
    except OSError as error:
        pytest.skip(f"no data set at hand: {error}")


@each_mode
@pytest.mark.parametrize("fetch", [fetch_movielens_100k, fetch_filmtrust])
@pytest.mark.filterwarnings("ignore")
def test_the_objective_never_rises_on_ratings(fetch, clipped):
    ratings = fetched(fetch)
    model = FroCMC(5, ceiling=ratings.ceiling, clipped=clipped, alpha=3.0, random_state=0)
    model.set_params(n_jobs=2, **sweeps(60)).fit(ratings.to_sparse())
    assert model.n_iter_ == 60
    assert highest_rise(model.history_, len(ratings.values), clipped) <= 1e-10


@each_estimator
@each_mode
def test_the_history_ends_at_the_objective(estimator, clipped):
    model = clone(estimator).set_params(ceiling=HIGH, clipped=clipped).fit(X)
    assert model.objective_ == model.history_[-1] < model.history_[0]


@pytest.mark.parametrize("clipped", ["hinge", "value", "missing"])
@each_bias
def test_the_objective_is_the_one_that_is_documented(clipped, bias):
    model = fro(clipped=clipped, bias=bias, alpha=0.3).fit(X)
    x = model.reconstruct()
    lower, upper = Intervals.from_table(X, HIGH).treat(clipped).to_bounds()
    factors = [model.row_factors_, model.components_, model.row_offset_, model.column_offset_]
    expected = 0.5 * np.nansum((x - np.clip(x, lower, upper)) ** 2)
    expected += 0.5 * 0.3 * sum((F**2).sum() for F in factors)
    assert_allclose(model.objective_, expected, rtol=ROUNDING)


@each_bias
def test_the_tobit_objective_is_a_penalised_likelihood(bias):
    model = fro(clipped="tobit", bias=bias, alpha=0.3).fit(X)
    x, s = model.reconstruct(), model.scale_
    above, _, exact = at_limits(X, HIGH)
    factors = [model.row_factors_, model.components_, model.row_offset_, model.column_offset_]
    expected = -norm.logpdf(X[exact], x[exact], s).sum() - norm.logsf(HIGH, x[above], s).sum()
    expected += 0.5 * 0.3 / s**2 * sum((F**2).sum() for F in factors)
    # The terms are of the size of the cells, and scipy's tail is good to some 1e-12.
    assert_allclose(model.objective_, expected, atol=1e-9 * X.size)


@each_mode
def test_converged_means_three_small_falls_in_a_row(clipped):
    model = fro(clipped=clipped, tol=1e-5).fit(X)
    falls = -np.diff(model.history_)
    unit = SEEN.sum() if clipped == "tobit" else model.objective_
    small = falls <= 1e-5 * unit * (1 + 1e-6)
    assert model.converged_
    # The last fall is left out: rows are solved to the end after it, which may lower it further.
    assert small[-3:-1].all()
    # And it stopped at the first three.
    assert not (small[:-5] & small[1:-4] & small[2:-3]).any()


@each_mode
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_sweeps_gain_little_after_convergence(clipped):
    model = fro(clipped=clipped, warm_start=True).fit(X)
    settled = model.objective_
    model.set_params(**sweeps(50)).fit(X)
    # Falls shrink from sweep to sweep, so 50 more gain at most 50 times the last one, tol.
    unit = SEEN.sum() if clipped == "tobit" else settled
    assert 0 <= settled - model.objective_ <= 50 * 1e-6 * unit


@each_mode
def test_too_few_sweeps_are_told_with_the_remedy(clipped):
    message = r"FroCMC .* 2 sweeps.*Raise max_iter or alpha, or accept a larger tol"
    with pytest.warns(ConvergenceWarning, match=message):
        model = fro(clipped=clipped, max_iter=2).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2


@each_mode
def test_the_last_fall_is_told_in_the_unit_of_tol(clipped):
    with pytest.warns(ConvergenceWarning) as caught:
        model = fro(clipped=clipped, max_iter=4).fit(X)
    (told,) = re.findall(r"\d\.\de[-+]\d+", str(caught[0].message))
    fall = model.history_[-2] - model.history_[-1]
    unit = SEEN.sum() if clipped == "tobit" else model.objective_
    # Printed with two digits.
    assert_allclose(float(told), fall / unit, rtol=0.06)


@pytest.mark.parametrize("clipped", ["hinge", "value"])
@pytest.mark.parametrize(
    ("table", "params"),
    [
        (np.full((6, 5), 2.0), {"bias": True}),
        (np.zeros((6, 5)), {"bias": True}),
        (np.outer(np.arange(1.0, 7), np.arange(1.0, 6)), {"alpha": 0.0}),
    ],
    ids=["constant", "zero", "exact"],
)
def test_a_perfect_fit_settles(table, params, clipped):
    # The objective goes to zero, and there no fall is small relative to it.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FroCMC(1, clipped=clipped, random_state=0, **params).fit(table)
    assert model.converged_
    assert_allclose(model.reconstruct(), table, atol=1e-5 * max(table.max(), 1))


@each_mode
def test_a_fit_that_settles_says_nothing(clipped):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fro(clipped=clipped).fit(X)
    assert model.converged_
    assert model.n_iter_ < model.max_iter
