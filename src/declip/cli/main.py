"""The entry of the command: every error about the user's data becomes one line."""

from __future__ import annotations

import json
import os
import sys

import typer

from declip.cli.commands import app
from declip.options import UsageError

__all__ = ["main"]

# Of click, or of the copy of it within typer.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

BAD_DATA, BAD_USAGE, INTERRUPTED = 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 is success, 1 a file or a table that cannot be used, 2 a wrong call, 130 an interruption.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = int(app(arguments, prog_name="declip", standalone_mode=False) or 0)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code
    except _UsageError as error:
        return _fail(error.format_message(), arguments, BAD_USAGE)  # type: ignore[attr-defined]
    except UsageError as error:
        return _fail(str(error), arguments, BAD_USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; nothing was written", arguments, INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BAD_DATA
    except (ImportError, ValueError, TypeError, MemoryError, OSError) as error:
        return _fail(str(error) or type(error).__name__, arguments, BAD_DATA)


def _fail(message: str, arguments: list[str], code: int) -> int:
    from declip.persistence import one_line

    print(f"declip: {one_line(message)}", file=sys.stderr)
    if "--json" in arguments:
        print(json.dumps({"error": one_line(message)}))
    return code
