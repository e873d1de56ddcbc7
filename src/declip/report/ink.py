"""Pictures as SVG that take their colours from the page, so that one serves light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from markupsafe import Markup

__all__ = ["INK", "drawing", "svg"]

# Colours that stand for variables of the page's style; matplotlib writes them in lower case.
INK = {
    "ink": "#010203",
    "soft": "#010204",
    "line": "#010205",
    "paper": "#010206",
    "exact": "#010207",
    "restored": "#010208",
    "filled": "#010209",
    "limit": "#01020a",
    "undetermined": "#01020b",
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK["ink"],
    "axes.edgecolor": INK["line"],
    "axes.labelcolor": INK["soft"],
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "grid.color": INK["line"],
    "grid.linewidth": 0.5,
    "xtick.color": INK["soft"],
    "ytick.color": INK["soft"],
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
_LOCK = Lock()  # the style of matplotlib is one for all threads


@contextmanager
def drawing(width: float, height: float, layout: Any = "constrained") -> Iterator[Any]:
    """Give an empty figure in the style of the report; sizes in inches."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with _LOCK, rc_context(_STYLE):
        yield Figure(figsize=(width, height), layout=layout)


def svg(figure: Any, title: str, salt: str) -> Markup:
    """Return a figure as an element of a page, with its colours turned into variables."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({**_STYLE, "svg.hashsalt": salt}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", text, count=1)
    for name, colour in INK.items():
        text = text.replace(colour, f"var(--{name})")
    # identifiers of one picture must not meet those of another on the same page
    text = re.sub(r'\bid="([^"]+)"', rf'id="{salt}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{salt}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{salt}-\1"', text)
    label = Markup.escape(title)
    return Markup(text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))
