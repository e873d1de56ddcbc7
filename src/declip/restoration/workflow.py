"""restore: the whole way from a table with limits to a restored one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from declip.detect import detect_limits
from declip.extras import needs
from declip.intervals import Intervals, as_intervals
from declip.restoration.bounds import Bounds
from declip.restoration.candidates import METHODS, Candidate, PredictiveDistribution
from declip.restoration.cells import (
    FLAGS,
    Block,
    Determined,
    filled_cells,
    kept_columns,
    restored_cells,
)
from declip.restoration.choose import Choice, Settings, choose, fitted
from declip.restoration.output_kind import OutputKind
from declip.restoration.page import NAMES
from declip.restoration.result import Restoration
from declip.scaling import SCALES
from declip.validation import check_choice, check_rank, check_some_exact, name_some

__all__ = ["restore"]

_FINAL = {"max_iter": 300, "tol": 1e-6}  # the fits that only compare end earlier


def restore(
    X: Any,
    ceiling: Any = None,
    floor: Any = None,
    *,
    method: str = "auto",
    n_components: int | None = None,
    alpha: float | None = None,
    scale: str = "auto",
    log: Any = False,
    between: tuple[Any, Any] | None = None,
    tol: float = 0.0,
    coverage: float = 0.9,
    budget: float = 8.0,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool | Callable[[str, float], None] | None = None,
) -> Restoration:
    """Restore clipped and missing cells, by the method that does best on the table's own values.

    Methods are tuned on held-out cells and compared by the reclip test: limits are moved into the
    exact cells, and what they hide is restored. If that shows no gain over leaving cells at their
    limit, the limits stay. Rows and columns that the data do not determine are flagged, not
    invented.

    Parameters
    ----------
    X : array-like, frame, sparse matrix or Intervals of shape (n_rows, n_cols)
        The table; NaN (absent in a sparse matrix) is missing. An `Intervals` carries its limits.
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits: one for all, one per column, one per row of shape (n_rows, 1), one per cell, or a
        mapping from column name to limit. A value at its limit is clipped.
    method : str, default="auto"
        "auto" chooses; else "bayes", "tobit", "tobit+bias", "hinge", "hinge+bias", "trace" or
        "column".
    n_components : int or None, default=None
        Number of factors; None chooses.
    alpha : float or None, default=None
        Strength of the penalty in standard units; None chooses.
    scale : {"auto", "columns", "table", "none"}, default="auto"
        Whether each column, or the table as a whole, is brought to standard units. "auto" is
        "table" for sparse tables (ratings), else "columns".
    log : bool, or labels or numbers of columns, default=False
        Columns to be restored in logarithms, such as concentrations; their limits go along. The
        values are then geometric means.
    between : pair of None, number, array-like or mapping, default=None
        Lowest and highest value that the truth can have, such as ``(0, 100)`` for percentages;
        nothing is restored or filled beyond. ``ceiling`` and ``floor`` say where the table stops,
        which the truth does not.
    tol : float, default=0.0
        A value within this distance of its limit counts as clipped.
    coverage : float, default=0.9
        Share of the truths that the bands are to hold.
    budget : float, default=8.0
        Seconds after which no more methods are tried. The fit that is under way and the final one
        come on top.
    random_state : int, default=0
        Seed.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all.
    progress : bool, callable or None, default=None
        Whether to show a progress bar; None if the terminal can. A callable is called with what is
        being done and the share of the budget that is spent.

    Returns
    -------
    Restoration
        With ``table``, ``flags``, ``lower``, ``upper``, and all the evidence.

    Examples
    --------
    >>> import numpy as np
    >>> import declip
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(80, 6))
    >>> r = declip.restore(np.minimum(truth, 1.0), ceiling=1.0, method="tobit", n_components=2)
    >>> beyond = truth > 1
    >>> bool(np.abs(r.table - truth)[beyond].mean() < 0.5 * np.mean(truth[beyond] - 1))
    True
    """
    check_choice("method", method, ("auto", *METHODS))
    check_choice("scale", scale, ("auto", *SCALES))
    _check_numbers(coverage, budget)
    intervals = as_intervals(X, ceiling, floor, tol)
    check_some_exact(*intervals.triplets()[2:])
    if n_components is not None:
        check_rank(n_components, intervals.shape)
    output_kind = OutputKind.of(X, intervals)
    if scale == "auto":
        scale = "columns" if output_kind.dense else "table"
    settings = Settings(
        *(method, n_components, alpha, scale, log),
        *(coverage, budget, random_state, n_jobs),
        bounds=Bounds.of(between, intervals),
    )
    with _progress(budget, progress) as tick:
        choice, scaling, scaled = choose(intervals, settings, tick)
        tick("the final fit")
        laws = PredictiveDistribution(fitted(_final(choice.candidate), scaled), scaled)
        determined = Determined.of(intervals)
        kept = kept_columns(choice.reclip, intervals.shape[1])
        sure = determined, settings.bounds
        block = Block.joined(
            Block.exact(intervals),
            restored_cells(intervals, laws, scaling, choice.pulls, coverage, kept, *sure),
            filled_cells(
                *output_kind.missing(intervals), laws, scaling, choice.filled_reach, *sure
            ),
        )
    at = block.rows, block.cols
    n_restored = int((block.flag == "restored").sum())
    return Restoration(
        table=output_kind.numbers(*at, block.value),
        flags=output_kind.words(*at, block.flag),
        lower=output_kind.numbers(*at, block.lower),
        upper=output_kind.numbers(*at, block.upper),
        intervals=intervals,
        estimator=laws.estimator,
        scaling=scaling,
        reclip=choice.reclip,
        chosen=_chosen(choice, settings),
        candidates=[candidate.as_dict() for candidate in choice.candidates],
        warnings=list(_warnings(intervals, choice, kept, determined, settings)),
        kept_limits=intervals.n_censored > 0 and n_restored == 0,
        coverage=coverage,
        counts={flag: int((block.flag == flag).sum()) for flag in FLAGS},
    )


def _check_numbers(coverage: float, budget: float) -> None:
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1; got {coverage!r}.")
    if not budget > 0:
        raise ValueError(f"budget must be a positive number of seconds; got {budget!r}.")


def _final(candidate: Candidate) -> Any:
    given = candidate.estimator.get_params(deep=False)
    more = {name: value for name, value in _FINAL.items() if name in given}
    if "n_samples" in given:
        more["n_samples"] = 2 * given["n_samples"]
    return clone(candidate.estimator).set_params(**more)


def _chosen(choice: Choice, settings: Settings) -> dict[str, Any]:
    best = choice.candidate
    others = [c for c in choice.candidates if c is not best and "seconds" in c.scores]
    if settings.method == best.method:
        why = "It was asked for."
    elif settings.method != "auto":
        why = f"The table has too few cells to tune {settings.method!r}."
    elif not others:
        why = "It is the only one that could be judged."
    elif "reclip" in best.scores:
        why = f"Of {len(others) + 1} methods it restores best what the reclip test hid."
    else:
        why = f"Of {len(others) + 1} methods it predicts held-out cells best."
    return {
        "method": best.method,
        "name": NAMES[best.method],
        "parameters": best.parameters,
        "why": why,
    }


def _warnings(
    intervals: Intervals,
    choice: Choice,
    kept: NDArray[np.bool_],
    determined: Determined,
    settings: Settings,
) -> Iterator[str]:
    if intervals.n_censored == 0:
        proposal = detect_limits(intervals)
        if proposal.ceiling is not None or proposal.floor is not None:
            yield f"No value is at a limit, but the ends of the table look clipped. {proposal}"
    if not choice.complete:
        yield "The budget was spent before all methods were compared: a larger budget= may help."
    side = intervals.by_row
    clipped = np.isinf(side.lower).any() or np.isinf(side.upper).any()
    if clipped and choice.reclip is None:
        yield "Too few exact cells for a reclip test: every cell beyond a limit was left at it."
    elif clipped and kept.all():
        yield "The reclip test shows no gain over leaving cells at their limits: they were kept."
    elif clipped and kept.any():
        names = name_some("column", np.flatnonzero(kept), intervals.col_labels)
        yield f"{names} kept at the limit: restoring shows no gain there."
    for axis, told, labels in (
        ("row", determined.rows, intervals.row_labels),
        ("column", determined.cols, intervals.col_labels),
    ):
        if not told.all():
            names = name_some(axis, np.flatnonzero(~told), labels)
            need = "an exact cell" if axis == "row" else "exact cells of two different values"
            yield f"{names} not determined by the data, for want of {need}: flagged, not invented."


def _is_watched() -> bool:
    return sys.stderr.isatty() and find_spec("rich") is not None


@contextmanager
def _progress(
    budget: float, wanted: bool | Callable[[str, float], None] | None
) -> Iterator[Callable[[str], None]]:
    """Show a bar of the budget spent, with what is being done."""
    began = monotonic()
    if callable(wanted):
        yield lambda what: wanted(what, min((monotonic() - began) / budget, 1.0))
        return
    if not (_is_watched() if wanted is None else wanted):
        yield lambda _: None
        return
    with needs("cli"):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description:<36}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("reading", total=budget)
        yield lambda what: bar.update(
            task, description=what, completed=min(monotonic() - began, budget)
        )
