"""How much each method counts: by the likelihood of cells that were hidden and held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import clone

from declip.intervals import Intervals
from declip.losses import Hinge, Tobit
from declip.model_selection import EntrySearchCV, EntryShuffleSplit, HeldOutCells
from declip.reclip import LEFT, RESTORED, ReclipResult, Trial
from declip.restoration.candidates import Candidate, grid, methods_to_weigh, untuned
from declip.restoration.settings import KNOWN, Settings
from declip.restoration.shrinkage import TailShrinkage
from declip.restoration.tasks import Evidence, Scaled, Task, tasks_of
from declip.scaling import Scaling

__all__ = ["Choice", "Member", "choose", "pooled_moments"]

_TUNED_ON = 1000  # held-out cells, over all splits
_PATIENCE = 2  # larger ranks that may be worse before no more are tried
_SCALE_STEPS = 10
_PRIOR_CELLS = 5.0  # cells that each method counts as having explained before any was seen
_EM_STEPS = 200
_IMPOSSIBLE = -1e300  # log-likelihood that stands for minus infinity
_NEGLIGIBLE = 0.08  # weight of a method that is not worth a fit


@dataclass(frozen=True, eq=False)
class Member:
    """A method that counts, and by how much.

    Attributes
    ----------
    candidate : Candidate
        The method.
    weight, fill_weight : float
        For what lies beyond limits, and for missing cells.
    shrinkage : TailShrinkage
        How far it is drawn in beyond the limits.
    """

    candidate: Candidate
    weight: float
    fill_weight: float
    shrinkage: TailShrinkage


@dataclass
class Choice:
    """The methods that count, and the evidence for them.

    Attributes
    ----------
    members : list of Member
        Those that count, by weight.
    candidates : list of Candidate
        All that were looked at, by weight.
    reclip : ReclipResult or None
        The test of their mixture; None if nothing could be hidden.
    half_width : float
        Of the bands of filled cells, in standard deviations.
    left_out : list of str
        Methods that the time limit left no time for.
    """

    members: list[Member]
    candidates: list[Candidate]
    reclip: ReclipResult | None = None
    half_width: float = 1.645
    left_out: list[str] = field(default_factory=list)


def choose(
    intervals: Intervals,
    table: Scaled,
    settings: Settings,
    tick: Callable[[str, float], None] = lambda *_: None,
) -> Choice:
    """Weigh the methods by evidence from the table itself.

    Parameters
    ----------
    intervals : Intervals
        The table.
    table : Scaled
        The same in standard units.
    settings : Settings
        What was asked for.
    tick : callable
        Told what is being done, and the share of the work that is done.
    """
    began, tasks = monotonic(), tasks_of(intervals, settings)
    methods = methods_to_weigh(intervals, settings)
    candidates: list[Candidate] = []
    evidence: list[list[Evidence]] = []
    left_out: list[str] = []
    for number, method in enumerate(methods):
        if candidates and _is_over(settings.time_limit, began):
            left_out = methods[number:]
            break
        share = 0.9 * number / len(methods)
        tick(f"{method}: tuning", share)
        found = _tuned(method, table.cells, settings)
        try:
            seen = []
            for n, task in enumerate(tasks):
                tick(f"{method}: hidden cells", share + 0.9 * n / (len(methods) * len(tasks)))
                seen.append(task.evidence(found.estimator, settings.known_to(method)))
        except MemoryError:  # another method may need less
            if not candidates and method == methods[-1]:
                raise
            continue
        candidates.append(found)
        evidence.append(seen)
    choice = _weighed(tasks, table, candidates, evidence, settings)
    choice.left_out = left_out
    if any(len(task.cells) for task in tasks):
        choice.reclip = _result(intervals, tasks, choice.members, candidates, evidence)
    return choice


def _is_over(time_limit: float | None, began: float) -> bool:
    return time_limit is not None and monotonic() - began > time_limit


def _tuned(method: str, scaled: Intervals, settings: Settings) -> Candidate:
    """Return the method with the rank and penalty that held-out cells prefer."""
    estimator, worse = untuned(method, scaled, settings), 0
    grids = list(grid(method, scaled.shape, settings))
    best = Candidate(method, estimator)
    splits = _splits(scaled, settings.random_state) if grids else []
    if not splits and grids:  # too few cells to tune on: the least that the grids offer
        first = {name: values[0] for name, values in grids[0].items()}
        return Candidate(method, clone(estimator).set_params(**first))
    for parameters in grids:
        search = EntrySearchCV(
            estimator, parameters, cv=splits, scoring=_likelihood, refit=False
        ).fit(scaled)
        if -search.best_score_ < best.scores.get("tuning", np.inf):
            chosen = clone(estimator).set_params(**search.best_params_)
            best, worse = Candidate(method, chosen, {"tuning": -search.best_score_}), 0
        else:
            worse += 1
        if worse == _PATIENCE:
            break
    best.scores.pop("tuning", None)
    return best


def _splits(intervals: Intervals, seed: int) -> list[tuple[NDArray, NDArray]]:
    n = int(np.clip(10 * _TUNED_ON / max(len(intervals), 1), 1, 4))
    try:
        return list(EntryShuffleSplit(n, test_size=0.1, random_state=seed).split(intervals))
    except ValueError:  # every row and column needs all of its cells
        return []


def _weighed(
    tasks: Sequence[Task],
    table: Scaled,
    candidates: list[Candidate],
    evidence: Sequence[Sequence[Evidence]],
    settings: Settings,
) -> Choice:
    """Return the mixture of methods under which hidden and held-out cells are likeliest."""
    shrinkages = [TailShrinkage.of([e.hidden for e in seen], table.ends) for seen in evidence]
    hidden = np.array(
        [
            np.concatenate(
                [
                    e.hidden.some().log_likelihood(shrinkage.mean[e.hidden.some().group])
                    for e in seen
                ]
            )
            for seen, shrinkage in zip(evidence, shrinkages, strict=True)
        ]
    )
    held = np.array(
        [
            np.concatenate(
                [
                    t.held.log_likelihood(e.centre, e.spread)
                    for t, e in zip(tasks, seen, strict=True)
                ]
            )
            for seen in evidence
        ]
    )
    fill_weights = _mixture_weights(held)
    weights = _mixture_weights(hidden) if hidden.shape[1] else fill_weights
    for i, candidate in enumerate(candidates):
        scores = {"reclip": hidden[i], "held_out": held[i]}
        candidate.scores |= {name: -float(x.mean()) for name, x in scores.items() if x.size}
    members = [
        Member(*parts) for parts in zip(candidates, weights, fill_weights, shrinkages, strict=True)
    ]
    members = [m for m in members if _counts(m, settings)]
    _note_weights(candidates, members)
    choice = Choice(
        sorted(members, key=lambda m: -m.weight),
        sorted(candidates, key=lambda c: -c.scores["weight"]),
    )
    if held.shape[1]:
        choice.half_width = _half_width(tasks, evidence, fill_weights, settings.coverage)
    return choice


def _note_weights(candidates: Sequence[Candidate], members: Sequence[Member]) -> None:
    """Note by how much each counts, as it is used: the weights of members add up to one."""
    total, used = sum(m.weight for m in members), {id(m.candidate): m.weight for m in members}
    for candidate in candidates:
        candidate.scores["weight"] = float(used.get(id(candidate), 0.0) / total)


def _counts(member: Member, settings: Settings) -> bool:
    """Tell whether a method is worth a fit: by its weight, or as all that knows empty rows."""
    heavy = max(member.weight, member.fill_weight) >= _NEGLIGIBLE
    return heavy or (settings.describes_rows and member.candidate.method == KNOWN)


def _mixture_weights(log_likelihood: NDArray) -> NDArray[np.float64]:
    """Return the weights of methods (first axis) under which cells are likeliest, by EM.

    One cell cannot decide: a method that explains it badly, or by no number, only leaves it to the
    others.
    """
    n_methods, n_cells = log_likelihood.shape
    log_likelihood = np.nan_to_num(log_likelihood, nan=_IMPOSSIBLE, neginf=_IMPOSSIBLE)
    weights = np.full(n_methods, 1 / n_methods)
    if n_cells == 0:
        return weights
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))  # 1 for the best of a cell
    for _ in range(_EM_STEPS if n_methods > 1 else 0):
        share = weights * (likelihood @ (1 / (weights @ likelihood)))
        weights = (share + _PRIOR_CELLS) / (n_cells + n_methods * _PRIOR_CELLS)
    return weights


def _half_width(
    tasks: Sequence[Task],
    evidence: Sequence[Sequence[Evidence]],
    weights: NDArray,
    coverage: float,
) -> float:
    """Return how many standard deviations hold a share of the held-out cells.

    Of a clipped cell only the least error is known: it is the quantile of Kaplan and Meier or, if
    the limits hide that, the highest one seen, extended as a normal distribution goes; never less
    than of a normal distribution.
    """
    sizes, known = [], []
    for t, task in enumerate(tasks):
        parts = [(seen[t].centre, seen[t].spread) for seen in evidence]
        sizes.append(task.held.standardised_errors(*pooled_moments(parts, weights)))
        known.append(task.held.exact)
    size, exact = np.concatenate(sizes), np.concatenate(known)
    order = np.lexsort((~exact, size))
    size, exact = size[order], exact[order]
    at_risk = np.arange(len(size), 0, -1)
    below = 1 - np.cumprod(1 - exact / (at_risk + 1.0))  # one more cell, which is never below
    within = np.flatnonzero(exact & (below <= coverage) & (below > 0))
    if len(within) == 0:
        return _normal_half_width(coverage)
    last = within[-1]
    widened = size[last] / _normal_half_width(below[last])
    return _normal_half_width(coverage) * max(float(widened), 1.0)


def _normal_half_width(share: float) -> float:
    return float(norm.ppf((1 + share) / 2))


def pooled_moments(
    parts: Sequence[tuple[NDArray, NDArray]], weights: Sequence[float] | NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of a weighted mixture of methods' components."""
    weights = np.asarray(weights) / np.sum(weights)
    means = np.array([centre.mean(axis=0) for centre, _ in parts])
    squares = np.array([(centre**2 + spread**2).mean(axis=0) for centre, spread in parts])
    mean = weights @ means
    return mean, np.sqrt(np.maximum(weights @ squares - mean**2, 1e-18))


def _result(
    intervals: Intervals,
    tasks: Sequence[Task],
    members: Sequence[Member],
    candidates: Sequence[Candidate],
    evidence: Sequence[Sequence[Evidence]],
) -> ReclipResult:
    """Return the reclip test of the mixture; note the error of each method alone."""
    spread = Scaling.of(intervals, "columns").units.scale
    distances = {
        id(m.candidate): [
            m.shrinkage.for_values(e.hidden.mixture, e.hidden.group).moments()[0]
            for e in evidence[next(i for i, c in enumerate(candidates) if c is m.candidate)]
        ]
        for m in members
    }
    trials = {
        id(m.candidate): _trials(tasks, evidence, distances[id(m.candidate)]) for m in members
    }
    for m in members:
        alone = ReclipResult(trials[id(m.candidate)], spread, intervals.col_labels)
        m.candidate.scores["error"] = 1 - alone.gain
    total = sum(m.weight for m in members) or 1.0
    pooled = [
        sum(m.weight / total * distances[id(m.candidate)][t] for m in members)
        for t in range(len(tasks))
    ]
    return ReclipResult(_trials(tasks, evidence, pooled), spread, intervals.col_labels)


def _trials(
    tasks: Sequence[Task], evidence: Sequence[Sequence[Evidence]], distances: Sequence[Any]
) -> list[Trial]:
    return [
        Trial(
            task.quantile,
            task.cells,
            {
                RESTORED: task.in_units(seen.hidden.mixture, distance),
                LEFT: task.cells.limit,
            },
        )
        for task, seen, distance in zip(tasks, evidence[0], distances, strict=True)
    ]


def _likelihood(estimator: Any, cells: HeldOutCells) -> float:
    """Return the mean log-likelihood of held-out cells under the noise scale that fits best."""
    x = np.asarray(estimator.predict(cells.rows, cells.cols), np.float64)
    error = Hinge().cells(x, cells.lower, cells.upper).gradient
    known = cells.lower == cells.upper
    scale = max(float(np.sqrt(np.mean(error**2))), 1e-9)
    for _ in range(_SCALE_STEPS if not known.all() else 0):
        expected = Tobit(scale).expected_squares(x, cells.lower, cells.upper)
        scale = max(float(np.sqrt(np.where(known, error**2, expected).mean())), 1e-9)
    cell = Tobit(scale).cells(x, cells.lower, cells.upper)
    exact = 0.5 * (error / scale) ** 2 + np.log(scale)
    return -float(np.mean(np.where(known, exact, cell.value / scale**2)))
