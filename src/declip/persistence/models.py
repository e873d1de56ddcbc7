"""Fitted estimators and restorations, saved to a file and loaded from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from declip.persistence.archive import Archive, read_archive, write_archive
from declip.persistence.codec import decode, encode
from declip.persistence.errors import ModelFileError, about_model

__all__ = ["load", "save"]

_KIND = "model"


def save(model: Any, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted estimator or a restoration to a file, for `load`."""
    path = Path(path)
    with about_model(path, "cannot be saved"):
        content, arrays = encode(model)
    return write_archive(path, Archive(_KIND, content, arrays), overwrite=overwrite)


def load(path: str | Path) -> Any:
    """Load what `save` wrote: a fitted estimator, or a `Restoration`.

    Nothing in the file is run: it holds numbers and names of parts, which are checked before they
    are used, by checksums and against each other. It never needs more memory than its own size.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    estimator or Restoration
        Its answers are the same, to the last bit, as those of what was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not one of declip, or was written by a version that does more.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import declip
    >>> table = np.minimum(np.outer([1.0, 2, 3, 4], [1.0, 2, 3]), 8)
    >>> model = declip.FroCMC(n_components=1, ceiling=8, random_state=0).fit(table)
    >>> with TemporaryDirectory() as folder:
    ...     path = model.save(Path(folder, "model.npz"))
    ...     twin = declip.load(path)
    >>> bool(np.all(twin.reconstruct() == model.reconstruct()))
    True
    """
    path = Path(path)
    archive = read_archive(path, _KIND)
    with about_model(path, f"cannot be loaded (it was written by declip {archive.library})"):
        found = decode(archive.content, archive.arrays)
    if not hasattr(found, "save"):
        raise ModelFileError(path, f"it holds a {type(found).__name__}, not a model")
    return found
