"""The certificate of exact recovery, beside what the least trace norm does recover."""

import numpy as np
import pytest
from tests.diagnostics import dense
from tests.helpers import low_rank

from declip import ExactCMC, recovery_certificate


def clipped(seed, observed, quantile):
    """Return a matrix of rank 1, what is seen of it, and the ceiling."""
    rng = np.random.default_rng(seed)
    M = low_rank(rng, (16, 18), 1)
    C = float(np.quantile(M, quantile))
    return M, np.where(rng.random(M.shape) < observed, np.minimum(M, C), np.nan), C


def distance(M, X, C):
    fit = ExactCMC(ceiling=C, tol=1e-6).fit(X)
    return np.linalg.norm(fit.reconstruct() - M) / np.linalg.norm(M)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("seed", "observed", "quantile", "recovered"),
    [(0, 0.95, 0.98, True), (1, 0.95, 0.98, True), (0, 0.5, 0.7, False), (1, 0.8, 0.8, True)],
)
def test_what_is_certified_is_what_the_least_trace_norm_recovers(
    seed, observed, quantile, recovered
):
    M, X, C = clipped(seed, observed, quantile)
    assert recovery_certificate(M, X, ceiling=C).certified == recovered
    assert (distance(M, X, C) < 1e-3) == recovered


@pytest.mark.parametrize("seed", range(3))
def test_its_figures_are_those_of_dense_matrices(seed):
    M, X, C = clipped(seed, 0.9, 0.9)
    proof = recovery_certificate(M, X, ceiling=C, rounds=0)  # the dual point of least squares
    U, V = dense.bases(M, 1)
    exact = X < C
    P = dense.projector(U, V)
    on_cells = P[:, exact.ravel()]
    Y = np.zeros(M.size)
    Y[exact.ravel()] = np.linalg.lstsq(on_cells, (U @ V.T).ravel(), rcond=1e-10)[0]
    off = (Y - P @ Y).reshape(M.shape)
    assert proof.margin == pytest.approx(dense.margin(U, V, exact), abs=1e-5)
    assert proof.norm == pytest.approx(np.linalg.norm(off, 2), rel=1e-5)
    assert proof.residual < 1e-8


def test_a_tie_may_carry_the_dual_point_and_a_cell_beyond_its_limit_not():
    M, X, C = clipped(0, 0.95, 0.9)
    ceiling = np.full(M.shape, C)
    seen_beyond = np.argwhere(C < M)
    seen_beyond = seen_beyond[~np.isnan(X[tuple(seen_beyond.T)])]
    tie = tuple(seen_beyond[0])
    assert recovery_certificate(M, X, ceiling=ceiling).n_ties == 0
    ceiling[tie] = X[tie] = M[tie]
    assert recovery_certificate(M, X, ceiling=ceiling).n_ties == 1


def test_an_open_direction_is_no_proof():
    M, X, C = clipped(0, 0.95, 0.9)
    X[3] = np.nan
    proof = recovery_certificate(M, X, ceiling=C)
    assert not proof.certified
    assert proof.slack == -np.inf
    assert "leave a direction open" in str(proof)


def test_a_matrix_that_is_not_that_of_the_table_is_refused_by_its_cell():
    M, X, C = clipped(0, 1.0, 0.9)
    M = M.copy()
    M[2, 4] = -50.0
    with pytest.raises(ValueError, match=r"truth does not agree.*row 2, column 4"):
        recovery_certificate(M, X, ceiling=C)
