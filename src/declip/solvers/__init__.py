"""Loops over iterations: each takes intervals and a start, and returns one result object."""

from declip.clipping import Limits
from declip.solvers.als import TableProblem, half_pays, minimise, solve_rows
from declip.solvers.exact import Bracket, minimum_trace_norm
from declip.solvers.solution import NO_RESUME_POINT, ResumePoint, Solution, Stopping
from declip.solvers.splitting import Start, TracePenalty, douglas_rachford
from declip.solvers.start import (
    limit_model,
    loss_at_zero,
    mean_and_spread,
    restart_dead_factors,
    start_loss,
    start_model,
    start_scale,
)
from declip.solvers.subgradient import ClippedTraceProblem, subgradient_descent
from declip.solvers.trace import TraceProblem, factored, proximal

__all__ = [
    "NO_RESUME_POINT",
    "Bracket",
    "ClippedTraceProblem",
    "Limits",
    "ResumePoint",
    "Solution",
    "Start",
    "Stopping",
    "TableProblem",
    "TracePenalty",
    "TraceProblem",
    "douglas_rachford",
    "factored",
    "half_pays",
    "limit_model",
    "loss_at_zero",
    "mean_and_spread",
    "minimise",
    "minimum_trace_norm",
    "proximal",
    "restart_dead_factors",
    "solve_rows",
    "start_loss",
    "start_model",
    "start_scale",
    "subgradient_descent",
]
