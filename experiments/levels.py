"""Ordered levels: edges found again, ratings as levels beside their peers, and 1-bit completion.

    DECLIP_DATA=folder python experiments/levels.py           # resumes where it was stopped
    python experiments/levels.py --parts simulated one-bit    # some parts only
    python experiments/levels.py --page                       # only write the page anew

Simulated: 300 people answer 30 questions in 5 levels with uneven edges, 30 % of the answers are
hidden. Ratings: the tasks of `ratings.py`, and the whole distribution of the test ratings of task
2. "Known edges" are Gaussian intervals, cut halfway between the ratings. Q-MC (Lan, Studer,
Baraniuk 2014) is maximum likelihood with a trace-norm penalty, in factors of rank 20; the method of
Bhaskar (2016) is maximum likelihood of exact rank with a logarithmic barrier, here on the observed
cells. Both know the edges (halfway), and their noise and strength (or rank) are those with the best
log score on the validation ratings. 1-bit: the simulation of Davenport and others (2014), 15 % of
the signs of a 500 x 500 matrix of rank 1 and largest entry 1 with Gaussian noise, beside their
method: the likeliest matrix in a ball of the trace norm, of radius d. The error is the squared one
over that of the zero matrix. And their test on MovieLens-100K: 95 % of the ratings as above or
below their mean, by a logistic (here Student) or a probit link.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from bayes import calibration_error
from common import RESULTS, Runs, markdown_table, mean_and_error, progress, publish
from ratings import DATA, Task
from scipy import optimize, sparse
from scipy.special import log_ndtr, ndtr
from sklearn.metrics import average_precision_score

from declip import BayesCMC, Intervals
from declip.datasets import fetch_movielens_100k
from declip.metrics import level_log_score, quadratic_weighted_kappa, ranked_probability_score

PARTS = ("simulated", "ratings", "one-bit", "movielens-bits")
EDGES = np.array([-1.8, -1.4, 0.3, 1.0])
CHAINS = {"n_samples": 100, "burn_in": 100}
BITS = {"n_samples": 60, "burn_in": 60}  # of MovieLens in bits
SIGMAS = (0.1, 0.2, 0.5, 1.0)


def run_simulated(kind: str, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 30)) + 0.5 * rng.normal(size=30)
    levels = np.digitize(x + 0.8 * rng.normal(size=x.shape), EDGES) + 1.0
    seen = rng.random(x.shape) < 0.7
    model = BayesCMC(5, levels=kind, random_state=seed, **CHAINS)
    model.fit(np.where(seen, levels, np.nan))
    rows, cols = np.nonzero(~seen)
    found = model.predict_levels(rows, cols)
    came = levels[rows, cols][:, None] == np.arange(1, 6)
    gaps = np.diff(np.mean(model.edges_, axis=0)) / np.ptp(np.mean(model.edges_, axis=0))
    return {
        **scores(found, levels[rows, cols], np.arange(1.0, 6)),
        "ECE": calibration_error(came.ravel().astype(float), found.ravel()),
        "error of edges": float(abs(np.cumsum(gaps - np.diff(EDGES) / np.ptp(EDGES))).max()),
    }


def scores(found: np.ndarray, truth: np.ndarray, names: np.ndarray) -> dict[str, float]:
    middle = names[(np.cumsum(found, axis=1) < 0.5).sum(axis=1)]
    found = found / found.sum(axis=1, keepdims=True)
    return {
        "log score": level_log_score(truth, found, names),
        "RPS": ranked_probability_score(truth, found, names),
        "kappa": quadratic_weighted_kappa(truth, middle, names),
    }


def training(task: Task, merged: bool) -> Intervals:
    """Return the training ratings as levels; those from the ceiling on are one, if merged."""
    data, train = task.ratings, task.train
    values = np.minimum(data.values, task.ceiling) if merged else data.values
    at = data.rows[train], data.cols[train], values[train]
    return Intervals.from_levels(Intervals.from_triplets(*at, data.shape))


def run_ratings(name: str, method: str, number: int, seed: int) -> dict[str, float]:
    task = Task.of(DATA[name](), number, seed)
    if method in PEERS:
        return run_peer(task, method)
    data, cells = task.ratings, training(task, number == 1)
    model = BayesCMC(levels=method, random_state=seed).fit(cells)
    at = data.rows[task.test], data.cols[task.test]
    names = cells.levels.scales[0].names
    if number == 1:
        chance = model.probability_above(*at, np.asarray(data.ceiling - 0.5))
        return {"AP": float(average_precision_score(task.high[task.test], chance))}
    found = model.predict_levels(*at)
    return level_scores(task, found, names) | {"converged": float(model.converged_)}


def level_scores(task: Task, found: np.ndarray, names: np.ndarray) -> dict[str, float]:
    high, truth = task.high[task.test], task.ratings.values[task.test]
    return {
        "AP": float(average_precision_score(high, found[:, -1])),
        "ECE": calibration_error(high.astype(float), found[:, -1]),
        **scores(found, truth, names),
    }


class LevelFit:
    """Maximum likelihood of levels with known edges, by L-BFGS over factors."""

    def __init__(self, cells: Intervals, rank: int, sigma: float, seed: int = 0) -> None:
        self.rows, self.cols, lower, upper = cells.triplets()
        self.shape, self.rank, self.sigma = cells.shape, rank, sigma
        scale = cells.levels.scales[0]
        self.centre, self.cuts = float(np.median(scale.edges)), scale.cuts
        self.lower, self.upper = lower.astype(float), upper.astype(float)
        start = np.random.default_rng(seed).standard_normal((sum(self.shape), rank))
        self.start = 0.1 * start / np.sqrt(rank)

    def value(
        self, flat: np.ndarray, strength: float, bound: float, weight: float
    ) -> tuple[float, np.ndarray]:
        """Return minus the log-likelihood with penalty and barrier, and its gradient."""
        F = flat.reshape(-1, self.rank)
        P, Q = F[: self.shape[0]], F[self.shape[0] :]
        m = np.einsum("ia,ia->i", P[self.rows], Q[self.cols])
        a, b = ((end - self.centre - m) / self.sigma for end in (self.lower, self.upper))
        loss, slope = negative_log_mass(a, b)
        value, gradient = loss.sum(), slope / self.sigma
        if np.isfinite(bound):
            # -log(1 - u), u = (m / bound)^2, and from u = .99 on its tangent
            room = 1 - (m / bound) ** 2
            far = np.maximum(0.01 - room, 0.0)
            room = np.maximum(room, 0.01)
            value += weight * (far / 0.01 - np.log(room)).sum()
            gradient = gradient + weight * 2 * m / bound**2 / room
        G = sparse.coo_array((gradient, (self.rows, self.cols)), shape=self.shape).tocsr()
        step = np.vstack([G @ Q, G.T @ P]) + strength * F
        return float(value + 0.5 * strength * (F**2).sum()), step.ravel()

    def fit(self, strength: float = 0.0, bound: float = np.inf, weight: float = 1.0) -> LevelFit:
        found = optimize.minimize(
            self.value,
            self.start.ravel(),
            (strength, bound, weight),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 100},
        )
        self.F = found.x.reshape(-1, self.rank)
        return self

    def chances(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        m = self.centre + self.matrix(rows, cols)
        found = np.diff(ndtr((self.cuts - m[:, None]) / self.sigma), axis=1)
        found = np.maximum(found, 1e-6)
        return found / found.sum(axis=1, keepdims=True)

    def matrix(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return np.einsum("ia,ia->i", self.F[rows], self.F[self.shape[0] + np.asarray(cols)])


def negative_log_mass(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return minus log P(a < Z - m < b), and its derivative by m, of standard normal Z."""
    flip = a + b > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)  # now in the lower tail
    high, low = log_ndtr(b), log_ndtr(a)
    log_mass = high + np.log1p(-np.exp(np.minimum(low - high, -1e-12)))
    density = np.exp(-0.5 * b**2 - log_mass) - np.exp(-0.5 * a**2 - log_mass)
    slope = density / np.sqrt(2 * np.pi)
    return -log_mass, np.where(flip, -slope, slope)


PEERS = {
    "Q-MC": [
        (20, sigma, {"strength": strength})
        for sigma, strength in product((0.7, 0.9), (8.0, 16.0, 32.0))
    ],
    "Bhaskar": [
        (rank, 0.8, {"bound": 3.0, "weight": weight})
        for rank, weight in product((1, 2, 4), (0.1, 1.0))
    ],
}


METHODS = ("shared", "known", "pooled", *PEERS)


def run_peer(task: Task, method: str) -> dict[str, Any]:
    data, cells = task.ratings, training(task, False)
    names, spread = cells.levels.scales[0].names, data.values.std()
    best = (np.inf, None, None)
    for rank, sigma, how in PEERS[method]:
        bounds = {k: v * spread if k == "bound" else v for k, v in how.items()}
        fit = LevelFit(cells, rank, sigma * spread).fit(**bounds)
        part = task.validation
        found = fit.chances(data.rows[part], data.cols[part])
        loss = level_log_score(data.values[part], found, names)
        if loss < best[0]:
            best = loss, fit, [rank, sigma, how]
    found = best[1].chances(data.rows[task.test], data.cols[task.test])
    return level_scores(task, found, names) | {"chosen": best[2]}


def run_one_bit(sigma: float, seed: int, d: int = 500, share: float = 0.15) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    M = rng.uniform(-0.5, 0.5, (d, 1)) @ rng.uniform(-0.5, 0.5, (1, d))
    M /= abs(M).max()
    seen = rng.random(M.shape) < share
    signs = np.where(M + sigma * rng.standard_normal(M.shape) > 0, 1.0, -1.0)
    cells = Intervals.from_levels(np.where(seen, signs, np.nan), [0.0])
    model = BayesCMC(2, levels="known", random_state=seed, chains=1, **CHAINS).fit(cells)
    by_ball = in_nuclear_ball(np.where(seen, signs, 0.0), sigma, radius=float(d))
    return {
        "BayesCMC": error_of(sigma * model.reconstruct() / model.noise_scale_, M),
        "trace norm at most d": error_of(by_ball, M),
    }


def in_nuclear_ball(
    signs: np.ndarray, sigma: float, radius: float, n_steps: int = 100
) -> np.ndarray:
    """Return the likeliest matrix of trace norm at most radius, by accelerated projection."""
    x = y = np.zeros_like(signs)
    t, step = 1.0, sigma**2  # the curvature of -log Phi is below 1
    for _ in range(n_steps):
        at = signs * y / sigma
        slope = -signs * np.exp(-0.5 * at**2 - log_ndtr(at)) / np.sqrt(2 * np.pi) / sigma
        new = onto_nuclear_ball(y - step * slope, radius)
        if np.vdot(y - new, new - x) > 0:
            t = 1.0  # momentum leads astray: begin anew
        later = 0.5 + np.sqrt(0.25 + t**2)
        x, y, t = new, new + (t - 1) / later * (new - x), later
    return x


def onto_nuclear_ball(x: np.ndarray, radius: float) -> np.ndarray:
    U, s, Vt = np.linalg.svd(x, full_matrices=False)
    excess = (np.cumsum(s) - radius) / np.arange(1, len(s) + 1)
    return (U * np.maximum(s - max(excess.max(), 0.0), 0.0)) @ Vt


def error_of(found: np.ndarray, M: np.ndarray) -> float:
    """Return the squared error relative to the matrix, entries cut off at 1 as they are known."""
    return float(((np.clip(found, -1, 1) - M) ** 2).sum() / (M**2).sum())


def run_movielens_bits(df: float | None, seed: int) -> dict[str, float]:
    data = fetch_movielens_100k()
    order = np.random.default_rng(seed).permutation(data.values.size)
    train, test = order[:95_000], order[95_000:]
    bits = np.where(data.values > data.values.mean(), 1.0, 0.0)
    cells = Intervals.from_triplets(data.rows[train], data.cols[train], bits[train], data.shape)
    model = BayesCMC(levels=True, df=df, random_state=seed, **BITS)
    model.fit(Intervals.from_levels(cells))
    found = model.predict_levels(data.rows[test], data.cols[test])[:, 1]
    right = (found > 0.5) == (bits[test] > 0.5)
    by = {f"rating {r:g}": float(right[data.values[test] == r].mean()) for r in range(1, 6)}
    return {**by, "overall": float(right.mean()), "ECE": calibration_error(bits[test], found)}


def cases(args: argparse.Namespace) -> Iterator[tuple[str, str, Any]]:
    if "simulated" in args.parts:
        for kind in ("known", "shared", "column", "pooled"):
            yield "simulated", kind, partial(run_simulated, kind)
    if "ratings" in args.parts:
        for method, number, name in product(args.methods, (2, 1), args.data):
            if number == 2 or method not in PEERS:
                yield f"{name}, task {number}", method, partial(run_ratings, name, method, number)
    if "movielens-bits" in args.parts:
        yield "MovieLens-100K in bits", "probit", partial(run_movielens_bits, None)
        yield "MovieLens-100K in bits", "t of 8 (near logistic)", partial(run_movielens_bits, 8.0)
    if "one-bit" in args.parts:
        for sigma in SIGMAS:
            yield "1-bit", f"noise {sigma:g}", partial(run_one_bit, sigma)


def with_numbers(runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the runs, and those of `bayes.py` on the same splits: ratings taken for numbers."""
    same = [r["settings"] for r in runs.values() if r["settings"]["method"] == "shared"]
    splits = {(settings["case"], settings["seed"]) for settings in same}
    found = dict(runs)
    for name, run in Runs(RESULTS / "bayes.jsonl").read().items():
        settings = run["settings"]
        if (settings["case"], settings["seed"]) in splits and "AP" in run:
            scored = {key: run[key] for key in ("AP", "ECE")}
            found[f"numbers-{name}"] = {"settings": {**settings, "method": "as numbers"}, **scored}
    return found


def page(runs: dict[str, dict[str, Any]]) -> str:
    """Return one table for each case, a line for each method."""
    tables: dict[str, dict[str, list]] = {}
    for run in runs.values():
        settings = run["settings"]
        tables.setdefault(settings["case"], {}).setdefault(settings["method"], []).append(run)
    parts = []
    for case, methods in tables.items():
        found = {name: _figures(own) for name, own in methods.items()}
        header = list(dict.fromkeys(key for own in found.values() for key in own))
        lines = ([n, *(own.get(h, "") for h in header)] for n, own in found.items())
        parts.append(f"## {case}\n\n" + markdown_table(["", *header], lines))
    return "# Ordered levels\n\n" + "\n".join(parts)


def _figures(runs: list[dict[str, Any]]) -> dict[str, str]:
    keys = [k for k, v in runs[0].items() if isinstance(v, float)]
    found = {k: mean_and_error([run[k] for run in runs]) for k in keys}
    text = {k: f"{m:.3f}" + ("" if np.isnan(e) else f" ({e:.3f})") for k, (m, e) in found.items()}
    return {"seeds": str(len(runs)), **text}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--data", nargs="+", choices=tuple(DATA), default=tuple(DATA))
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = Runs(RESULTS / "levels.jsonl")
    with progress() as bar:
        work = [] if args.page else list(product(args.seeds, cases(args)))
        for seed, (case, method, run) in bar.track(work, description="levels"):
            settings = {"case": case, "method": method, "seed": seed}
            if method in PEERS:
                settings["tried"] = len(PEERS[method])
            elif "task" in case:
                settings["chains"] = "as BayesCMC has them"
            runs.resume(f"{case}-{method}-seed{seed}", settings, lambda: run(seed))  # noqa: B023
    publish("levels", page(with_numbers(runs.read())))


if __name__ == "__main__":
    main()
