"""The report: one page that needs nothing else, and says what was restored."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import declip
from declip import Intervals, read_table, write_table
from declip.datasets import load_assay
from declip.io import TableFileError
from declip.report import View, notebook_html, render, write_cells, write_report
from declip.report.columns import mean_lines
from declip.report.figures import block_shares
from declip.report.names import apart
from declip.report.scale import AxisScale, axis_scales
from declip.report.view import Column

HOSTILE = '<script>alert("x")</script>'


def panel(names=None, columns=12):
    assay = load_assay()
    names = (names or list(assay.analyte_names))[:columns]
    frame = pd.DataFrame(assay.table[:, :columns], assay.sample_ids, names)
    limits = (side[:columns] for side in (assay.ceiling, assay.floor))
    return Intervals.from_table(frame, *limits)


def restored(cells):
    return declip.restore(cells, log=True, method="tobit", n_components=1, alpha=0.1)


@pytest.fixture(scope="module")
def result():
    return restored(panel())


@pytest.fixture(scope="module")
def small():
    return restored(panel(columns=3))


@pytest.fixture(scope="module")
def page(result):
    return render(result, "data/assay.csv")


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]


def test_cells_that_the_file_leaves_empty_are_not_called_filled(small):
    assert small.counts["filled"] > 0
    kept, filled = (html.unescape(render(small, fill=fill)) for fill in (False, True))
    assert "missing: left empty" in kept
    assert "missing: filled" not in kept
    assert "missing: filled" in filled


def test_the_page_needs_no_network_and_no_script(page):
    found = Elements(page)
    assert "script" not in found.tags
    assert "link" not in found.tags
    addresses = [value for name, value in found.attributes if name in ("src", "href", "xlink:href")]
    assert all(value.startswith(("#", "data:image/png")) for value in addresses)
    assert "@import" not in page
    assert "url(http" not in page


def test_the_page_has_its_sections_and_pictures(page):
    found = Elements(page)
    for name in ("clipped", "restored", "trust", "chosen", "again"):
        assert name in found.ids
    assert found.tags.count("svg") == 2 + 2 + 2 * 12  # map and test in two widths, twelve columns
    assert "assay.csv" in page
    assert "data/" not in page


def test_no_identifier_is_used_twice(page):
    ids = Elements(page).ids
    assert len(ids) == len(set(ids))


def test_colours_of_pictures_are_those_of_the_page(page):
    assert "var(--restored)" in page
    assert "#010208" not in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_counts_are_those_of_the_flags(result, page):
    counts = result.counts
    assert sum(counts.values()) == 720
    for flag, count in counts.items():
        tile = re.search(rf'class="tile {flag}".*?<b>(\d+)</b>', page, re.S)
        assert int(tile[1]) == count


def test_means_of_the_page_are_those_of_the_summary():
    X = np.exp(np.random.default_rng(0).normal(size=(40, 3)))
    r = declip.restore(np.maximum(X, 0.5), floor=0.5, log=True, method="normal", effort="quick")
    columns = r.summary(["mean"]).as_columns()
    told = [line["estimate"] for line in mean_lines(r)]
    assert told == columns["estimate"]


def test_html_in_names_is_escaped_everywhere():
    names = [HOSTILE, "$\\alpha$ & <b>", *(f"a{j}" for j in range(10))]
    hostile = replace(
        restored(panel(names, columns=3)),
        warnings=[HOSTILE],
        candidates=[{"method": HOSTILE, "parameters": {}, HOSTILE: 1.0}],
    )
    text = render(hostile, f"{HOSTILE}.csv")
    assert "script" not in Elements(text).tags
    assert "<b>\u2028" not in text
    assert "&lt;script&gt;" in text
    assert "script" not in Elements(notebook_html(hostile)).tags


def test_the_report_is_not_written_over_a_file(small, tmp_path):
    path = write_report(small, tmp_path / "r.html")
    with pytest.raises(TableFileError, match="the file exists"):
        write_report(small, path)
    assert write_report(small, path, overwrite=True) == path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "xlsx"])
def test_the_list_of_cells_has_one_line_for_each(result, tmp_path, kind):
    path = write_cells(result, tmp_path / f"cells.{kind}")
    readers = {"parquet": pl.read_parquet, "xlsx": pd.read_excel}
    if kind in ("csv", "tsv"):
        frame = pd.read_csv(path, sep="," if kind == "csv" else "\t")
    elif kind == "xlsx":
        frame = pd.read_excel(path, engine="calamine")
    else:
        frame = pd.DataFrame(readers[kind](path).to_dict(as_series=False))
    assert len(frame) == 720
    names = ["row", "column", "reported", "value", "flag", "band_lower", "band_upper"]
    assert list(frame.columns) == names
    np.testing.assert_allclose(frame["value"], result.table.ravel(), rtol=1e-15)
    assert frame["flag"].tolist() == result.flags.ravel().tolist()
    below = frame["reported"].astype(str).str.startswith("<")
    assert below.sum() == 79


def test_tables_of_every_shape_have_a_report():
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (1, 5), (30, 1), (300, 40)):
        truth = np.exp(rng.normal(size=(shape[0], 1)) + rng.normal(size=shape[1]))
        cells = Intervals.from_table(np.minimum(truth, 2.0 if truth.size > 1 else 1e9), ceiling=2.0)
        result = declip.restore(cells, method="column", effort="quick")
        assert render(result).count("<svg") >= 3


def test_the_map_of_a_large_table_is_drawn_in_blocks():
    table = np.tile(np.arange(300.0), (500, 1))
    shares = block_shares(Intervals.from_table(np.minimum(table, 200), ceiling=200))
    assert shares["ceiling"].shape == (240, 160)
    assert shares["ceiling"].mean() == pytest.approx(1 / 3, abs=0.01)
    assert (shares["ceiling"][:, :100] == 0).all()


def test_a_real_restoration_reports_and_shows_itself(tmp_path):
    cells = panel(columns=4)
    result = declip.restore(cells, log=True, method="tobit", n_components=2, effort="quick")
    text = result.report(tmp_path / "r.html").read_text()
    assert 'id="figure-reclip"' in text
    assert "log=True" in text
    assert "restored" in result._repr_html_()


def test_a_sparse_restoration_has_a_report():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 30))
    seen = np.minimum(truth, 1.0) * (rng.random(truth.shape) < 0.5)
    result = declip.restore(
        sparse.csr_array(seen), ceiling=1.0, method="tobit", n_components=2, effort="quick"
    )
    view = View(result)
    assert sum(result.counts.values()) == np.count_nonzero(seen)
    column = view.column(0)
    exact = column.flag == "exact"
    np.testing.assert_array_equal(column.value[exact], seen[exact, 0])
    assert render(result).count("<svg") >= 3


def test_rows_and_columns_without_any_determined_cell_are_named():
    assay = load_assay()
    table = np.array(assay.table, float)
    table[:, 3] = assay.floor[3]  # a column of limits alone
    names = list(assay.analyte_names)
    frame = pd.DataFrame(table, assay.sample_ids, names)
    view = View(restored(Intervals.from_table(frame, assay.ceiling, assay.floor)))
    assert view.undetermined("column") == ["analyte_04"]


def test_without_clipped_cells_nothing_is_said_to_be_restored():
    text = render(declip.restore(np.random.default_rng(0).normal(size=(30, 4)), method="column"))
    assert "Nothing is clipped" in text
    assert "expected gain" not in text


def test_without_a_test_no_test_is_said_to_have_shown_anything():
    r = declip.restore(np.array([[1.0, 2.0], [3.0, 5.0], [5.0, 4.0]]), ceiling=5)
    text = render(r)
    assert "Too few exact cells to test" in text
    assert "expected gain" not in text


def test_the_report_repeats_what_was_asked_for(tmp_path):
    how = {"log": True, "method": "column", "between": (0.0, 1e6), "coverage": 0.8}
    r = declip.restore(panel(), **how, random_state=3, effort="quick")
    code = render(r).split("declip.restore(")[1].split(")\n")[0]
    assert "rounding" not in code  # as by default
    for said in ("log=True", "between=(0.0, 1000000.0)", "coverage=0.8", "random_state=3"):
        assert said in code.replace("&#39;", "'")
    again = declip.restore(panel(), **r.settings)
    np.testing.assert_array_equal(again.table, r.table)


def test_the_lines_of_a_report_make_the_same_restoration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_table(panel(columns=3), tmp_path / "assay.csv")
    said = {"missing": ["-999"], "ceiling": {"analyte_01": 1e6}}
    table = read_table(path, **said)
    r = declip.restore(table.intervals, log=True, method="column")
    text = r.report("report.html", source=table).read_text()
    code = html.unescape(re.search(r"<pre>(# declip .*?)</pre>", text, re.S)[1])
    (tmp_path / "report.html").unlink()
    exec(code, {})
    assert re.search(r"<pre>(# declip .*?)</pre>", (tmp_path / "report.html").read_text(), re.S)
    back = read_table("restored.csv").intervals.to_bounds()[0]
    np.testing.assert_allclose(back, r.table, rtol=1e-2)  # restored cells: the digits that count


def test_the_report_of_the_command_repeats_how_the_file_was_read(tmp_path, monkeypatch):
    from declip.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id;x;y\na;1,5;-999\nb;3,5;4\nc;2,5;1\nd;1,5;2\n")
    said = ["--missing", "-999", "--ceiling", "y=4", "--decimal", ",", "--method", "column"]
    assert main(["restore", "t.csv", *said, "--report", "r.html", "--quiet"]) == 0
    text = html.unescape((tmp_path / "r.html").read_text())
    call = re.search(r"declip.read_table\((.*?)\)\n", text, re.S)[1]
    arguments = eval(f"dict({call.partition(',')[2]})")
    assert arguments == {"missing": ["-999"], "ceiling": {"y": 4.0}, "decimal": ","}


@pytest.mark.parametrize(
    "names",
    [
        [f"How satisfied are you with the office in district {k}?" for k in range(12)],
        ["iron ", "iron", "iron  ", "i ron"],
        [f"{'x' * 50}{k}{'y' * 50}" for k in range(3)],
        [f"{k} of {'x' * 40}" for k in range(3)],
        ["same", "same"],
    ],
)
@pytest.mark.parametrize("most", [8, 14, 30])
def test_names_that_differ_are_shown_so_that_they_differ(names, most):
    shown = apart(names, most)
    assert len(set(shown)) == len(set(names))
    assert all(len(name) <= most for name in shown)


def column(values, low=None, high=None):
    values = np.asarray(values, float)
    low, high = (values if end is None else np.asarray(end, float) for end in (low, high))
    return Column("x", values, values, values, np.full(values.shape, "exact"), low, high)


def test_an_axis_of_concentrations_does_not_go_below_zero():
    values = np.array([0.0, 0.1, 0.5, 2.0])
    assert AxisScale.of(column(values, values - 1), log=False).low == 0
    assert AxisScale.of(column(values - 1), log=False).low < -1


def test_an_axis_of_a_rating_scale_has_whole_numbers_and_a_bar_for_each():
    scale = AxisScale.of(column([1.0, 5, 3, 4, 2]), log=False)
    assert scale.whole
    np.testing.assert_array_equal(scale.edges(np.array([1.0, 5])), np.arange(6) + 0.5)
    assert not AxisScale.of(column([1.0, 2.5]), log=False).whole


def test_pictures_of_a_restoration_in_logarithms_have_one_kind_of_axis():
    narrow, wide = column([1.0, 1.2]), column([1.0, 1000.0])
    assert [s.log for s in axis_scales([narrow, wide], [True, True])] == [True, True]
    assert [s.log for s in axis_scales([narrow, wide], [False, False])] in ([True] * 2, [False] * 2)
    assert [s.log for s in axis_scales([narrow, wide], [True, False])] == [True, False]
    assert not axis_scales([column([-1.0, 1000.0])], [False])[0].log


def test_shares_are_of_the_measured_cells():
    rng = np.random.default_rng(0)
    table = np.minimum(rng.normal(size=(100, 3)), 1.0)
    table[:80, 0] = np.nan
    clipped = int((table[80:, 0] == 1.0).sum())
    text = render(declip.restore(table, 1.0, method="column"))
    assert f"{clipped} of 20 measured at a limit" in text
    assert f"<td>{clipped} <i>{100 * clipped / 20:.0f} %</i></td>" in text


def test_a_table_stored_by_columns_has_the_cells_of_one_stored_by_rows():
    rng = np.random.default_rng(0)
    seen = np.minimum(rng.normal(size=(40, 6)), 0.5) * (rng.random((40, 6)) < 0.6)
    by_row, by_col = (
        View(declip.restore(kind(seen), ceiling=0.5, method="column"))
        for kind in (sparse.csr_array, sparse.csc_array)
    )
    for j in range(6):
        one, other = by_row.column(j), by_col.column(j)
        np.testing.assert_array_equal(one.flag, other.flag)
        np.testing.assert_array_equal(one.high, other.high)
