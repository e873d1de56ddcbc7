"""Numbers that stand in the sentences of the page."""

from __future__ import annotations

from typing import Any

import numpy as np
from experiments.common import Runs
from experiments.paper import summary, tables, theory
from experiments.paper.runner import FULL, Job
from experiments.paper.summary import TASKS, Result
from experiments.paper.tables import Results, short, small

FULL_GRID = Runs(FULL / "full-grid.jsonl")
DESCENT = Runs(FULL / "descent.jsonl")  # DTr as printed, one pair, 200 steps
EXACT = 1e-3  # relative error below which the least trace norm counts as exact


def illustration(results: list[Result]) -> dict[str, str]:
    found = [r for r in results if r["settings"]["what"] == "illustration"]
    names = {"share_clipped": ".0%", "error": ".1e", "error_clipped": ".1e"}
    return {
        f"illustration_{name}": f"{found[0][name]:{digits}}" if found else "-"
        for name, digits in names.items()
    }


def hinge(results: Results) -> dict[str, str]:
    """Return how far hinge and MC are apart, at the printed threshold, tuned, and with offsets."""
    fits = {
        name: {key: mean.value for key, mean in scores.items()}
        for name in ("test", "test_tuned", "AP")
        for scores in (summary.faithful_scores(results["faithful"], name),)
    }
    offsets = {
        name: {key: scores[name][0] for key, scores in of_models.items()}
        for name in ("F1", "AP")
        for of_models in (summary.beyond_scores(results["beyond"]),)
    }
    return {
        "gap_printed": _gap(fits["test"], "Fro-CMC", "Fro-MC"),
        "gap_tuned": _gap(fits["test_tuned"], "Fro-CMC", "Fro-MC"),
        "gap_AP": _gap(fits["AP"], "Fro-CMC", "Fro-MC"),
        "gap_offsets": _gap(offsets["F1"], "bias + hinge", "bias + MC"),
        "gap_offsets_AP": _gap(offsets["AP"], "bias + hinge", "bias + MC"),
        "gap_tobit_AP": _gap(offsets["AP"], "bias + Tobit", "bias + MC"),
    }


def scores_short(results: Results) -> str:
    """Return where a score misses its mark, and by how many standard errors."""
    printed = summary.faithful_scores(results["faithful"], "test")
    found = [
        (f"F1 of {method}, {_task(task)}", mean.value, mean.error, mark)
        for method, least in tables.PRINTED_ASKED.items()
        for task, mark in zip(TASKS, least, strict=True)
        if (mean := printed.get((method, *task)))
    ]
    found += [
        (f"{metric} of {model}, {_task(task)}", *score, mark)
        for model, metric, least in tables.BEYOND_ASKED
        for task, mark in zip(TASKS, least, strict=True)
        for score in _score(results, metric, model, *task)
    ]
    parts = [
        f"{what}: {value:.4f}, by {(mark - value) / error:.1f}"
        for what, value, error, mark in found
        if value < mark
    ]
    return "; ".join(parts) or "none does"


def _task(task: tuple[str, int]) -> str:
    return f"{task[0]}, task {task[1]}"


def _score(results: Results, metric: str, *key: Any) -> list[tuple[float, float]]:
    scores = summary.beyond_scores(results["beyond"]).get(key)
    return [tuple(scores[metric])] if scores else []


def minutes_on_two_cores(jobs: dict[str, list[Job]], results: Results) -> str:
    """Return what all runs take from nothing, if two processes share them evenly."""
    seconds = sum(summary.expected_seconds(mine, results[name]) for name, mine in jobs.items())
    return f"{seconds / 120:.0f}"


def dtr_stops(results: list[Result]) -> str:
    """Return after how many steps DTr-CMC was stopped."""
    mine = [r for r in results if r["settings"]["method"] == "DTr-CMC"]
    steps = summary.averaged(mine, ("data", "task"), lambda r: r["chosen"]["max_iter"])
    parts = [
        f"{steps[task].value:.0f} steps ({task[0]}, task {task[1]})"
        for task in TASKS
        if task in steps
    ]
    return "chosen in the mean " + ", ".join(parts) if parts else "(not run yet)"


def ranks_as_in_nnls(results: list[Result]) -> str:
    """Return how many triplets Tr-CMC keeps in each task where its rank is held as in NNLS."""
    mine = [r for r in results if r["settings"]["method"] == "Tr-CMC, rank as in NNLS"]
    ranks = summary.averaged(mine, ("data", "task"), lambda r: r["chosen"]["rank"])
    return ", ".join(f"{ranks[task].value:.0f}" for task in TASKS if task in ranks) or "-"


def race_of_pairs(results: list[Result]) -> str:
    """Return what the race of pairs on the large tables came to."""
    mine = [r for r in results if r["settings"]["method"] == "DTr-CMC"]
    if not mine:
        return "(not run yet)"
    pairs = [summary.best_pairs(r["grid"]) for r in mine]
    better = sum(two["validation"] < one["validation"] for one, two in pairs)
    ratios = [two["all_cells"] / one["all_cells"] for one, two in pairs]
    tried = summary.Mean.of(sum("screened" in p for p in r["grid"]) for r in mine)
    ended = [p["converged"] for r in mine for p in r["grid"] if "screened" not in p]
    return (
        f"{tried.value:.0f} of the 25 pairs were tried in the mean, and {sum(ended)} of "
        f"{len(ended)} fits that went to the end converged; in {better} of {len(mine)} runs the "
        "best pair with a second norm had the lower "
        f"validation error; its error over all cells was {min(ratios):.2f} to "
        f"{max(ratios):.2f} times that of the best one without"
    )


def second_norm(results: list[Result]) -> str:
    """Return in how many tables the second norm helps, if every pair is carried to the end."""
    grids = [r["grid"] for r in results if r["settings"]["what"] == "grid"]
    if not grids:
        return "(not run yet)"
    chosen = [summary.best_pairs(grid) for grid in grids]
    least = [summary.best_pairs(grid, "all_cells") for grid in grids]
    ratios = [two["all_cells"] / one["all_cells"] for one, two in least]
    by_validation = sum(two["validation"] < one["validation"] for one, two in chosen)
    ended = [p["converged"] for grid in grids for p in grid if "converged" in p]
    return (
        f"validation preferred two norms in {by_validation} of {len(grids)} tables; with the pair "
        f"of least true error, which nobody could know, two norms were better in "
        f"{sum(x < 1 for x in ratios)} of {len(ratios)}, at {min(ratios):.3f} to {max(ratios):.2f} "
        f"times the error of one ({sum(ended)} of {len(ended)} fits converged). "
        + ("At a minimum it never helped" if min(ratios) >= 1 else "It helped in some")
    )


def stopped_short(results: list[Result]) -> str:
    """Return in how many printed descents, short of the minimum, each error is the lower."""
    printed = [d for d in summary.descents(results) if d.point["steps"] == "paper"]
    ended = [d for d in printed if d.minimum]
    lower = {
        name: sum(d.errors[name] < d.minimum[name] for d in ended if d.minimum)
        for name in ("all_cells", "unclipped_test_cells")
    }
    return (
        f"lower over all cells in {lower['all_cells']} of {len(ended)}, and on the unclipped test "
        f"cells in {lower['unclipped_test_cells']}"
    )


def start_error(results: list[Result]) -> str:
    """Return the error of the descent's start on its table, that of no penalty at all."""
    where = [r["settings"] for r in results if r["settings"]["what"] == "descents"]
    same = (r for r in results if {**r["settings"], "what": "descents"} in where)
    starts = [p for r in same for p in r.get("grid", []) if p["alpha"] == 0]
    return f"{starts[0]['all_cells']:.3f}" if starts else "-"


def fro_500(results: list[Result]) -> str:
    """Return in how many runs F1 of the validation cells fell with more sweeps of the best fit."""
    falls = []
    for result in results:
        if result["settings"]["method"].startswith("Fro"):
            longest = _setting(result["grid"][-1])
            at = {p["max_iter"]: p for p in result["grid"] if _setting(p) == longest}
            if {100, 500} <= at.keys():
                falls.append(at[500]["validation"] < at[100]["validation"])
    return f"falls in {sum(falls)} of {len(falls)} runs" if falls else "(not run yet)"


def fro_at_best(results: list[Result], method: str) -> str:
    """Return F1 of the four tasks at the setting of the grid that is best for the test cells."""
    parts = []
    for data, task in TASKS:
        settings = {"data": data, "task": task, "method": method}
        mine = [r for r in results if settings.items() <= r["settings"].items()]
        means = summary.averaged(
            [{"settings": point, "test": point["test"]} for r in mine for point in r["grid"]],
            ("k", "alpha", "max_iter"),
            lambda point: point["test"],
        )
        of_all = [mean.value for mean in means.values() if mean.seeds == len(mine)]
        parts.append(short(max(of_all)) if of_all else "-")
    return " / ".join(parts)


def _setting(point: dict) -> tuple:
    return point["k"], point["alpha"]


def _gap(scores: dict[tuple, float], one: str, other: str) -> str:
    """Return the smallest and the largest gain of one over another, among the four tasks."""
    gaps = [
        scores[one, *task] - scores[other, *task]
        for task in TASKS
        if {(one, *task), (other, *task)} <= scores.keys()
    ]
    return f"{min(gaps):+.3f} to {max(gaps):+.3f}" if gaps else "(not run yet)"


def recovery(results: list[Result]) -> dict[str, str]:
    """Return what the margin and nu_B say of recovery, and how the two trace norms compare."""
    points = [point for result in results for point in result["points"]]

    def recovered(which: list[bool]) -> str:
        errors = [
            p["errors"]["Fro-CMC"] for p, of_them in zip(points, which, strict=True) if of_them
        ]
        return f"{sum(x < theory.RECOVERED for x in errors)} of {len(errors)}"

    wide = [p["margin"] > 1e-6 for p in points]
    inside = [p["nu_B"] < 0.5 for p in points]
    return {
        "margin_wide": recovered(wide),
        "margin_narrow": recovered([not x for x in wide]),
        "nu_inside": recovered(inside),
        "nu_outside": recovered([not x for x in inside]),
        **_trace_norms(points),
    }


def _trace_norms(points: list[dict]) -> dict[str, str]:
    errors = np.array([[p["errors"][name] for name in theory.TRACE_NORMS] for p in points])
    errors = errors.reshape(-1, 2)
    exact = errors < EXACT
    clipped = np.array([p["clipped"] > 0 for p in points], bool)
    neither = errors[clipped & ~exact.any(axis=1)]
    ratios = neither[:, 0] / neither[:, 1]
    return {
        "trace_agree": f"{(exact[:, 0] == exact[:, 1]).sum()} of {len(exact)}",
        "trace_closer": f"{(ratios < 1).sum()} of {len(ratios)}",
        "trace_ratio": f"{np.median(ratios):.2f}" if len(ratios) else "-",
    }


def undetermined(results: list[Result]) -> str:
    """Return where the error sits."""
    parts = [
        f"at C = {r['settings']['C']} the {r['cols_out']} columns and {r['rows_out']} rows with "
        f"fewer exact training cells than the rank hold {r['share_of_error']:.0%} of the squared "
        f"error; without them it is {r['determined']:.2g} instead of {r['all_cells']:.2g}"
        for r in results
    ]
    return "; ".join(parts) or "not looked at yet"


def full_grid_errors() -> str:
    """Return the errors of the full grids with fresh starts."""
    errors = summary.averaged(FULL_GRID.read().values(), ("C",), lambda r: r["chosen"]["all_cells"])
    parts = [f"C = {C:g}: {small(mean)}, {mean.seeds} seeds" for (C,), mean in errors.items()]
    return "; ".join(parts)


def descent_errors(generator: str) -> str:
    """Return the errors of DTr by the printed descent, made earlier."""
    runs = [r for r in DESCENT.read().values() if r["settings"]["generator"] == generator]
    errors = summary.averaged(runs, ("C",), lambda r: r["chosen"]["all_cells"])
    return ", ".join(f"{C:g}: {small(mean)}" for (C,), mean in sorted(errors.items()))


def full_grid(results: list[Result]) -> str:
    """Compare what was chosen with the choice of full grids, made with fresh starts."""
    runs, same, ratios = FULL_GRID.read(), [], []
    for result in results:
        run = runs.get("{generator}-C{C}-seed{seed}-{method}".format(**result["settings"]))
        if run and result["settings"]["size"] == "full":
            full, chosen = run["chosen"], result["chosen"]
            same.append(all(full[name] == chosen[name] for name in ("k", "alpha")))
            ratios.append(chosen["all_cells"] / full["all_cells"])
    if not same:
        return "not compared yet"
    return (
        f"the same rank and penalty chosen in {sum(same)} of {len(same)} runs, and errors "
        f"{min(ratios):.2f} to {max(ratios):.2f} times theirs"
    )
