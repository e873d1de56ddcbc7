"""Kernels, objective and solvers called with plain numbers: an alpha, and a scale (0: hinge)."""

from declip import kernels, solvers
from declip import objective as of
from declip.kernels import RowProblem
from declip.losses import Tobit
from declip.penalties import ClippedTraceNorm, Ridge, TraceNorm
from declip.solvers import ClippedTraceProblem, Stopping, TableProblem, TraceProblem

loss_at = Tobit.at


def interval_loss(x, lower, upper, *, scale=0.0, threads=1):
    return loss_at(scale).cells(x, lower, upper, threads)


def update_rows(side, own, other, offset, ridge, *, scale=0.0, **how):
    return kernels.update_rows(RowProblem(side, other, offset, loss_at(scale), ridge), own, **how)


def residuals(side, own, other, offset, *, scale=0.0, **how):
    return kernels.residuals(RowProblem(side, other, offset, loss_at(scale)), own, **how)


def newton_sums(side, own, other, offset, *, scale=0.0, **how):
    return kernels.newton_sums(RowProblem(side, other, offset, loss_at(scale)), own, **how)


def step_trial(side, own, step, other, offset, lengths, *, scale=0.0, **how):
    rows = RowProblem(side, other, offset, loss_at(scale))
    return kernels.step_trial(rows, own, step, lengths, **how)


def objective(intervals, model, alpha, scale=0.0, alpha_bias=None):
    return of.objective(intervals, model, Ridge(alpha, alpha_bias), loss_at(scale))


def total_loss(intervals, model, scale=0.0):
    return of.total_loss(intervals, model, loss_at(scale))


def gradient(intervals, model, scale=0.0):
    return of.gradient(intervals, model, loss_at(scale))


def certificate(intervals, model, alpha, scale=0.0, *, alpha_bias=None, trace_norm=None):
    penalty = Ridge(alpha, alpha_bias)
    return of.certificate(intervals, model, penalty, loss_at(scale), trace_norm)


def largest_alpha(intervals, scale=0.0):
    return of.largest_alpha(intervals, loss_at(scale))


def solve_rows(side, model, alpha, scale=0.0, threads=1, alpha_bias=None):
    return solvers.solve_rows(side, model, Ridge(alpha, alpha_bias), loss_at(scale), threads)


def minimise(
    intervals,
    start,
    alpha,
    *,
    alpha_bias=None,
    scale=0.0,
    threads=1,
    half=False,
    polish=True,
    max_iter=200,
    tol=1e-6,
    **watched,
):
    problem = TableProblem(intervals, start, Ridge(alpha, alpha_bias), threads, half)
    stopping = Stopping(max_iter, tol, **watched)
    return solvers.minimise(problem, loss_at(scale), stopping, polish)


def _trace_problem(intervals, alpha, scale, max_rank, threads):
    return TraceProblem(intervals, TraceNorm(alpha), loss_at(scale), max_rank, threads)


def proximal(
    intervals,
    start,
    alpha,
    *,
    first_alpha,
    scale=0.0,
    max_rank=None,
    threads=1,
    max_iter=500,
    tol=1e-4,
    **watched,
):
    problem = _trace_problem(intervals, alpha, scale, max_rank, threads)
    return solvers.proximal(problem, start, Stopping(max_iter, tol, **watched), first_alpha)


def factored(
    intervals,
    start,
    alpha,
    *,
    scale=0.0,
    max_rank=None,
    threads=1,
    max_iter=500,
    tol=1e-4,
    **watched,
):
    problem = _trace_problem(intervals, alpha, scale, max_rank, threads)
    return solvers.factored(problem, start, Stopping(max_iter, tol, **watched))


def douglas_rachford(intervals, start, penalty, *, max_iter=1000, tol=1e-4, **watched):
    return solvers.douglas_rachford(intervals, start, penalty, Stopping(max_iter, tol, **watched))


def subgradient_descent(
    intervals,
    start,
    limits,
    alpha,
    alpha_clipped,
    *,
    first_step=1.0,
    max_rank=None,
    threads=1,
    max_iter=1000,
    tol=1e-6,
    **watched,
):
    problem = ClippedTraceProblem(
        intervals, TraceNorm(alpha), ClippedTraceNorm(alpha_clipped, limits), max_rank, threads
    )
    return solvers.subgradient_descent(
        problem, start, Stopping(max_iter, tol, **watched), first_step
    )


def minimum_trace_norm(intervals, *, max_rank=None, max_iter=2000, tol=1e-5, **watched):
    return solvers.minimum_trace_norm(intervals, Stopping(max_iter, tol, **watched), max_rank)
