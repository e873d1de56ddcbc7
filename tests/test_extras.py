"""The core works without the packages of the extras, and a line names the extra that is missing."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
OPTIONAL = (
    *("polars", "python_calamine", "xlsxwriter", "jinja2", "matplotlib", "rich"),
    *("starlette", "uvicorn", "dask", "distributed", "pooch", "pandas", "pyarrow"),
)
BLOCKED = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL}))\n"


def run(code):
    """Run code in a Python in which the packages of all extras cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, env=os.environ
    )


def test_every_public_name_but_those_of_files_comes_without_extras():
    code = """
import declip
files = {"TableFile", "read_limits", "read_table", "write_table"}
for name in set(declip.__all__) - files:
    getattr(declip, name)
"""
    assert run(code).stderr == ""


def test_a_table_is_restored_shown_and_saved_without_extras(tmp_path):
    code = f"""
import declip, numpy as np
table = np.minimum(np.random.default_rng(0).normal(size=(40, 1)) + np.arange(4) / 5, 1)
r = declip.restore(table, ceiling=1, method="tobit", n_components=1)
r.save({str(tmp_path / "r.npz")!r})
assert r._repr_html_() is None
print(r)
"""
    done = run(code)
    assert done.stderr == ""
    assert "restored beyond their limit" in done.stdout


RESTORED = """
import declip, numpy as np
table = np.minimum(np.random.default_rng(0).normal(size=(40, 1)) + np.arange(4) / 5, 1)
r = declip.restore(table, ceiling=1, method="tobit", n_components=1)
"""


@pytest.mark.parametrize(
    ("code", "package", "extra"),
    [
        ("import declip; declip.read_table('a.csv')", "polars", "files"),
        ("import declip.report", "polars", "report"),
        ("import declip.app", "starlette", "app"),
        (RESTORED + "r.summary()", "pandas or polars", "files"),
        (RESTORED + "declip.pooled_fit(r, len)", "pandas or polars", "files"),
        ("import declip.dask; declip.dask.FroCMC", "dask", "dask"),
        (
            "import sys; from declip.cli import main; main(['check', 'a.csv'])",
            "polars",
            "files",
        ),
    ],
)
def test_a_missing_extra_is_named(code, package, extra):
    last = run(code).stderr.splitlines()[-1]
    assert last.endswith(f"this needs {package}: pip install 'declip[{extra}]'")
    assert extra in PYPROJECT["project"]["optional-dependencies"]


def test_nothing_but_the_standard_library_is_loaded_by_the_import():
    code = "import sys; before = set(sys.modules); import declip; print(*set(sys.modules) - before)"
    loaded = {name.partition(".")[0] for name in run(code).stdout.split()}
    assert loaded - {"declip"} <= sys.stdlib_module_names
