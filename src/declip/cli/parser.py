"""Commands from functions that take dataclasses of options: parsed, explained and completed.

Built on argparse, because help and completion are asked for at every key: a larger package would
take longer to load than the answer.
"""

from __future__ import annotations

import argparse
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from declip.options import UsageError

__all__ = ["Command", "Commands", "Option"]

_NAMED = {str: "TEXT", Path: "FILE", int: "NUMBER", float: "NUMBER"}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are those of the command, and that never ends the program."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


@dataclass(frozen=True)
class Option:
    """One field of a dataclass as an option, or as an argument by its place."""

    field: Field
    kind: Any

    @property
    def positional(self) -> bool:
        """Whether it is known by its place."""
        return bool(self.field.metadata.get("positional"))

    @property
    def names(self) -> tuple[str, ...]:
        """How it is written."""
        return self.field.metadata["names"] or ("--" + self.field.name.replace("_", "-"),)

    @property
    def panel(self) -> str:
        """The group under which it is explained."""
        return self.field.metadata["panel"]

    @property
    def help(self) -> str:
        """What it does."""
        return self.field.metadata["help"]

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes, if only some."""
        return next((get_args(kind) for kind in self.kinds if get_origin(kind) is Literal), ())

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types that it may have, without None."""
        union = get_origin(self.kind) in (Union, types.UnionType)
        return tuple(
            k for k in (get_args(self.kind) if union else (self.kind,)) if k is not type(None)
        )

    def _default(self) -> str:
        default = self.field.default
        return "" if default is None or isinstance(default, bool) else f" Default: {default}."

    def add_to(self, group: Any) -> None:
        """Add it to a parser."""
        many = any(get_origin(kind) is list for kind in self.kinds)
        arguments: dict[str, Any] = {"help": (self.help + self._default()).replace("%", "%%")}
        if self.positional:
            default = self.field.default
            given = {} if default is None else {"nargs": "?", "default": default}
            group.add_argument(
                self.field.name, type=self._value, metavar=self.shown, **arguments, **given
            )
        elif self.kinds == (bool,) and "--no-" in "".join(self.names):
            action = argparse.BooleanOptionalAction
            group.add_argument(self.names[0], action=action, default=self.field.default,
                               dest=self.field.name, **arguments)  # fmt: skip
        elif self.kinds == (bool,):
            group.add_argument(*self.names, action="store_true", dest=self.field.name, **arguments)
        else:
            if bool in self.kinds:
                arguments |= {"nargs": "?", "const": True}
            action_ = "append" if many else "store"
            choices = {"choices": self.choices} if self.choices else {"metavar": self.shown}
            default = None if many else self.field.default
            group.add_argument(*self.names, action=action_, type=self._value, dest=self.field.name,
                               default=default, **choices, **arguments)  # fmt: skip

    @property
    def shown(self) -> str:
        """What stands for its value in the help."""
        kind = next((k for k in self.kinds if k in _NAMED), str)
        return self.field.metadata.get("shown") or _NAMED[kind]

    def _value(self, text: str) -> Any:
        kind = next((k for k in self.kinds if k in (Path, int, float)), str)
        try:
            return kind(text)
        except ValueError:
            what = {int: "a whole number", float: "a number"}[kind]
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None


@dataclass(frozen=True)
class Command:
    """A function that takes dataclasses of options, as a command."""

    name: str
    function: Callable[..., None]
    examples: tuple[str, ...] = ()

    @property
    def groups(self) -> dict[str, type]:
        """The dataclasses that the function takes."""
        hints = get_type_hints(self.function)
        return {name: hints[name] for name in inspect.signature(self.function).parameters}

    @property
    def options(self) -> list[Option]:
        """All options, in order."""
        return [
            Option(f, get_type_hints(kind)[f.name])
            for kind in self.groups.values()
            for f in fields(kind)
        ]

    @property
    def help(self) -> str:
        """What it does."""
        return inspect.getdoc(self.function) or ""

    def parser(self, program: str) -> _Parser:
        """Return what understands its options, in groups, with examples below."""
        examples = "\n".join(f"  {line}" for line in self.examples)
        parser = _Parser(
            prog=f"{program} {self.name}",
            usage=" ".join([f"{program} {self.name}", *self._places(), "[OPTIONS]"]),
            description=self.help,
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=_Help,
            allow_abbrev=False,
            add_help=False,
        )
        groups: dict[str, Any] = {}
        for option in self.options:
            panel = option.panel or ("arguments" if option.positional else "options")
            if panel not in groups:
                groups[panel] = parser.add_argument_group(panel)
            option.add_to(groups[panel])
        last = groups.get("options") or parser.add_argument_group("options")
        last.add_argument("--help", "-h", action="store_true", help="Show this and end.")
        return parser

    def _places(self) -> Iterator[str]:
        for option in self.options:
            if option.positional:
                name = option.shown
                yield name if option.field.default is None else f"[{name}]"

    def run(self, program: str, arguments: list[str]) -> None:
        """Parse arguments and call the function with its dataclasses."""
        parser = self.parser(program)
        if {"--help", "-h"} & set(arguments):
            print(parser.format_help().rstrip())
            return
        given = vars(parser.parse_args(self._spelled(arguments)))
        self.function(
            **{
                name: kind(**{f.name: _said(given[f.name], f.default) for f in fields(kind)})
                for name, kind in self.groups.items()
            }
        )

    def _spelled(self, arguments: list[str]) -> list[str]:
        """Join values that begin with a minus to their option, and keep a file out of one."""
        optional = {
            n for o in self.options if bool in o.kinds and len(o.kinds) > 1 for n in o.names
        }
        done: list[str] = []
        for text in arguments:
            before = done[-1] if done else ""
            if before.startswith("--") and "=" not in before and re.match(r"-[0-9.,]", text):
                done[-1] = f"{before}={text}"
            elif before in optional and _is_file(text):
                done[-1:] = [text, before]
            else:
                done.append(text)
        return done


def _is_file(text: str) -> bool:
    from declip.io.formats import KINDS  # help and completion do without

    return Path(text).suffix.lower() in KINDS


def _said(value: Any, default: Any) -> Any:
    """Return what was said: the default if nothing, yes if an option was given without a value."""
    if value is None:
        return default
    return True if isinstance(value, list) and True in value else value


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=96)

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any = None) -> None:
        super().add_usage(usage, actions, groups, "usage: ")


class Commands:
    """The commands of a program.

    Parameters
    ----------
    program : str
        Its name.
    help : str
        What it does, in a line.
    """

    def __init__(self, program: str, help: str) -> None:
        self.program, self.help = program, help
        self.commands: dict[str, Command] = {}

    def command(self, name: str | None = None, examples: tuple[str, ...] = ()) -> Callable:
        """Make a command of a function."""

        def made(function: Callable[..., None]) -> Callable[..., None]:
            known = name or function.__name__
            self.commands[known] = Command(known, function, examples)
            return function

        return made

    def run(self, arguments: list[str]) -> None:
        """Run the command that the first argument names."""
        if not arguments or arguments[0] in ("--help", "-h"):
            print(self.overview())
            return
        first, *rest = arguments
        if first == "--version":
            first = "version"
        if first not in self.commands:
            what = "option" if first.startswith("-") else "command"
            some = ", ".join(self.commands)
            raise UsageError(f"there is no {what} {first!r}; the commands are {some}")
        self.commands[first].run(self.program, rest)

    def overview(self) -> str:
        """Return the help of the program."""
        width = max(map(len, self.commands)) + 2
        lines = [
            textwrap.fill(
                command.help.partition("\n")[0],
                92,
                initial_indent=f"  {name:<{width}}",
                subsequent_indent=" " * (width + 2),
            )
            for name, command in self.commands.items()
        ]
        return "\n".join(
            [
                f"usage: {self.program} COMMAND [OPTIONS]\n",
                f"{self.help}\n",
                "commands:",
                *lines,
                f"\n`{self.program} COMMAND --help` explains one; --version prints the version.",
            ]
        )

    def complete(self, words: list[str], at: int) -> list[str]:
        """Return what may stand at a place of a line: commands, options or choices."""
        start = words[at] if at < len(words) else ""
        if at == 1:
            return [w for w in (*self.commands, "--help", "--version") if w.startswith(start)]
        command = self.commands.get(words[1])
        if command is None:
            return []
        before = next((o for o in command.options if words[at - 1] in o.names), None)
        if before is not None and before.choices:
            return [word for word in before.choices if word.startswith(start)]
        if not start.startswith("-"):
            return []
        names = [name for o in command.options if not o.positional for name in o.names]
        return [name for name in (*names, "--help") if name.startswith(start)]
