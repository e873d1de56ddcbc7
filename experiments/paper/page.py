"""The page of results: the paper's numbers and ours side by side, with the figures."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from string import Template

import numpy as np
from experiments.common import markdown_table, versions
from experiments.paper import beyond, faithful, figures, limits, summary, synthetic, theory
from experiments.paper.runner import FULL, found
from experiments.paper.summary import TASKS, Mean, Result

TEXT = Path(__file__).with_name("page.md")
STUDIES = ("pictures", "synthetic", "faithful", "beyond", "limits", "theory", "times")
SHORT = {"FilmTrust": "FilmTrust", "MovieLens-100K": "ML-100K"}


def write(folder: Path, quick: bool) -> Path:
    """Write the page of what has been run: experiments/PAPER.md, or beside the quick results."""
    modules = {name: importlib.import_module(f"experiments.paper.{name}") for name in STUDIES}
    jobs = {name: module.jobs(quick) for name, module in modules.items()}
    results = {name: found(mine, folder) for name, mine in jobs.items()}
    page = folder / "PAPER.md" if quick else folder.parents[1] / "PAPER.md"
    draw(results, folder / "figures")
    pictures = os.path.relpath(folder / "figures", page.parent)
    tables = {
        "pictures": pictures,
        "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
        "progress": progress_table({name: len(mine) for name, mine in jobs.items()}, results),
        "marks": marks(results),
        "synthetic_rounded": synthetic_table(results["synthetic"], "rounded"),
        "synthetic_continuous": synthetic_table(results["synthetic"], "continuous"),
        "ratings": ratings_table(results["faithful"]),
        "ratings_tuned": tuned_table(results["faithful"]),
        "beyond": beyond_table(results["beyond"]),
        "times": times_table(results["times"]),
        "limits": limits_table(results["limits"]),
        **illustration_facts(results["pictures"]),
        **hinge_facts(results),
        **theory_facts(results["theory"]),
        "full_grid": full_grid_facts(results["synthetic"]),
    }
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(Template(TEXT.read_text()).substitute(tables))
    return page


def draw(results: dict[str, list[Result]], folder: Path) -> None:
    by_name = {result["settings"]["what"]: result for result in results["pictures"]}
    sets = [by_name[name] for name in SHORT if name in by_name]
    if sets:
        figures.histograms(sets, folder / "histograms.png")
    if "illustration" in by_name:
        figures.illustration(by_name["illustration"], folder / "illustration.png")
    for generator in ("rounded", "continuous"):
        mine = [r for r in results["synthetic"] if r["settings"]["generator"] == generator]
        if mine:
            figures.synthetic(mine, generator, folder / f"synthetic-{generator}.png")
    if results["limits"]:
        figures.varying(results["limits"], folder / "limits.png")
    if results["theory"]:
        figures.phases(results["theory"], folder / "theory.png")


def progress_table(wanted: dict[str, int], results: dict[str, list[Result]]) -> str:
    rows = []
    for name, mine in results.items():
        seconds = summary.cpu_seconds(mine)
        rows.append([name, f"{len(mine)} of {wanted[name]}", f"{seconds / 60:.0f}"])
    total = sum(summary.cpu_seconds(mine) for mine in results.values())
    done, all_ = (str(sum(x)) for x in (map(len, results.values()), wanted.values()))
    rows.append(["all", f"{done} of {all_}", f"{total / 60:.0f}"])
    return markdown_table(["study", "runs", "minutes of one core"], rows)


def small(mean: Mean) -> str:
    """Return an error with two digits that count."""
    if not mean.seeds:
        return "-"
    return f"{mean.value:.2g}" + (f" ({mean.error:.1g})" if np.isfinite(mean.error) else "")


def synthetic_table(results: list[Result], generator: str) -> str:
    mine = [r for r in results if r["settings"]["generator"] == generator]
    above, at = (
        summary.clipping_rates(mine, name) for name in ("share_above", "share_at_or_above")
    )
    methods = sorted({r["settings"]["method"] for r in mine}, key=synthetic.METHODS.index)
    tables = []
    for which, title in (
        ("all_cells", "All cells"),
        ("unclipped_test_cells", "Unclipped test cells"),
    ):
        errors = summary.synthetic_errors(mine, which)
        rows = [
            [f"{C:g}", f"{above[generator, C].value:.2f}", f"{at[generator, C].value:.2f}"]
            + [small(errors.get((generator, C, m), Mean.of([]))) for m in methods]
            for C in sorted({r["settings"]["C"] for r in mine})
        ]
        rows.append(["seeds", "", "", *(_seeds(errors, m) for m in methods)])
        tables.append(f"{title}:\n\n" + markdown_table(["C", "> C", ">= C", *methods], rows))
    return "\n".join(tables)


def _seeds(errors: dict[tuple, Mean], method: str) -> str:
    seeds = {mean.seeds for (_, _, m), mean in errors.items() if m == method}
    return f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else str(*seeds)


def ratings_table(results: list[Result]) -> str:
    """Return F1 beside the paper's."""
    scores, positive = summary.faithful_scores(results, "test"), summary.all_positive(results)
    rows = []
    for method in (*summary.PAPER_F1, "Tr-CMC, uncapped", "Tr-MC, uncapped"):
        row = [method]
        for i, (data, task) in enumerate(TASKS):
            ours = positive if method == "all positive" else scores
            key = (data, task) if method == "all positive" else (method, data, task)
            mean = ours.get(key, Mean.of([]))
            row += [summary.PAPER_F1.get(method, ("",) * 4)[i], mean.text(".3f")]
        seeds = {m.seeds for (name, *_), m in scores.items() if name == method}
        rows.append(
            [*row, str(max(seeds, default=max((m.seeds for m in positive.values()), default=0)))]
        )
    header = [f"{SHORT[d]} {t}, {who}" for d, t in TASKS for who in ("paper", "ours")]
    return markdown_table(["method", *header, "splits"], rows)


def tuned_table(results: list[Result]) -> str:
    """Return F1 with a tuned threshold, AP and AUC of the same fits."""
    parts = [summary.faithful_scores(results, name) for name in ("test_tuned", "AP", "AUC")]
    methods = [m for m in faithful.METHODS if any(key[0] == m for key in parts[0])]
    rows = [
        [
            m,
            *(
                "/".join(
                    part.get((m, *t), Mean.of([])).text(".3f").split()[0].lstrip("0")
                    for part in parts
                )
                for t in TASKS
            ),
        ]
        for m in methods
    ]
    return markdown_table(["method", *(f"{SHORT[d]} {t}" for d, t in TASKS)], rows)


def beyond_scores(results: list[Result]) -> dict[tuple, dict]:
    groups = summary.grouped(results, "model", "data", "task")
    return {key: scores for key, mine in groups.items() if (scores := beyond.chosen(mine))}


def beyond_table(results: list[Result]) -> str:
    scores = beyond_scores(results)
    rows = []
    for model in beyond.MODELS:
        row = [model]
        for data, task in TASKS:
            mine = scores.get((model, data, task))
            row.append(
                "/".join(f"{mine[m][0]:.3f}".lstrip("0") for m in beyond.METRICS) if mine else "-"
            )
        rows.append(row)
    return markdown_table(["model", *(f"{SHORT[d]} {t}" for d, t in TASKS)], rows)


def times_table(results: list[Result]) -> str:
    rows = []
    for r in results:
        data, method, n_iter = (r["settings"][name] for name in ("data", "method", "n_iter"))
        paper = summary.PAPER_SECONDS[data][method.split(",")[0]]
        near = f"{r['cpu_near']:.2g} ({r['near']})" if r["near"] is not None else ""
        sign = "about " if r["estimated"] else ""
        rows.append([data, method, str(n_iter), str(paper), f"{sign}{r['cpu']:.2g}", near])
    header = ["data", "method", "iterations", "paper, s", "ours, s of one core"]
    return markdown_table([*header, "to within 1 % (iterations)"], rows)


def limits_table(results: list[Result]) -> str:
    rows = []
    for kind, share in product(limits.KINDS, limits.SHARES):
        mine = [
            r for r in results if (r["settings"]["kind"], r["settings"]["share"]) == (kind, share)
        ]
        errors = (Mean.of(r["methods"][m]["all_cells"] for r in mine) for m in limits.METHODS)
        if mine:
            rows.append([kind, f"{share:g}", *map(small, errors)])
    return markdown_table(["limits", "share clipped", *limits.METHODS], rows)


def marks(results: dict[str, list[Result]]) -> str:
    rows = [
        [what, asked, ours, "yes" if good else "no" if good is not None else "-"]
        for what, asked, ours, good in _marks(results)
    ]
    return markdown_table(["what", "asked", "ours", "reached"], rows)


def _marks(results: dict[str, list[Result]]) -> Iterator[tuple[str, str, str, bool | None]]:
    errors = summary.synthetic_errors(results["synthetic"], "all_cells")
    for method, C, most in (
        *(("Fro-CMC", 7, 5e-4), ("Fro-CMC", 6, 0.015), ("Fro-CMC", 5, 0.045)),
        *(("Tr-CMC", 7, 0.025), ("Tr-CMC", 8, 0.005)),
    ):
        mean = errors.get(("rounded", C, method), Mean.of([]))
        good = mean.value <= most if mean.seeds else None
        yield f"synthetic, {method}, C = {C}", f"<= {most:g}", small(mean), good
    scores = summary.faithful_scores(results["faithful"], "test")
    for method, least in {
        "Fro-CMC": (0.30, 0.37, 0.39, 0.40),
        "DTr-CMC": (0.45, 0.45, 0.38, 0.38),
        "Tr-CMC": (0.35, 0.38, 0.39, 0.39),
    }.items():
        means = [scores.get((method, *task), Mean.of([])) for task in TASKS]
        yield f"F1 as printed, {method}", *_at_least(least, [m.value for m in means])
    tobit = [beyond_scores(results["beyond"]).get(("bias + Tobit", *task)) for task in TASKS]
    for metric, least in (("F1", (0.505, 0.53, 0.49, 0.52)), ("AP", (0.515, 0.555, 0.465, 0.52))):
        values = [scores[metric][0] if scores else np.nan for scores in tobit]
        yield f"{metric}, threshold tuned, bias + Tobit", *_at_least(least, values)


def _at_least(least: tuple[float, ...], values: list[float]) -> tuple[str, str, bool | None]:
    known = not np.isnan(values).any()
    ours = " / ".join("-" if np.isnan(x) else f"{x:.3f}" for x in values)
    good = all(x >= y for x, y in zip(values, least, strict=True)) if known else None
    return "FT, ML >= " + " / ".join(f"{x:g}" for x in least), ours, good


def illustration_facts(results: list[Result]) -> dict[str, str]:
    mine = [r for r in results if r["settings"]["what"] == "illustration"]
    if not mine:
        return dict.fromkeys(
            ("illustration_share", "illustration_error", "illustration_clipped"), "-"
        )
    (r,) = mine
    return {
        "illustration_share": f"{r['share_clipped']:.0%}",
        "illustration_error": f"{r['error']:.1e}",
        "illustration_clipped": f"{r['error_clipped']:.1e}",
    }


def hinge_facts(results: dict[str, list[Result]]) -> dict[str, str]:
    """Return how far hinge and MC are apart, at the printed threshold, tuned, and with offsets."""

    def widest(scores: dict[tuple, float], one: str, other: str) -> str:
        gaps = [
            scores[one, *task] - scores[other, *task]
            for task in TASKS
            if (one, *task) in scores and (other, *task) in scores
        ]
        return f"{min(gaps):+.3f} to {max(gaps):+.3f}" if gaps else "-"

    printed, tuned, AP = (
        {
            key: mean.value
            for key, mean in summary.faithful_scores(results["faithful"], name).items()
        }
        for name in ("test", "test_tuned", "AP")
    )
    offsets = {key: s["F1"][0] for key, s in beyond_scores(results["beyond"]).items()}
    offsets_AP = {key: s["AP"][0] for key, s in beyond_scores(results["beyond"]).items()}
    return {
        "gap_printed": widest(printed, "Fro-CMC", "Fro-MC"),
        "gap_tuned": widest(tuned, "Fro-CMC", "Fro-MC"),
        "gap_AP": widest(AP, "Fro-CMC", "Fro-MC"),
        "gap_offsets": widest(offsets, "bias + hinge", "bias + MC"),
        "gap_offsets_AP": widest(offsets_AP, "bias + hinge", "bias + MC"),
        "gap_tobit_AP": widest(offsets_AP, "bias + Tobit", "bias + MC"),
    }


def theory_facts(results: list[Result]) -> dict[str, str]:
    points = [point for result in results for point in result["points"]]
    recovered = [p for p in points if p["errors"]["Fro-CMC"] < theory.RECOVERED]
    wide = [p for p in points if p["margin"] > 1e-6]

    def share(of: list, among: list) -> str:
        return f"{sum(p in of for p in among)} of {len(among)}"

    narrow = [p for p in points if p["margin"] <= 1e-6]
    outside = [p for p in points if p["nu_B"] >= 0.5]
    inside = [p for p in points if p["nu_B"] < 0.5]
    both = ("trace norm", "trace norm, clipped left out")
    exact = [[p["errors"][name] < 1e-3 for name in both] for p in points]
    closer = [
        p["errors"][both[0]] / p["errors"][both[1]]
        for p, (one, other) in zip(points, exact, strict=True)
        if not (one or other) and p["clipped"] > 0
    ]
    return {
        "margin_wide": share(recovered, wide),
        "margin_narrow": share(recovered, narrow),
        "nu_outside": share(recovered, outside),
        "nu_inside": share(recovered, inside),
        "trace_agree": f"{sum(a == b for a, b in exact)} of {len(exact)}",
        "trace_closer": f"{sum(x < 1 for x in closer)} of {len(closer)}",
        "trace_ratio": f"{np.median(closer):.2f}" if closer else "-",
    }


def full_grid_facts(results: list[Result]) -> str:
    """Compare what was chosen with the choice of full grids, made with fresh starts."""
    same, ratios = [], []
    for result in results:
        settings = result["settings"]
        name = "{generator}-C{C}-seed{seed}-{method}.json".format(**settings)
        if settings["size"] == "full" and (FULL / "full-grid" / name).exists():
            full = json.loads((FULL / "full-grid" / name).read_text())["chosen"]
            chosen = result["chosen"]
            same.append((full["k"], full["alpha"]) == (chosen["k"], chosen["alpha"]))
            ratios.append(chosen["all_cells"] / full["all_cells"])
    if not same:
        return "not compared yet"
    return (
        f"the same rank and penalty chosen in {sum(same)} of {len(same)} runs, and errors "
        f"{min(ratios):.2f} to {max(ratios):.2f} times theirs"
    )
