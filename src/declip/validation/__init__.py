"""User input turned into checked arrays, and every error about the user's data."""

from declip.validation.columns import check_columns, check_same_columns, named_columns
from declip.validation.coverage import (
    name_some,
    warn_about_coverage,
    warn_nothing_clipped,
    warn_without_cells,
)
from declip.validation.features import (
    FeatureEncoder,
    GroupLabels,
    LevelFeature,
    NumberFeature,
    read_features,
)
from declip.validation.growth import places_at_end, places_by_label, refuse_known_cells
from declip.validation.levels import (
    check_level_model,
    check_level_sides,
    level_scales,
    one_scale,
    read_levels,
)
from declip.validation.limits import (
    Limit,
    apply_limits,
    check_no_limits,
    check_some_exact,
    limits_of_all_cells,
    resolve_limit,
)
from declip.validation.long import read_long, sorted_labels
from declip.validation.looks_long import refuse_long
from declip.validation.messages import warn_user
from declip.validation.missing import MISSING_WORDS, check_missing, check_missing_model
from declip.validation.sizes import (
    check_choice,
    check_memory,
    check_quantiles,
    check_rank,
    check_same_shape,
    check_splitting,
    check_steps,
    check_sweeps,
    free_memory,
    rank_to_fit,
)
from declip.validation.tables import backend_of, check_bounds, table_to_triplets
from declip.validation.triplets import (
    IntervalTriplets,
    Triplets,
    cells_asked_for,
    check_cells,
    check_logarithms,
    check_not_negative,
    check_selection,
    check_triplets,
    check_truth,
    label_positions,
    places_of,
    refuse_repeated,
)
from declip.validation.weights import (
    cell_numbers,
    check_known,
    check_side_model,
    refuse_side_information,
)

__all__ = [
    "MISSING_WORDS",
    "FeatureEncoder",
    "GroupLabels",
    "IntervalTriplets",
    "LevelFeature",
    "Limit",
    "NumberFeature",
    "Triplets",
    "apply_limits",
    "backend_of",
    "cell_numbers",
    "cells_asked_for",
    "check_bounds",
    "check_cells",
    "check_choice",
    "check_columns",
    "check_known",
    "check_level_model",
    "check_level_sides",
    "check_logarithms",
    "check_memory",
    "check_missing",
    "check_missing_model",
    "check_no_limits",
    "check_not_negative",
    "check_quantiles",
    "check_rank",
    "check_same_columns",
    "check_same_shape",
    "check_selection",
    "check_side_model",
    "check_some_exact",
    "check_splitting",
    "check_steps",
    "check_sweeps",
    "check_triplets",
    "check_truth",
    "free_memory",
    "label_positions",
    "level_scales",
    "limits_of_all_cells",
    "name_some",
    "named_columns",
    "one_scale",
    "places_at_end",
    "places_by_label",
    "places_of",
    "rank_to_fit",
    "read_features",
    "read_levels",
    "read_long",
    "refuse_known_cells",
    "refuse_long",
    "refuse_repeated",
    "refuse_side_information",
    "resolve_limit",
    "sorted_labels",
    "table_to_triplets",
    "warn_about_coverage",
    "warn_nothing_clipped",
    "warn_user",
    "warn_without_cells",
]
