"""The commands: restore, summary, check, demo, app, completion, version."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import declip
from declip.cli.completion import Shell, script
from declip.cli.knowing import Knowing
from declip.cli.options import Input, Outputs, Printing, argument
from declip.cli.parser import Commands
from declip.cli.screen import Screen
from declip.cli.summary import Summarising
from declip.cli.summary import run as run_summary
from declip.options import Reading, Restoring, as_option, in_own_words, option

if TYPE_CHECKING:
    from declip.io import TableFile
    from declip.restoration import Restoration

__all__ = ["app"]

app = Commands("declip", "Restore what a ceiling or a floor hid.")


@app.command(
    examples=(
        "declip restore assay.csv --log --report report.html",
        "declip restore ratings.csv --ceiling 5 -o restored.csv",
        "declip restore metals.csv --format wqp --log --between 0",
        "declip restore plates.csv --covariates age,sex --groups plate",
        "declip restore sales.csv --rows store,sku --columns date --values sales --limit stock",
        "declip restore survey.xlsx --sheet answers --floor 1 --ceiling 7 --flags cells.csv",
    )
)
def restore(
    input: Input,
    outputs: Outputs,
    knowing: Knowing,
    restoring: Restoring,
    reading: Reading,
    printing: Printing,
) -> None:
    """Restore the clipped cells of a table in a file, and give its lines back.

    Cells may be numbers, limits (<0.5, >200), ranges (0.1-0.5), marked (0.05 U), words (ND, >ULOQ)
    or empty; `declip check FILE` says how a file is understood.
    """
    from declip.io import new_file

    screen = Screen(printing)
    wanted = outputs.paths(input.file)
    with ExitStack() as files:
        # Refused before the work if a file is in the way; all appear together at the end.
        temporary = {
            name: files.enter_context(new_file(path, outputs.overwrite))
            for name, path in wanted.items()
        }
        with screen.work("reading"):
            table = knowing.read(input.file, reading)
        screen.aside(table.plan.said(as_option) if table.plan else "")
        with screen.work(""):
            result = restoring.restore(table.intervals, screen.alive, **table.known)
        with screen.work("writing"):
            _write(result, table, temporary, outputs)
    width = max(map(len, wanted)) + 2
    listed = "\n".join(f"{name:<{width}}{path}" for name, path in wanted.items())
    if result.counts["filled"] and not outputs.fill:
        listed += "\n\nCells without a value were left so: --fill writes what they got."
    screen.result(
        f"{in_own_words(result.as_text(outputs.fill))}\n\n{listed}",
        {**_facts(result, table), "outputs": wanted},
        [in_own_words(warning) for warning in result.warnings],
    )


def _write(result: Restoration, table: TableFile, paths: dict[str, Path], outputs: Outputs) -> None:
    from declip.io import write_table
    from declip.report import write_cells, write_imputations, write_report

    long = table.plan is not None and table.format.layout == "long"
    bands = {"flags": result.flags, "lower": result.lower, "upper": result.upper} if long else {}
    write_table(
        result.table,
        paths["table"],
        like=table,
        **bands,
        digits=(result.lower, result.upper),
        in_place=outputs.in_place,
        fill=outputs.fill,
    )
    if "flags" in paths:
        write_cells(result, paths["flags"], like=table, fill=outputs.fill)
    if outputs.imputations is not None:
        write_imputations(result, paths["imputations"], outputs.imputations)
    if "report" in paths:
        write_report(result, paths["report"], source=table, fill=outputs.fill)


def _facts(result: Restoration, table: TableFile) -> dict[str, Any]:
    return {
        "file": table.path,
        "understood": None if table.plan is None else table.plan.said(as_option),
        "shape": table.intervals.shape,
        "cells": result.counts,
        "chosen": result.chosen,
        "kept_limits": result.kept_limits,
        "reclip_gain": getattr(result.reclip, "gain", None),
    }


@app.command(
    examples=(
        "declip summary wells.csv --log",
        "declip summary wells.csv --log --by site --criterion 0.05 -o summary.csv",
    )
)
def summary(
    input: Input,
    asked: Summarising,
    restoring: Restoring,
    reading: Reading,
    printing: Printing,
) -> None:
    """Sum up the columns of a file, with intervals that count what limits hide.

    Beside them stand Kaplan-Meier, regression on order statistics, maximum likelihood and half the
    limit.
    """
    run_summary(input.file, asked, restoring, reading, printing)


@app.command(
    examples=(
        "declip check assay.csv",
        "declip check survey.xlsx --sheet answers --ceiling 7",
        "declip check metals.csv --limit mdl --qualifier flag",
    )
)
def check(input: Input, reading: Reading, printing: Printing) -> None:
    """Say how a file is understood, what is clipped in it, and whether that can be restored."""
    from declip.cli.checking import Checked

    screen = Screen(printing)
    with screen.work("reading"):
        table = reading.read(input.file)
    with screen.work("looking"):
        checked = Checked.of(table, reading)
    screen.result(str(checked), checked.facts())


@dataclass(frozen=True, kw_only=True)
class _Demo:
    """Where the demonstration goes."""

    folder: Path = argument("Where the files go.", "FOLDER", Path("declip-demo"))
    illustration: bool = option("Also draw the panel beside the truth.", False, ("--illustration",))


@app.command()
def demo(options: _Demo) -> None:
    """Restore a simulated laboratory panel that ships with declip; leave files to look at."""
    from declip.demo import run

    run(options.folder, illustration=options.illustration)


@dataclass(frozen=True, kw_only=True)
class _Page:
    """Where the page is served."""

    port: int = option("Port; 0 for any that is free.", 8642)
    browser: bool = option("Open the page in the browser.", True, ("--browser", "--no-browser"))
    max_size: int = option("Largest upload, in MB.", 100)


@app.command(name="app")
def serve(options: _Page) -> None:
    """Serve a page on this computer alone: drop a file, restore it, look, download."""
    from declip.app import serve as run

    run(port=options.port, open_browser=options.browser, max_size=options.max_size * 10**6)
    os._exit(0)  # at once: a thread may still wait for its process to start


@app.command(examples=('eval "$(declip completion)"', "declip completion --shell fish | source"))
def completion(shell: Shell) -> None:
    """Print what a shell runs to complete commands, options and choices."""
    print(script(shell.shell))


@app.command()
def version(printing: Printing) -> None:
    """Print the version."""
    number = declip.__version__
    Screen(printing).result(f"declip {number}", {"version": number})
