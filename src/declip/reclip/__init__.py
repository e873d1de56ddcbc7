"""The reclip test: limits are moved into a table's own exact cells, and what they hide restored."""

from declip.reclip.lowering import Reclipped, reclip
from declip.reclip.result import LEFT, RESTORED, ReclipResult, Trial
from declip.reclip.soft import SoftReclipResult, soft_reclip_test
from declip.reclip.trial import reclip_test

__all__ = [
    "LEFT",
    "RESTORED",
    "ReclipResult",
    "Reclipped",
    "SoftReclipResult",
    "Trial",
    "reclip",
    "reclip_test",
    "soft_reclip_test",
]
