"""Labels of rows and columns: numbered by first appearance, and given back as arrays."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["label_array", "number_labels"]

_SLOTS = 2**22  # a table of this many positions stays in the cache


def number_labels(labels: pl.Series) -> tuple[NDArray[np.int32], pl.Series]:
    """Return labels as numbers, from 0 by first appearance, and the labels in that order.

    Labels count as equal when two hashes of 64 bits are. A slot belongs to the first cell that asks
    for it; cells that find another label there ask again elsewhere.
    """
    keys = [labels.hash(seed).to_numpy() for seed in (0, 1)]
    first = np.empty(len(labels), np.int32)
    left, shift = np.arange(len(labels), dtype=np.int32), np.uint64(0)
    owner = np.empty(_SLOTS, np.int32)
    while left.size:
        slot = (keys[0][left] >> shift) % np.uint64(_SLOTS)
        owner[slot[::-1]] = left[::-1]  # the last to write is the first cell
        found = owner[slot]
        same = (keys[0][found] == keys[0][left]) & (keys[1][found] == keys[1][left])
        first[left[same]] = found[same]
        left = left[~same]
        shift = (shift + np.uint64(11)) % np.uint64(43)
    is_first = first == np.arange(len(labels), dtype=np.int32)
    codes = (np.cumsum(is_first, dtype=np.int32) - 1)[first]
    return codes, labels.filter(pl.Series(is_first))


def label_array(labels: pl.Series) -> NDArray:
    """Return labels as an array of text, or of what they are in a typed file."""
    if labels.dtype == pl.String or labels.null_count():
        labels = labels.cast(pl.String).fill_null("")
    return np.array(labels.to_list(), dtype=object if labels.dtype == pl.String else None)
