"""What limits an epoch by conjugate gradients: work counted, beside what this machine reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import ALPHA, as_values
from benchmarks.shapes import ratings
from declip import Intervals, kernels
from declip.cells import Cells
from declip.losses import Hinge

__all__ = ["limits"]

_STEPS = {"inner_steps": 1, "cg_steps": 2}  # of a sweep of FroCMC at these ranks
_KEPT = 1 << 21  # bytes of a row's factors; longer rows are solved by their Gram matrix
_PASSES = 7  # residual, gradient, diagonal, and two products for each step: 2 k operations a cell
_NEAR = 128  # rows of factors that lie in the first cache
_TURNS = 1 << 22  # rows multiplied by a vector


def limits(quick: bool) -> dict[str, Any]:
    """CPU seconds of an epoch, its parts that can be had alone, and peaks of the same run."""
    shape, ranks = ("200k", (40,)) if quick else ("20m", (40, 64))
    table = as_values(ratings(shape))
    return {"shape": shape, "ranks": [_at_rank(table, k) for k in ranks]}


def _at_rank(table: Intervals, k: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    P, Q = (0.3 * rng.standard_normal((n, k), np.float32) for n in table.shape)
    sides = {"columns": (table.by_col, Q, P), "rows": (table.by_row, P, Q)}
    found = {name: _half_sweep(*side) for name, side in sides.items()}
    return {"k": k, "sides": found, **_peaks(k)}


def _half_sweep(side: Cells, own: NDArray, other: NDArray) -> dict[str, float]:
    """Return what half a sweep counts and takes: whole, from the cache, and its gather alone."""
    k = own.shape[1]
    near = replace(side, exact_idx=side.exact_idx % min(_NEAR, len(other)))
    work: dict[str, Callable[[], Any]] = {
        "cpu": lambda: _update(side, own, other),
        "near": lambda: _update(near, own, other),
        "gather": lambda: _gather(side, other),
    }
    lengths = np.diff(side.exact_ptr)
    long = lengths * 4 * k > _KEPT
    by_steps, by_gram = lengths[~long].sum(), lengths[long].sum()
    flops = 2 * _PASSES * k * by_steps + (k * (k + 1) + 4 * k) * by_gram
    n = int(lengths.sum())
    counted = {"gflop": float(flops) / 1e9, "gb": n * (4 * k + 4) / 1e9}
    return {**_least(work), **counted, "by_gram": float(by_gram) / n, "cells": n}


def _gather(side: Cells, other: NDArray, block: int = 1024) -> None:
    """Read the factors of all cells into a small buffer, in the order of a sweep, by NumPy."""
    out = np.empty((block, other.shape[1]), other.dtype)
    for begin in range(0, len(side.exact_idx), block):
        idx = side.exact_idx[begin : begin + block]
        np.take(other, idx, axis=0, out=out[: len(idx)], mode="clip")


def _update(side: Cells, own: NDArray, other: NDArray) -> None:
    ridge, zero = np.full(own.shape[1], ALPHA, np.float32), np.zeros(len(other), np.float32)
    kernels.update_rows(kernels.RowProblem(side, other, zero, Hinge(), ridge), own.copy(), **_STEPS)


def _peaks(k: int) -> dict[str, float]:
    """Return GF/s of products of matrices, and of matrices in the cache by vectors."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2000, 2000), np.float32)
    # As many as an average row or column has, and as many as the second cache holds.
    blocks = {n: rng.standard_normal((n, k), np.float32) for n in (256, 4096)}
    v = rng.standard_normal(k, np.float32)

    def by_vector(block: NDArray) -> None:
        for _ in range(_TURNS // len(block)):
            block @ v

    work: dict[str, Callable[[], Any]] = {"gemm": lambda: A @ A}
    work |= {f"gemv_{n}": lambda block=block: by_vector(block) for n, block in blocks.items()}
    seconds = _least(work)
    operations = dict.fromkeys(work, 2 * k * _TURNS) | {"gemm": 2 * len(A) ** 3}
    return {what: operations[what] / seconds[what] / 1e9 for what in work}


def _least(work: dict[str, Callable[[], Any]], rounds: int = 4) -> dict[str, float]:
    """Return the least CPU seconds of each, one after the other in every round."""
    taken: dict[str, list[float]] = {what: [] for what in work}
    for _ in range(rounds):
        for what, make in work.items():
            begin = time.process_time()
            make()
            taken[what].append(time.process_time() - begin)
    return {what: min(seconds) for what, seconds in taken.items()}
