"""The studies: each returns plain results, which `benchmarks.__main__` keeps."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.contenders import (
    ALPHA,
    as_intervals,
    as_values,
    forget_peak,
    peak_mb,
    resident_mb,
    rmse,
)
from benchmarks.limits import limits
from benchmarks.runner import per_epoch, run, stopwatch
from benchmarks.shapes import CEILING, SHAPES, centred, make_ratings, ratings, split
from benchmarks.splitting import splitting
from declip import BayesCMC, FroCMC, Intervals, TrCMC, kernels
from declip.losses import Hinge
from declip.lowrank import LowRank
from declip.objective import largest_alpha, objective
from declip.penalties import ClippedTraceNorm, Ridge, TraceNorm
from declip.solvers import (
    ClippedTraceProblem,
    Limits,
    Solution,
    Stopping,
    TableProblem,
    limit_model,
    minimise,
    start_model,
    subgradient_descent,
)
from declip.svd import shrink

__all__ = ["STUDIES"]

warnings.simplefilter("ignore")
PEERS = ["cmfrec-cholesky", "cmfrec-cg", "implicit-cg", "lenskit"]
ROUNDS = 2  # of all contenders, in turn
EPOCHS = (3, 5, 10)  # of a peer, for the errors that are to be reached
STRONG = {"200k": 10.0, "5m": 40.0, "20m": 60.0}  # penalties there: about those of least error
OURS = ["declip", "declip-full", "declip-cholesky", "declip-hinge"]


def peers(quick: bool) -> list[dict[str, Any]]:
    """Seconds an epoch on the same ratings, rank and thread."""
    if quick:
        return per_epoch(["declip", "declip-hinge", "cmfrec-cg"], "200k", 40, (2, 6), rounds=1)
    found = per_epoch([*OURS, *PEERS], "20m", 40, (1, 3), ROUNDS)
    return found + per_epoch([*OURS[:2], "cmfrec-cg"], "20m", 64, (1, 3), ROUNDS)


def threads(quick: bool) -> dict[str, Any]:
    """Wall seconds an epoch, and of a product of matrices, with one thread and with two."""
    shape, epochs = ("200k", (2, 6)) if quick else ("20m", (1, 3))
    found = per_epoch(["declip", "declip-2-threads"], shape, 40, epochs, rounds=ROUNDS)
    return {"epochs": found, "gemm_gflops": [_gemm(n) / 1e9 for n in (1, 2)]}


def same_objective(quick: bool) -> list[dict[str, Any]]:
    """CPU seconds until declip is at the plain objective that cmfrec ends with."""
    shape, k = ("200k", 10) if quick else ("2m", 40)
    ours = _path(as_values(ratings(shape)), k, max_iter=60)
    found = []
    for name in ("cmfrec-cg", "cmfrec-cholesky"):
        theirs = run(name, shape, k, 10)
        reached = next((t for t, value in ours if value <= theirs["objective"]), None)
        found.append({**theirs, "declip_cpu": reached})
    return found


def same_error(quick: bool) -> list[dict[str, Any]]:
    """CPU seconds until declip is at the test error that a peer has after some epochs."""
    if quick:
        return _same_error("200k", 10, ["cmfrec-cg"], (2, 4))
    peers = ["cmfrec-cg", "cmfrec-cholesky"]
    return _same_error("5m", 40, peers, EPOCHS) + _same_error("20m", 40, peers[:1], EPOCHS)


def _same_error(
    shape: str, k: int, peers: list[str], epochs: tuple[int, ...]
) -> list[dict[str, Any]]:
    train, test, mean = centred(ratings(shape))
    alpha = STRONG[shape]
    path = _path(as_values(train), k, 20, alpha, lambda state: rmse(state.model, test, mean))
    found = []
    for name, n in product(peers, epochs):
        theirs = run(name, shape, k, n, str(alpha))
        found.append({**theirs, "alpha": alpha, "declip_path": path})
        told = f"{theirs['error']:.4f} in {theirs['cpu']:.1f} s"
        print(f"{shape} {name}, {n} epochs: {told}", flush=True)
    return found


def stopping(quick: bool) -> list[dict[str, Any]]:
    """Sweeps of a fit by default settings, and those that reach the best test error."""
    shape = "200k" if quick else "5m"
    train, test = split(ratings(shape))
    data, found = as_intervals(train), []
    for settings in ({}, {"bias": True}, {"n_components": 40}, {"n_components": 40, "bias": True}):
        errors: list[float] = []
        model = FroCMC(**settings, random_state=0)

        def on_sweep(state: Solution, errors: list[float] = errors) -> bool:
            errors.append(rmse(state.model, test))
            return False

        _watched(model.set_params(tol=0.0, max_iter=60), data, on_sweep)
        n = clone(model).set_params(tol="auto", max_iter=300).fit(data).n_iter_
        found.append({"shape": shape, "settings": settings, "sweeps": n, "errors": errors})
        print(f"{settings}: {n} sweeps, errors {np.round(errors, 4).tolist()}", flush=True)
    return found


def _watched(model: FroCMC, data: Intervals, on_sweep: Callable[[Solution], bool]) -> None:
    """Make the sweeps of a fit, each of them shown."""
    cells, settled = model._settled(data)
    model._solve(cells, settled, on_sweep=on_sweep)


def _path(
    data: Intervals,
    k: int,
    max_iter: int,
    alpha: float = ALPHA,
    look: Callable[[Solution], float] = lambda state: float(state.history[-1]),
) -> list[tuple[float, float]]:
    """Return CPU seconds, the start included, and what is seen after each sweep: the objective."""
    path: list[tuple[float, float]] = []
    begin, looking = time.process_time(), 0.0
    start = start_model(data, k, False, "auto", np.random.default_rng(0))

    def on_sweep(state: Solution) -> bool:
        nonlocal looking
        now = time.process_time()
        path.append((now - begin - looking, look(state)))
        looking += time.process_time() - now
        return False

    problem = TableProblem(data, start, Ridge(alpha))
    minimise(problem, Hinge(), Stopping(max_iter, 0.0, on_sweep), polish=False)
    return path


def samples(quick: bool) -> dict[str, Any]:
    """CPU seconds a sample of BayesCMC: a long chain less a short one."""
    shape, (few, many) = "200k" if quick else "20m", (2, 6)
    data, before = as_intervals(ratings(shape)), resident_mb()
    forget_peak()  # of the data, and of the studies before
    seconds = {}
    for n in (few, many):
        model = BayesCMC(n_samples=n, burn_in=1, chains=1, max_kept=2, random_state=0)
        with stopwatch() as taken:
            model.fit(data)
        seconds[n] = taken["cpu"]
    found = {"shape": shape, "k": int(model.posterior_.model.rank), "added_mb": peak_mb() - before}
    return {**found, "cpu": (seconds[many] - seconds[few]) / (many - few), "asked": 3}


def soft_impute(quick: bool) -> dict[str, Any]:
    """TrCMC beside fancyimpute's SoftImpute on a dense table, half of it missing."""
    from fancyimpute import SoftImpute, soft_impute, solver

    for module in (soft_impute, solver):  # they call scikit-learn by a name that it no longer has
        module.check_array = lambda X, force_all_finite: np.array(X)
    shape = (400, 200) if quick else (2000, 1000)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape[0], 10)) @ rng.standard_normal((10, shape[1]))
    X += 0.5 * rng.standard_normal(shape)
    X[rng.random(shape) < 0.5] = np.nan
    data = Intervals.from_table(X)
    alpha = 0.2 * largest_alpha(data)
    with stopwatch() as theirs:
        peer = SoftImpute(shrinkage_value=alpha, max_iters=100, init_fill_method="zero",
                            convergence_threshold=1e-5, verbose=False)  # fmt: skip
        filled = peer.fit_transform(X)
    low = LowRank.from_svd(shrink(filled, alpha))  # the low-rank matrix behind the filled table
    goal = objective(data, low, Ridge(alpha))
    with stopwatch() as ours:
        model = TrCMC(alpha=alpha, tol=1e-5, solver="factored", scale="none").fit(data)
    return {
        "shape": shape,
        "alpha": alpha,
        "soft_impute": {**theirs, "objective": goal},
        "declip": {**ours, "objective": model.objective_, "gap": model.gap_, "rank": model.rank_},
    }


def convex(quick: bool) -> dict[str, Any]:
    """TrCMC to a certified gap, and steps of DTrCMC, at the largest shape."""
    data = as_intervals(ratings("200k" if quick else "20m"))
    most, before = largest_alpha(data), resident_mb()
    forget_peak()
    found: dict[str, Any] = {"shape": data.shape, "cells": len(data), "largest_alpha": most}
    with stopwatch() as taken:
        model = TrCMC(alpha=0.04 * most, tol=1e-2, scale="none").fit(data)
    found["TrCMC"] = {**taken, "gap": model.gap_ / model.objective_, "rank": int(model.rank_)}
    found["DTrCMC"] = _dtr_steps(data, 4 if quick else 10)
    found["added_mb"] = peak_mb() - before
    return found


def _dtr_steps(data: Intervals, n: int) -> dict[str, Any]:
    """Return the seconds of each step from the paper's start."""
    ends = (np.array([[x]], data.dtype) for x in (-np.inf, CEILING))
    limits, times = Limits(*ends), [time.process_time()]

    def on_sweep(_: Solution) -> bool:
        times.append(time.process_time())
        return False

    problem = ClippedTraceProblem(data, TraceNorm(60.0), ClippedTraceNorm(60.0, limits), 20)
    subgradient_descent(problem, limit_model(data, limits, 1.0), Stopping(n, 1e-6, on_sweep))
    return {"seconds": np.diff(times).tolist(), "max_rank": 20}


def scaling(quick: bool) -> dict[str, Any]:
    """Seconds a sweep against cells, rank, rows and threads, with fitted exponents."""
    shapes = ["200k", "2m"] if quick else ["200k", "2m", "20m"]
    cells = {SHAPES[s][2]: _sweep_seconds(_steady(SHAPES[s][2]), 20) for s in shapes}
    base = _steady(200_000 if quick else 2_000_000)
    ranks = {k: _sweep_seconds(base, k) for k in (8, 16, 24, 32, 48, 64, 96)}
    few_rows = {n: _sweep_seconds(_steady(2_000_000, n), 20) for n in (5_000, 20_000, 80_000)}
    pace = {t: _sweep_seconds(base, 40, threads=t) for t in (1, 2)}
    return {
        "cells": cells,
        "ranks": ranks,
        "rows": few_rows,
        "threads": pace,
        "exponents": {
            "cells": _exponent(cells),
            "ranks": _exponent(ranks),
            "rows": _exponent(few_rows),
        },
    }


def _steady(n_cells: int, n_rows: int | None = None) -> Intervals:
    """Return a table with 144 cells a row and as many columns as a fifth of its rows."""
    n_rows = n_rows or n_cells // 144
    return make_ratings(n_rows, n_rows // 5, n_cells).intervals()


def _sweep_seconds(data: Intervals, k: int, threads: int = 1, repeats: int = 3) -> float:
    """Return the least wall seconds of a sweep over rows and columns, by Cholesky."""
    rng = np.random.default_rng(0)
    P, Q = (rng.standard_normal((n, k), np.float32) for n in data.shape)
    ridge, zero = np.full(k, ALPHA, np.float32), [np.zeros(n, np.float32) for n in data.shape]
    sides = (data.by_col, Q, P, zero[0]), (data.by_row, P, Q, zero[1])
    taken = []
    for _ in range(repeats):
        with stopwatch() as watch:
            for side, own, design, offset in sides:
                problem = kernels.RowProblem(side, design, offset, Hinge(), ridge)
                kernels.update_rows(problem, own, threads=threads)
        taken.append(watch["wall"])
    return min(taken)


def _exponent(times: dict[int, float]) -> float:
    x, y = np.log(list(times)), np.log(list(times.values()))
    return float(np.polyfit(x, y, 1)[0])


def roofline(quick: bool) -> dict[str, Any]:
    """What this machine can do on one thread, and what share of it a sweep reaches."""
    k, data = 40, as_values(ratings("200k" if quick else "2m"))
    gemm = _gemm(threads=1)
    big, out = np.ones(1 << 26, np.float32), np.empty(1 << 26, np.float32)
    copy = 2 * big.nbytes / min(_seconds(lambda: np.copyto(out, big)) for _ in range(5))
    seconds = _sweep_seconds(data, k)
    # Twice a cell: k (k + 1) for the Gram matrix, 4 k for the residual; k^3 / 3 for a row.
    flops = 2 * len(data) * (k * (k + 1) + 4 * k) + sum(data.shape) * k**3 / 3
    moved = 2 * len(data) * (4 * k + 8)
    return {
        "gemm_gflops": gemm / 1e9,
        "copy_gb": copy / 1e9,
        "sweep_gflops": flops / seconds / 1e9,
        "sweep_gb": moved / seconds / 1e9,
        "share_of_gemm": flops / seconds / gemm,
        "k": k,
        "cells": len(data),
    }


def _gemm(threads: int, n: int = 3000) -> float:
    """Return the operations a second of a single-precision product."""
    A = np.random.default_rng(0).standard_normal((n, n), np.float32)
    with threadpool_limits(threads):
        return 2 * n**3 / min(_seconds(lambda: A @ A) for _ in range(8))


def _seconds(work: Callable[[], Any]) -> float:
    with stopwatch() as watch:
        work()
    return watch["wall"]


STUDIES: dict[str, Callable[[bool], Any]] = {
    "roofline": roofline,
    "limits": limits,
    "peers": peers,
    "threads": threads,
    "same-objective": same_objective,
    "same-error": same_error,
    "stopping": stopping,
    "samples": samples,
    "soft-impute": soft_impute,
    "scaling": scaling,
    "convex": convex,
    "splitting": splitting,
}
