"""A loss is an object: what follows from which one it is, against plain NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.twin import truncated_normal

from declip.losses import CLIPPED_MODES, CensoredSums, Hinge, Loss, Tobit

INF = np.inf
LOSSES = [pytest.param(Hinge(), id="hinge"), pytest.param(Tobit(0.7), id="tobit")]
LOWER, UPPER = np.array([-INF, 1.0, -0.5, 2.0]), np.array([0.5, INF, 0.8, 2.5])


def predictions(seed=0):
    return np.random.default_rng(seed).uniform(-3, 4, 4)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_conjugate_at_the_gradient_meets_fenchels_equality(loss):
    x = predictions()
    cell = loss.cells(x, LOWER, UPPER)
    found = loss.conjugate(x, cell.gradient, 1.0, LOWER, UPPER)
    assert_allclose(found, x @ cell.gradient - cell.value.sum(), rtol=1e-13)


@pytest.mark.parametrize("shrink", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_conjugate_is_never_below_any_line(loss, shrink):
    x = predictions(1)
    gradient = loss.cells(x, LOWER, UPPER).gradient
    bound = loss.conjugate(x, gradient, shrink, LOWER, UPPER)
    for seed in range(200):
        other = 3 * predictions(seed)
        line = shrink * other @ gradient - loss.cells(other, LOWER, UPPER).value.sum()
        assert line <= bound + 1e-12


def test_the_hinge_restores_a_cell_to_the_nearest_point_of_its_interval():
    x = predictions(2)
    assert_array_equal(Hinge().expected(x, LOWER, UPPER), np.clip(x, LOWER, UPPER))


def test_tobit_restores_a_cell_to_the_mean_of_the_truncated_normal():
    x, lower, scale = predictions(3), np.full(4, 0.5), 0.7
    _, mean, _ = truncated_normal((lower - x) / scale, np.full(4, INF))
    # The reference is a quadrature good to 1e-12.
    assert_allclose(Tobit(scale).expected(x, lower, np.full(4, INF)), x + scale * mean, rtol=1e-11)


def test_expected_squares_are_variance_plus_squared_mean_of_the_residual():
    x, lower, scale = predictions(4), np.full(4, 0.5), 0.7
    _, mean, variance = truncated_normal((lower - x) / scale, np.full(4, INF))
    found = Tobit(scale).expected_squares(x, lower, np.full(4, INF))
    assert_allclose(found, scale**2 * (variance + mean**2), rtol=1e-10)


def test_the_sums_are_those_of_the_cells():
    x, loss = predictions(5), Tobit(0.7)
    found = loss.sums(x, LOWER, UPPER)
    assert found.loss == loss.cells(x, LOWER, UPPER).value.sum()
    assert found.squares == loss.expected_squares(x, LOWER, UPPER).sum()


def test_a_scale_of_zero_is_the_hinge():
    assert Tobit.at(0.0) == Hinge()
    assert Tobit.at(0.3) == Tobit(0.3)


@pytest.mark.parametrize("clipped", CLIPPED_MODES)
def test_a_fit_has_the_loss_of_its_word(clipped):
    found = Loss.fitted(clipped, 0.3)
    assert found == (Tobit(0.3) if clipped == "tobit" else Hinge())


def test_tobit_tends_to_the_hinge_as_its_scale_vanishes():
    x, scale = predictions(6), 1e-5
    found = Tobit(scale).cells(x, LOWER, UPPER).value
    # They differ by scale^2 times a logarithm of the distance over the scale.
    assert_allclose(found, Hinge().cells(x, LOWER, UPPER).value, rtol=0, atol=100 * scale**2)


@pytest.mark.parametrize("clipped", CLIPPED_MODES)
def test_only_tobit_with_clipped_cells_begins_with_a_scale(clipped):
    expected = Tobit(2.0) if clipped == "tobit" else Hinge()
    assert Loss.to_fit(clipped, 5, lambda: 2.0) == expected
    assert Loss.to_fit(clipped, 0, lambda: 2.0) == Hinge()


def residuals(x, n_exact):
    """Return what a scale is estimated from, for censored cells predicted as x."""
    return SimpleNamespace(
        n_cells=n_exact + len(x), largest=3.0, censored=lambda loss: loss.sums(x, LOWER, UPPER)
    )


@pytest.mark.parametrize("scale", [0.01, 0.5, 30.0])
def test_an_estimated_scale_never_raises_the_objective(scale):
    x, n_exact, exact, penalty = predictions(7), 6, 2.5, 0.8
    before = Tobit(scale)
    loss = exact + before.sums(x, LOWER, UPPER).loss
    after, cells = before.estimated(residuals(x, n_exact), loss, penalty)
    assert_allclose(cells, exact + after.sums(x, LOWER, UPPER).loss, rtol=1e-12)
    values = before.objective(loss, penalty, n_exact), after.objective(cells, penalty, n_exact)
    assert values[1] <= values[0]


def test_the_hinge_has_nothing_to_estimate():
    unused = SimpleNamespace(censored=lambda _: CensoredSums(np.nan, np.nan))
    assert Hinge().estimated(unused, 2.5, 0.8) == (Hinge(), 2.5)


def test_falls_of_the_hinge_are_measured_by_the_objective_and_of_tobit_by_the_cell():
    assert Hinge().unit(10, first=8.0, now=2.0) == 2.0
    assert Hinge().unit(10, first=8.0, now=0.0) == 8e-12
    assert Tobit(1.0).unit(10, first=8.0, now=-2.0) == 10.0
