from math import ceil, exp, log, log2, sqrt

import numpy as np
import pytest
from tests.diagnostics import dense
from tests.helpers import low_rank

from declip import diagnose
from declip.diagnostics.tangent import Tangent
from declip.diagnostics.theory import (
    Conditions,
    Range,
    Theory,
    coherence,
    failure_bound,
    golfing_steps,
    hidden_cells,
    order_of_p,
    paper_constant,
    rho_inf_above,
    smallest_p,
)
from declip.solvers import Limits


class Block:
    def __init__(self, M):
        self.M, self.shape = M, M.shape

    def block(self, rows):
        return self.M[rows]


def case(seed, smallest=12, largest=20, ranks=(2, 5)):
    """Return a matrix with floors, limits that vary by cell, and (every other time) ties."""
    rng = np.random.default_rng(seed)
    n1, n2 = rng.integers(smallest, largest, 2)
    r = int(rng.integers(*ranks))
    M = low_rank(rng, (n1, n2), r)
    ceiling = np.quantile(M, rng.uniform(0.7, 0.95)) + 0.2 * rng.standard_normal(M.shape)
    floor = np.full(M.shape, -np.inf)
    if seed % 3:
        floor = np.minimum(np.quantile(M, 0.1) + 0.2 * rng.standard_normal(M.shape), ceiling - 0.1)
    if seed % 2:
        for limit in (ceiling, floor) if seed % 3 else (ceiling,):
            cells = rng.choice(M.size, 3, replace=False)
            inside = cells[((M < ceiling) & (M > floor)).ravel()[cells]]
            limit.flat[inside] = M.flat[inside]
    U, V = dense.bases(M, r)
    return rng, M, Tangent(U, V), Limits(floor, ceiling)


def kinds(M, limits):
    beyond = (M > limits.ceiling) | (M < limits.floor)
    return beyond, limits.ceiling == M, limits.floor == M


@pytest.mark.parametrize("seed", range(50))
def test_nu_by_lanczos_equals_the_dense_computation(seed):
    _, M, tangent, limits = case(seed)
    hidden = hidden_cells(Block(M), limits)
    mask = ~((limits.floor < M) & (limits.ceiling > M))
    np.testing.assert_array_equal(hidden.cells.toarray(), mask)
    assert hidden.tie.sum() == (kinds(M, limits)[1] | kinds(M, limits)[2]).sum()
    assert tangent.n_coordinates > 40  # beyond what is done densely
    theory = Theory.of(tangent, hidden, 1.0, "truth")
    assert theory.nu_B == pytest.approx(dense.importance(tangent.U, tangent.V, mask), abs=1e-10)
    assert theory.nu_bounds.low - 1e-12 <= theory.nu_B <= theory.nu_bounds.high + 1e-12
    assert theory.rho_F.low <= theory.rho_F.high == theory.nu_B
    assert theory.rho_F.low == theory.rho_F.high or hidden.tie.any()


@pytest.mark.parametrize("seed", range(8))
def test_rho_inf_lies_in_its_interval_by_linear_programming(seed):
    rng = np.random.default_rng(seed)
    M = low_rank(rng, (4, 5), 1)
    U, V = dense.bases(M, 1)
    ceiling, floor = np.full(M.shape, np.quantile(M, 0.8)), np.full(M.shape, -np.inf)
    if seed % 2:
        floor[:] = np.quantile(M, 0.1)
        limit = ceiling if seed % 4 == 1 else floor
        inside = np.flatnonzero((M < ceiling) & (M > floor))[:2]
        limit.flat[inside] = M.flat[inside]
    limits = Limits(floor, ceiling)
    theory = Theory.of(Tangent(U, V), hidden_cells(Block(M), limits), 1.0, "truth")
    exact = dense.rho_inf(U, V, *kinds(M, limits))
    assert theory.rho_inf.low - 1e-9 <= exact <= theory.rho_inf.high + 1e-9


@pytest.mark.parametrize("norm", ["fro", 2])
@pytest.mark.parametrize("seed", range(6))
def test_rho_is_never_found_above_its_interval_and_reaches_its_lower_end(seed, norm):
    rng, M, tangent, limits = case(seed, 4, 6, (1, 3))
    theory = Theory.of(tangent, hidden_cells(Block(M), limits), 1.0, "truth")
    r, (_, mu_1) = tangent.U.shape[1], coherence(tangent)
    interval = theory.rho_F if norm == "fro" else theory.rho_op
    weight = 1.0 if norm == "fro" else sqrt(r) * mu_1
    found = weight * dense.best_gain(tangent.U, tangent.V, kinds(M, limits), norm, rng)
    assert found <= interval.high + 1e-9
    if norm == "fro":  # the climb reaches the supremum to a few per cent
        assert found >= 0.93 * interval.low


def test_lower_end_of_rho_op_is_reached_by_a_matrix_of_one_row():
    _, M, tangent, limits = case(4)
    theory = Theory.of(tangent, hidden_cells(Block(M), limits), 1.0, "truth")
    mask = kinds(M, limits)[0]
    gains = []
    for B, S in ((tangent.V, mask), (tangent.U, mask.T)):
        for hidden in S:
            vector = np.linalg.eigh((B * hidden[:, None]).T @ B)[1][:, -1]
            gains.append(np.linalg.norm((B @ vector) * hidden))
    expected = sqrt(tangent.U.shape[1]) * theory.mu_1 * max(gains)
    assert theory.rho_op.low == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_upper_end_of_rho_inf_equals_the_dense_sum(seed):
    _, M, tangent, limits = case(seed)
    hidden = hidden_cells(Block(M), limits)
    P = np.abs(dense.projector(tangent.U, tangent.V))
    expected = (P @ hidden.cells.toarray().ravel()).max()
    assert rho_inf_above(tangent, hidden.cells) == pytest.approx(expected, rel=1e-12)


def test_coherence_is_that_of_the_definition():
    _, M, tangent, _ = case(0)
    (n1, n2), r = M.shape, tangent.U.shape[1]
    rows = [
        n1 / r * max(np.sum(u**2) for u in tangent.U),
        n2 / r * max(np.sum(v**2) for v in tangent.V),
    ]
    mu_0, mu_1 = coherence(tangent)
    assert mu_0 == pytest.approx(max(rows))
    assert mu_1 == pytest.approx(sqrt(n1 * n2 / r) * np.abs(tangent.U @ tangent.V.T).max())


def test_closed_forms_are_those_of_the_paper_with_the_errata():
    n1, n2, r, mu_0, mu_1, beta = 300, 200, 4, 1.7, 2.3, 3.0
    k_0 = ceil(log2(2 * sqrt(2) * sqrt(n1 * n2 * r)))
    rho = {"nu_B": 0.1, "rho_F": 0.2, "rho_inf": 0.3, "rho_op": 0.05}
    at = Conditions(**{name: Range(value, value) for name, value in rho.items()})
    p = smallest_p((n1, n2), r, (mu_0, mu_1), beta, at)
    pooled = (n1 + n2) * log(n1 * n2) / (n1 * n2)
    expected = {
        "F": 8 * k_0 * mu_0 * beta * r / (0.5 - 0.2) ** 2 * pooled,
        "op1": 8 * k_0 * beta / (3 * (0.25 - 0.05) ** 2) * log(n1 + n2) / n1,
        # errata, 4: the product stands above, n1 n2 below the bar
        "op2": 8 * k_0 * beta * r * mu_1**2 / (3 * 0.2**2) * n1 * log(n1 + n2) / (n1 * n2),
        "inf": 8 * k_0 * mu_0 * r * beta / (3 * (0.5 - 0.3) ** 2) * pooled,
        "main": 8 * beta * r * mu_0 / (3 * (0.5 - 0.1) ** 2) * pooled,
    }
    assert p.keys() == expected.keys()
    for name, value in expected.items():
        assert p[name].low == p[name].high == pytest.approx(value, rel=1e-12)
    c = max(24 / 0.3**2, 8 / 0.2**2, 8 / 0.2**2, 8 / 0.4**2)
    assert paper_constant(at).high == pytest.approx(c)
    assert golfing_steps((n1, n2), r) == k_0


@pytest.mark.parametrize("beta", [2.0, 3.0, 5.0])
def test_the_short_form_of_theorem_1_asks_for_no_less_than_the_five_bounds(beta):
    for seed in range(5):
        _, M, tangent, limits = case(seed, 30, 60)
        theory = Theory.of(tangent, hidden_cells(Block(M), limits), 1.0, "truth", beta)
        none = Range(0.0, 0.1)
        at = Conditions(none, none, none, none)
        p = smallest_p(M.shape, theory.rank, (theory.mu_0, theory.mu_1), beta, at)
        simple = max(theory.mu_1**2, theory.mu_0) * theory.rank * order_of_p(M.shape, theory.rank)
        for end in (0, 1):
            largest = max(bound[end] for bound in p.values())
            assert paper_constant(at, beta)[end] * simple >= largest
        assert theory.p_simple.low == pytest.approx(theory.c_rho.low * simple)


def test_beta_is_an_argument_and_has_to_exceed_what_the_lemmas_want():
    M = low_rank(np.random.default_rng(0), (12, 10), 2)
    small, large = (
        diagnose(M, ceiling=M.max() + 1, expert=True, truth=M, beta=beta).theory
        for beta in (2.0, 4.0)
    )
    assert small.p_min["F"].low == pytest.approx(large.p_min["F"].low / 2)
    assert small.delta > large.delta
    with pytest.raises(ValueError, match=r"beta = 1 is too small.*12 x 10"):
        diagnose(M, ceiling=M.max() + 1, expert=True, truth=M, beta=1.0)


def test_the_sizes_of_theorem_2_are_those_of_its_definitions():
    rng = np.random.default_rng(1)
    M = low_rank(rng, (15, 12), 3)
    C = float(np.quantile(M, 0.8))
    sizes = diagnose(np.minimum(M, C), ceiling=C, expert=True, truth=M).theory.sizes
    S = np.linalg.svd(np.minimum(M, C), compute_uv=False)
    unit = sqrt(3 * 15 * 12)
    assert sizes.beta_1 == pytest.approx(np.linalg.norm(M, "nuc") ** 2 / unit)
    assert sizes.beta_2 == pytest.approx(S.sum() ** 2 / unit)
    # Clip(M) has full rank: every row of V, a square matrix, has norm 1.
    assert np.linalg.matrix_rank(np.minimum(M, C)) == 12
    assert sizes.mu == pytest.approx(1.0)
    flat = diagnose(np.ones((6, 5)), ceiling=2.0, expert=True, truth=np.ones((6, 5))).theory.sizes
    assert flat.mu == pytest.approx(1 / 5)  # rank 1, rows of V are 1 / sqrt(5)


def test_last_term_of_delta_is_added():
    n1, n2, k_0, beta = 30, 20, 7, 3.0
    n = n1 * n2
    steps = exp(0.25) * n**-beta + 2 * n ** (1 - beta) + (n1 + n2) ** (1 - beta)
    assert failure_bound((n1, n2), k_0, beta) == pytest.approx(k_0 * steps + 2 * n ** (1 - beta))


def test_a_failed_condition_asks_for_more_than_can_be_observed():
    half = Range(0.5, 0.6)
    none = Range(0.0, 0.0)
    p = smallest_p((9, 9), 1, (1, 1), 3, Conditions(none, half, none, none))
    assert p["F"] == Range(np.inf, np.inf)
    assert np.isfinite(p["main"].high)


def test_conditions_hold_where_nothing_is_hidden_and_all_is_observed():
    rng = np.random.default_rng(0)
    M = low_rank(rng, (12, 10), 2)
    theory = diagnose(M, ceiling=M.max() + 1, expert=True, truth=M).theory
    assert theory.nu_B == 0
    assert theory.holds is True
    assert theory.p_needed.high == 1  # far too small a table for less


def test_true_factors_and_true_table_agree():
    rng = np.random.default_rng(0)
    P, Q = rng.standard_normal((12, 2)), rng.standard_normal((10, 2))
    M = P @ Q.T
    C = np.quantile(M, 0.8)
    one, other = (
        diagnose(np.minimum(M, C), ceiling=C, expert=True, truth=t).theory for t in (M, (P, Q))
    )
    assert one.nu_B == pytest.approx(other.nu_B, abs=1e-10)
    assert one.rho_op == pytest.approx(other.rho_op, rel=1e-10)
    assert one.holds is False
