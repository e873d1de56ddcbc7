"""The tables of the page, in Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from experiments.common import RESULTS, markdown_table
from experiments.paper import beyond, faithful, limits, summary, synthetic
from experiments.paper.runner import Job
from experiments.paper.summary import TASKS, Mean, Result

Results = dict[str, list[Result]]  # of each study

SHORT = {"FilmTrust": "FilmTrust", "MovieLens-100K": "ML-100K"}
NOTHING = Mean.of([])
PANELS = {"all_cells": "All cells", "unclipped_test_cells": "Unclipped test cells"}


def progress(jobs: dict[str, list[Job]], results: Results) -> str:
    """Return how many runs there are, what they took, and what all of them would."""
    rows = []
    for name, mine in results.items():
        seconds = summary.cpu_seconds(mine), summary.expected_seconds(jobs[name], mine)
        rows.append((name, len(mine), len(jobs[name]), *seconds))
    total = (sum(column) for column in list(zip(*rows, strict=True))[1:])
    return markdown_table(
        ["study", "runs", "minutes of one core", "of all runs"],
        [
            [name, f"{n} of {wanted}", f"{took / 60:.0f}", f"{all_of_them / 60:.0f}"]
            for name, n, wanted, took, all_of_them in (*rows, ("all", *total))
        ],
    )


def small(mean: Mean) -> str:
    """Return an error with two digits that count."""
    if not mean.seeds:
        return "-"
    return f"{mean.value:.2g}" + (f" ({mean.error:.1g})" if np.isfinite(mean.error) else "")


def short(value: float) -> str:
    """Return a score with three digits and no zero before them."""
    return "-" if np.isnan(value) else f"{value:.3f}".lstrip("0")


def sweep(results: list[Result], generator: str) -> str:
    """Return the synthetic sweep with one generator: a table for each panel of the figure."""
    mine = [r for r in results if r["settings"]["generator"] == generator]
    if not mine:
        return "Not run yet.\n"
    above, at = (
        summary.clipping_rates(mine, name) for name in ("share_above", "share_at_or_above")
    )
    methods = sorted({r["settings"]["method"] for r in mine}, key=synthetic.METHODS.index)
    cut, tables = summary.cut_off(mine), []
    for which, title in PANELS.items():
        errors = summary.synthetic_errors(mine, which)
        rows = [
            [f"{C:g}", f"{above[generator, C].value:.2f}", f"{at[generator, C].value:.2f}"]
            + [
                small(errors.get(key, NOTHING)) + "*" * (key in cut)
                for key in ((generator, C, method) for method in methods)
            ]
            for C in sorted({r["settings"]["C"] for r in mine})
        ]
        rows.append(["seeds", "", "", *(_seeds(errors, method) for method in methods)])
        tables.append(f"{title}:\n\n" + markdown_table(["C", "> C", ">= C", *methods], rows))
    return "\n".join(tables)


def _seeds(errors: dict[tuple, Mean], method: str) -> str:
    seeds = {mean.seeds for (_, _, m), mean in errors.items() if m == method}
    return f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else str(*seeds)


def second_norm(results: list[Result]) -> str:
    """Return what the second trace norm adds, by threshold: every pair carried to the end."""
    grids = [r for r in results if r["settings"]["what"] == "grid"]
    rows = []
    for (C,), mine in sorted(summary.grouped(grids, "C").items()):
        best = [summary.best_pairs(r["grid"]) for r in mine]
        lowest = [summary.best_pairs(r["grid"], "all_cells") for r in mine]
        rate = Mean.of(r["share_above"] for r in mine)
        chosen = sum(b[1]["validation"] < b[0]["validation"] for b in best)
        rows.append(
            [
                f"{C:g}",
                f"{rate.value:.2f}",
                *(small(Mean.of(b[i]["all_cells"] for b in best)) for i in (0, 1)),
                *(small(Mean.of(b[i]["all_cells"] for b in lowest)) for i in (0, 1)),
                f"{chosen} of {len(mine)}",
            ]
        )
    header = ["C", "> C", "one norm", "two norms", "one, least error", "two, least error"]
    return markdown_table([*header, "two chosen"], rows) if rows else "Not run yet.\n"


def descents(results: list[Result]) -> str:
    """Return where the paper's descent ends, beside the splitting."""
    rows = []
    for p, errors, end in summary.descents(results):
        code = p["steps"] == "code"
        rows.append(
            [
                f"{p['alpha']:g}, {p['alpha_clipped']:g}",
                "code" if code else f"{p['first_step']:g}",
                "-" if code else f"{p['objective']:.0f}",
                f"{end['objective']:.0f}" if end else "-",
                *(
                    f"{which[name]:.3f}" if which else "-"
                    for name in ("all_cells", "unclipped_test_cells")
                    for which in (errors, end)
                ),
            ]
        )
    both = ["all cells", "splitting", "unclipped test cells", "splitting"]
    header = ["pair", "first step", "objective", "splitting", *both]
    return markdown_table(header, rows) if rows else "Not run yet.\n"


def printed(results: list[Result]) -> str:
    """Return F1 at the printed threshold beside the paper's."""
    scores = summary.faithful_scores(results, "test")
    scores |= {("all positive", *key): mean for key, mean in summary.all_positive(results).items()}
    rows = []
    others = [method for method in faithful.METHODS if method not in summary.PAPER_F1]
    for method in (*summary.PAPER_F1, *others):
        means = [scores.get((method, *task), NOTHING) for task in TASKS]
        paper = summary.PAPER_F1.get(method, ("",) * len(TASKS))
        pairs = [x for p, mean in zip(paper, means, strict=True) for x in (p, mean.text(".3f"))]
        rows.append([method, *pairs, _range([mean.seeds for mean in means])])
    header = [f"{SHORT[d]} {t}, {who}" for d, t in TASKS for who in ("paper", "ours")]
    return markdown_table(["method", *header, "splits"], rows)


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _of_tasks(names: list[str], cell: Callable[[str, tuple[str, int]], str]) -> str:
    rows = [[name, *(cell(name, task) for task in TASKS)] for name in names]
    return markdown_table(["model", *(f"{SHORT[d]} {t}" for d, t in TASKS)], rows)


def tuned(results: list[Result]) -> str:
    """Return F1 with a tuned threshold, AP and AUC of the same fits."""
    parts = [summary.faithful_scores(results, name) for name in ("test_tuned", "AP", "AUC")]
    methods = [m for m in faithful.METHODS if any(key[0] == m for key in parts[0])]
    return _of_tasks(
        methods,
        lambda m, task: "/".join(short(part.get((m, *task), NOTHING).value) for part in parts),
    )


def with_offsets(results: list[Result]) -> str:
    """Return F1, AP and AUC of the models with offsets."""
    scores = summary.beyond_scores(results)

    def cell(model: str, task: tuple[str, int]) -> str:
        mine = scores.get((model, *task))
        return "/".join(short(mine[name][0]) for name in beyond.METRICS) if mine else "-"

    return _of_tasks([*beyond.MODELS, summary.SAMPLED], cell)


def times(results: list[Result]) -> str:
    rows = []
    for r in results:
        data, method, n_iter = (r["settings"][name] for name in ("data", "method", "n_iter"))
        paper = summary.PAPER_SECONDS[data][method.split(",")[0]]
        near = "" if r["near"] is None else f"{_seconds(r['cpu_near'])} ({r['near']})"
        ours = "about " * r["estimated"] + _seconds(r["cpu"])
        made = f"{r['made']}, to a gap of {r['gap']:.0e}" if "gap" in r else str(n_iter)
        rows.append([data, method, made, str(paper), ours, near])
    rows += [[*row, ""] for row in of_large()]
    header = ["data", "method", "iterations", "paper, s", "ours, s of one core"]
    return markdown_table([*header, "to within 1 % (iterations)"], rows)


def of_large() -> list[list[str]]:
    """Return the rows of MovieLens-20M, ours by the benchmarks at its shape."""
    convex, scaling = (benchmark(name) for name in ("convex", "scaling"))
    steps, tr = convex["DTrCMC"]["seconds"], convex["TrCMC"]
    name = "MovieLens-20M"
    sweep = scaling["cells"][str(convex["cells"])]
    return [
        [name, "DTr-CMC, rank 20", "1", "711", f"{min(steps):.0f} to {max(steps):.0f}"],
        [name, "Tr-CMC", f"to a gap of {tr['gap']:.0e}", "2427", _seconds(tr["cpu"])],
        [name, "Fro-CMC, rank 20", "1", "526", _seconds(sweep)],
    ]


def benchmark(name: str) -> dict[str, Any]:
    """Return what a benchmark found."""
    path = RESULTS.parents[1] / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text())["results"]


def _seconds(x: float) -> str:
    return f"{x:.0f}" if x >= 10 else f"{x:.2g}"


def kinds_of_limits(results: list[Result]) -> str:
    groups = summary.grouped(results, "kind", "share")
    rows = [
        [kind, f"{share:g}", *(small(_error(groups[kind, share], m)) for m in limits.METHODS)]
        for kind, share in product(limits.KINDS, limits.SHARES)
        if (kind, share) in groups
    ]
    return markdown_table(["limits", "share clipped", *limits.METHODS], rows)


def _error(results: list[Result], method: str) -> Mean:
    return Mean.of(result["methods"][method]["all_cells"] for result in results)


def marks(results: Results) -> str:
    rows = [
        [what, asked, ours, seeds, "yes" if good else "no" if good is not None else "-"]
        for what, asked, ours, seeds, good in (*_errors_asked(results), *_scores_asked(results))
    ]
    return markdown_table(["what", "asked", "ours", "seeds", "reached"], rows)


PRINTED_ASKED = {  # F1 of a method
    "Fro-CMC": (0.30, 0.37, 0.39, 0.40),
    "DTr-CMC": (0.45, 0.45, 0.38, 0.38),
    "Tr-CMC": (0.35, 0.38, 0.39, 0.39),
}
BEYOND_ASKED = (  # FilmTrust, tasks 1 and 2, and MovieLens-100K, tasks 1 and 2
    ("bias + Tobit", "F1", (0.505, 0.53, 0.49, 0.52)),
    (summary.SAMPLED, "F1", (0.505, 0.53, 0.49, 0.52)),
    ("bias + Tobit", "AP", (0.515, 0.555, 0.465, 0.52)),
    (summary.SAMPLED, "AP", (0.53, 0.58, 0.49, 0.55)),
)
Mark = tuple[str, str, str, str, bool | None]


def _errors_asked(results: Results) -> Iterator[Mark]:
    errors = summary.synthetic_errors(results["synthetic"], "all_cells")
    for method, C, most in (
        *(("Fro-CMC", 7, 5e-4), ("Fro-CMC", 6, 0.015), ("Fro-CMC", 5, 0.045)),
        *(("Tr-CMC", 7, 0.025), ("Tr-CMC", 8, 0.005)),
    ):
        mean = errors.get(("rounded", C, method), NOTHING)
        good = mean.value <= most if mean.seeds else None
        what = f"synthetic, rounded, {method}, C = {C}"
        yield what, f"at most {most:g}", small(mean), str(mean.seeds), good


def _scores_asked(results: Results) -> Iterator[Mark]:
    scores = summary.faithful_scores(results["faithful"], "test")
    for method, least in PRINTED_ASKED.items():
        means = [scores.get((method, *task), NOTHING) for task in TASKS]
        yield at_least(f"F1 as printed, {method}", least, means)
    beyond_them = summary.beyond_scores(results["beyond"])
    for model, metric, least in BEYOND_ASKED:
        mine = [beyond_them.get((model, *task)) for task in TASKS]
        means = [Mean(*x[metric], x["seeds"]) if x else NOTHING for x in mine]
        yield at_least(f"{metric} beyond, {model}", least, means)


def at_least(what: str, least: tuple[float, ...], means: list[Mean]) -> Mark:
    """Return a mark that is reached when each of four numbers is (FilmTrust, MovieLens)."""
    values = [mean.value for mean in means]
    known = all(mean.seeds for mean in means)
    good = all(x >= y for x, y in zip(values, least, strict=True)) if known else None
    asked = "at least " + " / ".join(map(short, least))
    return what, asked, " / ".join(map(short, values)), _range([m.seeds for m in means]), good
