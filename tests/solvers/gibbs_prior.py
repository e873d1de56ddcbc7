"""The prior of the Gibbs sampler written a second time, to simulate from and for brute force."""

import numpy as np
from scipy import stats

from declip import Intervals
from declip.lowrank import LowRank
from declip.solvers.gibbs.chain import Chain, Table
from declip.solvers.gibbs.priors import NoiseScales


def draw_prior(model, shape, size, rng, near=False):
    """Draw ``size`` times from the prior: x and noise scale of every cell, (size, n, m) each.

    With ``near``, offsets of "column" are drawn from N(0, 9) instead of N(0, 100), and the log of
    the prior over that density comes with them.
    """
    (n, m), k = shape, model.rank
    log_ratio = np.zeros(size)
    if model.noise == "column":
        tau = rng.gamma(2, k / 2, (size, 1, k))
        P = rng.standard_normal((size, n, k))
        Q = rng.standard_normal((size, m, k)) / np.sqrt(tau)
        b, c = np.zeros((size, n, 1)), (3 if near else 10) * rng.standard_normal((size, 1, m))
        if near:
            log_ratio = (c**2 / 18 - c**2 / 200).sum(axis=(1, 2))
        scale = np.ones((size, n, 1)) / np.sqrt(rng.gamma(1, 10, (size, 1, m)))
    else:
        A, B = (_normal_wishart_rows(size, rows, k + 1, rng) for rows in (n, m))
        P, Q, b, c = A[..., :k], B[..., :k], A[..., k:], B[..., k:].transpose(0, 2, 1)
        if model.noise == "global":
            scale = 1 / np.sqrt(rng.gamma(1, 10, (size, 1, 1)) * np.ones((1, n, m)))
        else:
            level = rng.exponential(1, (size, 1, 1))
            rows, cols = rng.gamma(5, 1 / 5, (size, n, 1)), rng.gamma(5, 1 / 5, (size, 1, m))
            scale = np.sqrt(level / (rows * cols))
    return P @ Q.transpose(0, 2, 1) + b + c, scale, log_ratio


def _normal_wishart_rows(size, n, d, rng):
    """Draw n rows of N(mu, L^-1), L ~ W(I, d) and mu ~ N(0, L^-1), for each of ``size`` cases."""
    G = rng.standard_normal((size, d, d))  # L = G G^T has d degrees of freedom
    spread = np.linalg.inv(G).transpose(0, 2, 1)  # spread spread^T = L^-1
    mu = rng.standard_normal((size, 1, d))
    return (rng.standard_normal((size, n, d)) + mu) @ spread.transpose(0, 2, 1)


def draw_state(model, shape, rng):
    """Draw factors, noise scales, weights and a table of true values from the prior."""
    (n, m), k = shape, model.rank
    if model.noise == "column":
        A, B = np.zeros((n, k + 1)), 10 * rng.standard_normal((m, k + 1))
        A[:, :k] = rng.standard_normal((n, k))
        B[:, :k] = rng.standard_normal((m, k)) / np.sqrt(rng.gamma(2, k / 2, k))
    else:
        A, B = (_normal_wishart_rows(1, rows, k + 1, rng)[0] for rows in (n, m))
    rows, cols, level = np.ones(n), rng.gamma(1, 10, m), 1.0
    if model.noise == "global":
        cols[:] = cols[0]
    elif model.noise == "row+column":
        level = rng.exponential()
        rows, cols = rng.gamma(5, 1 / 5, n), rng.gamma(5, 1 / (5 * level), m)
    weight = rng.gamma(model.df / 2, 2 / model.df, shape) if model.df else np.ones(shape)
    factors = LowRank(A, B, bias=True)
    truth = factors.block() + rng.standard_normal(shape) / np.sqrt(np.outer(rows, cols) * weight)
    return factors, NoiseScales(model.noise, rows, cols, level), weight, truth


def chain_at(table, model, drawn, rng):
    """Return a chain that stands at what was drawn from the prior."""
    factors, scales, weight, truth = drawn
    side = table.cells.by_row
    exact, censored = (side.exact_rows(), side.exact_idx), (side.censored_rows(), side.censored_idx)
    chain = Chain.start(table, model, np.random.SeedSequence(int(rng.integers(2**31))))
    chain.factors, chain.scales = factors, scales
    chain.z = truth[censored]
    if model.df:
        chain.weights = weight[exact], weight[censored]
    return chain


def draw_chain(model, shape, ceiling, seen, rng):
    """Draw parameters and a table from the prior; return it with a chain that stands at them."""
    drawn = draw_state(model, shape, rng)
    table = Table(observe(drawn[-1], ceiling, seen))
    return table, chain_at(table, model, drawn, rng)


def noise_law(model):
    return stats.t(model.df) if model.df else stats.norm()


def observe(truth, ceiling, seen):
    return Intervals.from_table(np.where(seen, np.minimum(truth, ceiling), np.nan), ceiling=ceiling)


def weighted_answers(model, table, ceiling, ask, size, rng):
    """Return posterior means of ``ask(x, scale)`` by weighting draws from the prior, with errors.

    ``table`` has NaN where nothing was seen; cells at the ceiling are at least that.
    """
    law = noise_law(model)
    totals, batches = [], 20
    for _ in range(batches):
        x, scale, log_ratio = draw_prior(model, table.shape, size // batches, rng, near=True)
        standard = (table - x) / scale
        exact = table < ceiling
        log_weight = np.where(exact, law.logpdf(standard) - np.log(scale), 0.0)
        log_weight += np.where(table == ceiling, law.logsf(standard), 0.0)
        weight = np.exp(log_ratio + log_weight.sum(axis=(1, 2)))
        answers = ask(x, scale)
        totals.append(np.concatenate([[weight.sum()], weight @ answers]))
    totals = np.array(totals)
    mean = totals[:, 1:].sum(axis=0) / totals[:, 0].sum()
    # The error of a ratio of sums, from its batches.
    residuals = totals[:, 1:] - mean * totals[:, :1]
    error = np.sqrt(batches) * residuals.std(axis=0, ddof=1) / totals[:, 0].sum()
    return mean, error
