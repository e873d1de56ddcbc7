"""A table of blocks fitted on this machine: larger than memory, but for its factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from declip.blocks.descent import Progress, minimise_blocks
from declip.blocks.parts import ObjectiveTerms
from declip.blocks.running import Here
from declip.blocks.table import BlockTable
from declip.solvers import Solution
from declip.validation import check_some_exact

__all__ = ["check_blocks", "fit_here"]


def check_blocks(table: BlockTable) -> None:
    """Refuse a table that cannot be fitted."""
    if table.n_exact == 0:
        check_some_exact(np.empty(0), np.empty(0), len(table))


def fit_here(
    table: BlockTable,
    terms: ObjectiveTerms,
    rank: int,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    on_sweep: Callable[[Progress], Any],
) -> Solution:
    """Fit a table of blocks in this process, one block after the other."""
    fit = minimise_blocks(
        table, terms, rank, rng, Here(), max_iter=max_iter, tol=tol, on_sweep=on_sweep
    )
    return Solution(
        fit.model(table, fit.rows),
        fit.history,
        fit.converged,
        fit.terms.scale,
        fit.stopped,
        fit.unit,
        fit.singular_values,
    )
