"""Outputs that pages of the repository show, written between marks in their text.

``<!-- shown NAME -->...<!-- end -->`` holds what `MAKERS` makes under that name; `make refresh`
writes it anew, and a test compares it with what the code says today.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from _pages import commands, facts

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
_MARKED = re.compile(r"(<!-- shown (\w+) -->)(.*?)(<!-- end -->)", re.S)


@cache
def printed_restoration() -> str:
    """Return the page that `print` gives of the panel of `declip demo`, in whatever time."""
    from declip import restore
    from declip.demo import reported_assay

    return _block(str(restore(reported_assay(), log=True)))


@cache
def printed_check() -> str:
    """Return what `declip check` prints of the file of `declip demo`."""
    from tempfile import TemporaryDirectory

    from declip.cli import main
    from declip.demo import reported_assay
    from declip.io import write_table

    out = io.StringIO()
    with (
        TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
    ):
        write_table(reported_assay(), "assay.csv")
        main(["check", "assay.csv"])
    return _block(out.getvalue())


def first_lines(name: str, n: int = 5) -> str:
    """Return how a file of a newcomer's page begins, as the tests make it."""
    from tempfile import TemporaryDirectory

    from python_calamine import CalamineWorkbook
    from tests.app import messy

    with TemporaryDirectory() as folder:
        path = getattr(messy, name)(folder)
        if path.suffix != ".xlsx":
            return _block("\n".join(path.read_text().splitlines()[:n]))
        sheet = CalamineWorkbook.from_path(path).get_sheet_by_index(0)
        lines = sheet.to_python(skip_empty_area=False)[: n + 1]
    cells = [[f"{x:g}" if isinstance(x, float) else x for x in line] for line in lines]
    return _block("\n".join(" | ".join(line).rstrip(" |") for line in cells))


def _block(text: str) -> str:
    return f"\n```text\n{text.rstrip()}\n```\n"


def kept_result(name: str) -> str:
    """Return the words of a page of results, with its table if that is short."""
    text = (ROOT / "experiments/results" / f"{name}.md").read_text()
    words, line, table = text.partition("\n| ")
    return f"\n{words.rstrip()}\n" if len(table) > 2000 else f"\n{words}{line}{table.rstrip()}\n"


def kept_levels() -> str:
    """Return the tables of the study of ordered levels, under headings of the third level."""
    text = (RESULTS / "levels.md").read_text().partition("\n")[2]
    return text.replace("\n## ", "\n### ").rstrip() + "\n"


MAKERS: dict[str, Callable[[], str]] = {
    **{name: (lambda name=name: facts.facts()[name]) for name in facts.NAMES},
    "ratings": lambda: f"\n{facts.ratings()}",
    "commands": lambda: f"\n{commands.page()}",
    "inference": lambda: f"\n{(RESULTS / 'inference.md').read_text()}",
    "hidden_means": lambda: f"\n{(RESULTS / 'hidden_means.md').read_text()}",
    "printed_restoration": printed_restoration,
    "printed_check": printed_check,
    **{
        f"first_lines_{name}": (lambda name=name: first_lines(name))
        for name in ("water", "survey", "sales", "intensities", "ratings")
    },
    "missing_limit": lambda: kept_result("missing_limit"),
    "missing_low": lambda: kept_result("missing_low"),
    "side_information": lambda: f"\n{(RESULTS / 'side_information.md').read_text()}",
    "stock_outs": lambda: kept_result("stock_outs"),
    "stream": lambda: kept_result("stream"),
    "new_rows": lambda: kept_result("new_rows"),
    "levels": kept_levels,
    "level_ranks": lambda: kept_result("level_ranks"),
    "missing_conditions": lambda: kept_result("missing_conditions"),
}


def pages() -> list[Path]:
    """Return the Markdown files of the repository that hold marks."""
    written = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    own = [p for p in written if not {"generated", "_build"} & set(p.parts)]
    return sorted(p for p in own if _MARKED.search(p.read_text()))


def shown(page: Path) -> dict[str, str]:
    """Return what stands between the marks of a page, by name."""
    return {name: text for _, name, text, _ in _MARKED.findall(page.read_text())}


def refreshed(text: str) -> str:
    """Return a page with all that is shown made anew."""
    return _MARKED.sub(lambda m: f"{m[1]}{MAKERS[m[2]]()}{m[4]}", text)


def main() -> None:
    for page in pages():
        before = page.read_text()
        page.write_text(refreshed(before))
        print(f"{page.relative_to(ROOT)}{'' if page.read_text() == before else ': changed'}")


if __name__ == "__main__":
    sys.exit(main())
