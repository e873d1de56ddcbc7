"""Helpers are imported as ``tests.<module>``, from wherever pytest is started."""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parents[1]))

import tests.kernels.another_build  # noqa: F401

# "fast" draws the same examples in every run, "long" new ones, "quick" few: for mutation checks.
settings.register_profile("quick", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("fast", derandomize=True, deadline=None)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# What is left out when something is not at hand, by the words of the skip, and how to include it.
TO_INCLUDE = {
    "Chromium": "Chromium on the PATH, from the system or by `playwright install chromium`",
    "DECLIP_DATA": "DECLIP_DATA=folder with ml-100k/u.data and filmtrust/ratings.txt",
}


def pytest_unconfigure(config):
    """Say last what was left out for want of something, and how to include it."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", ()) if reporter else ()
    for word, how in TO_INCLUDE.items():
        if n := sum(word in str(report.longrepr) for report in skipped):
            reporter.write_line(f"left out: {n} tests; to include them: {how}")
