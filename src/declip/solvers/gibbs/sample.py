"""One draw from the posterior of a table, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from declip.lowrank import LowRank
from declip.solvers.gibbs.chain import Chain
from declip.solvers.gibbs.detection import DetectionCurve
from declip.solvers.gibbs.priors import Gaussian

__all__ = ["Sample"]


@dataclass(frozen=True, eq=False)
class Sample:
    """One draw: factors in single precision, precisions of the noise, and the prior of the rows.

    If missing cells tell of values, the curve by which they do comes with it; if features are
    known, so do the coefficients of the factors of rows; if edges between levels are sampled, the
    cuts of each set of them.
    """

    factors: LowRank
    rows: NDArray[np.float32]
    cols: NDArray[np.float32]
    row_prior: Gaussian
    curve: DetectionCurve | None = None
    coefficients: NDArray[np.float64] | None = None
    cuts: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, chain: Chain) -> Sample:
        """Keep the present state of a chain."""
        rows, cols = (p.astype(np.float32) for p in (chain.scales.rows, chain.scales.cols))
        curve = None if chain.detection is None else chain.detection.curve
        regression = chain.row_regression
        found = None if regression is None else regression.coefficients
        cuts = None if chain.edges is None else chain.edges.cuts
        factors = chain.factors.astype(np.float32)
        return cls(factors, rows, cols, chain.row_prior, curve, found, cuts)

    def _check_loaded(self) -> None:
        """Refuse a draw that was read from a file and is none."""
        for precision, size in zip((self.rows, self.cols), self.factors.shape, strict=True):
            positive = np.isfinite(precision).all() and np.all(precision > 0)
            if not (precision.shape == (size,) and positive):
                raise ValueError("the precisions of a draw are not numbers above zero")

    def at(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the low-rank matrix and the noise scale at cells, in standardised units."""
        precision = self.rows[rows].astype(np.float64) * self.cols[cols]
        x = self.factors.predict(rows, cols, threads).astype(np.float64)
        return x, 1 / np.sqrt(precision)
