"""New rows are solved as the model was fitted, and what cannot be known of them is said."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import declip
from declip import BayesCMC, DTrCMC, ExactCMC, FroCMC, TrCMC

rng = np.random.default_rng(0)
TABLE = np.minimum(rng.normal(size=(30, 3)) @ rng.normal(size=(3, 8)), 1.0)
MODELS = [
    FroCMC(2, ceiling=1.0, random_state=0),
    TrCMC(1.0, ceiling=1.0),
    DTrCMC(ceiling=1.0),
    ExactCMC(ceiling=1.0, tol=1e-2),
    BayesCMC(2, ceiling=1.0, n_samples=5, burn_in=5, random_state=0),
]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def answers(model):
    return model.transform(TABLE[:4]), model.predict(TABLE[:4]), model.score(TABLE[:9])


def set_otherwise(model):
    """Set every parameter by which new rows are solved to something else."""
    other = {"ceiling": 2.0, "floor": -9.0, "alpha": 50.0, "clipped": "missing"}
    return model.set_params(**{n: v for n, v in other.items() if n in model.get_params()})


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_parameters_set_after_the_fit_change_no_answer(model, tmp_path):
    before = answers(model.fit(TABLE))
    set_otherwise(model)
    for twin in (model, declip.load(model.save(tmp_path / "model.npz"))):
        for found, expected in zip(answers(twin), before, strict=True):
            assert_array_equal(found, expected)


def test_the_next_fit_takes_the_parameters_that_were_set():
    model = set_otherwise(FroCMC(2, ceiling=1.0, random_state=0).fit(TABLE)).fit(TABLE)
    fresh = set_otherwise(FroCMC(2, random_state=0)).fit(TABLE)
    assert_array_equal(model.transform(TABLE[:4]), fresh.transform(TABLE[:4]))


def test_a_new_row_without_any_cell_is_named():
    rows = TABLE[:3].copy()
    rows[1] = np.nan
    model = FroCMC(2, ceiling=1.0, random_state=0).fit(TABLE)
    with pytest.warns(UserWarning, match=r"1 row \(1\) without any observed cell"):
        model.transform(rows)


@pytest.mark.parametrize("alpha", [0.1, 10.0, 1e3])
def test_a_table_that_is_nearly_all_censored_does_not_run_off(alpha):
    table = np.full((30, 8), 1.0)
    table[[0, 3, 5], [0, 4, 5]] = 0.5, -1.0, 0.2
    params = {"ceiling": 1.0, "clipped": "tobit", "alpha": alpha, "scale": "none"}
    model = FroCMC(2, random_state=0, **params).fit(table)
    assert model.scale_ <= 1.0  # the largest size that the table tells of
    assert np.abs(model.reconstruct()).max() < 10  # it was 21 at 0.1, and 693 at 10
