"""The picture of the README, after the illustration of the paper: a matrix of rank 2, clipped.

The generator is the paper's, in its continuous reading (whole numbers of rank 2 are a few blocks);
the ceiling is lower than the paper's 10, which hides only a tenth of the cells.

    python experiments/readme_picture.py        # writes docs/images/illustration.png
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from declip import FroCMC
from declip.datasets import make_clipped_low_rank

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "illustration.png"
CEILING, RANK = 8, 2
ORANGE, GREY = "#D55E00", "0.45"


def main() -> None:
    data = make_clipped_low_rank(
        24, 36, RANK, ceiling=CEILING, integer=False, observed=1.0, random_state=0
    )
    model = FroCMC(RANK, ceiling=CEILING, alpha=1e-3, random_state=0, scale="none", tol=1e-6)
    restored = model.fit_transform(data.table)
    error = np.linalg.norm(restored - data.truth) / np.linalg.norm(data.truth)
    few = (~data.at_limit).sum(axis=0) < RANK
    off = np.abs(restored - data.truth)[:, ~few].max()
    print(
        f"{data.at_limit.mean():.0%} of the cells at the ceiling; "
        f"relative error of the restored table {error:.1e};\n"
        f"{few.sum()} columns have fewer exact cells than the rank; no other cell is off by "
        f"more than {off:.2g}"
    )

    figure = Figure(figsize=(12, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 4, width_ratios=(1, 1, 1, 0.92))
    U, _, Vt = np.linalg.svd(data.truth)
    rows, cols = np.argsort(U[:, 1]), np.argsort(Vt[1])
    share = f"{data.at_limit.mean():.0%}"
    titles = ("truth", f"what is seen: {share} at the ceiling", "restored by declip")
    for ax, title, values in zip(axes, titles, (data.truth, data.table, restored), strict=False):
        image = ax.imshow(
            values[np.ix_(rows, cols)],
            cmap="viridis",
            vmin=0,
            vmax=data.truth.max(),
            aspect="auto",
            interpolation="none",
        )
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=10.5)
    bar = figure.colorbar(image, ax=axes[:3], location="bottom", aspect=60, shrink=0.6, pad=0.04)
    bar.ax.axvline(CEILING, color="white", lw=2)
    bar.set_label("value of the cell; the white line is the ceiling")

    scatter(axes[3], data.truth[data.at_limit], restored[data.at_limit])
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=130, facecolor="white")
    print(PICTURE.relative_to(PICTURE.parents[2]))


def scatter(ax, truth: np.ndarray, restored: np.ndarray) -> None:
    ends = CEILING - 1, truth.max() + 1
    ax.plot(ends, ends, color=GREY, lw=1)
    ax.scatter(
        truth, np.full(truth.shape, CEILING), s=14, marker="x", c=GREY, lw=0.8, label="as seen"
    )
    ax.scatter(truth, restored, s=14, c=ORANGE, alpha=0.5, linewidths=0, label="restored")
    ax.set(xlim=ends, ylim=ends, xlabel="truth")
    ax.set_title("cells at the ceiling", fontsize=10.5)
    ax.yaxis.tick_right()
    ax.legend(frameon=False, loc="upper left", fontsize=9.5, handletextpad=0.3)
    ax.spines[["top", "left"]].set_visible(False)


if __name__ == "__main__":
    main()
