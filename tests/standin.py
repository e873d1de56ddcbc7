"""A restoration of known content, for tests of what is made from one."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from declip import FroCMC, Intervals


@dataclass
class StandIn:
    """Has the attributes of `declip.Restoration`, by a fixed method."""

    table: Any
    flags: Any
    lower: Any
    upper: Any
    intervals: Intervals
    estimator: Any
    chosen: dict
    candidates: list
    reclip: Any = None
    warnings: list = field(default_factory=list)
    kept_limits: bool = False

    def __str__(self):
        return "A stand-in for a restoration."


def restore(X, ceiling=None, floor=None, *, log=None, rank=None, alpha=None, **options):
    cells = X if isinstance(X, Intervals) else Intervals.from_table(X, ceiling, floor)
    lower, upper = cells.to_bounds()
    with np.errstate(all="ignore"):
        logs = Intervals.from_bounds(*(np.log(np.maximum(b, 0)) for b in (lower, upper)))
    model = FroCMC(
        n_components=rank or 1, alpha=alpha or 0.1, clipped="tobit", bias=True, random_state=0
    )
    table = np.exp(model.fit_transform(logs))
    exact = lower == upper
    table[exact] = lower[exact]
    flags = np.where(exact, "exact", np.where(np.isnan(lower), "filled", "restored")).astype("U12")
    few = exact.sum(axis=1) < 5
    flags[few[:, None] & (flags == "filled")] = "undetermined"
    band = [np.where(exact, table, table * factor) for factor in (0.8, 1.25)]
    opened = flags == "restored"
    band[0][opened] = np.maximum(band[0][opened], lower[opened])
    band[1][opened] = np.minimum(band[1][opened], upper[opened])
    chosen = {"method": "tobit+bias", "n_components": 2, "alpha": 0.1, "log": True}
    candidates = [
        {
            "method": "tobit+bias",
            "parameters": {"n_components": 2, "alpha": 0.1},
            "held_out": 0.21,
            "reclip": 0.34,
        },
        {
            "method": "hinge",
            "parameters": {"n_components": 2, "alpha": 0.3},
            "held_out": 0.24,
            "reclip": 0.51,
        },
    ]
    warnings = ["2 rows have fewer exact cells than the rank."]
    return StandIn(table, flags, *band, cells, model, chosen, candidates, None, warnings)
