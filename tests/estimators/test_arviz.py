"""BayesCMC as ArviZ sees it: the traces, in the units of the table."""

import os
import tempfile
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from declip import BayesCMC

# At its first import of a day arviz renames a file in its cache: two processes must not share it.
with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, XDG_CACHE_HOME=folder):
    arviz = pytest.importorskip("arviz")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    truth = 50 + 10 * (rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, 3)))
    table = pd.DataFrame(np.minimum(truth, 55), columns=["iron", "zinc", "lead"])
    return BayesCMC(1, ceiling=55, n_samples=200, burn_in=100, random_state=0).fit(table)


def test_column_means_and_noise_are_those_of_the_model(model):
    posterior = model.to_arviz().posterior
    assert list(posterior["column"].values) == ["iron", "zinc", "lead"]
    # 200 kept samples against all 400 sweeps: a tenth of the posterior's spread is chance
    mean = posterior["column_means"].mean(("chain", "draw")).values
    assert_allclose(mean, model.reconstruct().mean(axis=0), atol=0.3)
    noise = posterior["noise_scales"].mean(("chain", "draw")).values
    assert_allclose(noise, model.noise_scale_, rtol=0.05)


def test_arviz_finds_the_same_convergence(model):
    r_hat = arviz.rhat(model.to_arviz(), method="split")["noise_scales"].values
    assert_allclose(r_hat, model.r_hat_["noise scales"], atol=0.03)


def test_a_cell_is_named_by_row_and_column(model):
    cells = model.to_arviz().posterior["cells"]
    row, column = str(cells["cell"].values[0]).split(", ")
    expected = model.predict([int(row)], [["iron", "zinc", "lead"].index(column)])
    assert_allclose(cells[..., 0].mean(), expected[0], atol=0.8)


def test_arviz_sums_up_what_it_is_given(model):
    found = arviz.summary(model.to_arviz(), kind="stats")
    assert found["mean"].notna().all()


def test_rows_of_one_name_are_told_apart_by_their_numbers():
    rng = np.random.default_rng(0)
    X = np.minimum(rng.normal(size=(20, 1)) + 0.3 * rng.normal(size=(20, 3)), 0.5)
    frame = pd.DataFrame(X, index=["a"] * 20, columns=list("xyz"))
    fitted = BayesCMC(1, ceiling=0.5, n_samples=10, burn_in=10, random_state=0).fit(frame)
    cells = fitted.to_arviz().posterior["cell"].values
    assert len(set(cells)) == len(cells)
