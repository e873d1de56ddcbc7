"""The kernels of the Gibbs sampler: random numbers, truncated normals, draws of a row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from declip import Intervals, kernels
from declip.kernels import CellDraws, DrawProblem, _kernels

N = 40_000


# Known answers of Random123, the authors' own implementation.
@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_its_known_answers(counter, key, words):
    assert _kernels.philox(counter, key) == words


def draws(a, b, n=N, seed=1, mean=0.0, sd=1.0):
    full = [np.full(n, float(v)) for v in (mean, sd, a, b)]
    return kernels.truncated_normals(*full, (seed, 0))


def moments_by_quadrature(a, b):
    """Return mean and variance of N(0, 1) in [a, b], of the distance from the point nearest 0."""
    near = min(max(a, 0.0), b)
    reach = 12 / max(1.0, abs(near) / 3)

    def moment(power):
        def integrand(e):
            return e**power * np.exp(-near * e - 0.5 * e * e)

        low, high = max(a - near, -reach), min(b - near, reach)
        points = [p for p in (0.0,) if low < p < high]
        return quad(
            integrand, low, high, points=points or None, epsabs=1e-13, epsrel=1e-9, limit=200
        )[0]

    total, first, second = (moment(power) for power in range(3))
    return near, first / total, second / total - (first / total) ** 2


TAILS = [-8.0, -3.0, -1.0, -0.1, 0.0, 0.3, 1.0, 3.0, 8.0, 30.0, 100.0, 300.0]
RANGES = [
    (-1, 1),
    (-0.5, 1),
    (-0.3, 6),
    (0.1, 4),
    (2, 2.001),
    (2, 9),
    (-9, -2),
    (-8, 8),
    (100, 100.01),
]


@pytest.mark.parametrize(
    ("a", "b"),
    [(a, np.inf) for a in TAILS] + [(-np.inf, -a) for a in TAILS] + RANGES + [(-np.inf, np.inf)],
)
def test_truncated_normals_have_the_moments_of_quadrature(a, b):
    near, mean, variance = moments_by_quadrature(a, b)
    z = draws(a, b)
    distance = z - near
    assert z.min() >= a
    assert z.max() <= b
    # Four standard errors; the kurtosis of these laws is at most 9, so that the error of a variance
    # is at most 3 / sqrt(N) of it.
    assert abs(distance.mean() - mean) < 4 * np.sqrt(variance / N)
    assert_allclose(distance.var(), variance, rtol=4 * 3 / np.sqrt(N))


@pytest.mark.parametrize("a", [-8.0, 0.5, 8.0, 30.0])
def test_truncated_normals_have_the_right_law(a):
    z = draws(a, np.inf, n=5000)
    log_share = stats.norm.logsf(z) - stats.norm.logsf(a)
    assert stats.kstest(np.exp(log_share), "uniform").pvalue > 0.01


def test_a_truncated_normal_far_out_does_not_stick_to_its_limit():
    z = draws(300.0, np.inf, n=1000)
    assert len(np.unique(z)) == 1000


def test_a_mirrored_interval_gives_mirrored_draws():
    assert_array_equal(draws(-2.0, -1.0, n=100), -draws(1.0, 2.0, n=100))


def test_draws_scale_with_mean_and_deviation():
    z = draws(1.0, 4.0, n=100)
    assert_allclose(draws(12.0, 18.0, n=100, mean=10.0, sd=2.0), 10 + 2 * z, rtol=1e-12)


def test_other_seeds_and_sweeps_give_other_draws():
    one = np.ones(8)
    keys = [(0, 0), (0, 1), (1, 0)]
    found = [kernels.truncated_normals(0 * one, one, -9 * one, 9 * one, key) for key in keys]
    assert len({tuple(f) for f in found}) == 3
    assert len(np.unique(found)) == 24


def problem(n=2000, seed=0, n_censored=2, d=3, m=6):
    """Return n copies of one row, so that its draws can be counted."""
    rng = np.random.default_rng(seed)
    value = rng.standard_normal(m)
    lower, upper = value.copy(), value.copy()
    upper[m - n_censored :] = np.inf
    cells = Intervals.from_bounds(np.tile(lower, (n, 1)), np.tile(upper, (n, 1)))
    root = rng.standard_normal((d, d))
    prior = np.ascontiguousarray(root @ root.T + np.eye(d)), rng.standard_normal(d)
    return {
        "cells": cells,
        "other": rng.standard_normal((m, d)),
        "offset": rng.standard_normal(m),
        "prior": prior,
        "own": rng.uniform(0.5, 2) * np.ones(n),
        "precision": rng.uniform(0.5, 2, m),
    }


def draw(p, z, key=(3, 0), weights=None, df=0.0, **how):
    side = p["cells"].by_row
    own = np.zeros((len(p["own"]), p["other"].shape[1]))
    precision = p["own"], p["precision"]
    rows = DrawProblem(side, p["other"], p["offset"], p["prior"], precision, df)
    return own, kernels.draw_rows(rows, own, CellDraws(z, weights), key, **how)


def posterior(p, value):
    """Return mean and covariance of a row's factors by plain NumPy."""
    weight = p["own"][0] * p["precision"]
    H = p["prior"][0] + (p["other"].T * weight) @ p["other"]
    r = p["prior"][1] + p["other"].T @ (weight * (value - p["offset"]))
    return np.linalg.solve(H, r), np.linalg.inv(H)


@pytest.mark.parametrize("isa", kernels.isa_names())
@pytest.mark.parametrize("d", [1, 3, 8, 21])
def test_factors_of_exact_rows_have_their_normal_posterior(isa, d):
    before = kernels.current_isa()
    kernels.use_isa(isa)
    try:
        p = problem(n=20_000, n_censored=0, d=d)
        own, _ = draw(p, np.empty(0))
    finally:
        kernels.use_isa(before)
    mean, cov = posterior(p, p["cells"].by_row.value[:6])
    root = np.linalg.cholesky(np.linalg.inv(cov))
    standard = (own - mean) @ root
    # Means and covariances of 20,000 standard normals: errors of 0.007 and at most 0.01.
    assert_allclose(standard.mean(axis=0), 0, atol=0.03)
    assert_allclose(np.cov(standard.T).reshape(d, d), np.eye(d), atol=0.05)


def test_censored_cells_and_factors_have_their_joint_posterior():
    # With the factors integrated out, z of a row is normal with covariance S, cut to its bounds.
    p = problem(n=4000, n_censored=2)
    side = p["cells"].by_row
    z = side.lower.copy()
    for sweep in range(30):
        own, _ = draw(p, z, key=(3, sweep))
    prior_cov = np.linalg.inv(p["prior"][0])
    mean = p["offset"] + p["other"] @ prior_cov @ p["prior"][1]
    S = p["other"] @ prior_cov @ p["other"].T + np.diag(1 / (p["own"][0] * p["precision"]))
    exact, censored = np.arange(4), np.arange(4, 6)
    gain = S[np.ix_(censored, exact)] @ np.linalg.inv(S[np.ix_(exact, exact)])
    centre = mean[censored] + gain @ (side.value[:4] - mean[exact])
    spread = S[np.ix_(censored, censored)] - gain @ S[np.ix_(exact, censored)]
    reference = np.random.default_rng(0).multivariate_normal(centre, spread, 400_000)
    reference = reference[np.all(reference >= side.lower[:2], axis=1)]
    found = z.reshape(-1, 2)
    # 4000 rows: six standard errors of a mean, for what is left of the start and two cells.
    assert_allclose(
        found.mean(axis=0), reference.mean(axis=0), atol=6 * found.std() / np.sqrt(4000)
    )
    assert_allclose(np.cov(found.T), np.cov(reference.T), rtol=0.15, atol=0.03)
    means = np.array([posterior(p, np.concatenate([side.value[:4], row]))[0] for row in found])
    assert_allclose(own.mean(axis=0), means.mean(axis=0), atol=0.08)


def test_squares_are_the_weighted_residuals_of_the_draw():
    p = problem(n=5)
    side, z = p["cells"].by_row, p["cells"].by_row.lower.copy()
    own, squares = draw(p, z)
    values = np.column_stack([side.value.reshape(5, -1), z.reshape(5, -1)])
    residual = values - own @ p["other"].T - p["offset"]
    assert_allclose(squares, residual**2 @ p["precision"], rtol=1e-10)


def test_student_weights_have_their_gamma_posterior():
    p, df = problem(n=20_000, n_censored=0), 4.0
    weights = np.ones(p["cells"].n_exact), np.empty(0)
    own, squares = draw(p, np.empty(0), weights=weights, df=df)
    side = p["cells"].by_row
    residual = side.value.reshape(-1, 6) - own @ p["other"].T - p["offset"]
    rate = 0.5 * (df + residual**2 * p["precision"] * p["own"][0])
    share = stats.gamma(0.5 * (df + 1)).cdf(weights[0].reshape(-1, 6) * rate)
    assert stats.kstest(share[:, 0], "uniform").pvalue > 0.01
    weighted = residual**2 * p["precision"] * weights[0].reshape(-1, 6)
    assert_allclose(squares, weighted.sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize("threads", [2, 3])
def test_draws_do_not_depend_on_the_number_of_threads(threads):
    p = problem(n=20_000)
    results = []
    for t in (1, threads):
        z = p["cells"].by_row.lower.copy()
        results.append((*draw(p, z, threads=t), z))
    for one, many in zip(*results, strict=True):
        assert_array_equal(one, many)


def test_the_same_stream_makes_equal_rows_equal():
    p = problem(n=10)
    z = p["cells"].by_row.lower.copy()
    own, _ = draw(p, z, same_stream=True)
    assert_array_equal(own, np.tile(own[0], (10, 1)))
    other, _ = draw(p, p["cells"].by_row.lower.copy())
    assert len(np.unique(other[:, 0])) == 10


def test_a_row_without_cells_is_drawn_from_its_prior():
    p = problem(n=20_000, n_censored=0)
    one_cell = Intervals.from_triplets([0], [0], [1.0], shape=(20_000, 6))
    own, squares = (a[1:] for a in draw(p | {"cells": one_cell}, np.empty(0)))
    precision, information = p["prior"]
    assert_allclose(own.mean(axis=0), np.linalg.solve(precision, information), atol=0.03)
    assert_allclose(np.cov(own.T), np.linalg.inv(precision), atol=0.03)
    assert_array_equal(squares, 0)


def test_a_prior_that_is_not_positive_is_refused():
    p = problem(n=3)
    p["prior"] = (-100 * np.eye(3), np.zeros(3))
    with pytest.raises(FloatingPointError, match="3 rows have no proper posterior"):
        draw(p, p["cells"].by_row.lower.copy())


@pytest.mark.parametrize(
    ("mean", "sd", "a", "b"),
    [
        (np.nan, 1.0, 0.0, 1.0),
        (np.inf, 1.0, 0.0, np.inf),
        (0.0, np.nan, 0.0, 1.0),
        (0.0, 0.0, 0.0, 1.0),
        (0.0, -1.0, 0.0, 1.0),
        (0.0, np.inf, 0.0, 1.0),
        (0.0, 1.0, np.nan, 1.0),
        (0.0, 1.0, 0.0, np.nan),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 1.0, -np.inf, -np.inf),
        (0.0, 1.0, np.inf, np.inf),
    ],
)
def test_a_normal_that_cannot_be_drawn_is_refused(mean, sd, a, b):
    with pytest.raises(FloatingPointError, match="no normal of mean"):
        draws(a, b, n=2, mean=mean, sd=sd)


@pytest.mark.parametrize("distance", [1e8, 1e30, 1e200])
def test_a_normal_is_drawn_from_any_distance(distance):
    assert_allclose(draws(distance, np.inf, n=3), distance, rtol=1e-15)
    assert_array_equal(draws(distance, distance, n=3), distance)


@pytest.mark.parametrize("spoilt", ["prior", "precision", "offset", "own"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_row_of_what_is_not_finite_is_refused(spoilt, value):
    p = problem(n=3)
    p[spoilt] = {
        "prior": (p["prior"][0], np.full(3, value)),
        "offset": np.full(6, value),
        "precision": np.full(6, value),
        "own": np.full(3, value),
    }[spoilt]
    with pytest.raises(FloatingPointError, match="3 rows have no proper posterior"):
        draw(p, p["cells"].by_row.lower.copy())


def test_weights_of_infinite_degrees_of_freedom_are_refused():
    p = problem(n=3)
    side = p["cells"].by_row
    weights = np.ones(len(side.value)), np.ones(len(side.lower))
    with pytest.raises(FloatingPointError, match="3 rows have no proper posterior"):
        draw(p, side.lower.copy(), weights=weights, df=np.inf)


def test_shapes_that_disagree_are_refused():
    p = problem(n=3)
    with pytest.raises(ValueError, match="shapes disagree"):
        draw(p | {"offset": np.zeros(5)}, p["cells"].by_row.lower.copy())


def test_unknown_cells_of_normal_rows_are_drawn_given_the_rest():
    # one unknown cell a row: N(mu_0 - P_01 (z_1 - mu_1) / P_00, 1 / P_00), by class
    rng, n = np.random.default_rng(0), 2 * N
    mean = np.array([[0.0, 1.0], [3.0, -1.0]])
    precision = np.array([[[2.0, 1.2], [1.2, 1.5]], [[0.5, -0.1], [-0.1, 4.0]]])
    label = np.arange(n) % 2
    rows = np.column_stack([np.zeros(n), rng.standard_normal(n)])
    others = rows[:, 1].copy()
    free = np.array([True, False])
    lower, upper = np.where(free, -np.inf, rows), np.where(free, np.inf, rows)
    unknown = kernels.UnknownCells.of(lower, upper)
    kernels.draw_normal_rows(rows, unknown, label, (mean, precision), (5, 0))
    assert_array_equal(rows[:, 1], others)
    diagonal, off = precision[label, 0, 0], precision[label, 0, 1]
    expected = mean[label, 0] - off * (others - mean[label, 1]) / diagonal
    error = (rows[:, 0] - expected) * np.sqrt(diagonal)
    for k in (0, 1):
        assert stats.kstest(error[label == k], "norm").pvalue > 1e-3


def test_unknown_cells_of_normal_rows_stay_in_their_bounds_and_follow_each_other():
    # two unknown cells of correlation .9, both above 1, swept 60 times: moments by plain rejection
    rng, n = np.random.default_rng(0), 4000
    S = np.array([[1.0, 0.9], [0.9, 1.0]])
    rows, lower = np.full((n, 2), 1.5), np.full((n, 2), 1.0)
    unknown = kernels.UnknownCells.of(lower, np.full((n, 2), np.inf))
    classes = np.zeros((1, 2)), np.linalg.inv(S)[None]
    for sweep in range(60):
        kernels.draw_normal_rows(rows, unknown, np.zeros(n, np.int64), classes, (1, sweep))
    assert (rows >= 1).all()
    z = rng.multivariate_normal(np.zeros(2), S, 400_000)
    z = z[(z > 1).all(axis=1)]
    # 4,000 rows: standard errors of about .007
    assert_allclose(rows.mean(axis=0), z.mean(axis=0), atol=0.03)
    assert_allclose(np.cov(rows.T), np.cov(z.T), atol=0.03)


def test_normal_rows_do_not_depend_on_threads():
    rng, n = np.random.default_rng(0), 40_000
    lower = np.where(rng.random((n, 3)) < 0.5, 0.3, -np.inf)
    unknown = kernels.UnknownCells.of(lower, np.full((n, 3), np.inf))
    classes = np.zeros((1, 3)), np.eye(3)[None] + 0.4
    one, two = np.full((n, 3), 1.0), np.full((n, 3), 1.0)
    for rows, threads in ((one, 1), (two, 2)):
        label = np.zeros(n, np.int64)
        kernels.draw_normal_rows(rows, unknown, label, classes, (1, 0), threads=threads)
    assert_array_equal(one, two)


def test_a_normal_row_that_cannot_be_drawn_is_told():
    unknown = kernels.UnknownCells.of(np.zeros((1, 1)), np.ones((1, 1)))
    classes = np.zeros((1, 1)), np.full((1, 1, 1), np.nan)
    with pytest.raises(FloatingPointError, match="1 rows have no proper posterior"):
        kernels.draw_normal_rows(np.zeros((1, 1)), unknown, np.zeros(1, int), classes, (0, 0))
