"""Restorer: restore as a scikit-learn estimator, in the units of the table."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import declip
from declip import Intervals, Restorer, restore

_data = load_diabetes(scaled=False)
COLUMNS = ["age", "bmi", "bp", "s1", "s2", "s3"]
FRAME = pd.DataFrame(_data.data, columns=_data.feature_names)[COLUMNS].iloc[:180]
TRUTH, TARGET = FRAME.to_numpy(), _data.target[:180]
CUT = dict(FRAME.quantile(0.8))
_hidden = np.random.default_rng(0).random(FRAME.shape) < 0.15
SEEN = FRAME.clip(upper=pd.Series(CUT), axis=1).mask(_hidden)
QUICK = {"effort": "quick", "fill": "all"}


def restorer(**params):
    return Restorer(**{"ceiling": CUT, "method": "normal", **QUICK, **params})


@pytest.mark.slow
@parametrize_with_checks([Restorer(effort="quick", method="normal")])
def test_the_conventions_of_scikit_learn_hold(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_fitting_is_restoring():
    found = restorer().fit(SEEN).restoration_
    alone = restore(SEEN, CUT, method="normal", **QUICK)
    assert_array_equal(found.table, alone.table)
    assert_array_equal(found.flags, alone.flags)


@pytest.mark.parametrize("method", ["bayes", "normal", "tobit"])
def test_new_rows_are_restored_as_well_as_with_the_table(method):
    # Their columns were fitted to two thirds of the rows; that alone costs a few per cent, and the
    # errors of some 200 cells differ by chance as well.
    n = 120
    new = restorer(method=method).fit(SEEN[:n]).transform(SEEN[n:])
    joint = restorer(method=method).fit_transform(SEEN)[n:]
    spread, truth = TRUTH.std(axis=0), TRUTH[n:]
    unknown = (_hidden | (SEEN.to_numpy() == list(CUT.values())))[n:]
    errors = [np.mean((((x - truth) / spread)[unknown]) ** 2) ** 0.5 for x in (new, joint)]
    assert errors[0] < 1.1 * errors[1]
    assert np.isfinite(new).all()


def test_new_rows_have_limits_of_their_own():
    model = restorer().fit(SEEN[:120])
    rows = SEEN[120:].to_numpy().copy()
    rows[:, 1] = np.minimum(rows[:, 1], 20.0)
    limits = np.tile([*CUT.values()], (len(rows), 1))
    limits[:, 1] = 20.0
    cells = Intervals.from_table(pd.DataFrame(rows, columns=COLUMNS), ceiling=limits)
    assert (model.transform(cells)[rows[:, 1] == 20.0, 1] >= 20.0).all()


def test_bands_and_samples_of_new_rows_hold_what_is_known():
    model = restorer().fit(SEEN[:120])
    low, high = model.predict_interval(SEEN[120:])
    table = model.transform(SEEN[120:])
    assert (low <= table).all()
    assert (table <= high).all()
    inside = (low <= TRUTH[120:]) & (TRUTH[120:] <= high)
    assert inside[_hidden[120:]].mean() > 0.75
    for drawn in model.sample(2, SEEN[120:], random_state=0):
        known = ~_hidden[120:] & (SEEN[120:] < list(CUT.values())).to_numpy()
        assert_allclose(np.asarray(drawn)[known], TRUTH[120:][known])


def test_a_file_restores_new_rows_to_the_last_bit(tmp_path):
    model = restorer().fit(SEEN[:120])
    twin = declip.load(model.save(tmp_path / "restorer.npz"))
    assert_array_equal(twin.transform(SEEN[120:]), model.transform(SEEN[120:]))
    assert list(twin.get_feature_names_out()) == COLUMNS


def test_limits_by_name_survive_selection_and_order():
    pipeline = make_pipeline(
        ColumnTransformer(
            [("body", "passthrough", ["bp", "bmi"]), ("blood", "passthrough", ["s2", "s1"])],
            verbose_feature_names_out=False,
        ).set_output(transform="pandas"),
        restorer(method="column"),
        StandardScaler(),
        Ridge(),
    )
    shuffled = SEEN[COLUMNS[::-1]]
    scores = cross_val_score(pipeline, shuffled, TARGET, cv=3)
    assert np.isfinite(scores).all()
    search = GridSearchCV(pipeline, {"restorer__method": ["column", "normal"]}, cv=2)
    search.fit(shuffled, TARGET)
    restored = search.best_estimator_[:2].transform(SEEN[COLUMNS])
    clipped = SEEN["bp"] == CUT["bp"]
    assert list(search.best_estimator_[1].feature_names_in_) == ["bp", "bmi", "s2", "s1"]
    assert (np.asarray(restored)[clipped, 0] >= CUT["bp"]).all()


def test_a_mistaken_name_of_a_column_is_refused():
    with pytest.raises(ValueError, match="Did you mean 'bmi'"):
        clone(restorer()).set_params(ceiling={"bmii": 30.0}).fit(SEEN)


def test_cells_are_predicted_by_their_labels():
    model = restorer().fit(SEEN.rename(lambda row: f"patient {row}"))
    assert model.predict(["patient 3"], ["bmi"]) == model.predict([3], [1])


def test_a_label_that_the_table_lacks_is_named():
    model = restorer().fit(SEEN.rename(lambda row: f"patient {row}"))
    with pytest.raises(KeyError, match="has no row 'patient 999'"):
        model.predict(["patient 999"], ["bmi"])


def test_limits_in_other_units_than_the_table_are_warned_of():
    scaled = StandardScaler().set_output(transform="pandas")
    with pytest.warns(UserWarning, match="nothing is at the ceiling"):
        make_pipeline(scaled, restorer()).fit(FRAME)


def test_limits_of_which_no_column_is_left_are_no_limits():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = restorer(ceiling={"bmi": 30.0}).fit(SEEN[["age", "s1", "s2"]])
    assert model.limits_ == (None, None)


def test_columns_of_one_name_are_refused_by_it():
    with pytest.raises(ValueError, match="Two columns are named 'bmi': rename one of them"):
        restorer(ceiling=None).fit(pd.concat([SEEN, SEEN[["bmi"]]], axis=1))
