"""Splits of cells."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from tests.model_selection.tables import SPLITTERS, clipped_cells, clipped_table, sparse_cells

from declip import EntryKFold, EntryShuffleSplit, Intervals
from declip.model_selection.splits import keep_cells


@pytest.mark.parametrize("cv", SPLITTERS)
def test_train_and_test_part_the_cells(cv):
    cells = clipped_cells()
    for train, test in cv.split(cells):
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(cells)))
        assert_array_equal(train, np.sort(train))
        assert_array_equal(test, np.sort(test))


def test_folds_hold_out_every_cell_once_where_lines_have_many():
    cells = clipped_cells()
    held_out = np.concatenate([test for _, test in EntryKFold(5, random_state=0).split(cells)])
    assert_array_equal(np.sort(held_out), np.arange(len(cells)))


@pytest.mark.parametrize("cv", SPLITTERS)
def test_each_part_has_its_share_of_exact_and_of_clipped_cells(cv):
    cells = clipped_cells()
    share = 0.25 if isinstance(cv, EntryKFold) else 0.3
    for _, test in cv.split(cells):
        exact = (test < cells.n_exact).sum()
        assert abs(exact - share * cells.n_exact) <= 1
        assert abs(len(test) - exact - share * cells.n_censored) <= 1


@given(st.integers(0, 10**6), st.floats(0.1, 0.6), st.floats(0, 0.9), st.booleans())
def test_no_row_or_column_is_emptied_of_cells_or_of_exact_cells(seed, share, clipped, folds):
    cells = sparse_cells(seed, (15, 12), share, clipped)
    cv = EntryKFold(2, random_state=seed) if folds else EntryShuffleSplit(2, test_size=0.8)
    try:
        splits = list(cv.split(cells))
    except ValueError:  # nothing to hold out
        assume(False)
    for train, _ in splits:
        kept = keep_cells(cells, train)
        for before, after in ((cells.by_row, kept.by_row), (cells.by_col, kept.by_col)):
            exact, exact_kept = np.diff(before.exact_ptr), np.diff(after.exact_ptr)
            both, both_kept = (
                exact + np.diff(before.censored_ptr),
                exact_kept + np.diff(after.censored_ptr),
            )
            assert (exact_kept[exact > 0] > 0).all()
            assert (both_kept[both > 0] > 0).all()


def test_a_lone_cell_of_a_row_is_never_held_out():
    X = clipped_table()
    X[3] = np.nan
    X[3, 5] = 1.0
    cells = Intervals.from_table(X, ceiling=4)
    rows, _, _, _ = cells.triplets()
    for _, test in EntryKFold(3, random_state=0).split(cells):
        assert 3 not in rows[test]


@pytest.mark.parametrize("cv", SPLITTERS)
def test_an_integer_seed_gives_the_same_splits_again(cv):
    cells = clipped_cells()
    for once, again in zip(cv.split(cells), cv.split(cells), strict=True):
        assert_array_equal(once[1], again[1])


def test_other_seeds_give_other_splits():
    cells = clipped_cells()
    tests = [next(EntryKFold(random_state=s).split(cells))[1] for s in (0, 1)]
    assert not np.array_equal(*tests)


@pytest.mark.parametrize("cv", SPLITTERS)
def test_as_many_splits_as_promised(cv):
    assert len(list(cv.split(clipped_cells()))) == cv.get_n_splits()


def test_a_table_is_split_as_its_cells():
    X = clipped_table()
    once = next(EntryKFold(random_state=0).split(X))
    again = next(EntryKFold(random_state=0).split(Intervals.from_table(X)))
    assert_array_equal(once[1], again[1])


def test_kept_cells_are_those_at_the_positions():
    cells = clipped_cells()
    train, _ = next(EntryKFold(random_state=0).split(cells))
    for kept, all_of_them in zip(
        keep_cells(cells, train).triplets(), cells.triplets(), strict=True
    ):
        assert_array_equal(kept, all_of_them[train])


def test_too_few_cells_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"of the 2 observed cells, .* fewer folds"):
        list(EntryKFold(2).split(np.array([[1.0, np.nan], [np.nan, 2.0]])))


@pytest.mark.parametrize(
    "make",
    [
        lambda: EntryKFold(1),
        lambda: EntryShuffleSplit(0),
        lambda: EntryShuffleSplit(test_size=1.0),
        lambda: EntryShuffleSplit(test_size=0.0),
    ],
)
def test_splits_that_cannot_be_are_refused(make):
    with pytest.raises(ValueError, match=r"n_splits|test_size"):
        make()
