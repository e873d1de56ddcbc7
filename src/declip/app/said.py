"""What a person says on the page about a file, as arguments of `read_table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from declip.io import Remedy
from declip.options import UsageError

__all__ = ["ROLES", "arguments", "as_label", "in_page_words"]

ROLES = ("row", "column", "value", "limit", "qualifier", "unit", "covariate", "group", "aside")
_WORDS = ("format", "layout", "sheet", "decimal", "thousands", "separator", "encoding",
          "replicates", "side", "below_limit")  # fmt: skip
_LABELS = {
    "ceiling": "Ceiling",
    "floor": "Floor",
    "limits": "Ceiling or Floor",
    "log": "Scale",
    "rows": "names the row",
    "columns": "names the column",
    "values": "value",
    "limit": "limit",
    "qualifier": "mark",
    "unit": "unit",
    "ignore": "left aside",
    "covariates": "feature",
    "groups": "group (plate)",
    "missing": "Words for missing",
    "marks": "Marks and words",
    "skip": "Lines to leave out",
    "sheet": "Sheet",
    "decimal": "Decimal sign",
    "thousands": "Between thousands",
    "layout": "Layout",
    "replicates": "Repeated cells",
    "header": "First line",
    "effort": "Effort",
    "format": "Known export",
    "below_limit": "Unmarked values below their limit",
    "side": "Marked values lie",
}


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `read_table` for what the page sent; refuse what is no answer."""
    found: dict[str, Any] = {}
    for name, is_right in _CHECKS.items():
        value = given.get(name)
        if value is None or (value in ("", [], {}) and name != "skip"):
            continue
        if not is_right(value):
            raise UsageError(f"{_LABELS.get(name, name)} cannot be {str(value)[:60]!r}")
        found[name] = value
    pairs = found.pop("pairs", {})
    return found | _of_roles(found.pop("roles", []), pairs)


def _of_roles(roles: Sequence[Sequence[str]], pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Return which column is what; with none that names columns, the table is wide."""
    if not roles:
        return {}
    of = {role: [name for name, said in roles if said == role] for role in ROLES}
    if len(of["group"]) > 1:
        raise UsageError(f"only one column can name groups, not {' and '.join(of['group'])}")
    found: dict[str, Any] = {"rows": of["row"], "values": of["value"], "unit": of["unit"]}
    found |= {"covariates": of["covariate"], "groups": "".join(of["group"])}
    if of["column"]:
        found |= {"layout": "long", "columns": of["column"]}
        found |= {name: of[name][0] for name in ("limit", "qualifier") if of[name]}
    else:
        found |= {"layout": "wide", "ignore": [*of["aside"], *found.pop("unit")]}
        for name in ("limit", "qualifier"):
            found[name] = _beside(roles, name, pairs.get(name, {}))
    return {name: value for name, value in found.items() if value}


def _beside(roles: Sequence[Sequence[str]], name: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the limits or marks of value columns: as known, else of the value before them."""
    values = [header for header, role in roles if role == "value"]
    theirs = [header for header, role in roles if role == name]
    found = {v: beside for v, beside in known.items() if v in values and beside in theirs}
    before = values[0] if values else ""
    for header, role in roles:
        before = header if role == "value" else before
        if role == name and header not in found.values() and before:
            found[before] = header
    return found


def as_label(remedy: Remedy) -> str:
    """Return a remedy as the label of the page and what to write or choose there."""
    label = f"“{_LABELS.get(remedy.option, remedy.option)}”"
    return label if remedy.value == "..." else f"{label} {remedy.value}"


def in_page_words(text: str) -> str:
    """Return a message with the labels of the page in place of the arguments of Python."""
    for name, label in _LABELS.items():
        text = text.replace(f"{name}=", f"“{label}” ").replace(f" {name} must", f" “{label}” must")
    return text


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is_lines(value: Any) -> bool:
    return isinstance(value, list) and all(type(line) is int and line > 0 for line in value)


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        _is_words(pair) and len(pair) == 2 and pair[1] in ROLES for pair in value
    )


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(word, str) for word in value.values())


def _is_known(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_mapping(pairs) for pairs in value.values())


def _is_limit(value: Any) -> bool:
    numbers = value.values() if isinstance(value, dict) else [value]
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_WORDS, lambda value: isinstance(value, str)),
    "header": lambda value: isinstance(value, bool),
    "skip": _is_lines,
    "missing": _is_words,
    "marks": _is_mapping,
    "roles": _is_pairs,
    "pairs": _is_known,
    "ceiling": _is_limit,
    "floor": _is_limit,
}
