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
