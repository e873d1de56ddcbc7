"""The picture of the modules, from the layers that `make lint` checks imports against."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from _pages.figures import GREY, INK, drawing, svg

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
FILL = {"interface": "#CFE3F3", "workflow": "#D7EFE4", "fit": "#FBE6CF", "ground": "#ECE7F4"}
# Where a kind begins; the layers below belong to it until the next begins.
BEGINS = {"cli": "interface", "restoration": "workflow", "estimators": "fit", "lowrank": "ground"}
NAMES = {
    "interface": "interface: files, words, pictures",
    "workflow": "workflow: choose, test, tune",
    "fit": "fit: estimators and solvers",
    "ground": "ground: data, checks, compiled loops",
}


def layers() -> list[list[str]]:
    """Return the modules, layer by layer, from the top."""
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    return [re.findall(r"\w+", layer) for layer in contracts[0]["layers"]]


def picture() -> str:
    rows = layers()
    with drawing(7.2, 0.42 * len(rows) + 0.5) as figure:
        ax = figure.subplots()
        kind = "interface"
        for i, row in enumerate(rows):
            first = next((BEGINS[m] for m in row if m in BEGINS), None)
            kind = first or kind
            if first or i == 0:
                ax.text(3.15, -i, NAMES[kind], va="center", color=GREY, fontsize=9)
            width = 3.0 / len(row)
            for j, module in enumerate(row):
                x = j * width
                box = {"facecolor": FILL[kind], "edgecolor": "white", "linewidth": 1.5}
                ax.add_patch(_rectangle(x, -i - 0.4, width - 0.03, 0.8, box))
                ax.text(x + width / 2, -i, module, ha="center", va="center", color=INK, fontsize=9)
        top, bottom = 0.3, -len(rows) + 0.7
        ax.annotate(
            "", (-0.22, bottom), (-0.22, top), arrowprops={"arrowstyle": "-|>", "color": GREY}
        )
        ax.text(-0.3, bottom / 2, "imports", rotation=90, ha="right", va="center", color=GREY)
        ax.set(xlim=(-0.5, 5.4), ylim=(-len(rows) + 0.4, 0.6))
        ax.axis("off")
        return svg(figure)


def _rectangle(x: float, y: float, width: float, height: float, look: dict) -> object:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.06"
    return FancyBboxPatch((x, y), width, height, boxstyle=style, mutation_aspect=4, **look)
