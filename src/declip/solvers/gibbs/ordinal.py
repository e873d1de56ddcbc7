"""Probabilities of ordered levels, and the edges between them, from samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from declip.levels import Levels
from declip.solvers.gibbs.posterior import Posterior

__all__ = ["level_probabilities", "mean_edges"]


def level_probabilities(
    posterior: Posterior,
    cells: tuple[NDArray[np.int32], NDArray[np.int32]],
    cuts: NDArray[np.float64],
    threads: int = 1,
) -> NDArray[np.float64]:
    """Return the probability of each level of cells of one scale, of shape (n_cells, n_levels).

    Parameters
    ----------
    posterior : Posterior
        The samples.
    cells : pair of ndarray of int
        Rows and columns.
    cuts : ndarray of shape (n_levels + 1,)
        The edges as the scale has them, which count where none are sampled.
    threads : int
        Of the predictions.
    """
    units, (rows, cols) = posterior.units, cells
    total = np.zeros((len(rows), len(cuts)))
    for sample in posterior.samples:
        x, scale = sample.at(rows, cols, threads)
        own = np.broadcast_to(cuts, total.shape)
        if posterior.edges is not None and sample.cuts is not None:
            own = sample.cuts[posterior.edges.set_of[cols], : len(cuts)]
        standard = (own - units.shift[cols, None]) / units.scale[cols, None]
        total += posterior.noise.above((standard - x[:, None]) / scale[:, None])
    return -np.diff(total, axis=1) / len(posterior.samples)


def mean_edges(posterior: Posterior, levels: Levels) -> tuple[NDArray[np.float64] | None, ...]:
    """Return the posterior mean of the edges of each column, None for a column of numbers."""
    sets, drawn = posterior.edges, [s.cuts for s in posterior.samples if s.cuts is not None]
    scales = [levels.scale_of(j) for j in range(len(levels.of_column))]
    if sets is None or not drawn:
        return tuple(None if scale is None else scale.edges for scale in scales)
    with np.errstate(invalid="ignore"):
        mean = np.mean(drawn, axis=0)
    return tuple(
        None if scale is None else mean[sets.set_of[j], 1 : len(scale)]
        for j, scale in enumerate(scales)
    )
