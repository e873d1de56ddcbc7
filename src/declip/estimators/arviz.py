"""The traces of a sampler as ArviZ holds them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.extras import needs
from declip.intervals import Intervals
from declip.solvers.gibbs import Run

__all__ = ["inference_data"]


def inference_data(run: Run, cells: Intervals) -> Any:
    """Return what was traced of a run, in the units of the table."""
    with needs("stats"), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # that its next version differs
        import arviz

    monitor, units = run.monitor, run.units
    traces = np.moveaxis(np.array(run.traces), 0, 1)  # chain, draw, quantity
    found = {kind: traces[..., part] for kind, part in monitor.kinds.items()}
    x, means, noise = (found[kind] for kind in ("cells", "column means", "noise scales"))
    edges = {"edges": found["edges"]} if "edges" in found else {}
    once = _once(monitor.rows, monitor.cols)
    rows = _labels(cells.row_labels, monitor.rows[once])
    cols = _labels(cells.col_labels, monitor.cols[once])
    return arviz.from_dict(
        posterior={
            "cells": units.restore(x, monitor.cols)[..., once],
            "column_means": units.restore(means, monitor.columns),
            "noise_scales": np.exp(noise) * units.scale[monitor.columns],
            **edges,
        },
        coords={
            "cell": [f"{row}, {col}" for row, col in zip(rows, cols, strict=True)],
            "column": _labels(cells.col_labels, monitor.columns),
        },
        dims={"cells": ["cell"], "column_means": ["column"], "noise_scales": ["column"]},
    )


def _once(rows: NDArray, cols: NDArray) -> NDArray[np.intp]:
    """Return where cells first come: ArviZ refuses coordinates that come again."""
    first = np.unique(np.stack([rows, cols]), axis=1, return_index=True)[1]
    return np.sort(first)


def _labels(labels: Any, which: NDArray) -> list[str]:
    """Return labels, or numbers where there are none, or two rows have the same."""
    if labels is None or len({str(label) for label in labels}) < len(labels):
        return [str(i) for i in which]
    return [str(label) for label in labels[which]]
