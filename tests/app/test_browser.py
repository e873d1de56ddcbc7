"""The page and the report in a real browser."""

import numpy as np
import pandas as pd
import pytest
from tests.app.conftest import new_tab

from declip import Intervals, read_table, restore, write_table
from declip.datasets import load_assay
from declip.report import write_report

HOSTILE = '<img src=x onerror="document.title=1">'


def panel(first="analyte_01"):
    assay = load_assay()
    frame = pd.DataFrame(assay.table, assay.sample_ids, [first, *assay.analyte_names[1:]])
    return Intervals.from_table(frame, assay.ceiling, assay.floor)


@pytest.fixture
def tab(browser, request):
    yield from new_tab(browser, getattr(request, "param", "light"))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    restored = restore(panel(HOSTILE), log=True, method="tobit", n_components=1, alpha=0.1)
    return write_report(restored, path, source=f"{HOSTILE}.csv")


def test_the_report_shows_its_sections_and_pictures(tab, report):
    tab.goto(report.as_uri())
    assert tab.locator("section").count() == 7
    shown = [figure for figure in tab.locator("figure svg").all() if figure.is_visible()]
    assert len(shown) == 2 + 2 * 12
    for figure in shown:
        box = figure.bounding_box()
        assert box["width"] > 150
        assert box["height"] > 90


def test_the_report_runs_nothing_that_stands_in_names(tab, report):
    tab.goto(report.as_uri())
    assert tab.title().startswith("<img")
    assert tab.locator("main img").count() == 0
    assert HOSTILE in tab.locator("h1").inner_text()


@pytest.mark.parametrize("tab", ["light", "dark"], indirect=True)
def test_the_report_follows_light_and_dark(tab, report):
    tab.goto(report.as_uri())
    dark = tab.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")


def test_the_report_fits_a_narrow_screen(tab, report):
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.goto(report.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    words = [text.bounding_box() for text in tab.locator("figure svg text:visible").all()[::9]]
    assert min(box["height"] for box in words) > 7  # no picture is only made smaller


def test_the_report_prints_on_pages(tab, report):
    tab.goto(report.as_uri())
    assert tab.pdf().startswith(b"%PDF")


def test_a_file_is_dropped_restored_looked_at_and_downloaded(tab, address, tmp_path):
    path = write_table(panel(), tmp_path / "assay.csv")
    tab.goto(address)
    tab.set_input_files("#file", path)
    tab.wait_for_selector("#looked:visible")
    assert "553" in tab.inner_text("#counts")
    tab.select_option("#effort", "quick")
    tab.select_option("#fill", "yes")
    tab.click("#start")
    tab.wait_for_selector("#done:visible")
    assert "restored" in tab.inner_text("#flags")
    frame = tab.frame_locator("#report")
    assert "assay.csv" in frame.locator("h1").inner_text()
    with tab.expect_download() as download:
        tab.click("#get-table")
    assert download.value.suggested_filename == "assay-restored.csv"
    download.value.save_as(tmp_path / "back.csv")
    assert read_table(tmp_path / "back.csv").intervals.n_exact == 720


def test_limits_typed_on_the_page_are_applied(tab, address, tmp_path):
    (tmp_path / "t.csv").write_text("id,x,y\na,ND,5\nb,2,3\nc,1,2\n")
    tab.goto(address)
    tab.set_input_files("#file", tmp_path / "t.csv")
    tab.wait_for_selector("#problems:visible")
    assert "“Floor” below" in tab.inner_text("#problems")
    tab.fill("#floor", "x = 0,5")
    tab.fill("#ceiling", "5")
    tab.click("text=Apply limits")
    tab.wait_for_selector("#counts:visible")
    shown = " ".join(tab.inner_text("#counts").split())
    assert shown == "rows 3 columns 2 exact 4 above a limit 1 below a limit 1 missing 0"
    tab.fill("#ceiling", "high")
    tab.click("text=Apply limits")
    tab.wait_for_selector("#error:visible")
    assert "write one number" in tab.inner_text("#error")


def test_limits_that_the_table_shows_are_proposed(tab, address, tmp_path):
    values = np.minimum(np.random.default_rng(0).normal(size=(300, 4)), 1.0)
    tab.goto(address)
    tab.set_input_files("#file", write_table(values, tmp_path / "t.csv"))
    tab.wait_for_selector("#proposal:visible")
    assert "1 for the table" in tab.inner_text("#proposal")
    assert "=" not in tab.inner_text("#proposal")
    tab.click("#take")
    tab.wait_for_selector("#proposal", state="hidden")
    assert tab.input_value("#ceiling") == "1"


def test_an_oversized_file_and_a_wrong_type_are_told(tab, address, tmp_path):
    (tmp_path / "big.csv").write_bytes(b"1,2\n" * 100_000)
    tab.goto(address)
    tab.set_input_files("#file", tmp_path / "big.csv")
    tab.wait_for_selector("#error:visible")
    assert "larger than 0.2 MB" in tab.inner_text("#error")
    (tmp_path / "t.exe").write_bytes(b"MZ")
    with tab.expect_response("**/upload*") as answer:
        tab.set_input_files("#file", tmp_path / "t.exe")
    assert answer.value.status == 415
    tab.wait_for_selector("text=this kind of file is not read")
    assert tab.locator("#looked").is_hidden()
    # the browser itself notes the refusal
    tab.complaints[:] = [text for text in tab.complaints if "415" not in text]


def test_a_hostile_name_is_shown_as_text(tab, address):
    tab.goto(address)
    file = {"name": f"../{HOSTILE}.csv", "mimeType": "text/csv", "buffer": b"id,<b>x\na,1\nb,2\n"}
    tab.set_input_files("#file", file)
    tab.wait_for_selector("#looked:visible")
    assert tab.locator("#looked img, #looked b").count() == 0
    assert tab.title() == "declip"
    assert "/" not in tab.inner_text("#name")


def test_the_page_fits_a_narrow_screen(tab, address):
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.goto(address)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_columns_are_made_features_and_groups_on_the_page(browser, address, tmp_path):
    rng = np.random.default_rng(0)
    plate = rng.integers(0, 4, 60)
    values = rng.standard_normal((60, 3)) + 2 * rng.standard_normal((4, 3))[plate]
    frame = pd.DataFrame(np.minimum(values, 1.0).round(3), columns=list("abc"))
    frame.insert(0, "age", rng.integers(20, 70, 60))
    frame.insert(0, "plate", [f"p{p}" for p in plate])
    frame.insert(0, "id", [f"s{i}" for i in range(60)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    for tab in new_tab(browser, "light"):
        tab.goto(address)
        tab.set_input_files("#file", tmp_path / "t.csv")
        tab.wait_for_selector("#counts:visible")
        for name, role in (("age", "covariate"), ("plate", "group")):
            with tab.expect_response("**/read"):
                tab.get_by_label(f"What {name} is").select_option(role)
            tab.wait_for_selector("#busy", state="hidden")
        assert "'age' as features, 'plate' as groups" in tab.inner_text("#understood")
        tab.fill("#ceiling", "1")
        with tab.expect_response("**/read"):
            tab.click("text=Apply limits")
        tab.wait_for_selector("#busy", state="hidden")
        tab.reload()
        tab.wait_for_selector("#counts:visible")
        assert tab.get_by_label("What plate is").input_value() == "group"
        tab.select_option("#effort", "quick")
        tab.click("#start")
        tab.wait_for_selector("#done:visible")
        shown = tab.frame_locator("#report")
        shown.locator("main").wait_for(state="attached")
        told = shown.locator("body").inner_text()
        assert "With row_features and groups" in told
        code = shown.locator("pre", has_text="read_table").first.text_content()
        assert "covariates=['age']" in code
        assert "**table.known" in code
