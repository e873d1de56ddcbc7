"""`FroCMC` on Dask, for tables beyond one machine: ``pip install declip[dask]``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from declip.extras import needs

if TYPE_CHECKING:
    from declip.dask.estimator import FroCMC

__all__ = ["FroCMC"]


def __getattr__(name: str) -> Any:
    # Loaded when first asked for: workers need only what their tasks are made of.
    if name not in __all__:
        raise AttributeError(f"module 'declip.dask' has no attribute {name!r}")
    with needs("dask"):
        return getattr(import_module("declip.dask.estimator"), name)
