"""Ids of a long Dask data frame that are not numbers: numbered, and kept as labels."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.blocks.staging import Labels
from declip.dask.sources import is_frame, is_long
from declip.validation import sorted_labels

__all__ = ["numbered"]


def numbered(X: Any, cells: tuple[str, str, str]) -> tuple[Any, Labels]:
    """Return what is fitted with its ids as numbers, and the labels of its rows and columns.

    Whole numbers stay: they count rows and columns from 0, which have no labels then.
    """
    if not is_frame(X):
        return X, (None, None)
    if not is_long(X, cells):
        return X, (None, np.asarray(X.columns, object))
    kinds = nw.from_native(X._meta).schema
    texts = [name for name in cells[:2] if not _counts(kinds[name])]
    if not texts:
        return X, (None, None)
    X = X.dropna(subset=[cells[2]])  # a row or a column is there if it has a cell
    labels = {name: sorted_labels(X[name].unique().compute(), name) for name in texts}
    meta = X._meta.assign(**dict.fromkeys(texts, np.int32(0))).astype(dict.fromkeys(texts, "int32"))
    coded = X.map_partitions(_coded, labels, meta=meta)
    return coded, (labels.get(cells[0]), labels.get(cells[1]))


def _counts(kind: Any) -> bool:
    """Tell whether ids of this type are positions, or refused as such."""
    return kind.is_numeric() or kind == nw.Boolean


def _coded(frame: Any, labels: dict[str, NDArray[Any]]) -> Any:
    """Return a part of the frame with numbers for the ids."""
    codes = {
        name: frame[name].astype(object).map({label: i for i, label in enumerate(known.tolist())})
        for name, known in labels.items()
    }
    return frame.assign(**{name: code.astype("int32") for name, code in codes.items()})
