"""A bad table gets an error that names the place and the remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from tests.estimators.bad_input.tables import (
    CEILING,
    ESTIMATORS,
    FRAME,
    INF,
    NAN,
    X,
    changed,
    each_estimator,
    each_reader,
    objects,
    refuses,
)

from declip import FroCMC, Intervals, TrCMC
from declip.model_selection import without_limits

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
        without_limits(estimator).fit(intervals)


@each_estimator
def test_ranges_alone_are_refused_once_they_are_left_out(estimator):
    ranges = Intervals.from_bounds(np.zeros((3, 3)), np.ones((3, 3)))
    with refuses(ValueError, "All 9 observed cells are clipped"):
        without_limits(estimator).set_params(clipped="missing").fit(ranges)


@each_estimator
def test_a_table_without_any_cell_cannot_be_scored(estimator):
    model = clone(estimator).fit(X)
    with refuses(ValueError, "no observed cell"):
        model.score(np.full((2, 6), NAN))
