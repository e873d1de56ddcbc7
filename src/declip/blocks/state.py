"""A fit between two sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from declip.blocks.parts import Move, ObjectiveTerms

__all__ = ["State"]


@dataclass(frozen=True)
class State:
    """A fit between two sweeps; factors are to be moved before they are used."""

    rows: list[Any]
    columns: list[Any]
    terms: ObjectiveTerms
    value: float
    history: list[float]
    moves: tuple[Move, Move] = (Move(), Move())
    momentum: int = 0
    settled: int = 0

    @property
    def n_iter(self) -> int:
        """Number of sweeps."""
        return len(self.history) - 1
