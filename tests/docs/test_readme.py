"""The first lines that the README gives to people of each kind, run on tables like theirs."""

import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import declip
from declip.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text()
TABLE = README.partition("## Your first line")[2].partition("\n\n| ")[2].partition("\n\n")[0]
LINES = [line for row in TABLE.splitlines()[2:] for line in re.findall(r"`([^`]+)`", row)[-1:]]

NAMES = {name: getattr(declip, name) for name in ("Intervals", "Recommender", "TrCMC")}


def tables():
    rng = np.random.default_rng(0)
    wide = np.clip(np.round(3.5 + rng.normal(size=(60, 2)) @ rng.normal(size=(2, 30))), 1, 5)
    rows, cols = np.nonzero(rng.random(wide.shape) < 0.7)
    names = np.array(["ann", *(f"u{i}" for i in range(1, 60))])
    level = rng.normal(size=(40, 1)) + 0.4 * rng.normal(size=(40, 5))
    demand, stock = np.round(20 * np.exp(0.4 * level)), 25.0
    stars = np.clip(np.round(3.5 + 1.5 * level), 1, 5)
    return {
        "answers": stars,
        "log": pd.DataFrame({"user": names[rows], "item": cols, "stars": wide[rows, cols]}),
        "sales": np.minimum(demand, stock),
        "stock": stock,
        "proteins": np.where(level < -0.5, np.nan, level),
        "X": np.minimum(3 + level, 5),
    }


@pytest.fixture
def assay(tmp_path, monkeypatch):
    """Go to a folder with a file of samples x analytes at three sites."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    values = 0.2 * np.exp(rng.normal(size=(45, 1)) + 0.3 * rng.normal(size=(45, 3)))
    lines = ["sample,site,lead,zinc,iron"]
    for i, row in enumerate(values):
        cells = ["<0.1" if x < 0.1 else f"{x:.3g}" for x in row]
        lines.append(f"s{i},{'abc'[i % 3]},{','.join(cells)}")
    Path("assay.csv").write_text("\n".join(lines) + "\n")


def test_every_group_has_its_line():
    assert len(LINES) == 7


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_a_first_line_runs(line, assay, capsys):
    if line.startswith("declip "):
        assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert eval(line, {"declip": declip, **NAMES, **tables()}) is not None
