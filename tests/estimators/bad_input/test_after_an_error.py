"""A fit that fails loses nothing."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal, assert_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.estimators.bad_input.tables import (
    CEILING,
    ESTIMATORS,
    FRAME,
    INF,
    NAN,
    Interrupting,
    X,
    each_estimator,
    name_of,
    refuses,
)

from declip import Intervals


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
