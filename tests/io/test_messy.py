"""Files as people have them: what they mean is found, or asked about."""

from pathlib import Path

import numpy as np
import openpyxl
import pytest

import declip
from declip import read_table, write_table
from declip.io import TableFileError


def read(folder, text, name="t.csv", **said):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_table(path, **said)


def ends(table):
    """Return the bounds of all cells by row and column label."""
    cells = table.intervals
    rows, cols, lower, upper = cells.triplets()
    return {
        (cells.row_labels[i], cells.col_labels[j]): (low, high)
        for i, j, low, high in zip(rows, cols, lower.tolist(), upper.tolist(), strict=True)
    }


PROTEINS = "Protein IDs\tGene names\tPeptides\tScore\tLFQ intensity a\tLFQ intensity b\t" + (
    "LFQ intensity c\tid\n"
)


def test_a_matrix_of_proteins_is_no_list_of_cells(tmp_path):
    lines = "".join(
        f"P{i};Q{i}\tG{i}\t{i}\t{i}.5\t{i + 3}00\t0\t{i + 7}00\t{i}\n" for i in range(9)
    )
    plan = read(tmp_path, PROTEINS + lines, "proteinGroups.txt").plan
    assert plan.roles.layout == "wide"
    assert plan.roles.values == ("LFQ intensity a", "LFQ intensity b", "LFQ intensity c")
    assert plan.roles.rows == ("Protein IDs",)
    assert {"Peptides", "Score", "id"} <= set(plan.roles.aside)
    assert "9 intensities are 0: missing=['0'] if nothing was found there" in str(plan)


def test_a_column_of_limits_holds_for_all_samples_of_its_row(tmp_path):
    text = "Analyte,Unit,LOD,S1,S2\nAs,ug/L,0.4,<LOD,2\nCd,ug/L,0.1,0.3,ND\nPb,ug/L,0.2,1,5\n"
    found = read(tmp_path, text)
    assert found.plan.roles.values == ("S1", "S2")
    assert ends(found)["As", "S1"] == (-np.inf, 0.4)
    assert ends(found)["Cd", "S2"] == (-np.inf, 0.1)
    assert "the limit in 'LOD'." in str(found.plan)


def test_a_row_of_limits_is_no_sample(tmp_path):
    text = "sample,As,Cd\nLOD,0.4,0.5\na,<LOD,2\nb,0.1,ND\nc,1,5\n"
    found = read(tmp_path, text)
    assert found.intervals.row_labels.tolist() == ["a", "b", "c"]
    assert ends(found)["a", "As"] == (-np.inf, 0.4)
    assert ends(found)["b", "Cd"] == (-np.inf, 0.5)
    assert ends(found)["b", "As"] == (0.1, 0.1)  # the limits are those of words alone
    assert "Line 2 holds the limits of words such as ND" in str(found.plan)
    assert ends(read_table(found.path, **found.plan.as_options())) == ends(found)
    again = write_table(np.ones((3, 2)), tmp_path / "out.csv", like=found).read_text()
    assert again.splitlines()[1] == "LOD,0.4,0.5"
    with pytest.raises(TableFileError, match=r"several rows of limits.*skip=\[2,3\]"):
        read(tmp_path, text.replace("a,<LOD", "LOQ,1,1\na,<LOD"))


def test_rows_of_both_limits_hold_for_words_of_both_sides(tmp_path):
    text = "well,IL6,TNF\nA1,OVER,2\nA2,<LLOQ,OVRFLW\nA3,5,6\nLLOQ,1,1.5\nULOQ,40,50\n"
    found = read(tmp_path, text)
    assert found.intervals.row_labels.tolist() == ["A1", "A2", "A3"]
    assert ends(found)["A1", "IL6"] == (40, np.inf)
    assert ends(found)["A2", "IL6"] == (-np.inf, 1)
    assert ends(found)["A2", "TNF"] == (50, np.inf)
    assert ends(read(tmp_path, text, ceiling={"IL6": 60}))["A1", "IL6"] == (60, np.inf)
    with pytest.raises(TableFileError, match=r"such as OVER could mean any.*ceiling="):
        read(tmp_path, text + "ULOD,9,9\n")


def test_how_far_a_sample_was_diluted_is_no_value(tmp_path):
    text = "well,Dilution,IL6,TNF\nA1,100,3,2\nA2,100,<1,5\nA3,50,5,6\n"
    assert read(tmp_path, text).plan.roles.values == ("IL6", "TNF")


def test_titles_that_a_spreadsheet_padded_with_separators_are_titles(tmp_path):
    text = "Bericht Nr. 7;;\nfür das Werk;;\n;;\nProbe;Blei;Zink\nP1;<0,5;1,5\nP2;2;3\n"
    found = read(tmp_path, text)
    assert found.intervals.col_labels.tolist() == ["Blei", "Zink"]
    assert [(s.line, s.what) for s in found.plan.skipped] == [(k, "title") for k in (1, 2, 3)]
    assert ends(read_table(found.path, **found.plan.as_options())) == ends(found)
    assert write_table(found.intervals, tmp_path / "o.csv", like=found).read_text() == text
    assert read(tmp_path, text.replace("für das Werk", "Werk")).plan.skipped[1].text == "Werk;;"


AIR = "Messstelle;Messung am;Stoff;Wert\n" + "".join(
    f"M{i};{day:02}.03.2022 08:00;{name};{i + day},5\n"
    for i in range(3) for day in (1, 2) for name in ("NO2", "SO2")
)  # fmt: skip


def test_dates_tell_lines_apart_whatever_their_column_is_called(tmp_path):
    plan = read(tmp_path, AIR).plan
    assert plan.roles.rows == ("Messstelle", "Messung am")
    assert plan.counts["rows"] == 6


def test_the_fraction_tells_columns_apart_also_where_only_some_have_one(tmp_path):
    text = "site,analyte,fraction,result\n" + "".join(
        f"s{i},{name},{fraction},{i + 1}\n"
        for i in range(4)
        for name, fraction in (("As", "total"), ("As", "dissolved"), ("pH", ""))
    )
    found = read(tmp_path, text)
    assert found.plan.roles.columns == ("analyte", "fraction")
    assert found.intervals.shape == (4, 3)


def test_limits_in_units_of_their_own_are_not_mixed_with_values_in_others(tmp_path):
    head = "site,analyte,result,unit,detection limit,detection limit unit\n"
    text = head + "a,As,3,ug/l,,\na,Pb,1,ug/l,,\nb,As,,,0.002,mg/l\nb,Pb,,,1,ug/l\n"
    with pytest.raises(TableFileError, match="'As' is in 'ug/l' and in 'mg/l'"):
        read(tmp_path, text)
    assert read(tmp_path, text.replace("0.002,mg/l", "2,ug/l")).plan.counts["below"] == 2


def test_what_tells_repeated_cells_apart_is_named(tmp_path):
    text = "line,site,analyte,bottle,result\n" + "".join(
        f"{4 * i + 2 * j + k},s{i},a{j},{k},{i + j}\n"
        for i in range(3) for j in range(2) for k in range(2)
    )  # fmt: skip
    with pytest.raises(TableFileError, match=r"rows=\['site', 'bottle'\] names what tells"):
        read(tmp_path, text, rows="site")


def test_an_unknown_word_may_lie_on_either_side(tmp_path):
    with pytest.raises(TableFileError, match=r"'below'.*'above'.*'missing'"):
        read(tmp_path, "id,x,y\na,1,off the top\nb,2,3\nc,4,5\n")


def test_answers_in_words_are_asked_for_as_numbers_once(tmp_path):
    lines = "".join(f"{i},agree,{'disagree' if i % 3 else 'not sure'}\n" for i in range(9))
    with pytest.raises(TableFileError, match=r"words \('agree', 'disagree', 'not sure'\)") as told:
        read(tmp_path, "id,q1,q2\n" + lines)
    assert len(told.value.problems) == 1


def test_registry_numbers_of_substances_are_no_values(tmp_path):
    text = "Analyte\tCAS\tLOQ\tS1\tS2\nAtrazin\t1912-24-9\t0.5\t<LOQ\t2\n" + (
        "Diuron\t330-54-1\t0.1\t3\t1\n"
    )
    assert read(tmp_path, text, "t.tsv").plan.roles.values == ("S1", "S2")


def test_a_column_of_codes_is_one_problem_with_a_remedy(tmp_path):
    text = "id,code,x,y\n" + "".join(f"r{i},{i}-{i}-x7,{i},{i + 1}\n" for i in range(6))
    with pytest.raises(TableFileError, match=r"ignore=\['code'\]") as told:
        read(tmp_path, text)
    (problem,) = told.value.problems
    assert problem.count == 6


def test_cells_that_cannot_be_read_need_no_limit_as_well(tmp_path):
    text = 'store,week,sales,sold out\n1,1,"1,200",yes\n1,2,300,no\n2,1,200,no\n2,2,100,no\n'
    with pytest.raises(TableFileError, match="'1,200' is 1200 or") as told:
        read(tmp_path, text)
    assert len(told.value.problems) == 1


@pytest.mark.parametrize("cell", ["<\uff15", "\u0663.5", "1\u00b2"])
def test_digits_other_than_0_to_9_are_named_and_not_taken_for_a_word(tmp_path, cell):
    with pytest.raises(TableFileError, match="has digits other than 0 to 9") as told:
        read(tmp_path, f"id,x,y\na,{cell},2\nb,3,4\nc,1,2\n")
    assert "marks" not in str(told.value)


def test_detected_not_quantified_is_a_value_if_one_is_there(tmp_path):
    text = "station,analyte,result,ResQualCode,MDL\na,x,0.5,DNQ,0.4\na,y,,ND,0.4\nb,x,3,=,0.4\n"
    found = read(tmp_path, text + "b,y,2,=,0.4\n")
    assert found.plan.roles.of("ResQualCode") == "qualifier"
    assert ends(found)["a", "x"] == (0.5, 0.5)
    assert ends(found)["a", "y"] == (-np.inf, 0.4)


def test_limits_are_known_by_their_name_in_french(tmp_path):
    text = "Échantillon;Paramètre;Résultat;Limite de quantification\na;x;;0,5\na;y;2;0,5\n"
    assert read(tmp_path, text + "b;x;3;0,5\nb;y;1,5;0,5\n").plan.counts["below"] == 1


@pytest.mark.parametrize("code", ["-999", "99999"])
def test_a_number_that_may_be_a_code_is_told(tmp_path, code):
    text = "id,x,y\n" + "".join(f"r{i},{i},{code if i == 3 else i + 1}\n" for i in range(8))
    note = f"1 cell holds {code}, far from all others: missing=['{code}'] if it stands for"
    assert note in str(read(tmp_path, text).plan)
    assert "far from all others" not in str(read(tmp_path, text, missing=[code]).plan)


def test_values_near_a_code_are_not_suspected(tmp_path):
    text = "id,x,y\n" + "".join(f"r{i},{990 + i},{-90 - i}\n" for i in range(12))
    assert "far from all others" not in str(read(tmp_path, text).plan)


def test_a_row_of_sums_is_told(tmp_path):
    text = "id,x,y\na,1,2\nb,3,4\nTotal,4,6\n"
    assert "Line 4 is named 'Total': skip=[4] if it sums up the others" in str(
        read(tmp_path, text).plan
    )


def test_values_below_their_limits_are_told_with_what_takes_them_as_censored(tmp_path):
    text = "SampleID,Assay,NPX,LOD\n" + "".join(
        f"s{i},{a},{i - 2},-1\n" for i in range(6) for a in "xy"
    )
    found = read(tmp_path, text)
    assert "2 values lie below their limit and count as they were measured" in str(found.plan)
    assert "below_limit='censored' takes them as below it" in str(found.plan)
    said = read_table(found.path, below_limit="censored")
    assert said.intervals.n_censored == 4  # two below, two at the limit


@pytest.mark.parametrize("name", ["conc_ppm", "Result (mg/L)", "Concentration ng/ml", "value"])
def test_a_value_column_is_known_with_its_unit_behind_it(tmp_path, name):
    text = f"bird_id,age,analyte,{name},qual\n" + "".join(
        f"h{i},old,{a},{'<2' if i == 1 else i},{'U' if i == 1 else ''}\n"
        for i in range(5)
        for a in "xy"
    )
    roles = read(tmp_path, text).plan.roles
    assert (roles.layout, roles.values, roles.qualifier) == ("long", (name,), {name: "qual"})


def test_a_column_called_qual_marks_the_values_before_it(tmp_path):
    found = read(tmp_path, "id,x,qual,y\na,1,,2\nb,3,BDL,4\nc,5,U,6\n")
    assert found.plan.roles.values == ("x", "y")
    assert ends(found)["b", "x"] == (-np.inf, 3)


def test_names_in_two_rows_are_one_header(tmp_path):
    text = "sample,iron,,zinc,\n,result,flag,result,flag\na,1,<,2,\nb,3,,4,<\nc,5,,6,\n"
    found = read(tmp_path, text)
    assert found.intervals.col_labels.tolist() == ["iron", "zinc"]
    assert found.plan.roles.qualifier == {"iron": "iron flag", "zinc": "zinc flag"}
    assert ends(found)["a", "iron"] == (-np.inf, 1)
    back = write_table(np.full((3, 2), 7.0), tmp_path / "out.csv", like=found).read_text()
    assert back.splitlines()[:2] == text.splitlines()[:2]


def test_merged_names_over_names_in_excel_are_one_header(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    rows = [["Survey"], ["ID", "Block A", None, "Block B", None, "Date"]]
    rows += [[None, "q1", "q2", "q3", "q4", None], [None, "1-7", "1-7", "1-7", "1-7", None]]
    for row in [*rows, *([i, *(1 + (i + k) % 7 for k in range(4)), "x"] for i in range(1, 9))]:
        sheet.append(row)
    for area in ("A1:F1", "B2:C2", "D2:E2"):
        sheet.merge_cells(area)
    book.save(tmp_path / "t.xlsx")
    found = read_table(tmp_path / "t.xlsx")
    assert found.intervals.col_labels.tolist() == ["q1", "q2", "q3", "q4"]
    assert found.intervals.shape == (8, 4)  # the row of scales is no person
    assert (found.plan.roles.rows, found.plan.roles.aside) == (("ID",), ("Date",))


GERMAN = (
    "Prüfbericht 2024-113;;;;\nAuftraggeber: Stadtwerke;;;;\n\nProbe;Datum;Eisen;Zink;Blei\n"
    ";;mg/l;mg/l;µg/l\nP1;01.03.2024;<0,3;1,5;<BG\nP2;02.03.2024;0,7;n.n.;2,5\n"
    "P3;03.03.2024;0,9;1,1;3,5\n\nn.n. = nicht nachweisbar;;;;\nBG = Bestimmungsgrenze\n"
)


def test_titles_and_notes_may_have_separators_behind_them(tmp_path):
    found = read(tmp_path, GERMAN, floor={"Zink": 0.4, "Blei": 0.5})
    assert [(s.line, s.what) for s in found.plan.skipped] == [
        *((1, "title"), (2, "title"), (10, "comment"), (11, "comment"), (5, "units"))
    ]
    assert ends(found)["P1", "Blei"] == (-np.inf, 0.5)
    assert ends(found)["P1", "Eisen"] == (-np.inf, 0.3)
    assert found.plan.units["Blei"] == "µg/l"


def test_all_lines_of_another_width_are_told_with_a_way_out(tmp_path):
    text = "# made by hand\nid,x,y\na,1,2\nb,3\nc,5,6\nd,7,8,9\ne,1,1\n"
    says = r"line 4: it has 2 fields, where the first has 3; line 6 also differs: skip=\[1,4,6\] if"
    with pytest.raises(TableFileError, match=says):
        read(tmp_path, text)
    assert read(tmp_path, text, skip=[1, 4, 6]).intervals.shape == (3, 2)


@pytest.mark.parametrize("gap", [" ", "\u00a0", "\u202f", "'"])
def test_blanks_between_thousands_are_read_where_a_fraction_shows_one_number(tmp_path, gap):
    text = f"id;x;y\na;1{gap}201,5;2,5\nb;12{gap}001;0,5\nc;7;3\n"
    found = read(tmp_path, text)
    assert found.format.thousands == gap
    assert ends(found)["a", "x"] == (1201.5, 1201.5)
    assert ends(found)["b", "x"] == (12001, 12001)


def test_two_numbers_in_a_cell_are_not_one(tmp_path):
    with pytest.raises(TableFileError, match="'1 201' is not a number: thousands=' ' if this is"):
        read(tmp_path, "id;x;y\na;1 201;2,5\nb;7;3\n")


@pytest.mark.parametrize(
    ("cell", "mark"),
    [("5 (very good)", "(very good)"), ("ca. 5", "ca."), ("5 *", "*"), ("€5", "€"), ("~5", "~")],
)
def test_a_mark_that_is_not_known_is_asked_about_once_for_all_columns(tmp_path, cell, mark):
    text = f"id,x,y\na,{cell},2\nb,3,{cell}\nc,5,{cell}\n"
    with pytest.raises(TableFileError) as caught:
        read(tmp_path, text)
    (problem,) = caught.value.problems
    assert problem.count == 3
    assert "(and in 1 more column)" in problem.what
    assert [r.value for r in problem.remedies] == [
        f"{mark}={m}" for m in ("exact", "below", "above")
    ]
    found = read(tmp_path, text, marks={mark: "above"})
    assert ends(found)["a", "x"] == (5, np.inf)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a b c\n1 2 3\n4 5 6\n", "set apart by blanks: separator=' '"),
        ("a   b  c\n1   2  3\n", "set apart by blanks: put commas or tabs between them"),
    ],
)
def test_fields_between_blanks_are_not_read_as_one(tmp_path, text, says):
    with pytest.raises(TableFileError, match=says):
        read(tmp_path, text, "t.txt")


def test_single_blanks_between_fields_are_a_separator_when_asked_for(tmp_path):
    found = read(tmp_path, "id x y\na <2 3\nb 5 6\nc 7 8\n", "t.txt", separator=" ")
    assert ends(found)["a", "x"] == (-np.inf, 2)


def test_blanks_beside_drawn_lines_are_no_part_of_labels(tmp_path):
    found = read(tmp_path, "well | iron | zinc\nw1 | <0.5 | 2\nw2 | 3 | 4\n", "t.txt")
    assert ends(found)["w1", "iron"] == (-np.inf, 0.5)


def test_labels_that_differ_in_blanks_alone_are_told(tmp_path):
    text = "site,analyte,value\nA,x,1\nA ,y,2\nB,x,3\nB,y,4\n"
    assert "the rows 'A' and 'A ' differ in blanks alone" in str(read(tmp_path, text).plan)


def test_a_remedy_for_missing_is_the_option_that_reads_the_file(tmp_path):
    from declip.io import Remedy
    from declip.options import as_option

    assert as_option(Remedy("missing", "-999")) == "--missing -999"
    assert as_option(Remedy("marks", "B=exact")) == "--mark B=exact"


def test_check_of_one_column_leads_to_what_can_be_said_of_it(tmp_path, capsys, monkeypatch):
    from declip.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id,conc\n" + "".join(f"r{i},{i or '<1'}\n" for i in range(9)))
    main(["check", "t.csv"])
    out = capsys.readouterr().out
    assert "it needs values of two columns beside each other" in out
    assert out.rstrip().endswith("declip summary t.csv --log")


def test_check_of_values_below_their_limits_offers_to_censor_them(tmp_path, capsys, monkeypatch):
    from declip.cli import main

    monkeypatch.chdir(tmp_path)
    lines = (f"s{i},{a},{(i * 7) % 11 - 4},-1.5\n" for i in range(20) for a in "xyz")
    (tmp_path / "t.csv").write_text("SampleID,Assay,NPX,LOD\n" + "".join(lines))
    main(["check", "t.csv"])
    assert "declip restore t.csv --format olink" in capsys.readouterr().out
    Path("t.csv").write_text(Path("t.csv").read_text().replace("NPX", "value"))
    main(["check", "t.csv"])
    assert "declip restore t.csv --below-limit censored" in capsys.readouterr().out


def test_rows_of_limits_go_through_a_restoration(tmp_path):
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(size=(25, 1)) + 0.3 * rng.normal(size=(25, 3)))
    cells = (",".join("<LOD" if x < 0.5 else f"{x:.2f}" for x in row) for row in values)
    text = "sample,As,Cd,Pb\nLOD,0.5,0.5,0.5\n" + "".join(
        f"s{i},{c}\n" for i, c in enumerate(cells)
    )
    found = read(tmp_path, text)
    restored = declip.restore(found.intervals, log=True, method="column", effort="quick")
    assert (np.asarray(restored.table) > 0).all()


def cells(rows, head, row):
    """Return the text of a table in the long form, with a line for each pair."""
    return head + "".join(row(i, a) for i in range(rows) for a in "xyz")


def test_marks_stand_beside_names_in_capitals(tmp_path):
    text = "Bird,DDE,DDECen,Hg,HgCen\n" + "".join(f"{i},{i}.5,{i % 2},2,0\n" for i in range(9))
    roles = read(tmp_path, text).plan.roles
    assert roles.values == ("DDE", "Hg")
    assert roles.qualifier == {"DDE": "DDECen", "Hg": "HgCen"}


def test_of_two_columns_of_limits_that_at_which_values_lie_is_taken(tmp_path):
    def line(i, a):
        return f"s{i},{a},{'1,U' if i < 2 else f'{i},'},3,1\n"

    found = read(tmp_path, cells(6, "StationID,Analyte,Result,Qual,RL,MDL\n", line))
    assert found.plan.roles.limit == {"Result": "MDL"}
    assert ends(found)["s0", "x"] == (-np.inf, 1)
    assert "'RL' holds limits as well, and is left aside: limit='RL' if values were" in str(
        found.plan
    )
    assert ends(read_table(found.path, limit="RL"))["s0", "x"] == (-np.inf, 3)


def test_a_german_export_is_understood(tmp_path):
    def line(i, a):
        value = f"{i},5;" if i > 1 else "2;U"
        return f"Ü{i};{i + 1:02d}.03.2022;{a};{value};2;µg/L\n"

    head = "Messstelle;Datum;Parameter;Ergebnis;Kennz;BG;Einheit\n"
    found = read(tmp_path, cells(6, head, line))
    assert found.intervals.shape == (6, 3)
    assert found.plan.counts["below"] == 6
    assert found.plan.units == dict.fromkeys("xyz", "µg/L")


def test_branches_articles_and_days_make_a_list_of_cells(tmp_path):
    lines = "".join(
        f"{j + 1}/3/2024,{i % 2},{761000 + i // 2},{i + j},{int(j > 14)}\n"
        for i in range(6)
        for j in range(16)
    )
    plan = read(tmp_path, "date,branch,ean,qty,oos\n" + lines).plan
    assert (plan.roles.rows, plan.roles.columns) == (("branch", "ean"), ("date",))
    assert (plan.side, plan.counts["above"]) == ("above", 6)


def test_lines_that_may_be_cells_are_told(tmp_path):
    text = cells(5, "site,sort,number,more\n", lambda i, a: f"s{i},kind {a},{i},{i + 1}\n")
    plan = read(tmp_path, text).plan
    assert plan.roles.layout == "wide"
    assert "'sort' tells them apart: columns=['sort'] if each line is one cell" in str(plan)


def test_a_cover_is_not_taken_for_the_table(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "Cover"
    for row in (["Staff survey"], ["wave", 2], ["secret", "yes"]):
        book.active.append(row)
    table = book.create_sheet("Answers")
    for row in (["person", "Q1\nlistens", "Q2"], [None, "1-7", "1-7"], ["a", 1, 7], ["b", 3, 4]):
        table.append(row)
    book.save(tmp_path / "t.xlsx")
    plan = read_table(tmp_path / "t.xlsx").plan
    assert plan.format.sheet == "Answers"
    assert "'Q1 listens', 'Q2'. Row 2 holds the ends of the scale." in str(plan)
    assert plan.examples[0].understood == "row 'a', column 'Q1 listens': 1"


def test_thousands_of_values_and_of_limits_are_one_question(tmp_path):
    def line(i, a):
        stock = "990" if i else '"1,190"'
        return f's{i},{a},"1,{i}50",{stock}\n'

    with pytest.raises(TableFileError) as error:
        read(tmp_path, cells(4, "store,week,units_sold,stock\n", line))
    assert len(error.value.problems) == 1
    assert "'1,050' is 1050 or 1.050 (and in 1 more column)" in str(error.value)


def test_an_export_that_was_not_named_is_recognised(tmp_path):
    text = cells(4, "SampleID,Assay,NPX,LOD\n", lambda i, a: f"s{i},{a},{i},2\n")
    note = "Its columns are those of an export of Olink: format='olink' reads them so"
    assert note in str(read(tmp_path, text).plan)
    assert note not in str(read(tmp_path, text, format="olink").plan)


def test_a_line_of_words_below_the_names_is_one_problem_with_one_answer(tmp_path):
    scale = ",years,1 = not at all ... 5 = fully,1 = not at all ... 5 = fully\n"
    text = "id,age,food,shop\n" + scale + "a,30,1,2\nb,40,2,3\nc,50,5,4\n"
    with pytest.raises(TableFileError) as caught:
        read(tmp_path, text)
    (problem,) = caught.value.problems
    assert [(r.option, r.value) for r in problem.remedies] == [("skip", "2")]
    assert read(tmp_path, text, skip=[2]).intervals.n_exact == 9


def test_the_answer_to_a_line_of_words_keeps_other_lines_left_out(tmp_path):
    text = "A survey\n\nid,food,shop\n,bad ... good,bad ... good\na,1,2\nb,2,3\nc,5,4\n"
    with pytest.raises(TableFileError) as caught:
        read(tmp_path, text)
    skip = [int(line) for line in caught.value.problems[0].remedies[0].value.split(",")]
    assert read(tmp_path, text, skip=skip).intervals.shape == (3, 2)


def test_a_code_among_answers_is_asked_about(tmp_path):
    text = "id,food,shop\n" + "".join(f"p{i},{1 + i % 5},{99 if i == 7 else 3}\n" for i in range(9))
    (note,) = read(tmp_path, text).plan.notes
    assert note.remedies[0].value == "99"


def test_a_large_measurement_is_not_taken_for_a_code_of_answers(tmp_path):
    text = "id,x,y\n" + "".join(f"p{i},{1 + i / 8},{99 if i == 7 else 3.5}\n" for i in range(9))
    assert not read(tmp_path, text).plan.notes


@pytest.mark.parametrize(("code", "limits"), [(99, {"ceiling": 5}), (-9, {"floor": 1})])
def test_a_code_beyond_a_limit_is_named_with_what_to_say(tmp_path, code, limits):
    text = "id,food,shop\n" + "".join(f"p{i},{1 + i % 5},{3}\n" for i in range(9))
    text += f"q,{code},{code}\n"
    with pytest.raises(TableFileError) as caught:
        read(tmp_path, text, **limits)
    assert (
        caught.value.problems[0].remedies[0].option,
        caught.value.problems[0].remedies[0].value,
    ) == ("missing", str(code))
    assert read(tmp_path, text, missing=[str(code)], **limits).plan.counts["missing"] == 2


def test_values_beyond_a_limit_that_are_no_codes_are_not_called_missing(tmp_path):
    text = "id,food,shop\n" + "".join(f"p{i},{1 + i / 4},3\n" for i in range(9))
    with pytest.raises(TableFileError, match="Is the ceiling right"):
        read(tmp_path, text, ceiling=2.5)


def test_sales_by_date_are_read_by_their_german_names(tmp_path):
    text = "Datum;Filiale;Artikel;Menge;OOS\n" + "".join(
        f"{day:02}.03.2024;{shop};100{sku};{day + sku};{sku == 1:d}\n"
        for day in range(1, 9) for shop in ("Ulm", "Bonn") for sku in range(3)
    )  # fmt: skip
    roles = read(tmp_path, text).plan.roles
    assert (roles.layout, roles.values) == ("long", ("Menge",))


def test_dates_that_come_again_are_told_where_each_line_is_a_row(tmp_path):
    text = "date,shop,p,q\n" + "".join(
        f"2024-03-{day:02},{shop},{day},{item}\n"
        for day in range(1, 9) for shop in ("Ulm", "Bonn") for item in range(3)
    )  # fmt: skip
    notes = [note.what for note in read(tmp_path, text).plan.notes]
    assert any("several have one date" in note for note in notes)
