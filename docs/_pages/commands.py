"""The page of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from declip.cli.commands import app

HEAD = """\
# Command line

`declip COMMAND --help` prints the same. Exit codes: 0 is success, 1 a file or a table that cannot
be used, 2 a wrong call, 130 an interruption; with `--json` the error is one JSON object. Outputs
appear whole or not at all, and replace nothing unless `--overwrite` is given.
"""


def page() -> str:
    command: Any = get_command(app)
    return "\n".join([HEAD, *(_command(name, c) for name, c in command.commands.items())])


def _command(name: str, command: Any) -> str:
    shown = [p for p in command.params if p.name != "help"]
    arguments = [p.name.upper() for p in shown if p.param_type_name == "argument"]
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
        panel = getattr(param, "rich_help_panel", None) or "Arguments and options"
        panels.setdefault(panel, []).append(param)
    return panels


def _line(param: Any) -> str:
    return f"| {' '.join(_spellings(param))} | {_cell(param.help or '')}{_default(param)} |"


def _spellings(param: Any) -> Iterator[str]:
    if param.param_type_name == "argument":
        yield f"`{param.name.upper()}`"
        return
    for name in [*param.opts, *param.secondary_opts]:
        yield f"`{name}`"


def _default(param: Any) -> str:
    default = param.default
    plain = default is not None and not isinstance(default, bool) and str(default)
    return f" Default: `{default}`." if plain else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
