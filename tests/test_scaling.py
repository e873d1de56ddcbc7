"""Columns brought to one scale, with their limits."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from declip import Intervals
from declip.scaling import Scaling

RNG = np.random.default_rng(0)
X = np.exp(RNG.normal([0.0, 3.0, -5.0], [1.0, 0.2, 2.0], (200, 3)))


@pytest.mark.parametrize("scale", ["columns", "table", "none"])
@pytest.mark.parametrize("log", [False, True, [1]])
@pytest.mark.parametrize("values", ["", "sqrt", "log1p"])
def test_back_undoes_forward(scale, log, values):
    scaling = Scaling.of(Intervals.from_table(X), scale, log, values=values)
    cols = np.tile(np.arange(3), 200)
    assert_allclose(scaling.back(scaling.forward(X.ravel(), cols), cols), X.ravel())


def test_roots_take_zeros_and_keep_what_is_open_and_logarithms_go_first():
    cells = Intervals.from_bounds([[0.0, 4.0], [-np.inf, 9.0]], [[0.0, 4.0], [1.0, np.inf]])
    lower, upper = Scaling.of(cells, "none", [1], values="sqrt").apply(cells).to_bounds()
    assert_allclose(lower, [[0, np.log(4)], [-np.inf, np.log(9)]])
    assert_allclose(upper, [[0, np.log(4)], [1, np.inf]])


def test_roots_of_what_is_below_zero_are_refused():
    cells = Intervals.from_table(np.array([[1.0, -2.0], [3.0, 4.0]]))
    with pytest.raises(ValueError, match="1 cell has a value below zero, first row 0, column 1"):
        Scaling.of(cells, "columns", values="log1p")


def test_columns_without_limits_get_mean_zero_and_spread_one():
    scaled = Scaling.of(Intervals.from_table(X)).apply(Intervals.from_table(X))
    table = scaled.to_bounds()[0]
    assert_allclose(table.mean(axis=0), 0, atol=1e-9)
    assert_allclose(table.std(axis=0), 1)


def test_a_cut_off_top_does_not_make_a_column_look_narrow():
    z = RNG.normal(2.0, 3.0, (5000, 1))
    units = Scaling.of(Intervals.from_table(np.minimum(z, 3.0), ceiling=3.0)).units
    assert_allclose([units.shift[0], units.scale[0]], [2.0, 3.0], rtol=0.06)  # 2 standard errors


def test_limits_go_along():
    cells = Intervals.from_table(np.minimum(X, 2.0), ceiling=2.0)
    scaling = Scaling.of(cells, log=True)
    side, scaled = cells.by_row, scaling.apply(cells).by_row
    assert_array_equal(np.isposinf(scaled.upper), np.isposinf(side.upper))
    assert_allclose(scaled.lower, scaling.forward(side.lower, side.censored_idx))


def test_a_floor_stays_open_downwards_in_logarithms():
    cells = Intervals.from_table(np.maximum(X, 0.5), floor=0.5)
    assert np.isneginf(Scaling.of(cells, log=True).apply(cells).by_row.lower).all()


def test_columns_are_named_by_label_or_number():
    cells = Intervals.from_table(pd.DataFrame(X, columns=["a", "b", "c"]))
    for log in (["b"], [1]):
        assert_array_equal(Scaling.of(cells, log=log).log, [False, True, False])


def test_a_constant_and_an_empty_column_are_taken():
    table = np.column_stack([X, np.ones(200), np.full(200, np.nan)])
    scaling = Scaling.of(Intervals.from_table(table))
    assert np.isfinite(scaling.units.scale).all()
    assert (scaling.units.scale > 0).all()


def test_a_ceiling_of_zero_has_no_logarithm():
    table = X.copy()
    table[2, 1] = 0.0
    cells = Intervals.from_table(table, ceiling=np.where(table == 0, 0.0, np.inf))
    with pytest.raises(ValueError, match=r"row 2, column 1.* its logarithm says nothing"):
        Scaling.of(cells, log=True)
