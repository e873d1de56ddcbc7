"""Several chains side by side, what is kept of them, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.solvers.gibbs.chain import Chain, Model, Table
from declip.solvers.gibbs.convergence import effective_sample_size, split_r_hat
from declip.solvers.gibbs.edges import EdgeSets, LevelCells
from declip.solvers.gibbs.posterior import Posterior
from declip.solvers.gibbs.sample import Sample
from declip.solvers.gibbs.side import KnownSides, known_noise
from declip.solvers.gibbs.units import Units
from declip.solvers.solution import NO_RESUME_POINT, ResumePoint

__all__ = [
    "AGREEING",
    "FEWEST",
    "R_HAT_LIMITS",
    "Kept",
    "Monitor",
    "Run",
    "Schedule",
    "disagreement",
    "sample_posterior",
]

R_HAT_LIMITS = {"cells": 1.1, "column means": 1.1, "noise scales": 1.2, "edges": 1.2}
ROUNDING = 1e-9  # of shares
FEWEST = 5  # effective samples of each chain
AGREEING = {"cells": 0.9, "column means": 0.9, "noise scales": 0.5, "edges": 0.9}  # keep to both
Diagnosis = dict[str, NDArray[np.float64]]  # of the traced quantities, by kind
_WATCHED = 50  # cells of each kind, columns and noise scales that are traced


@dataclass(frozen=True)
class Schedule:
    """Which chains are made.

    Attributes
    ----------
    n_samples, burn_in : int
        Sweeps of each chain, after those that are thrown away.
    chains : int
        Chains, each from its own start.
    max_kept : int
        Samples to keep at most, of all chains together.
    seed : int
        Of all random numbers.
    """

    n_samples: int
    burn_in: int
    chains: int
    max_kept: int
    seed: int


@dataclass
class Kept:
    """Samples at equal distances, never more than ``capacity``: the distance doubles when full."""

    capacity: int
    samples: list[Sample] = field(default_factory=list)
    every: int = 1
    seen: int = 0

    def offer(self, chain: Chain) -> None:
        """Keep the present state of a chain, if it is its turn."""
        if self.seen % self.every == 0 and len(self.samples) == self.capacity:
            self.samples = self.samples[::2]
            self.every *= 2
        if self.seen % self.every == 0:
            self.samples.append(Sample.of(chain))
        self.seen += 1

    def copy(self) -> Kept:
        """Return a list that grows on its own."""
        return replace(self, samples=list(self.samples))


@dataclass(frozen=True, eq=False)
class Monitor:
    """The quantities that are traced: some cells, column means, noise scales and edges.

    Factors are not identified (they may rotate, or change their order) and are not traced.
    """

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    columns: NDArray[np.int32]
    edges: NDArray[np.intp] | None = None

    @property
    def kinds(self) -> dict[str, slice]:
        """Where each kind of quantity stands in a trace."""
        sizes: dict[str, NDArray] = {
            "cells": self.rows,
            "column means": self.columns,
            "noise scales": self.columns,
        }
        if self.edges is not None:
            sizes["edges"] = self.edges
        ends = np.cumsum([0, *map(len, sizes.values())])
        return {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(sizes)}

    @classmethod
    def of(cls, cells: Intervals, edges: EdgeSets | None = None) -> Monitor:
        """Choose censored cells and cells at random places, columns and edges, evenly spread."""
        side = cells.by_row
        some = _evenly(cells.n_censored)
        places = np.random.default_rng(0).integers(0, cells.shape, (_WATCHED, 2), dtype=np.int32)
        rows = np.concatenate([side.censored_rows()[some], places[:, 0]])
        cols = np.concatenate([side.censored_idx[some], places[:, 1]])
        columns = _evenly(cells.shape[1]).astype(np.int32)
        if edges is None:
            return cls(rows, cols, columns)
        free = np.flatnonzero(edges.is_free)
        return cls(rows, cols, columns, free[_evenly(len(free))])

    def watch(self, chain: Chain) -> NDArray[np.float64]:
        """Return the quantities at the present state of a chain."""
        factors = chain.factors
        mean_row = factors.A.sum(axis=0) / len(factors.A)
        B = factors.B[self.columns]
        means = B[:, :-1] @ mean_row[:-1] + B[:, -1] + mean_row[-1]
        noise = -0.5 * np.log(chain.scales.cols[self.columns])
        cells = factors.predict(self.rows, self.cols)
        if self.edges is None or chain.edges is None:
            return np.concatenate([cells, means, noise])
        return np.concatenate([cells, means, noise, chain.edges.cuts.flat[self.edges]])


@dataclass(frozen=True, eq=False)
class Run:
    """What the sampler returns, and what it needs to go on.

    Attributes
    ----------
    chains : tuple of Chain
        Their states.
    kept : tuple of Kept
        Samples of each chain.
    traces : list of ndarray of shape (n_chains, n_quantities)
        What was traced in each sweep after the burn-in.
    history : list of float
        Mean misfit of the chains after each sweep.
    units : Units
        Of the columns.
    monitor : Monitor
        What is traced.
    stopped : bool
        Whether the caller stopped it.
    edges : EdgeSets or None
        Which columns share edges of levels, if these are sampled.
    """

    chains: tuple[Chain, ...]
    kept: tuple[Kept, ...]
    traces: list[NDArray[np.float64]]
    history: list[float]
    units: Units
    monitor: Monitor
    stopped: bool = False
    edges: EdgeSets | None = None

    def _check_loaded(self) -> None:
        """Refuse a run that was read from a file and traces cells outside of its table."""
        places, shape = (self.monitor.rows, self.monitor.cols), self.chains[0].factors.shape
        inside = all(p.min() >= 0 and p.max() < n for p, n in zip(places, shape, strict=True))
        fits = inside and len(self.units.scale) == shape[1]
        if not fits or {chain.factors.shape for chain in self.chains} != {shape}:
            raise ValueError("the parts of a run are not of one table")

    @property
    def n_iter(self) -> int:
        """Number of sweeps of each chain."""
        return self.chains[0].n_sweeps

    @property
    def posterior(self) -> Posterior:
        """The samples kept of all chains; their present states during the burn-in."""
        samples = [s for kept in self.kept for s in kept.samples]
        chain_of = [i for i, kept in enumerate(self.kept) for _ in kept.samples]
        if not samples:
            samples = [Sample.of(chain) for chain in self.chains]
            chain_of = list(range(len(samples)))
        model = self.chains[0].model
        return Posterior(tuple(samples), self.units, model, self.edges, tuple(chain_of))

    @property
    def converged(self) -> bool:
        """Whether the chains agree on nearly all that is traced, and have moved enough to tell."""
        return not self.disagreement()

    def disagreement(self) -> str:
        """Return in words where the chains do not agree yet, or say too little; "" if nowhere."""
        return disagreement(self.r_hat(), self.effective(), len(self.chains))

    def r_hat(self) -> Diagnosis:
        """Return split R-hat of the traced quantities; NaN from fewer than four samples."""
        return self._diagnosed(split_r_hat)

    def effective(self) -> Diagnosis:
        """Return the effective sample size of the traced quantities."""
        return self._diagnosed(effective_sample_size)

    def _diagnosed(self, diagnose: Callable[[NDArray], NDArray]) -> Diagnosis:
        kinds = self.monitor.kinds
        if len(self.traces) < 4:
            return {kind: np.full(part.stop - part.start, np.nan) for kind, part in kinds.items()}
        found = diagnose(np.stack(self.traces, axis=1))
        return {kind: found[part] for kind, part in kinds.items()}

    def fork(self) -> Run:
        """Return a run that goes on from here on its own."""
        return replace(
            self,
            chains=tuple(chain.copy() for chain in self.chains),
            kept=tuple(kept.copy() for kept in self.kept),
            traces=list(self.traces),
            history=list(self.history),
        )


def disagreement(r_hat: Diagnosis, effective: Diagnosis, n_chains: int) -> str:
    """Return in words where chains do not agree yet, or say too little; "" if nowhere.

    Of noise scales half must: with as many factors as a table may need, a factor of its own and
    noise are two names for the same part of a column.
    """
    fewest = FEWEST * n_chains
    apart = {k: np.mean(~(found <= R_HAT_LIMITS[k])) for k, found in r_hat.items()}
    few = {k: np.mean(~(found >= fewest)) for k, found in effective.items()}
    for kind in sorted(apart, key=lambda k: apart[k] + AGREEING[k], reverse=True):
        if apart[kind] > 1 - AGREEING[kind] + ROUNDING:
            return f"R-hat is above {R_HAT_LIMITS[kind]} for {apart[kind]:.0%} of the {kind}"
    for kind in sorted(few, key=lambda k: few[k] + AGREEING[k], reverse=True):
        if few[kind] > 1 - AGREEING[kind] + ROUNDING:
            share = f"{few[kind]:.0%} of the {kind}"
            return f"the effective sample size is below {fewest} for {share}"
    return ""


def sample_posterior(
    intervals: Intervals,
    model: Model,
    schedule: Schedule,
    *,
    known: KnownSides | None = None,
    last: Run | None = None,
    threads: int = 1,
    on_sweep: Callable[[Run], bool] = lambda _: False,
    resume_point: ResumePoint = NO_RESUME_POINT,
) -> Run:
    """Draw from the posterior of a low-rank table with intervals.

    Parameters
    ----------
    intervals : Intervals
        The observed cells.
    model : Model
        Rank and noise, and in which columns missing cells tell of values.
    schedule : Schedule
        Chains, and how long each of them is.
    known : KnownSides, optional
        Features of rows and columns, and groups of rows.
    last : Run, optional
        Where to go on, without burn-in; the seed is then not used.
    threads : int
        Threads; the result does not depend on it.
    on_sweep : callable
        Called after each sweep of all chains; a true answer stops.
    resume_point : ResumePoint
        Where to go on, and where to leave the state after each sweep.
    """
    done, burn_in = 0, schedule.burn_in
    if resume_point.state is not None:
        run, done, burn_in = resume_point.state
    elif last is None:
        run = _begin(intervals, model, schedule, known)
    else:
        run, burn_in = last.fork(), 0
    table = _table(intervals, model, run.units, (known, run.edges))[0]
    for sweep in range(done, burn_in + schedule.n_samples):
        for chain in run.chains:
            chain.sweep(table, threads)
        run.history.append(sum(chain.misfit for chain in run.chains) / len(run.chains))
        if sweep >= burn_in:
            run.traces.append(np.array([run.monitor.watch(chain) for chain in run.chains]))
            for chain, kept in zip(run.chains, run.kept, strict=True):
                kept.offer(chain)
        resume_point.put((run, sweep + 1, burn_in))
        if on_sweep(run):
            return replace(run, stopped=True)
    return run


def _table(
    intervals: Intervals,
    model: Model,
    units: Units,
    given: tuple[KnownSides | None, EdgeSets | None],
) -> tuple[Table, NDArray[np.float64] | None]:
    """Return the standardised table, and the precisions of its columns if they are known."""
    known, edges = given
    cells, cols = units.standardise(intervals), None
    if model.noise == "known":
        cells, cols = known_noise(cells.bounded(), units)
    table = Table.of(cells, model, units.level, known)
    if edges is not None:
        table = replace(table, levels=LevelCells.of(intervals.bounded(), edges, units))
    return table, cols


def _begin(intervals: Intervals, model: Model, schedule: Schedule, known: KnownSides | None) -> Run:
    units = Units.of(intervals.bounded(), shared=model.row_offsets)
    edges = EdgeSets.of(intervals, model.levels) if model.levels else None
    table, cols = _table(intervals, model, units, (known, edges))
    seeds = np.random.SeedSequence(schedule.seed).spawn(schedule.chains)
    # An even number: every second one is dropped when it is full.
    capacity = max(2, schedule.max_kept // schedule.chains // 2 * 2)
    chains = tuple(Chain.start(table, model, s) for s in seeds)
    if cols is not None:
        for chain in chains:
            chain.scales = replace(chain.scales, cols=cols)
    return Run(
        chains=chains,
        kept=tuple(Kept(capacity) for _ in seeds),
        traces=[],
        history=[],
        units=units,
        monitor=Monitor.of(table.cells, edges),
        edges=edges,
    )


def _evenly(n: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, n - 1, min(n, _WATCHED)).astype(np.intp))
