"""A Newton step in parts against NumPy: its sums, its solution, and its effect on limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.plain import newton_sums, step_trial
from tests.twin import Row, cell_loss, random_bounds

from declip import Intervals, kernels

SCALES = [pytest.param(0.0, id="hinge"), pytest.param(0.8, id="tobit")]
RANKS = [1, 2, 3, 5, 8, 9, 16, 17, 33, 70]
LENGTHS = np.array([1.0, 0.5, 0.25])


class Problem:
    """Rows 0, 1, 2 are empty, all censored and all exact."""

    def __init__(self, k, *, scale=0.0, n_rows=7, n_cols=150, dtype=np.float64):
        rng = np.random.default_rng([7, k])
        self.bounds = random_bounds(rng, (n_rows, n_cols))
        self.intervals = Intervals.from_bounds(*self.bounds).astype(dtype)
        self.own, self.step, self.other = (
            rng.standard_normal((n, k)).astype(dtype) for n in (n_rows, n_rows, n_cols)
        )
        self.offset = rng.standard_normal(n_cols).astype(dtype)
        self.ridge = rng.uniform(0.5, 1.5, k).astype(dtype)
        self.scale = scale

    @property
    def rows(self):
        return [
            Row(lo, up, self.other, self.offset, self.ridge, self.scale)
            for lo, up in zip(*self.bounds, strict=True)
        ]

    def sums(self, **how):
        side = self.intervals.by_row
        return newton_sums(side, self.own, self.other, self.offset, scale=self.scale, **how)

    def solve(self, **how):
        return kernels.newton_solve(self.sums(), self.own, self.ridge, **how)

    def trial(self, **how):
        return step_trial(
            *(self.intervals.by_row, self.own, self.step, self.other, self.offset, LENGTHS),
            scale=self.scale,
            **how,
        )


@pytest.mark.parametrize("k", RANKS)
@pytest.mark.parametrize("scale", SCALES)
def test_sums_are_hessian_and_gradient_without_the_ridge(isa, scale, k):
    problem = Problem(k, scale=scale)
    for row, p, found in zip(problem.rows, problem.own, problem.sums(), strict=True):
        H = row.hessian(p) - np.diag(problem.ridge)
        g = row.gradient(p) - problem.ridge * p
        assert_allclose(found, [*H[np.triu_indices(k)], *g], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k", RANKS)
@pytest.mark.parametrize("scale", SCALES)
def test_the_solution_is_the_newton_step_and_its_slope(isa, scale, k):
    problem = Problem(k, scale=scale)
    steps, slopes = problem.solve()
    some = problem.rows, problem.own, steps, slopes
    for row, p, d, slope in list(zip(*some, strict=True))[1:]:
        expected = -np.linalg.solve(row.hessian(p), row.gradient(p))
        # 150 cells at rank 70 and a ridge of 1/2: a condition number below 1e4.
        assert_allclose(d, expected, rtol=1e-9, atol=1e-10)
        assert_allclose(slope, row.gradient(p) @ expected, rtol=1e-9)


def test_a_row_without_cells_goes_to_zero(isa):
    problem = Problem(5)
    assert_array_equal(problem.own[0] + problem.solve()[0][0], np.zeros(5))


@pytest.mark.parametrize("k", RANKS)
@pytest.mark.parametrize("scale", SCALES)
def test_the_trial_tells_what_the_step_does_to_censored_cells(isa, scale, k):
    problem = Problem(k, scale=scale)
    for i, found in enumerate(problem.trial()):
        lower, upper = (b[i] for b in problem.bounds)
        opened = lower < upper
        lower, upper, Q = lower[opened], upper[opened], problem.other[opened]
        x, dx = Q @ problem.own[i] + problem.offset[opened], Q @ problem.step[i]
        value, gradient, curvature = cell_loss(x, lower, upper, scale)
        changes = [(cell_loss(x + t * dx, lower, upper, scale)[0] - value).sum() for t in LENGTHS]
        expected = [gradient @ dx, curvature @ dx**2, dx @ dx, *changes]
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_single_precision_is_near(isa, scale):
    wide, narrow = Problem(9, scale=scale), Problem(9, scale=scale, dtype=np.float32)
    assert narrow.sums().dtype == np.float32
    # Sums of 150 terms of size up to 20.
    assert_allclose(narrow.sums(), wide.sums(), atol=150 * 20 * 1.2e-7, rtol=1e-5)
    assert_allclose(narrow.trial(), wide.trial(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("scale", SCALES)
def test_threads_change_no_bit(scale):
    problem = Problem(9, scale=scale, n_rows=5000)
    assert_array_equal(problem.sums(threads=3), problem.sums())
    assert_array_equal(problem.trial(threads=3), problem.trial())
    for several, one in zip(problem.solve(threads=3), problem.solve(), strict=True):
        assert_array_equal(several, one)


def test_factors_of_another_shape_are_refused():
    problem = Problem(3)
    with pytest.raises(ValueError, match="factor shapes disagree"):
        kernels.newton_solve(problem.sums()[:2], problem.own, problem.ridge)
