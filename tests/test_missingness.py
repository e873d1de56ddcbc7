"""Whether missing cells follow values, as detect_limits says it."""

import numpy as np
import pytest

from declip import detect_limits


def table(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(100, 1)) + 0.5 * rng.normal(size=(100, 8)) + np.arange(8)


@pytest.mark.parametrize(("sign", "word"), [(1, "low"), (-1, "high")])
def test_cells_missing_for_their_values_are_seen_and_named(sign, word):
    X = sign * table()
    X[X < np.quantile(X, 0.3, axis=0)] = np.nan
    found = detect_limits(sign * X)
    assert found.missing.word == word
    assert f"Missing cells follow {word} values" in str(found)
    assert f"missing='{word}'" in str(found)
    low, *_, high = found.missing.fifths
    assert (low > 0.5) == (word == "low")
    assert (high > 0.5) == (word == "high")


def test_cells_missing_by_chance_are_not():
    X = table()
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    found = detect_limits(X)
    assert found.missing.word == "random"
    assert str(found) == "No limits found in 8 columns."


def test_the_picture_shows_rows_and_columns():
    X = table()
    X[X < np.quantile(X, 0.3, axis=0)] = np.nan
    figure = detect_limits(X).missing.plot()
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["Rows", "Columns"]
    assert len(figure.axes[0].lines[0].get_xdata()) == 100


def test_too_few_rows_or_none_missing_say_nothing():
    assert detect_limits(table()).missing.word == "random"
    assert detect_limits([[1.0, np.nan], [2.0, 3.0]]).missing.word == "random"
