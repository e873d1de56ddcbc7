"""Zero stock, zero sales and logarithms: named, and the advice works when it is followed."""

import numpy as np
import pytest

import declip


@pytest.fixture(scope="module")
def sales():
    """Return sales and stock of 12 products that never sell nothing of what is in stock."""
    rng = np.random.default_rng(0)
    demand = np.exp(0.5 * rng.normal(size=(60, 3)) @ rng.normal(size=(3, 12)) + 1)
    stock = np.exp(rng.normal(1.2, 0.7, demand.shape))
    stock[rng.random(demand.shape) < 0.1] = 0.0
    return np.minimum(demand, stock), stock


def restored(X, **how):
    return declip.restore(X, log=True, **how)


def test_zero_stock_is_named(sales):
    table, stock = sales
    with pytest.raises(ValueError, match=r"a ceiling that is not positive, first row \d+, column"):
        restored(table, ceiling=stock)


def test_zero_stock_as_missing_is_filled(sales):
    table, stock = sales
    found = restored(np.where(stock > 0, table, np.nan), ceiling=stock)
    assert (found.flags[stock == 0] == "filled").all()
    assert (found.table > 0).all()


def test_a_column_never_stocked_is_left_unknown(sales):
    table, stock = (x.copy() for x in sales)
    table[:, 4] = stock[:, 4] = 0.0
    found = restored(np.where(stock > 0, table, np.nan), ceiling=stock)
    assert np.isnan(found.table[:, 4]).all()
    assert np.isfinite(np.delete(found.table, 4, axis=1)).all()


def test_zero_sales_are_restored_below_the_floor_that_the_message_proposes(sales):
    table, _ = (x.copy() for x in sales)
    table[:3, 0] = 0.0
    table[table == 0] = 0.0
    with pytest.raises(ValueError, match="no logarithm") as told:
        restored(table)
    floor = float(str(told.value).rpartition("floor=")[2].rstrip("."))
    assert f"X.clip({floor:g})" in str(told.value)
    found = restored(table.clip(floor), floor=floor)
    assert ((found.table > 0) & (found.table <= np.maximum(table, floor))).all()


def test_zero_stock_beside_zero_sales_is_restored_when_both_messages_are_followed(sales):
    table, stock = (x.copy() for x in sales)
    table[:3, 0], stock[:3, 0] = 0.0, 5.0
    with pytest.raises(ValueError, match=r"make such cells missing \(NaN\)"):
        restored(table, ceiling=stock)
    table[stock == 0] = np.nan
    with pytest.raises(ValueError, match="no logarithm") as told:
        restored(table, ceiling=stock)
    floor = float(str(told.value).rpartition("floor=")[2].rstrip("."))
    found = restored(table.clip(floor), ceiling=stock, floor=floor)
    assert (found.table > 0).all()
