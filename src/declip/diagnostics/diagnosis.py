"""The outcome of a diagnosis: words, tables, pictures and plain data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from declip.diagnostics.coverage import AxisCounts, Coverage
from declip.diagnostics.fitted import FittedChecks
from declip.diagnostics.limit_checks import Concern
from declip.diagnostics.text import advice, report, verdict, worst
from declip.diagnostics.theory import Theory
from declip.intervals import Intervals
from declip.validation import check_cells

__all__ = ["Diagnosis"]

_TABLES = ("rows", "columns", "cells", "ranks")


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What can be restored of a table, what cannot, and how sure the values are.

    Made by `diagnose`. ``print`` gives the verdict in words.

    Attributes
    ----------
    coverage : Coverage
        Which cells are exact, clipped and missing.
    concerns : list of Concern
        Limits that look wrong.
    fit : FittedChecks or None
        What a fit shows, if there was one.
    theory : Theory or None
        The quantities of the paper's Theorem 1, if they were asked for.
    expert_seconds : float
        About how long ``expert=True`` takes.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import diagnose
    >>> table = np.minimum(np.outer(np.linspace(1, 2, 8), np.linspace(1, 2, 6)), 3)
    >>> found = diagnose(table, ceiling=3)
    >>> print(found.verdict)
    The exact cells can carry a model of rank 3 at most. Fit one, then diagnose it.
    >>> found.to_frame("columns")["exact"]
    array([8, 8, 8, 7, 5, 4])
    """

    coverage: Coverage
    concerns: list[Concern]
    fit: FittedChecks | None
    theory: Theory | None
    expert_seconds: float
    intervals: Intervals = field(repr=False)
    _backend: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        return report(self.coverage, self.concerns, self.fit, self.theory, self.expert_seconds)

    __repr__ = __str__

    @property
    def verdict(self) -> str:
        """The verdict in a sentence."""
        return verdict(self.coverage, self.fit)

    @property
    def advice(self) -> list[str]:
        """What to do, the most pressing first."""
        return advice(self.coverage, self.concerns, self.fit)

    def sd(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted standard deviation of single cells, clipped, missing or exact.

        It is that of the model, without the noise of a measurement, and a lower bound: what
        clipping hides is not in it.

        Parameters
        ----------
        rows, cols : array-like of int
            Rows and columns of the cells.
        """
        if self.fit is None:
            raise ValueError("There is no fit to be sure of: use diagnose(estimator, X).")
        return self.fit.uncertainty.sd(*check_cells(rows, cols, self.coverage.shape))

    def to_frame(self, of: str = "rows") -> Any:
        """Return a table of the findings.

        Parameters
        ----------
        of : {"rows", "columns", "cells", "ranks"}, default="rows"
            One line for each row, for each column, for each clipped cell, or for each rank.

        Returns
        -------
        data frame, or dict of str to ndarray
            A frame of the library (pandas, polars, ...) that the diagnosed table came in; a dict of
            columns if that was an array or a sparse matrix.
        """
        if of not in _TABLES:
            raise ValueError(f"of must be one of {_TABLES}, got {of!r}")
        columns = {
            "rows": lambda: self._axis(self.coverage.rows),
            "columns": lambda: self._axis(self.coverage.cols),
            "cells": self._cells,
            "ranks": self.coverage.ranks,
        }[of]()
        if self._backend is None:
            return columns
        listed = {name: values.tolist() for name, values in columns.items()}
        return nw.from_dict(listed, backend=self._backend).to_native()

    def _axis(self, counts: AxisCounts) -> dict[str, NDArray]:
        columns = {
            counts.axis: _names(counts.labels, np.arange(len(counts))),
            "observed": counts.observed,
            "exact": counts.exact,
            "at_ceiling": counts.ceiling,
            "at_floor": counts.floor,
            "clipped_share": counts.clipped_share,
            "component": counts.component,
        }
        if self.fit is None:
            return columns
        found, by_row = self.fit.determination, counts.axis == "row"
        where = self.fit.rows if by_row else self.fit.cols
        n_censored = np.bincount(where, minlength=len(counts))
        mean_sd = np.bincount(where, self.fit.sd, len(counts)) / np.where(
            n_censored, n_censored, np.nan
        )
        return columns | {
            "smallest_eigenvalue": found.row_eigenvalues if by_row else found.col_eigenvalues,
            "determined": found.rows if by_row else found.cols,
            "mean_sd": mean_sd,
        }

    def _cells(self) -> dict[str, NDArray]:
        side = self.intervals.by_row
        rows, cols = side.censored_rows(), side.censored_idx
        columns = {
            "row": _names(self.intervals.row_labels, rows),
            "column": _names(self.intervals.col_labels, cols),
            "lower": side.lower,
            "upper": side.upper,
        }
        if self.fit is None:
            return columns
        return columns | {
            "restored": self.fit.residuals.restored,
            "sd": self.fit.sd,
            "determined": self.fit.in_determined,
        }

    def plot(self) -> Any:
        """Draw the clip map and, after a fit, determined rows and columns and sd against value.

        Returns
        -------
        matplotlib Figure
        """
        from declip.diagnostics.plots import draw

        return draw(self.coverage, self.intervals, self.fit)

    def as_dict(self) -> dict[str, Any]:
        """Return the findings as plain data that JSON can hold, NaN and infinity as None."""
        coverage, fit = self.coverage, self.fit
        found: dict[str, Any] = {
            "verdict": self.verdict,
            "advice": self.advice,
            "shape": coverage.shape,
            "n_observed": coverage.n_observed,
            "n_exact": coverage.n_exact,
            "n_clipped": coverage.n_clipped,
            "n_components": coverage.n_components,
            "largest_rank": coverage.largest_rank(),
            "ranks": coverage.ranks(),
            "concerns": [asdict(concern) for concern in self.concerns],
            "worst_rows": worst(coverage.rows, fit),
            "worst_columns": worst(coverage.cols, fit),
            "expert_seconds": self.expert_seconds,
            "fit": None if fit is None else _fit_dict(fit),
            "theory": None if self.theory is None else _theory_dict(self.theory),
        }
        return {name: _plain(value) for name, value in found.items()}


def _fit_dict(fit: FittedChecks) -> dict[str, Any]:
    found = fit.determination
    return {
        "estimator": fit.name,
        "clipped": fit.clipped,
        "rank": found.rank,
        "determined_rows": found.rows.sum(),
        "determined_columns": found.cols.sum(),
        "clipped_cells_determined": fit.in_determined.mean() if len(fit.rows) else None,
        "margin": found.margin._asdict(),
        "margin_determined": found.margin_determined._asdict(),
        "optimality": asdict(fit.optimality),
        "sigma": fit.uncertainty.sigma,
        "freedom": fit.uncertainty.freedom,
        "median_sd": np.median(fit.sd) if len(fit.sd) else None,
        "share_beyond": fit.residuals.share_beyond,
        "share_short": fit.residuals.share_short,
        "near_ratio": fit.residuals.near_ratio,
        "error_parts": fit.parts._asdict(),
    }


def _theory_dict(theory: Theory) -> dict[str, Any]:
    return asdict(theory) | {"holds": theory.holds, "sufficient_only": True}


def _plain(value: Any) -> Any:
    """Return a value as JSON takes it."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _names(labels: NDArray | None, which: NDArray) -> NDArray:
    if labels is None:
        return which
    kinds = {type(label) for label in labels}
    return labels[which] if len(kinds) == 1 else labels.astype(str)[which]
