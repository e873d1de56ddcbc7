"""Shares beyond a criterion: variances against what is known by calculation."""

import numpy as np
import pytest
from scipy import stats

from declip.inference.pooling import RubinSums
from declip.inference.shares import CellsAbove
from declip.inference.statistics import Statistic


def pooled_by(tables, settled=None, criterion=0.5):
    """Return the share of 0/1 tables by Rubin's rules, and as it is told."""
    n = tables.shape[1]
    sums, above = RubinSums(), CellsAbove(np.full(n, criterion), lambda x: np.array([x.mean()]))
    for table, twin in zip(tables, tables if settled is None else settled, strict=True):
        share = table.mean()
        sums.add(np.array(share), np.array(share * (1 - share) / n))
        above.add(np.array([table, twin]))
    found = sums.pooled(n - 1.0)
    return found, above.pooled(found, 0, np.arange(n))


def test_what_is_drawn_under_known_parameters_is_not_counted():
    # half of the cells lie below for certain, half above with probability .5: var(p_i) = 1/16
    rng, n = np.random.default_rng(0), 400
    p = np.repeat([0.0, 0.5], n // 2)
    rubin, told = pooled_by((rng.random((2000, n)) < p).astype(float))
    # 2,000 tables leave a standard error of 3 % in what is between them, of which a root is taken
    assert 0.95 / 16 / n < told.std_error**2 < 1.6 / 16 / n
    # .25 * .75 / n within, and .125 / n between
    assert rubin.std_error**2 == pytest.approx((0.1875 + 0.125) / n, rel=0.05)


def test_parameters_that_vary_count_as_going_with_the_cells():
    rng, n, m = np.random.default_rng(1), 400, 4000
    p = 0.5 + 0.02 * rng.standard_normal(m)
    tables = rng.random((m, n)) < np.where(np.arange(n) < n // 2, 0.0, p[:, None])
    rubin, told = pooled_by(tables.astype(float))
    of_cells, of_parameters = np.sqrt(1 / 16 / n), 0.5 * 0.02
    both = of_cells**2 + of_parameters**2 + 2 * 0.8 * of_cells * of_parameters
    assert told.std_error == pytest.approx(np.sqrt(both), rel=0.05)
    assert told.std_error < 0.8 * rubin.std_error


def test_a_shrinkage_that_varies_counts_without_going_with_the_cells():
    rng, n, m = np.random.default_rng(2), 400, 4000
    of_parameters, of_shrinkage = 0.02 * rng.standard_normal((2, m))
    u, beyond = rng.random((m, n)), np.arange(n) < n // 2
    p = 0.5 + np.array([of_parameters + of_shrinkage, of_parameters])
    tables, settled = (u < np.where(beyond, 0.0, line[:, None]) for line in p)
    told = pooled_by(tables.astype(float), settled.astype(float))[1]
    a, b = 1 / 16 / n, (0.5 * 0.02) ** 2
    assert told.std_error == pytest.approx(np.sqrt(a + 2 * b + 1.6 * np.sqrt(a * b)), rel=0.05)


def test_a_share_that_no_cell_tells_apart_has_an_interval():
    # all cells may lie above, by what the parameters say: nothing is due to the cells themselves
    rng, n, m = np.random.default_rng(3), 20, 50
    p = np.exp(-3 + rng.standard_normal(m))[:, None]
    rubin, told = pooled_by((rng.random((m, n)) < p).astype(float))
    assert told.std_error < rubin.std_error
    ends = Statistic("share_above", criterion=0.5).interval(told, np.array(n), 0.95)
    assert 0 < ends[1] < ends[0] < ends[2] < 1


def test_a_share_of_values_that_were_all_seen_is_as_it_was():
    seen = np.tile(np.arange(40) < 11, (5, 1)).astype(float)
    rubin, told = pooled_by(seen)
    assert told == rubin


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6])
def test_intervals_hold_the_share_beyond_a_criterion_in_what_a_limit_hides(share):
    # normal values above a ceiling, completed under draws of mean and spread from their asymptotic
    # distribution about the truth's: the estimate varies as a maximum likelihood fit does
    limit, criterion = stats.norm.isf(share), stats.norm.isf(share / 2)
    covariance = np.linalg.inv(information(limit, share))
    rng, n, held = np.random.default_rng(0), 400, []
    for _ in range(300):
        x = rng.standard_normal(n)
        seen, score = x[x < limit], np.zeros(2)
        score += np.array([seen.sum(), (seen**2 - 1).sum()])
        hazard = stats.norm.pdf(limit) / share
        score += (n - len(seen)) * hazard * np.array([1.0, limit])
        fit = np.array([0.0, 1.0]) + covariance @ score / n
        mu, sd = rng.multivariate_normal(fit, covariance / n, 50).T[:, :, None]
        tables, hidden = np.tile(x, (50, 1)), x >= limit
        u = rng.random((50, hidden.sum())) * stats.norm.sf((limit - mu) / sd)
        tables[:, hidden] = mu + sd * stats.norm.isf(u)
        told = pooled_by((tables > criterion).astype(float))[1]
        low, high = told.interval()
        held.append(low <= share / 2 <= high)
    # What lies between 50 tables is known to a fifth only, which costs up to two points; of 300
    # data sets two standard errors are 2.5 points
    assert 0.905 <= np.mean(held) <= 0.985


@pytest.mark.parametrize(("share", "known"), [(0.2, 0.80), (0.4, 0.78), (0.6, 0.71)])
def test_cells_and_parameters_go_together_as_far_as_is_told(share, known):
    # the covariance of a maximum likelihood fit with the share h that is hidden is that of the
    # gradient of h: the score of a hidden value has this mean over h
    limit, criterion = stats.norm.isf(share), stats.norm.isf(share / 2)
    beyond = {t: stats.norm.pdf(t) * np.array([1.0, t]) for t in (limit, criterion)}
    of_half = (beyond[criterion] - 0.5 * beyond[limit]) / share  # of P(criterion) / P(limit)
    covariance = np.linalg.inv(information(limit, share))
    a, b = 0.25 * share * (1 - share), share**2 * of_half @ covariance @ of_half
    together = 0.5 * share * of_half @ covariance @ beyond[limit]
    assert together / np.sqrt(a * b) == pytest.approx(known, abs=0.006)


def information(limit, share):
    """Return the information of a normal value above a ceiling on mean and spread."""
    x = np.linspace(-9, limit, 20001)
    score = np.array([x, x**2 - 1])
    exact = np.trapezoid(score[:, None] * score * stats.norm.pdf(x), x)
    hidden = stats.norm.pdf(limit) / share * np.array([1.0, limit])
    return exact + share * np.outer(hidden, hidden)
