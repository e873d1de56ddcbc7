"""Fits over blocks: the objective of a fit in memory, never rising, the same at any cut."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.plain import minimise, objective
from tests.twin import random_bounds

from declip import (
    BayesCMC,
    EntrySearchCV,
    FroCMC,
    Intervals,
    TrCMC,
    blocks,
    prepare_blocks,
    restore,
)
from declip.blocks import BlockProblem, DamagedBlockError, LocalRunner, ObjectiveTerms
from declip.blocks.checkpoint import BlockCheckpoint
from declip.blocks.problem import shard_spans
from declip.blocks.running import fold, tree
from declip.penalties import Ridge
from declip.solvers import Stopping, start_model, start_scale

MODES = ["hinge", "tobit", "value", "missing"]
BIAS = [pytest.param(False, id="factors"), pytest.param(True, id="offsets")]


def ratings(seed=0, shape=(80, 30), k=3, ceiling=2.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((shape[0], k)) @ rng.standard_normal((k, shape[1])) + 1
    X += 0.3 * rng.standard_normal(shape)
    X[rng.random(shape) < 0.4] = np.nan
    return Intervals.from_table(np.minimum(X, ceiling), ceiling=ceiling)


def fit_blocks(
    table,
    *,
    clipped="hinge",
    bias=False,
    alpha=2.0,
    alpha_bias=None,
    k=3,
    threads=1,
    runner=None,
    **stopping,
):
    terms = ObjectiveTerms(Ridge(alpha, alpha_bias), bias, clipped, threads)
    seed = np.random.default_rng(1).bit_generator.state
    problem = BlockProblem(table, runner or LocalRunner(), k, terms, seed)
    return blocks.fit_blocks(problem, Stopping(**{"max_iter": 3000, "tol": 1e-10} | stopping))


def checkpoint(folder, fit=None, every=5):
    return BlockCheckpoint(folder, fit or {}, LocalRunner(), every)


def fit_memory(cells, *, clipped="hinge", bias=False, alpha=2.0, alpha_bias=None, k=3, **how):
    treated = cells.treat(clipped)
    start = start_model(treated, k, bias, "random", np.random.default_rng(1))
    scale = start_scale(treated) if clipped == "tobit" else 0.0
    how = {"max_iter": 3000, "tol": 1e-10} | how
    return minimise(treated, start, alpha, alpha_bias=alpha_bias, scale=scale, **how)


@pytest.mark.parametrize("shape", [(80, 30), (30, 80)])
@pytest.mark.parametrize("clipped", MODES)
@pytest.mark.parametrize("bias", BIAS)
def test_a_fit_ends_at_the_objective_of_a_fit_in_memory(tmp_path, bias, clipped, shape):
    cells = ratings(shape=shape)
    how = {"clipped": clipped, "bias": bias, "alpha_bias": 1.0, "tol": 1e-9}
    fit = fit_blocks(prepare_blocks(cells, tmp_path, n_blocks=4), **how)
    expected = fit_memory(cells, **how)
    assert fit.converged
    assert_allclose(fit.history[0], expected.history[0], rtol=1e-12)  # the same start
    assert_allclose(fit.history[-1], expected.history[-1], rtol=1e-7)  # asked: 1e-6


@pytest.mark.parametrize("clipped", MODES)
@pytest.mark.parametrize("bias", BIAS)
def test_the_last_objective_is_that_of_the_model(tmp_path, bias, clipped):
    cells = ratings()
    table = prepare_blocks(cells, tmp_path, n_blocks=3)
    fit = fit_blocks(table, clipped=clipped, bias=bias, max_iter=7)
    found = objective(cells.treat(clipped), fit.model, 2.0, fit.scale)
    assert_allclose(fit.history[-1], found, rtol=1e-11)


@pytest.mark.parametrize("clipped", MODES)
@pytest.mark.parametrize("bias", BIAS)
def test_the_objective_never_rises(tmp_path, bias, clipped):
    for seed in range(4):
        rng = np.random.default_rng([seed, bias])
        shape = tuple(rng.integers(3, 25, 2))
        bounds = random_bounds(
            rng, shape, missing=rng.uniform(0, 0.8), spread=rng.choice([0.1, 2, 50])
        )
        table = prepare_blocks(Intervals.from_bounds(*bounds), tmp_path / f"{seed}", n_blocks=3)
        if clipped == "missing" and table.n_exact == 0:
            continue
        k = rng.integers(1, 1 + min(8, *shape))
        alpha = 10 ** rng.uniform(-3, 2)
        fit = fit_blocks(table, clipped=clipped, bias=bias, alpha=alpha, k=int(k), max_iter=12)
        # As in memory: 1e-10 leaves room for rounding alone.
        assert (np.diff(fit.history) <= 1e-10 * np.abs(fit.history[:-1])).all(), fit.history


@pytest.mark.parametrize("clipped", ["hinge", "tobit"])
def test_high_rank_in_single_precision_ends_where_a_fit_in_memory_does(tmp_path, clipped):
    cells = ratings(shape=(150, 60), k=5).astype(np.float32)
    how = {"clipped": clipped, "k": 40, "alpha": 3.0, "tol": 1e-8, "max_iter": 400}
    fit = fit_blocks(prepare_blocks(cells, tmp_path, n_blocks=3), **how)
    assert_allclose(fit.history[-1], fit_memory(cells, **how).history[-1], rtol=1e-6)


def test_shards_change_no_bit(tmp_path, monkeypatch):
    table = prepare_blocks(ratings(), tmp_path, n_blocks=3)
    whole = fit_blocks(table, max_iter=6)
    monkeypatch.setattr("declip.blocks.problem._SHARD_BYTES", 1000)
    cut = fit_blocks(table, max_iter=6)
    assert len(cut.factors.point.columns) > 3
    assert_array_equal(cut.history[0], whole.history[0])
    # Roots for balancing are put together from shards, and so are rounded otherwise.
    assert_allclose(cut.history, whole.history, rtol=1e-12)


def test_threads_change_no_bit(tmp_path):
    table = prepare_blocks(ratings(), tmp_path, n_blocks=2)
    one, three = (fit_blocks(table, threads=threads, max_iter=5) for threads in (1, 3))
    assert_array_equal(one.history, three.history)
    assert_array_equal(one.model.A, three.model.A)


def test_empty_rows_and_columns_are_zero(tmp_path):
    X = np.array([[1.0, 2, np.nan], [np.nan] * 3, [3, 4, np.nan], [2, 1, np.nan]])
    table = prepare_blocks(X, tmp_path, n_blocks=2)
    model = fit_blocks(table, k=1, alpha=0.1).model
    assert_array_equal(model.A[1], [0.0])
    assert_array_equal(model.B[2], [0.0])


def test_no_penalty_is_allowed(tmp_path):
    table = prepare_blocks(ratings(), tmp_path, n_blocks=2)
    history = fit_blocks(table, alpha=0.0, max_iter=20).history
    assert np.isfinite(history).all()
    assert (np.diff(history) <= 1e-10 * history[:-1]).all()


# Trees.


class Apart(LocalRunner):
    """Runs here, as if blocks were kept in places of so many."""

    def __init__(self, size):
        self.size = size

    def together(self, first, last):
        return first // self.size == (last - 1) // self.size


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_a_tree_combines_neighbours_in_one_way_wherever_they_are(n, size):
    def combine(a, b):
        return f"({a}{b})"

    def branch(first, last):
        return fold(combine, lambda i: chr(97 + i), last, first)

    text = tree(Apart(size), combine, branch, n)
    assert text == branch(0, n)
    assert "".join(c for c in text if c.isalpha()) == "abcdefghijklm"[:n]
    if n == 5:
        assert text == "(((ab)(cd))e)"


def test_a_fold_holds_few_leaves():
    held, most = set(), []

    def leaf(i):
        held.add(i)
        most.append(len(held))
        return (i,)

    def combine(a, b):
        held.difference_update(b)
        return a

    fold(combine, leaf, 64)
    assert max(most) <= 7  # log2(64) + 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_places_of_blocks_change_no_bit(tmp_path, size):
    table = prepare_blocks(ratings(), tmp_path, n_blocks=5)
    fits = [
        fit_blocks(table, bias=True, runner=runner, max_iter=4)
        for runner in (LocalRunner(), Apart(size))
    ]
    assert_array_equal(fits[0].history, fits[1].history)
    assert_array_equal(fits[0].factors.columns(), fits[1].factors.columns())


def test_shards_cover_the_columns():
    spans = shard_spans(26_744, 41, np.dtype(np.float32))
    assert spans[0][0] == 0
    assert spans[-1][1] == 26_744
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert len(shard_spans(3, 1000, np.dtype(np.float64))) <= 3


# Checkpoints.


class Killed(BaseException):
    pass


def kill_after(sweeps):
    def on_sweep(progress):
        if progress.n_iter == sweeps:
            raise Killed

    return on_sweep


@pytest.mark.parametrize("sweep", [1, 4, 5, 11])
@pytest.mark.parametrize("clipped", ["hinge", "tobit"])
def test_a_fit_that_was_killed_resumes_to_the_same_bits(tmp_path, clipped, sweep):
    table = prepare_blocks(ratings(), tmp_path / "blocks", n_blocks=3)
    how = {"clipped": clipped, "bias": True, "max_iter": 15}
    whole = fit_blocks(table, **how, resume_point=checkpoint(tmp_path / "a", {}, 4))
    with pytest.raises(Killed):
        fit_blocks(
            table, **how, on_sweep=kill_after(sweep), resume_point=checkpoint(tmp_path / "b", {}, 4)
        )
    seen = []
    resumed = fit_blocks(
        table,
        **how,
        on_sweep=lambda p: seen.append(p.n_iter),
        resume_point=checkpoint(tmp_path / "b", {}, 4),
    )
    assert seen[0] == sweep // 4 * 4 + 1
    assert_array_equal(resumed.history, whole.history)
    assert_array_equal(resumed.model.A, whole.model.A)
    assert_array_equal(resumed.model.B, whole.model.B)


def test_checkpoints_change_no_bit(tmp_path):
    table = prepare_blocks(ratings(), tmp_path / "blocks", n_blocks=3)
    without = fit_blocks(table, max_iter=9)
    kept = fit_blocks(table, max_iter=9, resume_point=checkpoint(tmp_path / "a", {}, 2))
    assert_array_equal(without.history, kept.history)
    assert [f.name for f in sorted((tmp_path / "a").iterdir())] == [
        "checkpoint.json",
        "sweep-000009",
    ]


def test_the_state_of_another_fit_is_refused(tmp_path):
    table = prepare_blocks(ratings(), tmp_path / "blocks", n_blocks=2)
    fit_blocks(table, max_iter=2, resume_point=checkpoint(tmp_path / "a", {"alpha": 1.0}))
    with pytest.raises(ValueError, match=r"another fit: alpha was 1\.0 and is 2\.0"):
        fit_blocks(table, max_iter=2, resume_point=checkpoint(tmp_path / "a", {"alpha": 2.0}))


def test_a_damaged_checkpoint_is_named(tmp_path):
    table = prepare_blocks(ratings(), tmp_path / "blocks", n_blocks=2)
    fit_blocks(table, max_iter=2, resume_point=checkpoint(tmp_path / "a", {}))
    path = next((tmp_path / "a").glob("*/rows-00001.npy"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedBlockError, match=r"rows-00001\.npy is damaged"):
        fit_blocks(table, max_iter=3, resume_point=checkpoint(tmp_path / "a", {}))


# The estimator.


@pytest.mark.parametrize("clipped", MODES)
def test_the_estimator_fits_a_folder_as_it_fits_the_table(tmp_path, clipped):
    cells = ratings()
    prepare_blocks(cells, tmp_path, n_blocks=3)
    how = {"n_components": 3, "alpha": 2, "clipped": clipped, "random_state": 0, "tol": 1e-10}
    how["scale"] = "none"  # as blocks are fitted
    whole, cut = FroCMC(**how).fit(cells), FroCMC(**how).fit(str(tmp_path))
    assert_allclose(cut.objective_, whole.objective_, rtol=1e-9)
    assert_allclose(cut.singular_values_, whole.singular_values_, rtol=1e-3)
    assert cut.row_factors_.shape == (80, 3)
    assert cut.n_features_in_ == 30
    assert np.isnan(cut.gap_)
    new = ratings(seed=5)
    assert_allclose(cut.transform(new), whole.transform(new), atol=1e-3)


@pytest.mark.parametrize("clipped", MODES)
def test_the_usual_penalty_of_a_folder_is_that_of_the_table(tmp_path, clipped):
    dense, rng = ratings(), np.random.default_rng(0)
    few = rng.random(len(dense)) < 0.3
    rows, cols, lower, upper = (part[few] for part in dense.triplets())
    bounds = np.full((2, *dense.shape), np.nan)
    bounds[:, rows, cols] = lower, upper
    cells = Intervals.from_bounds(*bounds)
    prepare_blocks(cells, tmp_path, n_blocks=3)
    model = FroCMC(2, clipped=clipped, random_state=0)
    whole, cut = (clone(model).fit(table).alpha_ for table in (cells, str(tmp_path)))
    assert whole != 0.1  # that of fuller tables
    assert_allclose(cut, whole)


def test_a_folder_is_not_transformed(tmp_path):
    prepare_blocks(ratings(), tmp_path, n_blocks=2)
    with pytest.raises(TypeError, match="not restored as a whole"):
        FroCMC(3).fit_transform(tmp_path)
    with pytest.raises(TypeError, match="can only be fitted"):
        FroCMC(3, alpha=1).fit(tmp_path).transform(tmp_path)


def test_a_damaged_block_fails_the_fit_by_name(tmp_path):
    prepare_blocks(ratings(), tmp_path, n_blocks=3)
    path = tmp_path / "block-00002.bin"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    with pytest.raises(DamagedBlockError, match=r"block-00002\.bin"):
        FroCMC(3).fit(tmp_path)


def test_only_clipped_cells_are_refused(tmp_path):
    prepare_blocks(np.full((4, 3), 2.0), tmp_path, ceiling=2)
    with pytest.raises(ValueError, match="All 12 observed cells are clipped"):
        FroCMC(1).fit(tmp_path)


def test_starts_that_need_the_table_are_refused(tmp_path):
    prepare_blocks(ratings(), tmp_path)
    with pytest.raises(ValueError, match="init"):
        FroCMC(3, init="svd").fit(tmp_path)


_LARGER_THAN_MEMORY = """
import resource, sys
import numpy as np
from declip import BlockTable, FroCMC
warm = FroCMC(2, max_iter=2, tol=0.5).fit(sys.argv[1])  # loads what is loaded once
def anonymous():
    with open("/proc/self/status") as status:
        return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in status if "kB" in line}
limit = anonymous()["VmData"] + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # no more private memory than this
try:
    np.ones(int(sys.argv[3]) + 2**22, np.uint8)
    print("unlimited")
except MemoryError:
    pass
model = FroCMC(4, alpha=2, max_iter=3, tol=0, random_state=0).fit(sys.argv[2])
print("objective", model.objective_)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_a_table_four_times_larger_than_the_memory_left_is_fitted(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 4)) @ rng.standard_normal((4, 200))
    X[rng.random(X.shape) < 0.3] = np.nan
    cells = Intervals.from_table(np.minimum(X, 1.0).astype(np.float32), ceiling=1.0)
    prepare_blocks(ratings(), tmp_path / "small", n_blocks=2)
    table = prepare_blocks(cells, tmp_path / "large", n_blocks=16)
    size = sum(os.path.getsize(b.path) for b in table.blocks)
    arguments = str(tmp_path / "small"), str(tmp_path / "large"), str(size // 4)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _LARGER_THAN_MEMORY, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "unlimited" not in done.stdout
    expected = FroCMC(4, alpha=2, max_iter=3, tol=0, random_state=0)
    with pytest.warns(UserWarning, match="stopped after 3 sweeps"):
        expected.fit(str(tmp_path / "large"))
    assert float(done.stdout.split()[1]) == expected.objective_


@pytest.mark.parametrize(
    "fit",
    [
        lambda folder: TrCMC(1.0).fit(folder),
        lambda folder: BayesCMC(1).fit(folder),
        lambda folder: EntrySearchCV(FroCMC(1), {"alpha": [1.0]}).fit(folder),
        lambda folder: restore(folder),
    ],
    ids=["TrCMC", "BayesCMC", "EntrySearchCV", "restore"],
)
def test_what_works_in_memory_alone_says_so_of_a_folder(fit, tmp_path):
    prepare_blocks(np.eye(4), tmp_path / "blocks")
    with pytest.raises(TypeError, match="a folder of blocks is fitted by FroCMC"):
        fit(tmp_path / "blocks")
