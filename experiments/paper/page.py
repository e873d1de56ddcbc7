"""The page of results: the paper's numbers and ours side by side, with the figures."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from string import Template
from typing import Any

from experiments.paper import facts, figures, tables, whole
from experiments.paper.runner import found
from experiments.paper.tables import Results

from declip.environment import in_words

TEXT = Path(__file__).with_name("page.md")
NOTE = "\n**Quick runs: smaller, fewer and shorter, to see that all of it works. Not results.**\n"
PICTURES = {
    "histograms": "Histograms of the ratings",
    "illustration": "True, observed and restored matrix",
    "synthetic-rounded": "Relative RMSE against the clipping rate, rounded generator",
    "synthetic-continuous": "Relative RMSE against the clipping rate, continuous generator",
    "limits": "Relative RMSE against the share clipped, five kinds of limits",
    "theory": "Phase diagrams of recovery, and margins against nu_B",
}
STUDIES = (
    *("pictures", "synthetic", "ablation", "evidence", "faithful", "beyond", "limits"),
    *("theory", "times"),
)


def write(folder: Path, quick: bool) -> Path:
    """Write the page of what has been run: experiments/PAPER.md, or beside the quick results."""
    modules = {name: importlib.import_module(f"experiments.paper.{name}") for name in STUDIES}
    jobs = {name: module.jobs(quick) for name, module in modules.items()}
    results = {name: found(mine, folder) for name, mine in jobs.items()}
    page = folder / "PAPER.md" if quick else folder.parents[1] / "PAPER.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    draw(results, folder / "figures")
    content = {
        "note": NOTE if quick else "",
        **pictures(folder / "figures", page.parent),
        "made_with": made_with([run for runs in results.values() for run in runs]),
        "progress": tables.progress(jobs, results),
        "minutes": facts.minutes_on_two_cores(jobs, results),
        "in_one_go": whole.said(folder, sum(map(len, results.values()))),
        **filled(results),
    }
    page.write_text(Template(TEXT.read_text()).substitute(content))
    return page


def made_with(runs: list[dict[str, Any]]) -> str:
    """Return the date, machine and versions of the last run."""
    dated = [run for run in runs if "date" in run]
    return in_words(max(dated, key=lambda run: run["date"])) if dated else "no date was kept"


def pictures(folder: Path, seen_from: Path) -> dict[str, str]:
    """Return the pictures as links, where they have been drawn."""
    files = {name: folder / f"{name}.png" for name in PICTURES}
    return {
        f"picture_{name.replace('-', '_')}": (
            f"![{PICTURES[name]}]({os.path.relpath(path, seen_from)})"
            if path.exists()
            else f"({PICTURES[name]}: not run yet.)"
        )
        for name, path in files.items()
    }


def filled(results: Results) -> dict[str, str]:
    """Return what the runs put in the places of the text."""
    return {
        "marks": tables.marks(results),
        "sweep_rounded": tables.sweep(results["synthetic"], "rounded"),
        "sweep_continuous": tables.sweep(results["synthetic"], "continuous"),
        "printed": tables.printed(results["faithful"]),
        "tuned": tables.tuned(results["faithful"]),
        "with_offsets": tables.with_offsets(results["beyond"]),
        "times": tables.times(results["times"]),
        "limits": tables.kinds_of_limits(results["limits"]),
        "full_grid_errors": facts.full_grid_errors(),
        "descent_rounded": facts.descent_errors("rounded"),
        "descent_continuous": facts.descent_errors("continuous"),
        "full_grid": facts.full_grid(results["synthetic"]),
        "undetermined": facts.undetermined(results["evidence"]),
        **facts.illustration(results["pictures"]),
        "scores_short": facts.scores_short(results),
        "fro_cmc_at_best": facts.fro_at_best(results["faithful"], "Fro-CMC"),
        "fro_mc_at_best": facts.fro_at_best(results["faithful"], "Fro-MC"),
        "fro_500": facts.fro_500(results["faithful"]),
        "second_norm": tables.second_norm(results["ablation"]),
        "descents": tables.descents(results["ablation"]),
        "stopped_short": facts.stopped_short(results["ablation"]),
        "start_error": facts.start_error(results["ablation"]),
        "second_norm_says": facts.second_norm(results["ablation"]),
        "race_of_pairs": facts.race_of_pairs(results["synthetic"]),
        "ranks_as_in_nnls": facts.ranks_as_in_nnls(results["faithful"]),
        "dtr_stops": facts.dtr_stops(results["faithful"]),
        **facts.hinge(results),
        **facts.recovery(results["theory"]),
    }


def draw(results: Results, folder: Path) -> None:
    by_name = {result["settings"]["what"]: result for result in results["pictures"]}
    sets = [by_name[name] for name in tables.SHORT if name in by_name]
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
