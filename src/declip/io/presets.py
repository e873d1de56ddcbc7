"""Exports whose columns are known: ``format="wqp"``, ``format="olink"``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from declip.io.plan import EXPORTS, Asked
from declip.io.problems import Remedy
from declip.io.sheet import Sheet

__all__ = ["PRESETS", "looks_like", "with_preset"]

# For each role the headers that editions of the export use, in the order of preference; several
# in a row are taken together as far as they are there. A name after "?" is taken if it varies.
PRESETS: dict[str, dict[str, Any]] = {
    "wqp": {
        "rows": [
            ["MonitoringLocationIdentifier", "ActivityStartDate", "?ActivityStartTime/Time",
             "?ActivityDepthHeightMeasure/MeasureValue"],
            ["Location_Identifier", "Activity_StartDate", "?Activity_StartTime",
             "?Activity_DepthHeightMeasure"],
        ],
        "columns": [
            ["CharacteristicName", "?ResultSampleFractionText"],
            ["Result_Characteristic", "?Result_SampleFraction"],
        ],
        "values": [["ResultMeasureValue"], ["Result_Measure"]],
        "qualifier": [["ResultDetectionConditionText"], ["Result_ResultDetectionCondition"]],
        "limit": [["DetectionQuantitationLimitMeasure/MeasureValue"], ["DetectionLimit_MeasureA"]],
        "unit": [
            ["ResultMeasure/MeasureUnitCode", "DetectionQuantitationLimitMeasure/MeasureUnitCode"],
            ["Result_MeasureUnit", "DetectionLimit_MeasureUnitA"],
        ],
    },
    "olink": {
        "rows": [["SampleID", "?PlateID"]],
        "columns": [["Assay", "?OlinkID"]],
        "values": [["NPX"]],
        "limit": [["LOD"], ["PlateLOD"], ["MaxLOD"]],
        "below_limit": "censored",
    },
}  # fmt: skip
_NEEDED = ("rows", "columns", "values", "limit")


def with_preset(sheet: Sheet, asked: Asked, name: str | None) -> Asked:
    """Return what was asked for, and for the rest what is known of an export."""
    if name is None:
        return asked
    if name not in PRESETS:
        sheet.fail(f"format must be one of {', '.join(PRESETS)}; got {name!r}")
    found: dict[str, Any] = {}
    for role, choices in PRESETS[name].items():
        if getattr(asked, role):
            continue
        headers: Any = choices if isinstance(choices, str) else _there(sheet, choices)
        if not headers and role in _NEEDED:
            some = " or ".join(repr(choice[0]) for choice in choices)
            what = f"this is no export of {EXPORTS[name]}: there is no column {some}"
            sheet.fail(what, None, None, Remedy(role, "...", "names the column"))
        if role in ("limit", "qualifier"):
            headers = {"": headers[0]} if headers else {}
        found[role] = headers
    return replace(asked, **found)


def looks_like(sheet: Sheet) -> str | None:
    """Return the export that has the columns of this sheet."""
    for name, roles in PRESETS.items():
        if all(any(choice[0] in sheet.header for choice in roles[role]) for role in _NEEDED):
            return name
    return None


def _there(sheet: Sheet, choices: list[list[str]]) -> tuple[str, ...]:
    for choice in choices:
        if choice[0] in sheet.header:
            return tuple(
                name.lstrip("?")
                for name in choice
                if name.lstrip("?") in sheet.header
                and (name[0] != "?" or _varies(sheet, choice, name))
            )
    return ()


def _varies(sheet: Sheet, choice: list[str], name: str) -> bool:
    """Tell whether a column makes a difference between lines that have the same first key."""
    first = [sheet.column(part) for part in choice if part[0] != "?"]
    keys = sheet.frame.select(str(j) for j in first)
    more = keys.with_columns(sheet.series(name.lstrip("?")).fill_null("").alias("more"))
    return more.n_unique() > keys.n_unique()
