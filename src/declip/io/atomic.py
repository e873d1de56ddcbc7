"""Files that appear whole or not at all."""

from functools import partial

from declip import persistence
from declip.io.errors import TableFileError

__all__ = ["new_file"]

new_file = partial(persistence.new_file, error=TableFileError)
