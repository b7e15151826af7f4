"""What a definition can hold: each row of the support table, with a query that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from doc_blocks.example_tables import reading
from viewkeeper.algebra.aggregates import (
    ADDITIVE,
    AMBIGUOUS,
    EXTREMES,
    KEPT_SCALE,
    REPEATABLE,
    WIDEST_AVERAGE,
    WIDEST_WEIGHTED_DECIMAL,
)
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Relation
from viewkeeper.algebra.sketches import SKETCHES


@dataclass(frozen=True)
class Construct:
    """Something a definition can hold, a query that holds it, and what is said of it if it is maintained.

    `how` is empty where the construct is not maintained; the reason then comes from the code.
    """

    name: str
    query: str
    page: str
    how: str = ""
    columns: int = 1

    @property
    def verdict(self) -> Relation | Reason:
        return reading(self.query, tuple(f"c{i + 1}" for i in range(self.columns)))


OPERATORS = "docs/operators"
ORDERED = AMBIGUOUS - SKETCHES.keys()
DEFINITIONS = "docs/definitions.md#what-is-recomputed"
_DIGITS = (
    f"decimals of up to {WIDEST_WEIGHTED_DECIMAL} digits, or {KEPT_SCALE} after the point"
    f" (`avg`: {WIDEST_AVERAGE} in all)"
)

CONSTRUCTS = (
    Construct("Delta tables", "SELECT id FROM sales", f"{OPERATORS}/scan.md", "changed rows, from feed or files"),
    Construct(
        "subqueries in `FROM`, CTEs",
        "WITH a AS (SELECT id FROM sales) SELECT id FROM (SELECT id FROM a)",
        f"{OPERATORS}/scan.md",
        "as if written in place",
    ),
    Construct(
        "`VALUES`, constants",
        "SELECT * FROM VALUES (1), (2) AS v(x) UNION ALL SELECT 3",
        f"{OPERATORS}/values.md",
        "never change",
    ),
    Construct(
        "`range()`, generators over constants, in `FROM`",
        "SELECT d.id FROM range(7) AS d LEFT JOIN sales ON sales.id = d.id JOIN explode(array(1, 2)) AS e(x)",
        f"{OPERATORS}/generate.md",
        "never change; joins with them as with any table",
    ),
    Construct("`WHERE`", "SELECT id FROM sales WHERE price > 10", f"{OPERATORS}/filter.md", "changed rows, filtered"),
    Construct(
        "`current_date()`, `now()` … in a condition",
        "SELECT id FROM sales WHERE day > current_date() - INTERVAL 7 DAYS",
        f"{OPERATORS}/filter.md",
        "changed rows, and rows that the clock brings in or takes out",
    ),
    Construct(
        "expressions over one row",
        "SELECT CASE WHEN upper(note) LIKE 'A%' THEN price END FROM sales",
        f"{OPERATORS}/project.md",
        "changed rows, computed",
    ),
    Construct(
        "inner and cross joins on any condition, self-joins",
        "SELECT a.id + s.id FROM sales a JOIN sales b ON a.price < b.price CROSS JOIN stores s",
        f"{OPERATORS}/join.md",
        "one term per changed table",
    ),
    Construct(
        "`JOIN … USING`, `NATURAL JOIN`",
        "SELECT id, price, city FROM sales NATURAL JOIN returns JOIN stores USING (id)",
        f"{OPERATORS}/join.md",
        "as the inner join it stands for",
        3,
    ),
    Construct(
        "outer joins on any condition",
        "SELECT a.id FROM sales a LEFT JOIN stores s ON a.store = s.id FULL JOIN returns r ON r.price > a.price",
        f"{OPERATORS}/join.md",
        "matched rows, and rows that found or lost their last match",
    ),
    Construct(
        "semi and anti joins on any condition",
        "SELECT a.id FROM sales a LEFT ANTI JOIN stores s ON a.store = s.id",
        f"{OPERATORS}/join.md",
        "rows that found or lost their last match",
    ),
    Construct(
        "`EXISTS`, `IN`, with and without `NOT`, anywhere in an expression",
        "SELECT id FROM sales a WHERE store NOT IN (SELECT id FROM stores) OR"
        " EXISTS (SELECT 1 FROM returns r WHERE r.price > a.price)",
        f"{OPERATORS}/subquery.md",
        "as semi and anti joins",
    ),
    Construct(
        "subqueries as values",
        "SELECT id FROM sales a WHERE price > (SELECT avg(price) FROM sales b WHERE b.store = a.store)",
        f"{OPERATORS}/subquery.md",
        "as joins with an aggregate",
    ),
    Construct(
        "subqueries after `LATERAL`, in `JOIN` and `LEFT JOIN` too",
        "SELECT q.price FROM stores s LEFT JOIN LATERAL"
        " (SELECT price FROM sales a WHERE a.store = s.id ORDER BY day DESC LIMIT 1) q",
        f"{OPERATORS}/subquery.md",
        "as the join it stands for",
    ),
    Construct(
        "`UNION ALL`",
        "SELECT id FROM sales UNION ALL SELECT id FROM returns",
        f"{OPERATORS}/union.md",
        "changed rows of each input",
    ),
    Construct(
        "`DISTINCT`, `UNION`",
        "SELECT DISTINCT id FROM (SELECT id FROM sales UNION SELECT id FROM returns)",
        f"{OPERATORS}/distinct.md",
        "copies counted per row",
    ),
    Construct(
        "`EXCEPT`, `INTERSECT`, with and without `ALL`",
        "SELECT id FROM sales EXCEPT SELECT id FROM returns INTERSECT ALL SELECT id FROM sales",
        f"{OPERATORS}/sets.md",
        "copies counted per row, on either side",
    ),
    Construct(
        "window functions with `PARTITION BY`, `WINDOW`, `QUALIFY`",
        "SELECT id FROM sales QUALIFY row_number() OVER (PARTITION BY store ORDER BY day DESC) = 1",
        f"{OPERATORS}/window.md",
        "touched partitions, before and after",
    ),
    Construct(
        "window functions without `PARTITION BY` that look back: ranks, `lag`, running aggregates",
        "SELECT id, sum(price) OVER (ORDER BY day), rank() OVER (ORDER BY price DESC) FROM sales",
        f"{OPERATORS}/window.md",
        "rows from the first changed one on, before and after",
        3,
    ),
    Construct(
        "other window functions without `PARTITION BY`, over an aggregate: shares of a total, `lead`, `ntile`",
        "SELECT store, sum(price) / sum(sum(price)) OVER () AS share FROM sales GROUP BY store",
        f"{OPERATORS}/window.md",
        "the groups are kept, the function is computed when the view is read",
        2,
    ),
    Construct(
        "`sum`, `avg` of `float`, `double`, `first_value` … over `RANGE` with an offset",
        "SELECT sum(weight) OVER (PARTITION BY store ORDER BY day RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND"
        " CURRENT ROW) FROM sales",
        f"{OPERATORS}/window.md",
        "touched partitions, before and after, equal rows put together first",
    ),
    Construct(
        "`ORDER BY … LIMIT … OFFSET …`",
        "SELECT id FROM sales ORDER BY price DESC LIMIT 10",
        f"{OPERATORS}/top.md",
        "over an aggregate when the view is read, else with a reserve of rows",
    ),
    Construct(
        "`explode` and other generators, `LATERAL VIEW [OUTER]`",
        "SELECT tag FROM sales LATERAL VIEW OUTER explode(tags) t AS tag",
        f"{OPERATORS}/generate.md",
        "changed rows, each with all its rows",
    ),
    Construct(
        "time windows: `window()`, `window_time()`",
        "SELECT window_time(w), n FROM (SELECT window AS w, count(*) AS n FROM sales GROUP BY window(day, '1 day'))",
        f"{OPERATORS}/generate.md",
        "changed rows, each with all its windows",
        2,
    ),
    Construct(
        "sessions: `session_window()`",
        "SELECT store, count(*) FROM sales GROUP BY store, session_window(day, '1 day')",
        f"{OPERATORS}/generate.md",
        "the sessions of touched keys, or from the first changed row on, before and after",
        2,
    ),
    Construct(
        "`PIVOT`, also of expressions over aggregates",
        "SELECT * FROM (SELECT store, price FROM sales) PIVOT (sum(price) / count(price) FOR store IN (1))",
        f"{OPERATORS}/pivot.md",
        "as one aggregate, each value a condition on its rows",
    ),
    Construct(
        "`UNPIVOT`, with and without `NULLS`",
        "SELECT x FROM sales UNPIVOT (x FOR n IN (price))",
        f"{OPERATORS}/pivot.md",
        "changed rows, each once for every column named",
    ),
    Construct(
        "`GROUPING SETS`, `ROLLUP`, `CUBE`, `grouping()`",
        "SELECT grouping(store) FROM sales GROUP BY CUBE (store, day)",
        f"{OPERATORS}/sets.md",
        "as one aggregate, each row once for every set",
    ),
    Construct(
        "`GROUP BY`, also `ALL` and ordinals",
        "SELECT store FROM sales GROUP BY ALL",
        f"{OPERATORS}/aggregate.md",
        "one kept row per group",
    ),
    Construct("no `GROUP BY`", "SELECT count(*) FROM sales", f"{OPERATORS}/aggregate.md", "one row, always there"),
    Construct(
        "`HAVING`, expressions over aggregates",
        "SELECT store FROM sales GROUP BY store HAVING sum(price) / 2 > 1",
        f"{OPERATORS}/aggregate.md",
        "computed when the view is read",
    ),
    Construct(
        "`count`, `sum`, `avg`, with `FILTER`",
        "SELECT sum(price) FILTER (WHERE store = 1) FROM sales",
        f"{OPERATORS}/aggregate.md",
        f"added up from changes: integers, {_DIGITS}",
    ),
    Construct(
        "`sum`, `avg` of `float`, `double`",
        "SELECT store, sum(weight) FROM sales GROUP BY store",
        f"{OPERATORS}/aggregate.md",
        "added up from changes; groups whose error may pass 1e-9 computed afresh",
        2,
    ),
    Construct(
        "`sum`, `avg` of longer decimals",
        "SELECT store, avg(CAST(price AS DECIMAL(30,10))) FROM sales GROUP BY store",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh",
        2,
    ),
    Construct(
        "`min`, `max`",
        "SELECT min(price) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "merged where rows only came; else touched groups computed afresh",
    ),
    Construct(
        "aggregates with `DISTINCT`",
        "SELECT count(DISTINCT store) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh",
    ),
    Construct(
        f"{len(REPEATABLE - ADDITIVE - EXTREMES)} more aggregates (`stddev`, `median`, `count_if` …)",
        "SELECT stddev(price) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh",
    ),
    Construct(
        f"{len(SKETCHES)} sketches (`hll_sketch_agg`, `theta_union_agg`, `kll_sketch_agg_double` …)",
        "SELECT hll_sketch_estimate(hll_sketch_agg(id)) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "merged where rows only came; else touched groups computed afresh",
    ),
    Construct(
        f"{len(ORDERED)} aggregates that depend on order or ties (`first`, `max_by`, `collect_list` …)",
        "SELECT max_by(note, day) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh; below another operator in an order of their own",
    ),
    Construct(
        "`WITHIN GROUP`, `IGNORE NULLS`",
        "SELECT listagg(note) WITHIN GROUP (ORDER BY id) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh",
    ),
    Construct(
        "an aggregate below another operator",
        "SELECT max(n) FROM (SELECT count(*) AS n FROM sales GROUP BY store)",
        f"{OPERATORS}/aggregate.md",
        "touched groups, before and after",
    ),
    Construct(
        "a `float` or `double` aggregate below another operator",
        "SELECT max(n) FROM (SELECT sum(weight) AS n FROM sales GROUP BY store)",
        f"{OPERATORS}/aggregate.md",
        "touched groups, before and after, added up in the order of their values",
    ),
    Construct(
        "`ORDER BY` without `LIMIT`, `SORT BY`, `CLUSTER BY`, `DISTRIBUTE BY`",
        "SELECT id FROM (SELECT id FROM sales ORDER BY id) DISTRIBUTE BY id SORT BY id",
        "docs/definitions.md#clauses-of-the-query",
        "ignored: a table has no order",
    ),
    Construct(
        "hints",
        "SELECT /*+ BROADCAST(s) */ a.id FROM sales a JOIN stores s ON a.store = s.id",
        "docs/definitions.md#clauses-of-the-query",
        "used by recomputes only",
    ),
    Construct(
        "a window without `PARTITION BY` that looks ahead, over other rows than groups: `lead`, `ntile`, `OVER ()` …",
        "SELECT lead(price) OVER (ORDER BY day) FROM sales",
        DEFINITIONS,
    ),
    Construct("`LIMIT` without `ORDER BY`", "SELECT id FROM sales LIMIT 3", DEFINITIONS),
    Construct(
        "`session_window()` that is not grouped by, or with a gap that is no constant",
        "SELECT session_window(day, '1 day') FROM sales",
        DEFINITIONS,
    ),
    Construct("`TABLESAMPLE`", "SELECT id FROM sales TABLESAMPLE (10 PERCENT)", DEFINITIONS),
    Construct("`VERSION AS OF`", "SELECT id FROM sales VERSION AS OF 0", DEFINITIONS),
    Construct(
        "other functions of `float` or `double`, `nth_value` and lists over `RANGE` with an offset",
        "SELECT stddev(weight) OVER (PARTITION BY store ORDER BY id RANGE BETWEEN 7 PRECEDING AND CURRENT ROW)"
        " FROM sales",
        DEFINITIONS,
    ),
    Construct(
        "`WITH RECURSIVE`",
        "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 5) SELECT x FROM r",
        DEFINITIONS,
    ),
    Construct("`rand()`, `uuid()` …", "SELECT rand() FROM sales", DEFINITIONS),
    Construct("`current_date()`, `now()` … elsewhere", "SELECT now() FROM sales", DEFINITIONS),
    Construct("`current_user()`, `current_timezone()` …", "SELECT current_user() FROM sales", DEFINITIONS),
    Construct("sources that are not Delta tables", "SELECT x FROM elsewhere", DEFINITIONS),
)
