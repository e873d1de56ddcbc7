"""Cells that are missing for their values: the curve against integrals, and against its prior."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from tests.solvers.gibbs_prior import draw_prior

from declip import Intervals
from declip.solvers.gibbs import Model
from declip.solvers.gibbs.chain import Chain, Table
from declip.solvers.gibbs.detection import DetectionCurve, Predicted

CURVES = [(1.0, 0.3, 0.4, 0.1), (1.0, -2.0, 1.5, 0.0), (-1.0, 0.2, 0.05, 0.3), (0.0, 0.0, 1.0, 0.2)]


def integrals(sign, centre, width, lost, x, scale):
    """Return the probability of a missing cell, and mean and deviation of its value."""

    def missing(v):
        low = stats.norm.cdf((centre - sign * v) / width) if sign else 0.0
        return (lost + (1 - lost) * low) * stats.norm.pdf(v, x, scale)

    ends = x - 12 * scale, x + 12 * scale
    limit = sign * centre
    options = {"points": [limit] if ends[0] < limit < ends[1] else None, "limit": 400}
    mass, first, second = (
        integrate.quad(lambda v, k=k: v**k * missing(v), *ends, **options)[0] for k in range(3)
    )
    return mass, first / mass, np.sqrt(second / mass - (first / mass) ** 2)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(("x", "scale"), [(0.1, 0.5), (1.5, 0.7), (-1.0, 0.2)])
def test_missing_cells_have_the_moments_of_the_integral(curve, x, scale):
    sign, centre, width, lost = curve
    found = DetectionCurve(np.array([sign]), np.array([centre]), np.array([width]), lost)
    cell = Predicted(np.array([x]), np.array([scale]), np.array([0]))
    mass, mean, sd = integrals(*curve, x, scale)
    # quad is exact to about 1e-9; the deviation is a difference of squares
    assert_allclose(np.exp(found.log_missing(cell)), mass, rtol=1e-6)
    assert_allclose([found.moments(cell)[0][0], found.moments(cell)[1][0]], [mean, sd], rtol=1e-5)
    many = Predicted(np.full(40_000, x), np.full(40_000, scale), np.zeros(40_000, np.int32))
    drawn = found.draw(many, np.random.default_rng(0))
    # four standard errors of a mean and of a deviation of 40,000 draws
    assert abs(drawn.mean() - mean) < 4 * sd / 200
    assert abs(drawn.std() - sd) < 4 * sd / 200


def draw_table(model, shape, rng):
    """Draw a table from the prior, its curve, and what is seen; tables with empty lines are not."""
    while True:
        x, scale, _ = (a[0] for a in draw_prior(model, shape, 1, rng))
        trend, variance = 2 * rng.standard_normal(), 0.3 / rng.gamma(2)
        log_width, spread = np.log(0.3) + rng.standard_normal(), 0.2 / rng.gamma(5)
        centre = trend + np.sqrt(variance) * rng.standard_normal(shape[1])
        width = np.exp(log_width + np.sqrt(spread) * rng.standard_normal(shape[1]))
        lost, truth = rng.beta(1, 9), x + scale * rng.standard_normal(shape)
        seen = truth + width * rng.standard_normal(shape) > centre
        seen &= rng.random(shape) >= lost
        share = seen.mean(axis=0)
        # what is rejected depends on the table alone, which leaves ranks uniform
        if seen.any(axis=1).all() and share.min() > 0.2 and share.max() < 0.9:
            told = [centre[0], np.log(width[0]), log_width, lost, x[0, 0], np.log(scale[0, 1])]
            return np.where(seen, truth, np.nan), np.array(told)


def told_by(chain):
    curve, x = chain.detection.curve, chain.factors.block()
    scale = -0.5 * np.log(chain.scales.cols[1])
    pooled = chain.detection.pool.log_width
    return [curve.centre[0], np.log(curve.width[0]), pooled, curve.lost, x[0, 0], scale]


@pytest.mark.slow
def test_ranks_of_the_curve_among_its_samples_are_uniform():
    # Simulation-based calibration: 60 tables, ranks 0 to 24 among thinned samples, in 5 bins
    model, rng, ranks = Model(1, "column", missing=(1, 1, 1)), np.random.default_rng(3), []
    for case in range(60):
        table, truth = draw_table(model, (40, 3), rng)
        shown = Table.of(Intervals.from_table(table), model)
        chain = Chain.start(shown, model, np.random.SeedSequence(case))
        trace = []
        for sweep in range(400 + 24 * 25):
            chain.sweep(shown, threads=1)
            if sweep >= 400 and sweep % 25 == 0:
                trace.append(told_by(chain))
        ranks.append((np.array(trace) < truth).sum(axis=0))
    counts = np.array([np.bincount(r // 5, minlength=5) for r in np.transpose(ranks)])
    p = stats.chisquare(counts, axis=1).pvalue
    # Six quantities: the smallest of six uniform p-values is below 0.0017 once in a hundred.
    assert p.min() > 0.0017, (p, counts)
