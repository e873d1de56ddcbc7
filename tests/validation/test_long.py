"""Long tables: which frames and ids are read, named by one column or by several."""

import dask.dataframe as dd
import pandas as pd
import polars as pl
import pytest

import declip
from declip import Intervals

SALES = {
    "store": ["Ulm", "Ulm", "Bonn", "Bonn"],
    "sku": [7, 8, 7, 8],
    "day": ["Mon", "Mon", "Mon", "Tue"],
    "sold": [3.0, 1.0, 4.0, 1.0],
}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_several_columns_name_a_row_together(kind):
    cells = Intervals.from_long(kind(SALES), ["store", "sku"], "day", "sold")
    assert list(cells.row_labels) == ["Bonn / 7", "Bonn / 8", "Ulm / 7", "Ulm / 8"]


def test_a_column_that_is_not_there_is_named_among_several():
    with pytest.raises(ValueError, match="has no column 'shop'"):
        Intervals.from_long(pd.DataFrame(SALES), ["shop", "sku"], "day", "sold")


def test_a_line_without_part_of_its_name_is_refused():
    lines = pd.DataFrame(SALES).assign(store=["Ulm", None, "Bonn", "Bonn"])
    with pytest.raises(ValueError, match="Column 'store' holds a line without a label"):
        Intervals.from_long(lines, ["store", "sku"], "day", "sold")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_lines_that_differ_do_not_get_one_name(kind):
    lines = kind(SALES | {"store": ["a", "a / b", "c", "c"], "sku": ["b / c", "c", "x", "y"]})
    with pytest.raises(ValueError, match="would all be named 'a / b / c'"):
        Intervals.from_long(lines, ["store", "sku"], "day", "sold")


def test_rows_that_no_column_names_are_refused():
    with pytest.raises(ValueError, match="name at least one for each"):
        Intervals.from_long(pd.DataFrame(SALES), [], "day", "sold")


def test_dates_in_a_table_name_the_reader_of_long_tables():
    lines = pd.DataFrame(SALES).assign(day=pd.Timestamp("2024-01-01"))
    with pytest.raises(TypeError, match=r"Intervals\.from_long"):
        declip.restore(lines[["day", "store", "sku", "sold"]])


RATINGS = pd.DataFrame({"row": ["ann", "bob"], "column": ["Alien", "Brazil"], "value": [4.0, 2.0]})


def test_ids_of_two_kinds_are_refused_with_one_of_each():
    frame = RATINGS.assign(row=["ann", 7])
    with pytest.raises(TypeError, match=r"Column 'row' holds ids of several kinds.*'ann'.* 7"):
        Intervals.from_long(frame)


def test_ids_that_cannot_be_sorted_are_refused():
    with pytest.raises(TypeError, match=r"such as \(1, 'a'\) and \('b', 2\)"):
        Intervals.from_long(RATINGS.assign(row=[(1, "a"), ("b", 2)]))


@pytest.mark.parametrize("lazy", [pl.from_pandas(RATINGS).lazy(), dd.from_pandas(RATINGS)])
def test_a_lazy_frame_is_refused_with_what_to_do(lazy):
    with pytest.raises(TypeError, match=r"is lazy .*compute\(\) or collect\(\)"):
        Intervals.from_long(lazy)


def test_what_is_no_frame_is_refused():
    with pytest.raises(TypeError, match="one line a cell; got list"):
        Intervals.from_long([("ann", "Alien", 4.0)])


def test_categories_are_labels():
    cells = Intervals.from_long(RATINGS.astype({"row": "category"}))
    assert cells.row_labels.tolist() == ["ann", "bob"]
