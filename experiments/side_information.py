"""What features, groups and known errors are worth: plates, cold starts beside cmfrec, ebTobit.

    DECLIP_DATA=folder python experiments/side_information.py plates ratings errors --seeds 3

plates   12 plates with shifts of one standard deviation in each column and limits of their own
ratings  users without a rating, by their features, beside cmfrec where it is installed
errors   the published simulation of ebTobit: known errors, cells below a limit

Runs are added to results/side_information.jsonl, and a run that is there is not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import side_errors
import side_ratings
from common import RESULTS, Runs, markdown_table, publish

from declip import BayesCMC, FroCMC

NAME = "side_information"
Found = dict[str, dict[str, Any]]


def plates(seed: int) -> dict[str, float]:
    """Return errors of clipped cells, over that of leaving them at the limit."""
    rng = np.random.default_rng(seed)
    n, m, k = 360, 20, 3
    plate = np.arange(n) % 12
    values = rng.standard_normal((n, k)) @ rng.standard_normal((k, m)) / np.sqrt(k)
    values += 0.5 * rng.standard_normal((n, m))
    truth = values + values.std(axis=0) * rng.standard_normal((12, m))[plate]
    share = rng.uniform(0.6, 0.95, (12, m))
    limit = np.array(
        [[np.quantile(truth[plate == p, j], share[p, j]) for j in range(m)] for p in range(12)]
    )[plate]
    seen, at = np.minimum(truth, limit), truth > limit

    def error(x: Any) -> float:
        return float(np.sqrt(np.mean((x - truth)[at] ** 2)))

    found = {}
    for name, model in (
        ("BayesCMC", BayesCMC(ceiling=limit, n_samples=150, burn_in=100, random_state=seed)),
        ("FroCMC", FroCMC(ceiling=limit, clipped="tobit", random_state=seed)),
    ):
        for word, known in (("", {}), (", groups", {"groups": plate})):
            found[name + word] = error(model.fit_transform(seen, **known)) / error(limit)
    return found


def runs_of(study: str, seed: int) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield the runs of a study by name."""
    if study == "plates":
        yield f"plates / {seed}", lambda: plates(seed)
    names = {"ratings": side_ratings.TABLES, "errors": dict(side_errors.tables(0))}.get(study, {})
    make = {"ratings": side_ratings.study, "errors": side_errors.study}.get(study)
    for name in names:
        yield f"{study} / {name} / {seed}", lambda name=name: make(name, seed)


SETTINGS = {
    "plates": {"plates": 12, "shift": 1.0},
    "ratings": side_ratings.SETTINGS,
    "errors": side_errors.SETTINGS,
}


def mean(runs: list[dict[str, Any]], *keys: str) -> float:
    """Return the mean of a number over runs."""
    numbers = []
    for run in runs:
        for key in keys:
            run = run[key]
        numbers.append(run)
    return float(np.mean(numbers))


def of_table(found: Found, start: str) -> list[dict[str, Any]]:
    """Return the runs whose name begins so."""
    return [run for name, run in found.items() if name.startswith(f"{start} / ")]


def plates_page(found: Found) -> str:
    runs = of_table(found, "plates")
    names = [name for name in runs[0] if name.startswith(("Bayes", "Fro"))]
    rows = [[name, f"{mean(runs, name):.2f}"] for name in names if "," not in name]
    for row in rows:
        with_groups = f"{row[0]}, groups"
        fewer = 1 - np.array([run[with_groups] / run[row[0]] for run in runs])
        row += [
            f"{mean(runs, with_groups):.2f}",
            f"{fewer.mean():.0%} ({fewer.min():.0%} at least)",
        ]
    words = (
        "Plates: 12 with shifts of one standard deviation and limits of their own. Error of "
        f"clipped cells over that of leaving them at the limit, seeds: {len(runs)}."
    )
    return f"{words}\n\n{markdown_table(['', 'plain', 'groups', 'less'], rows)}"


def ratings_page(found: Found) -> str:
    rows, words = [], []
    for table in side_ratings.TABLES:
        runs = of_table(found, f"ratings / {table}")
        for method in (name for name in side_ratings.NAMES if runs and name in runs[0]):
            errors = (f"{mean(runs, method, task, 'judge'):.3f}" for task in ("cold", "warm"))
            milliseconds = 1000 * mean(runs, method, "seconds")
            rows.append([f"{table} ({len(runs)})", method, *errors, f"{milliseconds:.1f}"])
        if runs and side_ratings.NAMES[2] in runs[0]:
            ours, theirs = (mean(runs, name, "seconds") for name in side_ratings.NAMES[1:])
            words.append(f"{theirs / ours:.1f} times faster on {table}")
    header = ["table (runs)", "method", "RMSE, cold users", "RMSE, others", "ms a sweep"]
    text = (
        f"Ratings: rank {side_ratings.RANK}, each method with the ridge that held-out users "
        f"(cold) or cells prefer, one thread, CPU time; a sweep of FroCMC is {' and '.join(words)}."
    )
    return f"{text}\n\n{markdown_table(header, rows)}"


def errors_page(found: Found) -> str:
    rows, better = [], []
    for table in dict(side_errors.tables(0)):
        runs = of_table(found, f"errors / {table}")
        if not runs:
            continue
        cells = [
            " / ".join(f"{mean(runs, name, which):.2f}" for which in ("all", "below"))
            for name in side_errors.NAMES
        ]
        rows.append([f"{table} ({len(runs)})", *cells])
        better += [
            run[side_errors.NAMES[-1]][which] / run["EBM-Tobit"][which]
            for run in runs
            for which in ("all", "below")
        ]
    words = (
        "Known errors: mean squared error of the means, in all cells / in those below a limit; of "
        f"{len(better)} such figures BayesCMC with known errors is below EBM-Tobit in "
        f"{np.mean(np.array(better) < 1):.0%}, by {1 - np.median(better):.0%} in the median."
    )
    return f"{words}\n\n{markdown_table(['table (runs)', *side_errors.NAMES], rows)}"


PAGES = {"plates": plates_page, "ratings": ratings_page, "errors": errors_page}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", default=list(PAGES))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    runs = Runs(RESULTS / f"{NAME}.jsonl")
    for seed in range(asked.seeds):
        for study in asked.studies:
            for name, run in runs_of(study, seed):
                runs.resume(name, SETTINGS[study], run)
                print(name, flush=True)
    found = runs.read()
    publish(NAME, "\n".join(page(found) for study, page in PAGES.items() if of_table(found, study)))


if __name__ == "__main__":
    main()
