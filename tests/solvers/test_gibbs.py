"""The Gibbs sampler: against brute force, against its own prior, and what it keeps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tests.solvers.gibbs_prior import (
    draw_chain,
    draw_prior,
    noise_law,
    observe,
    weighted_answers,
)

from declip import Intervals
from declip.solvers.gibbs import (
    Model,
    Schedule,
    effective_sample_size,
    sample_posterior,
    split_r_hat,
)
from declip.solvers.gibbs.chain import Chain, Table
from declip.solvers.gibbs.sampler import Kept
from declip.solvers.gibbs.units import Units
from declip.truncated import NoiseDistribution

MODELS = [
    Model(1, "column"),
    Model(1, "row+column"),
    Model(1, "global"),
    Model(1, "column", df=4.0),
    Model(1, "row+column", df=3.0),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=str)

TABLE = np.array([[0.1, 0.4], [0.4, -0.2], [np.nan, 0.1]])
CEILING = 0.4
THRESHOLD = 0.8


def identity_units(n_cols):
    return Units(np.zeros(n_cols), np.ones(n_cols))


def traced(cells, model, ask, n_samples, burn_in=200, seed=0):
    """Return ``ask(x, scale, z)`` after each sweep of one chain."""
    table = Table(cells)
    chain = Chain.start(table, model, np.random.SeedSequence(seed))
    trace = []
    for sweep in range(burn_in + n_samples):
        chain.sweep(table, threads=1)
        if sweep >= burn_in:
            scale = 1 / np.sqrt(np.outer(chain.scales.rows, chain.scales.cols))
            trace.append(ask(chain.factors.block(), scale, chain.z))
    return np.array(trace)


def simulated(shape=(30, 8), rank=2, ceiling=1.0, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    P, Q = (rng.standard_normal((n, rank)) for n in shape)
    truth = P @ Q.T / np.sqrt(rank) + 0.3 * rng.standard_normal(shape)
    return truth, observe(truth, ceiling, rng.random(shape) > missing)


@each_model
def test_posterior_means_agree_with_weighted_draws_from_the_prior(model):
    # Bounded questions, whose means have errors of a known size: heavy tails of x do no harm.
    law = noise_law(model)
    opened = TABLE == CEILING

    def expected(x, scale):
        below = law.cdf((THRESHOLD - x) / scale) - law.cdf((CEILING - x) / scale)
        share = below / law.sf((CEILING - x) / scale)
        answers = [np.tanh(x), np.tanh(np.log(scale))]
        flat = [a.reshape(len(x), -1) for a in answers]
        return np.nan_to_num(np.concatenate([*flat, share[:, opened]], axis=1))

    def drawn(x, scale, z):
        return np.concatenate([np.tanh(x).ravel(), np.tanh(np.log(scale)).ravel(), z < THRESHOLD])

    with np.errstate(invalid="ignore", divide="ignore"):
        mean, error = weighted_answers(
            model, TABLE, CEILING, expected, 600_000, np.random.default_rng(0)
        )
    trace = traced(Intervals.from_table(TABLE, ceiling=CEILING), model, drawn, 4000)
    errors = np.hypot(error, trace.std(axis=0) / np.sqrt(effective_sample_size(trace[None])))
    assert errors.max() < 0.1
    assert abs((trace.mean(axis=0) - mean) / errors).max() < 3


def quantities(x, scale, z):
    return np.array([x[0, 0], x[1, 1], x.mean(), np.log(scale[1, 1]), np.log(scale.mean())])


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODELS[0], MODELS[1], MODELS[3]], ids=str)
def test_ranks_of_the_truth_among_the_samples_are_uniform(model):
    # Simulation-based calibration (Talts and others 2018): truth from the prior, then the rank of
    # each quantity among thinned samples, 0 to 24, in 5 bins. The priors of ratings have heavy
    # tails: a truth may lie at 1000, and takes the chain some hundred sweeps to get to.
    rng, ranks = np.random.default_rng(1), []
    for case in range(80):
        x, scale, _ = (a[0] for a in draw_prior(model, (6, 4), 1, rng))
        noise = noise_law(model).rvs(x.shape, random_state=rng)
        truth = x + scale * noise
        seen = rng.random(x.shape) < 0.9
        seen[0, 0] = False
        cells = observe(truth, 0.5, seen)

        trace = traced(cells, model, quantities, n_samples=24 * 30, burn_in=600, seed=case)
        ranks.append((trace[::30] < quantities(x, scale, None)).sum(axis=0))
    counts = np.array([np.bincount(r // 5, minlength=5) for r in np.transpose(ranks)])
    p = stats.chisquare(counts, axis=1).pvalue
    # Five quantities: the smallest of five uniform p-values is below 0.002 once in a hundred.
    assert p.min() > 0.002


def state(chain):
    """Return what a chain stands at: of cells, of the noise, and of how cells and noise agree."""
    x, scale = chain.factors.block(), 1 / np.sqrt(np.outer(chain.scales.rows, chain.scales.cols))
    return np.array([x[0, 0], x[1, 1], x.mean(), scale[1, 1], scale.mean(), x.std() / scale.mean()])


def moved(model, n_cases, n_sweeps, seed):
    """Return the states of chains that began at parameters from the prior, after some sweeps."""
    rng, states = np.random.default_rng(seed), []
    for _ in range(n_cases):
        seen = rng.random((6, 4)) < 0.9
        seen[0, 0] = False
        table, chain = draw_chain(model, seen.shape, 0.5, seen, rng)
        for _ in range(n_sweeps):
            chain.sweep(table, threads=1)
        states.append(state(chain))
    return np.array(states)


def p_values_of_staying(model, n_cases=300, n_sweeps=15):
    """Return p-values of "sweeps leave the prior as it is": other draws against those moved.

    A draw from the prior and a table from it are a draw from the posterior too. Sweeps that leave
    the posterior alone leave the law of the parameters alone, however slowly a chain mixes.
    """
    still, after = moved(model, 1500, 0, seed=1), moved(model, n_cases, n_sweeps, seed=2)
    return np.array([stats.ks_2samp(*pair).pvalue for pair in zip(still.T, after.T, strict=True)])


@each_model
def test_sweeps_leave_the_prior_as_it_is(model):
    # Six quantities: the smallest of six uniform p-values is below 0.002 about once in a hundred.
    assert p_values_of_staying(model).min() > 0.002


@pytest.mark.parametrize(
    ("model", "wrong"),
    [(MODELS[2], ("NOISE_RATE", 0.4)), (MODELS[4], ("POOLED_DF", 1.0))],
    ids=["global", "row+column"],
)
def test_sweeps_that_are_wrong_do_not_leave_the_prior_as_it_is(model, wrong, monkeypatch):
    monkeypatch.setattr(f"declip.solvers.gibbs.priors.{wrong[0]}", wrong[1])
    assert p_values_of_staying(model).min() < 0.002


def test_a_sampler_that_is_wrong_is_found_out_by_the_ranks():
    # The same test with noise scales that were drawn at half their size.
    rng, ranks, model = np.random.default_rng(2), [], Model(1, "column")
    for case in range(40):
        x, scale, _ = (a[0] for a in draw_prior(model, (6, 4), 1, rng))
        truth = x + 0.5 * scale * rng.standard_normal(x.shape)
        trace = traced(
            observe(truth, 0.5, np.ones(x.shape, bool)), model, quantities, 240, 60, case
        )
        ranks.append((trace[::10] < quantities(x, scale, None)).sum(axis=0))
    counts = np.bincount(np.array(ranks)[:, 4] // 5, minlength=5)
    assert stats.chisquare(counts).pvalue < 0.002


@each_model
def test_threads_do_not_change_what_is_drawn(model):
    _, cells = simulated((300, 20), seed=3)
    one, two = (
        sample_posterior(
            cells, model, Schedule(3, 2, chains=1, max_kept=2, seed=5), threads=threads
        )
        for threads in (1, 2)
    )
    assert_array_equal(one.chains[0].factors.block(), two.chains[0].factors.block())
    assert_array_equal(one.chains[0].z, two.chains[0].z)


@each_model
def test_censored_cells_are_drawn_within_their_intervals(model):
    rng = np.random.default_rng(4)
    lower = np.where(rng.random((20, 6)) < 0.5, rng.standard_normal((20, 6)), -np.inf)
    upper = np.where(rng.random((20, 6)) < 0.5, np.maximum(lower, -3) + rng.random((20, 6)), np.inf)
    lower[0], upper[0] = 0.5, 0.5
    neither = np.isinf(lower) & np.isinf(upper)
    lower[neither] = upper[neither] = np.nan
    cells = Intervals.from_bounds(lower, upper)
    side = cells.by_row
    trace = traced(cells, model, lambda x, scale, z: z, 50)
    assert np.all((side.lower <= trace) & (trace <= side.upper))


def run_of(cells, n_samples=40, burn_in=10, last=None, seed=0, model=MODELS[0], max_kept=8):
    schedule = Schedule(n_samples, burn_in, chains=2, max_kept=max_kept, seed=seed)
    return sample_posterior(cells, model, schedule, last=last)


@each_model
def test_a_run_that_goes_on_is_the_run_that_was_never_stopped(model):
    _, cells = simulated()
    whole = run_of(cells, n_samples=40, model=model)
    parts = run_of(cells, n_samples=15, model=model)
    parts = run_of(cells, n_samples=25, last=parts, seed=99, model=model)
    assert_array_equal(parts.posterior.block(), whole.posterior.block())
    assert_array_equal(parts.traces, whole.traces)
    assert parts.history == whole.history


def test_a_run_that_goes_on_leaves_the_first_part_as_it_was():
    _, cells = simulated()
    first = run_of(cells)
    before = first.posterior.block()
    run_of(cells, last=first)
    assert_array_equal(first.posterior.block(), before)
    assert len(first.history) == 50


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100, 1000])
def test_samples_are_kept_at_equal_distances_and_never_too_many(n, monkeypatch):
    monkeypatch.setattr("declip.solvers.gibbs.sampler.Sample.of", lambda chain: chain)
    kept = Kept(capacity=8)
    for number in range(n):
        kept.offer(number)
    assert kept.samples == list(range(0, n, kept.every))
    assert min(n, 4) <= len(kept.samples) <= 8


def test_chains_of_other_seeds_differ():
    _, cells = simulated()
    one, two = run_of(cells, seed=0), run_of(cells, seed=1)
    assert abs(one.posterior.block() - two.posterior.block()).max() > 1e-3
    assert abs(one.chains[0].z - one.chains[1].z).max() > 1e-3


def test_a_table_in_other_units_gives_the_same_answers_in_those_units():
    _, cells = simulated()
    lower, upper = cells.to_bounds()
    scale, shift = 10.0 ** np.arange(-4, 4), np.linspace(-50, 50, 8)
    other = Intervals.from_bounds(lower * scale + shift, upper * scale + shift)
    x, y = run_of(cells).posterior.block(), run_of(other).posterior.block()
    # Samples are kept in single precision; shifts of 50 leave 1e-11 of a column of scale 1e-4.
    assert_allclose((y - shift) / scale, x, atol=1e-4)


def test_a_mirrored_table_has_the_mirrored_units():
    _, cells = simulated()
    lower, upper = cells.to_bounds()
    one = Units.of(cells, shared=False)
    other = Units.of(Intervals.from_bounds(-upper, -lower), shared=False)
    assert_allclose(other.shift, -one.shift, rtol=1e-10)
    assert_allclose(other.scale, one.scale, rtol=1e-10)


def test_units_see_through_a_ceiling():
    rng = np.random.default_rng(0)
    truth = 3 + 2 * rng.standard_normal((20_000, 2))
    units = Units.of(observe(truth, np.array([3.0, 5.0]), np.ones(truth.shape, bool)), False)
    # The error of a mean of 20,000 is 0.014; half of a column clipped makes it some 2 times larger.
    assert_allclose(units.shift, 3, atol=0.08)
    assert_allclose(units.scale, 2, atol=0.08)


def test_equal_limits_are_counted_as_often_as_they_are_there():
    rng = np.random.default_rng(1)
    truth, limit = rng.standard_normal((300, 3)), rng.choice([-0.5, 0.3, 1.0], (300, 3))
    lower, upper = np.minimum(truth, limit), np.where(truth > limit, np.inf, truth)
    apart = np.where(truth > limit, 1e-9 * rng.random(truth.shape), 0.0)  # no two limits are equal
    one = Units.of(Intervals.from_bounds(lower, upper), shared=False)
    other = Units.of(Intervals.from_bounds(lower + apart, upper), shared=False)
    assert_allclose([other.shift, other.scale], [one.shift, one.scale], atol=1e-8)


def test_a_column_without_exact_cells_gets_the_unit_of_the_others():
    table = np.column_stack([np.arange(6.0), 10 * np.arange(6.0), np.full(6, 7.0)])
    units = Units.of(Intervals.from_table(table, ceiling=[np.inf, np.inf, 7.0]), shared=False)
    assert units.shift[2] == 7
    assert units.scale[2] == np.median(units.scale[:2])


def test_factors_that_are_not_needed_do_no_harm():
    rng = np.random.default_rng(0)
    truth = np.outer(rng.standard_normal(200), 1 + rng.random(12))
    table = truth + 0.5 * rng.standard_normal(truth.shape)
    hidden = rng.random(truth.shape) < 0.1
    cells = Intervals.from_table(np.where(hidden, np.nan, table))
    errors = []
    for rank in (1, 8):
        run = run_of(cells, 150, 100, model=Model(rank, "column"), max_kept=40)
        errors.append(np.sqrt(np.mean((run.posterior.block() - table)[hidden] ** 2)))
    assert errors[1] < 1.05 * errors[0]


def autoregression(rho, shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(rho):
    ess = effective_sample_size(autoregression(rho, (4, 4000, 20)))
    # n (1 - rho) / (1 + rho), its estimate within some 10 % in the mean of 20 series.
    assert_allclose(ess.mean(), 16_000 * (1 - rho) / (1 + rho), rtol=0.1)


def test_r_hat_is_near_one_for_chains_that_agree():
    assert split_r_hat(autoregression(0.5, (4, 2000, 50))).max() < 1.02


@pytest.mark.parametrize("apart", ["chains", "halves"])
def test_r_hat_is_large_for_chains_that_differ_or_drift(apart):
    x = autoregression(0.0, (2, 1000, 1))
    if apart == "chains":
        x[1] += 2
    else:
        x += np.linspace(0, 3, 1000)[:, None]
    assert split_r_hat(x)[0] > 1.2


def test_a_quantity_that_never_changes_has_converged():
    still = np.ones((2, 10, 1))
    assert split_r_hat(still)[0] == 1
    assert effective_sample_size(still)[0] == 20


LAWS = [NoiseDistribution(), NoiseDistribution(3.0), NoiseDistribution(30.0)]
BOUNDS = [
    (-np.inf, np.inf),
    (1.0, np.inf),
    (-np.inf, -6.0),
    (-1.0, 2.0),
    (5.0, 5.5),
    (-0.001, 0.001),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("a", "b"), BOUNDS)
def test_the_law_between_bounds_agrees_with_quadrature(law, a, b):
    density = noise_law(law).pdf
    nodes, weights = np.polynomial.legendre.leggauss(400)
    # Infinity becomes 1 by x = t / (1 - t^2), whose inverse is 2 x / (1 + hypot(1, 2 x)).
    low, high = (2 * v / (1 + np.hypot(1, 2 * v)) if np.isfinite(v) else np.sign(v) for v in (a, b))
    t = 0.5 * (low + high) + 0.5 * (high - low) * nodes
    x = t / (1 - t**2)
    mass = weights * density(x) * (1 + t**2) / (1 - t**2) ** 2
    middle = 0.5 * (max(a, -8) + min(b, 8))
    mean = law.mean_between(np.array([a]), np.array([b]))[0]
    assert_allclose(mean, (mass @ x) / mass.sum(), rtol=1e-3, atol=1e-6)
    share = law.share_between(np.array([a]), np.array([b]))(np.array([middle]))[0]
    assert_allclose(share, mass[x < middle].sum() / mass.sum(), atol=0.02)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_between_bounds_have_the_share_below(law):
    n = 4000
    ones = np.ones(n)
    z = law.draw_between(0 * ones, ones, 2 * ones, np.inf * ones, seed=0)
    share = law.share_between(2 * ones, np.inf * ones)(z)
    assert stats.kstest(share, "uniform").pvalue > 0.01


@pytest.mark.parametrize("noise", ["column", "global"])
def test_one_matrix_stands_for_the_posterior(noise):
    rng = np.random.default_rng(0)
    truth = 5 + rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8)) + rng.normal(size=(60, 1))
    cells = Intervals.from_table(truth + 0.05 * rng.standard_normal(truth.shape))
    run = sample_posterior(cells, Model(3, noise), Schedule(40, 40, chains=1, max_kept=40, seed=0))
    found = run.posterior.low_rank()
    # within two scales of the noise: ten samples stand for forty
    assert_allclose(found.block(), run.posterior.block(), atol=0.1)
