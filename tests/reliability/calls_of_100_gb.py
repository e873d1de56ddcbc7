"""Every public call that could make a dense table, asked for 100 GB or more under a limit of 2 GB.

Run as a script in a process of its own; prints what became of each call, as JSON. The limit is set
before anything is imported.
"""

import io
import json
import resource
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from time import perf_counter

LIMIT = 2 * 2**30
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))

import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402

import declip  # noqa: E402
from declip.datasets import make_clipped_low_rank  # noqa: E402
from declip.metrics import interval_rmse  # noqa: E402
from declip.report import write_cells  # noqa: E402

SIDE = 120_000  # a table of 120,000 x 120,000 doubles is 107.3 GiB
CEILING = 3.0


def wide_table():
    """A sparse table of 107 GiB if it were dense, whose cells lie in a 40 x 30 block."""
    rng = np.random.default_rng(0)
    block = np.minimum(2 + rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30)), CEILING)
    rows, cols = np.divmod(np.arange(block.size), block.shape[1])
    far = np.array([SIDE - 1]), np.array([SIDE - 1]), np.array([2.0])
    rows, cols, values = (
        np.append(a, b) for a, b in zip((rows, cols, block.ravel()), far, strict=True)
    )
    return sparse.coo_array((values, (rows, cols)), shape=(SIDE, SIDE)).tocsr()


def small_table():
    """The block alone, dense."""
    return wide_table()[:40, :30].toarray()


def blown_up(model):
    """A model fitted to the block, with factors of zeros for the wide table."""
    model.fit(small_table())
    model.row_factors_, model.components_ = np.zeros((SIDE, 1)), np.zeros((1, SIDE))
    model.row_offset_ = model.column_offset_ = np.zeros(SIDE)
    model.n_features_in_ = SIDE
    return model


def bayes(**params):
    return declip.BayesCMC(
        **{"n_components": 1, "n_samples": 2, "burn_in": 0, "chains": 1, "max_kept": 2, **params},
        ceiling=CEILING,
        random_state=0,
    )


def dense_file(folder):
    """An npz file of a few bytes that claims to hold a table of 107 GiB."""
    path = Path(folder, "claims.npz")
    header = np.lib.format.header_data_from_array_1_0(np.empty(0)) | {"shape": (SIDE, SIDE)}
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, header)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("table.npy", member.getvalue())
    return path


def market_file(folder):
    """A MatrixMarket file that claims to hold a dense table of 107 GiB."""
    path = Path(folder, "claims.mtx")
    path.write_text(f"%%MatrixMarket matrix array real general\n{SIDE} {SIDE}\n1.0\n")
    return path


def refused_calls(folder):
    """Name the calls that have to be refused."""
    X, cells = wide_table(), declip.Intervals.from_table(wide_table(), CEILING)
    solid = np.broadcast_to(2.0, X.shape)  # dense for all who look, 8 bytes in truth
    fro = declip.FroCMC(1, ceiling=CEILING, max_iter=2, random_state=0).fit(X)
    fitted = {
        "FroCMC": fro,
        "TrCMC": blown_up(declip.TrCMC(ceiling=CEILING, scale="none")),
        "ExactCMC": blown_up(declip.ExactCMC(ceiling=CEILING)),
        "DTrCMC": blown_up(declip.DTrCMC(ceiling=CEILING, scale="none")),
        "BayesCMC": bayes().fit(X),
    }
    tall = bayes(max_kept=1000, n_samples=1000, n_components=20).fit(small_table())
    search = declip.EntrySearchCV(fro, {"alpha": [0.1]}, cv=2).fit(X)
    restored = declip.restore(X, ceiling=CEILING, method="hinge", n_components=1, alpha=1.0)
    calls = {
        "Intervals.to_bounds": cells.to_bounds,
        "Intervals.from_table": lambda: declip.Intervals.from_table(solid),
        "Intervals.from_bounds": lambda: declip.Intervals.from_bounds(solid, solid),
        "restore": lambda: declip.restore(solid, ceiling=CEILING),
        "reclip_test": lambda: declip.reclip_test(solid),
        "diagnose": lambda: declip.diagnose(solid),
        "diagnose, expert": lambda: declip.diagnose(fro, cells, expert=True),
        "diagnose, truth": lambda: declip.diagnose(fro, cells, expert=True, truth=solid),
        "detect_limits": lambda: declip.detect_limits(solid),
        "trace_path": lambda: declip.trace_path(solid),
        "EntrySearchCV.fit": lambda: declip.EntrySearchCV(fro, {"alpha": [0.1]}).fit(solid),
        "EntrySearchCV.transform": lambda: search.transform(X),
        "EntrySearchCV.reconstruct": search.reconstruct,
        "FroCMC.fit, too many factors": lambda: declip.FroCMC(SIDE).fit(X),
        "DTrCMC.fit, all triplets": lambda: declip.DTrCMC(ceiling=CEILING).fit(X),
        "BayesCMC.fit, too many samples": lambda: bayes(
            max_kept=10**5, n_samples=10**5, n_components=5
        ).fit(X),
        "BayesCMC.sample": fitted["BayesCMC"].sample,
        "BayesCMC.sample, many": lambda: tall.sample(10**9),
        "BayesCMC.transform, tall": lambda: tall.transform(sparse.csr_array((1_400_000, 30))),
        "BayesCMC.score, tall": lambda: tall.score(
            sparse.coo_array(([1.0, 2.0], ([0, 1], [0, 1])), shape=(1_400_000, 30))
        ),
        "write_table, csv": lambda: declip.write_table(cells, Path(folder, "wide.csv")),
        "write_table, sparse csv": lambda: declip.write_table(X, Path(folder, "wide.csv")),
        "write_table, parquet": lambda: declip.write_table(cells, Path(folder, "wide.parquet")),
        "write_table, excel": lambda: declip.write_table(cells, Path(folder, "wide.xlsx")),
        "write_table, npz": lambda: declip.write_table(cells, Path(folder, "wide.npz")),
        "read_table, npz": lambda: declip.read_table(dense_file(folder)),
        "read_table, mtx": lambda: declip.read_table(market_file(folder)),
        "report.write_cells": lambda: write_cells(restored, Path(folder, "a.csv")),
        "datasets.make_clipped_low_rank": lambda: make_clipped_low_rank(4 * SIDE, 4 * SIDE),
    }
    for name, model in fitted.items():
        fresh = type(model)(**model.get_params())
        calls[f"{name}.fit_transform"] = lambda fresh=fresh: fresh.fit_transform(X)
        calls[f"{name}.transform"] = lambda model=model: model.transform(X)
        calls[f"{name}.predict"] = lambda model=model: model.predict(cells)
        calls[f"{name}.reconstruct"] = model.reconstruct
        calls[f"{name}.fit, dense"] = lambda fresh=fresh: fresh.fit(solid)
    return calls


def done_calls(folder):
    """Name the calls that a sparse table of any shape must pass, for nothing is made dense."""
    X, cells = wide_table(), declip.Intervals.from_table(wide_table(), CEILING)
    fro = declip.FroCMC(1, ceiling=CEILING, max_iter=2, random_state=0).fit(X)
    rng = np.random.default_rng(0)
    tall = sparse.coo_array(
        (rng.normal(size=10_000), (np.arange(10_000) * 400, np.arange(10_000) % 80)),
        shape=(4_000_000, 80),  # 2.4 GiB
    )
    few = {"max_iter": 3, "max_rank": 2, "ceiling": CEILING}
    return {
        "FroCMC.fit": lambda: declip.FroCMC(2, ceiling=CEILING, random_state=0).fit(X),
        "FroCMC.fit, svd": lambda: declip.FroCMC(2, ceiling=CEILING, init="svd").fit(X),
        "FroCMC.fit, tall": lambda: declip.FroCMC(1, max_iter=2).fit(tall),
        "TrCMC.fit": lambda: declip.TrCMC(solver="proximal", **few).fit(X),
        "TrCMC.fit, factored": lambda: declip.TrCMC(**few).fit(X),
        "ExactCMC.fit": lambda: declip.ExactCMC(**few).fit(X),
        "BayesCMC.fit": lambda: bayes().fit(X),
        "trace_path": lambda: declip.trace_path(X, n_alphas=2, **few),
        "EntrySearchCV.fit": lambda: declip.EntrySearchCV(fro, {"alpha": [0.1]}, cv=2).fit(X),
        "predict": lambda: fro.predict([0, SIDE - 1], [0, SIDE - 1]),
        "score": lambda: fro.score(X),
        "restore": lambda: declip.restore(X, ceiling=CEILING),
        "reclip_test": lambda: declip.reclip_test(X, CEILING, estimator=fro, quantiles=[0.8]),
        "diagnose": lambda: str(declip.diagnose(fro, cells)),
        "detect_limits": lambda: str(declip.detect_limits(X)),
        "write_table, long": lambda: declip.write_table(
            cells, Path(folder, "long.csv"), layout="long"
        ),
        "write_table, npz": lambda: declip.write_table(X, Path(folder, "cells.npz")),
        "write_table, mtx": lambda: declip.write_table(X, Path(folder, "cells.mtx")),
        "metrics.interval_rmse": lambda: interval_rmse([1.0], [2.0], [3.0]),
    }


def outcome(call):
    """Return the error of a call, its words and its seconds."""
    start = perf_counter()
    try:
        call()
    except BaseException as error:
        return type(error).__name__, str(error), perf_counter() - start
    return "", "", perf_counter() - start


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        calls = {"refused": refused_calls, "done": done_calls}[sys.argv[1]](folder)
        for name, call in calls.items():
            print(json.dumps([name, *outcome(call)]), flush=True)


if __name__ == "__main__":
    main()
