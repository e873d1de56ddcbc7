"""Rows of another table, drawn under normal distributions that were sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.kernels import UnknownCells, draw_normal_rows
from declip.solvers.gibbs.covariance import NormalDraws, all_bounds

__all__ = ["rows_under"]

_FIRST_SWEEPS, _MORE_SWEEPS = 10, 5  # at the first draw, and from one to the next,
_OF_MANY_ROWS = 5, 3  # and where each row has random numbers of its own


def rows_under(
    draws: NormalDraws,
    intervals: Intervals,
    seed: int,
    *,
    independent: bool = False,
    threads: int = 1,
) -> NormalDraws:
    """Draw the rows of another table, and their classes, under the same distributions.

    Parameters
    ----------
    draws : NormalDraws
        The distributions.
    intervals : Intervals
        The other table, in the same units.
    seed : int
        Seed.
    independent : bool, default=False
        Whether each row has random numbers of its own. If all see the same ones, what is drawn for
        a row does not depend on the others.
    threads : int, default=1
        Threads; the result does not depend on it.
    """
    rng, bounds = np.random.default_rng(seed), all_bounds(intervals)
    n_classes, Z = draws.mean.shape[1], np.clip(0.0, *bounds)
    unknown, each = UnknownCells.of(*bounds), len(Z) if independent else 1
    del bounds
    rows = np.empty((len(draws), *Z.shape), np.float32)
    labels = np.zeros((len(draws), len(Z)), np.intp)
    first, more = _OF_MANY_ROWS if independent else (_FIRST_SWEEPS, _MORE_SWEEPS)
    sweep = 0
    for d, (mu, P, seen) in enumerate(zip(draws.mean, draws.precision, draws.label, strict=True)):
        share = (np.bincount(seen, minlength=n_classes) + 1 / n_classes) / (len(seen) + 1)
        for _ in range(more if sweep else first):
            if n_classes > 1:
                labels[d] = _classes_of(Z, mu, P, share, rng.gumbel(size=(n_classes, each)))
            draw_normal_rows(
                Z,
                unknown,
                labels[d],
                (mu, P),
                (seed, sweep),
                same_stream=not independent,
                threads=threads,
            )
            sweep += 1
        rows[d] = Z
    return replace(draws, rows=rows, label=labels)


def _classes_of(
    Z: NDArray, mu: NDArray, P: NDArray, share: NDArray, gumbel: NDArray
) -> NDArray[np.intp]:
    """Draw the classes of complete rows."""
    logs = [
        np.log(s) + 0.5 * np.linalg.slogdet(p)[1] - 0.5 * np.einsum("ij,jk,ik->i", R, p, R)
        for s, p, R in zip(share, P, (Z - m for m in mu), strict=True)
    ]
    return (np.array(logs) + gumbel).argmax(axis=0)
