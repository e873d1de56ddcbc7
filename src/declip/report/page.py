"""The report: one self-contained page."""

from __future__ import annotations

import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from declip.io import new_file
from declip.report.figures import draw_columns, draw_histograms, draw_map, draw_reclip
from declip.report.view import View

__all__ = ["notebook_html", "render", "write_report"]

_SHOWN = 12  # columns drawn one by one
_LISTED = 40  # names of rows and columns that are listed


def write_report(
    restoration: Any, path: str | Path, *, source: str | Path | None = None, overwrite: bool = False
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
    source : str or Path, optional
        File that the table came from; its name is shown.
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
        temporary.write_text(render(restoration, source), encoding="utf-8")
    return Path(path)


def render(restoration: Any, source: str | Path | None = None) -> str:
    """Return the page as text."""
    view = View(restoration)
    columns = [view.column(j) for j in view.most_clipped(_SHOWN)]
    return _template("page.html").render(
        facts=_facts(view, source),
        map=draw_map(view),
        histograms=draw_histograms(view, columns),
        columns=draw_columns(view, columns),
        reclip=draw_reclip(restoration.reclip),
        per_column=_per_column(view),
        shown=len(columns),
        candidates=_candidates(restoration),
    )


def notebook_html(restoration: Any) -> str:
    """Return what a notebook shows of a restoration: its counts, and the page of words."""
    view = View(restoration)
    return _template("notebook.html").render(facts=_facts(view, None), words=str(restoration))


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
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _facts(view: View, source: str | Path | None) -> dict[str, Any]:
    restoration, total = view.restoration, view.shape[0] * view.shape[1]
    gain = restoration.expected_gain
    return {
        "source": None if source is None else Path(source).name,
        "made": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        "version": version("declip"),
        "shape": view.shape,
        "counts": restoration.counts,
        "shares": {flag: count / total for flag, count in restoration.counts.items()},
        "kept_limits": bool(restoration.kept_limits),
        "gain": gain if gain == gain else None,
        "verdict": restoration.verdict,
        "warnings": [str(warning) for warning in restoration.warnings],
        "chosen": _flat(restoration.chosen),
        "undetermined": {axis: _listed(view.undetermined(axis)) for axis in ("row", "column")},
        "summary": str(restoration),
        "code": _code(restoration, source),
    }


def _listed(names: list[str]) -> dict[str, Any]:
    return {"names": names[:_LISTED], "more": max(0, len(names) - _LISTED), "count": len(names)}


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


def _per_column(view: View) -> list[dict[str, Any]]:
    side = view.cells.by_col
    exact, clipped = (ptr[1:] - ptr[:-1] for ptr in (side.exact_ptr, side.censored_ptr))
    return [
        {"name": name, "exact": int(a), "clipped": int(b), "missing": int(view.shape[0] - a - b)}
        for name, a, b in zip(view.col_names, exact, clipped, strict=True)
    ][:500]


def _code(restoration: Any, source: str | Path | None) -> str:
    """Return what makes this restoration again; limits given beside the file are not known here."""
    file = "table.csv" if source is None else Path(source).name
    said = restoration.settings.items()
    arguments = ["table.intervals", *(f"{name}={_plain_code(value)}" for name, value in said)]
    return (
        f"# declip {version('declip')}\n"
        "import declip\n\n"
        f"table = declip.read_table({file!r})  # and the limits, if they are not in its cells\n"
        f"result = declip.restore({', '.join(arguments)})\n"
        'declip.write_table(result.table, "restored.csv", like=table)\n'
        'result.report("report.html")\n'
    )


def _plain_code(value: Any) -> str:
    """Return a value as Python writes it, arrays as lists."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain_code, value))})"
    return repr(value.tolist() if hasattr(value, "tolist") else value)
