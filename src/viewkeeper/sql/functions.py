"""What is known of Spark 4.2's functions by name: which aggregate, which depend on more than their arguments."""

from __future__ import annotations

AGGREGATES = frozenset(
    """any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
    bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every
    first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kurtosis last last_value listagg max max_by mean measure median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp
    string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance""".split()
)

GENERATORS = frozenset(
    """collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer
    sql_keywords stack variant_explode variant_explode_outer""".split()
)

WINDOW_ONLY = frozenset("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number".split())

# Spark itself calls the second and third group deterministic, which they are only within one query.
RANDOM = frozenset(
    """input_file_block_length input_file_block_start input_file_name java_method
    monotonically_increasing_id rand randn random randstr reflect shuffle spark_partition_id try_reflect
    uniform uuid""".split()
)
CLOCK = frozenset("curdate current_date current_time current_timestamp localtimestamp now unix_timestamp".split())
# Those of the clock that a filter may use: without arguments, each under one name.
MOMENTS = {
    "curdate": "CURRENT_DATE",
    "current_date": "CURRENT_DATE",
    "current_timestamp": "CURRENT_TIMESTAMP",
    "localtimestamp": "LOCALTIMESTAMP",
    "now": "CURRENT_TIMESTAMP",
}
SESSION = frozenset(
    """current_catalog current_database current_path current_schema current_timezone current_user
    session_user user version""".split()
)


def why_not_repeatable(name: str, arity: int) -> str | None:
    """Why two runs over the same rows may differ because of this function, or None."""
    lowered = name.lower()
    if lowered in RANDOM:
        return "gives another value each time"
    if lowered == "unix_timestamp" and arity:
        return None
    if lowered in CLOCK:
        return "depends on when it runs"
    if lowered in SESSION:
        return "depends on the session"
    return None
