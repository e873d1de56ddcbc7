"""Objects of declip in a file: only public estimators and classes listed below are ever built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

from declip.persistence.nodes import Kind, Reader, Writer

__all__ = ["KINDS", "fields_of", "is_record", "record"]

# By name, not by import: most of them live in layers above this one.
_ROOMS = {
    "declip.cells": ("Cells",),
    "declip.estimators.side": ("SideInformation",),
    "declip.estimators.uncertainty": ("CellUncertainty",),
    "declip.intervals": ("Intervals",),
    "declip.levels": ("Levels", "Scale"),
    "declip.losses": ("Hinge", "Tobit"),
    "declip.lowrank": ("GroupOffsets", "LowRank"),
    "declip.objective": ("Certificate",),
    "declip.ordering": ("Course",),
    "declip.reclip.lowering": ("Reclipped",),
    "declip.reclip.result": ("ReclipResult", "Trial"),
    "declip.restoration.bounds": ("Bounds",),
    "declip.restoration.candidates": ("CensoredNormal", "ColumnTobit"),
    "declip.restoration.determined": ("Determined",),
    "declip.restoration.ends": ("ColumnEnds",),
    "declip.restoration.model": ("FittedMethod", "RestorationModel"),
    "declip.restoration.restorer": ("Restorer",),
    "declip.restoration.result": ("Restoration",),
    "declip.rounding": ("RoundingGrid",),
    "declip.restoration.settings": ("Settings",),
    "declip.restoration.shrinkage": ("TailShrinkage",),
    "declip.restoration.tasks": ("Scaled",),
    "declip.scaling": ("Scaling",),
    "declip.solvers.als": ("State", "TablePoint"),
    "declip.solvers.exact": ("Bracket",),
    "declip.solvers.groups": ("GroupedPoint",),
    "declip.solvers.gibbs.chain": ("Chain", "Model"),
    "declip.solvers.gibbs.covariance": ("NormalDraws",),
    "declip.solvers.gibbs.detection": (
        "CurvePool",
        "Detection",
        "DetectionCurve",
        "MissingDraws",
    ),
    "declip.solvers.gibbs.edges": ("EdgeDraw", "EdgeSets", "GapPool"),
    "declip.solvers.gibbs.pattern": ("PatternEvidence",),
    "declip.solvers.gibbs.priors": ("Gaussian", "NoiseScales"),
    "declip.solvers.gibbs.posterior": ("Posterior",),
    "declip.solvers.gibbs.sample": ("Sample",),
    "declip.solvers.gibbs.sampler": ("Kept", "Monitor", "Run"),
    "declip.solvers.gibbs.side": ("GroupDraws", "Regression"),
    "declip.solvers.gibbs.units": ("Units",),
    "declip.svd": ("SVD",),
    "declip.validation.features": (
        "FeatureEncoder",
        "GroupLabels",
        "LevelFeature",
        "NumberFeature",
    ),
}
_PUBLIC = {n: r for n, r in import_module("declip")._HOMES.items() if r == "declip.estimators"}
_HOMES = _PUBLIC | {name: room for room, names in _ROOMS.items() for name in names}
_NAMES_OF_0_1 = {"open_ptr": "censored_ptr", "open_idx": "censored_idx"}
_OUTPUT = "_sklearn_output_config"  # what set_output was asked for


def is_record(value: Any) -> bool:
    """Tell whether a value is a known object that its fields make up."""
    return (is_dataclass(value) or hasattr(value, "_fields")) and _is_known(value)


def fields_of(kind: Any) -> Sequence[str]:
    """Return the names of the fields of a data class or named tuple."""
    return kind._fields if hasattr(kind, "_fields") else [field.name for field in fields(kind)]


def record(name: str, state: dict[str, Any]) -> Any:
    """Build an object from its fields."""
    kind = _class(name)
    if not (is_dataclass(kind) or hasattr(kind, "_fields")):
        raise ValueError(f"{name!r} is not made of fields")
    return _checked(kind(**{_NAMES_OF_0_1.get(n, n): part for n, part in state.items()}))


def _class(name: str) -> Any:
    if name not in _HOMES:
        raise ValueError(f"it holds a {name!r}, which this version does not know")
    return getattr(import_module(_HOMES[name]), name)


def _is_known(value: Any) -> bool:
    return type(value).__name__ in _HOMES and _class(type(value).__name__) is type(value)


def _write_record(writer: Writer, value: Any, at: str) -> list[Any]:
    state = {name: getattr(value, name) for name in fields_of(type(value))}
    return [type(value).__name__, writer.nodes(state, at)]


def _write_estimator(writer: Writer, value: Any, at: str) -> list[Any]:
    state = value.__getstate__()
    kept = {name: part for name, part in state.items() if name[0] != "_" or name == _OUTPUT}
    return [type(value).__name__, writer.nodes(kept, at)]


def _read_estimator(reader: Reader, payload: Any) -> Any:
    name, nodes = payload
    kind = _class(name)
    if not (isinstance(kind, type) and issubclass(kind, BaseEstimator)):
        raise ValueError(f"{name!r} is not an estimator")
    found = kind()
    known = {*found.get_params(deep=False), _OUTPUT}
    unknown = [n for n in nodes if n not in known and (n[:1] == "_" or n[-1:] != "_")]
    if unknown:
        raise ValueError(f"its parameter {unknown[0]!r} is one that this version does not know")
    found.__setstate__(reader.values(nodes))
    return _checked(found)


def _checked(value: Any) -> Any:
    """Let an object look at itself: a file with the right checksums may still be a forgery."""
    if hasattr(value, "_check_loaded"):
        value._check_loaded()
    return value


KINDS = {
    "record": Kind(is_record, _write_record, lambda reader, p: record(p[0], reader.values(p[1]))),
    "estimator": Kind(
        lambda v: isinstance(v, BaseEstimator) and _is_known(v), _write_estimator, _read_estimator
    ),
}
