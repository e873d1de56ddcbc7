"""How far distributions are drawn in beyond a limit: what hidden cells say, pooled over columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from declip.restoration.predictive import CensoredMixture

__all__ = ["HiddenCells", "TailShrinkage"]

# Settled on the tables that the study of `restore` names as those it was tuned on.
_TABLE_SPREAD, _COLUMN_SPREAD = 0.5, 0.5  # prior standard deviations of log c
_BEYOND = 0.1  # by how much log c grows from what was hidden to what lies beyond the real limit
_LEAST = -0.15  # log c of values; bands may go further
_GRID = np.linspace(-1.6, 2.4, 26)  # of log c
_ENOUGH_CELLS = 20_000


@dataclass(frozen=True, eq=False)
class HiddenCells:
    """Cells that a task hid behind a limit, and what is known of them.

    Attributes
    ----------
    group : ndarray of int
        Side and column: side * n_groups + column.
    mixture : CensoredMixture
        What a method makes of them, not drawn in.
    value : ndarray
        Their truth, or a bound that it lies beyond, times the sign of the mixture.
    censored : ndarray of bool
        Whether only the bound is known.
    """

    group: NDArray[np.intp]
    mixture: CensoredMixture
    value: NDArray[np.float64]
    censored: NDArray[np.bool_]

    def some(self, most: int = _ENOUGH_CELLS) -> HiddenCells:
        """Return at most about so many of the cells, evenly spread."""
        part = slice(None, None, -(-len(self.group) // most) or 1)
        return HiddenCells(
            self.group[part], self.mixture.take(part), self.value[part], self.censored[part]
        )

    def log_likelihood(self, log_shrinkage: NDArray | float) -> NDArray[np.float64]:
        """Return that of each cell under a shrinkage."""
        value = np.maximum(self.value, self.mixture.limit)
        law = self.mixture.shrunk(np.broadcast_to(log_shrinkage, value.shape))
        return np.where(self.censored, law.log_survival(value), law.log_density(value))


@dataclass(frozen=True, eq=False)
class TailShrinkage:
    """Log c of each side and column, as a posterior by its mean and standard deviation.

    Attributes
    ----------
    mean, sd : ndarray of shape (2 * n_groups,)
        Of floors, then of ceilings.
    nearest : ndarray of shape (2 * n_groups,)
        The same mean by the cells that were hidden nearest to the real limits alone.
    """

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    nearest: NDArray[np.float64]

    @classmethod
    def of(cls, hidden: Sequence[HiddenCells], n_groups: int) -> TailShrinkage:
        """Return the posterior given the cells of the first task; the last is the nearest one."""
        mean, sd = _by_side(hidden[0], n_groups)
        nearest = _by_side(hidden[-1], n_groups)[0] if len(hidden) > 1 else mean
        return cls(mean, sd, nearest)

    def for_values(self, mixture: CensoredMixture, group: NDArray) -> CensoredMixture:
        """Return distributions drawn in for their expected values.

        Never less than the nearest cells ask for; and, where little is known of a cell, a little
        more, as what lies beyond the real limits has been found to.
        """
        asked = np.maximum(self.mean + self.sd**2, self.nearest)[group]
        mean, square = mixture.shrunk(asked).moments()
        # the variance of the distance is half of its mean square if it is exponential
        unknown = np.clip(2 * (1 - mean**2 / np.maximum(square, 1e-300)), 0.0, 1.0)
        return mixture.shrunk(np.maximum(asked + _BEYOND * unknown, _LEAST))


def _by_side(hidden: HiddenCells, n_groups: int) -> tuple[NDArray[np.float64], ...]:
    """Return mean and standard deviation of log c for floors, then for ceilings."""
    some = hidden.some()
    totals = [np.bincount(some.group, some.log_likelihood(log_c), 2 * n_groups) for log_c in _GRID]
    sides = [_posterior(np.array(totals)[:, part]) for part in _halves(n_groups)]
    return tuple(np.concatenate(part) for part in zip(*sides, strict=True))


def _halves(n_groups: int) -> tuple[slice, slice]:
    return slice(n_groups), slice(n_groups, 2 * n_groups)


def _posterior(log_likelihood: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of log c of columns that share a normal prior.

    The mean t of the prior is itself normal about 0; both are integrated over the grid.
    """
    prior = np.exp(-0.5 * ((_GRID[:, None] - _GRID) / _COLUMN_SPREAD) ** 2)  # p(x | t)
    prior /= prior.sum(axis=0)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))
    evidence = prior.T @ likelihood  # p(column | t)
    log_t = np.log(evidence + 1e-300).sum(axis=1) - 0.5 * (_GRID / _TABLE_SPREAD) ** 2
    t = np.exp(log_t - log_t.max())
    t /= t.sum()
    # p(x | all) = likelihood(x) sum_t p(x | t) p(t) / p(column | t)
    density = likelihood * (prior @ (t[:, None] / (evidence + 1e-300)))
    density /= density.sum(axis=0)
    mean = _GRID @ density
    return mean, np.sqrt(np.maximum(_GRID**2 @ density - mean**2, 0.0))
