"""Aggregate functions by how their value follows a change of the rows below them."""

from __future__ import annotations

from viewkeeper.algebra.sketches import SKETCHES
from viewkeeper.algebra.types import FLOATING, INTEGRAL, decimal_parts

ADDITIVE = frozenset({"count", "sum", "avg"})
EXTREMES = frozenset({"min", "max"})

# Aggregates that are 0, and not NULL, over no rows at all.
COUNTING = frozenset({"count", "count_if", "regr_count", "approx_count_distinct"})

# Functions of the bag of argument values alone: a group can be computed afresh at any time with the same result.
REPEATABLE = (
    ADDITIVE
    | EXTREMES
    | frozenset(
        """any approx_count_distinct bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
        bool_and bool_or corr count_if count_min_sketch covar_pop covar_samp every kurtosis median percentile
        percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
        regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp try_avg try_sum var_pop
        var_samp variance""".split()
    )
)

# Functions that may answer in several ways, as the order of the rows or a tie decides: whatever the touched groups
# give is right, but it cannot be computed a second time to find what was given before.
AMBIGUOUS = SKETCHES.keys() | frozenset(
    """any_value approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg
    collect_list collect_set first first_value histogram_numeric last last_value listagg max_by min_by mode
    percentile_approx schema_of_variant_agg string_agg theta_intersection_agg tuple_intersection_agg_double
    tuple_intersection_agg_integer""".split()
)

# Aggregates that are neither NULL over no rows at all nor anything that can be written down.
MADE_OF_NOTHING = SKETCHES.keys() | frozenset(
    """approx_top_k approx_top_k_accumulate approx_top_k_combine bitmap_and_agg bitmap_construct_agg bitmap_or_agg
    count_min_sketch schema_of_variant_agg theta_intersection_agg tuple_intersection_agg_double
    tuple_intersection_agg_integer""".split()
)

SYNONYMS = {"mean": "avg"}

# A decimal of more digits than this times a weight of ten digits would not fit in 38.
WIDEST_WEIGHTED_DECIMAL = 27
# Up to so many digits after the point Spark keeps them all however long a product gets, and says so if it overflows.
KEPT_SCALE = 6
# avg's rounding is corrected exactly up to this many digits (changes/stored.py).
WIDEST_AVERAGE = 18


def why_not_additive(function: str, argument_type: str | None, distinct: bool) -> str | None:
    """Why the function cannot be maintained by adding up signed changes, or None if it can."""
    if distinct:
        return f"{function}(DISTINCT …) must know which values are left"
    if function not in ADDITIVE:
        return f"{function} cannot be undone by a deleted row"
    if function == "count" or argument_type is None or argument_type in INTEGRAL:
        return None
    parts = decimal_parts(argument_type)
    if parts is not None:
        summed = function == "sum" and (parts[0] <= WIDEST_WEIGHTED_DECIMAL or parts[1] <= KEPT_SCALE)
        if summed or (function == "avg" and parts[0] <= WIDEST_AVERAGE):
            return None
        return f"{function} of {argument_type}: too many digits to add up signed changes exactly"
    if argument_type in FLOATING:
        return None
    return f"{function} of {argument_type} is not added up from changes"
