"""`FroCMC` on Dask, for tables beyond one machine: ``pip install declip[dask]``."""

from declip.dask.estimator import FroCMC

__all__ = ["FroCMC"]
