"""declip restores what a ceiling or a floor hid.

Cells of a table that hit the top of the scale, fell below a detection limit, or are missing, are restored from the
low-rank structure of the table, under limits that may differ for every cell.
"""

from declip.estimators import FroCMC
from declip.intervals import Intervals

__all__ = ["FroCMC", "Intervals", "__version__"]

__version__ = "0.1.0"
