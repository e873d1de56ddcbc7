"""Look of the gallery."""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib

from _pages.figures import STYLE


def in_house_style(conf: Any, name: str) -> None:
    matplotlib.rcdefaults()
    matplotlib.use("Agg")
    matplotlib.rcParams.update(STYLE)
    warnings.formatwarning = lambda message, kind, *_: f"{kind.__name__}: {message}\n"  # no paths
