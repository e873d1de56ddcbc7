"""restore with features, groups, weights and errors: used where they help, and said so."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import declip


@pytest.fixture(scope="module")
def plates():
    """150 rows on 6 plates that shift every column, clipped at limits of the plates."""
    rng = np.random.default_rng(0)
    n, m = 150, 6
    plate = rng.integers(0, 6, n)
    truth = rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))
    truth += 0.4 * rng.standard_normal((n, m)) + 1.5 * rng.standard_normal((6, m))[plate]
    limit = np.quantile(truth, 0.8, axis=0) + 0.2 * rng.standard_normal((6, m))[plate]
    return plate, truth, limit


def rmse(r, truth, at):
    return float(np.sqrt(np.mean((np.asarray(r.table) - truth)[at] ** 2)))


@pytest.fixture(scope="module")
def plain(plates):
    """The error without what is known."""
    _, truth, limit = plates
    r = declip.restore(np.minimum(truth, limit), limit, effort="quick")
    return rmse(r, truth, truth > limit)


def test_groups_that_help_count_and_the_result_says_so(plates, plain, tmp_path):
    plate, truth, limit = plates
    seen, at = np.minimum(truth, limit), truth > limit
    names = [f"plate {p}" for p in plate]
    r = declip.restore(seen, limit, groups=names, effort="quick")
    assert rmse(r, truth, at) < 0.9 * plain
    assert r.chosen["weights"]["bayes+known"] > 0.3
    assert "With groups, a cell that was held out is" in " ".join(r.warnings)
    assert "With groups" in str(r)
    twin = declip.load(r.save(tmp_path / "r.npz"))
    new = {"ceiling": limit[:4], "groups": names[:4]}
    assert_allclose(twin.transform(seen[:4], **new), r.transform(seen[:4], **new))


def test_features_of_chance_neither_help_nor_harm_and_the_result_says_so(plates, plain):
    _, truth, limit = plates
    seen = np.minimum(truth, limit)
    noise = pd.DataFrame({"lot": np.random.default_rng(1).choice(list("abcdefgh"), len(truth))})
    r = declip.restore(seen, limit, row_features=noise, effort="quick")
    line = next(line for line in r.warnings if line.startswith("With row_features"))
    times = float(line.split("held out is ")[1].split(" times")[0])
    assert 0.9 < times < 1.05
    assert rmse(r, truth, truth > limit) < 1.03 * plain


def test_weights_and_errors_are_taken(plates):
    _, truth, limit = plates
    seen = np.minimum(truth, limit)
    weighed = declip.restore(seen, limit, weights=2.0, effort="quick", method="bayes+known")
    errors = declip.restore(seen, limit, errors=0.4, effort="quick", method="bayes+known")
    assert np.isfinite(weighed.table).all()
    # errors that are the same everywhere say nothing of one cell beside another
    assert_allclose(errors.table, weighed.table, atol=0.6)


def test_what_does_not_go_with_it_is_named(plates):
    _, truth, _ = plates
    with pytest.raises(ValueError, match='use scale="columns"'):
        declip.restore(truth, groups=np.zeros(len(truth)), scale="rows")
    with pytest.raises(ValueError, match='use missing="random"'):
        declip.restore(truth, groups=np.zeros(len(truth)), missing="low")
    r = declip.restore(truth, method="column")
    with pytest.raises(ValueError, match="made without groups"):
        r.transform(truth[:2], groups=["a", "b"])


@pytest.fixture(scope="module")
def sites():
    """Rows whose level is that of their site, in a frame with a column that is not restored."""
    rng = np.random.default_rng(2)
    site = rng.choice(list("abc"), 120)
    level = pd.Series({"a": -2.0, "b": 0.0, "c": 2.0})[site].to_numpy()
    truth = level[:, None] * [1.0, 0.6, 1.4, 0.8] + 0.3 * rng.standard_normal((120, 4))
    return pd.DataFrame({"site": site}), truth


def test_a_pipeline_hands_features_to_a_restorer_and_new_rows_are_restored_by_them(sites):
    features, truth = sites
    seen = np.minimum(truth, 2.0)
    with config_context(enable_metadata_routing=True):
        model = declip.Restorer(ceiling=2.0, effort="quick")
        model.set_fit_request(row_features=True).set_transform_request(row_features=True)
        pipe = make_pipeline(FunctionTransformer(), model)
        pipe.fit(seen[:90], row_features=features[:90])
        empty = np.full((30, 4), np.nan)
        cold = pipe.transform(empty, row_features=features[90:])
    # the noise is .3, and the columns spread by some 1.5 about their means
    assert np.sqrt(np.mean((cold - truth[90:]) ** 2)) < 0.6
    assert_allclose(pipe[-1].predict(empty, row_features=features[90:]), cold, atol=0.3)
    drawn = np.array(pipe[-1].sample(4, empty, row_features=features[90:]))
    assert np.sqrt(np.mean((drawn.mean(0) - truth[90:]) ** 2)) < 0.6
    low, high = pipe[-1].predict_interval(empty, row_features=features[90:])
    inside = np.mean((low <= truth[90:]) & (truth[90:] <= high))
    assert 0.8 < inside <= 1.0
    with pytest.raises(ValueError, match="give those of the new rows"):
        pipe[-1].transform(empty)
    with pytest.raises(TypeError, match="fit_transform takes no colour"):
        model.fit_transform(seen, colour="red")


def test_a_saved_restorer_restores_new_rows_of_known_groups(plates, tmp_path):
    plate, truth, limit = plates
    ceiling = limit.max()
    seen = np.minimum(truth, ceiling)
    model = declip.Restorer(ceiling=ceiling, effort="quick").fit(seen[:140], groups=plate[:140])
    twin = declip.load(model.save(tmp_path / "model.npz"))
    new = {"groups": plate[140:]}
    assert_allclose(twin.predict(seen[140:], **new), model.predict(seen[140:], **new))
    assert np.any(model.predict(seen[140:], **new) != model.predict(seen[140:]))
    tables = model.sample(2, seen[140:], **new)
    assert_allclose(tables[0][seen[140:] < ceiling], seen[140:][seen[140:] < ceiling])
