"""Loops over iterations: each takes intervals and a start, and returns one result object."""

from declip.solvers.als import Solution, minimise, solve_rows
from declip.solvers.start import start_model, start_scale
from declip.solvers.trace import factored, proximal

__all__ = [
    "Solution",
    "factored",
    "minimise",
    "proximal",
    "solve_rows",
    "start_model",
    "start_scale",
]
