"""Tables larger than memory: cut into blocks of rows on disk, and fitted block by block."""

from declip.blocks.table import Block, BlockTable, DamagedBlockError
from declip.blocks.writing import write_intervals

__all__ = ["Block", "BlockTable", "DamagedBlockError", "write_intervals"]
