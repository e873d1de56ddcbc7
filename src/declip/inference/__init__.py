"""From restored cells to conclusions: summaries and models over imputations."""

from declip.inference.models import PooledFit, pooled_fit
from declip.inference.pooling import Pooled, pool
from declip.inference.summary import Summary

__all__ = ["Pooled", "PooledFit", "Summary", "pool", "pooled_fit"]
