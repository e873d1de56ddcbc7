"""What a result was made with: the date, the processor and the versions that count."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from declip.kernels import current_isa

__all__ = ["environment", "in_words", "show_versions"]

_PARTS = ("declip", "numpy", "scipy", "scikit-learn")
_COMPANIONS = ("pandas", "polars", "pyarrow", "matplotlib", "dask")
_CPUINFO = Path("/proc/cpuinfo")


def environment(also: Sequence[str] = ()) -> dict[str, Any]:
    """Return the date, the processor and the versions of Python, declip and its parts.

    Parameters
    ----------
    also : sequence of str
        Further packages to name, where they are installed.
    """
    versions = {"python": platform.python_version()}
    for name in (*_PARTS, *also):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"date": time.strftime("%Y-%m-%d"), "machine": _processor(), "versions": versions}


def in_words(found: dict[str, Any]) -> str:
    """Return a result's date, machine and versions as a line."""
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return f"{found['date']}, {found['machine']}; {versions}"


def _processor() -> str:
    lines = _CPUINFO.read_text().splitlines() if _CPUINFO.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores, {current_isa()}"


def show_versions() -> None:
    """Print what a report of a fault should tell: system, processor and versions.

    Examples
    --------
    >>> import declip
    >>> declip.show_versions()  # doctest: +ELLIPSIS
    system: ...
    machine: ...
    python: ...
    """
    found = environment(_COMPANIONS)
    facts = {"system": platform.platform(), "machine": found["machine"], **found["versions"]}
    for name, value in facts.items():
        print(f"{name}: {value}")
