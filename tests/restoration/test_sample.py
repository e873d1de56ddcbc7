"""Imputations: what is fixed, what is drawn, and that tables differ by as much as is unknown."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import declip
from declip import restore

METHODS = ("normal", "column", "bayes", "tobit", "trace")


def table(n=80, p=4, share=0.7, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, p))
    ceiling = np.quantile(truth, share, axis=0)
    X = np.minimum(truth, ceiling)
    X[rng.random(X.shape) < 0.05] = np.nan
    return truth, X, ceiling


@pytest.fixture(scope="module")
def clipped():
    return table()


@pytest.fixture(scope="module", params=METHODS)
def drawn(request, clipped):
    """A restoration by one method, and tables drawn from it."""
    r = restore(clipped[1], clipped[2], method=request.param, effort="quick")
    return r, np.array(r.sample(12))


def test_exact_cells_are_fixed_and_others_vary(clipped, drawn):
    _, X, ceiling = clipped
    tables = drawn[1]
    exact = X < ceiling
    assert_array_equal(tables[:, exact], np.broadcast_to(X[exact], (12, exact.sum())))
    assert (tables[:, ~exact].std(axis=0) > 0).all()


def test_clipped_cells_are_drawn_beyond_their_limits(clipped, drawn):
    _, X, ceiling = clipped
    rows, cols = np.nonzero(X == ceiling)
    assert (drawn[1][:, rows, cols] >= ceiling[cols]).all()


def test_the_same_seed_gives_the_same_tables(drawn):
    r, tables = drawn
    assert_array_equal(tables, r.sample(12))
    assert not np.array_equal(tables[0], r.sample(1, random_state=7)[0], equal_nan=True)


def test_settled_tables_are_those_of_a_shrinkage_that_is_known(clipped, drawn):
    r = drawn[0]
    pairs = np.array(list(r.imputation.draws(12, settled=True)))
    assert_array_equal(pairs[:, 0], list(r.imputation.tables(12)))
    known = [
        replace(m, shrinkage=replace(m.shrinkage, variance=0 * m.shrinkage.variance))
        for m in r.imputation.model.methods
    ]
    model = replace(r.imputation.model, methods=known)
    assert_array_equal(pairs[:, 1], list(replace(r.imputation, model=model).tables(12)))


def test_the_model_is_drawn_once_for_a_table(clipped):
    # If cells were independent, the mean of the n clipped cells of a column would vary by their
    # standard deviation over the root of n. What is unknown of the column comes on top of it.
    _, X, ceiling = clipped
    r = restore(X, ceiling, method="column", effort="quick")
    tables, ratios = np.array(r.sample(60)), []
    for j in range(4):
        cells = tables[:, X[:, j] == ceiling[j], j]
        alone = np.sqrt(cells.var(axis=0, ddof=1).sum()) / cells.shape[1]
        ratios.append(cells.mean(axis=1).std(ddof=1) / alone)
    # of independent cells the ratio is 1; over 60 tables and 4 columns it is known to 0.05
    assert np.mean(ratios) > 1.2


def test_columns_that_are_clipped_together_stay_correlated():
    # one draw for each cell would halve the correlation of cells that are both unknown
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(300, 1)) + 0.4 * rng.normal(size=(300, 3))
    r = restore(np.minimum(truth, 0.3), 0.3, method="normal", effort="quick")
    hidden = (truth[:, 0] > 0.3) & (truth[:, 1] > 0.3)
    found = [np.corrcoef(t[hidden, :2].T)[0, 1] for t in r.sample(10)]
    assert np.mean(found) == pytest.approx(np.corrcoef(truth[hidden, :2].T)[0, 1], abs=0.12)


def test_a_method_that_knows_no_relations_does_not_weaken_them():
    # two columns alone, two that go together: taking each alone is right for half of the cells
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 4))
    z[:, 3] += z[:, 0]
    r = restore(np.minimum(z, [0, 0, 0, 9]), [0, 0, 0, 9], scale="columns", effort="quick")
    assert r.chosen["weights"]["column"] > 0.15  # by which slopes would lose a fifth of that
    drawn = [m.method for m in r.imputation.model.methods]
    assert drawn == [name for name in r.chosen["weights"] if name != "column"]
    assert restore(np.minimum(z, 0), 0, method="column").imputation.model.methods


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_come_back_with_their_labels(kind, clipped):
    _, X, ceiling = clipped
    names = list("abcd")
    r = restore(kind(dict(zip(names, X.T, strict=True))), list(ceiling), method="column")
    first = r.sample(2)[0]
    assert type(first) is kind
    assert list(first.columns) == names


def test_a_sparse_table_has_the_stored_cells_alone(clipped):
    X = clipped[1]
    stored = sparse.csr_array(np.where(np.isnan(X), 0.0, X))
    r = restore(stored, float(np.nanmax(X)), method="column")
    drawn = r.sample(2)[0]
    assert_array_equal(drawn.indices, r.table.indices)


def test_logs_bounds_and_rows_are_those_of_the_restoration():
    rng = np.random.default_rng(0)
    truth = np.exp(rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, 4)))
    seen = np.maximum(truth, 0.8)
    r = restore(seen, floor=0.8, log=True, between=(0.1, None), method="normal", effort="quick")
    below = np.array(r.sample(8))[:, seen == 0.8]
    assert below.min() >= 0.1
    assert below.max() <= 0.8
    turned = restore(seen.T, floor=0.8, log=True, scale="rows", method="normal", effort="quick")
    cells = np.array(turned.sample(3))[:, seen.T == 0.8]
    assert cells.min() > 0
    assert cells.max() <= 0.8


def test_what_nothing_determines_stays_unless_a_guess_is_asked_for():
    X = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [2.5, np.nan]] * 5)
    kept = restore(X, ceiling=5, method="column").sample(2)[0]
    assert_array_equal(kept[:, 1], X[:, 1])
    guessed = restore(X, ceiling=5, method="column", fill="all").sample(2)[0]
    assert (guessed[X[:, 1] == 5, 1] > 5).all()


def test_a_saved_restoration_draws_the_same(tmp_path, drawn):
    r, tables = drawn
    twin = declip.load(r.save(tmp_path / "r.npz"))
    assert_array_equal(np.array(twin.sample(12)), tables)


def test_bad_numbers_of_tables_are_refused(drawn):
    with pytest.raises(ValueError, match="n must be a whole number of tables from 1 on; got 0"):
        drawn[0].sample(0)
