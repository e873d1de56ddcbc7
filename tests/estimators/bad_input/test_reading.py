"""What cannot be looked up is refused, with the remedy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.estimators.bad_input.tables import CEILING, INF, NAN, X, each_estimator, refuses

from declip import Intervals


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
        (["s1"], [0], ValueError, ["have no labels", "['s1']", "give their positions"]),
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
