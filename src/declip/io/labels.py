"""Labels of rows and columns: numbered by first appearance, and given back as arrays."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["number_labels", "text_labels"]

_SLOTS = 2**22  # a table of this many positions stays in the cache


def number_labels(labels: pl.Series) -> tuple[NDArray[np.int32], pl.Series]:
    """Return labels as numbers, from 0 by first appearance, and the labels in that order.

    One hash of 64 bits says in which slot to look, another whether the label there is the same. A
    slot belongs to the first cell that asks for it; cells that find another label there ask again
    elsewhere.
    """
    address, key = (labels.hash(seed).to_numpy() for seed in (0, 1))
    address = address.view(np.int64)
    cell = np.arange(len(labels), dtype=np.int32)
    first, owner = np.empty_like(cell), np.empty(_SLOTS, np.int32)
    left, shift = cell, 0
    while left.size:
        slot = ((address if left is cell else address[left]) >> shift) & (_SLOTS - 1)
        owner[slot[::-1]] = left[::-1]  # the last to write is the first cell
        found = owner[slot]
        same = key[found] == (key if left is cell else key[left])
        first[left[same]] = found[same]
        left = left[~same]
        shift = (shift + 11) % 43
    is_first = first == cell
    codes = (np.cumsum(is_first, dtype=np.int32) - 1)[first]
    return codes, labels.filter(pl.Series(is_first))


def text_labels(labels: pl.Series) -> NDArray:
    """Return labels as an array of text, or of what they are in a typed file."""
    if labels.dtype == pl.String or labels.null_count():
        labels = labels.cast(pl.String).fill_null("")
    return np.array(labels.to_list(), dtype=object if labels.dtype == pl.String else None)
