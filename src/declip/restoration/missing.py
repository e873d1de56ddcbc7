"""Missing cells that tell of their values: what is taken of them, and what it is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from declip.estimators import BayesCMC
from declip.intervals import Intervals
from declip.reclip.soft import SoftReclipResult, soft_reclip
from declip.restoration.settings import Settings
from declip.restoration.tasks import Scaled
from declip.solvers.gibbs import Model, PatternEvidence, weigh_patterns
from declip.validation import check_missing, check_missing_model

__all__ = ["WhyMissing"]

_MOST_FACTORS = 10
_SIGNS = {"random": 0, "low": 1, "high": -1, "auto": None}


@dataclass(frozen=True, eq=False)
class WhyMissing:
    """Why the cells of a table are taken to be missing.

    Attributes
    ----------
    words : tuple of str
        "random", "low" or "high", for each column of the table that is worked on.
    evidence : PatternEvidence or None
        What "auto" went by.
    """

    words: tuple[str, ...]
    evidence: PatternEvidence | None = None

    @classmethod
    def of(cls, intervals: Intervals, table: Scaled, settings: Settings) -> WhyMissing:
        """Read ``missing=``, and let held-out cells settle "auto"."""
        n_rows, n_cols = intervals.shape
        words = check_missing(settings.missing, n_cols, intervals.col_labels)
        if {*words} == {"random"} or len(intervals) == n_rows * n_cols:
            return cls(("random",) * n_cols)
        check_missing_model(intervals.shape, "column", 0.0)
        if "auto" not in words:
            return cls(words)
        rank = settings.n_components or max(1, min(_MOST_FACTORS, min(intervals.shape) - 1))
        signs = [_SIGNS[word] for word in words]
        evidence = weigh_patterns(table.cells, Model(rank, "column"), signs, settings.random_state)
        return cls(tuple(evidence.best if w == "auto" else w for w in words), evidence)

    @property
    def by_column(self) -> dict[int, str]:
        """The words as `BayesCMC` takes them."""
        return {j: word for j, word in enumerate(self.words) if word != "random"}

    def settle(self, settings: Settings) -> Settings:
        """Return settings in which only a method that knows of missing cells is weighed."""
        if not self.by_column:
            return replace(settings, missing="random")
        if settings.method not in ("auto", "bayes"):
            raise ValueError(
                f'missing={settings.missing!r} goes with method="bayes" or "auto"; got '
                f"{settings.method!r}."
            )
        return replace(settings, method="bayes")

    def test(self, table: Scaled, estimator: Any, settings: Settings) -> SoftReclipResult | None:
        """Hide values as the fitted curve would; None where cells are missing at random."""
        if not (isinstance(estimator, BayesCMC) and getattr(estimator, "detection_", None)):
            return None
        return soft_reclip(table.cells, estimator, settings.random_state)

    def lines(self, estimator: Any, test: SoftReclipResult | None) -> Iterator[str]:
        """Yield what the user should know."""
        if self.evidence is not None:
            yield str(self.evidence)
        if test is None:
            return
        words = np.array(self.words)
        parts = [f"{np.sum(words == w)} columns as {w}" for w in ("low", "high") if w in words]
        lost = estimator.detection_["lost"]
        yield (
            f"Missing cells are taken as missing for their values ({', '.join(parts)}; about "
            f"{lost:.0%} of all cells lost by chance). {test}"
        )
