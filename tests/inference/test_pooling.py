"""Rubin's rules."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from declip import pool


def test_pooling_follows_rubins_rules():
    # Worked by hand: W = (1 + 4 + 1) / 3 = 2, B = 1, total = 2 + 4/3 = 10/3, share = 0.4.
    pooled = pool([(1.0, 1.0), (2.0, 2.0), (3.0, 1.0)])
    assert_allclose(pooled.estimate, 2)
    assert_allclose(pooled.std_error, np.sqrt(10 / 3))
    assert_allclose(pooled.missing_information, 0.4)
    assert_allclose(pooled.df, 2 / 0.4**2)


def test_a_small_table_leaves_fewer_degrees_of_freedom():
    # Barnard and Rubin (1999): 1 / df = 1 / 12.5 + 1 / (21 / 23 * 20 * 0.6)
    pooled = pool([(1.0, 1.0), (2.0, 2.0), (3.0, 1.0)], complete_df=20)
    assert_allclose(pooled.df, 1 / (1 / 12.5 + 23 / (21 * 20 * 0.6)))


def test_equal_estimates_keep_their_error_and_degrees_of_freedom():
    pooled = pool([(1.0, 0.5)] * 4, complete_df=20)
    assert_allclose(pooled.std_error, 0.5)
    assert_allclose(pooled.df, 21 / 23 * 20)
    assert pool([(1.0, 0.5)] * 4).df == np.inf


def test_without_limits_on_df_the_interval_is_normal_for_equal_estimates():
    low, high = pool([(1.0, 0.5)] * 4).interval(0.95)
    assert_allclose([low, high], [1 - 0.5 * 1.959964, 1 + 0.5 * 1.959964], rtol=1e-6)


def test_arrays_are_pooled_element_by_element():
    results = [(np.array([1.0, 5.0]), np.ones(2)), (np.array([3.0, 5.0]), np.ones(2))]
    pooled = pool(results)
    assert_allclose(pooled.estimate, [2, 5])
    assert_allclose(pooled.std_error, [2, 1])


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([(1.0, 1.0)], "at least 2 tables; got 1"),
        ([(1.0, 1.0), (np.ones(2), np.ones(2))], "same shape"),
        ([(1.0, -1.0), (1.0, 1.0)], "finite and not negative"),
    ],
)
def test_results_that_cannot_be_pooled_are_refused(results, message):
    with pytest.raises(ValueError, match=message):
        pool(results)


def test_pooling_is_that_of_mice():
    # Slope and intercept of five imputed tables, and what mice 3.15 of R makes of them (dfcom 38).
    estimates = [[0.069075734, 0.686894254], [-0.014743445, 0.884426307], [0.081055568, 0.69224887],
                 [-0.024436766, 0.870578135], [0.072013589, 0.664314031]]  # fmt: skip
    errors = [[0.092015697, 0.116190353], [0.097469207, 0.141284534], [0.084584842, 0.11450636],
              [0.100058817, 0.145394885], [0.091580758, 0.118032167]]  # fmt: skip
    pooled = pool(zip(estimates, errors, strict=True), complete_df=38)
    assert_allclose(pooled.estimate, [0.0365929360268, 0.7596923193528], rtol=1e-7)
    assert_allclose(pooled.std_error**2, [0.0118981252268, 0.0303687259368], rtol=1e-7)
    assert_allclose(pooled.df, [17.91048011079, 9.53420860393], rtol=1e-7)
    assert_allclose(pooled.missing_information, [0.268447226567, 0.462312054302], rtol=1e-7)
