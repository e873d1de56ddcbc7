"""Random files written back: the same lines and order, nothing invented, censored stays censored.

The property is that of ``tests/io/test_given_back.py``; here it runs on a thousand files of a kind.
"""

import os
import re
import subprocess
import sys

from reliability.children import ROOT

_TESTS = {
    "wide": "test_a_wide_file_comes_back_with_all_that_was_not_restored",
    "long": "test_a_long_file_comes_back_with_its_lines_and_new_columns",
}


def files_given_back():
    """Return how many random files of each kind came back as they must."""
    return {kind: _examples(name) for kind, name in _TESTS.items()}


def _examples(name):
    test = f"tests/io/test_given_back.py::{name}"
    command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-show-statistics", test]
    env = {**os.environ, "HYPOTHESIS_PROFILE": "long"}
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    found = re.findall(r"(\d+) passing, (\d+) failing", done.stdout)
    good, bad = (sum(int(pair[k]) for pair in found) for k in (0, 1))
    return {"files": good + bad, "given back": good, "otherwise": bad, "pytest": done.returncode}
