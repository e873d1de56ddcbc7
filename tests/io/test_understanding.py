"""How a file is understood: which column is what, which lines are left out, what is asked."""

import numpy as np
import openpyxl
import pytest

from declip import read_table, write_table
from declip.io import TableFileError

FILES = {
    "marks": "Bird,Liver,LiverCen,Egg,Group\n1,0.5,TRUE,2,a\n2,3,FALSE,4,b\n3,1,FALSE,1,a\n",
    "limits": "site,analyte,result,mdl\nA,x,,2\nA,y,3,1\nB,x,5,2\nB,y,1,1\n",
    "stock": "store,sku,date,sales,stock\n1,a,2020-01-02,5,5\n1,a,2020-01-01,3,9\n1,b,2020-01-01"
    ",2,9\n",
    "title": "Survey 2020\n\n# by us\nid,q1,q2\n,mg/L,ug/L\na,1,5\nb,<2,3\n\nNote: done\n",
    "comma": "id;x;y\na;1,5;2\nb;<2,5;1.234,5\n",
    "bare": "1.5,2\n3,>4\n",
}


def write(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", FILES)
def test_the_options_of_a_plan_give_the_same_reading(tmp_path, name):
    path = write(tmp_path, FILES[name])
    table = read_table(path)
    again = read_table(path, **table.plan.as_options())
    for a, b in zip(table.intervals.to_bounds(), again.intervals.to_bounds(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_cell_without_a_value_beside_a_limit_is_below_it(tmp_path):
    plan = read_table(write(tmp_path, FILES["limits"])).plan
    assert (plan.counts["below"], plan.counts["exact"]) == (2, 2)
    assert plan.roles.of("mdl") == "limit"
    assert "without a value, or with one at its limit, lies below the limit in 'mdl'" in str(plan)


def test_what_says_that_nothing_was_measured_is_missing_beside_a_limit_too(tmp_path):
    path = write(tmp_path, FILES["limits"].replace("A,x,,2", "A,x,not measured,2"))
    assert read_table(path).plan.counts["missing"] == 1


def test_titles_comments_units_and_footnotes_are_left_out_and_given_back(tmp_path):
    path = write(tmp_path, FILES["title"])
    table = read_table(path)
    kinds = [(s.line, s.what) for s in table.plan.skipped]
    assert kinds == [(1, "title"), (3, "comment"), (9, "comment"), (5, "units")]
    assert table.plan.units == {"q1": "mg/L", "q2": "ug/L"}
    write_table(table.intervals, tmp_path / "o.csv", like=table)
    assert (tmp_path / "o.csv").read_text() == FILES["title"]


def test_a_title_is_no_reason_to_take_data_for_names(tmp_path):
    with pytest.raises(TableFileError, match="fields, where the first has 1"):
        read_table(write(tmp_path, "lost header\ns1,<0.05,12\ns2,3,4\n"))


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("1,234.5", "2"), (1234.5, 2.0)),
        (("1,234", "0.5"), (1234.0, 0.5)),
        (("1.234,5", "2"), (1234.5, 2.0)),
        (("1,234,567", "2"), (1234567.0, 2.0)),
        (("0,123", "1,234"), (0.123, 1.234)),
    ],
)
def test_thousands_are_read_where_the_file_decides(tmp_path, cells, values):
    path = write(tmp_path, "id;x\na;{}\nb;{}\n".format(*cells))
    assert tuple(read_table(path).intervals.to_bounds()[0][:, 0]) == values


def test_values_in_several_units_are_refused_and_kept_apart_when_asked(tmp_path):
    text = "site,analyte,result,unit\nA,x,1,mg/L\nB,x,2000,ug/L\nB,y,3,mg/L\nA,y,4,mg/L\n"
    path = write(tmp_path, text)
    with pytest.raises(TableFileError, match="'x' is in 'mg/L' and in 'ug/L'") as caught:
        read_table(path)
    assert caught.value.problems[0].remedies[0].value == "analyte,unit"
    assert caught.value.plan.roles.values == ("result",)
    assert read_table(path, columns=["analyte", "unit"]).intervals.shape == (2, 3)


def test_words_and_codes_of_a_wide_table_are_left_aside_and_dates_tell_rows_apart(tmp_path):
    lines = ["A,2020-01-02,L01,1,2", "A,2020-02-02,L02,<3,4", "B,2020-01-02,L01,5,6"]
    text = "\n".join(["site,date,lab,iron,zinc", *lines])
    plan = read_table(write(tmp_path, text)).plan
    assert plan.roles.rows == ("site", "date")
    assert plan.roles.values == ("iron", "zinc")
    assert plan.roles.aside == ("lab",)


def test_a_column_of_true_and_false_that_no_name_explains_is_asked_about(tmp_path):
    path = write(tmp_path, "id,x,flagged,y\na,1,TRUE,2\nb,3,FALSE,4\nc,5,FALSE,6\n")
    with pytest.raises(TableFileError) as caught:
        read_table(path)
    options = [remedy.option for remedy in caught.value.problems[0].remedies]
    assert options == ["qualifier", "ignore"]
    assert read_table(path, qualifier={"x": "flagged"}).plan.counts["below"] == 1


def test_labels_merged_over_rows_of_a_sheet_are_those_of_each_row(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [["site", "date", "iron"], ["A", "d1", 1], [None, "d2", 2], ["B", "d1", 3]]:
        sheet.append(row)
    sheet.merge_cells("A2:A3")
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx", rows=["site", "date"], layout="wide")
    assert table.intervals.row_labels.tolist() == ["A / d1", "A / d2", "B / d1"]


def test_a_file_that_changed_since_it_was_read_is_not_given_back(tmp_path):
    path = write(tmp_path, FILES["marks"])
    table = read_table(path)
    path.write_text(FILES["marks"] + "4,1,FALSE,7,c\n")
    with pytest.raises(TableFileError, match="has changed since it was read"):
        write_table(table.intervals, tmp_path / "o.csv", like=table)


def test_covariates_and_groups_are_told_beside_the_table(tmp_path):
    path = tmp_path / "plates.csv"
    path.write_text(
        "id;age;site;plate;iron;zinc\ns1;34,5;north;p1;<0,5;2\ns2;NA;;p2;1;3\ns3;50;south;p1;2;>4\n"
    )
    table = read_table(path, covariates=["age,site"], groups="plate")
    assert list(table.intervals.col_labels) == ["iron", "zinc"]
    features = table.known["row_features"]
    np.testing.assert_array_equal(features["age"], [34.5, np.nan, 50])
    assert list(features["site"]) == ["north", None, "south"]
    assert list(table.known["groups"]) == ["p1", "p2", "p1"]
    assert [table.plan.roles.of(name) for name in ("age", "plate", "iron")] == [
        "covariate",
        "group",
        "value",
    ]
    assert "'age' and 'site' as features, 'plate' as groups" in str(table.plan)
    again = read_table(path, **table.plan.as_options())
    assert again.plan.roles == table.plan.roles
    back = write_table(table.intervals.to_bounds()[0], tmp_path / "back.csv", like=table)
    assert "s1;34,5;north;p1;" in back.read_text()


def test_lines_of_one_row_that_differ_in_a_covariate_are_refused(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("row,column,value,age\na,x,1,3\na,y,2,4\nb,x,2,5\nb,y,1,5\n")
    with pytest.raises(
        TableFileError, match="'age' says nothing of rows: lines of one row have '3' and '4'"
    ):
        read_table(path, covariates="age")
    path.write_text("row,column,value,age\na,x,1,3\na,y,2,3\nb,x,2,5\nb,y,1,5\n")
    known = read_table(path, covariates="age").known
    np.testing.assert_array_equal(known["row_features"]["age"], [3.0, 5.0])
    with pytest.raises(TableFileError, match="no column 'sex'"):
        read_table(path, covariates="sex")
