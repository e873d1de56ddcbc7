"""The loss of one cell: value, gradient, curvature, hinge and Tobit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_ndtr
from scipy.stats import norm, truncnorm
from tests.plain import interval_loss
from tests.twin import cell_loss

from declip import kernels

INF = np.inf
EPS = np.finfo(np.float64).eps


def loss(x, lower, upper, scale=0.0, threads=1):
    x, lower, upper = (np.array(a, float) for a in np.broadcast_arrays(x, lower, upper))
    return interval_loss(x.ravel(), lower.ravel(), upper.ravel(), scale=scale, threads=threads)


# Hinge.


@pytest.mark.parametrize(
    ("x", "lower", "upper", "value", "gradient", "curvature"),
    [
        (4.0, 5.0, INF, 0.5, -1.0, 1.0),  # below a ceiling
        (6.0, 5.0, INF, 0.0, 0.0, 0.0),  # beyond it
        (5.0, 5.0, INF, 0.0, 0.0, 1.0),  # at it: counts
        (3.0, -INF, 1.0, 2.0, 2.0, 1.0),  # above a floor
        (0.0, -INF, 1.0, 0.0, 0.0, 0.0),
        (1.0, -INF, 1.0, 0.0, 0.0, 1.0),
        (0.0, 1.0, 3.0, 0.5, -1.0, 1.0),  # a range, from below
        (2.0, 1.0, 3.0, 0.0, 0.0, 0.0),
        (5.0, 1.0, 3.0, 2.0, 2.0, 1.0),
        (1.0, 1.0, 3.0, 0.0, 0.0, 1.0),
        (3.0, 1.0, 3.0, 0.0, 0.0, 1.0),
        (2.0, 3.0, 3.0, 0.5, -1.0, 1.0),  # a range of no width is an exact cell
        (3.0, 3.0, 3.0, 0.0, 0.0, 1.0),  # which counts also when it is fitted
        (-7.0, -INF, INF, 0.0, 0.0, 0.0),
    ],
)
def test_hinge_takes_the_values_of_the_table(x, lower, upper, value, gradient, curvature):
    cell = loss(x, lower, upper)
    assert (cell.value[0], cell.gradient[0], cell.curvature[0]) == (value, gradient, curvature)


def test_hinge_gradient_and_curvature_are_finite_differences_away_from_kinks():
    x = np.linspace(-6, 6, 97) + 0.01  # no multiple of 1/8, so 0.01 away from every limit
    lower, upper, step = -2.0, 3.0, 1e-3
    ahead, here, behind = (loss(x + s, lower, upper) for s in (step, 0.0, -step))
    # Central differences of a quadratic are exact, up to the rounding of values of at most 40.
    assert_allclose(here.gradient, (ahead.value - behind.value) / (2 * step), atol=40 * EPS / step)
    assert_allclose(
        here.curvature, (ahead.gradient - behind.gradient) / (2 * step), atol=10 * EPS / step
    )


def test_hinge_is_the_same_on_any_number_of_threads():
    x = np.random.default_rng(0).standard_normal(50_000)
    for one, many in zip(loss(x, 0.3, INF), loss(x, 0.3, INF, threads=3), strict=True):
        assert_array_equal(one, many)


def test_no_cells_have_no_loss():
    assert all(len(part) == 0 for part in loss([], [], []))


def test_wrong_lengths_are_refused():
    with pytest.raises(ValueError, match="shapes disagree"):
        interval_loss(np.zeros(3), np.zeros(3), np.zeros(2))


# Tobit.

# Distances of the limit from the prediction, in standard deviations.
FAR = np.concatenate([np.linspace(-30, 30, 241), np.linspace(30, 300, 109), [2.999, 3.0, 4.242641]])


def test_tobit_value_of_a_ceiling_is_the_log_survival_function():
    # Relative rounding in the log of the tail, absolute where that vanishes.
    assert_allclose(loss(-FAR, 0, INF, 1.0).value, -log_ndtr(-FAR), rtol=20 * EPS, atol=EPS)


def test_tobit_gradient_of_a_ceiling_is_minus_the_inverse_mills_ratio():
    mills = np.exp(norm.logpdf(FAR) - log_ndtr(-FAR))
    # The reference subtracts logarithms of up to 300^2 / 2, each rounded by half an eps of itself.
    tolerance = 20 * EPS * (1 + FAR**2 / 2)
    assert (np.abs(-loss(-FAR, 0, INF, 1.0).gradient - mills) <= tolerance * mills).all()


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_tobit_of_a_one_sided_limit_agrees_with_quadrature(scale):
    cell = loss(-scale * FAR, 0.0, INF, scale)
    value, gradient, curvature = cell_loss(-scale * FAR, 0 * FAR, 0 * FAR + INF, scale)
    # The nodes of the quadrature carry 1e-14 each; the log of a mass near 1 vanishes.
    assert_allclose(cell.value, value, rtol=1e-13, atol=1e-13 * scale**2)
    assert_allclose(cell.gradient, gradient, rtol=1e-13, atol=1e-13 * scale)
    # g^2 - a g loses a^2 eps.
    assert (np.abs(cell.curvature - curvature) <= 50 * EPS * (1 + FAR**2)).all()


@pytest.mark.parametrize("width", [1e-15, 1e-12, 1e-9, 1e-6, 0.9e-4, 1.1e-4, 1e-2, 1.0, 5.0, 40.0])
def test_tobit_of_a_range_agrees_with_quadrature(width):
    x = np.concatenate([np.linspace(-300, 300, 121), np.linspace(-8, 8, 65)])
    lower = np.zeros_like(x)
    upper = lower + width
    cell = loss(x, lower, upper, 1.0)
    value, gradient, curvature = cell_loss(x, lower, upper, 1.0)
    # Narrower than 1e-4 the density is taken as exponential: h^2 / 6 <= 5e-10 for the half width h.
    # Wider, a difference of two tails loses eps / width <= 3e-12 of the mass. The mean and the
    # variance are sums of terms of the size of x and of x^2 + 1 / width.
    assert_allclose(cell.value, value, rtol=1e-13, atol=1e-9)
    assert (np.abs(cell.gradient - gradient) <= 1e-9 * (1 + np.abs(x))).all()
    assert (np.abs(cell.curvature - curvature) <= 1e-9 * (1 + x**2)).all()


def test_tobit_of_a_range_agrees_with_scipy():
    a, b = np.array([-1.0, -3.0, 0.2, 2.0, -6.0, 1.0]), np.array([2.0, -1.0, 0.3, 5.0, -5.5, INF])
    cell = loss(0.0, a, b, 1.0)
    mean, variance = truncnorm.stats(a, b, moments="mv")
    # scipy subtracts masses down to 2e-8 and logs of them.
    assert_allclose(cell.value, -np.log(norm.cdf(-a) - norm.cdf(-b)), rtol=1e-7)
    assert_allclose(cell.gradient, -mean, rtol=1e-7)
    assert_allclose(cell.curvature, 1 - variance, rtol=1e-7)


def random_cells(seed, n=2000):
    """Limits within 20 of a prediction near 0, one half of them one-sided."""
    rng = np.random.default_rng(seed)
    x, lower = rng.standard_normal(n), 8 * rng.standard_normal(n)
    upper = lower + 10.0 ** rng.uniform(-3, 1, n)
    lower[: n // 4], upper[n // 4 : n // 2] = -INF, INF
    return x, lower, upper


def test_tobit_is_mirror_symmetric():
    x, lower, upper = random_cells(1)
    seen, mirrored = loss(x, lower, upper, 0.7), loss(-x, -upper, -lower, 0.7)
    # Only symmetric intervals may be computed the other way round; there is none here.
    assert_array_equal(seen.value, mirrored.value)
    assert_array_equal(seen.gradient, -mirrored.gradient)
    assert_allclose(seen.curvature, mirrored.curvature, rtol=0, atol=1e-9)  # the order of a sum


def test_tobit_gradient_is_the_finite_difference_of_the_value():
    x, lower, upper = random_cells(2)
    step = 1e-4
    ahead, behind = (loss(x + s, lower, upper, 1.0).value for s in (step, -step))
    # A third derivative of at most about 1 times step^2 / 6, and the rounding of values of at most
    # some hundreds (for narrow ranges eps / width on top) over the step.
    assert_allclose(
        loss(x, lower, upper, 1.0).gradient, (ahead - behind) / (2 * step), rtol=1e-7, atol=1e-7
    )


def test_tobit_curvature_is_the_finite_difference_of_the_gradient():
    x, lower, upper = random_cells(3)
    step = 1e-4
    ahead, behind = (loss(x + s, lower, upper, 1.0).gradient for s in (step, -step))
    # Gradients of up to 30 are rounded to eps / width = 2e-13 of themselves.
    assert_allclose(
        loss(x, lower, upper, 1.0).curvature, (ahead - behind) / (2 * step), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_tobit_curvature_lies_between_0_and_1(scale):
    x, lower, upper = random_cells(4)
    curvature = loss(300 * x, lower, upper, scale).curvature
    assert curvature.min() >= 0
    assert curvature.max() <= 1


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 1e3])
def test_tobit_conditional_mean_lies_in_the_interval(scale):
    x, lower, upper = random_cells(5)
    mean = x - loss(x, lower, upper, scale).gradient
    # x and the gradient are of the size of the scale or of the distance, 40 at most.
    slack = 1e-9 * (40 + scale)
    assert (lower - slack <= mean).all()
    assert (mean <= upper + slack).all()


def test_tobit_tends_to_the_hinge_as_the_scale_vanishes():
    x, lower, upper = random_cells(6)
    scale = 1e-6
    soft, hard = loss(x, lower, upper, scale), loss(x, lower, upper)
    # -s^2 log P = r^2 / 2 + s^2 log(1 + r / s) + O(s^2), with r / s < 4e7; its slope is off by s.
    assert_allclose(soft.value, hard.value, rtol=1e-12, atol=40 * scale**2)
    assert_allclose(soft.gradient, hard.gradient, rtol=1e-12, atol=2 * scale)


def test_tobit_stays_finite_however_far_the_interval_lies():
    x = -(10.0 ** np.arange(0, 13))
    for width in (1e-12, 1e-6, 1e-2, 1.0, INF):
        for part in (loss(x, 0.0, width, 1.0), loss(-x, -width, 0.0, 1.0)):
            assert np.isfinite(part).all()


def test_tobit_far_beyond_a_limit_is_the_squared_distance_to_it():
    distance = np.array([1e5, 1e9, 1e12, 1e100])
    cell = loss(-distance, 0.0, INF, scale=1.0)
    # -log P(N > a) = a^2 / 2 + log(a sqrt(2 pi)) + O(1 / a^2), and its derivative is a + 1 / a
    assert_allclose(cell.value, 0.5 * distance**2, rtol=1e-8)
    assert_allclose(cell.gradient, -distance, rtol=1e-9)


def test_tobit_of_a_vanishing_range_is_the_squared_error_up_to_a_constant():
    x = np.linspace(-5, 5, 41)
    cell = loss(x, 1.0, 1.0 + 1e-9, 2.0)
    # The interval is 5e-10 sd wide, its middle 5e-10 from 1; a constant goes with its width.
    middle = 1.0 + 5e-10
    assert_allclose(cell.value - cell.value[24], 0.5 * (x - middle) ** 2, rtol=1e-9, atol=1e-9)
    assert_allclose(cell.gradient, x - middle, rtol=1e-9, atol=1e-9)
    assert_allclose(cell.curvature, 1.0, atol=1e-9)


def test_a_loss_that_was_not_compiled_is_refused():
    with pytest.raises(ValueError, match="there is no loss huber"):
        kernels.compiled_loss("huber")
