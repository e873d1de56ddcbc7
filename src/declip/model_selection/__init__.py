"""Tuning on held-out cells: splits of the observed cells, scores, and the search over a grid."""

from declip.model_selection.splits import EntryKFold, EntryShuffleSplit

__all__ = ["EntryKFold", "EntryShuffleSplit"]
