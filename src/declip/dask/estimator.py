"""FroCMC on the workers of a Dask cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from declip import estimators
from declip.blocks.checkpoint import BlockCheckpoint, load_part, save_part
from declip.blocks.problem import Scattered, fit_blocks
from declip.blocks.staging import Labels
from declip.blocks.table import BlockTable
from declip.dask.labels import numbered
from declip.dask.running import (
    ClusterRunner,
    current_client,
    stop_if_folder_is_not_shared,
    with_workers_that_stay,
)
from declip.dask.sources import is_frame, is_long, table_of
from declip.lowrank import LowRank
from declip.validation import (
    check_memory,
    check_selection,
    named_columns,
    refuse_side_information,
)

__all__ = ["FroCMC"]

_LOCAL = set(estimators.FroCMC().get_params())
_OF_ONE_MACHINE = (
    "order",
    "smooth",
    "period",
    "scale",
    "init",
    "warm_start",
    "half_precision",
    "checkpoint",
    "on_interrupt",
)
_ONE_MACHINE = "give checkpoint_dir, and the row factors stay in its files."


@dataclass(frozen=True)
class _Prepared:
    """A table of blocks, with where it is worked on and where the fit is kept."""

    table: BlockTable
    folder: Path
    runner: ClusterRunner
    labels: Labels


class FroCMC(estimators.FroCMC):
    r"""Restore clipped and missing cells by a factor model, on the workers of a Dask cluster.

    The objective and its minimisation are those of `declip.FroCMC`: with the same seed a fit starts
    at the same place and ends at the same objective. The table is cut into blocks of rows on disk,
    each fitted where it is; between them go only the column factors and sums over columns. The
    result does not depend on the number of workers, to the last bit, nor on workers that die.

    Parameters
    ----------
    n_components : int, default=10
        Number of factors k, from 1 to the smaller side of the table.
    ceiling, floor : None, scalar, array-like, mapping or str, default=None
        Limits: a scalar, one per column, one per row of shape (n_samples, 1), or a mapping from
        column to limit; for a long table also the name of the column that holds the limit of each
        cell, NaN where there is none.
    clipped : {"hinge", "tobit", "value", "missing"}, default="hinge"
        How clipped cells count, as in `declip.FroCMC`.
    alpha : float, default=0.1
        Strength of the penalty, against a sum of cell losses.
    bias : bool, default=False
        Whether to add a mean and penalised row and column offsets.
    alpha_bias : float or None, default=None
        Strength of the penalty on the offsets; None is ``alpha``.
    max_iter : int, default=300
        Sweeps at most.
    tol : float, default=1e-6
        Stop when the objective fell by less than this share of itself (for "tobit": this much a
        cell) in each of three sweeps in a row.
    random_state : int, RandomState instance or None, default=None
        Seed of the start.
    n_jobs : int or None, default=None
        Threads of one task; None is 1. A worker runs as many tasks at a time as it has threads.
    verbose : int, default=0
        Print the objective every so many sweeps.
    client : distributed.Client or None, default=None
        The client of the cluster; None is the one in force. None is ever started.
    checkpoint_dir : path or None, default=None
        Folder for the blocks, the state of the fit and its row factors, on a file system that the
        driver and all workers share. A fit that finds its own state there resumes it. None is a
        temporary folder, removed after the fit: enough for a cluster on one machine.
    checkpoint_every : int, default=5
        Sweeps between two checkpoints, and so at most that are made again after a loss.
    n_blocks : int or None, default=None
        Blocks to cut the table into, at least one for each thread of the cluster to be busy; None
        makes them of some four million cells. The result depends on it in the last bits.
    cells : three str, default=("row", "column", "value")
        Columns of a long table that hold the row and the column of a cell, and its value. Numbers
        count from 0; other ids, of a data frame alone, are sorted and kept as labels. A data frame
        with all three is a long table, any other a wide one.

    Attributes
    ----------
    row_factors_ : dask.array.Array of shape (n_samples, n_components)
        Row factors P.
    components_ : ndarray of shape (n_components, n_features)
        Column factors Q^T.
    row_offset_ : dask.array.Array of shape (n_samples,)
        Offsets of the rows; zero without ``bias``.
    column_offset_, mean_, has_offsets_, scale_, singular_values_, objective_, history_, n_iter_
        As in `declip.FroCMC`.
    converged_, n_features_in_, feature_names_in_
        As in `declip.FroCMC`.
    gap_ : float
        NaN: no certificate is computed.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from distributed import Client
    >>> from declip.dask import FroCMC
    >>> truth = np.outer([1.0, 2, 3, 4], [1.0, 2, 3])
    >>> seen = da.from_array(np.minimum(truth, 8), chunks=(2, 3))
    >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    ...     model = FroCMC(n_components=1, ceiling=8, alpha=1e-3, random_state=0).fit(seen)
    ...     restored = model.transform(seen).compute()
    >>> np.round(restored[3], 1)
    array([ 4.,  8., 12.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: constraint
            for name, constraint in estimators.FroCMC._parameter_constraints.items()
            if name not in _OF_ONE_MACHINE
        },
        "client": "no_validation",
        "checkpoint_dir": [str, os.PathLike, None],
        "checkpoint_every": [Interval(Integral, 1, None, closed="left")],
        "n_blocks": [Interval(Integral, 1, None, closed="left"), None],
        "cells": [list, tuple],
    }
    init = "random"
    order = period = None
    smooth = 1
    warm_start = half_precision = False
    checkpoint = None
    on_interrupt = "raise"
    scale = "none"

    def __init__(
        self,
        n_components: int = 10,
        *,
        ceiling: Any = None,
        floor: Any = None,
        clipped: str = "hinge",
        alpha: float = 0.1,
        bias: bool = False,
        alpha_bias: float | None = None,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Any = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 5,
        n_blocks: int | None = None,
        cells: tuple[str, str, str] = ("row", "column", "value"),
    ) -> None:
        self.n_components = n_components
        self.ceiling = ceiling
        self.floor = floor
        self.clipped = clipped
        self.alpha = alpha
        self.bias = bias
        self.alpha_bias = alpha_bias
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.client = client
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = checkpoint_every
        self.n_blocks = n_blocks
        self.cells = cells

    def _fit(self, X: Any, y: Any, dense_result: bool = False, known: Any = None) -> Any:
        return with_workers_that_stay(partial(super()._fit, X, y, dense_result, known))

    @contextmanager
    def _opened(self, X: Any, dense_result: bool) -> Iterator[Any]:
        client = current_client(self.client)
        with self._folder() as folder:
            stop_if_folder_is_not_shared(client, folder)
            cells = (self.cells[0], self.cells[1], self.cells[2])
            source, labels = numbered(X, cells)
            table = table_of(
                source,
                folder,
                ClusterRunner(client),
                ceiling=self.ceiling,
                floor=self.floor,
                cells=cells,
                n_blocks=self.n_blocks,
                labels=labels,
            )
            yield _Prepared(table, folder, ClusterRunner(client, len(table.blocks)), labels)

    def _columns(self, X: Any, table: _Prepared) -> dict[str, Any]:
        rows, columns = table.labels
        names = named_columns(table.table.shape[1], columns)
        return names | {"row_labels_": rows, "column_labels_": columns}

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        if self.checkpoint_dir is None:
            with tempfile.TemporaryDirectory(prefix="declip-") as name:
                yield Path(name)
        else:
            folder = Path(self.checkpoint_dir).absolute()
            folder.mkdir(parents=True, exist_ok=True)
            yield folder

    def _check_fittable(self, table: _Prepared) -> _Prepared:
        super()._check_fittable(table.table)
        return table

    def _settled(self, table: Any) -> tuple[Any, dict[str, Any]]:
        return table, super()._settled(table.table)[1]

    def _solve(self, table: Any, settled: dict[str, Any], **watched: Any) -> Any:
        checkpoint = BlockCheckpoint(
            table.folder / "state", self._fit_of(table.table), table.runner, self.checkpoint_every
        )
        watching = {"on_sweep": watched["on_sweep"], "resume_point": checkpoint}
        stopping = self._stopping(**watching, **self._ends(table.table))
        return fit_blocks(self._block_problem(table.table, settled, table.runner), stopping)

    def _check_finite(self, *found: Any) -> None:
        """Look at what is here: the objective tells of the rows, which stay with the workers."""
        super()._check_finite(*(part for part in found if isinstance(part, float | np.ndarray)))

    def _fit_of(self, table: BlockTable) -> dict[str, Any]:
        """Return what a fit is of, so that another one does not resume it."""
        seed = int(self.random_state) if isinstance(self.random_state, Integral) else None
        return {
            "data": table.digest,
            "n_components": int(self.n_components),
            "alpha": float(self.alpha),
            "alpha_bias": None if self.alpha_bias is None else float(self.alpha_bias),
            "bias": bool(self.bias),
            "clipped": self.clipped,
            "random_state": seed,
        }

    def _finished(self, table: _Prepared, state: Any) -> dict[str, Any]:
        """Return the attributes with the factors: rows as a lazy array, columns in memory."""
        A, B = self._kept_rows(table, state.factors), state.factors.columns()
        if table.table.transposed:
            A, B = da.from_array(B), A.compute()
        k = int(self.n_components)
        offsets = (A[:, -1], B[:, -1]) if self.bias else (da.zeros(len(A)), np.zeros(len(B)))
        return {
            "mean_": state.factors.mean,
            "has_offsets_": bool(self.bias),
            "scale_": state.scale,
            "history_": state.history,
            "objective_": float(state.history[-1]),
            "n_iter_": state.n_iter,
            "converged_": state.converged,
            "singular_values_": state.factors.singular_values(),
            "gap_": float("nan"),
            "row_factors_": A[:, :k],
            "components_": np.ascontiguousarray(B[:, :k].T),
            "row_offset_": offsets[0].astype(B.dtype),
            "column_offset_": offsets[1].astype(B.dtype),
        }

    def _kept_rows(self, prepared: _Prepared, fitted: Scattered) -> Any:
        """Return the factors of all blocks: in files, or without a place for them in memory."""
        table, runner = prepared.table, prepared.runner
        width = int(self.n_components) + bool(self.bias)
        if self.checkpoint_dir is None:
            shape = (table.cut_shape[0], width)
            check_memory(shape, table.dtype, "The row factors", _ONE_MACHINE)
            rows = [part.now for part in runner.values(fitted.rows)]
            return da.from_array(np.concatenate(rows), chunks=(tuple(map(len, rows)), width))
        folder = prepared.folder / "factors"
        folder.mkdir(exist_ok=True)
        paths = [str(folder / f"rows-{b:05d}.npy") for b in range(len(table.blocks))]
        sums = runner.values(
            [runner.submit(save_part, p, f) for p, f in zip(fitted.rows, paths, strict=True)]
        )
        return da.concatenate(
            [
                da.from_delayed(
                    delayed(_rows_of)(path, checksum), (block.n_rows, width), table.dtype
                )
                for block, path, checksum in zip(table.blocks, paths, sums, strict=True)
            ]
        )

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and return the restored table, to be computed when it is asked for."""
        if fit_params:
            raise TypeError(f"fit_transform takes no {', '.join(fit_params)}")
        return self.fit(X, y).transform(X)

    def transform(self, X: Any, row_features: Any = None, groups: Any = None) -> Any:
        """Restore a table, solving for its rows with the fitted column factors.

        Parameters
        ----------
        X : dask array, wide dask data frame, or a table in memory
            ``ceiling`` and ``floor`` of the estimator apply, if they are not those of single rows.
        row_features, groups : None
            Not taken here: see `fit`.

        Returns
        -------
        dask array or data frame
            To be computed when it is asked for; of a table in memory an array.
        """
        check_is_fitted(self)
        _refuse_known(row_features=row_features, groups=groups)
        if is_frame(X):
            if is_long(X, self.cells):
                raise TypeError("A long table has no rows to restore: use predict(rows, cols).")
            meta = X._meta.astype(np.result_type(self.components_, np.float64))
            return X.map_partitions(_restored_frame, delayed(self._on_one_machine()), meta=meta)
        if not isinstance(X, da.Array):
            return super().transform(X)
        if X.shape[1] != self.n_features_in_:
            self._on_one_machine().transform(np.zeros((1, X.shape[1])))  # says what is wrong
        return X.rechunk({1: -1}).map_blocks(
            _restored_rows,
            model=delayed(self._on_one_machine()),
            meta=np.empty((0, 0), np.result_type(X.dtype, self.components_)),
        )

    def _on_one_machine(self) -> estimators.FroCMC:
        """Return the fitted estimator for tables in memory, without the rows of this fit."""
        params = {name: value for name, value in self.get_params().items() if name in _LOCAL}
        local = estimators.FroCMC(**params)
        local.__dict__.update({name: v for name, v in vars(self).items() if name.endswith("_")})
        k = len(self.components_)
        local.row_factors_ = np.zeros((0, k), self.components_.dtype)
        local.row_offset_ = np.zeros(0, self.components_.dtype)
        return local

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fit to a file, from which `declip.load` makes a `declip.FroCMC`.

        Parameters
        ----------
        path : str or Path
            File to come; the row factors are brought together in memory for it.
        overwrite : bool, default=False
            Whether a file that exists may be replaced.
        """
        check_is_fitted(self)
        shape, dtype = self.row_factors_.shape, self.components_.dtype
        check_memory(shape, dtype, "The row factors", "keep them in the files of checkpoint_dir.")
        local = self._on_one_machine()
        local.row_factors_, local.row_offset_ = da.compute(self.row_factors_, self.row_offset_)
        return local.save(path, overwrite=overwrite)

    def _some_rows(self, rows: NDArray) -> LowRank:
        """Return the fitted matrix of some rows."""
        return self._columns_with(*da.compute(self.row_factors_[rows], self.row_offset_[rows]))

    def predict(
        self,
        rows: Any,
        cols: ArrayLike | None = None,
        row_features: Any = None,
        groups: Any = None,
    ) -> NDArray:
        """Return the low-rank estimate of single cells of the fitted table, or of a new table.

        Parameters
        ----------
        rows : array-like of int or labels, or a table in memory
            As in `declip.FroCMC`.
        cols : array-like of int or labels, optional
            Columns of the cells, as many as ``rows``.
        row_features, groups : None
            Not taken here: see `fit`.
        """
        check_is_fitted(self)
        _refuse_known(row_features=row_features, groups=groups)
        if cols is None:
            return self._on_one_machine().predict(rows)
        shape = (self.row_factors_.shape[0], self.n_features_in_)
        rows, cols = self._positions(rows, cols, shape)
        different, which = np.unique(rows, return_inverse=True)
        return self._some_rows(different).predict(which.astype(np.int32), cols)

    def predictive(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray, NDArray]:
        """Refuse: the cells of the fit are not at hand, and with them the noise."""
        raise TypeError(
            "predictive needs the cells of the fit, which stay in the blocks: fit declip.FroCMC to "
            "the rows that are asked about."
        )

    def reconstruct(self, rows: Any = None, cols: Any = None) -> NDArray:
        """Return a dense block of the fitted low-rank matrix.

        Parameters
        ----------
        rows, cols : array-like of int or bool, slice, optional
            Which rows and columns; all by default.
        """
        check_is_fitted(self)
        chosen = check_selection(rows, self.row_factors_.shape[0], "rows")
        columns = check_selection(cols, self.n_features_in_, "cols")
        shape = (len(chosen), len(columns))
        check_memory(shape, self.components_.dtype, "reconstruct", "ask for fewer rows or columns.")
        return self._some_rows(chosen).block(cols=columns)


def _refuse_known(**given: Any) -> None:
    names = [name for name, part in given.items() if part is not None]
    if names:
        refuse_side_information("A table of Dask", names)


def _rows_of(path: str, checksum: int) -> NDArray:
    return load_part(path, checksum).now


def _restored_rows(rows: NDArray, model: estimators.FroCMC) -> NDArray:
    return model.transform(rows) if rows.size else rows


def _restored_frame(frame: Any, model: estimators.FroCMC) -> Any:
    restored = model.transform(frame)
    return type(frame)(restored, index=frame.index, columns=frame.columns)
