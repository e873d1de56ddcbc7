"""Tables in levels drawn from the prior, and the ranks of what they were drawn from.

    python -m tests.solvers.gibbs_levels          # simulation-based calibration; goes on if stopped

Ranks of the truth among thinned samples of a chain are uniform if the sampler is right (Talts and
others 2018) and the chain long enough. Up to 50 tables of 25 x 4 answers for each model, in turn;
the page is of those made. Sweeps that begin at what a table was drawn from leave its law as it is,
however slowly a chain mixes: the last column, from 600 tables of 8 x 4 after 60 sweeps each.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats
from tests.solvers.gibbs_prior import chain_at, draw_state

from declip import Intervals
from declip.environment import environment
from declip.levels import Levels, Scale
from declip.solvers.gibbs import Model
from declip.solvers.gibbs.chain import Chain, Table
from declip.solvers.gibbs.edges import EdgeDraw, EdgeSets, GapPool, LevelCells
from declip.solvers.gibbs.units import Units

RESULTS = Path(__file__).parents[2] / "experiments/results"
EDGES = np.array([-1.0, -0.2, 0.5, 1.5])


def edge_sets(n_cols, kind, pins=(2, 4)):
    levels = Levels((Scale(np.arange(1.0, 6), EDGES),), np.zeros(n_cols, np.int32))
    n_sets = 1 if kind == "shared" else n_cols
    set_of = np.zeros(n_cols, np.int32) if kind == "shared" else np.arange(n_cols, dtype=np.int32)
    of_scale = np.zeros(n_sets, np.int32)
    return EdgeSets(levels, set_of, of_scale, np.array([pins], np.int32), kind == "pooled")


def draw_levels(model, shape, seen, rng):
    """Draw a table in levels from the prior, and a chain that stands at what it was drawn from."""
    sets = edge_sets(shape[1], model.levels)
    n_sets, pool = len(sets.scale_of), GapPool.start(sets)
    if sets.pooled:
        variance, mean = 0.1 / rng.gamma(2), rng.standard_normal(3)
        pool = GapPool((mean - mean.mean())[None], np.array([variance]))
    y = rng.standard_normal((n_sets, 3)) * np.sqrt(pool.variance)
    cuts = sets.from_log_gaps(pool.mean + y - y.mean(axis=1, keepdims=True))
    drawn = draw_state(model, shape, rng)
    own = cuts[sets.set_of]  # (n_cols, n_cuts)
    level = (drawn[-1][:, :, None] > own[None]).sum(axis=2) - 1
    cells = Intervals.from_levels(
        np.where(seen, level + 1.0, np.nan), EDGES, levels=[1, 2, 3, 4, 5]
    )
    units = Units(np.zeros(shape[1]), np.ones(shape[1]))
    table = Table(cells, levels=LevelCells.of(cells, sets, units))
    chain = chain_at(table, model, drawn, rng)
    chain.edges = replace(EdgeDraw.start(sets), cuts=cuts, pool=pool)
    return table, chain


def told_by(chain):
    """Return edges, what they have in common, and cells and noise, of which edges depend on."""
    cuts, x = chain.edges.cuts[0], chain.factors.block()
    scale, pool = chain.scales.cols[1] ** -0.5, chain.edges.pool
    found = [cuts[1], cuts[3], x[0, 0], x.mean(), np.log(scale)]
    return found + [pool.mean[0, 0], pool.variance[0]] * (chain.model.levels == "pooled")


def ranks(model, n_tables, burn_in=500, thin=30, seed=3) -> Iterator[list[int]]:
    """Yield, for each table, the ranks 0 to 24 of the truth among 24 samples.

    Which tables are left out depends on these alone, and leaves ranks uniform.
    """
    rng, made = np.random.default_rng(seed), 0
    while made < n_tables:
        table, drawn = draw_levels(model, (25, 4), rng.random((25, 4)) < 0.9, rng)
        if len(np.unique(table.cells.by_row.lower)) < 5:
            continue
        truth, made = told_by(drawn), made + 1
        chain, trace = Chain.start(table, model, np.random.SeedSequence([seed, made])), []
        for sweep in range(burn_in + 24 * thin):
            chain.sweep(table, threads=1)
            if sweep >= burn_in and (sweep - burn_in) % thin == 0:
                trace.append(told_by(chain))
        yield (np.array(trace) < truth).sum(axis=0).tolist()


def moved(model, n_cases, n_sweeps, seed):
    """Return what is told of states that tables of 8 x 4 were drawn from, so many sweeps later."""
    rng, states = np.random.default_rng(seed), []
    for _ in range(n_cases):
        seen = rng.random((8, 4)) < 0.9
        table, chain = draw_levels(model, seen.shape, seen, rng)
        for _ in range(n_sweeps):
            chain.sweep(table, threads=1)
        states.append(told_by(chain))
    return np.array(states)


def p_values_of_staying(model, n_cases=250, n_sweeps=12):
    """As in `test_gibbs`: sweeps that leave the posterior alone leave the law of parameters."""
    still, after = moved(model, 1000, 0, seed=1), moved(model, n_cases, n_sweeps, seed=2)
    return np.array([stats.ks_2samp(*pair).pvalue for pair in zip(still.T, after.T, strict=True)])


def uniformity(found):
    """Return p-values of the test that ranks fall into five equal bins, one for each quantity."""
    counts = np.array([np.bincount(r // 5, minlength=5) for r in np.transpose(found)])
    return stats.chisquare(counts, axis=1).pvalue, counts


TOLD = ("edge 1", "edge 3", "a cell", "mean of cells", "log noise", "pool mean", "pool variance")
STUDIED = (
    Model(1, "column", levels="shared"),
    Model(1, "row+column", levels="column"),
    Model(1, "column", levels="pooled"),
)


def page(done) -> str:
    """Return in which fifth of their range ranks fell, and how likely that is if all are alike."""
    lines = [
        "| levels | noise | tables | quantity | ranks 0-4 | 5-9 | 10-14 | 15-19 | 20-24 | p "
        "| p, staying |"
    ]
    lines.append("|" + " --- |" * 11)
    for number, model in enumerate(STUDIED):
        own = [line for line in done if line["model"] == number]
        found = [line["ranks"] for line in own if "ranks" in line]
        stays = next((line["stays"] for line in own if "stays" in line), [float("nan")] * len(TOLD))
        ranked = zip(*uniformity(found), strict=True) if found else ()
        for name, (p, counts), stay in zip(TOLD, ranked, stays):  # noqa: B905
            told = " | ".join(map(str, counts))
            start = f"| {model.levels} | {model.noise} | {len(found)} | {name}"
            lines.append(f"{start} | {told} | {p:.2f} | {stay:.2f} |")
    return "\n".join(lines) + "\n"


def main(n_tables=50) -> None:
    kept = RESULTS / "level_ranks.jsonl"
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []

    def add(number, place, **found):
        run = {"run": f"{STUDIED[number].levels}-{place}", "model": number, **found}
        done.append({**run, **environment()})
        with kept.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
        (RESULTS / "level_ranks.md").write_text(page(done))

    for number, model in enumerate(STUDIED):
        if not any(line["model"] == number and "stays" in line for line in done):
            add(number, "stays", stays=p_values_of_staying(model, 600, 60).tolist())
    for _ in range(n_tables * len(STUDIED)):
        ranked = [line["model"] for line in done if "ranks" in line]
        counts = [ranked.count(number) for number in range(len(STUDIED))]
        number = int(np.argmin(counts))
        if counts[number] == n_tables:
            break
        seed = 1000 * number + counts[number]
        [one] = ranks(STUDIED[number], 1, burn_in=300, thin=20, seed=seed)
        add(number, counts[number], ranks=one)


if __name__ == "__main__":
    main()
