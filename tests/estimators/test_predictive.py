"""predictive: mean and standard deviation of cells, noise included, from every estimator."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.persistence.golden import FOLDER
from tests.persistence.models import CEILING, FRAME, TABLE, UNFITTED, fitted

import declip
from declip import BayesCMC, FroCMC, Intervals
from declip.estimators.uncertainty import column_noise

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
CELLS = np.array([0, 5, 23, 5]), np.array([1, 2, 5, 0])
NORMAL = [name for name, model in UNFITTED.items() if not getattr(model, "df", None)]
POINT = [name for name in UNFITTED if not name.startswith("BayesCMC")]


@pytest.mark.parametrize("name", UNFITTED)
def test_the_mean_is_the_prediction(name):
    mean, sd = fitted(name).predictive(*CELLS)
    assert_allclose(mean, fitted(name).predict(*CELLS))
    assert (sd > 0).all()


@pytest.mark.parametrize("name", NORMAL)
def test_the_mixture_of_the_draws_is_the_prediction(name):
    model = fitted(name)
    mean, sd = model.predictive(*CELLS)
    means, sds = model.predictive_draws(*CELLS, most=10_000)
    assert means.shape == sds.shape == (len(means), len(mean))
    assert (len(means) > 1) == name.startswith("BayesCMC")
    # the samples are kept in single precision
    assert_allclose(means.mean(axis=0), mean, rtol=1e-5, atol=1e-6)
    assert_allclose(means.var(axis=0) + (sds**2).mean(axis=0), sd**2, rtol=1e-5)


@pytest.mark.parametrize("name", ["FroCMC", "FroCMC with offsets, tobit"])
def test_the_variance_is_that_of_the_noise_and_of_the_row(name):
    model, intervals = fitted(name), Intervals.from_table(TABLE, CEILING)
    noise = model.uncertainty_.noise
    ridge = [model.alpha_, model.alpha_]
    Q = model.components_.T
    if model.has_offsets_:
        Q, ridge = np.column_stack([Q, np.ones(len(Q))]), [*ridge, model.alpha_bias]
    lower, upper = intervals.to_bounds()
    for i, j, sd in zip(*CELLS, model.predictive(*CELLS)[1], strict=True):
        at = np.flatnonzero(lower[i] == upper[i])
        H = (Q[at] / noise[at, None] ** 2).T @ Q[at] + np.diag(ridge) / np.median(noise) ** 2
        # two orders of the same sums
        variance = noise[j] ** 2 + Q[j] @ np.linalg.solve(H, Q[j])
        assert_allclose((sd / model.scaling_.units.scale[j]) ** 2, variance, rtol=1e-10)


@pytest.mark.parametrize("name", POINT)
def test_the_noise_is_computed_when_it_is_asked_for(name):
    model = clone(UNFITTED[name]).fit(FRAME)
    assert "uncertainty_" not in vars(model)
    model.predictive(*CELLS)
    assert "uncertainty_" in vars(model)


def test_the_noise_of_a_column_is_that_of_its_residuals():
    rng = np.random.default_rng(0)
    scale = np.array([0.1, 0.5, 2.0])
    truth = np.outer(rng.normal(size=4000), [3.0, 2.0, 1.0])
    seen = truth + scale * rng.standard_normal(truth.shape)
    intervals = Intervals.from_table(np.minimum(seen, 2.0), ceiling=2.0)
    model = declip.lowrank.LowRank(truth[:, :1] / 3, np.array([[3.0], [2.0], [1.0]]))
    # 4,000 cells: a standard error of 1 in 90, more where a part is known only by a limit
    assert_allclose(column_noise(intervals, model), scale, rtol=0.05)


@pytest.mark.parametrize(
    "model",
    [
        FroCMC(2, clipped="tobit", alpha=0.3, random_state=0, scale="none"),
        BayesCMC(2, n_samples=60, burn_in=40, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_hidden_values_lie_within_two_deviations(model):
    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 12))
    values += 0.3 * rng.standard_normal(values.shape)
    hidden = rng.random(values.shape) < 0.2
    model.fit(np.where(hidden, np.nan, values))
    rows, cols = np.nonzero(hidden)
    mean, sd = model.predictive(rows, cols)
    within = np.abs(values[hidden] - mean) < 2 * sd
    # 95.4 % if all is right; the point estimate takes the column factors as known
    assert 0.92 < within.mean() < 0.98


@pytest.mark.parametrize("name", UNFITTED)
@pytest.mark.parametrize("way", ["file", "pickle"])
def test_a_model_that_was_saved_predicts_the_same(name, way, tmp_path):
    model = fitted(name)
    if way == "file":
        twin = declip.load(model.save(tmp_path / "model.npz"))
    else:
        twin = pickle.loads(pickle.dumps(model))
    assert_array_equal(twin.predictive(*CELLS), model.predictive(*CELLS))


def test_a_model_saved_without_its_cells_says_so():
    with pytest.raises(ValueError, match="has no cells of its fit"):
        declip.load(FOLDER / "FroCMC.npz").predictive(*CELLS)


def test_a_refit_forgets_the_noise_of_the_last_one():
    model = FroCMC(2, random_state=0, scale="none").fit(TABLE)
    before = model.predictive(*CELLS)[1]
    assert_allclose(model.fit(10 * TABLE).predictive(*CELLS)[1], 10 * before, rtol=0.2)


def test_parameters_set_after_the_fit_do_not_matter():
    one, other = (FroCMC(2, random_state=0, scale="none").fit(TABLE) for _ in range(2))
    assert_array_equal(other.set_params(alpha=100.0).predictive(*CELLS), one.predictive(*CELLS))


@pytest.mark.parametrize("name", UNFITTED)
def test_expected_values_are_those_of_the_restored_table(name):
    model, side = fitted(name), Intervals.from_table(TABLE, CEILING).by_row
    rows, cols = side.censored_rows(), side.censored_idx
    restored = clone(model).fit_transform(FRAME)
    assert_allclose(model.expected(rows, cols, side.lower, side.upper), restored[rows, cols])
