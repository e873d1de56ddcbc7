"""Cells as text become intervals."""

import numpy as np
import polars as pl
import pytest

from declip.io.numbers import find_style
from declip.io.parsing import parse_cells, parse_qualifiers
from declip.io.words import ABOVE, BELOW, MISSING, YES

INF = np.inf


def parse_one(text, **options):
    parsed = parse_cells(pl.Series([text], dtype=pl.String), **options)
    assert not parsed.bad.size, text
    return float(parsed.lower[0]), float(parsed.upper[0])


def is_bad(text, **options):
    return parse_cells(pl.Series([text], dtype=pl.String), **options).bad.tolist() == [0]


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("12", 12, 12),
        ("12.5", 12.5, 12.5),
        (" 12.5\t", 12.5, 12.5),
        ("\u00a012.5", 12.5, 12.5),
        ("+3", 3, 3),
        ("-3", -3, -3),
        ("\u22123", -3, -3),
        (".5", 0.5, 0.5),
        ("5.", 5, 5),
        ("1e-3", 0.001, 0.001),
        ("1E+3", 1000, 1000),
        ("=7", 7, 7),
        ("<0.5", -INF, 0.5),
        ("< 0.5", -INF, 0.5),
        ("<=0.5", -INF, 0.5),
        ("≤ 0.5", -INF, 0.5),
        ("<-2", -INF, -2),
        ("<1e-3", -INF, 0.001),
        (">200", 200, INF),
        ("> 200", 200, INF),
        (">=200", 200, INF),
        ("≥200", 200, INF),
        ("0.1-0.5", 0.1, 0.5),
        ("0.1 - 0.5", 0.1, 0.5),
        ("0.1\u20130.5", 0.1, 0.5),
        ("0.1 to 0.5", 0.1, 0.5),
        ("1..5", 1, 5),
        ("-3--1", -3, -1),
        ("-3-1", -3, 1),
        ("1e-5-1e-3", 1e-5, 1e-3),
        ("2-2", 2, 2),
    ],
)
def test_a_cell_becomes_its_interval(text, lower, upper):
    assert parse_one(text) == (lower, upper)


@pytest.mark.parametrize("text", sorted(MISSING - {""}))
def test_a_word_for_missing_is_missing_in_any_case(text):
    for variant in (text, text.upper(), f" {text.title()} "):
        assert np.isnan(parse_one(variant)).all()


def test_empty_and_null_cells_are_missing():
    parsed = parse_cells(pl.Series(["", None, "  ", "1"]))
    assert np.isnan(parsed.lower).tolist() == [True, True, True, False]
    assert not parsed.bad.size


@pytest.mark.parametrize(("words", "sign"), [(BELOW, -1), (ABOVE, 1)])
def test_a_word_for_beyond_the_limit_keeps_its_side(words, sign):
    texts = [variant for word in sorted(words) for variant in (word, word.upper())]
    parsed = parse_cells(pl.Series(texts))
    assert not parsed.bad.size
    assert set(parsed.word.tolist()) == {sign}


def test_spaces_within_words_do_not_matter():
    parsed = parse_cells(pl.Series(["Not Detected", "< LOD", "> ULOQ", "not reported"]))
    assert parsed.word.tolist() == [-1, -1, 1, 0]
    assert not parsed.bad.size


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "5 mg",
        "12%",
        "1.2.3",
        "1,234.5",
        "<",
        ">",
        "<<5",
        "5<",
        "0.5-",
        "5-1",
        "1-2-3",
        "inf",
        "-inf",
        "1e400",
        "<1e400",
        "1-1e400",
        "0x10",
        "1_000",
        "٣",
        "<>5",
        "12:30",
        "#REF!",
    ],
)
def test_a_text_that_means_nothing_is_bad(text):
    assert is_bad(text)


def test_words_do_not_overlap():
    assert not (BELOW & ABOVE)
    assert not (MISSING & (BELOW | ABOVE))


def test_further_words_for_missing_may_be_numbers():
    parsed = parse_cells(pl.Series(["-999", " -999", "-99", "n.v."]), missing=["-999", "n.v."])
    assert np.isnan(parsed.lower).tolist() == [True, True, False, True]


def test_decimal_commas_are_read_when_asked_for():
    assert parse_one("0,5", decimal=",") == (0.5, 0.5)
    assert parse_one("<0,5", decimal=",") == (-INF, 0.5)
    assert parse_one("0,1-0,5", decimal=",") == (0.1, 0.5)


@pytest.mark.parametrize("text", ["1.234", "1.234,5", "<1.5"])
def test_a_point_among_decimal_commas_is_refused_not_guessed(text):
    assert is_bad(text, decimal=",")


def test_words_with_points_survive_decimal_commas():
    parsed = parse_cells(pl.Series(["n.d.", "N.A."]), decimal=",")
    assert parsed.word.tolist() == [-1, 0]
    assert not parsed.bad.size


@pytest.mark.parametrize(
    ("cells", "sign"),
    [
        (["1", "0,5"], ","),
        (["1", "0.5"], "."),
        (["<0,5", None], ","),
        (["0,5", "0.5"], "."),
        (["a,b", "c"], "."),
        (["1", "2"], "."),
    ],
)
def test_the_decimal_sign_is_found(cells, sign):
    assert find_style([pl.Series(cells)]).decimal == sign


def test_numbers_pass_through_unchanged():
    values = np.random.default_rng(0).standard_normal(50)
    parsed = parse_cells(pl.Series(values))
    np.testing.assert_array_equal(parsed.lower, values)
    np.testing.assert_array_equal(parsed.upper, values)


def test_qualifiers_give_the_side_and_unknown_ones_null():
    text = pl.Series(["<", "U", "ND", "", None, "J", "=", ">", " >= ", "ULOQ", "zz", "1"])
    assert parse_qualifiers(text).to_list() == [-1, -1, -1, 0, 0, 0, 0, 1, 1, 1, None, YES]


def test_bad_positions_are_those_of_the_column():
    parsed = parse_cells(pl.Series(["1", "x", "2", None, "y", "<3"]))
    assert parsed.bad.tolist() == [1, 4]


@pytest.mark.parametrize("torn", ["e-3", "E-3", "12e", "1.5E", "J0.03"])
def test_what_is_left_of_a_number_is_not_a_mark(torn):
    assert parse_cells(pl.Series([torn, "1"])).bad.tolist() == [0]


def test_a_mark_behind_a_number_and_a_space_is_one():
    parsed = parse_cells(pl.Series(["12 E", "0.5 U"]))
    assert parsed.lower.tolist() == [12, -np.inf]
    assert parsed.upper.tolist() == [12, 0.5]
