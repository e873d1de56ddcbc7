"""Do the tests notice? Each mutant of a module is run against the tests of that module.

``python -m tests.mutation`` prints the mutants that no test kills, and their share; it fails if
that share is too large. A name (``validation.limits``) chooses a module, ``--share 0.2`` a sample.
"""

import argparse
import importlib.util
import os
import random
import resource
import sys
from collections import Counter
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from tests.mutation.mutants import mutants_of

ROOT = Path(__file__).parents[2]
VALIDATION = ["triplets", "limits", "tables", "sizes"]
FILES = [*(f"tests/validation/test_{name}.py" for name in VALIDATION), "tests/test_intervals.py"]
OTHERS = "tests/estimators/bad_input"
# The tests of the very module come first.
TESTS = {
    "cells": [FILES[-1], *FILES[:-1]],
    "intervals": [FILES[-1], *FILES[:-1]],
    **{f"validation.{n}": [f"tests/validation/test_{n}.py", *FILES] for n in VALIDATION},
    "validation.columns": ["tests/validation/test_tables.py", *FILES],
    "validation.coverage": [OTHERS],
    "validation.messages": [OTHERS],
}
HEAVY = ("cvxpy", "hypothesis.extra.numpy", "pandas", "polars", "sklearn.utils.estimator_checks")
SECONDS = 120  # of the processor; a mutant that takes more runs in circles: killed


def main():
    asked = _asked()
    for name in HEAVY:  # once, for all the forks
        importlib.import_module(name)
    killed, seen = Counter(), Counter()
    first_of = {frozenset(TESTS[module]): module for module in asked.modules or TESTS}
    for module in first_of.values():
        if _run(module, None) != 0:
            sys.exit(f"the tests of {module} fail without any mutant")
    for module, mutant, code in _results(asked):
        seen[module] += 1
        killed[module] += code != 0
        if code == 0:
            print(f"survives: declip.{module}:{mutant.line}: {mutant.what}", flush=True)
    for module, count in seen.items():
        print(f"{module:24} {killed[module]:4} of {count:4} killed, {killed[module] / count:.0%}")
    share = killed.total() / seen.total()
    print(f"{'all':24} {killed.total():4} of {seen.total():4} killed, {share:.1%}")
    sys.exit(share < asked.at_least)


def _asked():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("modules", nargs="*", help=", ".join(TESTS))
    ask.add_argument("--share", type=float, default=1.0, help="of the mutants, drawn by lot")
    ask.add_argument("--jobs", type=int, default=1)
    ask.add_argument("--at-least", type=float, default=0.8, help="share to be killed")
    return ask.parse_args()


def _results(asked):
    """Yield (module, mutant, exit code of its tests), several at a time."""
    waiting = [
        (module, mutant)
        for module in asked.modules or TESTS
        for mutant in mutants_of(_path(module).read_text())
        if random.Random(f"{module} {mutant.line} {mutant.what}").random() < asked.share
    ]
    running = {}
    while waiting or running:
        if waiting and len(running) < asked.jobs:
            module, mutant = waiting.pop()
            running[_start(module, mutant)] = module, mutant
        else:
            pid, status = os.wait()
            yield *running.pop(pid), os.waitstatus_to_exitcode(status)


def _path(module):
    return ROOT / "src/declip" / f"{module.replace('.', '/')}.py"


def _run(module, mutant):
    _, status = os.waitpid(_start(module, mutant), 0)
    return os.waitstatus_to_exitcode(status)


def _start(module, mutant):
    """Fork, and run the tests of a module with its mutant in its place."""
    pid = os.fork()
    if pid:
        return pid
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    if mutant is not None:
        _put_in_place(f"declip.{module}", mutant.tree)
    os.chdir(ROOT)
    how = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-profile=quick"]
    os._exit(pytest.main([*how, *TESTS[module]]))


def _put_in_place(name, tree):
    usual = SourceFileLoader.get_code

    def get_code(self, fullname):
        return compile(tree, self.path, "exec") if fullname == name else usual(self, fullname)

    SourceFileLoader.get_code = get_code


if __name__ == "__main__":
    main()
