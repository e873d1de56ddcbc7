"""Links to files of the repository that are no pages: shown by their path."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import declip

DOCS = Path(__file__).parents[1]
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_GLOB = re.compile(r"[\w/-]*(?<!\*)\*")
_ELSEWHERE = re.compile(r"[a-z]+:")
_NAME = re.compile(rf"(?<![`\[\w}}])`({'|'.join(n for n in declip.__all__ if n[0] != '_')})`(?!\])")
# Files of the repository that are pages here, under another name.
PAGES = {
    "benchmarks/RESULTS.md": "generated/evidence/benchmarks.md",
    "experiments/README.md": "generated/evidence/experiments.md",
    "experiments/PAPER.md": "generated/evidence/paper.md",
    "CONTRIBUTING.md": "generated/contributing.md",
    "CHANGELOG.md": "generated/changelog.md",
}
MADE = (
    (re.compile(r"docs/gallery/(plot_\w+)\.py"), r"generated/gallery/\1.rst"),
    (re.compile(r"docs/gallery"), "generated/gallery/index.rst"),
    (re.compile(r"experiments/results/([\w-]+)\.md"), r"generated/evidence/results/\1.md"),
)


def mend(app: Any, docname: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        text = mended(source[0], path.parent, path.parent)
        source[0] = with_names_linked(without_empty_globs(text, path.parent, path.stem))


def with_names_linked(text: str) -> str:
    """Make public names in the prose links to the reference."""
    parts = re.split(r"(^```.*?^```$|^#.*?$)", text, flags=re.M | re.S)
    parts[::2] = (_NAME.sub(r"{py:obj}`\1 <declip.\1>`", part) for part in parts[::2])
    return "".join(parts)


def without_empty_globs(text: str, folder: Path, own: str) -> str:
    """Drop the lines of a list of pages that stand for pages that may come, and have not."""
    listed = text.splitlines()

    def empty(line: str) -> bool:
        if not _GLOB.fullmatch(line):
            return False
        top = DOCS if line.startswith("/") else folder
        there = top.glob(f"{line.lstrip('/')}.md")
        return not {line[:-1] + file.stem for file in there} - {own, *listed}

    return "\n".join(line for line in listed if not empty(line)) + "\n"


def mended(text: str, written_for: Path, shown_in: Path) -> str:
    """Return Markdown that stood in one folder, for a page in another."""

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2]
        if _ELSEWHERE.match(target) or target.startswith("/"):
            return match[0]
        file = (written_for / target).resolve()
        if not file.exists():
            return match[0]  # Sphinx says so
        name = file.relative_to(DOCS.parent).as_posix()
        page = _page(name)
        if page is not None:
            return f"[{words}]({_relative(page, shown_in)}{match[3] or ''})"
        if file.is_relative_to(DOCS) and file.suffix in (".md", ".rst"):
            return f"[{words}]({_relative(file, shown_in)}{match[3] or ''})"
        return f"`{name}`" if words.strip("`") in name else f"{words} (`{name}`)"

    return _LINK.sub(link, text)


def _page(name: str) -> Path | None:
    """Return the page that a file of the repository becomes under another name."""
    if name in PAGES:
        return DOCS / PAGES[name]
    for pattern, made in MADE:
        if pattern.fullmatch(name):
            return DOCS / pattern.sub(made, name)
    return None


def _relative(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()
