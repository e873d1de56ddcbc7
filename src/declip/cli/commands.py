"""The commands: restore, check, demo, app, version."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import declip
from declip.cli.options import Outputs, Printing, with_options
from declip.cli.screen import Screen
from declip.options import Reading, Restoring

if TYPE_CHECKING:
    from declip.io import TableFile
    from declip.restoration import Restoration

__all__ = ["app"]

app = typer.Typer(
    name="declip",
    help="Restore what a ceiling or a floor hid.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_File = Annotated[Path, typer.Argument(help="CSV, TSV, Excel, Parquet, npz or MatrixMarket file.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"declip {declip.__version__}")
        raise typer.Exit


@app.callback()
def _declip(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Restore what a ceiling or a floor hid."""


@app.command()
@with_options
def restore(
    file: _File, outputs: Outputs, restoring: Restoring, reading: Reading, printing: Printing
) -> None:
    """Restore the clipped and missing cells of a table in a file.

    Cells may be numbers, limits (<0.5, >200), ranges (0.1-0.5), words (ND, >ULOQ) or empty.
    """
    from declip.io import new_file

    screen = Screen(printing)
    wanted = outputs.paths(file)
    with ExitStack() as files:
        # Refused before the work if a file is in the way; all appear together at the end.
        temporary = {
            name: files.enter_context(new_file(path, outputs.overwrite))
            for name, path in wanted.items()
        }
        with screen.work("reading"):
            table = reading.read(file)
        with screen.work(""):
            result = restoring.restore(table.intervals, screen.alive)
        with screen.work("writing"):
            _write(result, table, temporary)
    listed = "\n".join(f"{name:<8}{path}" for name, path in wanted.items())
    screen.result(
        f"{str(result).rstrip()}\n\n{listed}",
        {**_facts(result, table), "outputs": wanted},
        result.warnings,
    )


def _write(result: Restoration, table: TableFile, paths: dict[str, Path]) -> None:
    from declip.io import write_table
    from declip.report import write_cells, write_report

    write_table(result.table, paths["table"], like=table)
    if "flags" in paths:
        write_cells(result, paths["flags"])
    if "report" in paths:
        write_report(result, paths["report"], source=table.path)


def _facts(result: Restoration, table: TableFile) -> dict[str, Any]:
    return {
        "file": table.path,
        "shape": table.intervals.shape,
        "cells": result.counts,
        "chosen": result.chosen,
        "kept_limits": result.kept_limits,
        "reclip_gain": getattr(result.reclip, "gain", None),
    }


@app.command()
@with_options
def check(file: _File, reading: Reading, printing: Printing) -> None:
    """Say what is clipped, whether it can be restored, and which limits the table seems to have."""
    screen = Screen(printing)
    with screen.work("reading"):
        table = reading.read(file)
    with screen.work("looking"):
        diagnosis = declip.diagnose(table.intervals)
        proposal = declip.detect_limits(table.intervals)
    facts = {
        "file": file,
        "format": {
            name: getattr(table.format, name) for name in ("kind", "layout", "separator", "decimal")
        },
        "diagnosis": diagnosis.as_dict(),
        "proposed": {"ceiling": proposal.ceiling, "floor": proposal.floor},
    }
    marked = table.intervals.n_censored
    looked = "Looking for limits beside those that are marked:\n" if marked else ""
    screen.result(f"{diagnosis}\n\n{looked}{proposal}", facts)


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
    from declip.app import serve as run

    run(port=port, open_browser=browser, max_size=max_size * 10**6)


@app.command()
@with_options
def version(printing: Printing) -> None:
    """Print the version."""
    number = declip.__version__
    Screen(printing).result(f"declip {number}", {"version": number})
