"""Whether a table can be restored, where not, and how sure each value is."""

from declip.diagnostics.diagnosis import Diagnosis
from declip.diagnostics.entry import diagnose
from declip.diagnostics.recovery import Recovery, recovery_certificate

__all__ = ["Diagnosis", "Recovery", "diagnose", "recovery_certificate"]
