"""What estimators of whole tables share, fitted in one way or another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from declip import persistence

__all__ = ["TableTransformer", "refuse_sparse"]


class TableTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """An estimator that restores tables, sparse ones too, and can be kept in a file."""

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fitted estimator to a file, from which `declip.load` makes it anew.

        Parameters, fitted attributes and what `set_output` was asked for are kept, to the last bit;
        callbacks are not. The file appears whole or not at all, and holds no pickle.

        Parameters
        ----------
        path : str or Path
            File to come, usually named ``.npz``.
        overwrite : bool, default=False
            Whether a file that exists may be replaced.
        """
        check_is_fitted(self)
        return persistence.save(self, path, overwrite=overwrite)

    def __sklearn_tags__(self) -> Any:
        """Say that tables may be sparse and have missing cells, and that float32 is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def refuse_sparse(table: Any) -> None:
    """Refuse to predict every cell of a sparse table."""
    if sparse.issparse(table):
        raise TypeError(
            "predict estimates every cell, so it takes no sparse table: ask for single cells "
            "with predict(rows, cols), or use transform."
        )
