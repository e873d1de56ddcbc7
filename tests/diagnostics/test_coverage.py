import numpy as np
import pytest

from declip import Intervals, diagnose
from declip.diagnostics.coverage import Coverage
from declip.diagnostics.limit_checks import table_limits

nan, inf = np.nan, np.inf


def kinds_of(diagnosis):
    return [concern.kind for concern in diagnosis.concerns]


def test_counts_are_those_of_the_table():
    X = np.array([[5.0, 1.0, 2.0], [nan, 5.0, 3.0], [nan, nan, nan]])
    found = Coverage.of(Intervals.from_table(X, ceiling=5, floor=1))
    assert found.rows.exact.tolist() == [1, 1, 0]
    assert found.rows.ceiling.tolist() == [1, 1, 0]
    assert found.rows.floor.tolist() == [1, 0, 0]
    assert found.cols.observed.tolist() == [1, 2, 2]
    assert found.rows.clipped_share.tolist() == [2 / 3, 1 / 2, 0]
    assert (found.n_exact, found.n_clipped, found.n_observed) == (2, 3, 5)


def test_ranges_are_counted_apart():
    found = Coverage.of(Intervals.from_bounds([[0.0, 1.0]], [[2.0, 1.0]]))
    assert found.rows.ranged.tolist() == [1]
    assert found.rows.ceiling.tolist() == [0]


def test_components_are_those_of_a_flood_fill():
    rng = np.random.default_rng(0)
    mask = rng.random((30, 25)) < 0.05
    mask[0, 0] = True
    found = Coverage.of(Intervals.from_table(np.where(mask, 1.0, nan)))
    label = -np.ones(55, int)
    for start in range(55):
        if label[start] >= 0:
            continue
        todo, label[start] = [start], start
        while todo:
            node = todo.pop()
            near = (
                np.flatnonzero(mask[node]) + 30 if node < 30 else np.flatnonzero(mask[:, node - 30])
            )
            for other in near:
                if label[other] < 0:
                    label[other] = start
                    todo.append(other)
    assert found.n_components == len(set(label.tolist()))
    ours = np.concatenate([found.rows.component, found.cols.component])
    assert len({*zip(ours.tolist(), label.tolist(), strict=True)}) == found.n_components
    assert (np.diff(np.bincount(ours)) <= 0).all()  # the largest is 0


def test_clipped_cells_connect_nothing():
    X = np.array([[1.0, 5.0], [5.0, 2.0]])
    assert Coverage.of(Intervals.from_table(X, ceiling=5)).n_components == 2
    assert Coverage.of(Intervals.from_table(X)).n_components == 1


def test_ranks_count_what_they_are_too_much_for():
    X = np.full((6, 5), 1.0)
    X[0, 2:] = nan
    table = Coverage.of(Intervals.from_table(X)).ranks()
    assert table["rank"].tolist() == [1, 2, 3, 4, 5]
    assert table["freedom"].tolist() == [10, 18, 24, 28, 30]
    assert table["short_rows"].tolist() == [0, 0, 1, 1, 1]
    assert table["short_columns"].tolist() == [0, 0, 0, 0, 0]


def test_largest_rank_is_zero_without_enough_cells():
    X = np.full((4, 4), nan)
    X[0, 0] = 1.0
    assert Coverage.of(Intervals.from_table(X)).largest_rank() == 0


def test_a_complete_table_can_carry_its_full_rank():
    assert Coverage.of(Intervals.from_table(np.ones((6, 5)))).largest_rank() == 5


def test_a_limit_that_is_never_reached_is_named():
    found = diagnose(np.array([[1.0, 2.0], [3.0, 4.0]]), ceiling=9)
    assert kinds_of(found) == ["never reached"]
    assert "No value is at the ceiling" in str(found)


def test_a_column_wholly_clipped_is_named():
    found = diagnose(np.array([[1.0, 5.0], [3.0, 5.0]]), ceiling=5)
    assert [c.which for c in found.concerns if c.kind == "wholly clipped"] == [(1,)]


def test_a_ceiling_far_below_the_other_columns_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(10, 1, (40, 6))
    X[:, 2] = np.minimum(X[:, 2], 9)
    ceiling = [20, 20, 9, 20, 20, 20]
    X[:30, 2] = 9
    found = diagnose(X, ceiling=ceiling)
    assert [c.which for c in found.concerns if c.kind == "mostly clipped"] == [(2,)]


def test_values_that_rounding_keeps_from_the_limit_are_named():
    X = np.tile([1.0, 2.0, 5.0], (10, 1))
    X[:4, 2] = 5 - 1e-9
    found = diagnose(X, ceiling=5)
    assert "nearly at the limit" in kinds_of(found)
    assert kinds_of(diagnose(np.tile([1.0, 2.0, 5.0], (10, 1)), ceiling=5)) == ["wholly clipped"]


def test_limits_are_read_off_an_intervals_where_a_column_has_one():
    X = np.array([[1.0, 5.0], [7.0, 2.0], [7.0, 5.0]])
    limits = table_limits(Intervals.from_table(X, ceiling=[7, 5]), None, None)
    assert limits.ceiling.tolist() == [[7, 5]]
    assert limits.floor.tolist() == [[-inf, -inf]]


def test_limits_that_differ_within_a_column_are_not_made_up():
    X = np.array([[1.0, 5.0], [7.0, 2.0], [7.0, 6.0]])
    intervals = Intervals.from_table(X, ceiling=np.array([[9.0, 5], [7, 9], [7, 6]]))
    assert table_limits(intervals, None, None) is None


@pytest.mark.parametrize("shape", [(1, 4), (4, 1)])
def test_a_single_row_or_column_is_no_obstacle(shape):
    X = np.array([1.0, 2.0, 3.0, 3.0]).reshape(shape)
    assert diagnose(X, ceiling=3).coverage.n_clipped == 2


def test_values_that_end_as_if_at_a_ceiling_are_told_if_none_was_given():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X[:, 1] = np.minimum(X[:, 1], 0.5)
    (concern,) = diagnose(X).concerns
    assert (concern.kind, concern.which) == ("no limit given", (1,))
    assert "pass ceiling=" in concern.text
    assert not diagnose(X, ceiling=np.array([np.inf, 0.5, np.inf])).concerns
