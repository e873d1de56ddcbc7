"""The same seed gives the same bits; reliability.determinism has the long run."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from tests.persistence.models import CEILING, FRAME, UNFITTED, answers, fitted, same

import declip
from declip.persistence import fingerprint

ROOT = Path(__file__).parents[1]
each_model = pytest.mark.parametrize("name", UNFITTED)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@each_model
def test_a_second_fit_is_the_same_to_the_last_bit(name):
    assert same(clone(UNFITTED[name]).fit(FRAME), fitted(name))


@each_model
@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_change_nothing(name, n_jobs):
    many = clone(UNFITTED[name]).set_params(n_jobs=n_jobs).fit(FRAME)
    np.testing.assert_equal(answers(many), answers(fitted(name)))
    assert same(many.set_params(n_jobs=None), fitted(name))


@each_model
def test_threads_that_share_a_model_get_what_one_alone_gets(name):
    model, tables = fitted(name), [FRAME.iloc[i : i + 5] for i in range(8)]
    expected = [model.transform(table) for table in tables]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(model.transform, tables * 5))
    assert all(np.array_equal(found[i], expected[i % 8]) for i in range(40))


MARKS = """
import json, warnings
warnings.simplefilter("ignore")
from declip.persistence import fingerprint
from tests.persistence.models import UNFITTED, answers, fitted
print(json.dumps({n: fingerprint([fitted(n), answers(fitted(n))]) for n in UNFITTED}))
"""


def test_another_process_gives_the_same_bits():
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", MARKS], cwd=ROOT, env=env, capture_output=True, check=True
    )
    here = {name: fingerprint([fitted(name), answers(fitted(name))]) for name in UNFITTED}
    assert json.loads(done.stdout) == here


@pytest.mark.parametrize("method", ["tobit", "column"])
def test_a_restoration_by_a_named_method_is_the_same_again(method):
    how = {"ceiling": CEILING, "method": method, "n_components": 2, "alpha": 0.3}
    one, two = (declip.restore(FRAME, **how) for _ in range(2))
    assert fingerprint([one.table, one.flags, one.lower, one.upper, one.estimator]) == fingerprint(
        [two.table, two.flags, two.lower, two.upper, two.estimator]
    )
