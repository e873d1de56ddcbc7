import numpy as np
import pytest
from tests.diagnostics import dense
from tests.helpers import low_rank

from declip import FroCMC, Intervals, diagnose
from declip.diagnostics.determination import determine, weakest
from declip.lowrank import LowRank

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def noiseless(seed):
    """Return truth, clipped table, ceiling and rank of a random case; clip rates from 5 to 75 %."""
    rng = np.random.default_rng(seed)
    n1, n2 = rng.integers(40, 70, 2)
    r = int(rng.integers(2, 5))
    M = low_rank(rng, (n1, n2), r)
    C = np.quantile(M, 1 - rng.uniform(0.05, 0.75))
    X = np.minimum(M, C)
    X[rng.random(X.shape) < rng.uniform(0, 0.4)] = np.nan
    return M, X, C, r


def margin_and_error(seed):
    M, X, C, r = noiseless(seed)
    model = FroCMC(
        r, ceiling=C, random_state=0, warm_start=True, max_iter=2000, tol=1e-9, scale="none"
    )
    for alpha in (1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4):
        model.set_params(alpha=alpha).fit(X)
    error = np.linalg.norm(model.reconstruct() - M) / np.linalg.norm(M)
    return diagnose(model, X).fit.determination.margin.best, error


def predicted_rightly(margin, error):
    # at alpha = 1e-4 the ridge alone costs a few 1e-4 of the norm of a recovered matrix
    recovered = error < 2e-3
    return recovered if margin > 1e-3 else not recovered if margin <= 1e-6 else False


# 97 is the first of a zero margin, the others are of every kind
@pytest.mark.parametrize("seed", [0, 1, 2, 95, 97])
def test_margin_predicts_recovery(seed):
    assert predicted_rightly(*margin_and_error(seed))


@pytest.mark.slow
def test_margin_predicts_recovery_in_95_of_100_cases():
    assert sum(predicted_rightly(*margin_and_error(seed)) for seed in range(100)) >= 95


def table_with(mask, seed=0, r=2):
    rng = np.random.default_rng(seed)
    P, Q = (rng.standard_normal((n, r)) for n in mask.shape)
    return Intervals.from_table(np.where(mask, P @ Q.T, np.nan)), LowRank(P, Q)


def test_margin_and_eigenvalues_equal_the_dense_computation():
    mask = np.random.default_rng(1).random((20, 16)) < 0.6
    intervals, model = table_with(mask)
    found = determine(intervals, model)
    U, V = dense.bases(model.block(), 2)
    assert found.margin.value == pytest.approx(dense.margin(U, V, mask), abs=1e-6)
    assert found.margin.low <= found.margin.value <= found.margin.high
    for values, F, seen in (
        (found.row_eigenvalues, V, mask),
        (found.col_eigenvalues, U, mask.T),
    ):
        expected = [np.linalg.eigvalsh((F * s[:, None]).T @ F)[0] for s in seen]
        np.testing.assert_allclose(values, expected, atol=1e-12)


def test_rows_with_fewer_exact_cells_than_factors_are_not_determined():
    mask = np.ones((12, 10), bool)
    mask[3, 1:] = mask[7] = False  # one cell, none
    mask[2:, 5] = False  # two cells, as many as factors
    found = determine(*table_with(mask))
    assert np.flatnonzero(~found.rows).tolist() == [3, 7]
    assert found.cols.all()
    assert found.margin.value == 0
    assert found.margin_determined.value > 0


def test_a_column_that_hangs_on_undetermined_rows_is_not_determined():
    mask = np.ones((12, 10), bool)
    mask[:3, 2:] = False
    mask[:3, 0] = False  # rows 0 to 2 have one cell, in column 1
    mask[3:, 1] = False  # column 1 has its cells there only
    found = determine(*table_with(mask))
    assert np.flatnonzero(~found.rows).tolist() == [0, 1, 2]
    assert np.flatnonzero(~found.cols).tolist() == [1]


def test_nothing_is_determined_if_every_row_has_too_few_cells():
    found = determine(*table_with(np.eye(8, dtype=bool)))
    assert not found.rows.any()
    assert not found.cols.any()
    assert found.margin_determined.value == 0


def test_the_zero_matrix_determines_nothing():
    intervals, _ = table_with(np.ones((5, 4), bool))
    found = determine(intervals, LowRank.zero((5, 4)))
    assert found.rank == 0
    assert not found.rows.any()


def test_long_rows_need_a_tenth_of_an_average_cell():
    assert weakest(50) == weakest(100) == 1e-3
    assert weakest(10_000) == 1e-5
