"""The entry of the command: every error about the user's data becomes a few plain lines."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from declip.cli.commands import app
from declip.cli.completion import ASKED, answer
from declip.options import UsageError, as_option, in_own_words
from declip.wording import one_line

if TYPE_CHECKING:
    from declip.io import Problem

__all__ = ["main"]

BAD_DATA, BAD_USAGE, INTERRUPTED = 1, 2, 130
_MOST = 30  # problems that are listed


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 is success, 1 a file or a table that cannot be used, 2 a wrong call, 130 an interruption.
    """
    if ASKED in os.environ:
        answer(app)
        return 0
    arguments = sys.argv[1:] if arguments is None else arguments
    _show_all_letters()
    try:
        with _ctrl_c():
            app.run(arguments)
        return 0
    except UsageError as error:
        return _fail(str(error), arguments, BAD_USAGE)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", arguments, INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BAD_DATA
    except (ImportError, ValueError, TypeError, MemoryError, OSError) as error:
        return _fail_about(error, arguments)


@contextmanager
def _ctrl_c() -> Iterator[None]:
    """Take any error after Ctrl-C for the interruption: an import cut off may end in another."""
    came: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ours = default and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _show_all_letters() -> None:
    """Write letters that a terminal does not have by their numbers, rather than end at them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail_about(error: BaseException, arguments: list[str]) -> int:
    """Say what is wrong with a file in the words of the command, all of it in one run."""
    problems: tuple[Problem, ...] = getattr(error, "problems", ())
    if not problems:
        return _fail(in_own_words(str(error)) or type(error).__name__, arguments, BAD_DATA)
    path = getattr(error, "path", "")
    described = [_described(problem) for problem in problems]
    if len(described) == 1:
        sign = ", " if problems[0].where else ": "
        return _fail(f"{path}{sign}{described[0]}", arguments, BAD_DATA)
    more = [f"and {len(described) - _MOST} more"] if len(described) > _MOST else []
    return _fail(
        f"{path}: {len(described)} problems", arguments, BAD_DATA, [*described[:_MOST], *more]
    )


def _described(problem: Problem) -> str:
    many = f" ({problem.count:,} cells)" if problem.count > 1 else ""
    where = ", ".join(problem.where)
    said = in_own_words(problem.said(as_option))
    return f"{where}{many}: {said}" if where else said


def _fail(message: str, arguments: list[str], code: int, listed: list[str] | None = None) -> int:
    lines = [one_line(line) for line in listed or []]
    print("\n".join([f"declip: {one_line(message)}", *(f"  {x}" for x in lines)]), file=sys.stderr)
    if "--json" in arguments:
        more = {"problems": lines} if lines else {}
        print(json.dumps({"error": one_line(message), **more}))
    return code
