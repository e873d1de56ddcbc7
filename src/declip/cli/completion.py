"""Completion in shells: the script that asks, and the answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from declip.cli.parser import Commands
from declip.options import option

__all__ = ["ASKED", "Shell", "answer", "script"]

ASKED = "_DECLIP_COMPLETE"

_SCRIPTS = {
    "bash": """\
_declip() {
    local IFS=$'\\n'
    COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _DECLIP_COMPLETE=1 declip))
}
complete -o default -F _declip declip""",
    "zsh": """\
_declip() {
    local -a found
    found=(${(f)"$(COMP_WORDS="${(F)words}" COMP_CWORD=$((CURRENT-1)) _DECLIP_COMPLETE=1 declip)"})
    if (( $#found )); then compadd -a found; else _files; fi
}
compdef _declip declip""",
    "fish": """\
function _declip
    set -lx COMP_WORDS (string join \\n (commandline -op) (commandline -t))
    set -lx COMP_CWORD (count (commandline -op))
    _DECLIP_COMPLETE=1 declip
end
complete -c declip -a "(_declip)\"""",
}


@dataclass(frozen=True, kw_only=True)
class Shell:
    """The shell to complete in."""

    shell: Literal["bash", "zsh", "fish"] = option("The shell.", "bash")


def script(shell: str) -> str:
    """Return what a shell runs to complete the command."""
    return _SCRIPTS[shell]


def answer(app: Commands) -> None:
    """Print what may follow, for the words that the shell has left in the environment."""
    text = os.environ.get("COMP_WORDS", "")
    words = text.split("\n") if "\n" in text else text.split(" ")
    for word in app.complete(words, int(os.environ.get("COMP_CWORD", "1"))):
        print(word)
