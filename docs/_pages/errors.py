"""The page of errors and warnings: each is provoked, and its words are those of the library."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HEAD = """# Errors and warnings

Each message below was caught from the call above it while this page was built. Errors about the
data name the row, the column or the cell and are raised before any work; a fit that fails leaves
the estimator as it was.
"""


@dataclass(frozen=True)
class Case:
    """A call that goes wrong, and what to do."""

    title: str
    code: str
    remedy: str


ERRORS = [
    Case(
        "A value beyond its limit",
        "FroCMC(2, ceiling=5).fit(np.array([[1.0, 2.0], [3.0, 7.5]]))",
        "The limit is wrong, or the value is. `detect_limits(X)` proposes limits; for values that"
        " differ from the limit by "
        "rounding use `Intervals.from_table(X, ceiling=5, tol=0.01)`.",
    ),
    Case(
        "A floor that is not below its ceiling",
        "FroCMC(1, floor=5, ceiling=2).fit(np.array([[3.0, 4.0], [3.0, 4.0]]))",
        "Mend the limits of the column that is named. Exact values need no limits: `inf` and "
        "`-inf` are none.",
    ),
    Case(
        "A limit for a column that is not there",
        'Intervals.from_table(pd.DataFrame({"iron": [1.0, 2.0]}), ceiling={"zinc": 2})',
        "Names of a mapping are column labels, as they stand in the frame.",
    ),
    Case(
        "Limits of another shape",
        "FroCMC(1, ceiling=[5, 5, 5]).fit(np.ones((4, 2)))",
        "One number, one per column, one per row of shape `(n, 1)`, or one per cell.",
    ),
    Case(
        "A cell twice",
        "Intervals.from_triplets([0, 0], [1, 1], [2.0, 3.0])",
        "Duplicates are never summed. Decide which of them counts before.",
    ),
    Case(
        "Infinite values",
        "FroCMC(1).fit(np.array([[1.0, np.inf], [2.0, 3.0]]))",
        "Write missing cells as NaN, and clipped ones as their limit with `ceiling=` or `floor=`.",
    ),
    Case(
        "Text among numbers",
        'FroCMC(1).fit(pd.DataFrame({"iron": ["<0.05", "0.3"]}))',
        "Frames hold numbers. `read_table` reads files with cells such as `<0.05`; "
        "`Intervals.from_bounds(lower, upper)` takes two tables.",
    ),
    Case(
        "A rank that is too large",
        "FroCMC(n_components=10).fit(np.ones((5, 4)))",
        "Lower `n_components`.",
    ),
    Case(
        "Nothing exact",
        "FroCMC(1, ceiling=1).fit(np.ones((3, 2)))",
        "Where every cell is at its limit, nothing tells how far beyond it lies. Check the limit.",
    ),
    Case(
        "A table that does not fit in memory",
        "FroCMC(1, max_iter=1).fit(sparse.coo_array(([1.0], ([10**6 - 1], [10**6 - 1])), (10**6, "
        "10**6))).reconstruct()",
        "Ask for blocks with `reconstruct(rows=, cols=)` or for single cells with `predict(rows, "
        "cols)`. `restore` "
        "gives a sparse table back for a sparse one.",
    ),
    Case(
        "Other columns than those of the fit",
        "FroCMC(1).fit(np.ones((4, 3))).transform(np.ones((2, 2)))",
        "New rows have the columns of the fit, in their order.",
    ),
    Case(
        "A cell of a file that is no number",
        'read_table(file("sample,iron\\ns1,<0.05\\ns2,trace\\n"))',
        'Mend the cell, or name the word as missing: `missing=["trace"]`, on the command line '
        "`--missing trace`.",
    ),
    Case(
        "A word such as ND without a limit to stand for",
        'read_table(file("sample,iron\\ns1,ND\\ns2,0.3\\n"))',
        'Give the limit of the column: `floor={"iron": 0.05}`, `--floor iron=0.05`, or a file '
        "with `--limits`.",
    ),
    Case(
        "A file that is there already",
        'write_table(np.ones((2, 2)), file("taken"))',
        "Choose another name, or say `overwrite=True` (`--overwrite`).",
    ),
]
WARNINGS = [
    Case(
        "Limits that nothing is at",
        "FroCMC(1, ceiling=9).fit(np.outer([1.0, 2, 3], [1.0, 2]))",
        "Usually the limit is not the one of the table, or the values are rounded: see `tol` "
        "above.",
    ),
    Case(
        "A row or column with fewer exact cells than the rank",
        "FroCMC(2, ceiling=5, random_state=0).fit(np.array([[1.0, 2, 5], [2, 1, 5], [3, 4, 5], "
        "[1, 3, 2]]))",
        "What is restored there follows the penalty, not the data. Lower the rank, or leave those"
        " cells out of what you "
        'conclude. `restore` flags them "undetermined".',
    ),
    Case(
        "A row or column without any observed cell",
        "FroCMC(1, random_state=0).fit(np.array([[1.0, 2], [2, 4], [np.nan, np.nan]]))",
        "Drop it, or know that its values are the middle of the model.",
    ),
    Case(
        "A fit that had not settled",
        "FroCMC(3, max_iter=2, alpha=1e-6, "
        "random_state=0).fit(np.random.default_rng(0).normal(size=(30, 20)))",
        "A `ConvergenceWarning` of scikit-learn. Raise `max_iter`, or `alpha` if it is close to 0.",
    ),
    Case(
        "Chains that do not agree",
        "BayesCMC(5, n_samples=10, burn_in=0, "
        "random_state=0).fit(np.random.default_rng(0).normal(size=(40, 8)))",
        "Raise `n_samples` and `burn_in`, or go on from where it stopped with `warm_start=True`.",
    ),
]


def page() -> str:
    sections = [
        ("Errors", ERRORS),
        ("Warnings", WARNINGS),
    ]
    text = [HEAD]
    for title, cases in sections:
        text += [f"## {title}\n", *(_section(case) for case in cases)]
    return "\n".join(text)


def _section(case: Case) -> str:
    caught = provoke(case)
    kind = type(caught).__name__
    message = _without_place(str(caught))
    call, words = f"```python\n{case.code}\n```", f"```text\n{kind}: {message}\n```"
    return f"### {case.title}\n\n{call}\n\n{words}\n\n{case.remedy}\n"


def provoke(case: Case) -> BaseException | Warning:
    """Return what a case raises, or the first warning that it gives."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(case.code, _names(Path(folder)))
        except Exception as error:
            return error
        return given[0].message


def _names(folder: Path) -> dict[str, Any]:
    import pandas as pd
    from scipy import sparse

    import declip

    def file(text: str) -> Path:
        path = folder / "assay.csv"
        path.write_text(text)
        return path

    public = {name: getattr(declip, name) for name in declip.__all__}
    return {"np": np, "pd": pd, "sparse": sparse, "file": file, **public}


def _without_place(text: str) -> str:
    """Leave out what differs from build to build: the folder, and how much memory is free."""
    text = re.sub(r"\S*/(assay\.csv)", r"\1", text)
    return re.sub(r"about [\d.]+ GiB", "about ... GiB", text)
