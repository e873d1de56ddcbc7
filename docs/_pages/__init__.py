"""Pages that are made from the code and from results, so that they cannot go stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _pages import api, architecture, errors, evidence, figures, links

DOCS = Path(__file__).parents[1]
ROOT, GENERATED = DOCS.parent, DOCS / "generated"


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", write_pages)
    app.connect("source-read", links.mend)
    app.connect("autodoc-process-docstring", api.escape_types, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", api.skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Any, config: Any) -> None:
    pages = {
        "api.rst": api.page(),
        "errors.md": errors.page(),
        "contributing.md": links.mended((ROOT / "CONTRIBUTING.md").read_text(), ROOT, GENERATED),
        "changelog.md": links.mended((ROOT / "CHANGELOG.md").read_text(), ROOT, GENERATED),
        "architecture.svg": architecture.picture(),
        **figures.pictures(),
        **evidence.pages(),
    }
    for name, content in pages.items():
        _write(GENERATED / name, content)
    _sweep({GENERATED / name for name in pages})


def _sweep(made: set[Path]) -> None:
    """Remove pages of names and results that are no more."""
    names = {name for listed in api.by_module().values() for name in listed}
    stale = [p for p in (GENERATED / "api").glob("*.rst") if p.stem not in names]
    stale += set((GENERATED / "evidence").rglob("*.md")) - made
    for path in stale:
        path.unlink()


def _write(path: Path, content: str | bytes) -> None:
    """Write a file, unless it is there as it should be: what did not change is not built again."""
    data = content.encode() if isinstance(content, str) else content
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
