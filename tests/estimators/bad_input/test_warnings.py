"""What can be fitted but hardly be trusted is told by name."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.estimators.bad_input.tables import CEILING, NAN, each_estimator, each_with_factors


def warned(model, table):
    """Return the texts of the warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table)
    return [str(warning.message) for warning in caught]


# Wide enough that no row or column runs out of exact cells by chance.
_rng = np.random.default_rng(1)
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
