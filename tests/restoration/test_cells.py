"""Which limits stay: what the reclip test has to show before a cell is moved."""

import numpy as np
from numpy.testing import assert_array_equal

from declip import Intervals
from declip.reclip import LEFT, RESTORED, ReclipResult, Trial, reclip
from declip.restoration.determined import Determined, kept_columns

X = np.random.default_rng(0).normal(size=(400, 3))


def found(errors):
    """A reclip test in which the restored cells of each column are wrong by so much."""
    cells = reclip(Intervals.from_table(X), 0.2, floors=False, ceilings=True)
    estimates = {RESTORED: cells.value + np.array(errors)[cells.cols], LEFT: cells.limit}
    return ReclipResult([Trial(0.8, cells, estimates)], np.ones(3))


def test_all_limits_stay_without_a_test():
    assert kept_columns(None, 3).all()


def test_all_limits_stay_without_a_gain():
    assert kept_columns(found([9.0, 9.0, 0.0]), 3).all()


def test_no_limit_stays_where_all_columns_gain():
    assert not kept_columns(found([0.1, 0.1, 0.1]), 3).any()


def test_a_column_with_evidence_decides_for_itself():
    result = found([0.0, 0.0, 0.8])
    assert result.gain > 0
    assert_array_equal(kept_columns(result, 3), [False, False, True])


def test_a_column_with_little_evidence_goes_with_the_table():
    result = found([0.0, 0.0, 0.8])
    few = np.cumsum(result.trials[0].cells.cols == 2) <= 20
    keep = (result.trials[0].cells.cols != 2) | few
    trial = result.trials[0]
    fields = {name: getattr(trial.cells, name) for name in trial.cells.__dataclass_fields__}
    some = {k: v if k == "intervals" else v[keep] for k, v in fields.items()}
    estimates = {name: values[keep] for name, values in trial.estimates.items()}
    fewer = ReclipResult([Trial(0.8, type(trial.cells)(**some), estimates)], np.ones(3))
    assert not kept_columns(fewer, 3).any()


def test_rows_need_an_observed_cell_and_columns_two_values():
    table = np.array([[1.0, 2.0, 5.0], [5.0, 5.0, 5.0], [3.0, 2.0, np.nan], [np.nan] * 3])
    told = Determined.of(Intervals.from_table(table, ceiling=5.0))
    assert_array_equal(told.rows, [True, True, True, False])
    assert_array_equal(told.cols, [True, False, False])
