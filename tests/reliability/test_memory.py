"""What cannot fit in memory is refused before it is asked for; what need not be dense never is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")

ROOT = Path(__file__).parents[2]
ALONE = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def run(script, *args):
    """Run a script in a process of its own and return its lines of JSON."""
    path = Path(__file__).with_name(script)
    found = subprocess.run(
        [sys.executable, path, *args], env=ALONE, capture_output=True, text=True, timeout=600
    )
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


@pytest.mark.slow
def test_each_call_that_needs_100_gb_is_refused_with_the_figure_under_a_limit_of_2_gb():
    outcomes = run("calls_of_100_gb.py", "refused")
    assert len(outcomes) >= 50
    for name, error, words, _ in outcomes:
        assert error in ("MemoryError", "TableFileError", "_ArrayMemoryError"), (name, words)
        if name.startswith("read_table, "):  # a file that holds less than it claims is damaged
            assert re.search("is not as large as its header says|too short for", words), words
            continue
        figure = re.search(r"(needs|allocate) ([\d.]+) GiB", words)
        assert figure, (name, words)
        assert float(figure[2]) >= 100, (name, words)


@pytest.mark.slow
def test_a_sparse_table_of_any_shape_passes_the_calls_that_need_no_dense_one():
    for name, error, words, _ in run("calls_of_100_gb.py", "done"):
        assert not error, (name, error, words)


@pytest.mark.parametrize("size", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_peak_of_a_sparse_fit_is_bounded_by_its_cells_and_factors(size, dtype):
    [[_, grown, bound]] = run("sparse_peak.py", str(size), dtype)
    assert grown <= bound, f"{grown / 2**20:.0f} MiB > {bound / 2**20:.0f} MiB"
