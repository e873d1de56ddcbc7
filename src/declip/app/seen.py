"""What the page shows of a file before anything is restored: how it was understood, and where."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.app.said import as_label, in_page_words
from declip.detect import LimitProposal, detect_limits, spreads_widely
from declip.intervals import Intervals
from declip.io import Problem, ReadingPlan, TableFile, TableFileError, TableFormat
from declip.io.formats import kind_of
from declip.io.head import take_header
from declip.io.sources import read_sheet
from declip.report.figures import block_shares

__all__ = ["seen_file", "seen_problems"]

_LINES = 8
_COLUMNS = 40
_LONGEST = 80  # characters of a field
_MOST_PROBLEMS = 12
_NAMED = 12  # columns under which there is room for a name
_LETTERS = {"ceiling": "a", "floor": "b", "range": "r", "missing": "m"}


def seen_file(table: TableFile, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was understood of a file, its counts and the map of its cells."""
    cells = table.intervals
    proposal = detect_limits(cells)
    found = proposal.ceiling is not None or proposal.floor is not None
    found = found and not _asks_what_is_missing(table)  # a code is no limit
    given = said.get("ceiling") is not None or said.get("floor") is not None
    above, below, _ = cells.by_row.censored_counts()
    return {
        "rows": cells.shape[0],
        "columns": cells.shape[1],
        "exact": cells.n_exact,
        "above": above,
        "below": below,
        "open": cells.n_censored,
        "missing": cells.shape[0] * cells.shape[1] - len(cells),
        "proposal": _limits_to_take(proposal) if found and not given else None,
        "log": spreads_widely(cells),
        "low": proposal.missing is not None and proposal.missing.word == "low",
        "map": _map(cells),
        "reading": None if table.plan is None else _reading(table.plan),
        "preview": None if table.plan is None else _preview(table.path, said),
    }


def _asks_what_is_missing(table: TableFile) -> bool:
    notes = () if table.plan is None else table.plan.notes
    return any(remedy.option == "missing" for note in notes for remedy in note.remedies)


def seen_problems(error: TableFileError, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that is wrong with a file, with what would solve it, and what it looks like."""
    return {
        "problems": [_problem(problem) for problem in error.problems[:_MOST_PROBLEMS]],
        "reading": None if error.plan is None else _reading(error.plan),
        "preview": _preview(Path(error.path), said),
    }


def _problem(problem: Problem) -> dict[str, Any]:
    remedies = [vars(remedy) for remedy in problem.remedies]
    place = ", ".join(problem.where)
    what = in_page_words(problem.what)
    return {"what": what, "place": place, "column": problem.column, "remedies": remedies}


def _limits_to_take(proposal: LimitProposal) -> dict[str, Any]:
    """Return limits that the ends of the table look like, in words and as fields of the page."""
    words = [line for line in str(proposal).splitlines() if not line.startswith("Nothing was")]
    return {
        "words": "\n".join(words).replace(": see to_frame()", ""),
        "ceiling": _field(proposal.ceiling, proposal.labels),
        "floor": _field(proposal.floor, proposal.labels),
    }


def _field(limit: Any, labels: NDArray | None) -> Any:
    """Return a limit as the page takes it: a number, or one for each column that has one."""
    if limit is None or np.ndim(limit) == 0:
        return None if limit is None else float(limit)
    names = range(len(limit)) if labels is None else labels
    return {str(k): float(x) for k, x in zip(names, limit, strict=True) if np.isfinite(x)}


def _reading(plan: ReadingPlan) -> dict[str, Any]:
    form, roles = plan.format, plan.roles
    return {
        "words": plan.said(as_label),
        "layout": roles.layout,
        "roles": [[name, roles.of(name)] for name in plan.header],
        "pairs": {"limit": dict(roles.limit), "qualifier": dict(roles.qualifier)},
        "sheet": form.sheet,
        "sheets": list(plan.sheets),
        "decimal": form.decimal,
        "thousands": form.thousands,
        "header": form.header,
        "skipped": [vars(line) | {"text": line.text[:_LONGEST]} for line in plan.skipped],
        "examples": [vars(example) for example in plan.examples],
    }


def _preview(path: Path, said: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the first lines of a file as they stand there; None if it cannot even be opened."""
    of_form = ("separator", "decimal", "encoding", "header", "sheet")
    wanted: dict[str, Any] = {name: said.get(name) for name in of_form}
    form = TableFormat(kind_of(path), **wanted)
    skip = said.get("skip")
    try:
        sheet = read_sheet(path, form, None if skip is None else tuple(skip))
    except TableFileError:
        return None
    with suppress(TableFileError):  # its lines are shown without names
        sheet = sheet if sheet.header else take_header(sheet, skip)
    lines = zip(sheet.lines, islice(sheet.frame.iter_rows(), _LINES), strict=False)
    return {
        "header": list(sheet.header[:_COLUMNS]),
        "more": max(0, len(sheet.header) - _COLUMNS),
        "lines": [[int(line), [_text(field) for field in row[:_COLUMNS]]] for line, row in lines],
        "sheets": list(sheet.sheets),
    }


def _text(field: Any) -> str:
    return "" if field is None else str(field)[:_LONGEST]


def _map(cells: Intervals) -> dict[str, list[str]]:
    """Return the map of the table: what most of the clipped cells of a block are, and how many."""
    shares = block_shares(cells)
    stack = np.stack([shares[name] for name in _LETTERS])
    stack[3] *= 0.999  # what is clipped is drawn before what is missing
    most = stack.argmax(axis=0)
    most = np.where(stack[:3].any(axis=0), stack[:3].argmax(axis=0), most)
    share = np.take_along_axis(stack, most[None], 0)[0]
    letters = np.array(list(_LETTERS.values()))[most]
    levels = np.ceil(9 * share).astype(int).astype(str)
    kinds = np.where(share > 0, letters, ".")
    names = [] if cells.col_labels is None else cells.col_labels.tolist()
    return {
        "kinds": ["".join(row) for row in kinds],
        "levels": ["".join(row) for row in levels],
        "names": [str(name)[:_LONGEST] for name in names] if len(names) <= _NAMED else [],
    }
