"""Summaries of restored tables: the numbers, the frame, groups, criteria, errors."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

import declip
from declip.inference.univariate import kaplan_meier


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    return np.exp(rng.normal(size=(120, 1)) + 0.5 * rng.normal(size=(120, 3)))


@pytest.fixture(scope="module")
def restored(truth):
    frame = pd.DataFrame(np.maximum(truth, 0.6), columns=["lead", "zinc", "iron"])
    return declip.restore(frame, floor=0.6, log=True, method="normal", effort="quick")


def lines(summary, **wanted):
    """Return the lines of a summary that have some cells."""
    columns = summary.as_columns()
    rows = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
    return [row for row in rows if all(row[k] == v for k, v in wanted.items())]


def test_it_is_what_pooling_the_samples_by_hand_gives(restored):
    tables = restored.sample(30)
    logs = [np.log(t["zinc"]) for t in tables]
    by_hand = declip.pool([(x.mean(), x.std(ddof=1) / np.sqrt(120)) for x in logs], complete_df=119)
    [line] = lines(restored.summary(["geometric_mean"], n=30), column="zinc")
    low, high = by_hand.interval()
    found = [line[k] for k in ("estimate", "lower", "upper")]
    assert_allclose(found, np.exp([by_hand.estimate, low, high]), rtol=1e-9)
    assert line["missing_information"] == pytest.approx(float(by_hand.missing_information))


def test_intervals_hold_the_truth_and_are_wider_than_without_limits(truth, restored):
    for j, line in enumerate(lines(restored.summary(["mean"]))):
        assert line["lower"] < truth[:, j].mean() < line["upper"]
        assert line["n"] == 120
        assert line["censored"] == pytest.approx(np.mean(truth[:, j] < 0.6))


def test_the_usual_estimates_stand_beside(truth, restored):
    [line] = lines(restored.summary(["mean"]), column="lead")
    below = truth[:, 0] < 0.6
    seen = np.maximum(truth[:, 0], 0.6)
    km = kaplan_meier(np.where(below, -np.inf, seen), seen)
    assert line["kaplan_meier"] == pytest.approx(km.mean())
    assert line["half_limit"] == pytest.approx(np.where(below, 0.3, seen).mean())


@pytest.mark.parametrize("criterion", [2.0, 0.3])  # above the limits, and below
def test_the_share_above_a_criterion_is_that_of_the_truth(truth, restored, criterion):
    found = lines(restored.summary(["mean"], criterion=criterion), statistic="share_above")
    for j, line in enumerate(found):
        assert line["lower"] <= np.mean(truth[:, j] > criterion) <= line["upper"]
        assert line["criterion"] == criterion


def test_a_criterion_of_one_column_is_asked_of_that_column_alone(restored):
    found = lines(restored.summary(["mean"], criterion={"zinc": 1.0}, n=3))
    assert [x["column"] for x in found if x["statistic"] == "share_above"] == ["zinc"]
    assert len(found) == 4


def test_groups_are_summed_up_apart(restored):
    site = ["north"] * 70 + ["south"] * 50
    found = restored.summary(["median"], by=site)
    assert [line["n"] for line in lines(found, column="iron")] == [70, 50]
    assert {line["group"] for line in lines(found)} == {"north", "south"}


def test_a_column_of_the_table_can_name_the_groups(truth):
    frame = pl.DataFrame({"lead": np.maximum(truth[:, 0], 0.6), "plant": [1.0, 2.0] * 60})
    r = declip.restore(frame, floor={"lead": 0.6}, method="column")
    found = r.summary(["mean"], by="plant")
    assert isinstance(found.table, pl.DataFrame)
    assert {line["group"] for line in lines(found, column="lead")} == {1.0, 2.0}


def test_an_array_gives_a_frame_and_a_picture(truth):
    r = declip.restore(np.minimum(truth, 2.0), 2.0, method="column")
    found = r.summary(["mean", "p90"], n=5)
    asked = r.summary(["mean"], n=5, criterion=2.5)
    assert asked.plot("share_above").get_xlabel() == "share above 2.5, intervals of 95%"
    assert list(found.table["column"][:2]) == ["0", "0"]
    assert len(found.plot("p90").get_yticklabels()) == 3
    assert "Intervals of 95% from 5 imputations" in str(found)
    with pytest.raises(ValueError, match="no statistic 'sd'; it has mean, p90"):
        found.plot("sd")


def test_of_a_column_that_nothing_determines_only_the_usual_is_told(truth):
    X = np.column_stack([np.minimum(truth, 2.0), np.full(120, 9.0)])
    r = declip.restore(X, [2, 2, 2, 9], method="column")
    found = r.summary(["mean"], n=5)
    line = lines(found, column="3")[0]
    assert np.isnan([line["estimate"], line["missing_information"]]).all()
    assert line["half_limit"] == pytest.approx(9)
    assert any("not determined by the data" in note for note in found.notes)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"by": "site"}, r"by names column 'site', which the table does not have \(it has 'lead'"),
        ({"by": ["a", "b"]}, "by must have a label for each of the 120 rows; got 2"),
        ({"by": "lead"}, "whose values are no groups"),
        ({"criterion": "5 ug/L"}, "criterion must be a number in the units of its column"),
        ({"criterion": 1e6}, r"more than 1000 times all values of column 'lead'"),
        ({"criterion": np.nan}, "criterion must be a number in the units of its column; got nan"),
        ({"criterion": {"tin": 1}}, r"column 'tin', which the table does not have \(it has 'lead'"),
        ({"criterion": [1, 2]}, "one for each of the 3 columns"),
        ({"confidence": 95}, "confidence must lie between 0 and 1; got 95"),
        ({"n": 1}, "at least 2 imputations; got 1"),
        ({"statistics": []}, "Nothing is asked: name a statistic"),
        ({"statistics": ["p0"]}, "There is no statistic 'p0'"),
    ],
)
def test_what_cannot_be_asked_is_refused(restored, asked, message):
    with pytest.raises(ValueError, match=message):
        restored.summary(**asked)


def test_too_few_rows_are_refused():
    r = declip.restore(np.array([[1.0, 2.0], [2.0, 3.0]]), ceiling=3, method="column")
    with pytest.raises(ValueError, match="at least 3 rows; the table has 2"):
        r.summary()


def test_memory_does_not_grow_with_the_number_of_imputations(restored):
    import tracemalloc

    def peak(n):
        tracemalloc.start()
        restored.summary(["mean"], n=n)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(3)  # what is computed once
    few, many = peak(3), peak(60)
    assert many < few + 60 * 120 * 3 * 8 / 10  # a tenth of what the tables would take


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_rows_without_a_label_are_one_group(restored, missing):
    labels = pd.Series(["x", "y", missing] * 40, dtype=object)
    found = restored.summary(["mean"], by=labels, n=2).as_columns()
    assert len(set(map(str, found["group"]))) == 3
    assert set(found["n"]) == {40}
