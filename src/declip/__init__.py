"""declip restores what a ceiling or a floor hid.

Cells of a table that hit the top of the scale, fell below a detection limit, or are missing, are
restored from the low-rank structure of the table, under limits that may differ for every cell.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from declip.estimators import FroCMC
    from declip.intervals import Intervals

__all__ = ["FroCMC", "Intervals", "__version__"]

__version__ = "0.1.0"

# Loaded when first asked for: scikit-learn alone takes most of a second to import.
_HOMES = {"FroCMC": "declip.estimators", "Intervals": "declip.intervals"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'declip' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
