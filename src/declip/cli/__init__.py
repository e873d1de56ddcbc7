"""The command ``declip``: files in, restored files out."""

from declip.cli.commands import app
from declip.cli.main import main

__all__ = ["app", "main"]
