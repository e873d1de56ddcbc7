"""The lines of R on pages, run by R where it is installed."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from declip import pool
from declip.cli import main

START = Path(__file__).parents[2] / "docs" / "start"


def has_mice():
    r = shutil.which("Rscript")
    call = [r, "-e", "library(mice)"]
    return r is not None and subprocess.run(call, capture_output=True, check=False).returncode == 0


def slope(table):
    """Return the coefficients of log zinc on log lead, and their errors, by least squares."""
    x, y = np.log(table["lead"].to_numpy()), np.log(table["zinc"].to_numpy())
    X = np.column_stack([np.ones_like(x), x])
    inverse = np.linalg.inv(X.T @ X)
    estimate = inverse @ X.T @ y
    noise = ((y - X @ estimate) ** 2).sum() / (len(y) - 2)
    return estimate, np.sqrt(noise * np.diag(inverse))


@pytest.mark.slow
def test_imputations_are_read_and_pooled_by_mice(tmp_path, monkeypatch):
    if not has_mice():
        pytest.skip("R with mice is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(size=(40, 1)) + 0.4 * rng.normal(size=(40, 2)))
    cells = (",".join("<0.5" if x < 0.5 else f"{x:.3g}" for x in row) for row in values)
    text = "well,zinc,lead\n" + "".join(f"w{i},{c}\n" for i, c in enumerate(cells))
    Path("wells.csv").write_text(text)
    command = "restore wells.csv --log --imputations 20 -o restored.csv"
    page = (START / "coming-from.md").read_text()
    assert f"declip {command}" in page
    assert main([*command.split(), "--method", "column", "--quiet"]) == 0
    lines = re.search(r"```r\n(.*?)```", page, re.S)[1].replace("summary(", "print(summary(", 1)
    Path("page.R").write_text(f"{lines.rstrip()}, digits = 10)\n")
    done = subprocess.run(["Rscript", "page.R"], capture_output=True, text=True, check=True)
    drawn = pl.read_csv("restored-imputations.csv").filter(pl.col(".imp") > 0)
    pooled = pool([slope(table) for table in drawn.partition_by(".imp")], complete_df=38)
    found = next(line.split() for line in done.stdout.splitlines() if "log(lead)" in line)
    figures = [float(x) for x in found[2:6]]
    expected = pooled.estimate[1], pooled.std_error[1]
    assert figures[:2] == pytest.approx(expected, rel=1e-6)
    assert figures[3] == pytest.approx(pooled.df[1], rel=1e-6)
