"""Progress of a fit: callbacks, output, interruption and the warning at its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from declip.solvers import ResumePoint
from declip.validation import warn_user

__all__ = ["SweepReporter"]

_FACTORS = ("row_factors_", "components_", "row_offset_", "column_offset_", "scale_")


class SweepReporter:
    """Tells the callbacks, and the terminal if verbose, of each sweep and of the end."""

    def __init__(self, estimator: Any, X: Any, y: Any, settled: dict[str, Any]) -> None:
        self.estimator, self.settled = estimator, settled
        self.arguments = {"estimator": estimator, "X": X, "y": y}
        self.last: Any = None  # what to keep after Ctrl-C
        self.interrupted = False
        self.context = estimator._init_callback_context(max_subtasks=estimator._most_sweeps())
        self.context.call_on_fit_task_begin(**self.arguments)

    def __call__(self, state: Any) -> bool:
        """Report a sweep; return whether a callback asks the fit to stop."""
        estimator = self.estimator
        if estimator.on_interrupt == "keep":
            self.last = estimator._snapshot(state)
        estimator._check_finite(state.history[-1])
        if estimator.verbose and state.n_iter % estimator.verbose == 0:
            print(f"sweep {state.n_iter:4d}: objective {state.history[-1]:.8g}")
        if not getattr(estimator, "_skl_callbacks", None):
            return False
        task = self.context.subcontext(task_name="sweep")
        task.call_on_fit_task_begin(**self.arguments)
        attributes = lambda: self.settled | estimator._fitted(state)  # noqa: E731
        return task.call_on_fit_task_end(**self.arguments, reconstruction_attributes=attributes)

    def kept(self) -> Any:
        """Return what the last sweep left, or let Ctrl-C end the fit."""
        if self.last is None:
            raise
        self.interrupted = True
        warn_user(
            f"{type(self.estimator).__name__} was interrupted after {self.last.n_iter} sweeps, and "
            "kept what it had.",
            ConvergenceWarning,
        )
        return replace(self.last, stopped=True)

    def end(self, state: Any, fitted: dict[str, Any], resume_point: ResumePoint) -> None:
        """Report the end of a fit that is sound, and warn if it had not settled."""
        estimator = self.estimator
        estimator._check_finite(fitted["objective_"], *_numbers(fitted))
        if self.interrupted:
            fitted["converged_"] = False
        else:
            resume_point.done()
        self.context.call_on_fit_task_end(
            **self.arguments, reconstruction_attributes=lambda: fitted
        )
        if not fitted["converged_"] and not state.stopped:
            warn_user(estimator._not_converged(state), ConvergenceWarning)


def _numbers(fitted: dict[str, Any]) -> Iterator[Any]:
    """Yield what a table is filled from: factors, or those of each sample that was kept."""
    yield from (fitted.get(name, 0.0) for name in _FACTORS)
    for sample in getattr(fitted.get("posterior_"), "samples", ()):
        yield from (sample.factors.A, sample.factors.B)
