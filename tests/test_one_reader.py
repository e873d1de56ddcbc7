"""One rule for limits: they are given with a table, and never beside data that have their own."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import declip
from declip import BayesCMC, DTrCMC, ExactCMC, FroCMC, Intervals, TrCMC, prepare_blocks
from declip.intervals import as_intervals

TABLE = np.minimum(np.outer(np.arange(1.0, 9), np.arange(1.0, 6)), 20.0)
CELLS = Intervals.from_table(TABLE, ceiling=20.0)
CALLS = {
    "as_intervals": lambda **limits: as_intervals(CELLS, **limits),
    "FroCMC": lambda **limits: FroCMC(1, **limits).fit(CELLS),
    "TrCMC": lambda **limits: TrCMC(**limits).fit_transform(CELLS),
    "DTrCMC": lambda **limits: DTrCMC(**limits).fit(CELLS),
    "ExactCMC": lambda **limits: ExactCMC(**limits).fit(CELLS),
    "BayesCMC": lambda **limits: BayesCMC(1, **limits).fit(CELLS),
    "search": lambda **limits: declip.EntrySearchCV(FroCMC(1, **limits), {"alpha": [1.0]}).fit(
        CELLS
    ),
    "restore": lambda **limits: declip.restore(CELLS, **limits),
    "reclip_test": lambda **limits: declip.reclip_test(CELLS, **limits),
    "diagnose": lambda **limits: declip.diagnose(CELLS, **limits),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("side", ["ceiling", "floor"])
def test_limits_beside_an_intervals_are_an_error_that_names_them(call, side):
    with pytest.raises(TypeError, match=f"carries its own limits: leave out {side}"):
        call(**{side: 20.0 if side == "ceiling" else 0.0})


def test_limits_beside_an_intervals_cannot_be_prepared(tmp_path):
    with pytest.raises(TypeError, match="leave out ceiling"):
        prepare_blocks(CELLS, tmp_path / "blocks", ceiling=20.0)


def test_limits_beside_prepared_blocks_are_an_error(tmp_path):
    prepare_blocks(TABLE, tmp_path / "blocks", ceiling=20.0)
    with pytest.raises(TypeError, match="A folder of blocks carries its own limits"):
        FroCMC(1, ceiling=20.0).fit(tmp_path / "blocks")


def test_a_tolerance_beside_an_intervals_is_an_error():
    with pytest.raises(TypeError, match="leave out tol"):
        as_intervals(CELLS, tol=0.1)


def test_an_intervals_is_read_as_it_is():
    assert as_intervals(CELLS) is CELLS


FRAME = pd.DataFrame(TABLE, columns=list("abcde"), index=[f"r{i}" for i in range(8)])
LIMITS = FRAME * 0 + 20.0 + np.arange(8)[:, None] + 0.1 * np.arange(5)


def bounds(limits):
    return Intervals.from_table(FRAME - 20.0 + LIMITS, limits).triplets()


@pytest.mark.parametrize(
    "shuffled",
    [LIMITS[list("ecabd")], LIMITS.iloc[::-1], pl.DataFrame(LIMITS[list("ecabd")].to_dict("list"))],
    ids=["columns", "rows", "polars"],
)
def test_limits_in_another_order_are_put_in_that_of_the_table(shuffled):
    for found, expected in zip(bounds(shuffled), bounds(LIMITS), strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (LIMITS.rename(columns={"c": "z"}), "the table has no column 'z'"),
        (LIMITS.rename(index={"r3": "r9"}), "the table has no row 'r9'"),
    ],
    ids=["column", "row"],
)
def test_limits_with_other_labels_are_refused_by_name(limits, named):
    with pytest.raises(ValueError, match=named):
        bounds(limits)


def test_new_rows_bring_their_own_limits_as_an_intervals():
    model = FroCMC(1, ceiling=20.0, alpha=1e-3, random_state=0).fit(TABLE)
    rows = Intervals.from_table(np.minimum(TABLE[:3], 4.0), ceiling=4.0)
    assert model.transform(rows).shape == (3, 5)
    assert (model.transform(rows)[rows.by_row.censored_rows(), rows.by_row.censored_idx] >= 4).all()
