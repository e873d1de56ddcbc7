"""Low-rank tables with a known truth, clipped and thinned out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

_NMF_SWEEPS = 200
_MAX_DRAWS = 10

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Seed = int | np.random.Generator | None


@dataclass(frozen=True, eq=False)
class ClippedLowRank:
    """A low-rank table, and what is left of it after clipping and removing cells.

    "Before clipping" means ``truth`` plus the noise, if noise was asked for.

    Attributes
    ----------
    truth : ndarray of shape (n_rows, n_cols)
        The low-rank matrix, without noise. Whole numbers (stored as floats) if ``integer=True``.
    table : ndarray of shape (n_rows, n_cols)
        What is seen: the values clipped to [floor, ceiling], NaN where unobserved.
    observed : boolean ndarray of shape (n_rows, n_cols)
        The cells that are seen.
    clipped : boolean ndarray of shape (n_rows, n_cols)
        Observed cells that were strictly beyond a limit before clipping: a value was changed.
    at_limit : boolean ndarray of shape (n_rows, n_cols)
        Observed cells that lie at a limit in ``table``: ``clipped`` and the ties.
    ceiling, floor : float, ndarray or None
        The limits, as they were given.
    rank : int
        The rank of ``truth``.
    clip_rate : float
        Share of all cells, observed or not, strictly beyond a limit before clipping.
    at_limit_rate : float
        Share of all cells, observed or not, at or beyond a limit before clipping.

    Examples
    --------
    >>> from declip.datasets import make_clipped_low_rank
    >>> data = make_clipped_low_rank(40, 50, 3, ceiling=9, random_state=0)
    >>> bool((data.table[data.clipped] == 9).all() and (data.truth[data.clipped] > 9).all())
    True
    """

    truth: Floats = field(repr=False)
    table: Floats = field(repr=False)
    observed: Mask = field(repr=False)
    clipped: Mask = field(repr=False)
    at_limit: Mask = field(repr=False)
    ceiling: float | Floats | None
    floor: float | Floats | None
    rank: int
    clip_rate: float
    at_limit_rate: float


def make_clipped_low_rank(
    n_rows: int = 500,
    n_cols: int = 800,
    rank: int = 30,
    *,
    ceiling: ArrayLike | None = None,
    floor: ArrayLike | None = None,
    high: int = 15,
    integer: bool = True,
    noise: float = 0.0,
    observed: float = 0.8,
    random_state: Seed = None,
) -> ClippedLowRank:
    """Draw a non-negative low-rank table and hide what lies beyond its limits.

    Entries are drawn uniformly from {1, ..., high}; a non-negative factorisation W H of the given
    rank approximates them; the draw is repeated until the rank is exactly ``rank``. The result is
    then clipped, and a random share of its cells is kept.

    Parameters
    ----------
    n_rows, n_cols : int
        Size of the table.
    rank : int
        Rank of the truth.
    ceiling, floor : array-like or None
        Upper and lower limits: a scalar, one per column, one per row with shape (n_rows, 1), or
        one per cell. None, or an infinite entry, is no limit.
    high : int
        Largest entry of the random matrix that is factorised. The truth itself may exceed it.
    integer : bool
        True: ``truth = rint(W) @ rint(H)``, whole numbers of exactly the given rank.
        False: ``truth = W @ H``, continuous.
    noise : float
        Standard deviation of the Gaussian noise added before clipping.
    observed : float
        Share of cells that are observed, in (0, 1].
    random_state : int, numpy.random.Generator or None
        An int gives the same data at every call. The truth and the order in which cells are
        observed depend neither on the limits nor on the noise.

    Returns
    -------
    ClippedLowRank
        The truth, the clipped table and the masks between them.

    See Also
    --------
    split_cells : Split cells into training, validation and test cells.

    Notes
    -----
    This is the generator of [1]_, appendix "The generation process of the synthetic data", with
    the factorisation of [2]_: 200 rounds of multiplicative updates of the squared error, from
    factors uniform on [0, 1).

    The appendix asks for a matrix that is integer and exactly of rank r, but does not say how: raw
    products are not integer, and rounding them destroys the rank. Here the factors are rounded.
    Since W H is unchanged when a column of W grows as its row of H shrinks, each such pair is first
    scaled to have the same largest entry. Rounding small factors to zero lowers the level: at the
    default size the truth averages about 6.7, the raw product 8. The shares of cells above a
    ceiling C are then, to within about .01 from seed to seed,

    ==========  ===  ===  ===  ===  ===
    C             5    6    7    8    9
    share > C   .70  .52  .34  .20  .10
    ==========  ===  ===  ===  ===  ===

    More updates would give sparser factors, larger rounded products and higher shares.

    Data are reproducible on one machine, whatever its number of threads; another linear algebra
    library may differ in the last bits, and so, rarely, in a rounded factor.

    References
    ----------
    .. [1] T. Teshima, M. Xu, I. Sato, M. Sugiyama. "Clipped Matrix Completion: A Remedy for
       Ceiling Effects." AAAI Conference on Artificial Intelligence, 2019.
    .. [2] D. D. Lee, H. S. Seung. "Algorithms for Non-negative Matrix Factorization." Advances in
       Neural Information Processing Systems 13, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.datasets import make_clipped_low_rank, split_cells
    >>> data = make_clipped_low_rank(40, 50, 3, ceiling=9, random_state=0)
    >>> int(np.linalg.matrix_rank(data.truth))
    3
    >>> float(np.nanmax(data.table))
    9.0

    Validation and test cells, for a split of 80, 10 and 10 percent:

    >>> validation, test = split_cells(~data.observed, (0.5, 0.5), random_state=0)
    >>> int(data.observed.sum()), int(validation.sum()), int(test.sum())
    (1600, 200, 200)
    """
    from threadpoolctl import threadpool_limits

    shape = (n_rows, n_cols)
    _check_request(shape, rank, high, noise, observed)
    lower, upper = _limits(floor, ceiling, shape)
    rng = np.random.default_rng(random_state)
    with threadpool_limits(1, user_api="blas"):  # the same data with any number of threads
        truth = _exact_rank(shape, rank, high, integer, rng)
    seen = split_cells(shape, (observed, 1 - observed), rng)[0]
    values = truth + noise * rng.standard_normal(shape)  # drawn last: truth and cells stay the same
    beyond = (values < lower) | (values > upper)
    reached = (values <= lower) | (values >= upper)
    return ClippedLowRank(
        truth=truth,
        table=np.where(seen, np.clip(values, lower, upper), np.nan),
        observed=seen,
        clipped=seen & beyond,
        at_limit=seen & reached,
        ceiling=_as_given(ceiling),
        floor=_as_given(floor),
        rank=rank,
        clip_rate=float(beyond.mean()),
        at_limit_rate=float(reached.mean()),
    )


def split_cells(
    cells: ArrayLike,
    ratios: Sequence[float] = (0.8, 0.1, 0.1),
    random_state: Seed = None,
) -> tuple[Mask, ...]:
    """Split the cells of a table at random into disjoint parts.

    Parameters
    ----------
    cells : array-like of bool or tuple of int
        The cells to split, as a mask, or the shape of a table of which every cell is split.
    ratios : sequence of float
        Share of each part; they sum to one. The sizes are exact up to rounding.
    random_state : int, numpy.random.Generator or None
        An int gives the same parts at every call.

    Returns
    -------
    tuple of boolean ndarray
        One mask for each ratio. The masks are disjoint and together make up ``cells``.

    Examples
    --------
    >>> from declip.datasets import split_cells
    >>> train, validation, test = split_cells((10, 20), random_state=0)
    >>> int(train.sum()), int(validation.sum()), int(test.sum())
    (160, 20, 20)
    """
    shares = np.asarray(ratios, dtype=float)
    if shares.ndim != 1 or (shares < 0).any() or not np.isclose(shares.sum(), 1.0):
        raise ValueError(f"ratios must be non-negative and sum to one, got {ratios!r}")
    mask = _as_mask(cells)
    order = np.random.default_rng(random_state).permutation(np.flatnonzero(mask))
    ends = np.rint(np.cumsum(shares) * order.size).astype(int)
    return tuple(_mask_of(part, mask.shape) for part in np.split(order, ends[:-1]))


def _as_mask(cells: ArrayLike) -> Mask:
    array = np.asarray(cells)
    if array.dtype == np.bool_:
        return array
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        return np.ones(tuple(array), dtype=bool)
    raise ValueError(
        f"cells must be a boolean mask or a shape, got an array of {array.dtype} with shape "
        f"{array.shape}; for the observed cells of a table X pass ~np.isnan(X)"
    )


def _mask_of(flat: NDArray[np.intp], shape: tuple[int, ...]) -> Mask:
    mask = np.zeros(shape, dtype=bool)
    mask.flat[flat] = True
    return mask


def _check_request(
    shape: tuple[int, int], rank: int, high: int, noise: float, observed: float
) -> None:
    if not 1 <= rank <= min(shape):
        raise ValueError(f"rank must be in 1..{min(shape)} for a table of shape {shape}: {rank}")
    if high < 1:
        raise ValueError(f"high must be at least 1: {high}")
    if not noise >= 0:
        raise ValueError(f"noise is a standard deviation and must not be negative: {noise}")
    if not 0 < observed <= 1:
        raise ValueError(f"observed is a share of cells and must be in (0, 1]: {observed}")


def _limits(
    floor: ArrayLike | None, ceiling: ArrayLike | None, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    lower = _broadcast("floor", -np.inf if floor is None else floor, shape)
    upper = _broadcast("ceiling", np.inf if ceiling is None else ceiling, shape)
    wrong = np.argwhere(~(lower < upper))
    if len(wrong):
        i, j = map(int, wrong[0])
        raise ValueError(
            f"floor must lie below ceiling: cell ({i}, {j}) has {lower[i, j]} and {upper[i, j]}"
        )
    return lower, upper


def _broadcast(name: str, limit: ArrayLike, shape: tuple[int, int]) -> Floats:
    array = np.asarray(limit, dtype=float)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{name} must be a scalar, one value per column ({shape[1]},), one per row "
            f"({shape[0]}, 1) or one per cell {shape}; it has shape {array.shape}"
        ) from None


def _as_given(limit: ArrayLike | None) -> float | Floats | None:
    if limit is None:
        return None
    array = np.array(limit, dtype=float)
    return float(array) if array.ndim == 0 else array


def _exact_rank(
    shape: tuple[int, int], rank: int, high: int, integer: bool, rng: np.random.Generator
) -> Floats:
    for _ in range(_MAX_DRAWS):
        X = rng.integers(1, high, size=shape, endpoint=True).astype(float)
        W, H = _nmf(X, rank, rng)
        if integer:
            W, H = _rounded(W, H)
        # rank(W H) = rank exactly when both factors have full rank.
        if np.linalg.matrix_rank(W) == np.linalg.matrix_rank(H) == rank:
            return W @ H
    raise ValueError(
        f"no matrix of rank {rank} in {_MAX_DRAWS} draws with high={high}: lower rank"
        + (", raise high (small factors round to zero), or use integer=False" if integer else "")
    )


def _nmf(X: Floats, rank: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    tiny = np.finfo(float).tiny
    W = rng.random((X.shape[0], rank))
    H = rng.random((rank, X.shape[1]))
    for _ in range(_NMF_SWEEPS):
        # H <- H * (W'X) / (W'W H), and the same for W.
        H *= (W.T @ X) / (W.T @ W @ H + tiny)
        W *= (X @ H.T) / (W @ (H @ H.T) + tiny)
    return W, H


def _rounded(W: Floats, H: Floats) -> tuple[Floats, Floats]:
    # (W diag(s)) (diag(1/s) H) = W H; this s gives both sides the same largest entry.
    s = np.sqrt(H.max(axis=1) / W.max(axis=0))
    return np.rint(W * s), np.rint(H / s[:, np.newaxis])
