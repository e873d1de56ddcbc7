"""Loops over iterations: each takes intervals and a start, and returns one result object."""

from declip.solvers.als import minimise, solve_rows
from declip.solvers.clipping import Limits
from declip.solvers.exact import Bracket, minimum_trace_norm
from declip.solvers.noise import scale_at_zero
from declip.solvers.solution import NO_BOOKMARK, Bookmark, Solution
from declip.solvers.start import constant_model, revived, start_model, start_scale
from declip.solvers.subgradient import subgradient_descent
from declip.solvers.trace import factored, proximal

__all__ = [
    "NO_BOOKMARK",
    "Bookmark",
    "Bracket",
    "Limits",
    "Solution",
    "constant_model",
    "factored",
    "minimise",
    "minimum_trace_norm",
    "proximal",
    "revived",
    "scale_at_zero",
    "solve_rows",
    "start_model",
    "start_scale",
    "subgradient_descent",
]
