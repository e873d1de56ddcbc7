"""Tables to try declip on: synthetic, simulated and real.

``make_clipped_low_rank`` draws a low-rank table and hides part of it, so that a restoration can be
scored against the truth. ``load_assay`` is a small simulated laboratory panel. The two rating sets
are fetched from their publishers or read from a local folder; they are not part of declip.
"""

from ._assay import Assay, load_assay
from ._ratings import Ratings, fetch_filmtrust, fetch_movielens_100k
from ._synthetic import ClippedLowRank, make_clipped_low_rank, split_cells

__all__ = [
    "Assay",
    "ClippedLowRank",
    "Ratings",
    "fetch_filmtrust",
    "fetch_movielens_100k",
    "load_assay",
    "make_clipped_low_rank",
    "split_cells",
]
