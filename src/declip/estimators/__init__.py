"""scikit-learn estimators."""

from declip.estimators.bayes import BayesCMC
from declip.estimators.dtr import DTrCMC
from declip.estimators.exact import ExactCMC
from declip.estimators.fitted import fitted_low_rank
from declip.estimators.fro import FroCMC
from declip.estimators.trace import TrCMC, trace_path

__all__ = ["BayesCMC", "DTrCMC", "ExactCMC", "FroCMC", "TrCMC", "fitted_low_rank", "trace_path"]
