"""The list of public names, from `declip.__all__` and those of its public modules."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import declip

_TYPED = re.compile(r"^(\s*[\w., ]+ : )(.*)$")

# The order of the page; a module that is not named here comes last.
ORDER = [
    "declip.restoration",
    "declip.inference",
    "declip.reclip",
    "declip.diagnostics",
    "declip.detect",
    "declip.estimators",
    "declip.model_selection",
    "declip.recommending",
    "declip.intervals",
    "declip.io",
    "declip.report",
    "declip.environment",
]
TITLES = {
    "declip.restoration": "Restore a table",
    "declip.reclip": "Test a restoration",
    "declip.diagnostics": "Diagnose",
    "declip.detect": "Find limits",
    "declip.estimators": "Estimators",
    "declip.model_selection": "Tune",
    "declip.recommending": "Recommend",
    "declip.intervals": "Cells as intervals",
    "declip.io": "Files",
    "declip.report": "Reports",
    "declip.inference": "Conclude",
    "declip.environment": "Report a fault",
}
# Modules whose names are used with the module's name before them.
MODULES = {
    "declip.datasets": "Tables to try",
    "declip.metrics": "Errors and scores",
    "declip.dask": "Several machines",
}
# Names of other modules that users need now and then.
ALSO = {
    "declip.io": ["Problem", "ReadingPlan", "Remedy", "TableFileError"],
    "declip.report": ["write_cells", "write_imputations", "write_report"],
}


def page() -> str:
    parts = [
        "The library\n===========",
        "Every public name, from its docstring. The examples of all of them are run by the tests.",
    ]
    parts += [_section(module, names) for module, names in by_module().items()]
    return "\n\n".join(parts) + "\n"


def by_module() -> dict[str, list[str]]:
    """Return the full names to show, by module, in order."""
    homes: dict[str, list[str]] = {}
    for name in declip.__all__:
        if name != "__version__":
            homes.setdefault(declip._HOMES[name], []).append(f"declip.{name}")
    for module, names in ALSO.items():
        homes.setdefault(module, []).extend(f"{module}.{name}" for name in names)
    listed = {m: homes.pop(m) for m in ORDER if m in homes} | dict(sorted(homes.items()))
    for module in MODULES:
        try:
            home = import_module(module)
            listed[module] = [f"{module}.{n}" for n in home.__all__ if hasattr(home, n)]
        except ImportError:  # an optional part that is not installed
            continue
    return listed


def _section(module: str, names: list[str]) -> str:
    title = TITLES.get(module) or MODULES.get(module) or module
    first = (import_module(module).__doc__ or "").strip().splitlines()[0]
    listed = "\n".join(f"   {name}" for name in names)
    head = f"{title}\n{'-' * len(title)}\n\n``{module}``: {first}"
    return f"{head}\n\n.. autosummary::\n   :toctree: api\n\n{listed}"


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class has from elsewhere: scikit-learn documents its own methods."""
    home = getattr(obj, "__module__", None) or getattr(
        getattr(obj, "fget", None), "__module__", None
    )
    if what == "class" and home is not None and not str(home).startswith("declip"):
        return True
    return None


def escape_types(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Write names such as ``rank_`` in types so that they are no links."""
    for i, line in enumerate(lines):
        if found := _TYPED.match(line):
            lines[i] = found[1] + re.sub(r"(?<=\w)_(?!\w)", r"\_", found[2])
