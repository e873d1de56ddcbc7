"""Every observed cell is an interval: what goes in, what is kept, what comes out."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from declip import Intervals
from declip.cells import Cells

INF, NAN = np.inf, np.nan
# One cell of each kind: exact, ceiling, floor, range, missing; row 2 is empty.
LOWER = np.array([[3.0, 5.0, -INF, NAN], [NAN, 2.0, 0.5, 5.0], [NAN] * 4, [1.0, -INF, NAN, 4.0]])
UPPER = np.array([[3.0, INF, 1.0, NAN], [NAN, 2.5, 0.5, INF], [NAN] * 4, [1.0, 1.0, NAN, 4.0]])
NOT_ARRAYS = ("weights", "scales")
FIELDS = [f.name for f in dataclasses.fields(Cells) if f.name not in NOT_ARRAYS]


@pytest.fixture
def mixed():
    return Intervals.from_bounds(LOWER, UPPER)


def assert_same(one, other):
    assert one.shape == other.shape
    for name in FIELDS:
        assert_array_equal(getattr(one.by_row, name), getattr(other.by_row, name), err_msg=name)


@st.composite
def bounds(draw):
    """Tables of bounds with at least one observed cell."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    numbers = arrays(np.float64, shape, elements=st.integers(-5, 5).map(float))
    lower, width = draw(numbers), abs(draw(numbers))
    kind = draw(arrays(np.int8, shape, elements=st.integers(0, 4)))
    kind.flat[draw(st.integers(0, kind.size - 1))] = draw(st.integers(0, 3))
    upper = np.where(kind == 0, lower, lower + width)
    upper[kind == 1], lower[kind == 2] = INF, -INF
    lower[kind == 4] = upper[kind == 4] = NAN
    return lower, upper


# The three ways in.

X = np.array([[3.0, 5.0, 1.0], [NAN, 2.0, 5.0], [1.0, NAN, 4.0]])


def test_table_triplets_and_bounds_agree():
    table = Intervals.from_table(X, ceiling=5, floor=1)
    rows, cols = np.nonzero(~np.isnan(X))
    order = np.random.default_rng(0).permutation(len(rows))
    rows, cols = rows[order], cols[order]
    lower, upper = np.where(X == 1, -INF, X), np.where(X == 5, INF, X)
    assert_same(
        table, Intervals.from_triplets(rows, cols, X[rows, cols], (3, 3), ceiling=5, floor=1)
    )
    assert_same(table, Intervals.from_bounds(lower, upper))


def test_a_frame_and_a_sparse_table_agree_with_an_array():
    array = Intervals.from_table(X, ceiling=5, floor=1)
    rows, cols = np.nonzero(~np.isnan(X))
    stored = sparse.coo_array((X[rows, cols], (rows, cols)), shape=X.shape)
    assert_same(array, Intervals.from_table(pd.DataFrame(X), ceiling=5, floor=1))
    assert_same(array, Intervals.from_table(stored, ceiling=5, floor=1))


def test_tol_takes_nearby_values_for_clipped():
    table = Intervals.from_table(np.array([[4.95, 4.0]]), ceiling=5, tol=0.1)
    assert_array_equal(table.to_bounds(), [[[5.0, 4.0]], [[INF, 4.0]]])


def test_an_infinite_ceiling_clips_nothing():
    assert_same(Intervals.from_table(X, ceiling=INF), Intervals.from_table(X))


@given(bounds())
def test_bounds_come_back_as_they_went_in(tables):
    for given_, kept in zip(tables, Intervals.from_bounds(*tables).to_bounds(), strict=True):
        assert_array_equal(kept, given_)


@given(bounds())
def test_a_table_of_exact_cells_equals_its_bounds(tables):
    table = np.where(np.isfinite(tables[0]), tables[0], NAN)
    if not np.isnan(table).all():
        assert_same(Intervals.from_table(table), Intervals.from_bounds(table, table))


# What is kept.


@given(bounds())
def test_cells_are_sorted_by_row_and_column(tables):
    side = Intervals.from_bounds(*tables).by_row
    for rows, cols in (
        (side.exact_rows(), side.exact_idx),
        (side.censored_rows(), side.censored_idx),
    ):
        assert (np.diff(rows.astype(int) * 10 + cols) > 0).all()


@given(bounds())
def test_exact_cells_have_equal_bounds_and_open_ones_do_not(tables):
    table = Intervals.from_bounds(*tables)
    assert (table.by_row.lower < table.by_row.upper).all()
    assert table.n_exact == np.sum(tables[0] == tables[1])
    assert len(table) == np.sum(~np.isnan(tables[0]))


def test_indices_are_int32_and_pointers_int64(mixed):
    for side in (mixed.by_row, mixed.by_col):
        assert side.exact_idx.dtype == side.censored_idx.dtype == np.int32
        assert side.exact_ptr.dtype == side.censored_ptr.dtype == np.int64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_keep_their_precision(dtype):
    table = Intervals.from_bounds(LOWER.astype(dtype), UPPER.astype(dtype))
    for side in (table.by_row, table.by_col, table.treat("value").by_row):
        assert side.value.dtype == side.lower.dtype == side.upper.dtype == dtype


def test_integers_become_double_precision():
    assert Intervals.from_table([[1, 2], [3, 4]]).dtype == np.float64


def test_astype_changes_only_the_precision(mixed):
    single = mixed.astype(np.float32)
    assert single.dtype == np.float32
    assert_same(single.astype(np.float64), mixed)  # the bounds here are exact in single precision
    assert mixed.astype(np.float64) is mixed


@pytest.mark.parametrize("side", ["by_row", "by_col"])
@pytest.mark.parametrize("name", FIELDS)
def test_the_arrays_are_frozen(mixed, side, name):
    array = getattr(getattr(mixed, side), name)
    assert not array.flags.writeable


def test_the_fields_are_frozen(mixed):
    with pytest.raises(dataclasses.FrozenInstanceError):
        mixed.shape = (1, 1)


def test_a_table_stays_the_users_own():
    given_ = np.array([[1.0, 2.0], [3.0, 4.0]])
    table = Intervals.from_table(given_)
    given_[:] = -1
    assert_array_equal(table.to_bounds()[0], [[1, 2], [3, 4]])


def test_triplets_stay_the_users_own():
    rows, cols = np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32)
    values, ceiling = np.array([1.0, 2.0, 3.0]), np.array([[2.0, 4.0]])
    table = Intervals.from_triplets(rows, cols, values, (2, 3))
    limited = Intervals.from_triplets(rows, cols, values, (2, 2), ceiling=ceiling + 2)
    for array in (rows, cols, values):
        array[:] = 0
    for kept in (table, limited):
        assert_array_equal(kept.triplets()[:3], [[0, 0, 1], [0, 1, 0], [1, 2, 3]])


def test_bounds_stay_the_users_own():
    lower, upper = LOWER.copy(), UPPER.copy()
    table = Intervals.from_bounds(lower, upper)
    lower[:], upper[:] = 0, 0
    assert_array_equal(table.to_bounds(), [LOWER, UPPER])


def test_an_empty_row_has_no_cells(mixed):
    side = mixed.by_row
    assert side.exact_ptr[2] == side.exact_ptr[3]
    assert side.censored_ptr[2] == side.censored_ptr[3]


def test_an_empty_column_has_no_cells():
    side = Intervals.from_triplets([0, 1], [0, 2], [1.0, 2.0], (2, 4)).by_col
    assert_array_equal(side.exact_ptr, [0, 1, 1, 2, 2])


def test_repr_counts_the_cells_of_each_kind(mixed):
    assert repr(mixed) == (
        "Intervals(4 x 4, 9 observed: 4 exact, 2 at or above a ceiling, "
        "2 at or below a floor, 1 in a range)"
    )


def test_labels_of_a_frame_are_kept():
    table = Intervals.from_table(pd.DataFrame(X, index=["a", "b", "c"], columns=["x", "y", "z"]))
    assert list(table.row_labels) == ["a", "b", "c"]
    assert list(table.T.row_labels) == ["x", "y", "z"]
    assert list(table.take_rows([2, 0]).row_labels) == ["c", "a"]


# Views.


@given(bounds())
def test_by_col_is_the_table_of_the_transposed_bounds(tables):
    table = Intervals.from_bounds(*tables)
    flipped = Intervals.from_bounds(*(b.T for b in tables))
    assert_same(table.T, flipped)
    for name in FIELDS:
        assert_array_equal(getattr(table.by_col, name), getattr(flipped.by_row, name))


def test_transposing_twice_gives_the_same_object(mixed):
    assert mixed.T.T is mixed


def test_the_views_are_built_once(mixed):
    assert mixed.by_col is mixed.by_col
    assert mixed.T.by_row is mixed.by_col
    assert mixed.T.by_col is mixed.by_row


@given(bounds())
def test_triplets_name_every_cell_once(tables):
    rows, cols, lower, upper = Intervals.from_bounds(*tables).triplets()
    assert len({*zip(rows, cols, strict=True)}) == len(rows)
    assert_array_equal(lower, tables[0][rows, cols])
    assert_array_equal(upper, tables[1][rows, cols])


# What becomes of clipped cells.


@pytest.mark.parametrize("clipped", ["hinge", "tobit"])
def test_hinge_and_tobit_keep_the_censored_cells(mixed, clipped):
    assert mixed.treat(clipped) is mixed


def test_value_takes_the_finite_end_or_the_middle(mixed):
    face = np.array([[3, 5, 1, NAN], [NAN, 2.25, 0.5, 5], [NAN] * 4, [1, 1, NAN, 4]])
    assert_same(mixed.treat("value"), Intervals.from_table(face))


def test_missing_leaves_the_censored_cells_out(mixed):
    exact = np.where(LOWER == UPPER, LOWER, NAN)
    assert_same(mixed.treat("missing"), Intervals.from_table(exact))


def test_treated_tables_have_views_of_their_own(mixed):
    assert mixed.by_col.lower.size  # built before
    assert mixed.treat("missing").by_col.lower.size == 0
    assert mixed.treat("missing").T.n_censored == 0


def test_from_table_treats_clipped_cells_as_asked():
    for clipped in ("value", "missing"):
        assert_same(
            Intervals.from_table(X, ceiling=5, clipped=clipped),
            Intervals.from_table(X, ceiling=5).treat(clipped),
        )


def test_an_unknown_treatment_is_refused(mixed):
    with pytest.raises(ValueError, match=r"clipped must be one of .*'hinge'.* got 'hinges'"):
        mixed.treat("hinges")


# Parts.


@given(bounds(), st.data())
def test_take_rows_is_indexing_of_the_bounds(tables, data):
    n = len(tables[0])
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=8))
    taken = Intervals.from_bounds(*tables).take_rows(rows)
    assert_array_equal(taken.to_bounds(), [b[rows] for b in tables])


def test_take_rows_of_none_is_a_table_without_rows(mixed):
    taken = mixed.take_rows(np.array([], int))
    assert (taken.shape, len(taken)) == ((0, 4), 0)


@given(bounds(), st.integers(0, 2**32 - 1))
def test_keep_keeps_the_marked_cells(tables, seed):
    table = Intervals.from_bounds(*tables)
    marked = np.random.default_rng(seed).random(len(table)) < 0.5
    kept = table.keep(marked[: table.n_exact], marked[table.n_exact :])
    for before, after in zip(table.triplets(), kept.triplets(), strict=True):
        assert_array_equal(after, before[marked])
    assert kept.shape == table.shape


def test_kept_tables_have_views_of_their_own(mixed):
    assert mixed.T.n_censored == 5
    assert mixed.keep(np.ones(4, bool), np.zeros(5, bool)).T.n_censored == 0


def test_a_table_too_large_for_memory_is_refused_before_it_is_made():
    huge = Intervals.from_triplets([0], [0], [1.0], (1_000_000, 1_000_000))
    with pytest.raises(MemoryError, match="triplets"):
        huge.to_bounds()


def test_other_bounds_for_the_same_cells(mixed):
    _, _, lower, upper = mixed.triplets()
    assert_same(mixed.with_bounds(lower, upper), mixed)
    opened = mixed.with_bounds(np.full(len(mixed), -INF), upper)
    assert opened.n_exact == 0
    assert len(opened) == len(mixed)


def test_a_shape_whose_pointers_cannot_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr("declip.validation.sizes.free_memory", lambda: 2**30)
    with pytest.raises(MemoryError, match=r"the table needs 64\.0 GiB .* leave out its empty rows"):
        Intervals.from_triplets([2**31 - 2], [2**31 - 2], [1.0])


# Tables read from files.


def test_sound_cells_are_taken(mixed):
    mixed.by_row._check_loaded()
    mixed._check_loaded()


def _changed(array, at, value):
    new = array.copy()
    new[at] = value
    return new


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("exact_ptr", lambda x: x.astype(np.int32)),
        ("censored_ptr", lambda x: x.astype(np.int32)),
        ("exact_idx", lambda x: x.astype(np.int64)),
        ("exact_ptr", lambda x: x[:-1]),
        ("censored_ptr", lambda x: np.append(x, x[-1])),
        ("exact_ptr", lambda x: _changed(x, 0, 1)),
        ("censored_ptr", lambda x: _changed(x, -1, x[-1] - 1)),
        ("censored_ptr", lambda x: _changed(x, 1, x[-1] + 1)),
        ("exact_ptr", lambda x: _changed(x, 1, x[2] + 1)),
        ("value", lambda x: x[:-1]),
        ("lower", lambda x: x[:-1]),
        ("upper", lambda x: x.astype(int)),
        ("value", lambda x: x.astype(int)),
    ],
)
def test_cells_that_do_not_fit_together_are_refused(mixed, name, change):
    cells = mixed.by_row
    with np.errstate(invalid="ignore"):
        broken = dataclasses.replace(cells, **{name: change(getattr(cells, name))})
    with pytest.raises(ValueError, match="do not fit together"):
        broken._check_loaded()


@pytest.mark.parametrize(
    ("name", "value"), [("value", NAN), ("lower", INF), ("upper", -INF), ("upper", NAN)]
)
def test_bounds_out_of_order_are_refused(mixed, name, value):
    cells = mixed.by_row
    broken = dataclasses.replace(cells, **{name: _changed(getattr(cells, name), 0, value)})
    with pytest.raises(ValueError, match="not in order"):
        broken._check_loaded()


@pytest.mark.parametrize("name", ["exact_idx", "censored_idx"])
@pytest.mark.parametrize("column", [-1, 4, 5])
def test_cells_outside_of_their_table_are_refused(mixed, name, column):
    cells = mixed.by_row
    broken = dataclasses.replace(cells, **{name: _changed(getattr(cells, name), 0, column)})
    with pytest.raises(ValueError, match="outside of it"):
        dataclasses.replace(mixed, by_row=broken)._check_loaded()


def test_a_table_without_censored_cells_is_taken():
    exact = Intervals.from_table(np.eye(3))
    exact._check_loaded()
    exact.by_row._check_loaded()


def test_a_table_has_the_rows_of_its_cells(mixed):
    with pytest.raises(ValueError, match="number of rows"):
        dataclasses.replace(mixed, shape=(5, 4))._check_loaded()


def test_weights_and_noise_scales_go_with_their_cells():
    cells = Intervals.from_bounds(LOWER, UPPER)
    rows, cols, lower, upper = cells.triplets()
    weight, scale = 1.0 + 10 * rows + cols, 2.0 + 10 * rows + cols

    def given(cells):
        side, n = cells.by_row, cells.n_exact
        weights = weight[:n], weight[n:]
        return dataclasses.replace(
            cells, by_row=dataclasses.replace(side, weights=weights, scales=scale[n:])
        )

    def agree(cells):
        for side, (near, far) in ((cells.by_row, (10, 1)), (cells.by_col, (1, 10))):
            exact, censored = side.weights
            assert_array_equal(exact, 1 + near * side.exact_rows() + far * side.exact_idx)
            at = near * side.censored_rows() + far * side.censored_idx
            assert_array_equal(censored, 1 + at)
            assert_array_equal(side.scales, 2 + at)

    table = given(cells)
    agree(table)
    agree(table.astype(np.float32))
    exact = np.arange(cells.n_exact) % 2 == 0
    agree(table.keep(exact, np.arange(cells.n_censored) % 2 == 1))
    agree(table.with_bounds(lower, upper))
    assert table.by_row.weight == (weight[: cells.n_exact].sum(), weight[cells.n_exact :].sum())
    assert cells.by_row.weight == (cells.n_exact, cells.n_censored)
    face = table.treat("value")
    assert face.by_row.weight == (weight.sum(), 0)


@pytest.mark.parametrize(("scale", "half"), [("sqrt", np.sqrt(0.5)), ("log1p", np.log(1.5))])
def test_a_count_of_zero_lies_below_one_half(scale, half):
    counts = Intervals.from_table(np.array([[0.0, 4.0, 5.0]]), ceiling=5)
    lower, upper = counts.on_scale(scale, counts=True).to_bounds()
    assert lower[0, 0] == -np.inf
    assert_allclose(upper[0, 0], half)
    assert lower[0, 1] == upper[0, 1]
    assert upper[0, 2] == np.inf


def test_a_censored_cell_is_so_to_the_right_the_left_or_in_a_range():
    lower = np.array([[-INF, 1.0, 2.0, 3.0]])
    cells = Intervals.from_bounds(lower, np.array([[0.5, INF, 2.5, 3.0]])).by_row
    assert_array_equal(cells.left_censored, [True, False, False])
    assert_array_equal(cells.right_censored, [False, True, False])
