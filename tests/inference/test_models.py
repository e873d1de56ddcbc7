"""A model over imputations: statsmodels, scikit-learn, functions, and Rubin's rules by hand."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import declip
from declip import pooled_fit


@pytest.fixture(scope="module")
def restored():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    y = 2 + 0.5 * x[:, 0] + rng.normal(size=150)
    frame = pd.DataFrame({"a": np.minimum(x[:, 0], 0.5), "b": np.minimum(x[:, 1], 0.5), "y": y})
    return declip.restore(frame, {"a": 0.5, "b": 0.5}, method="normal", effort="quick")


def test_a_formula_is_pooled_as_by_hand(restored):
    fits = [smf.ols("y ~ a + b", t).fit() for t in restored.sample(8)]
    by_hand = declip.pool([(f.params, f.bse) for f in fits], complete_df=fits[0].df_resid)
    found = pooled_fit(restored, "y ~ a + b", n=8)
    assert found.names == ["Intercept", "a", "b"]
    assert_allclose(found.pooled.estimate, by_hand.estimate)
    assert_allclose(found.table["std_error"], by_hand.std_error)
    assert_allclose(found.table["lower"], by_hand.interval()[0])
    assert (found.table["df"] < fits[0].df_resid).all()
    assert found.table["p"][1] < 0.01 < found.table["p"][2]


def test_results_of_statsmodels_and_a_function_agree(restored):
    def least_squares(table):
        X = np.column_stack([np.ones(len(table)), table["a"]])
        b, squares, _, _ = np.linalg.lstsq(X, table["y"].to_numpy(), rcond=None)
        return {"one": b[0], "a": b[1]}, np.linalg.inv(X.T @ X) * squares[0] / (len(X) - 2)

    by_function = pooled_fit(restored, least_squares, n=6)
    by_statsmodels = pooled_fit(restored, lambda t: smf.ols("y ~ a", t).fit(), n=6)
    assert by_function.names == ["one", "a"]
    for name in ("estimate", "std_error", "df", "missing_information"):
        ours, theirs = (getattr(f.pooled, name) for f in (by_function, by_statsmodels))
        assert_allclose(ours, theirs)


def test_an_estimator_of_scikit_learn_gets_its_errors_by_resampling(restored):
    found = pooled_fit(restored, LinearRegression(), n=10, target="y")
    peer = pooled_fit(restored, "y ~ a + b", n=10)
    assert found.names == ["intercept", "a", "b"]
    assert_allclose(found.pooled.estimate, peer.pooled.estimate)
    # the variance within from 10 x 10 resamples: known to about 10 %, its root to 5 %
    assert_allclose(found.pooled.std_error, peer.pooled.std_error, rtol=0.25)


def test_a_function_may_return_a_classifier_with_coefficients(restored):
    def above(table):
        return LogisticRegression().fit(table[["a", "b"]], table["y"] > 2)

    assert pooled_fit(restored, above, n=3).names == ["intercept", "a", "b"]


@pytest.mark.parametrize(
    ("fit", "error", "message"),
    [
        (LinearRegression(), ValueError, "needs target="),
        (3, TypeError, "fit must be a function of a table, a formula or an estimator; got 3"),
        (lambda t: 5.0, TypeError, r"must return results of statsmodels.*got a float"),
        (lambda t: ([1.0, 2.0], np.eye(3)), ValueError, r"2 estimates and a covariance of shape"),
    ],
)
def test_what_is_no_model_is_refused(restored, fit, error, message):
    with pytest.raises(error, match=message):
        pooled_fit(restored, fit, n=2)


def test_other_coefficients_for_other_tables_are_refused(restored):
    names = iter("ab")
    with pytest.raises(ValueError, match="for every imputation; got a and then b"):
        pooled_fit(restored, lambda t: ({next(names): 1.0}, [1.0]), n=2)


def test_a_formula_needs_names():
    r = declip.restore(np.random.default_rng(0).normal(size=(20, 2)), method="column")
    with pytest.raises(TypeError, match="A formula names columns: restore a frame"):
        pooled_fit(r, "y ~ x", n=2)


def test_one_imputation_is_refused(restored):
    with pytest.raises(ValueError, match="at least 2 imputations; got 1"):
        pooled_fit(restored, "y ~ a", n=1)


def test_the_columns_of_a_file_have_their_names_in_a_formula(restored, tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame(restored.intervals.to_bounds()[0], columns=["a", "b", "y"]).to_csv(path)
    cells = declip.read_table(path, ceiling={"a": 0.5, "b": 0.5}).intervals
    r = declip.restore(cells, method="normal", effort="quick")
    assert pooled_fit(r, "y ~ a", n=2).names == ["Intercept", "a"]


def test_a_target_that_is_not_there_is_told_with_those_that_are(restored):
    with pytest.raises(ValueError, match=r"'z', which the table does not have \(it has 'a', 'b'"):
        pooled_fit(restored, LinearRegression(), target="z", n=2)
