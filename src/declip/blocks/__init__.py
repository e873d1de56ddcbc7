"""Tables larger than memory: cut into blocks of rows on disk, and fitted block by block."""

from declip.blocks.parts import ObjectiveTerms
from declip.blocks.preparing import prepare_blocks
from declip.blocks.problem import BlockProblem, Scattered, fit_blocks
from declip.blocks.running import LocalRunner, Runner
from declip.blocks.table import Block, BlockTable, DamagedBlockError

__all__ = [
    "Block",
    "BlockProblem",
    "BlockTable",
    "DamagedBlockError",
    "LocalRunner",
    "ObjectiveTerms",
    "Runner",
    "Scattered",
    "fit_blocks",
    "prepare_blocks",
]
