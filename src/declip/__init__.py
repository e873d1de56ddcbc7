"""declip restores what a ceiling or a floor hid.

Cells of a table that hit the top of the scale, fell below a detection limit, or are missing, are
restored from the low-rank structure of the table, under limits that may differ for every cell.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from declip.blocks import BlockTable, prepare_blocks
    from declip.detect import detect_limits
    from declip.diagnostics import Diagnosis, Recovery, diagnose, recovery_certificate
    from declip.environment import show_versions
    from declip.estimators import BayesCMC, DTrCMC, ExactCMC, FroCMC, TrCMC, trace_path
    from declip.inference import Pooled, PooledFit, Summary, pool, pooled_fit
    from declip.intervals import Intervals
    from declip.io import TableFile, read_limits, read_table, write_table
    from declip.model_selection import EntryKFold, EntrySearchCV, EntryShuffleSplit
    from declip.persistence import ModelFileError, load
    from declip.reclip import ReclipResult, SoftReclipResult, reclip_test, soft_reclip_test
    from declip.recommending import Recommender
    from declip.restoration import Restoration, Restorer, restore
    from declip.scales import from_scale

__all__ = [
    "BayesCMC",
    "BlockTable",
    "DTrCMC",
    "Diagnosis",
    "EntryKFold",
    "EntrySearchCV",
    "EntryShuffleSplit",
    "ExactCMC",
    "FroCMC",
    "Intervals",
    "ModelFileError",
    "Pooled",
    "PooledFit",
    "ReclipResult",
    "Recommender",
    "Recovery",
    "Restoration",
    "Restorer",
    "SoftReclipResult",
    "Summary",
    "TableFile",
    "TrCMC",
    "__version__",
    "detect_limits",
    "diagnose",
    "from_scale",
    "load",
    "pool",
    "pooled_fit",
    "prepare_blocks",
    "read_limits",
    "read_table",
    "reclip_test",
    "recovery_certificate",
    "restore",
    "show_versions",
    "soft_reclip_test",
    "trace_path",
    "write_table",
]

__version__ = "0.1.0"

# Loaded when first asked for: scikit-learn alone takes most of a second to import.
_HOMES = {
    "BayesCMC": "declip.estimators",
    "BlockTable": "declip.blocks",
    "DTrCMC": "declip.estimators",
    "Diagnosis": "declip.diagnostics",
    "EntryKFold": "declip.model_selection",
    "EntrySearchCV": "declip.model_selection",
    "EntryShuffleSplit": "declip.model_selection",
    "ExactCMC": "declip.estimators",
    "FroCMC": "declip.estimators",
    "Intervals": "declip.intervals",
    "ModelFileError": "declip.persistence",
    "Pooled": "declip.inference",
    "PooledFit": "declip.inference",
    "ReclipResult": "declip.reclip",
    "Recommender": "declip.recommending",
    "Recovery": "declip.diagnostics",
    "Restoration": "declip.restoration",
    "Restorer": "declip.restoration",
    "SoftReclipResult": "declip.reclip",
    "Summary": "declip.inference",
    "TableFile": "declip.io",
    "TrCMC": "declip.estimators",
    "detect_limits": "declip.detect",
    "diagnose": "declip.diagnostics",
    "from_scale": "declip.scales",
    "load": "declip.persistence",
    "pool": "declip.inference",
    "pooled_fit": "declip.inference",
    "prepare_blocks": "declip.blocks",
    "read_limits": "declip.io",
    "read_table": "declip.io",
    "reclip_test": "declip.reclip",
    "recovery_certificate": "declip.diagnostics",
    "restore": "declip.restoration",
    "show_versions": "declip.environment",
    "soft_reclip_test": "declip.reclip",
    "trace_path": "declip.estimators",
    "write_table": "declip.io",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'declip' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
