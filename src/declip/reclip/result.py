"""What the reclip test found: a page, a table, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from declip.reclip.lowering import Reclipped

__all__ = ["LEFT", "RESTORED", "ReclipResult", "Trial"]

RESTORED, LEFT = "restored", "left at the limit"
_FEWEST_RANKED = 3
EXTRAPOLATION = (
    "The test judges values that the table holds. What lies beyond the real limits is\n"
    "extrapolation: there the error is not known, and it grows with the distance."
)


@dataclass(frozen=True, eq=False)
class Trial:
    """One table with moved limits, and the estimates of its hidden cells.

    Attributes
    ----------
    quantile : float
        Where the limits were put, as a quantile of the exact cells (of most columns).
    cells : Reclipped
        The hidden cells.
    estimates : dict of str to ndarray
        Their estimates by each treatment, cut off at the real limits.
    """

    quantile: float
    cells: Reclipped
    estimates: dict[str, NDArray]


@dataclass(frozen=True, eq=False)
class ReclipResult:
    """How well values beyond a limit are restored, judged by values that are known.

    Returned by `reclip_test`; `restore` keeps one for the method that it chose.

    Attributes
    ----------
    trials : sequence of Trial
        One for each quantile, with all cells and estimates.
    spread : ndarray of shape (n_cols,)
        Standard deviation of each column, the unit of errors.
    col_labels : ndarray or None
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import FroCMC, reclip_test
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8))
    >>> found = reclip_test(table, estimator=FroCMC(2, random_state=0), quantiles=[0.8])
    >>> found.n_cells, len(found.errors("left at the limit"))
    (104, 104)
    >>> sorted(found.as_dict("columns"))[:3]
    ['bias', 'cells', 'column']
    """

    trials: Sequence[Trial]
    spread: NDArray[np.float64]
    col_labels: NDArray | None = None
    _backend: Any = field(default=None, repr=False)

    @property
    def treatments(self) -> list[str]:
        """Names of the treatments that are compared."""
        return list(self.trials[0].estimates) if self.trials else []

    @property
    def n_cells(self) -> int:
        """Number of judged cells, over all trials."""
        return sum(len(trial.cells) for trial in self.trials)

    @property
    def n_hidden(self) -> int:
        """Number of exact cells that were hidden in any trial, each counted once."""
        hidden = [np.stack([t.cells.rows, t.cells.cols])[:, ~t.cells.censored] for t in self.trials]
        return np.unique(np.concatenate(hidden, axis=1), axis=1).shape[1] if hidden else 0

    @property
    def gain(self) -> float:
        """Share of the error of leaving cells at their limit that the restoration takes away.

        In units of the spread of the columns, over all trials; NaN if no cell could be judged.
        """
        squares = [self._squares(name) for name in (RESTORED, LEFT)]
        restored, left = (float(np.sqrt(s.mean())) if s.size else np.nan for s in squares)
        return 1 - restored / left if left > 0 else np.nan if np.isnan(left) else -np.inf

    def errors(self, treatment: str) -> NDArray[np.float64]:
        """Return estimate minus truth of all judged cells, in units of their column's spread."""
        return np.concatenate(
            [
                (t.estimates[treatment] - t.cells.value) / self.spread[t.cells.cols]
                for t in self.trials
            ]
            or [np.zeros(0)]
        )

    def _squares(self, treatment: str) -> NDArray[np.float64]:
        return self.errors(treatment) ** 2

    def as_dict(self, of: str = "quantiles") -> dict[str, NDArray]:
        """Return the findings as columns.

        Parameters
        ----------
        of : {"quantiles", "columns", "cells"}, default="quantiles"
            One line for each quantile and treatment, for each column and treatment, or for each
            judged cell.
        """
        makers = {"quantiles": self._by_quantile, "columns": self._by_column, "cells": self._cells}
        if of not in makers:
            raise ValueError(f"of must be one of {tuple(makers)}, got {of!r}")
        return makers[of]()

    def to_frame(self, of: str = "quantiles") -> Any:
        """Return the findings as a frame of the library that the table came in.

        Parameters
        ----------
        of : {"quantiles", "columns", "cells"}, default="quantiles"
            As in `as_dict`, which is what arrays and sparse matrices get.
        """
        columns = self.as_dict(of)
        if self._backend is None:
            return columns
        listed = {name: values.tolist() for name, values in columns.items()}
        return nw.from_dict(listed, backend=self._backend).to_native()

    def plot(self, ax: Any = None) -> Any:
        """Draw restored against true distance beyond the moved limit; return the axes."""
        from declip.reclip.picture import draw_reclip

        return draw_reclip(self, ax)

    def _by_quantile(self) -> dict[str, NDArray]:
        lines = [
            {"quantile": trial.quantile, "treatment": name, **self._figures([trial], name)}
            for trial in self.trials
            for name in trial.estimates
        ]
        return _columns(lines)

    def _by_column(self) -> dict[str, NDArray]:
        judged = [t.cells.cols for t in self.trials]
        columns = np.unique(np.concatenate(judged)).tolist() if judged else []
        lines = [
            {"column": self._label(j), "treatment": name, **self._figures(self.trials, name, j)}
            for j in columns
            for name in self.treatments
        ]
        return _columns(lines)

    def _cells(self) -> dict[str, NDArray]:
        parts = [
            {
                "quantile": np.full(len(t.cells), t.quantile),
                "row": t.cells.rows,
                "column": t.cells.cols,
                "limit": t.cells.limit,
                "truth": t.cells.value,
                "beyond_the_real_limit": t.cells.censored,
                **t.estimates,
            }
            for t in self.trials
        ]
        return (
            {name: np.concatenate([p[name] for p in parts]) for name in parts[0]} if parts else {}
        )

    def _figures(
        self, trials: Sequence[Trial], treatment: str, column: int | None = None
    ) -> dict[str, Any]:
        """Return the number of cells, error, bias and rank correlation of a treatment."""
        errors, reach, restored = [], [], []
        for t in trials:
            cells, estimate = t.cells, t.estimates[treatment]
            some = slice(None) if column is None else cells.cols == column
            unit = self.spread[cells.cols[some]]
            outward = np.where(cells.above[some], 1, -1) / unit
            errors.append((estimate - cells.value)[some] * outward)
            reach.append((cells.value - cells.limit)[some] * outward)
            restored.append((estimate - cells.limit)[some] * outward)
        e, true, found = (np.concatenate(parts) for parts in (errors, reach, restored))
        return {
            "cells": len(e),
            "error": float(np.sqrt(np.mean(e**2))) if len(e) else np.nan,
            "bias": float(e.mean()) if len(e) else np.nan,
            "rank_correlation": _rank_correlation(true, found),
        }

    def _label(self, column: int) -> Any:
        return int(column) if self.col_labels is None else self.col_labels[column]

    def __str__(self) -> str:
        if self.n_cells == 0:
            return "Reclip test: no column has enough exact cells to hide some of them."
        head = "quantile  treatment            cells   error    bias  rank corr."
        lines = [
            *("Reclip test: limits moved into the exact cells, hidden values restored.", "", head),
            *(self._line(trial, name) for trial in self.trials for name in trial.estimates),
            *("", "Error and bias (positive: too far out) in standard deviations of the column."),
        ]
        return "\n".join([*lines, self.verdict(), EXTRAPOLATION])

    def _line(self, trial: Trial, name: str) -> str:
        f = self._figures([trial], name)
        quantile = f"{trial.quantile:8.2f}" if name == RESTORED else " " * 8
        rank = "" if np.isnan(f["rank_correlation"]) else f"{f['rank_correlation']:.2f}"
        figures = f"{f['cells']:7d} {f['error']:7.3f} {f['bias']:+7.3f}  {rank:>10}"
        return f"{quantile}  {name:<18} {figures}".rstrip()

    def verdict(self) -> str:
        """Return in one sentence what the test says."""
        if np.isnan(self.gain):
            return "Nothing could be judged."
        if self.gain <= 0:
            return "Restoring brings no gain over leaving cells at their limit."
        return f"Restoring takes {self.gain:.0%} off the error of leaving cells at their limit."


def _columns(lines: Sequence[dict[str, Any]]) -> dict[str, NDArray]:
    return {name: np.array([line[name] for line in lines]) for name in lines[0]} if lines else {}


def _rank_correlation(truth: NDArray, estimate: NDArray) -> float:
    if len(truth) < _FEWEST_RANKED or np.ptp(truth) == 0 or np.ptp(estimate) == 0:
        return np.nan
    return float(spearmanr(truth, estimate).statistic)
