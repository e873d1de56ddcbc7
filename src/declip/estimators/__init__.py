"""scikit-learn estimators."""

from declip.estimators.fro import FroCMC

__all__ = ["FroCMC"]
