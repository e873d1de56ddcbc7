"""The commands: restore, check, demo, app, version."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

import declip
from declip.cli.options import Limits, Reading, limit_argument
from declip.cli.screen import Screen, without_nan
from declip.io import TableFile, new_file, read_table, write_table
from declip.io.formats import kind_of

__all__ = ["app"]

app = typer.Typer(
    name="declip",
    help="Restore what a ceiling or a floor hid.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_FORM = (
    "layout",
    "rows",
    "columns",
    "values",
    "separator",
    "decimal",
    "encoding",
    "sheet",
    "header",
)
_File = Annotated[Path, typer.Argument(help="CSV, TSV, Excel, Parquet, npz or MatrixMarket file.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]


@app.command()
def restore(
    file: _File,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Restored table; FILE-restored.SUFFIX by default."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Page to look at (.html).")] = None,
    flags: Annotated[
        Path | None,
        typer.Option(help="List of all cells: what was reported, restored, its flag, its band."),
    ] = None,
    ceiling: Limits.Ceiling = None,
    floor: Limits.Floor = None,
    limits: Limits.File = None,
    log: Annotated[
        bool, typer.Option("--log", help="Work on logarithms (concentrations).")
    ] = False,
    method: Annotated[str, typer.Option(help="auto chooses by the table itself.")] = "auto",
    rank: Annotated[int | None, typer.Option(help="Number of factors.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Strength of the penalty.")] = None,
    budget: Annotated[float, typer.Option(help="Seconds to spend on choosing, about.")] = 8.0,
    layout: Reading.Layout = None,
    rows: Reading.Rows = None,
    columns: Reading.Columns = None,
    values: Reading.Values = None,
    ignore: Reading.Ignore = None,
    missing: Reading.Missing = None,
    separator: Reading.Separator = None,
    decimal: Reading.Decimal = None,
    encoding: Reading.Encoding = None,
    sheet: Reading.Sheet = None,
    header: Reading.Header = None,
    overwrite: _Overwrite = False,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Restore the clipped and missing cells of a table in a file.

    Cells may be numbers, limits (<0.5, >200), ranges (0.1-0.5), words (ND, >ULOQ) or empty.
    """
    screen = Screen(quiet or as_json, as_json)
    output = output or file.with_name(f"{file.stem}-restored{file.suffix}")
    _check_outputs(file, output, flags, report)
    with ExitStack() as outputs:
        # Refused before the work if a file is in the way; all appear together at the end.
        wanted = {"table": output, "flags": flags, "report": report}
        temporary = {
            name: outputs.enter_context(new_file(path, overwrite))
            for name, path in wanted.items()
            if path is not None
        }
        with screen.work("reading"):
            table = read_table(
                file,
                ceiling=limit_argument(ceiling, "ceiling"),
                floor=limit_argument(floor, "floor"),
                limits=limits,
                **_reading(locals()),
            )
        with screen.work(""):
            result = declip.restore(
                table.intervals,
                method=method,
                n_components=rank,
                alpha=alpha,
                log=log,
                budget=budget,
                n_jobs=-1,
                progress=screen.alive,
            )
        with screen.work("writing"):
            _write(result, table, temporary)
    screen.result(_page(result, wanted), _facts(result, table, wanted, screen))


def _reading(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `read_table` about the form of a file."""
    options = {name: given[name] for name in _FORM}
    if options["separator"] == "\\t":
        options["separator"] = "\t"
    return {**options, "ignore": given["ignore"] or (), "missing": given["missing"] or ()}


def _check_outputs(file: Path, *outputs: Path | None) -> None:
    named = [path for path in outputs if path is not None]
    kind_of(named[0])
    if outputs[1] is not None and kind_of(outputs[1]) not in ("csv", "parquet", "excel"):
        raise typer.BadParameter("--flags must end in .csv, .tsv, .parquet or .xlsx")
    if outputs[2] is not None and outputs[2].suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter("--report must end in .html")
    real = [path.resolve() for path in (file, *named)]
    if len(set(real)) < len(real):
        raise typer.BadParameter("the file and its outputs must be different files")


def _write(result: Any, table: TableFile, paths: dict[str, Path]) -> None:
    from declip.report import write_cells, write_report

    write_table(result.table, paths["table"], like=table)
    if "flags" in paths:
        write_cells(result, paths["flags"])
    if "report" in paths:
        write_report(result, paths["report"], source=table.path)


def _page(result: Any, wanted: dict[str, Path | None]) -> str:
    files = [f"{name:<8}{path}" for name, path in wanted.items() if path is not None]
    return "\n".join([str(result).rstrip(), "", *files])


def _facts(
    result: Any, table: TableFile, wanted: dict[str, Path | None], screen: Screen
) -> dict[str, Any]:
    from declip.report import View

    return without_nan(
        {
            "file": table.path,
            "shape": list(table.intervals.shape),
            "cells": View(result).counts,
            "chosen": result.chosen,
            "kept_limits": bool(result.kept_limits),
            "reclip_gain": getattr(result.reclip, "gain", None),
            "warnings": [*result.warnings, *screen.notes],
            "outputs": {name: path for name, path in wanted.items() if path is not None},
        }
    )


@app.command()
def check(
    file: _File,
    ceiling: Limits.Ceiling = None,
    floor: Limits.Floor = None,
    limits: Limits.File = None,
    layout: Reading.Layout = None,
    rows: Reading.Rows = None,
    columns: Reading.Columns = None,
    values: Reading.Values = None,
    ignore: Reading.Ignore = None,
    missing: Reading.Missing = None,
    separator: Reading.Separator = None,
    decimal: Reading.Decimal = None,
    encoding: Reading.Encoding = None,
    sheet: Reading.Sheet = None,
    header: Reading.Header = None,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Say what is clipped, whether it can be restored, and which limits the table seems to have."""
    screen = Screen(quiet or as_json, as_json)
    with screen.work("reading"):
        table = read_table(
            file,
            ceiling=limit_argument(ceiling, "ceiling"),
            floor=limit_argument(floor, "floor"),
            limits=limits,
            **_reading(locals()),
        )
    with screen.work("looking"):
        diagnosis = declip.diagnose(table.intervals)
        proposal = declip.detect_limits(table.intervals)
    form = table.format
    facts = {
        "file": file,
        "format": {
            name: getattr(form, name) for name in ("kind", "layout", "separator", "decimal")
        },
        "diagnosis": diagnosis.as_dict(),
        "proposed": {"ceiling": proposal.ceiling, "floor": proposal.floor},
        "warnings": screen.notes,
    }
    looked = (
        "Looking for limits beside those that are marked:" if table.intervals.n_censored else ""
    )
    parts = [str(diagnosis), "\n".join(filter(None, [looked, str(proposal)]))]
    screen.result("\n\n".join(parts), without_nan(facts))


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where the files go.")] = Path("declip-demo"),
    illustration: Annotated[
        bool, typer.Option("--illustration", help="Also draw the panel beside the truth.")
    ] = False,
) -> None:
    """Restore a simulated laboratory panel that ships with declip; leave files to look at."""
    from declip.demo import run

    run(folder, illustration=illustration)


@app.command(name="app")
def serve(
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8642,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    max_size: Annotated[int, typer.Option(help="Largest upload, in MB.")] = 100,
) -> None:
    """Serve a page on this computer alone: drop a file, restore it, look, download."""
    try:
        from declip.app import serve as run
    except ImportError as error:
        raise ValueError(f"the page needs: pip install 'declip[app]' ({error})") from error
    run(port=port, open_browser=browser, max_size=max_size * 10**6)


@app.command()
def version(as_json: _Json = False) -> None:
    """Print the version."""
    Screen(as_json=as_json).result(f"declip {declip.__version__}", {"version": declip.__version__})
