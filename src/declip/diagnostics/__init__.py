"""Whether a table can be restored, where not, and how sure each value is."""

from declip.diagnostics.diagnosis import Diagnosis
from declip.diagnostics.entry import diagnose

__all__ = ["Diagnosis", "diagnose"]
