"""How far distributions are drawn in beyond a limit: what hidden cells say, pooled over columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from declip.restoration.ends import ColumnEnds
from declip.restoration.predictive import CensoredMixture

__all__ = ["HiddenCells", "TailShrinkage"]

# Settled on the tables that the study of `restore` names as those it was tuned on.
# standard deviations of log c, between which data decide
_SPREADS = (0.05, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 2.8)
_ELSEWHERE = 1.2  # spreads from the log c of a column to that at any one limit, moved or real
_CAUTION = 0.4  # of the posterior variance of log c, by which expected values are drawn in,
_CELLS_OF_CAUTION = 4.0  # and so much more over the number of exact cells of the column
_COUNTED = 0.7  # of it in intervals: more, and they hold more than said;
_COUNTED_TO_AN_END = 0.2  # less towards zero, where amounts end alike
_LONGER = 0.7  # by how much log c is less in intervals for each unit of skewness outwards,
_MOST_SKEWED = 2.0  # which is taken for so much at most
_GRID = np.linspace(-1.6, 2.4, 26)  # of log c
_NONE = int(np.argmin(abs(_GRID)))
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
        log_shrinkage = np.broadcast_to(log_shrinkage, self.value.shape)
        found = np.empty(len(self.value))
        for at, mixture, bound in self._parts:
            some = mixture.shrunk(log_shrinkage[at])
            value = np.maximum(self.value[at], mixture.limit)
            found[at] = some.log_survival(value) if bound else some.log_density(value)
        return found

    @cached_property
    def _parts(self) -> list[tuple[NDArray[np.intp], CensoredMixture, bool]]:
        """The cells of which a bound is known, and those of which the truth is."""
        both = ((np.flatnonzero(self.censored == bound), bound) for bound in (True, False))
        return [(at, self.mixture.take(at), bound) for at, bound in both if len(at)]

    def log_likelihoods(self, n_groups: int) -> NDArray[np.float64]:
        """Return the sums over each side and column, for every log c of a grid."""
        some = self.some()
        return np.array(
            [np.bincount(some.group, some.log_likelihood(x), 2 * n_groups) for x in _GRID]
        )


@dataclass(frozen=True, eq=False)
class TailShrinkage:
    """Log c of each side and column, as a posterior by its mean and variance.

    Attributes
    ----------
    mean, variance : ndarray of shape (2 * n_groups,)
        Of floors, then of ceilings.
    ends : ColumnEnds
        What else is known of the columns.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    ends: ColumnEnds

    @classmethod
    def of(cls, tasks: Sequence[HiddenCells], ends: ColumnEnds) -> TailShrinkage:
        """Return the posterior at the real limits, given cells hidden by limits inside them.

        Cells hidden just inside a real limit tell most of what lies beyond it, but they are few;
        those of a limit moved further are more. Both are judged as limits of the same column.
        """
        totals = np.array([hidden.log_likelihoods(ends.n_columns) for hidden in tasks])
        sides = [_posterior(side) for side in np.split(totals, 2, axis=2)]
        mean, variance = (np.concatenate(part) for part in zip(*sides, strict=True))
        return cls(mean, variance, ends)

    @property
    def cautious(self) -> NDArray[np.float64]:
        """Log c by which expected values are drawn in.

        The less is known of log c the further, by its variance: an error outwards has no end. The
        more so where few cells tell of the column, and the method itself knows little.
        """
        share = _CAUTION + _CELLS_OF_CAUTION / np.maximum(self.ends.n_exact, 1)
        return self.mean + np.tile(share, 2) * self.variance

    @property
    def centre(self) -> NDArray[np.float64]:
        """Log c in the middle of intervals and draws.

        These reach further where the exact cells are skewed outwards. Values do not: a column of
        two clusters is skewed too.
        """
        longer = _LONGER * np.clip(self.ends.skewness, 0.0, _MOST_SKEWED)
        return self.mean - np.where(self.ends.bounded, 0.0, longer).ravel()

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviations of log c there."""
        counted = np.where(self.ends.bounded, _COUNTED_TO_AN_END, _COUNTED).ravel()
        return np.sqrt(counted * self.variance)

    def for_values(self, mixture: CensoredMixture, group: NDArray) -> CensoredMixture:
        """Return distributions drawn in for their expected values."""
        return mixture.shrunk(self.cautious[group])

    def drawn(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw log c of each side and column."""
        return self.centre + self.sd * rng.standard_normal(len(self.mean))


def _posterior(hidden: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and variance of log c at the real limits of columns.

    ``hidden`` holds log-likelihoods by task, log c and column. Columns share a normal prior, whose
    mean t is itself normal about 0, with the same spread s; both are integrated over a grid. At a
    limit log c is normal about that of its column. Where the methods are right, s is small and next
    to nothing is drawn in.
    """
    found = [_given_spread(hidden, s) for s in _SPREADS]
    weight = softmax([log_evidence for _, log_evidence in found])
    density = np.tensordot(weight, np.array([part for part, _ in found]), 1)
    mean = _GRID @ density
    return mean, np.maximum(_GRID**2 @ density - mean**2, 0.0)


def _given_spread(hidden: NDArray, s: float) -> tuple[NDArray[np.float64], float]:
    """Return the posterior of log c at real limits, by column, and the log-evidence for s."""
    elsewhere, prior = _normal(_ELSEWHERE * s), _normal(s)
    top = hidden.max(axis=1, keepdims=True)
    # log p(hidden cells | x) of a column: a sum over its moved limits
    log_column = np.log(elsewhere.T @ np.exp(hidden - top) + 1e-300).sum(axis=0)
    highest = log_column.max(axis=0)
    likelihood = np.exp(log_column - highest)
    evidence = prior.T @ likelihood + 1e-300  # p(column | t)
    log_t = np.log(evidence).sum(axis=1) + np.log(prior[:, _NONE] + 1e-300)
    # p(x | all) = likelihood(x) sum_t p(x | t) p(t) / p(column | t), then from there to the limit
    density = elsewhere @ (likelihood * (prior @ (softmax(log_t)[:, None] / evidence)))
    return density / density.sum(axis=0), float(top.sum() + highest.sum() + logsumexp(log_t))


def _normal(sd: float) -> NDArray[np.float64]:
    """Return normal densities on the grid about each of its points, one a column."""
    density = np.exp(-0.5 * ((_GRID[:, None] - _GRID) / sd) ** 2)
    return density / density.sum(axis=0)
