"""Tuning on held-out cells: splits of the observed cells, scores, and the search over a grid."""

from declip.model_selection.paths import without_limits
from declip.model_selection.scoring import SCORERS, HeldOutCells
from declip.model_selection.search import EntrySearchCV
from declip.model_selection.splits import EntryKFold, EntryShuffleSplit

__all__ = [
    "SCORERS",
    "EntryKFold",
    "EntrySearchCV",
    "EntryShuffleSplit",
    "HeldOutCells",
    "without_limits",
]
