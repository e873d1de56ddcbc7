"""Files as people have them on the page: understood or corrected by hand, restored, downloaded."""

import numpy as np
import pandas as pd
import pytest
from tests.app import messy
from tests.app.conftest import new_tab


@pytest.fixture
def tab(browser):
    yield from new_tab(browser, "dark")


def dropped(tab, address, path):
    tab.goto(address)
    tab.set_input_files("#file", path)
    tab.wait_for_selector("#looked:visible")


def restored_file(tab, folder):
    """Restore with little effort, and return the lines of the table that is downloaded."""
    tab.select_option("#effort", "quick")
    tab.click("#start")
    tab.wait_for_selector("#done:visible")
    assert tab.inner_text("#verdict")
    with tab.expect_download() as download:
        tab.click("#get-table")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def count(tab, what):
    return int(tab.inner_text(f"#counts div:has(dt:text-is('{what}')) dd").replace(",", ""))


def choose(tab, column, role):
    """Say what a column is; the file is read again."""
    with tab.expect_response("**/read"):
        tab.select_option(f"[aria-label='What {column} is']", role)
    tab.wait_for_selector("#busy", state="hidden")


def test_an_export_of_water_quality_is_understood_and_given_back_line_by_line(
    tab, address, tmp_path
):
    path = messy.water(tmp_path)
    dropped(tab, address, path)
    assert (count(tab, "below a limit"), count(tab, "exact")) == (53, 107)
    assert "Not Detected" in tab.inner_text("#preview")
    assert "below the limit in" in tab.inner_text("#understood")
    assert "“Known export” wqp reads them so" in tab.inner_text("#understood")
    used = tab.locator("#preview thead tr:first-child th").all_text_contents()[1:3]
    assert used == [
        "MonitoringLocationIdentifier",
        "ActivityStartDate",
    ]  # before what is left aside
    assert tab.locator("#map-names span").all_text_contents() == list(messy.METALS)
    assert tab.input_value("#log") == "yes"  # concentrations
    back = restored_file(tab, tmp_path).read_text().splitlines()
    before = path.read_text().splitlines()
    assert len(back) == len(before)
    assert all(new.startswith(old) for new, old in zip(back, before, strict=True))


def test_marks_of_true_and_false_are_understood_in_pairs(tab, address, tmp_path):
    dropped(tab, address, messy.herons(tmp_path))
    assert (count(tab, "below a limit"), count(tab, "exact")) == (38, 82)
    choose(tab, "LeadCen", "aside")
    assert count(tab, "below a limit") < 38  # the other marks stay with their values
    choose(tab, "LeadCen", "qualifier")
    assert count(tab, "below a limit") == 38
    assert restored_file(tab, tmp_path).exists()


def test_a_column_that_is_no_intensity_is_left_aside_or_taken_in_by_hand(tab, address, tmp_path):
    dropped(tab, address, messy.proteins(tmp_path))
    assert count(tab, "columns") == 5
    choose(tab, "Peptides", "value")
    assert count(tab, "columns") == 6
    choose(tab, "Peptides", "aside")
    assert tab.is_hidden("#problems")
    assert (count(tab, "columns"), count(tab, "rows")) == (5, 40)
    assert count(tab, "below a limit") > 0
    back = restored_file(tab, tmp_path).read_text().splitlines()
    assert "GENE7;2;" in back[8]
    assert "," in back[1]  # decimal commas stay


def test_columns_beyond_the_preview_are_changed_by_name_or_pattern(tab, address, tmp_path):
    names = [*(f"x{k}" for k in range(45)), "batch (a)", "batch (b)"]
    rows = (",".join([f"r{i}", *(f"{(i * k) % 7 + 1}" for k in range(47))]) for i in range(8))
    path = messy._written(tmp_path, "broad.csv", [",".join(["id", *names]), *rows])
    dropped(tab, address, path)
    assert count(tab, "columns") == 47
    assert "8 further columns: 8 value" in tab.inner_text("#preview-note")
    for pattern, left in (("batch (*", 45), ("x44", 44)):
        tab.fill("#role-of", pattern)
        tab.select_option("#role-is", "aside")
        with tab.expect_response("**/read"):
            tab.click("text=Say so")
        tab.wait_for_selector(f"#counts div:has(dt:text-is('columns')) dd:text-is('{left}')")
    assert "5 value, 3 left aside" in tab.inner_text("#preview-note")
    tab.fill("#role-of", "nobody")
    tab.click("text=Say so")
    tab.wait_for_selector("#error:visible")
    assert "there is no column nobody" in tab.inner_text("#error")


def test_a_known_export_is_said_to_be_one(tab, address, tmp_path):
    dropped(tab, address, messy.olink(tmp_path))
    assert count(tab, "below a limit") == 0
    assert "No cell is clipped" in tab.inner_text("#cells")
    tab.click("summary:has-text('Read it otherwise')")
    tab.select_option("#format", "olink")
    tab.click("text=Read again")
    tab.wait_for_selector("#counts div:has(dt:text-is('below a limit')) dd:not(:text-is('0'))")
    assert count(tab, "below a limit") == 29
    assert len(restored_file(tab, tmp_path).read_text().splitlines()) == 121


def test_a_survey_in_excel_is_read_below_its_title(tab, address, tmp_path):
    dropped(tab, address, messy.survey(tmp_path))
    assert "line 1 (title: Survey of visitors, spring)" in tab.inner_text("#preview-note")
    assert tab.locator("#sheet option").all_text_contents() == [
        "found: Answers",
        "Answers",
        "Notes",
    ]
    tab.fill("#ceiling", "5")
    tab.click("text=Apply limits")
    tab.wait_for_selector("#counts div:has(dt:text-is('above a limit')) dd:not(:text-is('0'))")
    assert tab.is_hidden("#proposal")  # the limits are known
    path = restored_file(tab, tmp_path)
    with pd.ExcelFile(path, engine="calamine") as book:
        assert {"Answers", "Notes"} <= set(book.sheet_names)


def test_sales_with_stock_outs_are_rows_of_two_keys(tab, address, tmp_path):
    dropped(tab, address, messy.sales(tmp_path))
    assert (count(tab, "rows"), count(tab, "columns")) == (10, 12)
    assert count(tab, "above a limit") == 40
    assert tab.input_value("[aria-label='What sku is']") == "row"
    assert len(restored_file(tab, tmp_path).read_text().splitlines()) == 121


def test_gaps_of_intensities_are_filled_as_too_low_to_be_seen(tab, address, tmp_path):
    dropped(tab, address, messy.intensities(tmp_path))
    assert (tab.input_value("#fill"), tab.input_value("#log")) == ("low", "yes")
    before, after = (
        pd.read_csv(path, sep="\t").filter(like="Intensity")
        for path in (tmp_path / "intensities.tsv", restored_file(tab, tmp_path))
    )
    gaps = before.isna().to_numpy() & before.notna().any(axis=1).to_numpy()[:, None]
    filled = after.to_numpy()[gaps]
    assert np.median(filled) < 2 * np.nanmin(before)  # all are there, and low


def test_names_of_columns_differ_on_a_narrow_screen_too(tab, address, tmp_path):
    tab.set_viewport_size({"width": 390, "height": 800})
    dropped(tab, address, messy.sales(tmp_path))
    assert tab.locator("#map-names span").all_text_contents() == [f"{k:02}" for k in range(1, 13)]


def test_an_unclear_cell_is_solved_by_a_button(tab, address, tmp_path):
    (tmp_path / "t.csv").write_text("id,x,y\na,1.5 B,5\nb,2,3\nc,1,2\n")
    dropped(tab, address, tmp_path / "t.csv")
    assert "If “x” holds no values" in tab.inner_text("#problems")
    tab.click("#problems button:has-text('means a value as it stands')")
    tab.wait_for_selector("#counts:visible")
    assert tab.input_value("#marks") == "B = exact"
    assert count(tab, "exact") == 6


def test_words_lines_and_signs_are_said_by_hand(tab, address, tmp_path):
    text = "made by hand;;\nid;x;y\na;-999;5,5\nb;2,25;3\nc;1;2\n"
    (tmp_path / "t.csv").write_text(text)
    dropped(tab, address, tmp_path / "t.csv")
    if tab.is_hidden("#missing"):
        tab.click("summary:has-text('Read it otherwise')")
    tab.fill("#missing", "-999")
    tab.fill("#skip", "1, 3")
    tab.select_option("#decimal", ",")
    tab.click("text=Read again")
    tab.wait_for_selector("#counts div:has(dt:text-is('rows')) dd:text-is('2')")
    tab.fill("#skip", "1")
    tab.click("text=Read again")
    tab.wait_for_selector("#counts div:has(dt:text-is('missing')) dd:text-is('1')")
    tab.fill("#skip", "first")
    tab.click("text=Read again")
    tab.wait_for_selector("#error:visible")
    assert "write numbers such as" in tab.inner_text("#error")


def test_a_reload_finds_the_file_its_fields_and_its_result_again(tab, address, tmp_path):
    dropped(tab, address, messy.survey(tmp_path))
    tab.fill("#ceiling", "5")
    tab.click("text=Apply limits")
    tab.wait_for_selector("#counts div:has(dt:text-is('above a limit')) dd:not(:text-is('0'))")
    tab.reload()
    tab.wait_for_selector("#looked:visible")
    assert tab.input_value("#ceiling") == "5"
    tab.select_option("#effort", "thorough")
    tab.click("#start")
    tab.wait_for_selector("#running:visible")
    tab.reload()
    tab.wait_for_selector("#running:visible")  # it goes on
    tab.click("#cancel")
    tab.wait_for_selector("#running", state="hidden")
    restored_file(tab, tmp_path)
    tab.reload()
    tab.wait_for_selector("#done:visible")
    assert "survey.xlsx" in tab.frame_locator("#report").locator("h1").inner_text()


def test_the_map_shows_clipped_cells_before_anything_is_restored(tab, address, tmp_path):
    dropped(tab, address, messy.sales(tmp_path))
    orange = """() => {
      const map = document.getElementById("map"), brush = map.getContext("2d");
      const data = brush.getImageData(0, 0, map.width, map.height).data;
      let found = 0;
      for (let k = 0; k < data.length; k += 4) found += data[k] === 213 && data[k + 3] === 255;
      return found / (map.width * map.height);
    }"""
    assert tab.evaluate(orange) == pytest.approx(40 / 120, abs=0.03)


def test_a_page_of_a_messy_file_fits_a_narrow_screen(tab, address, tmp_path):
    tab.set_viewport_size({"width": 390, "height": 800})
    dropped(tab, address, messy.water(tmp_path))
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
