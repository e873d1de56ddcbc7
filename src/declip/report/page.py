"""The report: one self-contained page."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from declip.io import TableFile, new_file
from declip.io.digits import short_text
from declip.report.columns import column_lines, mean_lines
from declip.report.figures import LONGEST, figures
from declip.report.names import apart
from declip.report.view import View

__all__ = ["notebook_html", "render", "write_report"]

_LISTED = 40  # names of rows and columns that are listed


def write_report(
    restoration: Any,
    path: str | Path,
    *,
    source: str | Path | TableFile | None = None,
    fill: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write what was restored, and how far to trust it, as one HTML page.

    The page needs no network and no other file, follows the light or dark setting of the reader and
    prints well.

    Parameters
    ----------
    restoration : Restoration
        What `declip.restore` gave.
    path : str or Path
        File to come.
    source : TableFile, str or Path, optional
        File that the table came from; its name is shown. What `declip.read_table` gave also tells
        how it was read, for the lines that make the restoration again.
    fill : bool, default=True
        Whether the table is written with values in cells that had none, as `write_table` was told.
    overwrite : bool, default=False
        Whether a file that exists may be replaced.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import declip
    >>> from declip.report import write_report
    >>> rng = np.random.default_rng(0)
    >>> table = np.minimum(rng.normal(size=(40, 1)) + 0.2 * rng.normal(size=(40, 4)), 1)
    >>> r = declip.restore(table, ceiling=1, method="tobit", n_components=1)
    >>> with TemporaryDirectory() as folder:
    ...     text = write_report(r, Path(folder, "report.html")).read_text()
    >>> "<html" in text
    True
    """
    with new_file(path, overwrite) as temporary:
        temporary.write_text(render(restoration, source, fill), encoding="utf-8")
    return Path(path)


def render(
    restoration: Any, source: str | Path | TableFile | None = None, fill: bool = True
) -> str:
    """Return the page as text."""
    view = View(restoration)
    reading = source.arguments if isinstance(source, TableFile) else {}
    path = source.path if isinstance(source, TableFile) else source
    return _template("page.html").render(
        facts=_facts(view) | {"source": None if path is None else Path(path).name, "fill": fill},
        words=restoration.as_text(fill),
        code=_code(restoration, path, reading),
        figures=figures(view),
        lines=column_lines(view),
        candidates=_candidates(restoration),
        means=mean_lines(restoration),
    )


def notebook_html(restoration: Any) -> str:
    """Return what a notebook shows of a restoration: its counts, and the page of words."""
    view = View(restoration)
    return _template("notebook.html").render(facts=_facts(view), words=str(restoration))


def _template(name: str) -> Any:
    environment = Environment(
        loader=PackageLoader("declip.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = _figure
    return environment.get_template(name)


def _figure(value: Any) -> str:
    """Return a number as a person writes it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "\u2013"}[value]
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u2009")
    return short_text(value, 4) if isinstance(value, float) else str(value)


def _facts(view: View) -> dict[str, Any]:
    restoration, gain = view.restoration, view.restoration.expected_gain
    cells, counts = view.cells, restoration.counts
    missing = view.shape[0] * view.shape[1] - len(cells)
    at_limit = cells.n_censored - counts.get("restored", 0)
    return {
        "made": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        "version": version("declip"),
        "shape": view.shape,
        "counts": counts,
        "measured": len(cells),
        "clipped": cells.n_censored,
        "missing": missing,
        "left": {"at the limit": at_limit, "empty": counts.get("undetermined", 0) - at_limit},
        "gain": gain if gain == gain else None,
        "verdict": restoration.verdict,
        "warnings": [str(warning) for warning in restoration.warnings],
        "chosen": _chosen(restoration.chosen),
        "undetermined": {axis: _listed(view.undetermined(axis)) for axis in ("row", "column")},
    }


def _listed(names: list[str]) -> dict[str, Any]:
    return {
        "names": apart(names[:_LISTED], LONGEST),
        "more": max(0, len(names) - _LISTED),
        "count": len(names),
    }


def _chosen(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return what counts most, its parameters and why: the weights stand with the candidates."""
    named = {"method": chosen["method"], **chosen.get("parameters", {}), "why": chosen["why"]}
    return {name: _plain(value) for name, value in named.items()}


def _flat(given: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping without mappings in it, for a table of two columns."""
    flat: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            flat |= _flat(value)
        else:
            flat[str(name)] = _plain(value)
    return flat


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _candidates(restoration: Any) -> dict[str, Any]:
    rows = [_flat(candidate) for candidate in restoration.candidates]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {"names": names, "rows": [[row.get(name) for name in names] for row in rows]}


def _code(restoration: Any, source: str | Path | None, reading: Mapping[str, Any]) -> str:
    """Return the lines that make this restoration again."""
    settings = dict(restoration.settings)
    if source is None:
        first = ["# X: the table, with ceiling= and floor= as before"]
        result = _call("result = declip.restore", ["X"], settings)
        last = []
    else:
        first = [_call("table = declip.read_table", [repr(Path(source).name)], reading)]
        given = ["table.intervals", *(["**table.known"] if _tells_of_rows(reading) else [])]
        result = _call("result = declip.restore", given, settings)
        last = ['declip.write_table(result.table, "restored.csv", like=table)']
    lines = ["import declip", "", *first, result, *last, 'result.report("report.html")']
    return "\n".join([f"# declip {version('declip')}", *lines]) + "\n"


def _tells_of_rows(reading: Mapping[str, Any]) -> bool:
    """Tell whether columns of the file were taken as known of the rows."""
    return bool({"covariates", "groups"} & reading.keys())


def _call(function: str, first: list[str], named: Mapping[str, Any]) -> str:
    """Return a call in one line, or with an argument a line if that is too long."""
    arguments = [*first, *(f"{name}={_plain_code(value)}" for name, value in named.items())]
    short = f"{function}({', '.join(arguments)})"
    return short if len(short) <= 88 else f"{function}(\n    " + ",\n    ".join(arguments) + ",\n)"


def _plain_code(value: Any) -> str:
    """Return a value as Python writes it, arrays as lists and paths as text."""
    if isinstance(value, tuple):
        inner = ", ".join(map(_plain_code, value))
        return f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {_plain_code(v)}' for k, v in value.items())}}}"
    if isinstance(value, Path):
        return repr(value.name)
    return repr(value.tolist() if hasattr(value, "tolist") else value)
