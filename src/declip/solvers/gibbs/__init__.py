"""Gibbs sampling of a low-rank table whose cells are intervals."""

from declip.solvers.gibbs.chain import Model, two_levels
from declip.solvers.gibbs.convergence import effective_sample_size, split_r_hat
from declip.solvers.gibbs.credible import credible_interval
from declip.solvers.gibbs.ordinal import level_probabilities, mean_edges
from declip.solvers.gibbs.pattern import PatternEvidence, weigh_patterns
from declip.solvers.gibbs.posterior import Posterior
from declip.solvers.gibbs.sampler import Run, Schedule, disagreement, sample_posterior
from declip.solvers.gibbs.side import KnownSides

__all__ = [
    "KnownSides",
    "Model",
    "PatternEvidence",
    "Posterior",
    "Run",
    "Schedule",
    "credible_interval",
    "disagreement",
    "effective_sample_size",
    "level_probabilities",
    "mean_edges",
    "sample_posterior",
    "split_r_hat",
    "two_levels",
    "weigh_patterns",
]
