"""Subqueries in expressions are read as the database reads them."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from duck import Connection
from hypothesis import given, settings
from reading import TABLES, as_read, bound, follows_every_change, reads_what_is_written

from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import evaluate
from viewkeeper.testing.histories import History, histories

pytestmark = pytest.mark.core

READ = {
    "exists": "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.a = r.a AND t.d > 2)",
    "not exists": "SELECT a, b FROM r WHERE NOT EXISTS (SELECT * FROM t WHERE t.a = r.a)",
    "exists by inequality": "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.a < r.b AND t.s <> r.s)",
    "uncorrelated exists": "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM t WHERE d > 100)",
    "in": "SELECT a, b FROM r WHERE a IN (SELECT a FROM t WHERE d > 1)",
    "not in": "SELECT a, b FROM r WHERE a NOT IN (SELECT a FROM t WHERE a IS NOT NULL)",
    "not in nulls": "SELECT a, b FROM r WHERE a NOT IN (SELECT a FROM t)",
    "not in nothing": "SELECT a, b FROM r WHERE a NOT IN (SELECT a FROM t WHERE d > 100)",
    "not in, correlated": "SELECT a, b FROM r WHERE b NOT IN (SELECT `Order` FROM u WHERE u.`Order` <= r.a)",
    "in, correlated": "SELECT a, b FROM r WHERE a IN (SELECT t.a FROM t WHERE t.s = r.s)",
    "in pairs": "SELECT a, b FROM r WHERE (a, s) IN (SELECT a, s FROM t)",
    "in of an aggregate": "SELECT b FROM r WHERE b IN (SELECT count(*) FROM t GROUP BY s)",
    "several": """SELECT b FROM r WHERE a IN (SELECT a FROM t) AND NOT EXISTS (SELECT 1 FROM u WHERE u.`Order` = r.b)
        AND b > 0""",
    "under or": "SELECT b FROM r WHERE b = 0 OR EXISTS (SELECT 1 FROM t WHERE t.a = r.a AND t.d > 2)",
    "in under or": "SELECT b FROM r WHERE b = 0 OR a IN (SELECT a FROM t)",
    "not in and": "SELECT a, b FROM r WHERE NOT (a IN (SELECT a FROM t) AND b IN (SELECT `Order` FROM u))",
    "not in or": "SELECT a, b FROM r WHERE NOT (a IN (SELECT a FROM t WHERE d > 2) OR s = 'b')",
    "not not in": "SELECT a, b FROM r WHERE NOT (NOT a IN (SELECT a FROM t) OR NOT (b IN (SELECT `Order` FROM u) AND s = 'a'))",
    "in is false": "SELECT a, b FROM r WHERE (a IN (SELECT a FROM t WHERE d > 2)) = FALSE AND TRUE <> (b IN (SELECT `Order` FROM u))",
    "in is true": "SELECT a, b FROM r WHERE (NOT a IN (SELECT a FROM t WHERE d > 2)) = TRUE OR FALSE <> (b IN (SELECT `Order` FROM u))",
    "correlated with an aggregate": """SELECT x.a, (SELECT count(*) FROM r AS y WHERE y.a = x.a AND y.b >= x.n) AS k FROM
        (SELECT a, count(*) AS n FROM r GROUP BY a) AS x WHERE EXISTS (SELECT 1 FROM u WHERE `Order` <= x.n)""",
    "correlated with a window": """SELECT x.a, (SELECT max(d) FROM t WHERE t.a <= x.n) AS k FROM
        (SELECT a, row_number() OVER (PARTITION BY s ORDER BY a, b) AS n FROM r) AS x""",
    "case when not in": "SELECT a, CASE WHEN a NOT IN (SELECT a FROM t WHERE d > 2) THEN 1 ELSE 2 END AS x FROM r",
    "case when not in or": "SELECT b, CASE WHEN NOT (b > 5 OR a IN (SELECT a FROM t WHERE d > 2)) THEN 1 ELSE 2 END AS x FROM r",
    "not in under or": "SELECT b FROM r WHERE b = 0 OR NOT a IN (SELECT a FROM t)",
    # Where a comparison is unknown, Spark and DuckDB differ: see test_in_as_a_value_is_never_null.
    "in as a value": """SELECT a, a IN (SELECT a FROM t WHERE a > 0) AS x, a NOT IN (SELECT `Order` FROM u WHERE `Order` > 1) AS y
        FROM r WHERE a > 0""",
    "exists as a value": "SELECT a, EXISTS (SELECT 1 FROM t WHERE t.a = r.a) AS x FROM r",
    "exists in case": "SELECT CASE WHEN EXISTS (SELECT 1 FROM t WHERE t.a = r.a) THEN 'y' ELSE s END AS x FROM r",
    "scalar": "SELECT a FROM r WHERE a > (SELECT avg(a) FROM t)",
    "scalar as a value": "SELECT a, (SELECT max(d) FROM t) AS m, b - (SELECT count(*) FROM u) AS n FROM r",
    "scalar of nothing": "SELECT a, (SELECT d FROM t WHERE d > 100) AS m FROM r",
    "scalar of one row": "SELECT a, (SELECT d FROM t WHERE s = 'b') AS m FROM r",
    "scalar, correlated": "SELECT a, (SELECT max(d) FROM t WHERE t.a = r.a) AS m FROM r",
    "count of nothing": "SELECT a, (SELECT count(*) FROM t WHERE t.a = r.a) AS n FROM r",
    "count of nothing, in an expression": "SELECT a, (SELECT count(*) + coalesce(sum(d), 7) FROM t WHERE t.a = r.a) AS n FROM r",
    "scalar in where": "SELECT b FROM r WHERE b >= (SELECT avg(x.b) FROM r AS x WHERE x.s = r.s)",
    "scalar, having": "SELECT a, (SELECT sum(d) FROM t WHERE t.a = r.a HAVING count(*) > 1) AS m FROM r",
    "scalar in having": "SELECT s, sum(a) AS x FROM r GROUP BY s HAVING sum(a) > (SELECT min(a) FROM t)",
    "having, correlated": "SELECT s FROM r GROUP BY s HAVING count(*) > (SELECT count(*) FROM t WHERE t.s = r.s)",
    "nested": """SELECT a FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.a = r.a
        AND t.d > (SELECT avg(d) FROM t AS x WHERE x.s = t.s))""",
    "in a subquery": "SELECT q.a FROM (SELECT a FROM r WHERE a IN (SELECT a FROM t)) AS q",
    "over a cte": "WITH c AS (SELECT a FROM t WHERE d > 1) SELECT a, b FROM r WHERE a IN (SELECT a FROM c)",
    "in in on": "SELECT r.b, t.d FROM r JOIN t ON r.a = t.a AND t.a IN (SELECT `Order` FROM u)",
    "aggregate of a scalar": "SELECT s, sum((SELECT max(a) FROM t)) AS x FROM r GROUP BY s",
    "top of a key": "SELECT a, (SELECT d FROM t WHERE t.a = r.a ORDER BY d DESC NULLS LAST LIMIT 1) AS x FROM r",
    "exists after some": "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.a = r.a ORDER BY d LIMIT 1 OFFSET 1)",
    "aggregate by inequality": "SELECT a, b, (SELECT max(d) FROM t WHERE t.a <= r.b) AS x FROM r",
    "count by inequality": "SELECT a, b, (SELECT count(*) FROM t WHERE t.a < r.b AND t.s = r.s) AS n FROM r",
    "above an average by inequality": "SELECT a, b FROM r WHERE b > (SELECT avg(t.a) FROM t WHERE t.a < r.b OR t.s = r.s)",
    "exists of an aggregate": "SELECT a FROM r WHERE EXISTS (SELECT sum(d) FROM t WHERE t.a = r.a)",
    "exists of an aggregate by inequality": "SELECT a FROM r WHERE EXISTS (SELECT sum(d) FROM t WHERE t.a < r.a)",
    "exists, having": "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.a = r.a HAVING count(*) > 1)",
    "not exists, having": "SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a >= r.a HAVING count(*) < 2)",
    "in of a distinct by inequality": "SELECT a, b FROM r WHERE b IN (SELECT count(*) FROM t WHERE t.a <= r.a GROUP BY t.s)",
    "exists over a window": """SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM
        (SELECT row_number() OVER (PARTITION BY t.s ORDER BY d, t.a) AS n FROM t WHERE t.a < r.b) WHERE n = 2)""",
    "in of a rollup": "SELECT a, b FROM r WHERE b IN (SELECT count(*) FROM t WHERE d > 1 GROUP BY ROLLUP (t.s))",
    "exists over a union": """SELECT a, b FROM r WHERE EXISTS
        (SELECT a FROM t WHERE t.a = r.a UNION ALL SELECT `Order` FROM u WHERE u.`Order` = r.b)""",
    "exists over except": """SELECT a, b FROM r WHERE EXISTS
        (SELECT a FROM t WHERE t.s = r.s EXCEPT SELECT `Order` FROM u WHERE u.`Order` = r.a)""",
    "in in the condition of an outer join": "SELECT r.b, t.d FROM r LEFT JOIN t ON r.a = t.a AND t.a IN (SELECT `Order` FROM u WHERE f)",
    "the other side's": "SELECT r.b, t.d FROM r LEFT JOIN t ON r.a = t.a AND r.a IN (SELECT `Order` FROM u WHERE f)",
    "exists in the condition of a full join": """SELECT r.b, t.d FROM r FULL JOIN t ON r.a = t.a
        AND EXISTS (SELECT 1 FROM u WHERE u.`Order` = t.a AND f) AND r.b > (SELECT min(a) FROM t)""",
    "exists in a condition of both sides": """SELECT r.b, t.d FROM r LEFT JOIN t ON r.a = t.a
        OR EXISTS (SELECT 1 FROM u WHERE u.`Order` = r.b AND f) OR t.a IN (SELECT b FROM r)""",
    "exists, limited": "SELECT a, b FROM r WHERE EXISTS (SELECT d FROM t WHERE t.a = r.a LIMIT 1)",
    "exists of groups, limited": "SELECT a FROM r WHERE NOT EXISTS (SELECT max(d) FROM t WHERE t.a = r.a GROUP BY s LIMIT 2)",
    "exists as a value, limited": "SELECT a, EXISTS (SELECT 1 FROM t WHERE t.a > r.a ORDER BY d + 1 LIMIT 1) AS x FROM r",
    "having exists for an aggregate": """SELECT s, count(*) AS n FROM r GROUP BY s
        HAVING EXISTS (SELECT 1 FROM t WHERE t.a < max(r.b)) AND NOT EXISTS (SELECT 1 FROM u WHERE `Order` > count(r.a))""",
    "having exists for an aggregate, inside": """SELECT a FROM u JOIN t ON a = `Order` WHERE EXISTS (SELECT r.s FROM r WHERE r.a = t.a
        GROUP BY r.s HAVING EXISTS (SELECT 1 FROM t AS x WHERE x.a < min(r.b)))""",
    "having, of the query around": "SELECT a, b FROM r WHERE a IN (SELECT min(t.a) FROM t GROUP BY t.s HAVING min(t.a) < b)",
    "groups by the query around": "SELECT a FROM r WHERE (SELECT count(*) FROM t WHERE t.a > r.a GROUP BY r.b) = 1",
    "a common table of the row around": """SELECT a, (WITH c AS (SELECT d FROM t WHERE t.a = r.a), e AS (SELECT d FROM c WHERE d > 1)
        SELECT sum(d) FROM e) AS x FROM r""",
    "no table": "SELECT a, (SELECT c + d FROM (SELECT r.a AS c, r.b AS d)) AS x FROM r",
}
texts = pytest.mark.parametrize("sql", READ.values(), ids=READ.keys())


@texts
def test_reads_what_is_written(duck: Connection, sql: str) -> None:
    reads_what_is_written(duck, sql)


@texts
@settings(max_examples=3)
@given(history=histories(steps=1))
def test_follows_every_change(duck: Connection, sql: str, history: History) -> None:
    follows_every_change(duck, sql, history)


def test_in_as_a_value_is_never_null() -> None:
    relation = bound(
        "SELECT a, a IN (SELECT a FROM t) AS x, a NOT IN (SELECT `Order` FROM u) AS y FROM r", ("a", "x", "y")
    )
    rows = evaluate(relation, TABLES)
    assert rows == Counter({(1, True, False): 3, (2, True, False): 1, (None, False, False): 1, (3, False, False): 1})


@pytest.mark.parametrize(
    ("joined", "kept"),
    [
        # Spark asks what reads one side alone before it joins, if the join lets it, and takes NOT IN strictly there.
        ("LEFT JOIN t ON r.b = 3 AND t.a NOT IN (SELECT `Order` FROM u WHERE `Order` > 0)", False),
        ("JOIN t ON r.b = 3 AND t.a NOT IN (SELECT `Order` FROM u WHERE `Order` > 0)", False),
        ("LEFT JOIN t ON d = 7 AND r.a NOT IN (SELECT `Order` FROM u WHERE `Order` > 0)", True),
        ("LEFT JOIN t ON r.b = 9 OR t.a NOT IN (SELECT `Order` FROM u WHERE `Order` > 0)", True),
        ("JOIN t ON r.b = d OR t.a NOT IN (SELECT `Order` FROM u WHERE `Order` > 0)", True),
        ("FULL JOIN t ON r.b = 3 AND t.a NOT IN (SELECT `Order` FROM u WHERE `Order` > 0)", True),
    ],
)
def test_not_in_of_an_unknown_value_in_the_condition_of_a_join(joined: str, kept: bool) -> None:
    """As Spark answers it: the rows with NULL meet each other or not."""
    rows = evaluate(bound(f"SELECT r.a, r.b, t.a AS c, d FROM r {joined}", ("a", "b", "c", "d")), TABLES)
    assert ((None, 3, None, Decimal("7.00")) in rows) == kept


@pytest.mark.parametrize("groups", ["SELECT DISTINCT a FROM r", "SELECT a FROM r GROUP BY a"])
def test_a_subquery_that_reads_groups_stands_above_them(groups: str) -> None:
    """Spark refuses one beside GROUP BY, also if it reads nothing but the keys."""
    asked = f"SELECT (SELECT count(*) FROM t WHERE t.a = q.a) AS n FROM ({groups}) AS q"
    assert unparse(as_read(asked, ("n",))).endswith("GROUP BY `r`.`a`) AS `q`")
    beside = unparse(as_read("SELECT a, (SELECT count(*) FROM t) AS n FROM r GROUP BY a", ("a", "n")))
    assert beside.endswith("FROM r AS `r`\nGROUP BY `r`.`a`")
