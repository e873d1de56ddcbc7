"""A bad limit gets an error that names the column and the remedy."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.estimators.bad_input.tables import CEILING, FRAME, INF, NAN, X, each_estimator, refuses

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
