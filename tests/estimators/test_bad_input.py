"""Bad input gets a clear error that names the place and the remedy, and nothing is lost."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal, assert_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from declip import DTrCMC, ExactCMC, FroCMC, Intervals, TrCMC

NAN, INF = np.nan, np.inf
CEILING = 4.0
FACTORS = [FroCMC(n_components=2, ceiling=CEILING, random_state=0)]
ESTIMATORS = [
    *FACTORS,
    TrCMC(ceiling=CEILING, tol=1e-3),
    TrCMC(ceiling=CEILING, tol=1e-3, solver="factored"),
    ExactCMC(ceiling=CEILING, tol=1e-2),
    DTrCMC(ceiling=CEILING, max_iter=10, tol=1.0),  # counts as settled, and is silent
]


def name_of(estimator):
    return (
        type(estimator).__name__
        + " " * hasattr(estimator, "solver")
        + getattr(estimator, "solver", "")
    )


each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
each_with_factors = pytest.mark.parametrize("estimator", FACTORS, ids=name_of)
each_reader = pytest.mark.parametrize("method", ["transform", "predict", "score"])

_rng = np.random.default_rng(0)
X = np.minimum((1 + _rng.standard_normal((12, 2))) @ (1 + _rng.standard_normal((2, 6))), CEILING)
FRAME = pd.DataFrame(X, columns=list("abcdef"), index=[f"s{i}" for i in range(12)])


def changed(row, col, value):
    table = X.astype(type(value) if isinstance(value, complex) else float)
    table[row, col] = value
    return table


def objects(row, col, value):
    table = X.astype(object)
    table[row, col] = value
    return table


def refuses(error, *fragments):
    """Expect an error whose message holds all these fragments, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(f) for f in fragments))


# Tables


TABLES = {
    "infinite": (
        changed(3, 4, INF),
        ValueError,
        ["1 cell has an infinite value", "row 3, column 4", "Write NaN for a missing cell"],
    ),
    "infinite, labelled": (
        pd.DataFrame(changed(3, 4, -INF), columns=FRAME.columns, index=FRAME.index),
        ValueError,
        ["infinite value", "row 's3', column 'e'", "the limit itself for a clipped one"],
    ),
    "infinite, sparse": (
        sp.csr_array(changed(3, 4, INF)),
        ValueError,
        ["infinite value", "row 3, column 4"],
    ),
    "too large": (
        changed(3, 4, -1e200),
        ValueError,
        ["-1e+200", "row 3, column 4", "too large", "Rescale the data"],
    ),
    "above the ceiling": (
        changed(3, 4, 9.0),
        ValueError,
        ["1 of 72 values", "above their ceiling", "row 3, column 4", "9.0 above 4.0", "raise it"],
    ),
    "all missing": (np.full((4, 3), NAN), ValueError, ["no observed cell", "(4, 3)"]),
    "no rows": (np.empty((0, 6)), ValueError, ["0 sample(s)", "minimum of 1 is required"]),
    "no columns": (np.empty((12, 0)), ValueError, ["0 feature(s)", "minimum of 1 is required"]),
    "one dimension": (X[0], ValueError, ["Expected 2D array, got 1D", "reshape(-1, 1)"]),
    "three dimensions": (X[np.newaxis], ValueError, ["dim 3", "required by"]),
    "text": (
        objects(3, 4, "good"),
        ValueError,
        ["column 4 holds text", "'good' at row 3", "Convert the column to numbers"],
    ),
    "text below a limit": (
        FRAME.astype({"e": object}).assign(e=["<0.5", *FRAME["e"][1:]]),
        ValueError,
        ["column 'e'", "'<0.5' at row 's0'", "Write the limit itself", "pass it as floor="],
    ),
    "numbers as text": (
        FRAME.astype({"e": str}),
        ValueError,
        ["column 'e' holds text", "row 's0'", "astype(float)"],
    ),
    "dates": (
        FRAME.assign(e=pd.Timestamp("2020-01-01")),
        TypeError,
        ["column 'e' holds dates", "convert them to numbers or drop them"],
    ),
    "durations": (X.astype("m8[s]"), TypeError, ["X holds dates or durations", "drop them"]),
    "objects": (
        objects(3, 4, {"value": 1}),
        TypeError,
        ["column 4 holds {'value': 1} at row 3", "Convert the column to numbers or drop it"],
    ),
    "complex": (changed(3, 4, 1j), ValueError, ["Complex data not supported"]),
    "lazy": (pl.LazyFrame({"a": [1.0]}), TypeError, ["lazy frame", "collect()"]),
    "duplicates": (
        sp.coo_array(([1.0, 2.0, 3.0], ([0, 4, 4], [1, 2, 2])), shape=(12, 6)),
        ValueError,
        ["row 4, column 2 is given twice", "never summed", "keep one value"],
    ),
}


@each_estimator
@pytest.mark.parametrize(("table", "error", "message"), TABLES.values(), ids=TABLES)
def test_fit_refuses_a_bad_table(estimator, table, error, message):
    with refuses(error, *message):
        clone(estimator).fit(table)


@each_estimator
@pytest.mark.parametrize(("table", "error", "message"), TABLES.values(), ids=TABLES)
def test_fit_transform_refuses_a_bad_table(estimator, table, error, message):
    with refuses(error, *message):
        clone(estimator).fit_transform(table)


@each_estimator
@each_reader
@pytest.mark.parametrize(
    "name",
    ["infinite", "too large", "above the ceiling", "no rows", "one dimension", "text", "complex"],
)
def test_a_fitted_model_refuses_a_bad_table(estimator, method, name):
    table, error, message = TABLES[name]
    model = clone(estimator).fit(X)
    with refuses(error, *message):
        getattr(model, method)(table)


@each_estimator
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_complex_numbers_are_told_by_column_with_the_remedy(estimator, kind):
    message = ["Complex data not supported", "column", "real"]
    with refuses(ValueError, *message) as caught:
        clone(estimator).fit(kind(changed(3, 4, 1j)))
    assert len(str(caught.value)) < 300  # the table itself is no part of the message


@each_estimator
def test_a_row_without_any_cell_is_no_error_in_transform(estimator):
    restored = clone(estimator).fit(X).transform(np.full((1, 6), NAN))
    assert np.isfinite(restored).all()


@each_estimator
def test_below_the_floor_the_remedy_is_to_lower_it(estimator):
    table = np.maximum(X, 0.0)
    table[2, 1] = -3.0
    with refuses(ValueError, "1 of 72", "below their floor", "row 2, column 1", "else lower it"):
        clone(estimator).set_params(floor=0.0).fit(table)


@pytest.mark.parametrize(
    ("estimator", "clipped"),
    [
        *((estimator, mode) for estimator in ESTIMATORS for mode in ("hinge", "missing")),
        *(
            (estimator, "tobit")
            for estimator in ESTIMATORS
            if isinstance(estimator, FroCMC | TrCMC)
        ),
    ],
)
def test_a_table_that_is_clipped_throughout_is_refused_with_the_count(estimator, clipped):
    model = clone(estimator).set_params(clipped=clipped)
    with refuses(ValueError, "All 12 observed cells are clipped", "Are ceiling and floor right?"):
        model.fit(np.full((4, 3), CEILING))


@each_estimator
def test_an_intervals_table_with_no_bounded_cell_is_refused(estimator):
    intervals = Intervals.from_bounds(np.zeros((3, 3)), np.full((3, 3), INF))
    with refuses(ValueError, "All 9 observed cells are clipped"):
        clone(estimator).fit(intervals)


@each_estimator
def test_ranges_alone_are_refused_once_they_are_left_out(estimator):
    ranges = Intervals.from_bounds(np.zeros((3, 3)), np.ones((3, 3)))
    with refuses(ValueError, "All 9 observed cells are clipped"):
        clone(estimator).set_params(clipped="missing").fit(ranges)


@each_estimator
def test_a_table_without_any_cell_cannot_be_scored(estimator):
    model = clone(estimator).fit(X)
    with refuses(ValueError, "no observed cell"):
        model.score(np.full((2, 6), NAN))


# Limits


LIMITS = {
    "NaN": ({"ceiling": NAN}, ValueError, ["ceiling is NaN", "Use inf where there is no ceiling"]),
    "NaN in a column": (
        {"ceiling": [5, 5, NAN, 5, 5, 5]},
        ValueError,
        ["ceiling is NaN in column 2", "Use inf"],
    ),
    "NaN in a row": (
        {"floor": np.where(np.arange(12) == 7, NAN, -9.0).reshape(-1, 1)},
        ValueError,
        ["floor is NaN in row 7", "Use -inf where there is no floor"],
    ),
    "minus infinity": (
        {"ceiling": -INF},
        ValueError,
        ["ceiling is -inf", "leaves no room", "Use inf"],
    ),
    "floor above ceiling": (
        {"floor": 5.0},
        ValueError,
        ["floor must lie below ceiling", "floor 5.0 >= ceiling 4.0"],
    ),
    "floor at ceiling in a column": (
        {"floor": [-9, -9, -9, 4, -9, -9]},
        ValueError,
        ["floor must lie below ceiling", "in column 3", "floor 4.0 >= ceiling 4.0"],
    ),
    "one a row as a flat array": (
        {"ceiling": np.full(12, CEILING)},
        ValueError,
        ["ceiling has shape (12,)", "table's shape (12, 6)", "(6,)", "use reshape(-1, 1)"],
    ),
    "wrong shape": (
        {"floor": np.full((2, 2), -9.0)},
        ValueError,
        ["floor has shape (2, 2)", "table's shape (12, 6)", "Accepted are", "(12, 1) per row"],
    ),
    "text": ({"ceiling": "five"}, TypeError, ["ceiling must hold numbers", "'five'"]),
    "unknown column": (
        {"ceiling": {9: 5.0}},
        ValueError,
        ["ceiling names column 9", "does not have", "0 to 5"],
    ),
}


@each_estimator
@pytest.mark.parametrize(("limits", "error", "message"), LIMITS.values(), ids=LIMITS)
def test_fit_refuses_a_bad_limit(estimator, limits, error, message):
    with refuses(error, *message):
        clone(estimator).set_params(**limits).fit(X)


@each_estimator
def test_a_floor_above_its_ceiling_is_told_by_the_name_of_the_column(estimator):
    model = clone(estimator).set_params(floor={"d": 4.5})
    with refuses(ValueError, "in column 'd'", "floor 4.5 >= ceiling 4.0"):
        model.fit(FRAME)


@each_estimator
def test_a_misspelt_column_of_a_limit_gets_a_proposal(estimator):
    frame = FRAME.rename(columns={"a": "CRP"})
    with refuses(ValueError, "ceiling names column 'CPR'", "Did you mean 'CRP'?"):
        clone(estimator).set_params(ceiling={"CPR": 4.0}).fit(frame)


@each_estimator
def test_limits_by_row_do_not_fit_new_rows_and_the_error_says_how_to_give_them(estimator):
    model = clone(estimator).set_params(ceiling=np.full((12, 1), CEILING)).fit(X)
    with refuses(ValueError, "ceiling has shape (12, 1)", "table's shape (3, 6)", "Intervals"):
        model.transform(X[:3])


# Parameters


@each_with_factors
@pytest.mark.parametrize("rank", [0, -1, 2.0, "2", None])
def test_a_rank_that_is_no_positive_integer_is_refused(estimator, rank):
    message = f"'n_components' parameter of {type(estimator).__name__} must be an int"
    with refuses(ValueError, message, f"Got {rank!r} instead"):
        clone(estimator).set_params(n_components=rank).fit(X)


def test_a_rank_of_true_is_refused():
    with refuses(TypeError, "n_components must be an integer from 1 to 6", "got True"):
        FroCMC(True).fit(X)


@each_with_factors
@pytest.mark.parametrize("rank", [7, 100])
def test_a_rank_above_the_smaller_side_is_refused_with_the_shape(estimator, rank):
    message = ["n_components", "from 1 to 6", "smaller side of the (12, 6) table", f"got {rank}"]
    with refuses(ValueError, *message):
        clone(estimator).set_params(n_components=rank).fit(X)


@each_with_factors
def test_a_rank_that_does_not_fit_is_refused_before_it_is_warned_about(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with refuses(ValueError, "n_components must be an integer from 1 to 6"):
            clone(estimator).set_params(n_components=7).fit(X)


@pytest.mark.parametrize(
    ("name", "value", "range_"),
    [
        *(("alpha", value, "[0.0, inf)") for value in (-1.0, NAN, INF, "1", None)),
        *(("tol", value, "[0.0, inf)") for value in (-1e-9, NAN)),
        *(("max_iter", value, "[1, inf)") for value in (0, 1.5)),
        ("clipped", "huber", "'hinge'"),
        ("init", "zeros", "'random'"),
        ("bias", "yes", "bool"),
    ],
)
def test_a_parameter_out_of_range_is_refused_with_its_range(name, value, range_):
    with refuses(ValueError, f"'{name}' parameter of FroCMC must be", range_, f"Got {value!r}"):
        FroCMC(2, **{name: value}).fit(X)


@each_estimator
def test_a_fit_parameter_is_refused_by_name(estimator):
    with refuses(TypeError, "sample_weight"):
        clone(estimator).fit_transform(X, sample_weight=np.ones(12))


# Before a fit, and cells to look up


@each_estimator
@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.transform(X),
        lambda model: model.predict(X),
        lambda model: model.predict([0], [0]),
        lambda model: model.reconstruct(),
        lambda model: model.score(X),
    ],
)
def test_a_model_that_is_not_fitted_says_so(estimator, ask):
    with refuses(NotFittedError, "is not fitted yet. Call 'fit'"):
        ask(clone(estimator))


@each_estimator
@pytest.mark.parametrize(
    ("rows", "cols", "error", "message"),
    [
        ([0, -1], [0, 0], ValueError, ["rows[1] is -1", "from 0 to 11", "shape (12, 6)"]),
        ([0, 12], [0, 0], ValueError, ["rows[1] is 12", "from 0 to 11"]),
        ([0, 1], [6, 0], ValueError, ["cols[0] is 6", "from 0 to 5"]),
        ([0, 1], [0], ValueError, ["equal lengths", "got 2 and 1", "reconstruct(rows=, cols=)"]),
        ([0.0], [0], TypeError, ["rows must hold integers, not float64", "astype(int)"]),
        (["s1"], [0], TypeError, ["rows must hold integers", "number the labels"]),
        ([[0]], [0], ValueError, ["rows must be 1-D", "(1, 1)"]),
        (3, 0, ValueError, ["rows must be 1-D"]),
    ],
)
def test_predict_refuses_cells_that_are_not_there(estimator, rows, cols, error, message):
    model = clone(estimator).fit(X)
    with refuses(error, *message):
        model.predict(rows, cols)


@each_estimator
def test_a_mask_in_place_of_numbers_gets_the_right_remedy(estimator):
    model = clone(estimator).fit(X)
    with refuses(TypeError, "rows must hold integers, not bool", "flatnonzero"):
        model.predict(np.ones(12, bool), np.zeros(12, int))


@each_estimator
def test_predict_takes_no_sparse_table_and_says_what_to_do(estimator):
    model = clone(estimator).fit(X)
    with refuses(TypeError, "no sparse table", "predict(rows, cols)", "transform"):
        model.predict(sp.csr_array(X))


@each_estimator
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([12], ["rows holds 12", "from 0 to 11"]),
        (np.ones(5, bool), ["mask", "5", "12"]),
        ([1.5], ["rows", "integers"]),
        (["s1"], ["rows", "integers"]),
    ],
)
def test_reconstruct_refuses_rows_that_are_not_there(estimator, rows, message):
    model = clone(estimator).fit(X)
    with refuses((IndexError, TypeError, ValueError), *message):
        model.reconstruct(rows=rows)


@pytest.mark.parametrize(
    ("rows", "cols", "values", "message"),
    [
        ([0, 0], [1, 1], [1.0, 2.0], ["row 0, column 1 is given twice", "never summed"]),
        ([0, -1], [0, 0], [1.0, 2.0], ["rows[1] is -1", "from 0"]),
        ([0, 1], [0, 6], [1.0, 2.0], ["cols[1] is 6", "from 0 to 5", "(12, 6)"]),
        ([0, 1], [0, 1], [1.0, NAN], ["NaN as value", "row 1, column 1", "leave these out"]),
        ([0, 1], [0, 1], [1.0, INF], ["infinite value", "row 1, column 1"]),
        ([0, 1], [0, 1], [1.0, 9.0], ["above their ceiling", "row 1, column 1", "9.0 above 4.0"]),
    ],
)
def test_bad_triplets_never_reach_a_fit(rows, cols, values, message):
    with refuses(ValueError, *message):
        Intervals.from_triplets(rows, cols, values, shape=(12, 6), ceiling=CEILING)


# After an error


class Interrupting:
    """A callback that raises after some sweeps."""

    def __init__(self, error, after=2):
        self.error, self.left = error, after

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.left -= 1
        if self.left == 0:
            raise self.error


def fails(model, table, **params):
    """Return how the fit of a table fails, with the model's parameters put back after it."""
    before = model.get_params()
    model.set_params(**params)
    with pytest.raises((ValueError, TypeError, KeyboardInterrupt)) as caught:
        model.fit(table)
    model.set_params(**before)
    return caught.type


FAILURES = {
    "values above the ceiling": (np.full((12, 4), 9.0), {}),
    "infinite values": (np.full((12, 4), INF), {}),
    "clipped throughout": (np.full((12, 4), CEILING), {}),
    "missing throughout": (np.full((12, 4), NAN), {}),
    "text": (np.full((12, 4), "a", dtype=object), {}),
    "a rank that does not fit": (X[:, :4], {"n_components": 5}),
    "a rank of zero": (X[:, :4], {"n_components": 0}),
    "a limit of a wrong shape": (X[:, :4], {"ceiling": np.full(3, CEILING)}),
    "an intervals table": (Intervals.from_bounds(np.zeros((3, 4)), np.full((3, 4), INF)), {}),
}
each_failure = pytest.mark.parametrize(
    ("estimator", "table", "params"),
    [
        pytest.param(estimator, table, params, id=f"{name_of(estimator)}-{name}")
        for estimator in ESTIMATORS
        for name, (table, params) in FAILURES.items()
        if params.keys() <= estimator.get_params().keys()
    ],
)


@pytest.mark.filterwarnings("ignore")
@each_failure
def test_a_failed_fit_keeps_the_last_one(estimator, table, params):
    model = clone(estimator).fit(FRAME)
    before, restored = dict(vars(model)), model.transform(FRAME)
    fails(model, table, **params)
    assert_equal(vars(model), before)
    assert_array_equal(model.transform(FRAME), restored)


@each_estimator
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("the disk is full")])
def test_an_interrupted_fit_keeps_the_last_one(estimator, error):
    model = clone(estimator).fit(FRAME)
    before = dict(vars(model))
    model.set_callbacks(Interrupting(error))
    assert fails(model, X[:, :4]) is type(error)
    assert_equal(vars(model.set_callbacks()), before)


@pytest.mark.filterwarnings("ignore")
@each_failure
def test_a_failed_first_fit_leaves_the_model_unfitted_and_usable(estimator, table, params):
    model = clone(estimator)
    fails(model, table, **params)
    with refuses(NotFittedError, "is not fitted yet"):
        model.transform(X)
    assert_array_equal(model.fit_transform(X), clone(estimator).fit_transform(X))


@each_estimator
def test_a_failed_transform_leaves_the_fit_alone(estimator):
    model = clone(estimator).fit(FRAME)
    before = dict(vars(model))
    with refuses(ValueError, "X has 4 features"):
        model.transform(X[:, :4])
    assert_equal(vars(model), before)


# Warnings


def warned(model, table):
    """Return the texts of the warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table)
    return [str(warning.message) for warning in caught]


# Wide enough that no row or column runs out of exact cells by chance.
WIDE = np.minimum(
    (1 + _rng.standard_normal((30, 2))) @ (1 + _rng.standard_normal((2, 20))), CEILING
)


@each_estimator
def test_a_table_that_is_well_covered_gives_no_warning(estimator):
    assert warned(clone(estimator), WIDE) == []


@each_estimator
def test_empty_rows_are_named(estimator):
    table = WIDE.copy()
    table[[4, 7]] = NAN
    (text,) = warned(clone(estimator), table)
    assert text.startswith("2 rows (4, 7) without any observed cell: nothing is known there")


@each_estimator
def test_empty_columns_are_named_by_their_labels(estimator):
    frame = pd.DataFrame(WIDE, columns=[f"item {j}" for j in range(20)])
    frame["item 7"] = NAN
    (text,) = warned(clone(estimator), frame)
    assert text.startswith("1 column ('item 7') without any observed cell")


@each_with_factors
def test_rows_with_fewer_exact_cells_than_the_rank_are_named_with_the_remedy(estimator):
    table = WIDE.copy()
    table[5, :] = CEILING
    table[5, 3] = 1.0
    (text,) = warned(clone(estimator), table)
    assert text.startswith("1 row (5) with fewer exact cells than the rank 2")
    assert "Lower n_components, raise alpha" in text


@each_with_factors
def test_columns_with_fewer_exact_cells_than_the_rank_are_named(estimator):
    table = WIDE.copy()
    table[1:, 3] = NAN
    table[0, 3] = 1.0
    (text,) = warned(clone(estimator), table)
    assert text.startswith("1 column (3) with fewer exact cells than the rank 2")


@each_estimator
def test_of_many_rows_five_are_named_and_the_rest_counted(estimator):
    table = WIDE.copy()
    table[2:10] = NAN
    (text,) = warned(clone(estimator), table)
    assert text.startswith("8 rows (2, 3, 4, 5, 6 and 3 more) without any observed cell")


@each_estimator
@pytest.mark.parametrize("clipped", ["hinge", "value"])
def test_exact_cells_are_counted_as_the_mode_takes_them(estimator, clipped):
    table = WIDE.copy()
    table[5, :] = CEILING
    texts = warned(clone(estimator).set_params(clipped=clipped), table)
    assert len(texts) == (1 if clipped == "hinge" else 0)


@each_estimator
@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"ceiling": 1e3}, "nothing is at the ceiling: every observed cell counts as exact"),
        ({"ceiling": None, "floor": -1e3}, "nothing is at the floor: every"),
        ({"ceiling": 1e3, "floor": -1e3}, "nothing is at the ceiling or the floor: every"),
    ],
)
def test_a_limit_that_no_value_reaches_is_told_with_the_remedy(estimator, limits, text):
    (told,) = warned(clone(estimator).set_params(**limits), WIDE)
    assert told.startswith(text)
    assert "Check the limit" in told
    assert "tol=" in told


@each_estimator
def test_no_limit_is_not_a_limit_that_no_value_reaches(estimator):
    assert warned(clone(estimator).set_params(ceiling=None), WIDE) == []


@each_estimator
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    "params",
    [{"max_iter": 1}, {"ceiling": 1e3}],
    ids=["convergence", "nothing at the ceiling"],
)
def test_a_warning_points_at_the_line_of_the_caller(estimator, method, params):
    model = clone(estimator).set_params(**params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model, method)(WIDE)
    assert [warning.filename for warning in caught] == [__file__]


# Results that cannot fit in memory: 10^12 cells of 8 bytes are 7450.6 GiB


SIDE = 10**6
FIGURE = "needs 7450.6 GiB for a 1000000 x 1000000 table of float64"


@pytest.fixture(scope="module")
def huge():
    rows = np.array([0, 0, 1, 1, 2, 2, SIDE - 1, SIDE - 1])
    cols = np.array([0, 1, 0, SIDE - 1, 0, 1, 0, 1])
    values = [1.0, 2.0, 2.0, CEILING, 1.5, 3.0, 1.0, 2.0]
    return sp.coo_array((values, (rows, cols)), shape=(SIDE, SIDE))


@pytest.fixture(scope="module")
def huge_model(huge):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FroCMC(1, ceiling=CEILING, alpha=1e-3, max_iter=2, random_state=0).fit(huge)


def test_a_huge_sparse_table_is_fitted(huge, huge_model):
    assert huge_model.row_factors_.shape == (SIDE, 1)
    # Rank 1 fits (1, 2), (2, .), (1.5, 3), (1, 2); two sweeps come near it.
    found = huge_model.predict([0, 2, SIDE - 1], [0, 1, 1])
    assert np.abs(found - [1.0, 3.0, 2.0]).max() < 0.5


@each_estimator
def test_a_small_table_is_not_refused_when_memory_is_short(estimator, monkeypatch):
    # What the system tells is an estimate; to refuse 72 cells for it would help nobody.
    monkeypatch.setattr("declip.validation.sizes.free_memory", lambda: 0)
    assert clone(estimator).fit_transform(X).shape == X.shape


def test_blocks_of_a_huge_table_can_be_had(huge_model):
    assert huge_model.reconstruct([0, SIDE - 1], slice(0, 2)).shape == (2, 2)


def test_a_huge_restoration_is_refused_with_the_figure_and_the_way_out(huge, huge_model):
    with refuses(MemoryError, FIGURE, "GiB is free", "fewer rows"):
        huge_model.transform(huge)


def test_fit_transform_refuses_a_huge_restoration_before_it_fits(huge):
    model = FroCMC(1, ceiling=CEILING, max_iter=1, random_state=0).set_callbacks(
        Interrupting(AssertionError("a sweep was made"), after=1)
    )
    with refuses(MemoryError, FIGURE, "predict(rows, cols)", "reconstruct(rows=, cols=)"):
        model.fit_transform(huge)


def test_reconstruct_refuses_a_huge_block(huge_model):
    with refuses(MemoryError, FIGURE, "predict(rows, cols)"):
        huge_model.reconstruct()


def test_predict_refuses_a_huge_table(huge, huge_model):
    with refuses(MemoryError, FIGURE, "predict(rows, cols)"):
        huge_model.predict(Intervals.from_table(huge, ceiling=CEILING))


def test_to_bounds_refuses_a_huge_table(huge):
    with refuses(MemoryError, "needs 14901.2 GiB", "triplets()"):
        Intervals.from_table(huge, ceiling=CEILING).to_bounds()
