"""A bad parameter gets an error that names its range."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from tests.estimators.bad_input.tables import (
    INF,
    NAN,
    X,
    each_estimator,
    each_with_factors,
    refuses,
)

from declip import FroCMC


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
