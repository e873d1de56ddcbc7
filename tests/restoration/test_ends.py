"""The ends of columns: how far they reach, how they are skewed, whether they have bounds."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import skew

from declip import Intervals
from declip.restoration.ends import ColumnEnds


def ends_of(table, low=-np.inf, high=np.inf, shared=False):
    n = table.shape[1]
    bounds = np.broadcast_to(low, n), np.broadcast_to(high, n)
    return ColumnEnds.of(Intervals.from_table(table), bounds, shared)


def test_columns_reach_to_their_outermost_cells():
    table = np.column_stack([np.arange(101.0), -np.arange(101.0)])
    assert_allclose(ends_of(table).reach, [[-5, 95], [95, -5]])
    assert_array_equal(ends_of(table).n_exact, [101, 101])
    assert_allclose(ends_of(table).reach_at(np.array([1, 1, 0])), [[95, 95, -5], [-5, -5, 95]])
    shared = ends_of(table, shared=True)
    assert shared.reach.shape == (2, 1)
    assert_array_equal(shared.n_exact, [202])
    assert_allclose(shared.reach_at(np.array([0, 1]))[:, 0], shared.reach[:, 0])


def test_skewness_is_counted_outwards_at_both_ends():
    table = np.random.default_rng(0).exponential(size=(80, 3))
    found = ends_of(table).skewness
    assert_allclose(found[1], skew(table), rtol=1e-9)
    assert_allclose(found[0], -found[1])
    assert_array_equal(ends_of(np.full((5, 1), 2.0)).skewness, [[0], [0]])


def test_skewness_says_nothing_where_the_other_end_is_cut_off_too():
    values = np.random.default_rng(0).exponential(size=(60, 3))
    lower, upper = values.copy(), values.copy()
    upper[values[:, 0] > 1.5, 0] = np.inf
    upper[values[:, 1] > 1.5, 1] = np.inf
    lower[values[:, 1] < 0.3, 1] = -np.inf
    free = np.full(3, -np.inf), np.full(3, np.inf)
    found = ColumnEnds.of(Intervals.from_bounds(lower, upper), free).skewness
    assert_array_equal(found != 0, [[False, False, True], [True, False, True]])
    shared = ColumnEnds.of(Intervals.from_bounds(lower, upper), free, shared=True)
    assert_array_equal(shared.skewness, [[0], [0]])


def test_columns_on_a_scale_of_their_own_count_as_even():
    cells = Intervals.from_table(np.random.default_rng(0).exponential(size=(60, 3)))
    free = np.full(3, -np.inf), np.full(3, np.inf)
    some = np.array([False, True, False])
    assert_array_equal(ColumnEnds.of(cells, free, on_scale=some).skewness[1] != 0, ~some)
    assert_array_equal(ColumnEnds.of(cells, free, shared=True, on_scale=some).skewness, 0)
    assert (ColumnEnds.of(cells, free, shared=True).skewness != 0).all()


def test_a_column_without_exact_cells_says_nothing():
    table = Intervals.from_bounds(np.full((4, 1), 2.0), np.full((4, 1), np.inf))
    found = ColumnEnds.of(table, (np.array([-np.inf]), np.array([np.inf])))
    assert_array_equal(found.reach, [[-np.inf], [-np.inf]])
    assert_array_equal(found.skewness, [[0], [0]])


def test_ends_that_the_truth_cannot_pass_are_told():
    table = np.arange(8.0).reshape(4, 2)
    assert_array_equal(ends_of(table, low=[0, -np.inf]).bounded, [[True, False], [False, False]])
    assert_array_equal(ends_of(table, 0, [9, np.inf], shared=True).bounded, [[True], [False]])
