"""What the user asked of a restoration."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from declip.estimators.side import SideInformation
from declip.restoration.bounds import AMOUNTS, Bounds
from declip.validation import check_choice

__all__ = ["EFFORTS", "FILLS", "KNOWN", "NOTHING", "ROUNDINGS", "Settings"]

KNOWN = "bayes+known"  # the method that takes side information
NOTHING: MappingProxyType[str, Any] = MappingProxyType({})  # known besides the cells

EFFORTS = {"quick": 0.4, "normal": 1.0, "thorough": 3.0}
FILLS = ("determined", "all")
ROUNDINGS = ("auto", "none")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of `declip.restore`, checked; with them a restoration is made again."""

    method: str = "auto"
    n_components: int | None = None
    alpha: float | None = None
    scale: str = "columns"
    values: str = ""
    log: Any = False
    between: Any = AMOUNTS
    missing: Any = "random"
    rounding: str = "auto"
    fill: str = "determined"
    tol: float = 0.0
    coverage: float = 0.9
    effort: str | float = "normal"
    time_limit: float | None = None
    random_state: int = 0
    n_jobs: int | None = None
    layer: str | None = None
    bounds: Bounds = field(default_factory=Bounds)
    side: SideInformation | None = None
    weights: Any = None

    def __post_init__(self) -> None:
        check_choice("fill", self.fill, FILLS)
        check_choice("rounding", self.rounding, ROUNDINGS)
        if isinstance(self.effort, str):
            check_choice("effort", self.effort, tuple(EFFORTS))
        elif not _positive(self.effort):
            raise ValueError(f"effort must be a word or a positive number; got {self.effort!r}.")
        if not (_is_number(self.coverage) and 0 < self.coverage < 1):
            raise ValueError(f"coverage must lie between 0 and 1; got {self.coverage!r}.")
        if self.time_limit is not None and not _positive(self.time_limit):
            raise ValueError(f"time_limit must be a number of seconds; got {self.time_limit!r}.")
        if self.alpha is not None and not (_is_number(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha must be a number from 0 on; got {self.alpha!r}.")
        seed = self.random_state
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"random_state must be a whole number from 0 on; got {seed!r}.")

    @property
    def known(self) -> dict[str, Any]:
        """What is known besides the cells, as the fit of an estimator takes it."""
        if self.side is None:
            return {}
        index = self.side.index
        given = {
            "row_features": self.side.row_features,
            "column_features": self.side.col_features,
            "groups": None if index is None else np.where(index < 0, np.nan, index),
            "weights": self.weights,
        }
        return {name: part for name, part in given.items() if part is not None}

    def known_to(self, method: str) -> dict[str, Any]:
        """Return what is known besides the cells as a method takes it."""
        return self.known if method == KNOWN else {}

    @property
    def describes_rows(self) -> bool:
        """Whether rows have features, so that one without a cell can be restored."""
        return self.side is not None and self.side.row_features is not None

    @property
    def work(self) -> float:
        """How much work is done, relative to the normal effort."""
        return EFFORTS[self.effort] if isinstance(self.effort, str) else float(self.effort)

    @property
    def by_rows(self) -> bool:
        """Whether each row has units of its own: the table is worked on transposed."""
        return self.scale == "rows"

    @property
    def units(self) -> str:
        """How the columns of the table that is worked on are scaled."""
        return "columns" if self.by_rows else self.scale

    @property
    def shared(self) -> bool:
        """Whether all columns share their units and limits, as ratings do."""
        return self.scale == "table"

    def as_arguments(self) -> dict[str, Any]:
        """Return the arguments of `declip.restore` that differ from its defaults."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("bounds", "side", "weights"):
            del given[name]
        if given.pop("values"):  # the units are then chosen again
            given["scale"] = self.values
        default = {name: getattr(type(self), name) for name in given}
        return {name: value for name, value in given.items() if not _same(value, default[name])}


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _positive(value: Any) -> bool:
    return _is_number(value) and bool(value > 0)
