"""Features, groups, weights and known errors in the sampler."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from declip import BayesCMC, Intervals
from declip.lowrank import GroupOffsets, LowRank
from declip.solvers.gibbs.chain import Chain, Model, Table
from declip.solvers.gibbs.priors import Gaussian, NoiseScales
from declip.solvers.gibbs.side import GroupDraws, KnownSides, Regression

SHAPE, RANK, GROUPS = (7, 5), 2, 3


def regression(features, width, spread, rng):
    """Draw coefficients and strengths from their prior, and the means of the rows."""
    strength = rng.gamma(1, 1, features.shape[1])
    W = rng.standard_normal((features.shape[1], width)) * spread / np.sqrt(strength)[:, None]
    return Regression(W, strength), features @ W


def draw_joint(rng, ceiling=1.0, noise="column"):
    """Draw all parameters and a table from the prior; return it with a chain that stands there.

    Cells have weights, by which their noise differs within a column.
    """
    (n, m), k = SHAPE, RANK
    known = KnownSides(
        rng.standard_normal((n, 2)),
        rng.standard_normal((m, 1)),
        rng.integers(0, GROUPS, n).astype(np.int32),
        GROUPS,
    )
    tau = rng.gamma(2, k / 2, k)
    by_row, mean_rows = regression(known.row_features, k, 1.0, rng)
    by_col, mean_cols = regression(known.col_features, k + 1, [*tau**-0.5, 10.0], rng)
    A, B = np.zeros((n, k + 1)), mean_cols + rng.standard_normal((m, k + 1)) * [*tau**-0.5, 10]
    A[:, :k] = mean_rows + rng.standard_normal((n, k))
    variance = 1 / rng.gamma(1, 10)
    offsets = np.vstack([np.sqrt(variance) * rng.standard_normal((GROUPS, m)), np.zeros(m)])
    weight, cols = rng.uniform(0.3, 3, SHAPE), rng.gamma(1, 10, m)
    factors = LowRank(A, B, bias=True, groups=GroupOffsets(known.groups, offsets))
    truth = factors.block() + rng.standard_normal(SHAPE) / np.sqrt(cols * weight)
    seen = rng.random(SHAPE) < 0.8
    lower = np.where(seen, np.minimum(truth, ceiling), np.nan)
    upper = np.where(seen, np.where(truth >= ceiling, np.inf, truth), np.nan)
    cells = Intervals.from_bounds(lower, upper)
    side = cells.by_row
    at = (side.exact_rows(), side.exact_idx), (side.censored_rows(), side.censored_idx)
    object.__setattr__(side, "weights", (weight[at[0]], weight[at[1]]))
    table, model = Table(cells, known=known), Model(k, noise)
    chain = Chain.start(table, model, np.random.SeedSequence(int(rng.integers(2**31))))
    chain.factors, chain.scales = factors, NoiseScales(noise, np.ones(n), cols)
    chain.z, chain.groups = truth[at[1]], GroupDraws(offsets, variance)
    chain.row_regression, chain.col_regression = by_row, by_col
    return table, chain


def looked_at(chain):
    """Return quantities that do not depend on the signs of factors."""
    B = chain.factors.B
    return [
        chain.factors.block()[0, 0] / 10,
        np.log(chain.groups.variance),
        chain.groups.offsets[0, 1],
        B[2, -1],
        np.log(chain.scales.cols[0]),
        np.log((chain.row_regression.coefficients**2).sum()),
        chain.col_regression.coefficients[0, -1],
        np.log(chain.row_regression.strength[0]),
        np.log(chain.col_regression.strength[0]),
    ]


def stays(n_tables, sweeps, noise):
    """Return the p-values of: after some sweeps given the table, parameters are as from the prior.

    A joint draw of parameters and table, and then a step that leaves the posterior as it is, is a
    joint draw again (Geweke 2004).
    """
    rng = np.random.default_rng(11)
    before, after = [], []
    for _ in range(n_tables):
        table, chain = draw_joint(rng, noise=noise)
        before.append(looked_at(draw_joint(rng, noise=noise)[1]))  # of another draw: independent
        for _ in range(sweeps):
            chain.sweep(table, 1)
        after.append(looked_at(chain))
    return [
        stats.ks_2samp(a, b).pvalue
        for a, b in zip(np.transpose(before), np.transpose(after), strict=True)
    ]


@pytest.mark.parametrize("noise", ["column", "known"])
def test_sweeps_leave_prior_draws_as_they_are(noise):
    # nine quantities: one of 1,000 fits would have a p-value below 1e-4
    assert min(stays(60, 3, noise)) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["column", "known"])
def test_many_sweeps_leave_many_prior_draws_as_they_are(noise):
    assert min(stays(3000, 10, noise)) > 1e-4


def test_coefficients_are_drawn_from_their_posterior():
    rng = np.random.default_rng(0)
    X, F = rng.standard_normal((30, 2)), rng.standard_normal((30, 2))
    L = np.array([[2.0, 0.6], [0.6, 1.0]])
    prior, now = Gaussian(L, L @ [0.5, -0.5]), Regression(np.zeros((2, 2)), np.array([3.0, 0.5]))
    drawn = np.array([now.draw(F, X, prior, rng).coefficients for _ in range(4000)])
    A = X.T @ X + np.diag([3.0, 0.5])
    mean = np.linalg.solve(A, X.T @ (F - [0.5, -0.5]))
    covariance = np.kron(np.linalg.inv(A), np.linalg.inv(L))
    sd = np.sqrt(np.diag(covariance)).reshape(2, 2)
    assert_allclose(drawn.mean(0), mean, atol=5 * sd.max() / np.sqrt(4000))
    # the variance of a variance of 4000 normal values is 2 / 4000 of its square
    found = np.cov(drawn.reshape(4000, 4).T)
    assert_allclose(found, covariance, atol=5 * np.sqrt(2 / 4000) * covariance.max())


def test_rows_of_known_errors_are_the_posterior_in_closed_form():
    rng = np.random.default_rng(1)
    q, sd = np.array([1.0, -0.8, 0.6, 1.2]), np.array([0.2, 0.5, 1.0, 2.0])
    truth = rng.standard_normal((400, 1)) @ q[None] + 1.0
    table = truth + sd * rng.standard_normal(truth.shape)
    model = BayesCMC(1, random_state=0).fit(table, errors=sd)
    assert model.noise_ == "known"
    assert_allclose(model.noise_scale_, sd, rtol=1e-5)
    # given q, p has the precision 1 + sum q^2 / s^2 and this mean
    p = ((table - 1) * q / sd**2).sum(1) / (1 + (q**2 / sd**2).sum())
    best = 1 + p[:, None] * q
    # q and the offsets are found from 400 rows: some hundredths
    assert np.sqrt(np.mean((model.reconstruct() - best) ** 2)) < 0.15
    assert np.sqrt(np.mean((model.reconstruct() - truth) ** 2)) < 0.3


def test_a_weight_of_four_halves_the_noise():
    rng = np.random.default_rng(2)
    truth = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 8))
    sd = np.where(np.arange(8) % 2, 0.3, 0.6) * np.ones((300, 1))
    weight = np.where(rng.random(truth.shape) < 0.5, 4.0, 1.0)
    table = truth + sd / np.sqrt(weight) * rng.standard_normal(truth.shape)
    model = BayesCMC(2, random_state=0).fit(table, weights=weight)
    assert_allclose(model.noise_scale_, sd[0], rtol=0.12)


def test_groups_and_features_make_error_bars_that_hold():
    rng = np.random.default_rng(3)
    n, m = 240, 8
    features, plates = rng.standard_normal((n, 1)), rng.integers(0, 6, n)
    P = features @ [[1.5, -1.0]] + 0.5 * rng.standard_normal((n, 2))
    shift = rng.standard_normal((6, m))[plates]
    truth = P @ rng.standard_normal((2, m)) + shift + 0.3 * rng.standard_normal((n, m))
    seen = np.where(rng.random(truth.shape) < 0.3, np.nan, truth)
    model = BayesCMC(3, random_state=0, n_samples=150, burn_in=100)
    model.fit(seen[:200], row_features=features[:200], groups=plates[:200])
    rows, cols = np.nonzero(np.isnan(seen[:200]))
    low, high = model.predict_interval(rows, cols)
    inside = np.mean((low <= truth[rows, cols]) & (truth[rows, cols] <= high))
    assert 0.85 < inside < 0.95  # of some 480 cells
    rest = {"row_features": features[200:], "groups": plates[200:]}
    new = model.fold_in(seen[200:] * np.nan, **rest)
    at = np.indices((40, m)).reshape(2, -1)
    low, high = new.predict_interval(*at)
    inside = np.mean((low <= truth[200:].ravel()) & (truth[200:].ravel() <= high))
    assert 0.82 < inside < 0.97  # of 320 cells, eight of one row


def test_what_does_not_go_together_is_refused():
    table = np.random.default_rng(4).standard_normal((20, 4))
    with pytest.raises(ValueError, match="df=None"):
        BayesCMC(1, df=4.0).fit(table, weights=2.0)
    with pytest.raises(ValueError, match='use missing="random"'):
        BayesCMC(1, missing="low").fit(table, groups=np.arange(20) % 2)
