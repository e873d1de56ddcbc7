"""The update of rows against its NumPy twin, and the promise that no row's objective rises."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.plain import interval_loss, residuals, update_rows
from tests.twin import Row, minimiser, newton_steps, random_bounds

from declip import Intervals, kernels

INF = np.inf
EPS = np.finfo(np.float64).eps
SCALES = [pytest.param(0.0, id="hinge"), pytest.param(0.8, id="tobit")]
# Multiples of the vector widths (2 to 8), their neighbours, and several tiles of the algebra.
RANKS = [1, 2, 3, 4, 5, 7, 8, 9, 17, 33, 70]
SOLVE = {"inner_steps": 200, "inner_tol": 1e-18}


class Problem:
    """A random problem: rows 0, 1, 2 are empty, all censored and all exact."""

    def __init__(self, seed, k, *, n_rows=6, n_cols=40, ridge=0.5, scale=0.0, dtype=np.float64):
        rng = np.random.default_rng([seed, k])
        bounds = random_bounds(rng, (n_rows, n_cols))
        self.intervals = Intervals.from_bounds(*(b.astype(dtype) for b in bounds))
        self.other = rng.standard_normal((n_cols, k)).astype(dtype)
        self.offset = rng.standard_normal(n_cols).astype(dtype)
        self.ridge = (ridge * rng.uniform(0.5, 1.5, k)).astype(dtype)
        self.start = rng.standard_normal((n_rows, k)).astype(dtype)
        self.scale = scale

    @property
    def rows(self):
        """The objective of each row, in double precision."""
        other, offset, ridge = (a.astype(float) for a in (self.other, self.offset, self.ridge))
        bounds = (b.astype(float) for b in self.intervals.to_bounds())
        return [
            Row(lo, up, other, offset, ridge, self.scale) for lo, up in zip(*bounds, strict=True)
        ]

    def sweep(self, own=None, **how):
        """Return the new rows and the loss."""
        own = (self.start if own is None else own).copy()
        side = self.intervals.by_row
        loss = update_rows(side, own, self.other, self.offset, self.ridge, scale=self.scale, **how)
        return own, loss


# Equal to NumPy.


@pytest.mark.parametrize("k", RANKS)
@pytest.mark.parametrize("scale", SCALES)
def test_one_step_equals_the_twin(isa, scale, k):
    problem = Problem(0, k, scale=scale)
    twin = [newton_steps(row, p, 1) for row, p in zip(problem.rows, problem.start, strict=True)]
    # A condition number below 1e3 (40 cells, ridge 1/4 or more) times some hundred eps.
    assert_allclose(problem.sweep(inner_steps=1)[0], twin, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k", [1, 3, 8, 17])
@pytest.mark.parametrize("scale", SCALES)
def test_three_steps_equal_the_twin(isa, scale, k):
    problem = Problem(1, k, scale=scale)
    twin = [newton_steps(row, p, 3) for row, p in zip(problem.rows, problem.start, strict=True)]
    assert_allclose(problem.sweep(inner_steps=3)[0], twin, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k", RANKS)
@pytest.mark.parametrize("scale", SCALES)
def test_many_steps_reach_the_minimum_of_each_row(isa, scale, k):
    problem = Problem(2, k, scale=scale)
    own = problem.sweep(**SOLVE)[0]
    for row, p in zip(problem.rows, own, strict=True):
        best = minimiser(row, k)
        # The hinge ends in a last full step. Tobit goes on until F no longer falls, which leaves an
        # error d with d^T H d / 2 = some eps of F.
        least = np.linalg.eigvalsh(row.hessian(best))[0]
        left = 0.0 if scale == 0 else np.sqrt(2 * 16 * EPS * row.value(best) / least)
        assert np.abs(p - best).max() <= 1e-10 + left


@pytest.mark.parametrize("k", [1, 5, 8, 33])
def test_one_step_of_exact_rows_is_ridge_regression(isa, k):
    rng = np.random.default_rng(3)
    Y, Q = rng.standard_normal((4, 60)), rng.standard_normal((60, k))
    own = np.full((4, k), 7.0)
    update_rows(
        Intervals.from_table(Y).by_row, own, Q, np.full(60, 0.5), np.full(k, 2.0), inner_steps=1
    )
    exact = np.linalg.solve(Q.T @ Q + 2 * np.eye(k), Q.T @ (Y - 0.5).T).T
    assert_allclose(own, exact, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k", [1, 7, 16, 40])
@pytest.mark.parametrize("scale", SCALES)
def test_single_precision_reaches_the_minimum_within_its_rounding(isa, scale, k):
    problem = Problem(4, k, scale=scale, dtype=np.float32)
    rows = problem.rows
    own = problem.sweep(**SOLVE)[0].astype(float)
    for row, start, p in zip(rows, problem.start, own, strict=True):
        # A Newton step is solved to some eps times the condition number of what it moves and where
        # it arrives; 8 eps of the largest diagonal are its jitter.
        best = minimiser(row, k)
        moved = np.linalg.norm(start) + np.linalg.norm(best)
        condition = np.linalg.cond(row.hessian(best))
        assert np.linalg.norm(p - best) <= 16 * np.finfo(np.float32).eps * condition * moved


@pytest.mark.parametrize("scale", SCALES)
def test_instruction_sets_agree(scale):
    problem, results = Problem(5, 13, scale=scale), []
    before = kernels.current_isa()
    for name in kernels.isa_names():
        kernels.use_isa(name)
        results.append(problem.sweep(inner_steps=3)[0])
    kernels.use_isa(before)
    for other in results[1:]:
        assert_allclose(other, results[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cg_steps", [0, 3])
@pytest.mark.parametrize("k", [1, 7, 16, 40])
def test_half_precision_is_the_sweep_over_rounded_factors(isa, k, cg_steps):
    problem = Problem(5, k, dtype=np.float32)
    half, _ = problem.sweep(half=True, cg_steps=cg_steps)
    if isa != "baseline":  # which has no instructions for it, and sweeps in full
        problem.other = problem.other.astype(np.float16).astype(np.float32)
    assert_array_equal(half, problem.sweep(cg_steps=cg_steps)[0])


def test_double_precision_is_never_halved():
    problem = Problem(5, 7)
    assert_array_equal(problem.sweep(half=True)[0], problem.sweep()[0])


@pytest.mark.parametrize("cg_steps", [0, 3])
def test_a_constant_offset_is_an_offset_like_any_other(isa, cg_steps):
    problem = Problem(6, 9)
    problem.offset[:] = 1.5
    got, _ = problem.sweep(cg_steps=cg_steps)
    shifted = Problem(6, 9)
    shifted.intervals = Intervals.from_bounds(*(b - 1.5 for b in problem.intervals.to_bounds()))
    shifted.offset[:] = 0
    assert_allclose(got, shifted.sweep(cg_steps=cg_steps)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_missing", [0, 1, 20])
@pytest.mark.parametrize("scale", SCALES)
def test_nearly_full_rows_equal_the_twin(isa, scale, n_missing):
    rng = np.random.default_rng(n_missing)
    problem = Problem(7, 9, n_cols=150, scale=scale)
    X = rng.normal(size=(6, 150))
    upper = np.where(rng.random(X.shape) < 0.1, INF, X)
    missing = rng.random(X.shape) < n_missing / 150
    X[missing], upper[missing] = -INF, INF
    problem.intervals = Intervals.from_bounds(X, upper)
    got, _ = problem.sweep(inner_steps=3)
    want = [newton_steps(row, p, 3) for row, p in zip(problem.rows, problem.start, strict=True)]
    assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_an_unknown_instruction_set_is_refused():
    with pytest.raises(ValueError, match="no such instruction set"):
        kernels.use_isa("abacus")


@pytest.mark.parametrize("k", [1, 6, 16, 70])
@pytest.mark.parametrize("scale", SCALES)
def test_enough_cg_steps_equal_cholesky(isa, scale, k):
    problem = Problem(6, k, scale=scale)
    # CG stops at a residual of 1e-10 of the gradient, and the next Newton step goes on from there.
    assert_allclose(
        problem.sweep(**SOLVE, cg_steps=10 * k)[0], problem.sweep(**SOLVE)[0], rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("k", [3, 16, 33])
def test_one_cg_step_solves_a_row_whose_factors_are_orthogonal(isa, k):
    sizes = np.geomspace(0.01, 100, k)  # of the cells' factors, which do not overlap
    values = np.random.default_rng(k).standard_normal((4, k))
    side = Intervals.from_table(values).by_row
    start, ridge, offset = np.ones((4, k)), np.full(k, 0.5), np.zeros(k)
    update_rows(side, start, np.diag(sizes), offset, ridge, cg_steps=1)
    assert_allclose(start, sizes * values / (sizes**2 + 0.5), rtol=1e-10, atol=1e-12)


def test_an_empty_row_goes_to_zero():
    # The jitter of the Newton step leaves 8 eps of a start of at most 4.
    assert np.abs(Problem(7, 5).sweep(inner_steps=1)[0][0]).max() <= 1e-14


def test_a_row_that_meets_all_its_limits_stays_if_nothing_pulls_it():
    own = np.array([[2.0]])
    side = Intervals.from_bounds(np.array([[1.0, -INF]]), np.array([[INF, 3.0]])).by_row
    loss = update_rows(side, own, np.ones((2, 1)), np.zeros(2), np.zeros(1), inner_steps=5)
    assert (own[0, 0], loss) == (2.0, 0.0)


def test_no_rows_have_no_loss():
    side = Intervals.from_table(np.ones((1, 3))).take_rows(np.array([], int)).by_row
    args = (np.zeros((0, 2)), np.ones((3, 2)), np.zeros(3), np.ones(2))
    assert update_rows(side, *args) == 0.0


@pytest.mark.parametrize("k", [1, 5, 8])
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_data_does_not_matter(isa, unit, k):
    problem = Problem(11, k)
    expected = problem.sweep(inner_steps=3)[0]
    problem.intervals = Intervals.from_bounds(*(unit * b for b in problem.intervals.to_bounds()))
    problem.other, problem.offset = unit * problem.other, unit * problem.offset
    problem.ridge = unit**2 * problem.ridge
    # Every quantity is scaled by a power of the unit, and so is its rounding.
    assert_allclose(problem.sweep(inner_steps=3)[0], expected, rtol=1e-10, atol=1e-10)


# The value that is returned.


@pytest.mark.parametrize("cg_steps", [0, 3])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_returned_loss_is_the_loss_at_the_new_rows(isa, scale, cg_steps, dtype):
    problem = Problem(8, 6, scale=scale, dtype=dtype)
    own, loss = problem.sweep(inner_steps=3, cg_steps=cg_steps)
    rows = problem.rows
    start = sum(row.value(p.astype(float)) for row, p in zip(rows, problem.start, strict=True))
    expected = sum(row.loss(p.astype(float)) for row, p in zip(rows, own, strict=True))
    # It is carried along from the value at the start, whose rounding it keeps.
    assert_allclose(loss, expected, rtol=0, atol=40 * np.finfo(dtype).eps * start)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_residuals_are_loss_and_gradient_of_the_cells(isa, scale, dtype):
    problem = Problem(9, 6, scale=scale, dtype=dtype)
    side = problem.intervals.by_row
    loss, exact, censored = residuals(
        side, problem.start, problem.other, problem.offset, scale=scale
    )
    x = problem.start.astype(float) @ problem.other.T.astype(float) + problem.offset
    cells = interval_loss(
        x[side.censored_rows(), side.censored_idx], side.lower, side.upper, scale=scale
    )
    errors = x[side.exact_rows(), side.exact_idx] - side.value
    rounding = 40 * np.finfo(dtype).eps  # predictions of at most 20
    assert_allclose(exact, errors, rtol=0, atol=rounding)
    assert_allclose(censored, cells.gradient, rtol=0, atol=rounding)
    assert_allclose(loss, 0.5 * errors @ errors + cells.value.sum(), rtol=rounding)


# The objective never rises.


@pytest.mark.parametrize("how", [{}, {"cg_steps": 1}, {"cg_steps": 4}, {"inner_steps": 3}])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.8, 50.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-8, 0.5])
def test_no_row_rises(ridge, scale, how):
    for seed in range(12):
        problem = Problem(10 + seed, 1 + seed, n_cols=8, ridge=ridge, scale=scale)
        own = problem.sweep(**how)[0]
        for row, before, after in zip(problem.rows, problem.start, own, strict=True):
            assert row.value(after) <= row.value(before) * (1 + 1e-12)  # rounding of 8 cells


@pytest.mark.parametrize("scale", SCALES)
def test_no_row_rises_from_far_away(scale):
    for seed in range(12):
        problem = Problem(30 + seed, 4, n_cols=9, scale=scale)
        start = 1e3 * problem.start
        for row, before, after in zip(problem.rows, start, problem.sweep(start)[0], strict=True):
            assert row.value(after) <= row.value(before) * (1 + 1e-12)


class TestOneFactorWhereTheActiveSetStepFails:
    """One factor u, cells (v=0.1, lower=10) and (v=-1, lower=-50), ridge 0, from u = 0."""

    v, lower = np.array([[0.1], [-1.0]]), np.array([10.0, -50.0])
    row = Row(lower, np.full(2, INF), v, np.zeros(2), np.zeros(1))

    def swept(self, inner_steps):
        own = np.zeros((1, 1))
        side = Intervals.from_bounds(self.lower[None], np.full((1, 2), INF)).by_row
        loss = update_rows(
            side, own, self.v, np.zeros(2), np.zeros(1), inner_steps=inner_steps, inner_tol=1e-18
        )
        return own[0], loss

    def test_the_printed_update_raises_the_objective(self):
        u = np.zeros(1)
        active = self.v @ u < self.lower
        printed = np.linalg.solve(self.v[active], self.lower[active])
        # u = 10 / 0.1 = 100 fits the first cell and puts the second 50 below its limit.
        assert_allclose([self.row.value(u), self.row.value(printed)], [50.0, 1250.0], rtol=1e-12)

    @pytest.mark.parametrize("inner_steps", [1, 2, 3, 10])
    def test_the_kernel_lowers_it(self, isa, inner_steps):
        u, loss = self.swept(inner_steps)
        assert loss < 50
        assert_allclose(loss, self.row.value(u), rtol=1e-12)

    def test_the_kernel_finds_the_minimum(self, isa):
        # u >= 50 makes both cells count: 0.01 u - 1 + u - 50 = 0.
        assert_allclose(self.swept(50)[0], 51 / 1.01, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", SCALES)
def test_rank_deficient_rows_stay_finite_without_ridge(isa, scale, dtype):
    for seed in range(10):
        problem = Problem(50 + seed, 9, n_cols=5, ridge=0.0, scale=scale, dtype=dtype)
        own, loss = problem.sweep(inner_steps=4)
        assert np.isfinite(own).all()
        assert np.isfinite(loss)


@pytest.mark.parametrize("scale", SCALES)
def test_rank_deficient_rows_never_rise_without_ridge(isa, scale):
    for seed in range(10):
        problem = Problem(50 + seed, 9, n_cols=5, ridge=0.0, scale=scale)
        own = problem.sweep(inner_steps=4)[0]
        for row, before, after in zip(problem.rows, problem.start, own, strict=True):
            assert row.value(after) <= row.value(before) * (1 + 1e-12)


def test_repeated_factors_without_ridge_still_fit_the_data(isa):
    Q = np.repeat(np.random.default_rng(0).standard_normal((30, 2)), 3, axis=1)
    truth = np.array([[1.0, 2.0, 0.0, -1.0, 0.5, 3.0]])
    own = np.zeros((1, 6))
    side = Intervals.from_table(truth @ Q.T).by_row
    update_rows(side, own, Q, np.zeros(30), np.zeros(6), **SOLVE)
    # A jitter of 8 eps against singular values of about 1 / 10 of the largest.
    assert_allclose(own @ Q.T, truth @ Q.T, rtol=0, atol=1e-12)


# Refusals.


def arguments(dtype=np.float64):
    side = Intervals.from_table(np.ones((3, 4), dtype), ceiling=2.0).by_row
    return [side, *(np.full(s, 0.5, dtype) for s in ((3, 2), (4, 2), 4, 2))]


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    ("position", "change", "error"),
    [
        (1, lambda a: a[:2], ValueError),  # a row too few
        (1, lambda a: a[:, :1].copy(), ValueError),  # a factor too few
        (1, lambda a: a.ravel(), TypeError),
        (1, lambda a: a.astype(np.float32), TypeError),
        (1, lambda a: a.astype(int), TypeError),
        (1, np.asfortranarray, TypeError),
        (1, read_only, TypeError),
        (2, lambda a: a[:, :1].copy(), ValueError),
        (2, lambda a: a[:3], ValueError),  # as many columns as offsets
        (2, lambda a: a.astype(np.float32), TypeError),
        (3, lambda a: a[:3], ValueError),
        (3, lambda a: a.astype(np.float32), TypeError),
        (4, lambda a: a[:1], ValueError),
        (4, lambda a: a.astype(np.float32), TypeError),
        (0, lambda side: side.take(np.array([0, 1])), ValueError),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(position, change, error):
    given = arguments()
    own, before = given[1], given[1].copy()
    given[position] = change(given[position])
    with pytest.raises(error):
        update_rows(*given)
    assert_array_equal(own, before)


def test_predict_is_the_product_of_the_factors():
    rng = np.random.default_rng(0)
    P, Q = rng.standard_normal((5, 3)), rng.standard_normal((7, 3))
    rows, cols = np.array([0, 4, 4, 2], np.int32), np.array([6, 0, 6, 3], np.int32)
    assert_allclose(
        kernels.predict(rows, cols, P, Q), (P @ Q.T)[rows, cols], rtol=1e-14, atol=1e-14
    )
