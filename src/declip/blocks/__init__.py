"""Tables larger than memory: cut into blocks of rows on disk, and fitted block by block."""

from declip.blocks.preparing import prepare_blocks
from declip.blocks.table import Block, BlockTable, DamagedBlockError

__all__ = ["Block", "BlockTable", "DamagedBlockError", "prepare_blocks"]
