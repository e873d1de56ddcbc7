# ruff: noqa: E501 (sentences)
"""RESULTS.md and its pictures, from the results that were kept."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt

from benchmarks.runner import HERE, RESULTS, kept
from declip.environment import in_words

__all__ = ["write_report"]

# Full SVDs, and times as fast as the solver before: (method, data) and what is asked of it
CONVEX_ASKS = {("TrCMC", "synthetic"): (25, 10), ("DTrCMC", "synthetic"): (150, 10)}
ON_RATINGS = (None, 20)

# (what, contender, ours, k, ask)
ASKS = [
    ("cmfrec, Cholesky", "cmfrec-cholesky", "declip-cholesky", 40, 15),
    ("cmfrec, CG", "cmfrec-cg", "declip", 40, 8),
    ("cmfrec, CG", "cmfrec-cg", "declip", 64, 6),
    ("implicit, CG", "implicit-cg", "declip", 40, 8),
    ("LensKit", "lenskit", "declip", 40, 6),
]


def write_report() -> None:
    """Write RESULTS.md from the studies that have been run."""
    sections = {
        "peers": _peers,
        "threads": _threads,
        "same-objective": _same_objective,
        "same-error": _same_error,
        "stopping": _stopping,
        "samples": _samples,
        "soft-impute": _soft_impute,
        "scaling": _scaling,
        "roofline": _roofline,
        "limits": _limits,
        "convex": _convex,
        "splitting": _splitting,
    }
    parts = [
        "# Benchmarks\n\nMade by `make bench`; every figure is from the run that its section names. "
        "One thread unless said; seconds are CPU seconds of the process; ratios are within one run. "
        "The ratings are synthetic, of the shape of MovieLens-20M (`benchmarks/shapes.py`)."
    ]
    for name, section in sections.items():
        found = kept(name)
        if found is not None:
            parts.append(f"{section(found['results'])}\n\n*{in_words(found)}*")
    notes = HERE / "NOTES.md"
    if notes.exists():
        parts.append(notes.read_text().strip())
    (HERE / "RESULTS.md").write_text("\n\n".join(parts) + "\n")


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _peers(found: list[dict[str, Any]]) -> str:
    rows = [
        [r["name"], r["k"], f"{r['cpu']:.2f}", f"{r['wall']:.2f}", f"{r['added_mb']:.0f}"]
        for r in found
    ]
    at = {(r["name"], r["k"]): r["cpu"] for r in found}
    ratios = [
        [what, k, *(_times(at, theirs, name, k) for name in (ours, f"{ours}-full")), f"{ask}x"]
        for what, theirs, ours, k, ask in ASKS
        if (theirs, k) in at and (ours, k) in at
    ]
    _bars(found)
    cells = f"{found[0]['shape']} ratings"
    return (
        f"## Seconds an epoch, {cells}\n\nAn epoch is a sweep over all rows and all columns; "
        "start-up and ending cancel out (a long fit less a short one). `declip` fits the same plain "
        "squared loss as the others, `declip-full` with `half_precision=False`; `declip-hinge` the clipped one. "
        "The memory is what a fit adds at its peak to the data as the contender holds them.\n\n"
        + _table(["", "rank", "CPU s", "wall s", "memory MB"], rows)
        + "\n\n"
        + _table(["against", "rank", "declip is faster", "in full precision", "asked"], ratios)
        + "\n\n![Seconds an epoch](results/peers.png)"
    )


def _times(at: dict[tuple[str, int], float], theirs: str, ours: str, k: int) -> str:
    return f"{at[theirs, k] / at[ours, k]:.1f}x" if (ours, k) in at else ""


def _bars(found: list[dict[str, Any]]) -> None:
    shown = [r for r in found if r["k"] == 40]
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    names = [r["name"] for r in shown]
    colours = ["tab:blue" if n.startswith("declip") else "tab:gray" for n in names]
    axes.barh(names, [r["cpu"] for r in shown], color=colours)
    axes.bar_label(axes.containers[0], fmt="%.2f", padding=3)
    axes.invert_yaxis()
    axes.set_xlabel("CPU seconds an epoch, rank 40")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(RESULTS / "peers.png", dpi=120)
    plt.close(figure)


def _threads(found: dict[str, Any]) -> str:
    one, two = found["epochs"]
    alone, both = found["gemm_gflops"]
    return (
        f"## Two threads\n\nAn epoch at rank {one['k']}: {one['wall']:.2f} s of wall time with one "
        f"thread, {two['wall']:.2f} s with two: {one['wall'] / two['wall']:.2f}x (asked: 1.85x). "
        f"A product of matrices, which waits for nothing: {alone:.0f} and {both:.0f} GF/s, {both / alone:.2f}x."
    )


def _same_objective(found: list[dict[str, Any]]) -> str:
    rows = []
    for r in found:
        ours = r["declip_cpu"]
        reached = (
            ["not reached", ""] if ours is None else [f"{ours:.2f}", f"{r['cpu'] / ours:.1f}x"]
        )
        rows.append([r["name"], r["epochs"], f"{r['objective']:.6g}", f"{r['cpu']:.2f}", *reached])
    head = ["", "epochs", "its objective", "its CPU s", "declip's CPU s to it", "ratio"]
    return (
        f"## Time to the same objective, {found[0]['shape']} ratings, rank {found[0]['k']}\n\n"
        "The plain squared loss plus ridge, the same for both; declip's own sweeps with momentum "
        "and balancing, its start included.\n\n" + _table(head, rows)
    )


def _same_error(found: list[dict[str, Any]]) -> str:
    rows = [
        [r["shape"], r["name"], r["epochs"], f"{r['error']:.4f}", f"{r['cpu']:.1f}", *_reached(r)]
        for r in found
    ]
    head = ["ratings", "", "its epochs", "its test error", "its CPU s"]
    strengths = ", ".join(
        f"{a:g} for {shape}" for shape, a in {r["shape"]: r["alpha"] for r in found}.items()
    )
    return (
        f"## Time to the same test error, rank {found[0]['k']}\n\n"
        "One rating in fifty is held out; the error is the root mean square of these, by predictions within the "
        "scale. declip, from its own start, which is included, sweeps until its error is as low as that of a peer after "
        "so many epochs. All minimise the same plain squared loss of the ratings less their mean with the same ridge "
        f"({strengths}: about the one of least error) and without offsets. Asked: 8x. "
        "implicit minimises another loss and LensKit subtracts offsets first, so neither has an error to compare.\n\n"
        + _table([*head, "declip's sweeps to it", "CPU s", "ratio"], rows)
    )


def _reached(peer: dict[str, Any]) -> list[Any]:
    """Return after how many sweeps and seconds declip is at the error of a peer, and the ratio."""
    path = peer["declip_path"]
    n = next((i for i, (_, error) in enumerate(path, 1) if error <= peer["error"]), None)
    if n is None:
        return ["not reached", "", ""]
    seconds = path[n - 1][0]
    return [n, f"{seconds:.2f}", f"{peer['cpu'] / seconds:.1f}x"]


def _stopping(found: list[dict[str, Any]]) -> str:
    rows = []
    for r in found:
        best, last = min(r["errors"]), r["errors"][min(r["sweeps"], len(r["errors"])) - 1]
        enough = next(i for i, error in enumerate(r["errors"], 1) if error <= 1.001 * best)
        names = ", ".join(f"{name}={value}" for name, value in r["settings"].items()) or "default"
        rows.append([names, r["sweeps"], f"{last:.4f}", f"{best:.4f}", enough,
                     f"{r['sweeps'] / enough:.1f}x"])  # fmt: skip
    head = ["FroCMC", "sweeps by default", "error there", "lowest error", "sweeps to it", "ratio"]
    return (
        f"## When a fit stops, {found[0]['shape']} ratings\n\nThe default stop beside the sweeps after which the "
        "error of held-out ratings (one in fifty) is within a thousandth of the lowest in 60 sweeps. Asked: 1.5x.\n\n"
        + _table(head, rows)
    )


def _samples(found: dict[str, Any]) -> str:
    return (
        f"## BayesCMC, {found['shape']} ratings\n\nA sample of one chain at rank {found['k']}: {found['cpu']:.1f} CPU s "
        f"(asked: {found['asked']}), by a chain of six samples less one of two. The fit added {found['added_mb']:.0f} MB to the data."
    )


def _soft_impute(found: dict[str, Any]) -> str:
    theirs, ours = found["soft_impute"], found["declip"]
    rows = [
        ["fancyimpute SoftImpute", f"{theirs['cpu']:.2f}", f"{theirs['objective']:.6g}"],
        [f"TrCMC by factors (rank {ours['rank']}, certified gap {ours['gap'] / ours['objective']:.0e} of it)", f"{ours['cpu']:.2f}",
         f"{ours['objective']:.6g}"],
    ]  # fmt: skip
    n, m = found["shape"]
    return (
        f"## Soft-impute, {n} x {m}, half missing\n\n"
        + _table(["", "CPU s", "objective"], rows)
        + f"\n\nTrCMC ends lower and is {theirs['cpu'] / ours['cpu']:.1f}x faster (asked: 10x)."
    )


def _scaling(found: dict[str, Any]) -> str:
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
    for axis, what in zip(axes, ("cells", "ranks", "rows"), strict=True):
        times = {int(n): t for n, t in found[what].items()}
        axis.loglog(list(times), list(times.values()), "o-")
        some = [min(times), sorted(times)[len(times) // 2], max(times)]
        axis.set_xticks(some, [f"{n:,}" for n in some])
        ends = [min(times.values()), max(times.values())]
        axis.set_yticks(ends, [f"{t:.2g}" for t in ends])
        axis.minorticks_off()
        axis.set_title(f"{what}: exponent {found['exponents'][what]:.2f}", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds a sweep")
    figure.savefig(RESULTS / "scaling.png", dpi=120)
    plt.close(figure)
    rows = [
        [what, ", ".join(f"{int(n):,}: {t:.3f}" for n, t in found[what].items()), f"{exponent:.2f}"]
        for what, exponent in found["exponents"].items()
    ]
    pace = found["threads"]
    return (
        "## Scaling\n\nWall seconds of one sweep by Cholesky (cells at rank 20 and 144 cells a row; "
        "ranks at 2 M cells; rows at 2 M cells). The asked exponent of the cells is at most 1.05.\n\n"
        + _table(["", "seconds", "fitted exponent"], rows)
        + f"\n\nTwo threads against one on the sweep alone: {pace['1'] / pace['2']:.2f}x."
        + "\n\n![Scaling](results/scaling.png)"
    )


def _roofline(found: dict[str, Any]) -> str:
    return (
        f"## Roofline\n\nOne thread of this machine multiplies single-precision matrices at "
        f"{found['gemm_gflops']:.0f} GF/s and copies {found['copy_gb']:.1f} GB/s (read and written). A sweep at "
        f"rank {found['k']} over {found['cells']:,} cells runs at {found['sweep_gflops']:.0f} GF/s, "
        f"{100 * found['share_of_gemm']:.0f} % of that product, while it gathers "
        f"{found['sweep_gb']:.1f} GB/s of factors from random rows."
    )


def _limits(found: dict[str, Any]) -> str:
    return (
        f"## What limits an epoch, {found['shape']} ratings\n\nHalf-sweeps by conjugate gradients, in full precision: whole; with all cells' "
        "factors among 128 rows of the other side, which lie in the first cache, so that nothing is waited for; and NumPy reading "
        "the factors of all cells once, in the same order, into a small buffer. Counted are 14 operations a cell and factor (residual, "
        "gradient, diagonal, two products for each of two steps), and a Gram matrix for columns too long to be kept.\n\n"
        + "\n\n".join(_limits_at_rank(of_rank) for of_rank in found["ranks"])
    )


def _limits_at_rank(found: dict[str, Any]) -> str:
    sides, k = found["sides"], found["k"]
    head = [f"rank {k}, updating", "CPU s", "the same in the cache", "gather alone", "their sum",
            "GFLOP", "GF/s in the cache", "GB of factors and indices", "GB/s"]  # fmt: skip
    rows = [
        [name, *(f"{x:.2f}" for x in (r["cpu"], r["near"], r["gather"], r["near"] + r["gather"])), f"{r['gflop']:.1f}",
         f"{r['gflop'] / r['near']:.0f}", f"{r['gb']:.2f}", f"{r['gb'] / r['gather']:.1f}"]
        for name, r in sides.items()
    ]  # fmt: skip
    whole, near = (sum(r[what] for r in sides.values()) for what in ("cpu", "near"))
    least = sum(r["near"] + r["gather"] for r in sides.values())
    return (
        _table(head, rows)
        + f"\n\nOf the cells {100 * sides['columns']['by_gram']:.0f} % are of columns too long to be kept. Products of matrices reach "
        f"{found['gemm']:.0f} GF/s by BLAS in the same run; products of a matrix by a vector, which like these "
        f"use a number once for each time it is read, {found['gemv_4096']:.0f} GF/s from the second cache and {found['gemv_256']:.0f} at the length of a row, calls included. "
        f"So both half-sweeps, {whole:.2f} s, take {whole / least:.2f} of what these operations in the cache ({near:.2f} s) and one gather take apart."
    )


def _convex(found: dict[str, Any]) -> str:
    tr, dtr = found["TrCMC"], found["DTrCMC"]["seconds"]
    n, m = found["shape"]
    return (
        f"## The convex methods at {n:,} x {m:,}, {found['cells']:,} cells\n\n"
        f"TrCMC at 4 % of the largest useful alpha: certified gap {tr['gap']:.1e} of the objective, rank "
        f"{tr['rank']}, in {tr['cpu']:.0f} CPU s (asked: 1e-2 in 30 s).\n\n"
        f"DTrCMC, rank at most {found['DTrCMC']['max_rank']}, CPU seconds of the steps from the paper's start: "
        + ", ".join(f"{t:.1f}" for t in dtr)
        + f" (asked: at most 20). Both together added {found['added_mb']:.0f} MB to the data; the dense matrix "
        f"would be {n * m * 4 / 2**30:.0f} GB in single precision."
    )


def _splitting(found: dict[str, Any]) -> str:
    head = [
        "",
        "table",
        "within",
        "splitting, CPU s",
        "one SVD, CPU s",
        "in SVDs",
        "asked",
        "solver before",
        "its CPU s",
        "ratio",
        "asked",
    ]
    rows = []
    for r in found["fits"]:
        svds, ratio = CONVEX_ASKS.get((r["method"], r["data"]), ON_RATINGS)
        more = "" if r["reached"] else "over "
        rows.append(
            [r["method"], r["data"], f"{r['within']:.0e}", f"{r['cpu']:.2f}", f"{r['svd']:.3f}", f"{r['cpu'] / r['svd']:.1f}",
             f"{svds}" if svds else "", r["solver_before"], f"{more}{r['cpu_before']:.1f}", f"{more}{r['cpu_before'] / r['cpu']:.1f}x", f"{ratio}x"]
        )  # fmt: skip
    exact = found["exact"]
    return (
        "## The convex methods by splitting\n\nCPU seconds until the objective is within so much of the one that the splitting ends with: the splitting, and the solver that was "
        f"used before, which is stopped after {found['fits'][0]['at_most']} times as long. TrCMC at the paper's penalty, 1e-4 of the norm of the observed table; DTrCMC at (.2, .2). An SVD of the same table "
        "by LAPACK, the least of five, is the unit that machines may be compared by.\n\n"
        + _table(head, rows)
        + f"\n\n`ExactCMC`, to a gap of 1e-4 of the objective, on {len(exact)} random tables of 60 x 80 to 300 x 400 cells: {exact[0]:.1f} to {exact[-1]:.1f} times as fast as by "
        f"matrix-free steps, {exact[len(exact) // 2]:.1f} in the median."
    )
