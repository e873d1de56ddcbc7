"""Units of long tables: what is one unit, whose it is, and what keeps columns apart."""

import pytest

from declip.io import TableFileError, read_table

HEAD = "site,analyte,result,unit,detection limit,detection limit unit\n"


def read(folder, lines, **asked):
    path = folder / "long.csv"
    path.write_text(HEAD + lines, encoding="utf-8")
    return read_table(path, **asked)


def test_units_kept_apart_put_a_nondetect_in_the_column_of_its_limits_unit(tmp_path):
    lines = "a,Pb,1,ug/l,,\nb,Pb,,,2,ug/l\nc,Pb,.003,mg/l,,\n"
    found = read(tmp_path, lines, columns=["analyte", "unit"])
    assert list(found.intervals.col_labels) == ["Pb / ug/l", "Pb / mg/l"]


def test_the_remedy_for_mixed_units_is_one_that_reads_the_file(tmp_path):
    lines = "a,Pb,1,ug/l,,\nb,Pb,,,2,ug/l\nc,Pb,.003,mg/l,,\n"
    with pytest.raises(TableFileError) as caught:
        read(tmp_path, lines)
    columns = caught.value.problems[0].remedies[0].value.split(",")
    assert read(tmp_path, lines, columns=columns).plan.counts["below"] == 1


def test_a_reading_with_units_as_columns_is_read_again_alike_from_its_options(tmp_path):
    lines = "a,Pb,1,ug/l,,\nb,Pb,,,2,ug/l\nc,Pb,.003,mg/l,,\n"
    found = read(tmp_path, lines, columns=["analyte", "unit"])
    again = read(tmp_path, lines, **found.plan.as_options())
    assert again.plan.counts == found.plan.counts


def test_a_line_without_a_value_is_in_the_unit_of_its_limit(tmp_path):
    lines = "a,Pb,1,ug/l,,\nb,Pb,,mg/l,2,ug/l\nb,As,1,ug/l,,\n"
    assert read(tmp_path, lines).plan.counts["below"] == 1


@pytest.mark.parametrize("other", ["ug/L", "UG/L", "µg/l", "μg/L", "ug / l"])
def test_spellings_of_a_unit_are_one_unit(tmp_path, other):
    lines = f"a,Pb,1,ug/l,,\nb,Pb,2,{other},,\nb,As,1,ug/l,,\n"
    assert read(tmp_path, lines).intervals.n_exact == 3


def test_spellings_of_a_unit_are_one_column(tmp_path):
    lines = "a,Pb,1,ug/l,,\nb,Pb,,,2,UG/L\nc,Pb,.003,mg/l,,\nd,Pb,3,µg/L,,\n"
    found = read(tmp_path, lines, columns=["analyte", "unit"])
    assert list(found.intervals.col_labels) == ["Pb / ug/l", "Pb / mg/l"]


@pytest.mark.parametrize(("one", "other"), [("mg/l", "ug/l"), ("mPa", "MPa")])
def test_units_of_other_sizes_are_not_one_unit(tmp_path, one, other):
    lines = f"a,Pb,1,{one},,\nb,Pb,2,{other},,\nb,As,1,{one},,\n"
    with pytest.raises(TableFileError, match="is in"):
        read(tmp_path, lines)


def test_a_value_at_a_limit_of_another_unit_is_refused(tmp_path):
    lines = "a,Pb,ND,mg/l,2,ug/l\nb,Pb,.003,mg/l,,\nb,As,1,mg/l,,\n"
    with pytest.raises(TableFileError, match=r"the value is in 'mg/l', its limit in 'ug/l'"):
        read(tmp_path, lines)


def test_a_value_with_a_limit_of_its_own_has_no_need_of_the_one_beside_it(tmp_path):
    lines = "a,Pb,<.002,mg/l,2,ug/l\nb,Pb,.003,mg/l,,\nb,As,1,mg/l,,\n"
    assert read(tmp_path, lines).plan.counts["below"] == 1
