"""restore: the whole way from a table with limits to a restored one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from declip.containers import Container, opened
from declip.detect import detect_limits
from declip.detect.missingness import missing_trend
from declip.estimators.side import Known, SideInformation
from declip.extras import needs
from declip.intervals import Intervals, as_intervals
from declip.restoration.bounds import AMOUNTS, Bounds
from declip.restoration.candidates import METHODS
from declip.restoration.cells import (
    CellBlock,
    counts_of,
    filled_cells,
    restored_cells,
    tables_of,
)
from declip.restoration.choose import Choice, choose
from declip.restoration.determined import Determined
from declip.restoration.gain import expected_gain
from declip.restoration.known import known_lines, relative_weights
from declip.restoration.missing import WhyMissing
from declip.restoration.model import RestorationModel
from declip.restoration.output_kind import OutputKind
from declip.restoration.result import Restoration
from declip.restoration.sampling import in_whole_table, rows_to_learn_from
from declip.restoration.settings import Settings
from declip.restoration.tasks import Scaled
from declip.rounding import apparent_levels, limits_on_grid
from declip.scales import VALUE_SCALES
from declip.scaling import SCALES, scaled_by_rows
from declip.validation import check_choice, check_known, check_rank, check_some_exact, name_some

__all__ = ["limits_of", "restore"]

_WITHIN_REACH = 4.0  # standard deviations of a column from its mean
_DRAWS_OF_MANY_ROWS = 8  # of the posterior, where columns are learnt from some rows


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
    between: tuple[Any, Any] | str | None = AMOUNTS,
    missing: Any = "random",
    rounding: str = "auto",
    fill: str = "determined",
    tol: float = 0.0,
    coverage: float = 0.9,
    effort: str | float = "normal",
    time_limit: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool | Callable[[str, float], None] | None = None,
    layer: str | None = None,
    copy: bool = True,
    row_features: Any = None,
    column_features: Any = None,
    groups: Any = None,
    weights: Any = None,
    errors: Any = None,
) -> Restoration:
    """Restore clipped and missing cells, by the method that does best on the table's own values.

    Limits are moved into the exact cells, and some cells are held out. Methods count by how likely
    they make what that hides, and are drawn in beyond the limits as far as it asks for. If
    restoring shows no gain over leaving cells at their limit, the limits stay. Cells that the data
    do not determine keep their limit, or stay empty.

    Parameters
    ----------
    X : array-like, frame, sparse matrix, DataArray, AnnData or Intervals
        The table of shape (n_rows, n_cols); NaN (absent in a sparse matrix) is missing. The last
        dimension of a DataArray of xarray is that of the columns, the others are stacked to rows.
        An `Intervals` carries its limits.
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits: one for all, one per column, one per row of shape (n_rows, 1), one per cell, or a
        mapping from column name to limit. A value at its limit is clipped. With an AnnData also
        the name of a column of ``var`` or ``obs``, or of a layer, where NaN is no limit; with a
        DataArray one over some of its dimensions.
    method : str, default="auto"
        "auto" weighs several; else one of "bayes", "normal", "classes", "column", "tobit",
        "tobit+bias", "hinge", "hinge+bias" and "trace".
    n_components : int or None, default=None
        Number of factors; None chooses.
    alpha : float or None, default=None
        Strength of the penalty in standard units; None chooses.
    scale : {"auto", "columns", "rows", "table", "none", "sqrt", "log1p"}, default="auto"
        Whether each column, each row, or the table as a whole is brought to standard units. "auto"
        is "table" for sparse tables (ratings), "rows" where rows differ in scale more than columns
        do (products by days), else "columns". For counts and amounts, which may be zero, "sqrt"
        works on square roots, on which counts have the same noise at any size, and "log1p" on
        log(1 + x), on which effects multiply; units are then as for "auto", and values lead back
        from the mean on that scale.
    log : bool, or labels or numbers of columns, default=False
        Columns to be restored in logarithms, such as concentrations; their limits go along. The
        values are then geometric means.
    between : "auto", None, or pair of None, number, array-like or mapping, default="auto"
        Lowest and highest value that the truth can have, such as ``(0, 100)`` for percentages;
        nothing is restored or filled beyond. ``ceiling`` and ``floor`` say where the table stops,
        which the truth does not. "auto" takes columns without a negative value or limit for
        amounts, which end at zero, unless a floor lies at zero itself or they are answers on a
        scale, recorded in coarse steps; the result says so. None sets no end.
    missing : {"random", "low", "high", "auto"} or mapping, default="random"
        Why cells are missing: by chance; because their values were too low, or too high, to be
        seen, by a detection curve that is fitted too (as in `BayesCMC`); or as held-out cells have
        it. A mapping from columns gives each its own word. Then one method counts, "bayes".
    rounding : {"auto", "none"}, default="auto"
        Whether values that lie on a grid are taken as rounded: with whole numbers a 5 at a ceiling
        of 5 is anything from 4.5 on, which is what a ceiling of 4.5 says too.
    fill : {"determined", "all"}, default="determined"
        Whether cells that the data do not determine stay at their limit, or empty, or get a guess.
    tol : float, default=0.0
        A value within this distance of its limit counts as clipped.
    coverage : float, default=0.9
        Share of the truths that the bands are to hold.
    effort : {"quick", "normal", "thorough"} or float, default="normal"
        How much work is done; a number is relative to "normal". The work is counted, so that the
        same call gives the same answer on any machine, however busy it is. Where more than 300,000
        cells are observed (in normal effort; in proportion otherwise), methods are chosen and
        columns learnt from rows drawn at random, and all rows restored under what these say.
    time_limit : float or None, default=None
        Seconds after which no more methods are tried. If it strikes, the result says so and
        another run may give another answer. The fit under way and the final one come on top.
    random_state : int, default=0
        Seed.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all.
    progress : bool, callable or None, default=None
        Whether to show a progress bar; None if the terminal can. A callable is called with what is
        being done and the share of the work that is done.
    layer : str or None, default=None
        Layer of an AnnData that is restored; None is ``X``.
    copy : bool, default=True
        Whether the ``table`` of an AnnData is a copy of it. False writes into it.
    row_features, column_features : frame, mapping or array-like, default=None
        What is known of each row (age, site) or column besides its cells, as in `BayesCMC`: numbers
        and categories, a frame aligned by its labels. A method that uses what is known is weighed
        among the others, so that it counts only where hidden and held-out cells say that it helps;
        the result says by how much.
    groups : array-like of shape (n_rows,), default=None
        The plate, batch or condition of each row, with an offset of its own in each column.
    weights, errors : scalar, array-like or sparse matrix, default=None
        Weights of the cells, or their known standard deviations, of which only those of a column
        relative to each other count here: how much noise there is in all is found.

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
    check_choice("scale", scale, ("auto", "rows", *SCALES, *VALUE_SCALES))
    values, scale = (scale, "auto") if scale in VALUE_SCALES else ("", scale)
    X = opened(X, layer, copy)
    intervals = _read(X, ceiling, floor, tol, rounding)
    check_some_exact(*intervals.triplets()[2:])
    if n_components is not None:
        check_rank(n_components, intervals.shape)
    output_kind, bounds = OutputKind.of(X, intervals), Bounds.of(between, intervals)
    known = Known(row_features, column_features, groups, weights, errors)
    check_known(known.names, scale, missing)
    settings = Settings(
        method=method,
        n_components=n_components,
        alpha=alpha,
        scale=_scale_of(intervals, output_kind, log, between, None if known.names else missing)
        if scale == "auto"
        else scale,
        values=values,
        log=log,
        between=between,
        missing=missing,
        rounding=rounding,
        fill=fill,
        tol=tol,
        coverage=coverage,
        effort=effort,
        time_limit=time_limit,
        random_state=random_state,
        n_jobs=n_jobs,
        layer=layer,
        bounds=bounds,
        side=SideInformation.of(intervals, known) if known.names else None,
        weights=relative_weights(intervals, known),
    )
    # BLAS at one thread: sums that no number of threads changes
    with _progress(progress) as tick, threadpool_limits(limits=1, user_api="blas"):
        return _restored(intervals, settings, output_kind, tick)


def _restored(
    intervals: Intervals,
    settings: Settings,
    output_kind: OutputKind,
    tick: Callable[[str, float], None],
) -> Restoration:
    """Choose methods, fit them to the whole table, and give every cell its value."""
    work = intervals.T if settings.by_rows else intervals
    rows = None if settings.known else rows_to_learn_from(work, settings)
    part = work if rows is None else work.take_rows(rows)
    if isinstance(settings.between, str):
        one_quantity = settings.shared or settings.by_rows
        settings = replace(settings, bounds=Bounds.of_amounts(work, part, one_quantity))
    table = Scaled.of(part, settings)
    why = WhyMissing.of(part, table, settings)
    choice = choose(part, table, why.settle(settings), tick)
    tick("the final fit", 0.9)
    kept = None if rows is None else _DRAWS_OF_MANY_ROWS
    determined = Determined.of(part, settings.describes_rows)
    model = RestorationModel.of(table, choice, settings, determined, why.by_column, kept)
    test = why.test(table, model.methods[0].estimator, settings)
    if test is not None:
        model = replace(model, half_width=test.half_width(settings.coverage))
    if rows is not None:
        model = model.for_rows(work, independent=True)
        choice.reclip = in_whole_table(choice.reclip, rows)
    censored = restored_cells(work, model)
    missing = output_kind.missing(intervals)
    filled = filled_cells(missing[::-1] if settings.by_rows else missing, model)
    blocks = [CellBlock.exact(work), censored.block, filled]
    blocks = [block.T for block in blocks] if settings.by_rows else blocks
    counts = counts_of(blocks)
    return Restoration(
        **tables_of(blocks, output_kind),
        intervals=intervals,
        estimator=model.methods[0].estimator,
        scaling=model.table.scaling,
        reclip=choice.reclip,
        chosen=_chosen(choice, settings.method, why),
        candidates=[candidate.as_dict() for candidate in choice.candidates],
        warnings=[
            *why.lines(model.methods[0].estimator, test),
            *known_lines(choice.candidates, settings),
            *_warnings(work, choice, model, rows),
        ],
        kept_limits=intervals.n_censored > 0 and counts["restored"] == 0,
        coverage=settings.coverage,
        counts=counts,
        **expected_gain(censored, model.table.scaling, tested=choice.reclip is not None),
        settings=settings.as_arguments(),
        transposed=settings.by_rows,
        model=model,
    )


def _scale_of(
    intervals: Intervals, output_kind: OutputKind, log: Any, between: Any, missing: Any
) -> str:
    """Return what has units of its own: the table if sparse, else its rows or its columns."""
    if not output_kind.dense:
        return "table"
    plain = isinstance(log, bool) and isinstance(missing, str)
    plain &= between is None or isinstance(between, str) or all(map(_is_plain, between))
    return "rows" if plain and scaled_by_rows(intervals) else "columns"


def _read(X: Container, ceiling: Any, floor: Any, tol: float, rounding: str) -> Intervals:
    if isinstance(X.table, Intervals):
        return as_intervals(X.table, ceiling, floor, tol)
    return as_intervals(X, *limits_of(X, ceiling, floor, rounding), tol)


def limits_of(X: Container, ceiling: Any, floor: Any, rounding: str) -> tuple[Any, Any]:
    """Return the limits of a table: those given, or for values on a grid the ends of it."""
    ceiling, floor = X.limit(ceiling, "ceiling"), X.limit(floor, "floor")
    if rounding == "auto" and (np.isscalar(ceiling) or np.isscalar(floor)):
        return limits_on_grid(as_intervals(X).by_row.value, ceiling, floor)
    return ceiling, floor


def _is_plain(bound: Any) -> bool:
    return bound is None or np.isscalar(bound)


def _chosen(choice: Choice, asked: str, missing: WhyMissing) -> dict[str, Any]:
    best = choice.members[0].candidate
    members = [m.candidate for m in choice.members]
    weights = {c.method: round(c.scores["weight"], 3) for c in members}
    if asked != "auto":
        why = "It was asked for."
    elif missing.by_column:
        why = "It is the only one that knows of cells that are missing for their values."
    elif len(choice.candidates) == 1:
        why = "It is the only one that could be judged."
    elif len(weights) == 1:
        why = f"Of {len(choice.candidates)} methods it alone explains what was hidden."
    else:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in weights.items())
        why = f"A weighted mean of methods, by how well they explain what was hidden: {shares}."
    return {
        "method": best.method,
        "name": METHODS[best.method],
        "parameters": best.parameters,
        "weights": weights,
        "why": why,
    }


def _warnings(
    intervals: Intervals, choice: Choice, model: RestorationModel, learnt: NDArray | None
) -> Iterator[str]:
    settings, kept, determined = model.settings, model.kept, model.determined
    if intervals.n_censored == 0:
        proposal = detect_limits(intervals)
        if proposal.ceiling is not None or proposal.floor is not None:
            yield (
                f"No value is at a limit, but the ends of the table look clipped. {proposal.limits}"
            )
    trend = missing_trend(intervals)
    if settings.missing == "random" and trend.word != "random":
        yield f"{trend.finding} {trend.advice}"
    if choice.left_out:
        yield (
            f"The time limit struck before {', '.join(choice.left_out)} could be tried: another "
            "run may give another answer."
        )
    names = ("column", "row") if settings.by_rows else ("row", "column")
    if learnt is not None:
        yield (
            f"Methods were chosen, and columns learnt, from {len(learnt):,} of the "
            f"{intervals.shape[0]:,} {names[0]}s, drawn at random; all were restored under what "
            "these say."
        )
    if settings.by_rows:
        yield "Rows differ in scale more than columns do: each row has its own units here."
    yield from _rounded(intervals, model.table, names[1])
    if isinstance(settings.between, str):
        yield from _amounts(intervals, model.table, names[1])
    yield from _levels(intervals)
    side = intervals.by_row
    clipped = side.left_censored.any() or side.right_censored.any()
    if clipped and choice.reclip is None:
        yield "Too few exact cells for a reclip test: every cell beyond a limit was left at it."
    elif clipped and kept.all():
        yield "The reclip test shows no gain over leaving cells at their limits: they were kept."
    elif clipped and kept.any():
        some = name_some(names[1], np.flatnonzero(kept), intervals.col_labels)
        yield f"{some} kept at the limit: restoring shows no gain there."
    outcome = "left at the limit or empty" if settings.fill == "determined" else "guessed"
    for axis, known, labels, need in (
        (names[0], determined.rows, intervals.row_labels, "a cell in a determined column"),
        (names[1], determined.cols, intervals.col_labels, "exact cells of two different values"),
    ):
        if not known.all():
            some = name_some(axis, np.flatnonzero(~known), labels)
            yield f"{some} not determined by the data, for want of {need}: {outcome}."


def _rounded(intervals: Intervals, table: Scaled, axis: str) -> Iterator[str]:
    """Say in which columns limits were widened by half a step of a coarse grid."""
    side = intervals.by_row
    ends = side.left_censored, side.right_censored
    clipped = np.array([_columns_with(intervals, at) for at in ends])
    steps = np.where(clipped, table.steps.at(np.arange(intervals.shape[1])), 0.0).max(axis=0)
    coarse = np.flatnonzero(steps > 0)
    if coarse.size:
        names = name_some(axis, coarse, intervals.col_labels)
        step = steps[coarse[0]]
        yield (
            f"{names} recorded in steps (of {step:.3g}): a value at a limit is taken to lie from "
            "half a step inside it on (rounding='none' takes the limit as it stands)."
        )


def _amounts(intervals: Intervals, table: Scaled, axis: str) -> Iterator[str]:
    """Say in which columns with floors zero, as the end of amounts, lies within reach."""
    zero = table.bounds_at(np.arange(intervals.shape[1]))[0]
    floors = _columns_with(intervals, intervals.by_row.left_censored)
    within = np.flatnonzero(floors & np.isfinite(zero) & (zero > -_WITHIN_REACH))
    if within.size:
        names = name_some(axis, within, intervals.col_labels)
        yield (
            f"{names} never negative: nothing is restored below zero (between=None sets no end)."
        )


def _levels(intervals: Intervals) -> Iterator[str]:
    """Say that a table seems to be recorded in levels."""
    levels = apparent_levels(intervals)
    if levels is not None:
        listed = ", ".join(f"{value:g}" for value in levels)
        yield (
            f"The exact values are levels ({listed}), taken here for numbers with even distances. "
            "If they are answers on an ordered scale, BayesCMC(levels='shared') on the table as it "
            "is finds the distances, and predict_levels their probabilities."
        )


def _is_watched() -> bool:
    return sys.stderr.isatty() and find_spec("rich") is not None


def _columns_with(intervals: Intervals, censored: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which columns have some of the marked censored cells."""
    cols = intervals.by_row.censored_idx[censored]
    return np.bincount(cols, minlength=intervals.shape[1]) > 0


@contextmanager
def _progress(
    wanted: bool | Callable[[str, float], None] | None,
) -> Iterator[Callable[[str, float], None]]:
    """Show a bar of the work done, with what is being done."""
    if callable(wanted):
        yield wanted
        return
    if not (_is_watched() if wanted is None else wanted):
        yield lambda *_: None
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
        task = bar.add_task("reading", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)
