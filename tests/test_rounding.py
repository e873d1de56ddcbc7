"""Values recorded in steps: what a limit says of them."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from declip import Intervals, restore
from declip.rounding import RoundingGrid, apparent_levels

INF = np.inf


def column(values, ceiling=None, floor=None):
    return Intervals.from_table(np.array(values, float)[:, None], ceiling=ceiling, floor=floor)


def test_the_step_of_a_grid_is_found():
    assert_allclose(RoundingGrid.of(column([0.1, 0.3, 0.4, 0.7, 0.9, 0.9], ceiling=0.9)).sizes, 0.1)


def test_steps_are_those_near_the_end():
    values = np.concatenate([np.arange(0, 10, 0.5), np.arange(10, 30, 2.0)])
    low, high = RoundingGrid.of(column(values)).sizes[:, 0]
    assert_allclose([low, high], [0.5, 2.0])


def test_values_that_differ_by_rounding_errors_are_equal():
    assert_allclose(RoundingGrid.of(column([0.1 * 3, 0.3, 0.2, 0.1, 0.4])).sizes, 0.1)


def test_continuous_columns_have_next_to_no_steps():
    values = np.random.default_rng(0).normal(size=500)
    ceiling = np.sort(values)[-100]
    assert RoundingGrid.of(column(np.minimum(values, ceiling), ceiling=ceiling)).sizes[1, 0] < 0.01


def test_two_values_tell_no_step():
    assert_array_equal(RoundingGrid.of(column([1.0, 5.0, 5.0], ceiling=5.0)).sizes, 0)


def test_all_columns_of_ratings_share_one_step():
    table = np.array([[1.0, 5.0], [3.0, 2.0], [4.0, np.nan]])
    assert_array_equal(
        RoundingGrid.of(Intervals.from_table(table, ceiling=5.0), shared=True).sizes, 1
    )


def test_limits_move_half_a_step_inside_and_ranges_stay():
    steps = RoundingGrid(np.array([[0.2], [0.4]]))
    lower, upper = np.array([5.0, -INF, 1.0]), np.array([INF, 0.0, 2.0])
    low, high = steps.inside(lower, upper, np.zeros(3, int))
    assert_allclose(low, [4.8, -INF, 1.0])
    assert_allclose(high, [INF, 0.1, 2.0])


def test_widening_leaves_exact_cells_and_the_order_of_cells():
    cells = column([1.0, 2.0, 3.0, 4.0, 4.0], ceiling=4.0)
    wide = RoundingGrid.of(cells).widen(cells)
    assert_array_equal(wide.by_row.value, cells.by_row.value)
    assert_array_equal(wide.by_row.lower, [3.5, 3.5])
    assert_array_equal(wide.by_row.censored_idx, cells.by_row.censored_idx)


def test_cells_of_a_grid_are_not_restored_beyond_where_their_ties_lie():
    # Ten whole numbers, a third of the column at the ceiling itself and nothing beyond it.
    rng = np.random.default_rng(0)
    truth = np.minimum(np.round(5 + 2.5 * rng.normal(size=(300, 4))), 6.0)
    r = restore(truth, ceiling=6.0, method="column")
    assert (r.table[truth == 6] >= 5.5).all()
    assert np.isfinite(r.table).all()


def test_a_few_strays_between_whole_numbers_hide_no_step():
    values = [*np.repeat([2.0, 3.0, 4.0, 5.0], 40), 3.9, 4.1, 4.99]
    assert_allclose(RoundingGrid.of(column(values, ceiling=5.0)).sizes, 1.0)


def test_one_step_counts_where_many_share_its_value():
    values = [*np.repeat([4.0, 5.0], 40), 4.3]
    assert_allclose(RoundingGrid.of(column(values, ceiling=5.0)).sizes[1], 1.0)


def test_levels_are_few_values_at_even_distances():
    rng = np.random.default_rng(0)
    answers = rng.integers(1, 6, 200).astype(float)
    assert_array_equal(apparent_levels(column(answers, ceiling=5)), [1, 2, 3, 4])
    assert apparent_levels(column(np.where(answers == 3, 3.3, answers))) is None
    assert apparent_levels(column(answers[:30])) is None  # too few to tell
    assert apparent_levels(column(rng.normal(size=200))) is None


def test_restore_tells_of_levels():
    rng = np.random.default_rng(0)
    opinion = 3.5 + rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, 6))
    r = restore(np.clip(np.round(opinion), 1, 5), ceiling=5, effort="quick", random_state=0)
    assert any("are levels (1, 2, 3, 4)" in note for note in r.warnings)
