"""One call that chooses a method, restores a table, tests itself and does no harm."""

from declip.restoration.restorer import Restorer
from declip.restoration.result import Restoration
from declip.restoration.workflow import restore

__all__ = ["Restoration", "Restorer", "restore"]
