"""Files as people have them, from file to result by one command, in the form in which they came."""

import csv
import datetime
import json

import numpy as np
import openpyxl
import pandas as pd
import pytest
from openpyxl.styles import Font

from declip.cli import main
from declip.options import in_own_words

QUICK = ["--method", "column", "--effort", "quick"]


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def lines_of(path, separator=","):
    return [line.split(separator) for line in path.read_text().splitlines()]


def records_of(path, separator=","):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=separator))


def concentrations(n, m, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 1))
    return np.exp(1.5 + shared + 0.4 * rng.normal(size=(n, m)))


@pytest.fixture
def wqp(tmp_path):
    """Return an export of an agency: silver was never detected, limits differ, much is aside."""
    metals = ["Iron", "Zinc", "Copper", "Lead", "Silver"]
    names = [
        *("OrganizationIdentifier", "ActivityStartDate", "MonitoringLocationIdentifier"),
        *("ResultDetectionConditionText", "CharacteristicName", "ResultSampleFractionText"),
        *("ResultMeasureValue", "ResultMeasure/MeasureUnitCode"),
        "DetectionQuantitationLimitMeasure/MeasureValue",
        *("DetectionQuantitationLimitMeasure/MeasureUnitCode", "ResultCommentText"),
    ]
    values, rows = concentrations(36, 5), [names]
    for i in range(36):
        for j, metal in enumerate(metals):
            if (i + j) % 7 == 0:
                continue  # not every site was asked for everything
            limit = 3 if metal == "Silver" or i % 2 else 2
            number = f"{values[i, j]:.3g}" if i else "234"
            below = (i > 0 and values[i, j] < limit) or metal == "Silver"
            condition = "Not Detected" if below else ""
            beside = ["", "", limit, "ug/l"] if below else [number, "ug/l", limit, "ug/l"]
            what = ["ST", f"2020-{1 + i % 12:02}-15", f"ST-{i // 12}", condition, metal, "Total"]
            rows.append([*what, *beside, '"checked, twice"' if j == 0 else ""])
    path = tmp_path / "metals.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return path


def test_an_export_of_the_water_quality_portal_comes_back_line_by_line(tmp_path, capsys, wqp):
    code, _, err = run(capsys, "restore", wqp, "--format", "wqp", "--log", *QUICK)
    assert code == 0
    assert "at most a limit" in err
    before = wqp.read_text().splitlines()
    after = (tmp_path / "metals-restored.csv").read_text().splitlines()
    assert len(before) == len(after)
    assert after[0] == before[0] + ",restored,flag,band_lower,band_upper"
    assert all(new.startswith(old + ",") for old, new in zip(before, after, strict=True))
    records = records_of(tmp_path / "metals-restored.csv")
    for record in records:
        below = record["ResultDetectionConditionText"] == "Not Detected"
        limit = float(record["DetectionQuantitationLimitMeasure/MeasureValue"])
        if record["flag"] == "restored":
            assert below
            assert 0 < float(record["restored"]) <= limit
            assert len(record["restored"].lstrip("0.")) <= 6
        assert (record["flag"] == "exact") != below
        assert "inf" not in record["band_lower"] + record["band_upper"]
    silver = [r for r in records if r["CharacteristicName"] == "Silver"]
    assert {(r["restored"], r["flag"]) for r in silver} == {("<3", "undetermined")}
    assert {r["restored"] for r in records if r["ResultMeasureValue"] == "234"} == {"234"}
    assert any(r["flag"] == "restored" for r in records)


def test_without_a_preset_the_same_file_is_understood_too(capsys, wqp):
    facts = json.loads(run(capsys, "check", wqp, "--json")[1])
    options = facts["options"]
    assert options["rows"] == ["MonitoringLocationIdentifier", "ActivityStartDate"]
    assert list(options["qualifier"].values()) == ["ResultDetectionConditionText"]
    assert facts["diagnosis"]["n_clipped"] > 30


def test_check_shows_the_reading_names_what_cannot_and_ends_with_the_command(capsys, wqp):
    code, out, _ = run(capsys, "check", wqp, "--format", "wqp")
    assert code == 0
    assert out.startswith("The file is read as an export of the Water Quality Portal")
    assert sum(line.startswith("  line ") for line in out.splitlines()) == 3
    assert "4 of 5 columns with clipped cells can be restored." in out
    assert "not 'Silver': it has no exact value" in out
    assert out.rstrip().splitlines()[-1] == f"Next: declip restore {wqp} --format wqp --log"


def test_in_place_replaces_the_value_and_clears_its_mark(tmp_path, capsys, wqp):
    assert run(capsys, "restore", wqp, "--format", "wqp", "--log", "--in-place", *QUICK)[0] == 0
    for record in records_of(tmp_path / "metals-restored.csv"):
        if record["flag"] == "restored":
            assert float(record["ResultMeasureValue"]) > 0
            assert record["ResultDetectionConditionText"] == ""
    assert "restored" not in record


def test_missing_cells_are_added_only_when_asked_for(tmp_path, capsys, wqp):
    n = len(wqp.read_text().splitlines())
    code, _, _ = run(capsys, "restore", wqp, "--format", "wqp", "--log", "--fill", *QUICK)
    assert code == 0
    records = records_of(tmp_path / "metals-restored.csv")
    added = records[n - 1 :]
    assert added
    assert {r["flag"] for r in added} == {"filled"}
    assert all(r["MonitoringLocationIdentifier"] and r["CharacteristicName"] for r in added)


def test_blood_of_herons_with_a_column_of_true_and_false(tmp_path, capsys):
    values = concentrations(30, 3, 1)
    rows = ["Bird,Group,Liver,LiverCen,Blood,BloodCen,Kidney,KidneyCen"]
    for i, row in enumerate(values):
        cells = [f"{max(v, 2):.2f},{str(v < 2).upper()}" for v in row]
        rows.append(f"{i + 1},{'high' if i % 2 else 'low'},{','.join(cells)}")
    path = tmp_path / "herons.csv"
    path.write_text("\n".join(rows) + "\n")
    code, _, err = run(capsys, "restore", path, "--log", *QUICK)
    assert code == 0
    assert "'LiverCen', 'BloodCen' and 'KidneyCen' mark values beyond a limit" in err
    before, after = lines_of(path), lines_of(tmp_path / "herons-restored.csv")
    assert len(before) == len(after)
    for old, new in zip(before[1:], after[1:], strict=True):
        assert old[:2] == new[:2]
        for j in (2, 4, 6):
            if old[j + 1] == "FALSE" or new[j] == old[j]:
                assert old[j : j + 2] == new[j : j + 2]
            else:
                assert float(new[j]) < 2
                assert new[j + 1] == "FALSE"
    assert before != after


def test_a_matrix_of_proteins_keeps_its_annotation_and_its_gaps(tmp_path, capsys):
    values = np.log2(concentrations(40, 6, 2) * 1e6)
    rows = ["Protein IDs\tGene names\tPeptides\t" + "\t".join(f"Intensity S{j}" for j in range(6))]
    for i, row in enumerate(values):
        cells = [
            "" if (i * j) % 11 == 10 else f"<{20.5}" if v < 20.5 else f"{v:.3f}"
            for j, v in enumerate(row)
        ]
        rows.append(f"P{i:05}\tGENE{i}\t{i % 9}\t" + "\t".join(cells))
    path = tmp_path / "proteins.tsv"
    path.write_text("\n".join(rows) + "\n")
    code, _, _ = run(capsys, "restore", path, "--values", "Intensity *", *QUICK)
    assert code == 0
    before, after = lines_of(path, "\t"), lines_of(tmp_path / "proteins-restored.tsv", "\t")
    for old, new in zip(before, after, strict=True):
        assert old[:3] == new[:3]
        for a, b in zip(old[3:], new[3:], strict=True):
            assert a == b or (a == "<20.5" and float(b) <= 20.5)
    assert before != after


def test_zeros_of_an_export_lead_to_a_second_look(tmp_path, capsys):
    path = tmp_path / "proteins.tsv"
    values = 1e6 * concentrations(60, 3)
    lines = [
        [f"P{i}", *("0" if x < 6e5 else f"{x:.0f}" for x in row)] for i, row in enumerate(values)
    ]
    names = ["Protein IDs", *(f"LFQ intensity {run}" for run in "abc")]
    path.write_text("\n".join("\t".join(line) for line in [names, *lines]) + "\n")
    out = run(capsys, "check", path)[1].rstrip()
    assert out.endswith(f"Next, if 0 means that nothing was found: declip check {path} --missing 0")


def test_a_code_for_missing_is_not_proposed_as_a_limit(tmp_path, capsys):
    path = tmp_path / "sensor.csv"
    values = np.minimum(1000 * concentrations(80, 3), 1500).round().astype(int)
    values[::20] = -999
    lines = [f"t{i}," + ",".join(map(str, row)) for i, row in enumerate(values)]
    path.write_text("\n".join(["time,a,b,c", *lines]) + "\n")
    out = run(capsys, "check", path)[1].rstrip()
    assert out.endswith(f"stands for a missing value: declip check {path} --missing -999")
    assert "floor" not in out
    out = run(capsys, "check", path, "--missing", -999)[1].rstrip()
    assert "--ceiling 1500" in out.splitlines()[-1]


def test_an_olink_export_has_values_below_its_limits(tmp_path, capsys):
    values = np.log2(concentrations(24, 4, 3))
    rows = ["SampleID;Index;OlinkID;UniProt;Assay;MissingFreq;Panel;PlateID;QC_Warning;LOD;NPX"]
    for i in range(24):
        for j in range(4):
            rows.append(
                f"A{i};{i};OID{j};P{j};PROT{j};0.1;Inflammation;Plate1;PASS;1.5;{values[i, j]:.4f}"
            )
    path = tmp_path / "npx.csv"
    path.write_text("\n".join(rows) + "\n")
    code, _, _ = run(capsys, "restore", path, "--format", "olink", *QUICK)
    assert code == 0
    records = records_of(tmp_path / "npx-restored.csv", ";")
    assert len(records) == 96
    low = [r for r in records if float(r["NPX"]) < 1.5]
    assert low
    assert {r["flag"] for r in low} <= {"restored", "undetermined"}
    assert all(float(r["restored"]) <= 1.5 for r in low if r["flag"] == "restored")
    assert all(r["restored"] == r["NPX"] for r in records if float(r["NPX"]) > 1.5)


def test_a_survey_in_excel_keeps_titles_units_formats_and_other_sheets(tmp_path, capsys):
    book, rng = openpyxl.Workbook(), np.random.default_rng(4)
    notes = book.active
    notes.title = "notes"
    notes["A1"], notes["A2"] = "=1+1", "collected in May"
    sheet = book.create_sheet("answers")
    sheet["A1"] = "Satisfaction 2026"
    sheet["A1"].font = Font(bold=True, size=20)
    sheet.merge_cells("A1:E1")
    sheet.append([])
    sheet.append(["person", "q1", "q2", "q3", "q4"])
    sheet.append(["", "points", "points", "points", "points"])
    answers = np.clip(np.round(5 + rng.normal(size=(40, 1)) + rng.normal(size=(40, 4))), 1, 7)
    for i, row in enumerate(answers):
        sheet.append([f"p{i:02}", *map(int, row)])
    sheet["C10"].font = Font(italic=True)
    path, out = tmp_path / "survey.xlsx", tmp_path / "survey-restored.xlsx"
    book.save(path)
    cells = tmp_path / "cells.csv"
    code, _, err = run(
        capsys, "restore", path, "--sheet", "answers", "--ceiling", 7, "--flags", cells, *QUICK
    )
    assert code == 0, err
    assert "holds a title" in err
    assert "holds units" in err
    after = openpyxl.load_workbook(out)
    assert after.sheetnames == ["notes", "answers"]
    assert after["notes"]["A1"].value == "=1+1"
    new, old = after["answers"], sheet
    assert new["A1"].font.size == 20
    assert new["C10"].font.italic
    assert [str(r) for r in new.merged_cells.ranges] == ["A1:E1"]
    assert new.max_row == old.max_row
    changed = 0
    for row in old.iter_rows():
        for cell in row:
            found = new[cell.coordinate].value
            if cell.value == 7 and found != 7:
                changed += 1
                assert found >= 6.5
            else:
                assert found == (cell.value if cell.value != "" else None)
    assert changed
    reported = {r["reported"] for r in records_of(cells)}
    assert reported == {str(int(answer)) for answer in np.unique(answers)}


def test_sales_with_stock_outs_by_store_product_and_day(tmp_path, capsys):
    rng = np.random.default_rng(5)
    start, lines = datetime.date(2026, 3, 1), ["date;store;sku;price;sales;stock"]
    for day in rng.permutation(20):
        for store in ("north", "south"):
            for sku in (101, 102, 103):
                wanted = rng.poisson(6 + (day + int(day) % 7) / 2)
                stock = int(rng.integers(5, 25))
                when = start + datetime.timedelta(days=int(day))
                lines.append(f"{when};{store};{sku};2,50;{min(wanted, stock)};{stock}")
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(lines) + "\n")
    keys = ["--rows", "store", "--rows", "sku", "--columns", "date", "--values", "sales"]
    code, _, err = run(capsys, "restore", path, *keys, "--limit", "stock", *QUICK)
    assert code == 0, err
    assert "6 rows and 20 columns" in err
    found = json.loads(run(capsys, "check", path, "--json")[1])
    assert found["options"]["rows"] == ["store", "sku"]
    assert found["options"]["side"] == "above"
    records = records_of(tmp_path / "sales-restored.csv", ";")
    assert [r["date"] for r in records] == [line.split(";")[0] for line in lines[1:]]
    for record in records:
        if record["flag"] == "restored":
            assert record["sales"] == record["stock"]
            assert float(record["restored"].replace(",", ".")) >= float(record["stock"])
    sold_out = [r for r in records if r["sales"] == r["stock"]]
    assert sold_out
    assert {r["flag"] for r in sold_out} <= {"restored", "undetermined"}


def test_days_are_in_their_order_whatever_the_order_of_the_lines(tmp_path):
    from declip import read_table

    path = tmp_path / "t.csv"
    path.write_text(
        "sku,date,sales\na,03.02.2026,1\na,28.01.2026,2\nb,03.02.2026,3\nb,05.01.2026,4\n"
    )
    labels = read_table(path).intervals.col_labels.tolist()
    assert labels == ["05.01.2026", "28.01.2026", "03.02.2026"]


@pytest.mark.parametrize("cell", ["0.5 B", "trace", "(0.02)", "5 *"])
def test_what_may_be_a_nondetect_is_never_advised_away(tmp_path, capsys, cell):
    path = tmp_path / "t.csv"
    path.write_text(f"id,x,y\na,1,{cell}\nb,2,3\nc,4,5\n")
    code, _, err = run(capsys, "check", path)
    assert code == 1
    assert "--mark" in err
    assert "=below" in err
    assert "--ignore" not in err
    assert "--missing" not in err


def test_marks_beside_numbers_are_understood_or_told(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\na,0.05 U,0.03J\nb,≤2,n.d.\nc,4,(0.02)\n")
    told = ["--floor", "y=0.01", "--mark", "()=exact"]
    facts = json.loads(run(capsys, "check", path, "--json", *told)[1])
    assert (facts["diagnosis"]["n_clipped"], facts["diagnosis"]["n_exact"]) == (3, 3)


def test_all_problems_of_a_file_come_in_one_run_each_with_its_option(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("id,x,y,z\na,1,ND,oops\nb,0.5 B,3,2\nc,4,5,1\n")
    code, out, err = run(capsys, "check", path, "--json")
    assert code == 1
    head, *problems = err.splitlines()
    assert head == f"declip: {path}: 3 problems"
    assert problems[0].startswith("  line 3, column 'x': '0.5 B'")
    assert "--mark B=exact if it is 0.5" in problems[0]
    assert "'ND' needs the floor of its column: --floor y=NUMBER" in problems[1]
    assert problems[2].startswith("  line 2, column 'z': 'oops'")
    assert len(json.loads(out)["problems"]) == 3


def test_replicates_are_an_error_that_offers_two_ways(tmp_path, capsys):
    path = tmp_path / "t.csv"
    lines = [f"s{i},{a},{i + j}" for i in range(5) for j, a in enumerate("xyz")]
    path.write_text("\n".join(["sample,analyte,result", *lines, "s0,x,2"]) + "\n")
    code, _, err = run(capsys, "check", path)
    assert code == 1
    assert "--replicates mean" in err
    assert "--replicates separate" in err
    for way, rows in (("mean", 5), ("separate", 6)):
        facts = json.loads(run(capsys, "check", path, "--replicates", way, "--json")[1])
        assert facts["diagnosis"]["shape"][0] == rows


@pytest.mark.parametrize(
    ("cells", "option", "value"),
    [(("1,234", "2,345"), "--thousands", 1234.0), (("1,234", "2,345"), "--decimal", 1.234)],
)
def test_a_number_that_can_be_read_in_two_ways_is_refused_with_both(
    tmp_path, capsys, cells, option, value
):
    from declip import read_table

    path = tmp_path / "t.csv"
    path.write_text("id;x\n" + "".join(f"r{i};{cell}\n" for i, cell in enumerate(cells)))
    code, _, err = run(capsys, "check", path)
    assert code == 1
    assert "'1,234' is 1234 or 1.234" in err
    assert f"{option} ," in err
    found = read_table(path, **{option.lstrip("-"): ","}).intervals
    assert found.to_bounds()[0][0, 0] == value


@pytest.mark.parametrize(
    "arguments",
    [
        ["restore", "t.csv", "--rank", "99"],
        ["restore", "t.csv", "--coverage", "2"],
        ["restore", "t.csv", "--seed", "-1"],
        ["restore", "t.csv", "--log", "nobody"],
        ["restore", "t.csv", "--between", "2,3"],
        ["restore", "t.csv", "--floor", "z=1"],
        ["restore", "bad.csv"],
        ["restore", "zero.csv", "--log"],
        ["check", "words.csv"],
    ],
)
def test_messages_are_in_the_words_of_the_command(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id,x,y\na,1,2\nb,3,>4\nc,2,1\n")
    (tmp_path / "zero.csv").write_text("id,x,y\na,0,2\nb,3,>4\nc,2,1\n")
    (tmp_path / "bad.csv").write_text("id,x,y\na,ND,2\nb,oops,4\nc,2,1 B\n")
    (tmp_path / "words.csv").write_text("what,who,much\nx,a,1\ny,a,2\n")
    code, _, err = run(capsys, *arguments)
    assert code in (1, 2)
    last = err.partition("declip: ")[2]
    assert last
    for python in ("n_components", "random_state", "time_limit", "expert", "marks", "X.clip"):
        assert python not in last
    assert not any(f" {word}=" in f" {last}" for word in ("ignore", "floor", "between", "log"))


def test_covariates_and_groups_are_columns_that_are_not_restored(tmp_path, capsys):
    rng = np.random.default_rng(0)
    plate = rng.integers(0, 4, 80)
    values = rng.standard_normal((80, 4)) + 2 * rng.standard_normal((4, 4))[plate]
    frame = pd.DataFrame(np.minimum(values, 1.0).round(3), columns=list("abcd"))
    frame.insert(0, "age", rng.integers(20, 70, 80))
    frame.insert(0, "plate", [f"p{p}" for p in plate])
    frame.insert(0, "id", [f"s{i}" for i in range(80)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ["--covariates", "age", "--groups", "plate", "--ceiling", "1", "--effort", "quick"]
    out = tmp_path / "out.csv"
    assert main(["restore", str(tmp_path / "t.csv"), *options, "-o", str(out)]) == 0
    assert "With row_features and groups" in " ".join(capsys.readouterr().out.split())
    back = pd.read_csv(out)
    assert list(back.columns) == list(frame.columns)
    assert back[["id", "plate", "age"]].equals(frame[["id", "plate", "age"]])
    assert (back["a"][frame["a"] == 1] >= 1).all()


def test_what_python_says_has_the_words_of_the_command(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\na,1,2\nb,2,3.1\nc,4,5.2\nd,3,1\n")
    code, _, err = run(capsys, "restore", path, "--ceiling", "5")
    assert code == 1
    assert "else raise it." in err
    assert "tol" not in err


def test_a_word_for_an_option_stands_without_quotes():
    assert in_own_words("(rounding='none' keeps it)") == "(--rounding none keeps it)"
    assert in_own_words("(between=None sets no end)") == "(--between none sets no end)"
