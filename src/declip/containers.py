"""Kinds of tables: how each is seen as rows and columns, and how cells take its form again.

A new kind is one class here, and its line in `_KINDS`.
"""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Container", "label_array", "opened"]

Labels = tuple[NDArray[Any] | None, NDArray[Any] | None]


class Container:
    """An array, a list or a sparse matrix, which is read and given back as it is.

    Other kinds say what differs.

    Parameters
    ----------
    X : Any
        The table.
    layer, copy : see `declip.restore`
        For kinds that hold several tables.

    Attributes
    ----------
    table : array-like, frame, sparse matrix or Intervals
        What the readers take.
    labels : pair of ndarray or None
        Of rows and columns, where the table itself carries none.
    foreign : bool
        Whether scikit-learn does not know this kind.
    """

    foreign: ClassVar[bool] = False

    def __init__(self, X: Any, layer: str | None = None, copy: bool = True) -> None:
        if layer is not None or not copy:
            raise TypeError(f"layer= and copy= are for an AnnData; X is a {type(X).__name__}.")
        self.X = X

    @staticmethod
    def takes(X: Any) -> bool:
        """Tell whether something is of this kind."""
        return True

    @property
    def table(self) -> Any:
        """The table as the readers take it."""
        return self.X

    @property
    def labels(self) -> Labels:
        """Labels of rows and columns."""
        return None, None

    def limit(self, limit: Any, side: str) -> Any:
        """Return a ceiling or floor that is given in the words of this kind as numbers."""
        return limit

    def packed(self, cells: NDArray[Any]) -> Any:
        """Return numbers or words, one for each cell, as a table of this kind."""
        return cells

    def joined(self, table: Any, flags: Any, lower: Any, upper: Any) -> Any:
        """Return the restored table; a kind that holds several tables takes in all four."""
        return table


class _Frame(Container):
    """A frame of pandas, polars or any other library that narwhals knows."""

    @staticmethod
    def takes(X: Any) -> bool:
        try:
            return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)
        except DuplicateError:
            names = list(X.columns)
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"Two columns are named {twice!r}: rename one of them.") from None

    def packed(self, cells: NDArray[Any]) -> Any:
        frame = nw.from_native(self.X, eager_only=True)
        library = nw.get_native_namespace(frame)
        if nw.maybe_get_index(frame) is not None:
            made = library.DataFrame(cells, index=self.X.index, columns=self.X.columns)
            return made.astype(_nullable(self.X, cells.dtype))
        columns = dict(zip(frame.columns, np.asfortranarray(cells).T, strict=True))
        made = nw.from_dict(columns, backend=library)
        if cells.dtype.kind == "f":
            made = made.with_columns(nw.all().fill_nan(None))
        return made.to_native()


def _nullable(X: Any, dtype: np.dtype) -> dict[Any, str]:
    """Return the types of the columns of a pandas frame that have a missing value of their own."""
    if dtype.kind != "f":
        return {}
    arrow = {4: "float[pyarrow]", 8: "double[pyarrow]"}[dtype.itemsize]
    masked = f"Float{8 * dtype.itemsize}"
    return {
        name: arrow if type(given).__name__ == "ArrowDtype" else masked
        for name, given in X.dtypes.items()
        if not isinstance(given, np.dtype) and given.kind in "biuf"
    }


class _DataArray(Container):
    """An array of xarray: its last dimension is the columns, all before it are stacked to rows."""

    foreign = True

    @staticmethod
    def takes(X: Any) -> bool:
        return _is_a(X, "xarray", "DataArray")

    @property
    def table(self) -> Any:
        if self.X.ndim < 2:
            raise ValueError(
                f"X has the dimensions {self.X.dims}: a table needs two or more, of which the last "
                "is that of the columns."
            )
        return self._flat(self.X.values)

    def _flat(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(-1, values.shape[-1])

    @property
    def labels(self) -> Labels:
        *rows, cols = (self._labels(dim) for dim in self.X.dims)
        return label_array(rows[0] if len(rows) == 1 else list(product(*rows))), label_array(cols)

    def _labels(self, dim: Any) -> list[Any]:
        return list(self.X.indexes[dim] if dim in self.X.indexes else range(self.X.sizes[dim]))

    def limit(self, limit: Any, side: str) -> Any:
        """Spread the limits of an array over the dimensions that it lacks."""
        if not _is_a(limit, "xarray", "DataArray"):
            return limit
        for dim in limit.dims:
            if dim not in self.X.dims:
                raise ValueError(
                    f"{side} has the dimension {dim!r}, which the table does not have."
                )
        shared = [dim for dim in limit.dims if dim in limit.indexes and dim in self.X.indexes]
        limit = limit.reindex({dim: self.X.indexes[dim] for dim in shared})
        return self._flat(limit.broadcast_like(self.X).transpose(*self.X.dims).values)

    def packed(self, cells: NDArray[Any]) -> Any:
        return self.X.copy(data=cells.reshape(self.X.shape))


class _AnnData(Container):
    """Observations by variables, with layers; limits may be named columns of them, or layers."""

    foreign = True

    def __init__(self, X: Any, layer: str | None = None, copy: bool = True) -> None:
        self.X, self.layer, self.copy = X, layer, copy

    @staticmethod
    def takes(X: Any) -> bool:
        return _is_a(X, "anndata", "AnnData")

    @property
    def table(self) -> Any:
        if self.layer is not None and self.layer not in self.X.layers:
            raise ValueError(
                f"The AnnData has no layer {self.layer!r}: it has "
                f"{', '.join(map(repr, self.X.layers)) or 'none'}."
            )
        found = self.X.X if self.layer is None else self.X.layers[self.layer]
        if found is None:
            raise ValueError("The AnnData has no X: name the layer to be restored with layer=.")
        if sparse.issparse(found):
            raise TypeError(
                "The cells of an AnnData are sparse, where absent ones are zeros. If these are "
                "values, make it dense (toarray()); if they are missing, restore the matrix itself."
            )
        return found

    @property
    def labels(self) -> Labels:
        return label_array(self.X.obs_names), label_array(self.X.var_names)

    def limit(self, limit: Any, side: str) -> Any:
        """Look up the name of a column of var or obs, or of a layer; NaN there is no limit."""
        if not isinstance(limit, str):
            return limit
        if limit in self.X.var:
            found = self.X.var[limit].to_numpy(float)
        elif limit in self.X.layers:
            found = np.asarray(self.X.layers[limit], float)
        elif limit in self.X.obs:
            found = self.X.obs[limit].to_numpy(float)[:, None]
        else:
            raise ValueError(f"{side}: the AnnData has no {limit!r} in var, layers or obs.")
        return np.where(np.isnan(found), np.inf if side == "ceiling" else -np.inf, found)

    def packed(self, cells: NDArray[Any]) -> Any:
        """Return a frame, as ``to_df`` of an AnnData does."""
        import pandas as pd

        return pd.DataFrame(cells, index=self.X.obs_names, columns=self.X.var_names)

    def joined(self, table: Any, flags: Any, lower: Any, upper: Any) -> Any:
        """Put the table where it came from, and flags and bands into layers beside it."""
        made = self.X.copy() if self.copy else self.X
        if self.layer is None:
            made.X = table.to_numpy()
        else:
            made.layers[self.layer] = table.to_numpy()
        before = "" if self.layer is None else f"{self.layer}_"
        for name, part in (("flag", flags), ("band_lower", lower), ("band_upper", upper)):
            made.layers[before + name] = part.to_numpy()
        return made


_KINDS: tuple[type[Container], ...] = (_Frame, _DataArray, _AnnData, Container)


def opened(X: Any, layer: str | None = None, copy: bool = True) -> Container:
    """Return a table as its kind; what was opened already stays as it is."""
    if isinstance(X, Container):
        return X
    return next(kind for kind in _KINDS if kind.takes(X))(X, layer, copy)


def label_array(labels: Any) -> NDArray[Any] | None:
    """Return labels as an array of objects; None for 0, 1, 2, ..., which say nothing."""
    labels = list(labels)
    if labels == list(range(len(labels))):
        return None
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _is_a(X: Any, library: str, name: str) -> bool:
    """Tell whether something is of a class, without importing the library that has it."""
    return any(
        kind.__name__ == name and kind.__module__.partition(".")[0] == library
        for kind in type(X).__mro__
    )
