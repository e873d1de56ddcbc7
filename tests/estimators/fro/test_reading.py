"""FroCMC once fitted: transform, predict, reconstruct, score."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import clone
from tests.estimators.fro.tables import (
    HIGH,
    ROUNDING,
    X,
    at_limits,
    each_bias,
    each_estimator,
    each_mode,
    fro,
    low_rank,
)

from declip import FroCMC, Intervals

pytestmark = pytest.mark.filterwarnings("ignore:.*fewer exact cells than the rank")


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
        censored = -(scale**2) * np.where(
            np.isinf(upper), norm.logsf((lower - x) / scale), norm.logcdf((upper - x) / scale)
        )
        loss = np.where(exact, 0.5 * (x - np.where(exact, lower, 0)) ** 2, censored)
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
    model = FroCMC(1, ceiling=2.0, clipped="tobit", alpha=1e-3, random_state=0, scale="none").fit(
        table
    )
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


def test_other_columns_are_named_before_their_limits():
    model = FroCMC(2, ceiling=np.full(X.shape[1], HIGH), random_state=0, scale="none").fit(X)
    with pytest.raises(ValueError, match=f"expecting {X.shape[1]} features"):
        model.transform(X[:, :-1])
