"""What the pages show is what happens."""

import importlib.metadata
import re
import runpy
import shlex
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from _pages import architecture, commands, errors, evidence, facts, links, shown
from tests.app import messy

import declip
from declip.cli import main
from declip.datasets import load_assay

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*(DOCS / "start").glob("*.md"), *(DOCS / "guide").glob("*.md"), ROOT / "README.md"]
NEWCOMERS = {  # a page of one screen: its file, and what its commands leave
    "water": (messy.water, {"water-restored.csv", "report.html"}),
    "survey": (messy.survey, {"survey-restored.xlsx", "report.html"}),
    "sales": (messy.sales, {"sales-restored.csv", "report.html"}),
    "proteomics": (messy.intensities, {"intensities-restored.tsv"}),
    "ratings": (messy.ratings, set()),
}
ELSEWHERE = ("dask",)  # pages whose code needs other machines
GALLERY = sorted((DOCS / "gallery").glob("plot_*.py"))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with the file of the pages: a panel with cells such as <0.5."""
    assay = load_assay()
    low = np.where(assay.table <= assay.floor, -np.inf, assay.table)
    high = np.where(assay.table >= assay.ceiling, np.inf, assay.table)
    monkeypatch.chdir(tmp_path)
    cells = [["sample", *assay.analyte_names]]
    for name, a, b in zip(assay.sample_ids, low, high, strict=True):
        cells.append([name, *map(_written, a, b)])
    Path("assay.csv").write_text("\n".join(",".join(row) for row in cells) + "\n")
    return tmp_path


@pytest.fixture
def file_of(tmp_path, monkeypatch):
    """Go to a folder with the file of a newcomer's page."""
    monkeypatch.chdir(tmp_path)
    return lambda page: NEWCOMERS[page][0](tmp_path) if page in NEWCOMERS else None


def _written(low, high):
    if np.isnan(low):
        return ""
    return f"<{high}" if np.isinf(low) else f">{low}" if np.isinf(high) else f"{low}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_code_of_a_page_runs(page, folder, file_of):
    file_of(page.stem if page.parent.name == "start" else "")
    if page.stem in ELSEWHERE or not blocks(page, "python"):
        pytest.skip("there is nothing to run here")
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for code in blocks(page, "python"):
            exec(compile(code, str(page), "exec"), names)


@pytest.mark.slow
def test_the_commands_of_the_first_page_run(folder, capsys):
    text = (DOCS / "start" / "command.md").read_text()
    lines = re.findall(r"^declip (.*)$", text, re.M)
    assert len(lines) == 2
    for line in lines:
        assert main(shlex.split(line, comments=True)) == 0
    assert {p.name for p in folder.iterdir()} == {
        *("assay.csv", "assay-restored.csv", "report.html", "cells.csv")
    }


def commands_of(page):
    return re.findall(r"^declip (.*)$", (DOCS / "start" / f"{page}.md").read_text(), re.M)


@pytest.mark.parametrize("page", NEWCOMERS)
def test_a_file_of_a_newcomer_is_understood(page, file_of, capsys):
    file_of(page)
    looks = [line for line in commands_of(page) if line.startswith("check ")]
    assert len(looks) == 1
    assert main(shlex.split(looks[0])) == 0
    assert "Next: declip restore" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("page", NEWCOMERS)
def test_the_commands_of_a_newcomer_run(page, file_of, tmp_path, capsys):
    file = file_of(page)
    for line in commands_of(page):
        assert main(shlex.split(line)) == 0, capsys.readouterr().err
    assert {p.name for p in tmp_path.iterdir()} == {file.name} | NEWCOMERS[page][1]


@pytest.mark.parametrize("page", [*NEWCOMERS, "python", "command"])
def test_a_start_page_leads_to_formats_and_options(page):
    text = (DOCS / "start" / f"{page}.md").read_text()
    assert "(../reference/formats.md)" in text
    assert "(../reference/commands.md)" in text


@pytest.mark.parametrize("page", NEWCOMERS)
def test_a_page_of_a_newcomer_is_one_screen(page):
    assert len((DOCS / "start" / f"{page}.md").read_text().splitlines()) <= 42


@pytest.mark.parametrize("case", errors.ERRORS, ids=lambda c: c.title)
def test_an_error_of_the_page_is_raised(case):
    assert isinstance(errors.provoke(case), (ValueError, TypeError, MemoryError))


@pytest.mark.parametrize("case", errors.WARNINGS, ids=lambda c: c.title)
def test_a_warning_of_the_page_is_given(case):
    assert isinstance(errors.provoke(case), UserWarning)


def test_every_command_and_option_is_on_the_page():
    page = commands.page()
    for command in ("restore", "check", "demo", "app", "version"):
        assert f"## declip {command}" in page
    for option in ("--ceiling", "--limits", "--report", "--flags", "--missing", "--overwrite"):
        assert f"`{option}`" in page


def test_the_picture_of_the_architecture_has_every_module():
    drawn = {module for layer in architecture.layers() for module in layer}
    there = {p.stem for p in (ROOT / "src" / "declip").glob("[!_]*") if p.name != "py.typed"}
    assert there <= drawn


def test_files_that_a_change_touches_are_there():
    page = (DOCS / "contributing" / "architecture.md").read_text()
    named = re.findall(
        r"`([\w/]+\.(?:py|hpp|cpp))`", page[page.index("## What a change touches") :]
    )
    assert len(named) >= 20
    assert all((ROOT / "src" / "declip" / name).is_file() for name in named)


def test_tests_that_the_errata_name_are_there():
    named = re.findall(r"`(tests/[\w/]+\.py)`", (DOCS / "guide" / "errata.md").read_text())
    assert len(named) >= 9
    assert all((ROOT / name).is_file() for name in named)


SHOWN = [(page, name) for page in shown.pages() for name in shown.shown(page)]


def words(text):
    """Return a text without its numbers, whose last digits are those of a processor."""
    return re.sub(r"[-\d.,%]+", "#", " ".join(text.split()))


@pytest.mark.parametrize(("page", "name"), SHOWN, ids=lambda x: getattr(x, "stem", x))
def test_what_a_page_shows_is_what_the_code_says(page, name):
    """After a change that is meant: `make refresh`."""
    there, now = shown.shown(page)[name], shown.MAKERS[name]()
    if name == "printed_restoration":
        there, now = words(there), words(now)
    assert there == now


def test_what_is_shown_is_made_anew_between_its_marks():
    text = "about <!-- shown restored_cases -->5<!-- end --> cases"
    cases = facts.facts()["restored_cases"]
    assert shown.refreshed(text) == f"about <!-- shown restored_cases -->{cases}<!-- end --> cases"


READ_IN_THE_REPOSITORY = [
    *ROOT.glob("*.md"),
    *(p for p in DOCS.rglob("*.md") if not {"generated", "_build"} & set(p.parts)),
    *(ROOT / "experiments").glob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
]


@pytest.mark.parametrize("page", READ_IN_THE_REPOSITORY, ids=lambda p: p.stem)
def test_links_lead_to_files_of_the_repository(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    targets = re.findall(r"\]\((?![a-z]+:|#|/)([^)#\s]+)", text)
    files = [(page.parent / target).resolve() for target in targets]
    assert all(file.exists() for file in files), targets
    assert not any("generated" in file.parts for file in files)
    assert "{{" not in text


def test_version_changelog_citation_and_recipe_agree():
    version = declip.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'\n  version: "{version}"\n' in (ROOT / "conda" / "recipe.yaml").read_text()
    newest = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert version in newest
    assert importlib.metadata.version("declip") == version


def test_the_release_check_goes_through_all_targets():
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M))
    script = (ROOT / ".ci" / "release-check").read_text()
    named = set(re.search(r"parts=\((help.*?)\)", script, re.S)[1].split())
    in_quick_form = {name.removesuffix("-quick") for name in named}
    assert targets - {"release-check"} == (named | in_quick_form) & targets
    assert named - targets == {"dist", "pythons"}


def test_evidence_pages_say_what_they_were_made_with():
    page = evidence.pages()["evidence/experiments.md"]
    assert "declip 0" in page
    assert "numpy 2" in page


def test_a_study_leaves_its_runs_and_a_page():
    files = [path for path in (ROOT / "experiments" / "results").iterdir() if path.is_file()]
    studies = {path.stem for path in files}
    assert {path.name for path in files} == {
        f"{s}.{end}" for s in studies for end in ("jsonl", "md")
    }


def test_a_link_to_a_file_that_is_no_page_becomes_its_path(tmp_path):
    text = "[config](pyproject.toml) and [results](benchmarks/RESULTS.md) and [x](https://a.b)"
    mended = links.mended(text, ROOT, DOCS / "evidence")
    assert "config (`pyproject.toml`)" in mended
    assert "[results](../generated/evidence/benchmarks.md)" in mended
    assert "[x](https://a.b)" in mended


def test_lists_of_pages_drop_patterns_without_a_page(tmp_path):
    (tmp_path / "one.md").touch()
    assert links.without_empty_globs("one\n*\nmore/*", tmp_path, "index") == "one\n"
    (tmp_path / "two.md").touch()
    assert links.without_empty_globs("one\n*", tmp_path, "index") == "one\n*\n"


@pytest.mark.slow
@pytest.mark.parametrize("script", GALLERY, ids=lambda p: p.stem)
def test_an_example_of_the_gallery_runs_and_draws(script):
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        runpy.run_path(str(script))
    assert plt.get_fignums()
    plt.close("all")
