"""Weights and errors of cells, and what the ridge draws each row to."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tests.twin import random_bounds

from declip import Intervals, kernels
from declip.cells import Cells
from declip.kernels import CellDraws, DrawProblem, RowProblem
from declip.losses import Hinge, Tobit

LOSSES = [pytest.param(Hinge(), id="hinge"), pytest.param(Tobit(0.8), id="tobit")]
STEPS = [pytest.param({}, id="Cholesky"), pytest.param({"cg_steps": 60}, id="conjugate gradients")]
SOLVE = {"inner_steps": 200, "inner_tol": 1e-18}


def problem(seed, loss, k=3, shape=(6, 40), dtype=np.float64):
    """A random problem: rows 0, 1, 2 are empty, all censored and all exact."""
    rng = np.random.default_rng([seed, k])
    side = Intervals.from_bounds(*random_bounds(rng, shape)).astype(dtype).by_row
    design, offset = (rng.standard_normal((shape[1], *more)).astype(dtype) for more in ((k,), ()))
    return RowProblem(side, design, offset, loss, rng.uniform(0.5, 1.5, k).astype(dtype))


def solved(rows, **how):
    own = np.zeros((rows.side.n_rows, rows.design.shape[1]), rows.design.dtype)
    loss = kernels.update_rows(rows, own, **(SOLVE | how))
    return own, loss


def weighted(side, seed=0, scales=False):
    rng = np.random.default_rng(seed)
    sizes = len(side.value), len(side.lower)
    weights = tuple(rng.uniform(0.2, 3, n).astype(side.value.dtype) for n in sizes)
    scale = rng.uniform(0.4, 2, sizes[1]).astype(side.value.dtype) if scales else None
    return replace(side, weights=weights, scales=scale)


def repeated(side, times):
    """Return the side with its cells as often as ``times`` says: exact ones, censored ones."""
    parts = {}
    for kind, (ptr, *arrays), n in (
        ("exact", (side.exact_ptr, side.exact_idx, side.value), times[0]),
        ("censored", (side.censored_ptr, side.censored_idx, side.lower, side.upper), times[1]),
    ):
        total = np.concatenate([[0], np.cumsum(n)])
        parts[kind] = [total[ptr], *(np.repeat(a, n) for a in arrays)]
    return Cells(*parts["exact"], *parts["censored"])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("how", STEPS)
def test_weights_are_as_many_copies_of_the_cell(isa, loss, how):
    rows = problem(0, loss)
    rng = np.random.default_rng(1)
    times = [rng.integers(0, 3, n) for n in (len(rows.side.value), len(rows.side.lower))]
    copied = replace(rows, side=repeated(rows.side, times))
    weights = tuple(n.astype(np.float64) for n in times)
    given = replace(rows, side=replace(rows.side, weights=weights))
    (own, total), (twin, of_twin) = solved(given, **how), solved(copied, **how)
    # Tobit ends where F no longer falls: some roots of eps times F
    assert_allclose(own, twin, atol=1e-6 if loss.scale else 1e-10)
    assert_allclose(total, of_twin, rtol=1e-9)
    assert_allclose(kernels.total_loss(given, own), of_twin, rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_weights_are_a_weaker_ridge(isa, loss):
    rows = problem(2, loss)
    twice = tuple(np.full(len(part), 2.0) for part in (rows.side.value, rows.side.lower))
    given = replace(rows, side=replace(rows.side, weights=twice))
    weaker = replace(rows, ridge=rows.ridge / 2)
    assert_allclose(solved(given)[0], solved(weaker)[0], atol=1e-6 if loss.scale else 1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scales", [False, True])
def test_the_gradient_of_weighted_cells_is_that_of_their_loss(loss, scales):
    rows = problem(3, loss)
    rows = replace(rows, side=weighted(rows.side, scales=scales))
    own = np.random.default_rng(4).standard_normal((6, 3))
    _, exact, censored = kernels.residuals(rows, own)
    side, slope = rows.side, np.zeros_like(own)
    at = np.concatenate([side.exact_rows(), side.censored_rows()])
    q = rows.design[np.concatenate([side.exact_idx, side.censored_idx])]
    np.add.at(slope, at, np.concatenate([exact, censored])[:, None] * q)
    step = 1e-6
    for i, a in ((1, 0), (2, 1), (4, 2)):
        moved = [own.copy() for _ in range(2)]
        moved[0][i, a] += step
        moved[1][i, a] -= step
        up, down = (kernels.total_loss(rows, x) for x in moved)
        assert_allclose(slope[i, a], (up - down) / (2 * step), rtol=1e-6, atol=1e-6)


def test_known_errors_give_the_likelihood_of_their_own_noise():
    sigma, s = 0.8, np.array([0.3, 2.0])
    side = Cells(
        np.array([0, 0]),
        np.empty(0, np.int32),
        np.empty(0),
        np.array([0, 2]),
        np.array([0, 1], np.int32),
        np.array([1.0, -np.inf]),
        np.array([np.inf, 0.5]),
        weights=(np.empty(0), sigma**2 / s**2),
        scales=s,
    )
    rows = RowProblem(side, np.eye(2), np.zeros(2), Tobit(sigma))
    x = np.array([[0.7, 1.1]])
    # -sigma^2 log P for P(x0 + s0 N >= 1) and P(x1 + s1 N <= 0.5)
    mass = stats.norm.logsf((1 - 0.7) / s[0]) + stats.norm.logcdf((0.5 - 1.1) / s[1])
    assert_allclose(kernels.total_loss(rows, x), -(sigma**2) * mass, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_centre_is_a_shift_and_a_strength_another_ridge(isa, loss, how, dtype):
    rows = problem(5, loss, dtype=dtype)
    rng = np.random.default_rng(6)
    centre = rng.standard_normal((6, 3)).astype(dtype)
    strength = rng.uniform(0.5, 2, 6).astype(dtype)
    own = solved(replace(rows, centre=centre, row_ridge=strength), **how)[0]
    for i in range(6):
        one = replace(
            rows,
            side=rows.side.take(np.array([i])),
            offset=rows.offset + rows.design @ centre[i],
            ridge=strength[i] * rows.ridge,
        )
        away = solved(one, **how)[0][0]
        tol = 2e-3 if dtype == np.float32 else 1e-6 if loss.scale else 1e-9
        assert_allclose(own[i] - centre[i], away, atol=tol)
    assert_array_equal(own[0], centre[0])  # it has no cell


def test_draws_of_rows_with_priors_of_their_own_are_those_of_each_row_alone():
    rng = np.random.default_rng(7)
    side = Intervals.from_bounds(*random_bounds(rng, (5, 8))).by_row
    design, offset = rng.standard_normal((8, 2)), rng.standard_normal(8)
    precision, scale = np.array([[2.0, 0.5], [0.5, 1.0]]), rng.uniform(0.5, 2, 5)
    information = rng.standard_normal((5, 2))

    def drawn(side, information, matrix, **more):
        n = side.n_rows
        cells = CellDraws(np.clip(0.0, side.lower, side.upper))
        noise = np.ones(n), np.full(8, 1.5)
        rows = DrawProblem(side, design, offset, (matrix, information), noise, **more)
        own = np.zeros((n, 2))
        kernels.draw_rows(rows, own, cells, (3, 4), same_stream=True)
        return own

    together = drawn(side, information, precision, prior_scale=scale)
    for i in range(5):
        alone = drawn(side.take(np.array([i])), information[i], scale[i] * precision)
        assert_allclose(together[i], alone[0], rtol=1e-12)
