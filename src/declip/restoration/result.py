"""Restoration: the restored table, and all that says how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from declip import persistence
from declip.containers import opened
from declip.estimators.side import Known
from declip.extras import MissingExtra
from declip.inference.statistics import DEFAULT
from declip.inference.summary import Summary
from declip.intervals import Intervals, as_intervals
from declip.reclip import ReclipResult
from declip.restoration.cells import (
    CellBlock,
    Flags,
    counts_of,
    filled_cells,
    restored_cells,
    tables_of,
)
from declip.restoration.conclusions import summary_of
from declip.restoration.gain import expected_gain
from declip.restoration.imputation import Imputation
from declip.restoration.model import RestorationModel
from declip.restoration.output_kind import OutputKind
from declip.restoration.page import page, verdict
from declip.scaling import Scaling
from declip.validation import cells_asked_for, check_memory, check_same_columns

__all__ = ["Restoration"]


@dataclass(frozen=True, eq=False, repr=False)
class Restoration:
    """A restored table. Returned by `restore`; `print` it for a page on what was done.

    Attributes
    ----------
    table : array, frame or sparse matrix
        The restored table, of the kind and with the labels of the input. For sparse input it has
        the stored cells of the input alone, and is never dense.
    flags : array or frame of str
        For each cell "exact", "restored" (a clipped cell at its expected value beyond the limit),
        "filled" (a missing cell) or "undetermined": a clipped cell left at its limit, or a missing
        one left empty, because the data do not determine it or because restoring showed no gain
        (``fill="all"`` asks for a guess). For sparse input one for each stored cell, row by row.
    lower, upper : array, frame or sparse matrix
        Bands that hold the truth with the coverage asked for: from the limit outwards for a clipped
        cell (or to both sides of its value, if that lies away from the limit), to both sides of a
        filled one, no width for an exact one.
    intervals : Intervals
        What the input says of each cell.
    estimator : estimator
        The method that counts most, fitted to the table in standard units (see ``scaling``).
    scaling : Scaling
        The units that the estimator works in.
    reclip : ReclipResult or None
        The test of what counts; None if nothing is clipped, or too little is exact.
    chosen : dict
        The "method" that counts most, its "parameters", the "weights" of all, and "why".
    candidates : list of dict
        All methods that were looked at, by weight, with their scores: "held_out" and "reclip"
        (minus the mean log-likelihood of cells held out, and hidden behind a limit; lower is
        better), "error" (of hidden cells relative to leaving the limit) and "weight" (0 for those
        that do not count).
    warnings : list of str
        What the user should know.
    kept_limits : bool
        Whether every clipped cell was left at its limit.
    coverage : float
        Of the bands.
    counts : dict of str to int
        Number of cells with each flag.
    expected_gain : float
        Share of the error of leaving clipped cells at their limits that restoring is expected to
        take away, beyond the real limits; NaN if nothing is clipped.
    expected_gain_range : tuple of float
        Nine in ten true gains lie within.
    expected_factors : tuple of float
        By which restored values, and limits, are expected to be off beyond the real limits, in
        columns that are taken to logarithms (root mean square); NaN if there are none.
    settings : dict
        The arguments of `restore` that differ from its defaults.
    transposed : bool
        Whether estimator and scaling are those of the transposed table (``scale="rows"``).
    model : RestorationModel or None
        All methods that count, fitted; None if it was saved by declip 0.1.0.

    Examples
    --------
    >>> import numpy as np
    >>> import declip
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(60, 1)) + 0.2 * rng.normal(size=(60, 5))
    >>> r = declip.restore(np.minimum(truth, 1), ceiling=1, method="tobit", n_components=1)
    >>> r.chosen["method"], r.kept_limits
    ('tobit', False)
    >>> bool(np.all((r.lower <= r.table) & (r.table <= r.upper)))
    True
    """

    table: Any
    flags: Any
    lower: Any
    upper: Any
    intervals: Intervals
    estimator: Any
    scaling: Scaling
    reclip: ReclipResult | None
    chosen: dict[str, Any]
    candidates: list[dict[str, Any]]
    warnings: list[str]
    kept_limits: bool
    coverage: float
    counts: dict[str, int] = field(default_factory=dict)
    expected_gain: float = np.nan
    expected_gain_range: tuple[float, float] = (np.nan, np.nan)
    expected_factors: tuple[float, float] = (np.nan, np.nan)
    settings: dict[str, Any] = field(default_factory=dict)
    transposed: bool = False
    model: RestorationModel | None = None

    def predict(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Return what the chosen method expects of single cells, whatever was seen of them.

        Of a row without a cell it is what its features say.

        Parameters
        ----------
        rows, cols : array-like of int or labels
            Rows and columns of the cells, counted from 0, or by text labels.
        """
        table = self.intervals
        labels = table.row_labels, table.col_labels
        at = cells_asked_for(rows, cols, table.shape, labels)[:: -1 if self.transposed else 1]
        values = np.array(self.estimator.predict(*at), np.float64)
        if self.model is not None and (alone := self.model.without_cells(at[0])).any():
            informed = self.model.methods[self.model.informed].estimator
            values[alone] = informed.predict(at[0][alone], at[1][alone])
        return self.scaling.back(values, at[1])

    def fold_in(
        self,
        X: Any,
        ceiling: Any = None,
        floor: Any = None,
        *,
        row_features: Any = None,
        groups: Any = None,
    ) -> Restoration:
        """Restore other rows by the methods that were fitted, under limits of their own.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_rows, n_cols)
            New rows of the same columns, in the units of the table. An `Intervals` has its limits.
        ceiling, floor : see `restore`
            Limits of the new rows.
        row_features, groups : see `restore`
            Features and groups of the new rows, if the table was restored with any.

        Returns
        -------
        Restoration
            Of the new rows. What was tested and chosen is that of the fitted table.
        """
        if self.model is None or self.transposed:
            raise ValueError(
                "New rows cannot be restored by this restoration: "
                + (
                    "each of its rows has units of its own. Restore the table with the new rows in "
                    'it, or with scale="columns".'
                    if self.transposed
                    else "it was saved by declip 0.1.0, without its model. Restore the table again."
                )
            )
        container = opened(X)
        if isinstance(X, Intervals):
            intervals = as_intervals(X, ceiling, floor)
        else:
            tol = self.model.settings.tol
            intervals = as_intervals(container, ceiling, floor, tol, allow_empty=True)
        check_same_columns(intervals, self.intervals)
        known = Known(row_features=row_features, groups=groups)
        model, kind = self.model.for_rows(intervals, known), OutputKind.of(container, intervals)
        filled = filled_cells(kind.missing(intervals), model)
        restored = restored_cells(intervals, model)
        blocks = [CellBlock.exact(intervals), restored.block, filled]
        counts = counts_of(blocks)
        return replace(
            self,
            **tables_of(blocks, kind),
            **expected_gain(restored, model.table.scaling, tested=self.reclip is not None),
            intervals=intervals,
            estimator=model.methods[0].estimator,
            kept_limits=intervals.n_censored > 0 and counts["restored"] == 0,
            counts=counts,
            model=model,
        )

    def transform(
        self,
        X: Any,
        ceiling: Any = None,
        floor: Any = None,
        *,
        row_features: Any = None,
        groups: Any = None,
    ) -> Any:
        """Return other rows restored by the methods that were fitted, as `fold_in` does.

        Parameters
        ----------
        X, ceiling, floor, row_features, groups
            See `fold_in`.

        Returns
        -------
        array, frame or sparse matrix
            Of the kind of ``X``.
        """
        return self.fold_in(X, ceiling, floor, row_features=row_features, groups=groups).table

    def sample(self, n: int = 20, random_state: int | None = None) -> list[Any]:
        """Return complete tables drawn from what is known: multiple imputations.

        Exact cells keep their values. Clipped cells are drawn within their intervals and missing
        ones where they may lie, by the methods that count, in the units of the table. For each
        table the parameters of a method are drawn first (of a method without a posterior by a fit
        to rows drawn with replacement), so that tables differ by as much as is unknown. Cells that
        nothing determines stay at their limit or empty, as in ``table``, unless ``fill="all"`` was
        asked for; those whose limit was kept for want of a gain are drawn.

        Analyse each table and pool the results (`pooled_fit`, `pool`), or see `summary`.

        Parameters
        ----------
        n : int, default=20
            Number of tables.
        random_state : int or None, default=None
            Seed of what is drawn; None is that of the restoration.

        Returns
        -------
        list
            Tables of the kind and with the labels of the input; of an AnnData frames, as its
            ``to_df`` gives.

        Examples
        --------
        >>> import numpy as np
        >>> import declip
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.normal(size=(60, 1)) + 0.2 * rng.normal(size=(60, 5))
        >>> r = declip.restore(np.minimum(truth, 1), ceiling=1, method="normal")
        >>> tables = r.sample(5)
        >>> bool(all(np.all(t[truth > 1] > 1) for t in tables))
        True
        """
        size = float(np.prod(self.intervals.shape))
        if not sparse.issparse(self.lower):
            check_memory((n, int(size)), np.float64, "sample", "iter_samples yields one at a time.")
        return list(self.iter_samples(n, random_state))

    def iter_samples(self, n: int = 20, random_state: int | None = None) -> Iterator[Any]:
        """Yield the tables of `sample` one at a time, of which only one is then in memory.

        Parameters
        ----------
        n : int, default=20
            Number of tables.
        random_state : int or None, default=None
            Seed of what is drawn; None is that of the restoration.
        """
        cells = self.imputation
        kind = self._output_kind
        at = (cells.cols, cells.rows) if self.transposed else (cells.rows, cells.cols)
        for values in cells.tables(n, random_state):
            yield kind.numbers((*at, values))

    def summary(
        self,
        statistics: Sequence[str] = DEFAULT,
        by: Any = None,
        criterion: Any = None,
        confidence: float = 0.95,
        *,
        n: int = 50,
        random_state: int | None = None,
    ) -> Summary:
        """Return statistics of each column with intervals that count what was censored.

        They are pooled over imputations (see `sample`) by Rubin's rules, on the scale of logarithms
        for columns that were restored in logarithms; of shares the chance of what is drawn is
        counted once only. Beside them stand Kaplan-Meier, robust
        regression on order statistics, maximum likelihood and half the limit. Memory does not grow
        with the number of imputations.

        Parameters
        ----------
        statistics : sequence of str
            "mean", "geometric_mean", "sd", "median" and percentiles such as "p90".
        by : str or array-like, optional
            A column of the table whose values are groups of rows, or a label for each row; rows
            without a label are a group of their own.
        criterion : float, sequence or mapping, optional
            Adds the share of values above it: one for all columns, one for each, or a mapping from
            column to number, in the units of the columns.
        confidence : float, default=0.95
            Of the intervals.
        n : int, default=50
            Imputations.
        random_state : int or None, default=None
            Seed of what is drawn; None is that of the restoration.

        Returns
        -------
        Summary
            With a ``table`` of the kind of the input, and ``plot()``.

        Examples
        --------
        >>> import numpy as np
        >>> import declip
        >>> rng = np.random.default_rng(0)
        >>> truth = np.exp(rng.normal(size=(80, 1)) + 0.5 * rng.normal(size=(80, 4)))
        >>> r = declip.restore(np.maximum(truth, 0.5), floor=0.5, log=True, method="normal")
        >>> found = r.summary(["geometric_mean"], criterion=3)
        >>> sorted(set(found.table["statistic"]))
        ['geometric_mean', 'share_above']
        """
        return summary_of(
            self,
            statistics,
            by=by,
            criterion=criterion,
            confidence=confidence,
            n=n,
            random_state=random_state,
        )

    @cached_property
    def imputation(self) -> Imputation:
        """All cells, and how those that are not exact are drawn."""
        if self.model is None:
            raise ValueError(
                "This restoration was saved by declip 0.1.0, without the model that made it: "
                "restore the table again to draw from it."
            )
        return Imputation.of(self.model, self.intervals, self._output_kind)

    @property
    def _output_kind(self) -> OutputKind:
        """The kind of the input, which the bands have too."""
        return OutputKind.of(opened(self.lower), self.intervals)

    @property
    def verdict(self) -> str:
        """What can be said of the clipped cells, in a sentence or two: the same everywhere."""
        return verdict(self)

    def as_text(self, fill: bool = True) -> str:
        """Return the page that `print` shows.

        Parameters
        ----------
        fill : bool, default=True
            Whether missing cells are filled where the table goes; a file may keep them empty.

        Returns
        -------
        str
            What was clipped, what was done about it, and how far it can be trusted.

        Examples
        --------
        >>> import numpy as np
        >>> import declip
        >>> truth = np.random.default_rng(0).normal(size=(40, 1)) + np.arange(4) / 9
        >>> truth[0, 0] = np.nan
        >>> r = declip.restore(np.minimum(truth, 1), ceiling=1, method="column")
        >>> "missing: left empty" in r.as_text(fill=False)
        True
        """
        return page(self, fill)

    def report(self, path: str | Path, *, source: Any = None, overwrite: bool = False) -> Path:
        """Write one self-contained HTML page with pictures: what was done, and how far to trust it.

        Parameters
        ----------
        path : str or Path
            File to come.
        source : TableFile, str or Path, optional
            The file that the table came from, for the lines that make the restoration again.
        overwrite : bool, default=False
            Whether a file that exists may be replaced.
        """
        from declip.report import write_report

        return write_report(self, path, source=source, overwrite=overwrite)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write everything to a file, from which `declip.load` makes it anew.

        Parameters
        ----------
        path : str or Path
            File to come, usually named ``.npz``.
        overwrite : bool, default=False
            Whether a file that exists may be replaced.
        """
        return persistence.save(self, path, overwrite=overwrite)

    def _repr_html_(self) -> str | None:
        try:
            from declip.report import notebook_html
        except MissingExtra:
            return None  # a notebook then shows the text
        return notebook_html(self)

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        n_rows, n_cols = self.intervals.shape
        counts = ", ".join(f"{n} {flag}" for flag, n in self.counts.items())
        return f"Restoration({n_rows} x {n_cols}: {counts}; method {self.chosen['method']!r})"


class _FlagTable:
    """The table of flags, made of their codes when it is first read: words take many bytes each."""

    def __get__(self, owner: Restoration | None, kind: type | None = None) -> Any:
        if owner is None:
            raise AttributeError("flags are those of a restoration")
        held = vars(owner)["_flags"]
        if isinstance(held, Flags):
            held = vars(owner)["_flags"] = owner._output_kind.words(held.to_numpy())
        return held

    def __set__(self, owner: Restoration, flags: Any) -> None:
        vars(owner)["_flags"] = flags


Restoration.flags = _FlagTable()
