"""The page of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from declip.cli.commands import app

HEAD = """\
# Command line

`declip COMMAND --help` prints the same. Exit codes: 0 is success, 1 a file or a table that cannot
be used, 2 a wrong call, 130 an interruption; with `--json` the error is one JSON object. Outputs
appear whole or not at all, and replace nothing unless `--overwrite` is given.
"""


def page() -> str:
    return "\n".join([HEAD, *(_command(name, c) for name, c in app.commands.items())])


def _command(name: str, command: Any) -> str:
    shown = command.options
    arguments = [p.shown for p in shown if p.positional]
    lines = [
        f"## declip {name}\n",
        " ".join((command.help or "").split()) + "\n",
        f"```\ndeclip {name} {' '.join([*arguments, '[OPTIONS]'])}\n```\n",
    ]
    for panel, params in _panels(shown).items():
        lines += [f"| {panel} | |", "| --- | --- |", *(_line(p) for p in params), ""]
    return "\n".join(lines)


def _panels(params: list[Any]) -> dict[str, list[Any]]:
    panels: dict[str, list[Any]] = {}
    for param in params:
        panel = param.panel or "Arguments and options"
        panels.setdefault(panel, []).append(param)
    return panels


def _line(param: Any) -> str:
    return f"| {' '.join(_spellings(param))} | {_cell(param.help or '')}{_default(param)} |"


def _spellings(param: Any) -> Iterator[str]:
    if param.positional:
        yield f"`{param.shown}`"
        return
    for name in param.names:
        yield f"`{name}`"
    if param.choices:
        yield " \\| ".join(f"`{word}`" for word in param.choices)


def _default(param: Any) -> str:
    default = param.field.default
    plain = default is not None and not isinstance(default, bool) and str(default)
    return f" Default: `{default}`." if plain else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
