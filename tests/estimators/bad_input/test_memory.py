"""Results that cannot fit in memory: 10^12 cells of 8 bytes are 7450.6 GiB."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from tests.estimators.bad_input.tables import CEILING, Interrupting, X, each_estimator, refuses

from declip import FroCMC, Intervals

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
