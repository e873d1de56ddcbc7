"""Files of every form are read, and what is wrong with one is said in one line."""

import numpy as np
import polars as pl
import pytest

from declip import read_limits, read_table
from declip.io import TableFileError

WIDE = "sample,iron,zinc\ns1,<0.05,12\ns2,0.3,>40\ns3,NA,0.1-0.5\n"


@pytest.fixture
def file(tmp_path):
    def make(content, name="table.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return make


def message(path, **options):
    with pytest.raises(TableFileError) as caught:
        read_table(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(path))
    return text.removeprefix(str(path)).lstrip(",: ")


def test_a_wide_table_has_its_labels_and_intervals(file):
    table = read_table(file(WIDE))
    assert table.intervals.row_labels.tolist() == ["s1", "s2", "s3"]
    assert table.intervals.col_labels.tolist() == ["iron", "zinc"]
    lower, upper = table.intervals.to_bounds()
    np.testing.assert_array_equal(lower, [[-np.inf, 12], [0.3, 40], [np.nan, 0.1]])
    np.testing.assert_array_equal(upper, [[0.05, 12], [0.3, np.inf], [np.nan, 0.5]])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(file, separator):
    table = read_table(file(WIDE.replace(",", separator)))
    assert table.format.separator == separator
    assert table.intervals.shape == (3, 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_the_encoding_is_found(file, encoding):
    table = read_table(file(WIDE.replace("iron", "fér"), encoding=encoding))
    assert table.format.encoding == encoding
    assert table.intervals.col_labels[0] == "fér"


def test_an_encoding_may_be_asked_for(file):
    table = read_table(file(WIDE.replace("iron", "żelazo"), encoding="cp1250"), encoding="cp1250")
    assert table.intervals.col_labels[0] == "żelazo"


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_line_ends_of_other_systems_are_read(file, newline):
    assert read_table(file(WIDE.replace("\n", newline))).intervals.shape == (3, 2)


def test_decimal_commas_are_found_beside_semicolons(file):
    text = WIDE.replace(",", ";").replace(".", ",")
    found, same = (np.stack(read_table(file(x)).intervals.to_bounds()) for x in (text, WIDE))
    np.testing.assert_array_equal(found, same)


def test_decimal_commas_within_quotes_are_read_when_asked_for(file):
    path = file('sample,iron\na,"0,5"\nb,"1,5"\n')
    assert read_table(path, decimal=",").intervals.by_row.value.tolist() == [0.5, 1.5]
    assert message(path).startswith("line 2, column 'iron': '0,5' is not a number: decimal=',' if")


def test_a_table_of_numbers_alone_has_no_header(file):
    table = read_table(file("1,2.5\n3,4\n"))
    assert table.intervals.shape == (2, 2)
    assert table.intervals.col_labels is None


def test_numbers_that_count_upwards_are_a_header(file):
    assert read_table(file("2001,2002\n3,4\n")).intervals.col_labels.tolist() == ["2001", "2002"]
    assert read_table(file("2001,2002\n3,4\n"), header=False).intervals.shape == (2, 2)


def test_numeric_labels_are_known_by_their_header_and_stay_text(file):
    table = read_table(file("Sample ID,iron\n007,1\n008,2\n"))
    assert table.intervals.row_labels.tolist() == ["007", "008"]


def test_a_slip_in_the_first_column_does_not_make_labels_of_it(file):
    assert message(file("iron,zinc\n1,2\n3x,4\n5,6\n")).startswith("line 3, column 'iron': '3x'")


def test_a_long_table_is_known_by_its_header(file):
    table = read_table(file("user,item,rating\nu2,b,3\nu1,b,4\nu2,a,>5\n"))
    assert table.format.layout == "long"
    assert table.intervals.row_labels.tolist() == ["u2", "u1"]
    assert table.intervals.col_labels.tolist() == ["b", "a"]
    np.testing.assert_array_equal(table.intervals.to_bounds()[0], [[3, 5], [4, np.nan]])


def test_a_long_table_without_header_takes_the_first_three_columns(file):
    table = read_table(file("1\t10\t3\t88\n2\t10\t5\t89\n"), layout="long", header=False, ceiling=5)
    assert table.intervals.shape == (2, 1)
    assert (table.intervals.n_exact, table.intervals.n_censored) == (1, 1)


def test_columns_of_a_long_table_may_be_named(file):
    path = file("what,who,how much\nx,a,1\ny,a,2\n")
    table = read_table(path, rows="who", columns="what", values="how much")
    assert table.intervals.col_labels.tolist() == ["x", "y"]


def test_qualifiers_and_limits_of_a_long_table_are_read(file):
    text = (
        "sample,analyte,result,qualifier,limit\n"
        "s1,x,0.2,U,0.5\ns1,y,7,=,1\ns2,x,,<,0.4\ns2,y,90,>,\ns3,x,ND,,0.3\ns3,y,,,\n"
    )
    lower, upper = read_table(file(text)).intervals.to_bounds()
    inf, nan = np.inf, np.nan
    np.testing.assert_array_equal(lower, [[-inf, 7], [-inf, 90], [-inf, nan]])
    np.testing.assert_array_equal(upper, [[0.5, 7], [0.4, inf], [0.3, nan]])


def test_a_qualifier_column_of_a_wide_table_is_no_column_of_values(file):
    table = read_table(file("id,iron,iron_qualifier,zinc\na,0.5,<,1\nb,2,,3\n"))
    assert table.intervals.col_labels.tolist() == ["iron", "zinc"]
    assert table.intervals.to_bounds()[0][0, 0] == -np.inf


def test_words_stand_for_the_limits_of_their_column(file):
    limits = file("analyte,LOD,ULOQ\niron,0.05,\nzinc,0.2,40\n", "limits.csv")
    path = file("id,iron,zinc\na,ND,1\nb,2,>ULOQ\nc,1,BDL\n")
    inf = np.inf
    lower, upper = read_table(path, limits=limits).intervals.to_bounds()
    np.testing.assert_array_equal(lower, [[-inf, 1], [2, 40], [1, -inf]])
    np.testing.assert_array_equal(upper, [[0.05, 1], [2, inf], [1, 0.2]])
    same = read_table(path, limits={"iron": (0.05, None), "zinc": (0.2, 40)})
    np.testing.assert_array_equal(same.intervals.to_bounds()[1], upper)


def test_limits_of_columns_replace_that_of_the_table(file):
    path = file("id,x,y\na,5,7\nb,1,2\n")
    table = read_table(path, ceiling=5, limits={"y": (None, 7)})
    assert table.intervals.by_row.lower.tolist() == [5, 7]


def test_half_a_step_inside_the_end_of_whole_numbers_is_a_limit_at_it(file):
    path = file("a,b\n" + "1,5\n2,4\n3,3\n4,5\n5,1\n5,2\n" * 4)
    half, whole = (
        read_table(path, ceiling=ceiling, floor=floor).intervals.to_bounds()
        for ceiling, floor in ((4.5, 1.5), (5, 1))
    )
    np.testing.assert_array_equal(half, whole)
    with pytest.raises(TableFileError, match="are above their ceiling"):
        read_table(path, ceiling=4.4)


def test_blank_lines_are_skipped_and_lines_counted_as_in_the_file(file):
    text = "\nid,x\n\na,1\n\n\nb,oops\nc,3\n\n"
    assert message(file(text)).startswith("line 7, column 'x': 'oops'")


def test_lines_within_quotes_are_counted(file):
    assert message(file('id,x\n"a\nb",1\nc,oops\n')).startswith("line 4, column 'x'")


def test_empty_columns_of_a_spreadsheet_are_dropped(file):
    assert read_table(file("id,x,,\na,1,,\nb,2,,\n")).intervals.shape == (2, 1)


def test_a_row_of_empty_cells_is_a_row(file):
    assert read_table(file("x,y\n1,2\n,\n3,4\n")).intervals.shape == (3, 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("\n\n \n", "the file is empty"),
        ("a,b\n", "there is a header, but no line below it"),
        ("a,b\n1,2\n3\n", "line 3: it has 1 field, where the first has 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3: it has 3 fields, where the first has 2"),
        ("a,a\n1,2\n", "two columns are named 'a' (fields 1 and 2 of the header)"),
        (
            "id,x\na,ND\n",
            "line 2, column 'x': 'ND' needs the floor of its column: floor=",
        ),
        ("id,x\na,>ULOQ\n", "line 2, column 'x': '>ULOQ' needs the ceiling of its column"),
        ("id,x\na,inf\n", "line 2, column 'x': 'inf' is not a finite number"),
        ("id,x\na,1e200\n", "line 2, column 'x': the number is too large"),
        ("id,x\na,\nb,NA\n", "the table has no observed cell"),
        ("id,x\na,5-1\n", "line 2, column 'x': '5-1'"),
        ("id\tx\na\t1.5\nb\t1,5\n", "line 3, column 'x': '1,5' is not a number"),
        (
            "row,column,value\na,x,1\nb,x,2\na,x,3\n",
            "line 4, column 'value': row 'a', column 'x' was",
        ),
        ("row,column,value,qualifier\na,x,1,?!\n", "line 2, column 'value': the qualifier '?!' is"),
        ("row,column,value,limit\na,x,ND,<3\n", "line 2, column 'limit': the limit '<3' is"),
        ("row,column,value,qualifier\na,x,<1,>\n", "line 2, column 'value': the cell and its"),
        ("row,column,value,qualifier\na,x,1-2,>\n", "line 2, column 'value': a range with a"),
        ("\0\1\2\3", "this is not a text file"),
        ('a,b\n"1,2\n3,4\n', "line 2: its quotation marks do not match"),
    ],
)
def test_bad_text_is_an_error_that_names_the_place(file, text, says):
    assert message(file(text)).startswith(says)


def test_control_characters_and_long_cells_do_not_reach_the_message(file):
    text = message(file("id,x\na,\x1b[31m" + "y" * 500 + "\n"))
    assert "\x1b" not in text
    assert len(text) < 300


def test_html_and_markup_in_names_stay_text(file):
    table = read_table(file("id,<script>alert(1)</script>\na,1\nb,2\n"))
    assert table.intervals.col_labels.tolist() == ["<script>alert(1)</script>"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rows": "nobody"}, "there is no column 'nobody'; there are 'sample', 'iron', 'zinc'"),
        ({"ignore": ["nobody"]}, "there is no column 'nobody'"),
        ({"ceiling": {"lead": 5}}, "ceiling names column 'lead', which the table does not have"),
        ({"ceiling": 5}, "1 of 2 values (50.0%) are above their ceiling, worst row 's1'"),
        ({"separator": ",,"}, "the separator must be one character"),
        ({"decimal": "x"}, "the decimal sign must be '.' or ','"),
        ({"encoding": "klingon"}, "there is no encoding 'klingon'"),
        ({"encoding": "utf-32"}, "line 1: the text is not utf-32"),
        ({"layout": "round"}, "layout must be 'wide' or 'long'"),
        ({"layout": "long", "rows": "sample"}, "a long table: say which column holds the"),
    ],
)
def test_a_wrong_option_is_an_error_in_one_line(file, options, says):
    assert message(file(WIDE), **options).startswith(says)


@pytest.mark.parametrize("name", ["x.doc", "x", "x.csv.exe", ".hidden"])
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    assert "the name must end in one of" in message(tmp_path / name)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    assert message(tmp_path / "no.csv") == "there is no such file"
    assert message(tmp_path / "no.npz") == "there is no such file"
    assert message(tmp_path / "folder.csv") == "this is a folder, not a file"


@pytest.mark.parametrize("name", ["x.parquet", "x.xlsx", "x.npz", "x.mtx"])
@pytest.mark.parametrize("content", [b"", b"not what it seems", b"PK\x03\x04garbage"])
def test_a_file_that_is_not_what_its_name_says_is_refused(file, name, content):
    assert "cannot be read as" in message(file(content, name))


def test_pickles_are_never_loaded(file, tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, table=np.array([[object()]], dtype=object))
    assert "cannot be read as npz" in message(path)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"a": np.ones(3)}, "it needs an array 'table' of two dimensions; it has 'a'"),
        ({"a": np.ones((2, 2)), "b": np.ones((2, 2))}, "it needs an array 'table'"),
        ({"table": np.ones((2, 2)), "row_labels": np.array(["a"])}, "row_labels has shape (1,)"),
        ({"table": np.array([["a", "b"]])}, "cannot be read as npz"),
    ],
)
def test_bad_npz_files_are_refused(tmp_path, arrays, says):
    np.savez(tmp_path / "x.npz", **arrays)
    assert message(tmp_path / "x.npz").startswith(says)


@pytest.mark.parametrize("field", ["pattern", "complex"])
def test_matrix_market_files_without_real_numbers_are_refused(file, field):
    entry = "1 1" if field == "pattern" else "1 1 2.0 3.0"
    text = f"%%MatrixMarket matrix coordinate {field} general\n2 2 1\n{entry}\n"
    assert f"of {field} numbers" in message(file(text, "x.mtx"))


def test_an_error_in_a_matrix_market_file_names_its_line(file):
    text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.0\n3 1 2.0\n"
    assert message(file(text, "x.mtx")) == "line 4: the entry lies outside of the matrix"


def test_parquet_keeps_numbers_for_labels(tmp_path):
    frame = pl.DataFrame({"user": [7, 7, 3], "item": [1, 2, 1], "rating": [4.0, None, 5.0]})
    frame.write_parquet(tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet", ceiling=5)
    assert table.intervals.row_labels.tolist() == [7, 3]
    assert (table.intervals.n_exact, table.intervals.n_censored) == (1, 1)


def test_parquet_columns_of_text_and_numbers_mix(tmp_path):
    frame = pl.DataFrame({"id": ["a", "b"], "x": ["<0.5", "2"], "y": [1 / 3, 4.0]})
    frame.write_parquet(tmp_path / "x.parquet")
    lower, upper = read_table(tmp_path / "x.parquet").intervals.to_bounds()
    np.testing.assert_array_equal(upper, [[0.5, 1 / 3], [2, 4]])
    assert lower[0, 0] == -np.inf


def test_parquet_dates_are_refused(tmp_path):
    frame = pl.DataFrame({"id": ["a"], "x": [1.0], "when": ["2020-01-01"]})
    frame.with_columns(pl.col("when").str.to_date()).write_parquet(tmp_path / "x.parquet")
    assert message(tmp_path / "x.parquet").startswith("column 'when': a column of Date")


def test_tables_of_limits_are_checked(file):
    for text, says in [
        ("analyte,note\niron,5\n", "a table of limits needs a column 'floor' or"),
        ("analyte,lod\niron,abc\n", "line 2, column 'lod': 'abc' is neither"),
        ("analyte,lod\niron,1\niron,2\n", "line 3, column 'analyte': this column was named before"),
        ("analyte,lod,loq\niron,1,2\n", "column 'loq': two columns hold the same limit"),
    ]:
        with pytest.raises(TableFileError, match=r"limits\.csv") as caught:
            read_limits(file(text, "limits.csv"))
        assert says in str(caught.value)


def test_labels_are_numbered_by_first_appearance_however_many_there_are():
    from declip.io.labels import number_labels

    rng = np.random.default_rng(0)
    given = rng.integers(0, 30_000, 100_000)
    codes, labels = number_labels(pl.Series(given).cast(pl.String))
    _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    np.testing.assert_array_equal(codes, rank[inverse])
    np.testing.assert_array_equal(labels.cast(pl.Int64), given[np.sort(first)])


def test_labels_that_share_a_slot_are_told_apart(monkeypatch):
    from declip.io import labels

    monkeypatch.setattr(labels, "_SLOTS", 4)
    codes, names = labels.number_labels(pl.Series(list("abcadbefghzaijk")))
    assert [names[int(code)] for code in codes] == list("abcadbefghzaijk")
    assert names.to_list() == list("abcdefghzijk")
