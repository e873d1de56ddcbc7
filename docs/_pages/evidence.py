"""Pages of evidence, from what the commands of `benchmarks/` and `experiments/` have left."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from _pages import facts
from _pages.links import DOCS, mended
from declip.environment import in_words

ROOT = DOCS.parent
HOME = DOCS / "generated" / "evidence"
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def pages() -> dict[str, str | bytes]:
    found: dict[str, str | bytes] = {}
    found |= _page("benchmarks", ROOT / "benchmarks/RESULTS.md")
    results = ROOT / "experiments/results"
    found |= _page("experiments", ROOT / "experiments/README.md", _studies(results))
    found |= _page("paper", ROOT / "experiments/PAPER.md")
    for path in sorted(results.glob("*.jsonl")):
        made = f"*{made_with(path)}*"
        found |= _page(
            f"results/{path.stem}", path.with_suffix(".md"), made, f"Results: {path.stem}"
        )
    return found


def _page(name: str, path: Path, more: str = "", title: str = "") -> dict[str, str | bytes]:
    """Return a Markdown file of the repository as a page here, with its pictures."""
    if not path.is_file():
        return {}
    text, pictures = path.read_text(), {}

    def picture(match: re.Match[str]) -> str:
        file = (path.parent / match[2]).resolve()
        if not file.is_file():
            return match[0]  # Sphinx says so
        place = f"pictures/{file.relative_to(ROOT).as_posix().replace('/', '-')}"
        pictures[f"evidence/{place}"] = file.read_bytes()
        return f"![{match[1]}]({'../' * name.count('/')}{place})"

    text = mended(_IMAGE.sub(picture, text), path.parent, (HOME / name).parent)
    head = f"# {title}\n\n" if title and not text.lstrip().startswith("# ") else ""
    return {f"evidence/{name}.md": f"{head}{_whole(text)}\n\n{more}".rstrip() + "\n", **pictures}


def _whole(text: str) -> str:
    """Return Markdown whose headings begin at the second level under one of the first."""
    if text.lstrip().startswith("# ") or not re.search(r"^### ", text, re.M):
        return text
    return text if re.search(r"^## ", text, re.M) else re.sub(r"^###", "##", text, flags=re.M)


def _studies(folder: Path) -> str:
    """Return what each study was made with, and a list of their pages."""
    kept = sorted(folder.glob("*.jsonl"))
    lines = ["## What the results were made with", "", "| results | made with |", "| --- | --- |"]
    lines += [f"| [{path.stem}](results/{path.stem}.md) | {made_with(path)} |" for path in kept]
    listed = "```{toctree}\n:hidden:\n:glob:\n\nresults/*\n```"
    return "\n".join(["", *lines, "", listed])


def made_with(path: Path) -> str:
    """Return date, machine and versions of the newest run; without a date that of its commit."""
    newest = max(facts.runs(path), key=lambda run: run.get("date", ""))
    return in_words({"date": _committed(path), "machine": "machine not kept", **newest})


def _committed(path: Path) -> str:
    command = ["git", "log", "-1", "--format=%cs", "--", path.name]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    return f"kept on {done.stdout.strip()}" if done.stdout.strip() else ""
