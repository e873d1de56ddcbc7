"""Pages of evidence, from what the commands of `benchmarks/` and `experiments/` have left."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from _pages.links import DOCS, mended

ROOT = DOCS.parent
HOME = DOCS / "generated" / "evidence"
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def pages() -> dict[str, str | bytes]:
    found: dict[str, str | bytes] = {}
    found |= _page("benchmarks", ROOT / "benchmarks/RESULTS.md")
    kept = _runs(ROOT / "experiments/results")
    found |= _page("experiments", ROOT / "experiments/README.md", kept)
    found |= _page("paper", ROOT / "experiments/PAPER.md")
    for path in sorted((ROOT / "experiments/results").glob("*.md")):
        found |= _page(f"results/{path.stem}", path, _run(path), f"Results: {path.stem}")
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


def _runs(folder: Path) -> str:
    """Return what each kept result was made with, and a list of their pages."""
    kept = sorted(folder.glob("*.json"))
    if not kept:
        return ""
    lines = ["## What the results were made with", "", "| results | made with |", "| --- | --- |"]
    for path in kept:
        page = path.with_suffix(".md")
        name = f"[{path.stem}](results/{path.stem}.md)" if page.is_file() else f"`{path.stem}`"
        lines.append(f"| {name} | {made_with(path)} |")
    listed = "```{toctree}\n:hidden:\n:glob:\n\nresults/*\n```"
    return "\n".join(["", *lines, "", listed])


def _run(path: Path) -> str:
    data = path.with_suffix(".json")
    return f"*{made_with(data)}*" if data.is_file() else ""


def made_with(path: Path) -> str:
    """Return date, machine and versions, as far as a result tells; else the date of its commit."""
    content: Any = json.loads(path.read_text())
    content = content if isinstance(content, dict) else {}
    facts = dict(content.get("versions", {}))
    parts = []
    for name in ("date", "machine", "cpu"):
        value = content.get(name, facts.pop(name, None))
        if isinstance(value, dict):
            value = ", ".join(str(v) for v in value.values())
        if value:
            parts.append(str(value))
    if not any(name in content or name in content.get("versions", {}) for name in ("date",)):
        parts.insert(0, _committed(path))
    parts.append(", ".join(f"{name} {value}" for name, value in facts.items()))
    return "; ".join(part for part in parts if part)


def _committed(path: Path) -> str:
    command = ["git", "log", "-1", "--format=%cs", "--", path.name]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    return f"kept on {done.stdout.strip()}" if done.stdout.strip() else ""
