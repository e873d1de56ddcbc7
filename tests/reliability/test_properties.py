"""What holds for every table: symmetries, monotonicity, certificates, one answer for all forms."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tests.examples import costly
from tests.plain import certificate, interval_loss, largest_alpha, objective

from declip import DTrCMC, FroCMC, Intervals, TrCMC, detect_limits, restore
from declip.lowrank import LowRank

INF, NAN = np.inf, np.nan
pytestmark = pytest.mark.filterwarnings("ignore")
quarters = st.integers(-40, 40).map(lambda n: n / 4)  # exact in floating point
strengths = st.floats(0.01, 10)


@st.composite
def bounds(draw, at_least=1):
    """Draw tables of bounds with exact cells, ceilings, floors, ranges and gaps."""
    shape = draw(st.tuples(st.integers(at_least, 6), st.integers(at_least, 6)))
    lower, width = (draw(arrays(float, shape, elements=quarters)) for _ in range(2))
    kind = draw(arrays(np.int8, shape, elements=st.sampled_from([0, 0, 0, 1, 2, 3, 4])))
    kind.flat[draw(st.integers(0, kind.size - 1))] = 0  # one is exact
    upper = np.where(kind == 3, lower + abs(width), lower)
    upper[kind == 1], lower[kind == 2] = INF, -INF
    lower[kind == 4] = upper[kind == 4] = NAN
    return lower, upper


@st.composite
def problems(draw):
    """Draw bounds and a low-rank matrix of their shape."""
    lower, upper = draw(bounds())
    k = draw(st.integers(1, 3))
    P, Q = (draw(arrays(float, (n, k), elements=quarters)) for n in lower.shape)
    return lower, upper, LowRank(P, Q)


@st.composite
def tables(draw):
    """Draw a table with gaps, a ceiling and a floor, and at least one cell between them."""
    shape = draw(st.tuples(st.integers(2, 6), st.integers(2, 6)))
    table = np.clip(draw(arrays(float, shape, elements=quarters)), -5.0, 5.0)
    table[draw(arrays(bool, shape, elements=st.sampled_from([False, False, True])))] = NAN
    table.flat[draw(st.integers(0, table.size - 1))] = 1.25
    return table


# Symmetries of the objective


@given(problems(), st.randoms(use_true_random=False), strengths, st.sampled_from([0.0, 0.7]))
def test_the_order_of_rows_and_columns_does_not_matter(problem, random, alpha, scale):
    lower, upper, X = problem
    rows, cols = (np.array(random.sample(range(n), n)) for n in lower.shape)
    shuffled = [b[np.ix_(rows, cols)] for b in (lower, upper)]
    moved = replace(X, A=X.A[rows], B=X.B[cols])
    usual = objective(Intervals.from_bounds(lower, upper), X, alpha, scale)
    assert objective(Intervals.from_bounds(*shuffled), moved, alpha, scale) == pytest.approx(usual)


@given(problems(), strengths, st.sampled_from([0.0, 0.7]))
def test_rows_and_columns_may_change_places(problem, alpha, scale):
    lower, upper, X = problem
    table = Intervals.from_bounds(lower, upper)
    assert objective(table.T, X.T, alpha, scale) == pytest.approx(objective(table, X, alpha, scale))


@given(problems(), strengths, st.sampled_from([0.0, 0.7]))
def test_in_the_mirror_ceilings_are_floors(problem, alpha, scale):
    lower, upper, X = problem
    usual = objective(Intervals.from_bounds(lower, upper), X, alpha, scale)
    mirrored = objective(Intervals.from_bounds(-upper, -lower), replace(X, B=-X.B), alpha, scale)
    assert mirrored == pytest.approx(usual)


@given(problems(), strengths, st.sampled_from([2.0**-40, 0.5, 2.0**30]))
def test_the_objective_has_the_square_of_the_unit(problem, alpha, unit):
    lower, upper, X = problem
    usual = objective(Intervals.from_bounds(lower, upper), X, alpha)
    scaled = Intervals.from_bounds(unit * lower, unit * upper)
    root = replace(X, A=np.sqrt(unit) * X.A, B=np.sqrt(unit) * X.B)
    assert objective(scaled, root, unit * alpha) == pytest.approx(unit**2 * usual, rel=1e-9)


# Monotonicity


@given(problems(), st.floats(0, 5), st.sampled_from([0.0, 0.7]))
def test_to_know_less_never_costs_more(problem, slack, scale):
    lower, upper, X = problem
    loose = Intervals.from_bounds(lower - slack, upper + slack)
    tight = Intervals.from_bounds(lower, upper)
    if scale and (slack == 0 or tight.n_exact):  # a density is no probability: not comparable
        tight, loose = (
            t.keep(np.zeros(t.n_exact, bool), np.ones(t.n_censored, bool)) for t in (tight, loose)
        )
        if tight.n_censored != loose.n_censored:
            return
    rounding = 1e-9 * (1 + objective(tight, X, 0.1, scale) if not scale else 1e3)
    assert objective(loose, X, 0.1, scale) <= objective(tight, X, 0.1, scale) + rounding


@given(quarters, quarters, st.floats(0, 9), st.sampled_from([0.0, 0.3, 2.0]))
def test_the_loss_of_a_cell_is_convex_with_its_gradient_between(x, lower, width, scale):
    for low, high in ((lower, INF), (-INF, lower), (lower, lower + width + 0.25)):
        at = np.array([x - 0.5, x, x + 0.5])
        value, gradient, curvature = interval_loss(
            at, *np.full((2, 3), [[low], [high]]), scale=scale
        )
        assert value[1] <= 0.5 * (value[0] + value[2]) + 1e-9
        assert gradient[0] <= gradient[1] + 1e-9
        assert gradient[1] - 1e-9 <= (value[2] - value[1]) / 0.5 <= gradient[2] + 1e-9
        assert (curvature >= 0).all()
        assert (curvature <= 1).all()


@costly
@given(bounds(at_least=2), st.integers(0, 2**31 - 1), st.sampled_from(["hinge", "tobit"]))
def test_the_objective_of_a_fit_never_rises(tables, seed, clipped):
    model = FroCMC(2, clipped=clipped, random_state=seed, max_iter=15, scale="none")
    history = model.fit(Intervals.from_bounds(*tables)).history_
    assert (np.diff(history) <= 1e-9 * (1 + np.abs(history[:-1]))).all()


@costly
@given(bounds(at_least=2), strengths)
def test_a_stronger_penalty_leaves_a_smaller_trace_norm_and_a_larger_objective(tables, alpha):
    table = Intervals.from_bounds(*tables)
    weak, strong = (
        TrCMC(a, tol=1e-8, max_iter=2000, scale="none").fit(table) for a in (alpha, 2 * alpha)
    )
    slack = 1e-4 * (1 + weak.objective_)
    assert strong.singular_values_.sum() <= weak.singular_values_.sum() + slack
    assert strong.objective_ >= weak.objective_ - slack


# Certificates


@given(problems(), st.randoms(use_true_random=False), strengths)
def test_no_matrix_is_better_than_a_certificate_allows(problem, random, alpha):
    lower, upper, X = problem
    table = Intervals.from_bounds(lower, upper)
    proof = certificate(table, X, alpha)
    other = replace(X, A=X.A * random.uniform(-1, 1), B=X.B + random.uniform(-1, 1))
    assert proof.gap >= 0
    for rival in (other, LowRank.zero(table.shape)):
        found = certificate(table, rival, alpha).objective
        assert proof.objective - proof.gap <= found * (1 + 1e-9) + 1e-9


@given(bounds())
def test_zero_is_the_best_matrix_from_the_largest_useful_strength_on(tables):
    table = Intervals.from_bounds(*tables)
    alpha = largest_alpha(table)
    proof = certificate(table, LowRank.zero(table.shape), alpha * (1 + 1e-9))
    assert proof.gap <= 1e-9 * (1 + proof.objective)


@costly
@given(bounds(at_least=2), strengths, st.sampled_from(["proximal", "factored"]))
def test_a_converged_fit_is_certified(tables, alpha, solver):
    table = Intervals.from_bounds(*tables)
    model = TrCMC(alpha, solver=solver, tol=1e-3, scale="none").fit(table)
    if model.converged_:
        assert model.gap_ <= 1.01e-3 * max(model.objective_, 1e-12)


# One answer for all forms of a table


def forms(table):
    """Yield the same table in every form that is taken."""
    rows, cols = np.nonzero(~np.isnan(table))
    stored = sparse.coo_array((table[rows, cols], (rows, cols)), shape=table.shape)
    names = [f"column {j}" for j in range(table.shape[1])]
    yield "list", [[None if np.isnan(x) else float(x) for x in row] for row in table]
    yield "fortran", np.asfortranarray(table)
    yield "strided", np.repeat(table, 2, axis=1)[:, ::2]
    yield "object", np.where(np.isnan(table), None, table)
    yield "masked", np.ma.masked_invalid(table)
    yield "pandas", pd.DataFrame(table, columns=names)
    yield "pandas nullable", pd.DataFrame(table, columns=names).convert_dtypes()
    yield "polars", pl.DataFrame(table, schema=names).fill_nan(None)
    for form in ("csr", "csc", "coo", "lil", "dok"):
        yield form, stored.asformat(form)
    yield "matrix", sparse.csr_matrix(stored)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.triplets(), other.triplets(), strict=True))


@given(tables())
def test_every_form_of_a_table_has_the_same_cells(table):
    usual = Intervals.from_table(table, 5, -5)
    for name, form in forms(table):
        assert same(Intervals.from_table(form, 5, -5), usual), name
    rows, cols = np.nonzero(~np.isnan(table))
    assert same(Intervals.from_triplets(rows, cols, table[rows, cols], table.shape, 5, -5), usual)
    lower, upper = np.where(table == -5, -INF, table), np.where(table == 5, INF, table)
    assert same(Intervals.from_bounds(lower, upper), usual)


@given(tables())
def test_every_form_of_a_limit_has_the_same_cells(table):
    n, m = table.shape
    usual = Intervals.from_table(table, 5, -5)
    full = np.full((n, m), 5.0)
    for ceiling in (5.0, np.full(m, 5), np.full((1, m), 5.0), np.full((n, 1), 5.0), full):
        assert same(Intervals.from_table(table, ceiling, -5), usual)
    for ceiling in (dict.fromkeys(range(m), 5), sparse.csr_array(full), pd.DataFrame(full)):
        assert same(Intervals.from_table(table, ceiling, -5), usual)


@costly
@given(tables())
def test_every_form_of_a_table_has_the_same_fit(table):
    def fit(X):
        return (
            FroCMC(1, ceiling=5, floor=-5, random_state=0, max_iter=3, scale="none")
            .fit(X)
            .reconstruct()
        )

    usual = fit(table)
    for name, form in forms(table):
        assert_array_equal(fit(form), usual, err_msg=name)


@costly
@given(tables())
def test_restored_cells_keep_to_what_is_known(table):
    for model in (
        FroCMC(1, ceiling=5, floor=-5, max_iter=5, scale="none"),
        DTrCMC(ceiling=5, floor=-5, max_iter=5, scale="none"),
    ):
        restored = model.fit_transform(table)
        assert (restored[table == 5] >= 5).all()
        assert (restored[table == -5] <= -5).all()
        exact = np.abs(table) < 5
        assert_array_equal(restored[exact], table[exact])
        assert np.isfinite(restored).all()


# The symmetries of a fit whose optimum is unique


def optimum(lower, upper, alpha):
    return TrCMC(alpha, tol=1e-8, max_iter=2000, scale="none").fit(
        Intervals.from_bounds(lower, upper)
    )


@costly
@given(bounds(at_least=2), st.randoms(use_true_random=False), st.floats(0.2, 5))
def test_the_best_objective_has_all_the_symmetries(tables, random, alpha):
    lower, upper = tables
    usual = optimum(lower, upper, alpha).objective_
    rows, cols = (np.array(random.sample(range(n), n)) for n in lower.shape)
    others = {
        "shuffled": optimum(lower[np.ix_(rows, cols)], upper[np.ix_(rows, cols)], alpha).objective_,
        "transposed": optimum(lower.T, upper.T, alpha).objective_,
        "mirrored": optimum(-upper, -lower, alpha).objective_,
        "scaled": optimum(8 * lower, 8 * upper, 8 * alpha).objective_ / 64,
    }
    for name, found in others.items():
        assert_allclose(found, usual, rtol=1e-5, atol=1e-7, err_msg=name)


@given(tables(), st.randoms(use_true_random=False))
def test_the_proposed_limits_do_not_depend_on_the_order_of_the_rows(table, random):
    order = random.sample(range(len(table)), len(table))
    one, other = detect_limits(table), detect_limits(table[order])
    assert_array_equal(np.asarray(one.ceiling, float), np.asarray(other.ceiling, float))
    assert_array_equal(np.asarray(one.floor, float), np.asarray(other.floor, float))


@pytest.mark.slow
@costly
@given(tables())
def test_restore_leaves_exact_cells_alone_and_keeps_to_the_limits(table):
    found = restore(table, 5, -5, method="column")
    exact = np.abs(table) < 5
    assert_array_equal(found.table[exact], table[exact])
    assert (found.table[table == 5] >= 5).all()
    assert (found.table[table == -5] <= -5).all()
