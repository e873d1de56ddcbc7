"""Warnings that point at the caller's own line."""

import sys
import warnings

_INSIDE = ("declip", "sklearn")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the first line outside declip and scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
