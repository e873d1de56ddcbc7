"""Loops over iterations: each takes intervals and a start, and returns one result object."""

from declip.solvers.als import minimise, solve_rows
from declip.solvers.clipping import Limits
from declip.solvers.exact import Bracket, minimum_trace_norm
from declip.solvers.noise import scale_at_zero
from declip.solvers.solution import NO_RESUME_POINT, ResumePoint, Solution
from declip.solvers.start import constant_model, restart_dead_factors, start_model, start_scale
from declip.solvers.subgradient import subgradient_descent
from declip.solvers.trace import factored, proximal

__all__ = [
    "NO_RESUME_POINT",
    "Bracket",
    "Limits",
    "ResumePoint",
    "Solution",
    "constant_model",
    "factored",
    "minimise",
    "minimum_trace_norm",
    "proximal",
    "restart_dead_factors",
    "scale_at_zero",
    "solve_rows",
    "start_model",
    "start_scale",
    "subgradient_descent",
]
