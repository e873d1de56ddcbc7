"""The scale of skewed columns: its inverse, its slope, and where it is straight."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from declip.halflog import HalfLog

LONG = HalfLog(
    skewed=np.array([True, False]),
    knot=np.array([1.0, 0.0]),
    scale=np.array([0.5, 1.0]),
    end=np.array([3.0, 1.0]),
)
X = np.array([-5.0, 0.0, 1.0, 1.2, 2.0, 3.999, 4.001, 50.0, -np.inf, np.inf])
FIRST = np.zeros(len(X), int)


def test_back_undoes_forward_ends_included():
    assert_allclose(LONG.back(LONG.forward(X, FIRST), FIRST), X, rtol=1e-12)


def test_it_is_the_logarithm_above_the_knot_and_straight_below_and_far_out():
    y = LONG.forward(np.array([0.2, 2.5, 10.0, 11.0]), np.zeros(4, int))
    assert_allclose(y[:2], [0.2, 1 + 0.5 * np.log1p(1.5 / 0.5)])
    assert_allclose(y[3] - y[2], 1 / (1 + 3 / 0.5))  # the slope at the end


def test_the_slope_is_that_of_finite_differences():
    x = np.array([-1.0, 1.3, 2.0, 3.5, 7.0])
    cols, h = np.zeros(5, int), 1e-6
    rise = (LONG.forward(x + h, cols) - LONG.forward(x - h, cols)) / (2 * h)
    assert_allclose(LONG.log_slope(x, cols), np.log(rise), atol=1e-8)


def test_other_columns_stay_as_they_are():
    table = np.arange(6.0).reshape(3, 2)
    assert_array_equal(LONG.forward(table)[:, 1], table[:, 1])
    assert_array_equal(LONG.back(table)[:, 1], table[:, 1])
    assert_array_equal(LONG.log_slope(table)[:, 1], 0)
    assert_array_equal(LONG.only(np.array([False, True])).forward(table), table)
    assert_array_equal(LONG.extended(3).skewed, [True, False, False])


@pytest.mark.parametrize("wrong", [{"scale": np.array([0.0, 1.0])}, {"knot": np.array([np.nan])}])
def test_a_forged_scale_is_refused(wrong):
    parts = {n: getattr(LONG, n) for n in ("skewed", "knot", "scale", "end")} | wrong
    with pytest.raises(ValueError, match="scale of skewed columns"):
        HalfLog(**parts)._check_loaded()
