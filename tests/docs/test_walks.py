"""The walk of a fit, as docs/contributing/walks.md tells it, counted frame by frame."""

import re
import sys
from pathlib import Path

import numpy as np

import declip
from declip import FroCMC

HOME = str(Path(declip.__file__).parent)
PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "walks.md"
MOST_HOPS = 9


def hops_to_the_kernel():
    """Return the functions of declip on the way to the first update of rows in the kernels."""
    found = []

    def watch(frame, event, _):
        if event != "call" or frame.f_code.co_name != "update_rows" or found:
            return
        if not frame.f_code.co_filename.endswith("kernels/__init__.py"):
            return
        while frame is not None:
            if frame.f_code.co_filename.startswith(HOME):
                found.append(frame.f_code.co_qualname)
            frame = frame.f_back

    table = np.minimum(np.outer(np.arange(1.0, 9), np.arange(1.0, 6)), 20.0)
    sys.setprofile(watch)
    try:
        FroCMC(1, ceiling=20.0, random_state=0).fit_transform(table)
    finally:
        sys.setprofile(None)
    return found[::-1]


def test_a_fit_comes_to_the_kernel_in_few_hops():
    hops = hops_to_the_kernel()
    assert hops[0].endswith("fit_transform")
    assert hops[-1] == "update_rows"
    assert len(hops) <= MOST_HOPS, hops


def test_the_page_names_the_hops_of_the_estimator_in_order():
    text = PAGE.read_text(encoding="utf-8")
    walk = text[text.index("## One fit") : text.index("## One restoration")]
    hops = hops_to_the_kernel()
    estimator = hops[: hops.index("FroCMC._solve") + 1]
    at = [walk.find(f"`{hop}`") for hop in estimator]
    assert -1 not in at, estimator
    assert at == sorted(at)


def steps_of_a_restoration():
    """Return the functions of `declip.restoration`, in the order of their first calls."""
    found = {}

    def watch(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(Path(HOME, "restoration"))):
            found.setdefault(frame.f_code.co_qualname)

    rng = np.random.default_rng(0)
    table = rng.normal(size=(80, 1)) + 0.3 * rng.normal(size=(80, 4))
    table[0, 0] = np.nan
    sys.setprofile(watch)
    try:
        declip.restore(np.minimum(table, 1.0), ceiling=1, effort="quick")
    finally:
        sys.setprofile(None)
    return list(found)


def test_the_page_names_the_steps_of_a_restoration_in_order():
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \|", text[text.index("## One restoration") :], re.M)
    named = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    assert named[-1] == "Restoration"  # what comes of it
    steps = steps_of_a_restoration()
    at = [steps.index(name) for name in named[:-1]]
    assert len(at) > 10
    assert at == sorted(at)
