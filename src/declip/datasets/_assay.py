"""A simulated laboratory panel with detection limits and upper limits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_SEED = 20190127
_N_SAMPLES = 60
# Share of the samples of each analyte below its detection limit and above its upper limit.
_BELOW = (0.0, 0.05, 0.1, 0.3, 0.2, 0.0, 0.15, 0.1, 0.25, 0.05, 0.2, 0.05)  # mean .12
_ABOVE = (0.2, 0.1, 0.0, 0.0, 0.05, 0.25, 0.1, 0.0, 0.05, 0.15, 0.0, 0.05)  # mean .08
_MISSING = 0.05


@dataclass(frozen=True, eq=False)
class Assay:
    """A simulated panel of concentrations, samples by analytes.

    Attributes
    ----------
    table : ndarray of shape (n_samples, n_analytes)
        What the laboratory would report: values below the detection limit stand at ``floor``,
        values above the upper limit at ``ceiling``, missing ones are NaN.
    truth : ndarray of shape (n_samples, n_analytes)
        The same measurements without limits and without gaps.
    floor, ceiling : ndarray of shape (n_analytes,)
        Detection limit and upper limit of each analyte; 0 and infinity where it has none.
    sample_ids, analyte_names : tuple of str
        Labels of the rows and columns.

    Examples
    --------
    >>> from declip.datasets import load_assay
    >>> assay = load_assay()
    >>> assay.sample_ids[:2], assay.analyte_names[:2]
    (('sample_01', 'sample_02'), ('analyte_01', 'analyte_02'))
    """

    table: NDArray[np.float64] = field(repr=False)
    truth: NDArray[np.float64] = field(repr=False)
    floor: NDArray[np.float64] = field(repr=False)
    ceiling: NDArray[np.float64] = field(repr=False)
    sample_ids: tuple[str, ...] = field(repr=False)
    analyte_names: tuple[str, ...]


def load_assay() -> Assay:
    """Return a small simulated laboratory panel: 60 samples by 12 analytes.

    The data are **simulated**, not measured; they are the same at every call. The logarithms of
    the concentrations are a matrix of rank 3 (a level for each analyte and two factors) plus noise
    with standard deviation 0.15, so restore ``np.log(table)`` rather than ``table``. Of the cells
    about 12 % lie below the detection limit of their analyte, 8 % above its upper limit, and 5 %
    are missing; the shares differ from analyte to analyte.

    Returns
    -------
    Assay
        The table, its limits and labels, and the truth.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.datasets import load_assay
    >>> assay = load_assay()
    >>> assay.table.shape
    (60, 12)
    >>> int(np.isnan(assay.table).sum())
    36
    >>> bool(np.all(np.nanmax(assay.table, axis=0) <= assay.ceiling))
    True
    """
    rng = np.random.default_rng(_SEED)
    truth = _as_reported(_concentrations(rng))
    floor = _limits(truth, np.array(_BELOW))
    ceiling = _limits(truth, 1 - np.array(_ABOVE))
    table = np.clip(truth, floor, ceiling)
    table.flat[rng.choice(table.size, round(_MISSING * table.size), replace=False)] = np.nan
    return Assay(
        table=table,
        truth=truth,
        floor=floor,
        ceiling=ceiling,
        sample_ids=tuple(f"sample_{i:02d}" for i in range(1, _N_SAMPLES + 1)),
        analyte_names=tuple(f"analyte_{j:02d}" for j in range(1, len(_BELOW) + 1)),
    )


def _concentrations(rng: np.random.Generator) -> NDArray[np.float64]:
    n_analytes = len(_BELOW)
    level = rng.uniform(0.0, 5.0, n_analytes)
    scores = rng.standard_normal((_N_SAMPLES, 2))
    loadings = 0.6 * rng.standard_normal((2, n_analytes))
    noise = 0.15 * rng.standard_normal((_N_SAMPLES, n_analytes))
    return np.exp(level + scores @ loadings + noise)


def _as_reported(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # Four significant digits.
    return np.array([float(f"{x:.4g}") for x in values.flat]).reshape(values.shape)


def _limits(truth: NDArray[np.float64], share_below: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each column the limit that has the given share of values below it."""
    k = np.rint(share_below * len(truth)).astype(int)
    none, every = np.zeros_like(truth[:1]), np.full_like(truth[:1], np.inf)
    ordered = np.concatenate([none, np.sort(truth, axis=0), every])
    columns = np.arange(truth.shape[1])
    # Halfway, on the log scale, between the k-th value and the next; 0 or inf at the ends.
    return _as_reported(np.sqrt(ordered[k, columns] * ordered[k + 1, columns]))
