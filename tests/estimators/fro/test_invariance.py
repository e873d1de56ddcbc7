"""What must not change the answer of FroCMC."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.estimators.fro.tables import (
    HIGH,
    LIMITS,
    SEEN,
    TRUTH,
    X,
    at_limits,
    each_bias,
    each_estimator,
    each_limit,
    each_mode,
    fro,
    seen_part,
    sweeps,
)

from declip import Intervals

pytestmark = pytest.mark.filterwarnings("ignore:.*fewer exact cells than the rank")


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
