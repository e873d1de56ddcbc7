"""Rating data sets with a ceiling, fetched from their publishers or read from a local folder."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from declip.extras import needs

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings as triplets, users and items numbered from 0 in the order of their ids.

    Attributes
    ----------
    rows, cols : integer ndarray of shape (n_ratings,)
        Number of the user and of the item; each pair occurs once, in the order of the file.
    values : float ndarray of shape (n_ratings,)
        The ratings.
    shape : tuple of int
        Number of users, number of items.
    user_ids, item_ids : integer ndarray
        The ids of the file, sorted: rating k is of item ``item_ids[cols[k]]``.
    ceiling : float
        The top of the scale.
    name : str
        Name of the data set.
    n_duplicates : int
        Lines that were dropped because a later line rates the same item by the same user.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.datasets import Ratings
    >>> ids = np.array([7, 9])
    >>> ratings = Ratings(
    ...     np.array([0, 1]), np.array([1, 0]), np.array([5.0, 3.0]), (2, 2), ids, ids, 5.0, "two"
    ... )
    >>> ratings.to_sparse().toarray()
    array([[0., 5.],
           [3., 0.]])
    """

    rows: NDArray[np.intp] = field(repr=False)
    cols: NDArray[np.intp] = field(repr=False)
    values: NDArray[np.float64] = field(repr=False)
    shape: tuple[int, int]
    user_ids: NDArray[np.int64] = field(repr=False)
    item_ids: NDArray[np.int64] = field(repr=False)
    ceiling: float
    name: str
    n_duplicates: int = 0

    def to_sparse(self) -> csr_array:
        """Return the ratings as a ``scipy.sparse.csr_array``: stored cells are observed."""
        from scipy.sparse import csr_array

        return csr_array((self.values, (self.rows, self.cols)), shape=self.shape)


@dataclass(frozen=True)
class _Source:
    """Where a file comes from, and how its content is known to be right."""

    name: str
    file: str  # path below the data folder
    url: str
    members: list[str] | None  # what to extract from the archive; None: all of it
    zip_hash: str | None
    md5: str


_MOVIELENS_100K = _Source(
    name="MovieLens-100K",
    file="ml-100k/u.data",
    url="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
    members=["ml-100k/u.data"],
    zip_hash="md5:0e33842e24a9c977be4e0107933c0723",
    md5="6e47046882bad158b0efbb84cd5cb987",
)
# The publisher states no checksum of the archive; the extracted file is verified instead.
_FILMTRUST = _Source(
    name="FilmTrust",
    file="filmtrust/ratings.txt",
    url="https://guoguibing.github.io/librec/datasets/filmtrust.zip",
    members=None,
    zip_hash=None,
    md5="4a463fd55c8741491e876fbd2865ed84",
)


def fetch_movielens_100k(data_home: str | os.PathLike[str] | None = None) -> Ratings:
    """Fetch MovieLens-100K: 100,000 ratings from 1 to 5 by 943 users of 1,682 films.

    Parameters
    ----------
    data_home : path-like or None
        Folder that holds ``ml-100k/u.data``. By default the folder that the environment variable
        ``DECLIP_DATA`` names. A folder that is named, either way, is the only place looked at, and
        its files are trusted. If none is named, the data are downloaded once into the user's cache
        and verified.

    Returns
    -------
    Ratings
        The ratings, with ceiling 5.

    Notes
    -----
    The data belong to GroupLens at the University of Minnesota. Their terms allow research use with
    acknowledgement, and neither redistribution nor commercial use without permission; read the
    ``README`` of the archive, https://files.grouplens.org/datasets/movielens/ml-100k-README.txt,
    before use. Publications cite [1]_.

    References
    ----------
    .. [1] F. M. Harper, J. A. Konstan. "The MovieLens Datasets: History and Context." ACM
       Transactions on Interactive Intelligent Systems 5(4), 2015. doi:10.1145/2827872

    Examples
    --------
    >>> from declip.datasets import fetch_movielens_100k
    >>> fetch_movielens_100k().to_sparse().shape  # doctest: +SKIP
    (943, 1682)
    """
    users, items, values = _read(_locate(_MOVIELENS_100K, data_home))
    return _number(users, items, values, ceiling=5.0, name=_MOVIELENS_100K.name)


def fetch_filmtrust(
    data_home: str | os.PathLike[str] | None = None, *, doubled: bool = True
) -> Ratings:
    """Fetch FilmTrust: 35,494 ratings by 1,508 users of 2,071 films.

    Parameters
    ----------
    data_home : path-like or None
        Folder that holds ``filmtrust/ratings.txt``. By default the folder that the environment
        variable ``DECLIP_DATA`` names. A folder that is named, either way, is the only place looked
        at, and its files are trusted. If none is named, the data are downloaded once into the
        user's cache and verified.
    doubled : bool
        True: the half stars 0.5, 1, ..., 4 are doubled to whole numbers 1, 2, ..., 8, as in the
        paper. False: they are left as they are.

    Returns
    -------
    Ratings
        The ratings, with ceiling 8 (4 if not doubled).

    Notes
    -----
    Of the 35,497 lines of the file, 3 rate an item for the second time (user 308, items 12, 207 and
    235). The last rating counts; ``n_duplicates`` is 3.

    The data were collected from the FilmTrust website and published with LibRec by the authors of
    [1]_ for research; no licence to redistribute them is stated. Publications cite [1]_.

    References
    ----------
    .. [1] G. Guo, J. Zhang, N. Yorke-Smith. "A Novel Bayesian Similarity Measure for Recommender
       Systems." International Joint Conference on Artificial Intelligence (IJCAI), 2013.

    Examples
    --------
    >>> from declip.datasets import fetch_filmtrust
    >>> fetch_filmtrust().to_sparse().shape  # doctest: +SKIP
    (1508, 2071)
    """
    users, items, stars = _read(_locate(_FILMTRUST, data_home))
    scale = 2.0 if doubled else 1.0
    return _number(users, items, scale * stars, ceiling=scale * 4.0, name=_FILMTRUST.name)


def _locate(source: _Source, data_home: str | os.PathLike[str] | None) -> Path:
    home = data_home if data_home is not None else os.environ.get("DECLIP_DATA")
    if not home:
        return _download(source)
    path = Path(home) / source.file
    if not path.is_file():
        raise FileNotFoundError(
            f"{source.name}: there is no file {path}. The folder named by data_home or by the "
            f"environment variable DECLIP_DATA must hold {source.file}, which is part of "
            f"{source.url}; name no folder to have it downloaded."
        )
    return path


def _download(source: _Source) -> Path:
    with needs("data"):
        import pooch

    folder, name = source.file.split("/")
    try:
        files = pooch.retrieve(
            source.url,
            known_hash=source.zip_hash,
            fname=f"{folder}.zip",
            path=pooch.os_cache("declip"),
            processor=pooch.Unzip(members=source.members, extract_dir=folder),
        )
    except OSError as error:
        raise OSError(
            f"{source.name} could not be downloaded from {source.url} ({error}). Without a "
            f"network, put its file at {source.file} below a folder of your choice and name that "
            f"folder in the environment variable DECLIP_DATA."
        ) from error
    return _verified(source, [Path(file) for file in files if Path(file).name == name])


def _verified(source: _Source, paths: list[Path]) -> Path:
    md5s = {hashlib.md5(p.read_bytes(), usedforsecurity=False).hexdigest(): p for p in paths}
    if source.md5 not in md5s:
        raise OSError(
            f"{source.name}: the archive {source.url} does not hold the {source.file} that declip "
            f"knows (expected md5 {source.md5}, found {list(md5s) or 'no such file'}). Empty the "
            f"download cache to try again, or name the folder of your own copy in DECLIP_DATA."
        )
    return md5s[source.md5]


def _read(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    users, items, values = np.loadtxt(path, usecols=(0, 1, 2), ndmin=2).T
    return users.astype(np.int64), items.astype(np.int64), values


def _number(
    users: NDArray[np.int64],
    items: NDArray[np.int64],
    values: NDArray[np.float64],
    *,
    ceiling: float,
    name: str,
) -> Ratings:
    user_ids, rows = np.unique(users, return_inverse=True)
    item_ids, cols = np.unique(items, return_inverse=True)
    last = _last_of_each(rows * item_ids.size + cols)
    return Ratings(
        rows=rows[last],
        cols=cols[last],
        values=values[last],
        shape=(user_ids.size, item_ids.size),
        user_ids=user_ids,
        item_ids=item_ids,
        ceiling=ceiling,
        name=name,
        n_duplicates=values.size - last.size,
    )


def _last_of_each(keys: NDArray[np.intp]) -> NDArray[np.intp]:
    # unique returns first positions: those of the reversed keys are the last ones.
    _, from_end = np.unique(keys[::-1], return_index=True)
    return np.sort(keys.size - 1 - from_end)
