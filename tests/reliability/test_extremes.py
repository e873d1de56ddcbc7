"""Tables at the edge of what there can be: a sensible answer, or an error that says why not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from declip import (
    BayesCMC,
    DTrCMC,
    ExactCMC,
    FroCMC,
    Intervals,
    TrCMC,
    diagnose,
    reclip_test,
    restore,
)

RNG = np.random.default_rng(3)
TRUTH = 2 + RNG.normal(size=(24, 2)) @ RNG.normal(size=(2, 10))
CEILING = 3.0
X = np.minimum(TRUTH, CEILING)
X[RNG.random(X.shape) < 0.1] = np.nan
pytestmark = pytest.mark.filterwarnings("ignore")


def estimators(size=1.0, **params):
    """Return the five of them (and two more forms), with penalties for values of this size."""
    bayes = {"n_samples": 20, "burn_in": 20, "random_state": 0}
    return {
        "fro": FroCMC(2, alpha=0.1 * size, random_state=0, **params, scale="none"),
        # Offsets are in the unit of the data, factors in its square root.
        "tobit": FroCMC(
            *(2,),
            **{"alpha": 0.1 * size, "bias": True, "alpha_bias": 0.1, "clipped": "tobit"},
            **{"random_state": 0, **params},
            scale="none",
        ),
        "trace": TrCMC(0.5 * size, max_iter=200, **params, scale="none"),
        "factored": TrCMC(0.5 * size, solver="factored", max_iter=200, **params, scale="none"),
        "dtr": DTrCMC(0.2 * size, 0.2 * size, beyond=size, max_iter=200, **params, scale="none"),
        "exact": ExactCMC(max_iter=200, **params),
        "bayes": BayesCMC(2, **bayes, **params),
    }


NAMES = list(estimators())
SIZES = (1e-30, 1e-12, 1e12, 1e30)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", SIZES)
def test_a_fit_does_not_depend_on_the_unit(name, size):
    usual = estimators(ceiling=CEILING)[name].fit_transform(X)
    scaled = estimators(size, ceiling=CEILING * size)[name].fit_transform(X * size)
    # The paths are the same but for rounding, which the stopping rules may turn into a sweep more.
    assert_allclose(scaled / size, usual, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_a_fit_in_single_precision_does_not_depend_on_the_unit(name, size):
    usual = estimators(ceiling=CEILING)[name].fit_transform(X.astype(np.float32))
    scaled = estimators(size, ceiling=CEILING * size)[name].fit_transform(
        (X * size).astype(np.float32)
    )
    assert_allclose(scaled / size, usual, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_very_different_units_give_finite_values_in_range(name):
    units = 10.0 ** np.linspace(-9, 9, X.shape[1])
    restored = estimators(ceiling=CEILING * units)[name].fit_transform(X * units)
    seen = ~np.isnan(X) & (X < CEILING)
    assert np.isfinite(restored).all()
    assert_allclose(restored[seen], (X * units)[seen])


def edges():
    """Yield a name, a table and its ceiling."""
    yield "constant columns", np.where(np.arange(10) < 3, 2.0, X), CEILING
    yield "a constant table", np.full((8, 5), 2.0), None
    yield "zeros", np.zeros((8, 5)), None
    yield "rank one", np.minimum(np.outer(np.arange(1.0, 9), np.arange(1.0, 7)), 30), 30
    yield "one row", X[:1], CEILING
    yield "one column", X[:, :1], CEILING
    yield "one cell", np.array([[2.0]]), None
    yield "two columns", X[:, :2], CEILING
    hidden = np.where(RNG.permutation(X.size).reshape(X.shape) < 3, 1.0, CEILING)
    yield "99 % clipped", hidden, CEILING
    yield "all but one column empty", np.where(np.arange(10) == 4, X, np.nan), CEILING
    yield "all but one row empty", np.where(np.arange(24)[:, None] == 4, X, np.nan), CEILING
    yield (
        "one cell in each row",
        np.where(np.arange(10) == np.arange(24)[:, None] % 10, X, np.nan),
        9,
    )
    yield "floor and ceiling close", np.round(np.clip(X, 1.9, 2.1), 1), 2.1
    yield "integers with many ties", np.round(X), None


EDGES = {name: (table, ceiling) for name, table, ceiling in edges()}


def fitted_rank(name, table, ceiling):
    model = estimators(ceiling=ceiling)[name]
    if "n_components" in model.get_params():
        model.set_params(n_components=min(2, *table.shape))
    return model


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edge", EDGES)
def test_an_extreme_table_is_restored_with_finite_values_and_its_exact_cells(name, edge):
    table, ceiling = EDGES[edge]
    restored = fitted_rank(name, table, ceiling).fit_transform(table)
    assert np.isfinite(restored).all()
    exact = ~np.isnan(table) & (table < (np.inf if ceiling is None else ceiling))
    assert_allclose(restored[exact], table[exact])
    if ceiling is not None:
        assert (restored[table == ceiling] >= ceiling).all()


@pytest.mark.parametrize("edge", EDGES)
def test_restore_says_what_it_can_of_an_extreme_table(edge):
    table, ceiling = EDGES[edge]
    found = restore(table, ceiling=ceiling, effort="quick")
    assert np.isfinite(found.table[found.flags != "undetermined"]).all()
    left = (found.flags == "undetermined") & ~np.isnan(table)
    assert_array_equal(found.table[left], table[left])
    assert str(found)


@pytest.mark.parametrize("edge", EDGES)
def test_diagnose_says_what_it_can_of_an_extreme_table(edge):
    table, ceiling = EDGES[edge]
    model = fitted_rank("fro", table, ceiling).fit(table)
    for found in (diagnose(table, ceiling=ceiling), diagnose(model, table)):
        assert found.verdict
        assert "nan" not in str(found).lower()


@pytest.mark.parametrize("edge", EDGES)
def test_the_reclip_test_of_an_extreme_table_ends_with_a_score_or_none(edge):
    table, ceiling = EDGES[edge]
    found = reclip_test(table, ceiling, quantiles=[0.8])
    # minus infinity where to leave cells at the limit is no error at all
    assert found.n_cells == 0 or found.gain < 1
    assert str(found)


@pytest.mark.parametrize("size", SIZES)
def test_restore_does_not_depend_on_the_unit(size):
    how = {"method": "tobit", "n_components": 2}
    usual = restore(X, ceiling=CEILING, **how)
    scaled = restore(X * size, ceiling=CEILING * size, **how)
    assert_allclose(scaled.table / size, usual.table, rtol=1e-3, atol=1e-3)
    assert (scaled.flags == usual.flags).all()


@pytest.mark.parametrize("size", SIZES)
def test_the_reclip_test_does_not_depend_on_the_unit(size):
    usual = reclip_test(X, CEILING, quantiles=[0.8])
    scaled = reclip_test(X * size, CEILING * size, quantiles=[0.8])
    assert scaled.gain == pytest.approx(usual.gain, abs=1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_diagnose_does_not_depend_on_the_unit(size):
    verdicts = {
        diagnose(estimators(s, ceiling=CEILING * s)["fro"].fit(X * s), X * s).verdict
        for s in (1.0, size)
    }
    assert len(verdicts) == 1


def test_a_table_clipped_throughout_is_refused_by_all():
    table = np.full((6, 4), CEILING)
    calls = [model.fit for model in estimators(ceiling=CEILING).values()]
    calls.append(lambda table: restore(table, ceiling=CEILING))
    for call in calls:
        with pytest.raises(ValueError, match="clipped, so that nothing fixes their values"):
            call(table)


def test_values_whose_squares_would_overflow_are_refused():
    with pytest.raises(ValueError, match="too large"):
        Intervals.from_table(X * 1e160)


def test_samples_that_overflow_are_refused():
    lower = np.array([[-np.inf, 1e150, 5.0], [4.0, 3.0, -np.inf], [1e150, 2.0, 1.0]])
    upper = np.array([[1e150, 1e150, 9.0], [8.0, np.inf, 7.0], [np.inf, 6.0, 2.0]])
    model = BayesCMC(1, n_samples=6, burn_in=4, noise="column", random_state=0)
    with pytest.raises(FloatingPointError, match="Rescale the data to values near 1"):
        model.fit(Intervals.from_bounds(lower, upper))


def test_a_refit_after_an_extreme_table_is_as_if_it_had_not_been():
    for model in estimators(ceiling=CEILING).values():
        right = clone(model).fit_transform(X)
        again = model.fit(X[:3]).set_params(ceiling=CEILING).fit_transform(X)
        np.testing.assert_array_equal(again, right)
