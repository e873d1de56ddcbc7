"""Limits that a table does not name: proposed from what its columns show at their ends."""

from declip.detect.limits import detect_limits
from declip.detect.missingness import MissingTrend
from declip.detect.proposal import LimitProposal
from declip.detect.spread import spreads_widely

__all__ = ["LimitProposal", "MissingTrend", "detect_limits", "spreads_widely"]
