"""Large tables: columns are learnt from some rows, all rows restored under them."""

import numpy as np
import pytest

import declip
from declip import Intervals
from declip.restoration import cells, model, sampling
from declip.restoration.settings import Settings


def table(n=3000, m=6, seed=0):
    """Return a table of two factors, and the same with a ceiling and missing cells."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m)) + 0.4 * rng.normal(size=(n, m))
    seen = np.minimum(truth, 0.8)
    seen[rng.random(truth.shape) < 0.05] = np.nan
    return truth, seen


@pytest.fixture(scope="module")
def few_rows():
    """Take a table of 3,000 rows for a large one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "_CELLS", 10_000)
        patch.setattr(sampling, "_ROWS", 500)
        patch.setattr(model, "_LARGE", 1000)
        patch.setattr(cells, "_BLOCK", 777)
        yield


@pytest.fixture(scope="module")
def both(few_rows):
    truth, seen = table()
    r = declip.restore(seen, ceiling=0.8, effort="quick", progress=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "_CELLS", 10**9)
        patch.setattr(model, "_LARGE", 10**9)
        whole = declip.restore(seen, ceiling=0.8, effort="quick", progress=False)
    return truth, seen, r, whole


def test_some_rows_are_told_of(both):
    _, _, r, whole = both
    assert any("drawn at random; all were restored" in line for line in r.warnings)
    assert not any("drawn at random" in line for line in whole.warnings)


def test_it_is_as_good_as_by_all_rows(both):
    truth, seen, r, whole = both
    clipped, missing = seen >= 0.8, np.isnan(seen)
    for part in (clipped, missing):
        one, all_rows = (np.sqrt(np.mean((x.table - truth)[part] ** 2)) for x in (r, whole))
        # 700 rows instead of 3,000, and 12 draws of the posterior instead of 32
        assert one < 1.06 * all_rows
        held = ((r.lower <= truth) & (truth <= r.upper))[part].mean()
        # the standard error of 700 missing cells, which rows share, is somewhat above .011
        assert held == pytest.approx(0.9, abs=0.04)
    assert r.expected_gain == pytest.approx(whole.expected_gain, abs=0.05)


def test_exact_cells_and_flags_are_those_of_the_table(both):
    _, seen, r, whole = both
    exact = seen < 0.8
    np.testing.assert_array_equal(r.table[exact], seen[exact])
    np.testing.assert_array_equal(r.flags, whole.flags)
    assert r.counts == whole.counts


def test_hidden_cells_have_their_rows_in_the_whole_table(both):
    _, seen, r, _ = both
    for trial in r.reclip.trials:
        known = ~trial.cells.censored
        at = trial.cells.rows[known], trial.cells.cols[known]
        np.testing.assert_allclose(seen[at], trial.cells.value[known])


def test_rows_are_drawn_apart_so_that_means_are_not_too_uncertain(both):
    # with the same random numbers in every row the mean of a column would vary as one cell does
    truth, _, r, whole = both
    widths = [
        np.array(x.summary(["mean"], n=20).as_columns()["upper"])
        - np.array(x.summary(["mean"], n=20).as_columns()["lower"])
        for x in (r, whole)
    ]
    # columns are known from a sixth of the rows: at most sqrt(6) times what censoring adds
    assert np.all(widths[0] < 2 * widths[1])
    assert np.all(widths[0] > 0.9 * 3.9 * truth.std(axis=0) / np.sqrt(len(truth)))


def test_small_tables_are_learnt_from_all_rows():
    assert sampling.rows_to_learn_from(Intervals.from_table(table(300)[0]), Settings()) is None


def test_rows_are_the_same_each_time_and_have_cells_of_rare_columns(few_rows):
    seen = table(9000)[1]
    seen[40:, 2] = np.nan  # 40 cells, of which few would be among the rows
    seen[:40, 2] = np.arange(40)
    cells_of = Intervals.from_table(seen)
    rows = sampling.rows_to_learn_from(cells_of, Settings())
    np.testing.assert_array_equal(rows, sampling.rows_to_learn_from(cells_of, Settings()))
    assert len(rows) < 4500
    assert np.all(np.diff(rows) > 0)
    assert {*range(40)} <= {*rows.tolist()}
    other = sampling.rows_to_learn_from(cells_of, Settings(random_state=1))
    assert not np.array_equal(rows, other)


def test_more_effort_learns_from_more_rows(few_rows):
    seen = Intervals.from_table(table(9000)[1])
    one, more = (sampling.rows_to_learn_from(seen, Settings(effort=e)) for e in (1.0, 2.0))
    assert len(more) == pytest.approx(2 * len(one), abs=2)
