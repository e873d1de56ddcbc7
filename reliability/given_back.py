"""Random files written back: the same lines and order, nothing invented, censored stays censored.

The property is that of ``tests/io/test_given_back.py``; here it runs on many more files.
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


def files_given_back(count):
    """Make so many random files, half of each kind; return how many came back as they must."""
    each = -(-count // len(_TESTS))
    return {kind: _examples(name, each) for kind, name in _TESTS.items()}


def _examples(name, count):
    test = f"tests/io/test_given_back.py::{name}"
    command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-show-statistics", test]
    env = {**os.environ, "HYPOTHESIS_PROFILE": "long", "DECLIP_RANDOM_FILES": str(count)}
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    found = re.findall(r"(\d+) passing, (\d+) failing", done.stdout)
    good, bad = (sum(int(pair[k]) for pair in found) for k in (0, 1))
    passed = done.returncode == 0
    return {"files": good + bad, "given back": good, "otherwise": bad, "test passed": passed}
