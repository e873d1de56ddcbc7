"""Rows of another table, drawn under the columns of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from declip import kernels
from declip.cells import Cells
from declip.kernels import CellDraws
from declip.lowrank import GroupOffsets
from declip.solvers.gibbs.chain import Model, Table, first_draws, row_problem
from declip.solvers.gibbs.detection import MissingDraws, Predicted
from declip.solvers.gibbs.priors import POOLED_DF, Gaussian, NoiseScales, row_precision
from declip.solvers.gibbs.sample import Sample
from declip.solvers.gibbs.side import Regression

__all__ = ["rows_under"]

_FIRST_SWEEPS, _MORE_SWEEPS = 10, 3  # of new rows, at the first sample and at each one after it,
_OF_MANY_ROWS = 5, 2  # and where each row has random numbers of its own


def rows_under(
    samples: Sequence[Sample],
    given: Table,
    model: Model,
    key: tuple[int, bool],
    threads: int,
) -> Iterator[Sample]:
    """Yield the samples with rows drawn for other cells, a short chain of them for each.

    The key is a seed, and whether all rows see the same random numbers.
    """
    seed, same_stream = key
    table, (n, n_cols) = given, given.cells.shape
    drawn, precision = first_draws(table.cells.by_row, model), np.ones(n)
    rng, sweep = np.random.default_rng(seed), 0
    first, more = (_FIRST_SWEEPS, _MORE_SWEEPS) if same_stream else _OF_MANY_ROWS
    for sample in samples:
        factors = replace(sample.factors.astype(np.float64), groups=None)
        prior, groups = _about_features(sample, table), _groups_of(sample, table)
        scales = NoiseScales(model.noise, precision, sample.cols.astype(np.float64))
        A, table = np.zeros((n, model.rank + 1)), given.cut_at(sample.cuts)
        for _ in range(more if sweep else first):
            side, seen = _side_without(table, groups), replace(factors, A=A)
            if sample.curve is not None and table.missing is not None:
                here = replace(sample, factors=seen, rows=precision.astype(np.float32))
                side, drawn = _with_readings(table, drawn, here, rng.random((2, n_cols)))
            rows = row_problem(side, seen, model, prior, scales)
            own = np.empty((n, rows.design.shape[1]))
            drawn = drawn._replace(z=np.clip(drawn.z, side.lower, side.upper))
            squares = kernels.draw_rows(
                rows, own, drawn, (seed, sweep), same_stream=same_stream, threads=threads
            )
            A[:, : own.shape[1]] = own
            sweep += 1
        factors = replace(factors, A=A.copy(), groups=groups).astype(np.float32)
        yield replace(sample, factors=factors, rows=precision.astype(np.float32))
        if model.noise == "row+column":
            u = rng.random() if same_stream else rng.random(n)
            gamma = special.gammaincinv(0.5 * (POOLED_DF + table.counts[0]), u)
            precision = row_precision(gamma, squares)


def _about_features(sample: Sample, table: Table) -> Gaussian:
    """Return the prior of other rows: about what their features say, if these are known."""
    features, found, prior = table.known.row_features, sample.coefficients, sample.row_prior
    if features is None or found is None:
        return prior
    return Regression(found, np.ones(len(found))).about(features, prior)


def _groups_of(sample: Sample, table: Table) -> GroupOffsets | None:
    """Return the offsets of the groups of other rows."""
    index, groups = table.known.groups, sample.factors.groups
    if index is None or groups is None:
        return None
    return GroupOffsets(index, groups.offsets.astype(np.float64))


def _side_without(table: Table, groups: GroupOffsets | None) -> Cells:
    """Return the cells of other rows, by row, without the offsets of their groups."""
    whole = table if groups is None else table.without(groups.offsets)
    return whole.cells.by_row


def _with_readings(
    table: Table, drawn: CellDraws, sample: Sample, uniform: NDArray
) -> tuple[Cells, CellDraws]:
    """Return cells and what is drawn of them, the missing ones as the curve of a sample has them.

    All rows see the same random numbers, two for each column.
    """
    missing, curve = table.missing, sample.curve
    if missing is None or curve is None:
        return table.cells.by_row, drawn
    predicted = Predicted(*sample.at(missing.rows, missing.cols), missing.cols)
    draws = MissingDraws.of(curve, predicted, uniform[:, missing.cols])
    return table.seen_through(curve, draws).cells.by_row, draws.put(
        drawn, missing, curve.weights(*predicted[1:]), table.cells.n_exact
    )
