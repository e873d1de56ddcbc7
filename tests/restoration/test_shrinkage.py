"""What hidden cells say of the shrinkage: recovered where it is known."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from declip.restoration.ends import ColumnEnds
from declip.restoration.predictive import CensoredMixture
from declip.restoration.shrinkage import HiddenCells, TailShrinkage

N_COLS = 3


def ends(bounded=False, skewness=0.0):
    """What is known of the ends of three columns."""
    lines = (np.broadcast_to(x, (2, N_COLS)) for x in (-np.inf, skewness, bounded))
    return ColumnEnds(*lines, np.array([1000, 1000, 10]))


NO_ENDS = ends()


def hidden(log_c, n=3000, seed=0, censored_beyond=np.inf):
    """Cells of three columns that are drawn in by c beyond a ceiling of 0.5."""
    rng = np.random.default_rng(seed)
    cols = rng.integers(N_COLS, size=n)
    y = rng.normal(size=4 * n)
    y = y[y > 0.5][:n]
    cols = cols[: len(y)]
    value = 0.5 + (y - 0.5) / np.exp(log_c)
    centre, spread = np.zeros((1, len(y))), np.ones((1, len(y)))
    lower, upper = np.full(len(y), 0.5), np.full(len(y), np.inf)
    reach = np.full((2, len(y)), -np.inf)
    mixture = CensoredMixture.of(lower, upper, reach, centre, spread)
    censored = value > censored_beyond
    value = np.minimum(value, censored_beyond)
    return HiddenCells(N_COLS + cols, mixture, value, censored)


def shrinkage(log_c, **more):
    return TailShrinkage.of([hidden(log_c, **more)], NO_ENDS)


def test_where_the_method_is_right_nothing_is_drawn_in():
    found = shrinkage(0.0)
    # 1,000 cells a column know log c to 0.03, and its spread is that small
    assert_allclose(found.mean[N_COLS:], 0, atol=0.02)
    assert (found.sd[N_COLS:] < 0.1).all()


def test_hidden_cells_say_in_which_direction_and_the_further_the_less_surely():
    found = [shrinkage(log_c) for log_c in (-0.3, 0.0, 0.5, 1.0)]
    means, sds = (np.array([getattr(f, n)[N_COLS] for f in found]) for n in ("mean", "sd"))
    assert (np.diff(means) > 0).all()
    # the real limit lies elsewhere, where log c is less by an unknown part of itself
    assert (abs(means[[0, 2, 3]]) < [0.3, 0.5, 1.0]).all()
    assert (np.diff(sds[1:]) > 0).all()
    assert (abs(means - [-0.3, 0, 0.5, 1.0]) < 1.5 * sds + 0.01).all()


def test_the_posterior_is_that_of_enumeration():
    # t ~ N(0, s^2), x_j ~ N(t, s^2), and about x_j, with 1.2 s, log c at two moved limits, where
    # hidden cells are seen, and at the real one
    tasks, grid = [hidden(0.5, n=60, seed=3), hidden(0.2, n=20, seed=4)], np.linspace(-1.6, 2.4, 26)
    at = [cells.log_likelihoods(N_COLS)[:, N_COLS:] for cells in tasks]
    likelihoods = [np.exp(logs - logs.max(axis=0)) for logs in at]

    def near(centre, sd):
        density = np.exp(-0.5 * ((grid - centre) / sd) ** 2)
        return density / density.sum()

    joint = np.zeros((26, N_COLS))  # of log c at the real limit and all that was seen
    for s in (0.05, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 2.8):
        about = [near(x, 1.2 * s) for x in grid]
        seen = np.prod([[u @ likelihood for u in about] for likelihood in likelihoods], axis=0)
        for t, p in zip(grid, near(0.0, s), strict=True):
            terms = near(t, s)[:, None] * seen
            whole = terms.sum(axis=0)
            others = [np.delete(whole, j).prod() for j in range(N_COLS)]
            joint += p * np.einsum("xu,xj->uj", about, terms) * others
    joint /= joint.sum(axis=0)
    found, mean = TailShrinkage.of(tasks, NO_ENDS), grid @ joint
    assert_allclose(found.mean[N_COLS:], mean, rtol=1e-6)
    variance = grid**2 @ joint - mean**2
    assert_allclose(found.variance[N_COLS:], variance, rtol=1e-6)
    assert_allclose(found.sd[N_COLS:], np.sqrt(0.7 * variance), rtol=1e-6)


def test_few_cells_of_a_column_ask_for_more_caution():
    found = TailShrinkage.of([hidden(0.3)], NO_ENDS)
    caution = ((found.cautious - found.mean) / found.variance).reshape(2, N_COLS)
    assert_allclose(caution[0], caution[1])
    assert_allclose(caution[0, 0], caution[0, 1])
    assert caution[0, 2] - caution[0, 0] > 0.3


def test_less_is_unknown_towards_the_end_of_a_column():
    free = TailShrinkage.of([hidden(0.3)], NO_ENDS)
    found = TailShrinkage.of([hidden(0.3)], ends([[True, False, False], [False, False, True]]))
    assert_allclose(found.variance, free.variance)
    ratio = (found.sd / free.sd).reshape(2, N_COLS)
    assert (ratio[[0, 1], [0, 2]] < 0.8).all()
    assert_allclose(ratio[[0, 0, 1, 1], [1, 2, 0, 1]], 1)


def test_intervals_reach_further_where_columns_are_skewed_outwards_and_values_do_not():
    free = TailShrinkage.of([hidden(0.3)], NO_ENDS)
    skewness = np.array([[1.0, -1.0, 9.0], [-1.0, 1.0, 2.0]])
    found = TailShrinkage.of([hidden(0.3)], ends(skewness=skewness))
    assert_allclose(found.mean, free.mean)
    longer = (free.centre - found.centre).reshape(2, N_COLS)
    assert_array_equal(longer[[0, 1], [1, 0]], 0)
    assert longer[0, 0] == longer[1, 1] > 0
    assert longer[0, 2] == longer[1, 2] == 2 * longer[0, 0]  # for a skewness of 2 at most
    bounded = TailShrinkage.of([hidden(0.3)], ends(True, skewness))
    assert_allclose(bounded.centre, free.mean)


def test_cells_at_a_moved_limit_say_that_the_tail_is_short():
    # a limit is put at a cell: counted from the real limit inwards that is an event of the tail, as
    # a failure at which an experiment stops; an exponential tail of rate c has log-likelihood
    # n log c - c sum(distances), which each cell at a distance of 0 raises by log c
    alone, tied = hidden(0.0, n=300), hidden(0.0, n=300)
    tied.value[:60] = tied.mixture.limit[:60]
    raised = tied.log_likelihood(0.5) - tied.log_likelihood(0.0)
    assert_allclose(raised[:60], 0.5, rtol=1e-9)
    means = [TailShrinkage.of([cells], NO_ENDS).mean[N_COLS:] for cells in (alone, tied)]
    assert (means[1] > means[0]).all()


def test_cells_known_by_a_bound_count_as_such():
    known, bounded = shrinkage(0.4), shrinkage(0.4, censored_beyond=0.9)
    assert_allclose(bounded.mean[N_COLS:], known.mean[N_COLS:], atol=0.08)


def test_without_evidence_the_shrinkage_is_none_and_uncertain():
    found = shrinkage(0.4)
    # no floor was hidden; the grid of log c ends sooner at its low end: flat, it has a mean of 0.4
    assert_allclose(found.mean[:N_COLS], 0.2, atol=0.2)
    assert (found.sd[:N_COLS] > 0.5).all()


def test_values_are_drawn_in_further_the_less_is_known():
    cells, n = hidden(0.0), 2 * N_COLS
    sure, unsure = (TailShrinkage(np.zeros(n), np.full(n, v), NO_ENDS) for v in (0.01, 0.25))
    means = [f.for_values(cells.mixture, cells.group).moments()[0] for f in (sure, unsure)]
    assert (means[1] < means[0]).all()


def test_draws_have_the_mean_and_spread_of_the_posterior():
    found, rng = shrinkage(0.5), np.random.default_rng(0)
    drawn = np.array([found.drawn(rng) for _ in range(4000)])
    # standard errors of sd / sqrt(4000), about 0.01
    assert_allclose(drawn.mean(axis=0), found.centre, atol=0.05)
    assert_allclose(drawn.std(axis=0), found.sd, atol=0.05)
