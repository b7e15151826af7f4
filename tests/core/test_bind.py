"""Binding reads a query as its database does, or says what it cannot read and where that stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest
from duck import Connection, comparable, fetch, fill, make_tables, to_duckdb
from fake_catalog import FakeCatalog
from hypothesis import given, settings

from viewkeeper.algebra.display import show
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.orders import without_ties
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Generate, Relation, names
from viewkeeper.algebra.scalars import Verbatim
from viewkeeper.changes.propagate import change
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import before
from viewkeeper.errors import SqlError
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.names import table_mentions, table_uses
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import Bag, TableStates, evaluate, plus, signed
from viewkeeper.testing.histories import SCHEMAS, History, histories

pytestmark = pytest.mark.core

ROWS: dict[str, Bag] = {
    "r": Counter([(1, 1, "a"), (1, 1, "a"), (1, 2, "b"), (2, None, "a"), (None, 3, None), (3, 0, "")]),
    "t": Counter([(1, Decimal("1.50"), "a"), (1, Decimal("2.25"), "b"), (2, None, "a"), (None, Decimal("7.00"), "c")]),
    "u": Counter([(1, True), (2, False), (2, None), (None, True)]),
}
TABLES = {name: TableStates(tuple(c for c, _ in SCHEMAS[name]), rows, rows) for name, rows in ROWS.items()}


@pytest.fixture(scope="module")
def duck() -> Iterator[Connection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        make_tables(connection)
        fill(connection, TABLES)
        yield connection


def bound(sql: str, output: tuple[str, ...]) -> Relation:
    result = bind(parse_query(sql), FakeCatalog(), output)
    assert isinstance(result, Bound), str(result)
    return result.relation


def as_read(sql: str, output: tuple[str, ...]) -> Relation:
    result = bind(parse_query(sql), FakeCatalog(), output)
    assert isinstance(result, Bound), str(result)
    return result.as_read


READ = {
    "columns": "SELECT b, a FROM r",
    "star": "SELECT * FROM r",
    "qualified star": "SELECT t.*, r.b FROM r JOIN t ON r.a = t.a",
    "star twice": "SELECT *, a AS again FROM r",
    "no table": "SELECT 1 AS x, 'a' AS y",
    "schema in the name": "SELECT main.r.a FROM main.r WHERE r.b > 0",
    "alias": "SELECT x.a FROM r AS x WHERE x.b >= 1",
    "mixed case": "SELECT R.A, X.`order` FROM R JOIN U AS X ON r.a = x.ORDER",
    "quoted": "SELECT `Order` AS `My Column`, `f` AS `select` FROM `u`",
    "sorted": "SELECT a FROM r ORDER BY a DESC",
    # Expressions
    "precedence": "SELECT 1 + a * 2 - b AS x, a = 1 OR b = 2 AND NOT s = 'a' AS y FROM r",
    "nulls": "SELECT a IS NULL AS x, b IS NOT NULL AS y, NOT (a IS NULL) AS z, a <=> NULL AS w FROM r",
    "case": "SELECT CASE WHEN a > 1 THEN 'big' WHEN a = 1 THEN 'one' END AS x FROM r",
    "simple case": "SELECT CASE a WHEN 1 THEN b ELSE -b END AS x FROM r",
    "in a list": "SELECT a FROM r WHERE a IN (1, 3) AND NOT b IN (0, NULL)",
    "between": "SELECT a FROM r WHERE a + 1 BETWEEN 1 AND b + 1",
    "like": "SELECT s FROM r WHERE s LIKE 'a%' OR s LIKE ''",
    "casts": "SELECT CAST(a AS STRING) AS x, CAST(d AS INT) AS y, CAST(a AS DECIMAL(5,1)) AS z FROM t",
    "functions": "SELECT coalesce(a, b, 0) AS x, greatest(a, b) AS y, nullif(a, 1) AS z, abs(-a) AS w FROM r",
    "if": "SELECT if(a > 1, b, 0) AS x FROM r",
    "negative numbers": "SELECT a - -1 AS x, -(-a) AS y, -a AS z FROM r",
    "strings side by side": "SELECT s || '-' || s AS x FROM r",
    "lateral alias": "SELECT a + 1 AS x, x * 2 AS y FROM r",
    "a column hides an alias": "SELECT b AS a, a + 1 AS x FROM r",
    # Joins
    "comma": "SELECT r.b, t.d FROM r, t WHERE r.a = t.a",
    "cross": "SELECT r.b, t.d FROM r CROSS JOIN t",
    "on anything": "SELECT r.b, t.d FROM r JOIN t ON r.a < t.a OR r.s = t.s",
    "null safe": "SELECT r.b, t.d FROM r JOIN t ON r.a <=> t.a",
    "with itself": "SELECT x.b, y.b AS c FROM r AS x JOIN r AS y ON x.a = y.a AND x.b < y.b",
    "three": "SELECT r.b, t.d, f FROM r JOIN t ON r.a = t.a JOIN u ON u.`Order` = t.a",
    "using": "SELECT a, r.b, t.d FROM r JOIN t USING (a)",
    "using two": "SELECT a, s, b, d FROM r JOIN t USING (a, s)",
    "natural": "SELECT a, s, b, d FROM r NATURAL JOIN t",
    "in parentheses": "SELECT r.b, t.d, f FROM r JOIN (t JOIN u ON u.`Order` = t.a) ON r.a = t.a",
    "parentheses first": "SELECT r.b, t.d, f FROM ((SELECT b, a FROM r) AS r JOIN t ON r.a = t.a) JOIN u ON u.`Order` = t.a",
    "parentheses with a name": "SELECT x.b, x.d FROM (r JOIN t USING (a)) AS x",
    "conditions at the end": "SELECT r.b, t.d FROM r JOIN t JOIN u ON t.a = u.`Order` ON r.a = t.a",
    "left": "SELECT r.b, t.d FROM r LEFT JOIN t ON r.a = t.a AND t.d > 2",
    "right": "SELECT r.b, t.d FROM r RIGHT OUTER JOIN t ON r.a = t.a",
    "full": "SELECT r.*, t.d, t.a AS x FROM r FULL OUTER JOIN t ON r.a = t.a AND r.b > 0",
    "left then right": "SELECT r.b, t.d, f FROM r LEFT JOIN t ON r.a = t.a RIGHT JOIN u ON u.`Order` = t.a",
    "nest on the right": "SELECT r.b, t.d, f FROM r LEFT JOIN (t LEFT JOIN u ON u.`Order` = t.a) ON r.a = t.a",
    "outer, then a filter": "SELECT r.b, t.d FROM r LEFT JOIN t ON r.a = t.a WHERE t.d IS NULL OR t.d > 2",
    "left using": "SELECT a, r.b, t.d, t.a AS theirs FROM r LEFT JOIN t USING (a)",
    "right using": "SELECT a, r.b, t.d, r.a AS ours FROM r RIGHT JOIN t USING (a)",
    "full using": "SELECT a, s, r.b, t.d, r.a AS ours FROM r FULL JOIN t USING (a, s)",
    "full using twice": "SELECT a, x.b, t.d, y.b AS c FROM r AS x FULL JOIN t USING (a) FULL JOIN r AS y USING (a)",
    "natural left": "SELECT a, s, b, d FROM r NATURAL LEFT JOIN t",
    "semi": "SELECT * FROM r LEFT SEMI JOIN t ON r.a = t.a AND t.d > 1",
    "anti": "SELECT * FROM r LEFT ANTI JOIN t ON r.a = t.a",
    "aggregate over an outer join": "SELECT r.s, count(t.d) AS n, count(*) AS m FROM r LEFT JOIN t ON r.a = t.a GROUP BY r.s",
    # Subqueries in expressions
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
    # Lateral
    "lateral": "SELECT r.a, q.d FROM r, LATERAL (SELECT t.d FROM t WHERE t.a = r.a) AS q",
    "lateral on": "SELECT r.b, q.d FROM r JOIN LATERAL (SELECT t.d, t.s FROM t WHERE t.a < r.b) AS q ON q.s = r.s",
    "left lateral": "SELECT r.b, q.d, q.x FROM r LEFT JOIN LATERAL (SELECT d, 1 AS x FROM t WHERE t.a = r.a AND t.s = r.s) AS q ON true",
    "left lateral on": "SELECT r.b, q.x FROM r LEFT JOIN LATERAL (SELECT d + r.b AS x FROM t WHERE t.a = r.a) AS q ON q.x > 3",
    "lateral aggregate": "SELECT r.a, q.n, q.m FROM r, LATERAL (SELECT count(*) AS n, max(d) AS m FROM t WHERE t.a = r.a) AS q",
    "lateral aggregate on": "SELECT r.b, q.n FROM r JOIN LATERAL (SELECT count(*) AS n FROM t WHERE t.a = r.a) AS q ON q.n > 0",
    "left lateral aggregate": "SELECT r.b, q.n FROM r LEFT JOIN LATERAL (SELECT count(*) AS n FROM t WHERE t.a = r.a) AS q ON q.n > 1",
    "lateral top": "SELECT r.b, q.d FROM r, LATERAL (SELECT d FROM t WHERE t.a = r.a ORDER BY d DESC NULLS LAST, t.s LIMIT 1) AS q",
    "lateral groups": "SELECT r.b, q.s, q.n FROM r, LATERAL (SELECT t.s, count(*) AS n FROM t WHERE t.a <= r.b GROUP BY t.s) AS q",
    "lateral of nothing else": "SELECT r.b, q.x FROM r, LATERAL (SELECT r.a + r.b AS x) AS q WHERE q.x > 2",
    "lateral after lateral": """SELECT r.b, q.d, p.x FROM r, LATERAL (SELECT t.d FROM t WHERE t.a = r.a) AS q,
        LATERAL (SELECT q.d + r.b AS x) AS p""",
    "uncorrelated lateral": "SELECT r.b, q.n FROM r, LATERAL (SELECT count(*) AS n FROM t) AS q",
    # Queries in FROM
    "subquery": "SELECT q.x FROM (SELECT a + 1 AS x, b FROM r WHERE a > 0) AS q WHERE q.b > 1",
    "subquery without alias": "SELECT x FROM (SELECT a AS x FROM r)",
    "column aliases": "SELECT q.y FROM (SELECT a, b FROM r) AS q(x, y)",
    "values": "SELECT v.y, r.b FROM VALUES (1, 'x'), (2, NULL) AS v(x, y) JOIN r ON r.a = v.x",
    "cte": "WITH c AS (SELECT a FROM r) SELECT a FROM c",
    "cte twice": "WITH c AS (SELECT a, b FROM r) SELECT x.a, y.b FROM c AS x JOIN c AS y ON x.a < y.a",
    "cte of a cte": "WITH c AS (SELECT a FROM r), d AS (SELECT a + 1 AS a FROM c) SELECT c.a, d.a AS b FROM c CROSS JOIN d",
    "cte in a cte": "WITH c AS (WITH d AS (SELECT b AS x FROM r) SELECT x FROM d) SELECT x FROM c",
    "cte named as its table": "WITH r AS (SELECT a + 10 AS a FROM r) SELECT a FROM r",
    "inner cte hides outer": """WITH c AS (SELECT 1 AS x)
        SELECT q.x, c.x AS y FROM (WITH c AS (SELECT 2 AS x) SELECT x FROM c) AS q CROSS JOIN c""",
    "later cte hides a table": """WITH c AS (SELECT a FROM t), t AS (SELECT 5 AS a)
        SELECT c.a, t.a AS b FROM c CROSS JOIN t""",
    "inner cte reads the outer one it hides": """WITH c AS (SELECT a AS x FROM r)
        SELECT q.x FROM (WITH c AS (SELECT x + 1 AS x FROM c) SELECT x FROM c) AS q""",
    "cte with column aliases": "WITH c(x, y) AS (SELECT a, b FROM r) SELECT y FROM c WHERE x = 1",
    "cte in a union": "WITH c AS (SELECT a FROM r) SELECT a FROM c UNION ALL SELECT a + 1 FROM c",
    # Unions
    "union all": "SELECT a FROM r UNION ALL SELECT a FROM t",
    "union": "SELECT a FROM r UNION SELECT a FROM t",
    "union of unions": "SELECT a FROM r UNION SELECT a FROM t UNION (SELECT b FROM r UNION SELECT `Order` FROM u)",
    "union all of unions": "SELECT a FROM r UNION SELECT a FROM t UNION ALL SELECT `Order` FROM u",
    "union of union alls": "SELECT a FROM r UNION ALL SELECT a FROM t UNION SELECT `Order` FROM u",
    "bracketed union": "SELECT a FROM r UNION ALL (SELECT a FROM t UNION SELECT `Order` FROM u)",
    "star except": "SELECT * EXCEPT (s), s || 'x' AS x FROM r",
    "union by position": "SELECT a, b FROM r UNION ALL SELECT b, a FROM r",
    "union in from": "SELECT x, count(*) AS n FROM (SELECT a AS x FROM r UNION ALL SELECT a FROM t) GROUP BY x",
    "distinct": "SELECT DISTINCT a, s FROM r",
    "distinct expression": "SELECT DISTINCT a IS NULL AS x FROM r",
    "except": "SELECT a FROM r EXCEPT SELECT a FROM t",
    "except all": "SELECT a, s FROM r EXCEPT ALL SELECT a, s FROM t",
    "intersect": "SELECT a, s FROM r INTERSECT SELECT a, s FROM t",
    "intersect all": "SELECT a FROM r INTERSECT ALL SELECT a FROM t",
    "three sets": "SELECT a FROM r EXCEPT SELECT a FROM t INTERSECT SELECT `Order` FROM u",
    "set in from": "SELECT q.a, count(*) AS n FROM (SELECT a, b FROM r EXCEPT SELECT a, a FROM t) AS q GROUP BY q.a",
    # Windows
    "row number": "SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b, s) AS n FROM r",
    "ranks": "SELECT rank() OVER (PARTITION BY b ORDER BY s DESC) AS x, dense_rank() OVER (PARTITION BY a ORDER BY s) AS y FROM r",
    "running sum": "SELECT s, sum(b) OVER (PARTITION BY a ORDER BY b) AS x, sum(b) OVER (PARTITION BY a) AS y FROM r",
    "frame": "SELECT sum(b) OVER (PARTITION BY s ORDER BY b, a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM r",
    "short frame": "SELECT sum(b) OVER (PARTITION BY s ORDER BY b, a ROWS UNBOUNDED PRECEDING) AS x FROM r",
    "lag and lead": "SELECT lag(b) OVER w AS x, lead(b + 1) OVER w AS y FROM r WINDOW w AS (PARTITION BY s ORDER BY b, a)",
    "row number of all rows": "SELECT a, row_number() OVER (ORDER BY b DESC, a, s) AS n, sum(b) OVER (ORDER BY a) AS x FROM r",
    "window in an expression": "SELECT b - avg(b) OVER (PARTITION BY a) AS x FROM r WHERE b > 0",
    "window of an expression": "SELECT row_number() OVER (PARTITION BY a % 2 ORDER BY b * -1, a, s) AS n FROM r",
    "filter of a window": """SELECT a, b, sum(b) FILTER (WHERE b > 1) OVER (PARTITION BY a ORDER BY b, s) AS x,
        count(*) FILTER (WHERE s = 'a') OVER (PARTITION BY a) AS n FROM r""",
    "window over groups": """SELECT s, a, sum(b) AS x, rank() OVER (PARTITION BY a ORDER BY sum(b) DESC) AS n
        FROM r GROUP BY s, a""",
    "sum of sums": """SELECT s, a, sum(sum(b)) OVER (PARTITION BY a ORDER BY s) AS x, max(count(*)) OVER (PARTITION BY s) AS y
        FROM r GROUP BY s, a""",
    "order of a window by groups": "SELECT a, row_number() OVER w AS n FROM r GROUP BY a WINDOW w AS (ORDER BY count(*) DESC, a)",
    "share of a total": "SELECT s, sum(b) * 100 / sum(sum(b)) OVER (PARTITION BY s IS NULL) AS x FROM r GROUP BY s",
    "window over a join": "SELECT d, row_number() OVER (PARTITION BY r.a ORDER BY d, b, r.s, t.s) AS n FROM r JOIN t ON r.a = t.a",
    "window over a window": """SELECT a, sum(n) OVER (PARTITION BY a) AS x FROM
        (SELECT a, row_number() OVER (PARTITION BY s ORDER BY a, b) AS n FROM r) AS q""",
    "qualify": "SELECT a, b FROM r QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC, s) = 1",
    "qualify by alias": "SELECT a, b, rank() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM r QUALIFY n < 2",
    "latest row": """SELECT a, b FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST, s) AS n FROM r)
        WHERE n = 1""",
    "distinct over windows": "SELECT DISTINCT a, count(*) OVER (PARTITION BY a) AS n FROM r",
    "groups of windows": "SELECT n, count(*) AS m FROM (SELECT rank() OVER (PARTITION BY a ORDER BY b) AS n FROM r) GROUP BY n",
    # Orders
    "limit": "SELECT a, b FROM r ORDER BY b DESC NULLS LAST, a LIMIT 2",
    "limit by position": "SELECT b, a FROM r ORDER BY 2 NULLS FIRST, 1 LIMIT 2",
    "limit and offset": "SELECT b FROM r ORDER BY b NULLS LAST, a, s LIMIT 2 OFFSET 1",
    "offset": "SELECT a, b FROM r ORDER BY b NULLS FIRST, a OFFSET 2",
    "limit by something hidden": "SELECT s FROM r ORDER BY b * 2 DESC NULLS LAST, a LIMIT 2",
    "limit of groups": "SELECT s, count(*) AS n FROM r GROUP BY s ORDER BY n DESC, s LIMIT 2",
    "limit by an aggregate": "SELECT s FROM r GROUP BY s ORDER BY max(b) DESC NULLS LAST LIMIT 1",
    "limit by what is made of labels": """SELECT a AS x, b, row_number() OVER (ORDER BY b, a, s) AS n FROM r
        ORDER BY CASE WHEN n > 2 THEN x END NULLS LAST, n DESC LIMIT 3""",
    "limit of distinct by what is made of labels": "SELECT DISTINCT a AS x, b FROM r ORDER BY coalesce(x, 0) + b NULLS LAST, x LIMIT 3",
    "limit of a union by what is made of labels": "SELECT a FROM r UNION SELECT a FROM t ORDER BY -a NULLS FIRST LIMIT 2",
    "grouped by a subquery": """SELECT CASE WHEN a IN (SELECT a FROM t) THEN 1 ELSE 2 END AS x, count(*) AS n FROM r
        GROUP BY CASE WHEN a IN (SELECT a FROM t) THEN 1 ELSE 2 END""",
    "limit of one row": "SELECT count(*) AS n, max(b) AS x FROM r LIMIT 5",
    "limit of one row of several tables": "SELECT * FROM (SELECT count(*) AS n FROM r), (SELECT max(d) AS x FROM t) LIMIT 1",
    "limit of distinct": "SELECT DISTINCT a FROM r ORDER BY a NULLS LAST LIMIT 2",
    "limit of a union": "SELECT a FROM r UNION ALL SELECT a FROM t ORDER BY a NULLS LAST LIMIT 3",
    "limit in a subquery": "SELECT sum(q.b) AS x FROM (SELECT b FROM r ORDER BY b DESC NULLS LAST LIMIT 2) AS q",
    "limit in a union": "(SELECT b FROM r ORDER BY b NULLS LAST LIMIT 1) UNION ALL (SELECT a FROM t ORDER BY a NULLS LAST LIMIT 1)",
    "limit in a scalar": "SELECT a, (SELECT d FROM t ORDER BY d DESC NULLS LAST LIMIT 1) AS x FROM r",
    "limit in an in": "SELECT b FROM r WHERE a IN (SELECT a FROM t ORDER BY d NULLS LAST LIMIT 2)",
    # Aggregates
    "count": "SELECT count(*) AS n, count(a) AS m, count(DISTINCT a) AS d FROM r",
    "groups": "SELECT s, sum(a) AS x, min(b) AS y, max(b) AS z, avg(a) AS w FROM r GROUP BY s",
    "hidden key": "SELECT sum(a) AS x FROM r GROUP BY s",
    "two keys": "SELECT s, a, count(*) AS n FROM r GROUP BY a, s",
    "key expression": "SELECT a + 1 AS k, count(*) AS n FROM r GROUP BY a + 1",
    "expression over key": "SELECT (a + 1) * 2 AS k, count(*) AS n FROM r GROUP BY a + 1",
    "key by alias": "SELECT a + 1 AS k, count(*) AS n FROM r GROUP BY k",
    "key by ordinal": "SELECT s, a, count(*) AS n FROM r GROUP BY 2, 1",
    "constant by ordinal": "SELECT 1 AS one, count(*) AS n FROM r GROUP BY 1",
    "constant by alias": "SELECT 'x' AS x, count(*) AS n FROM r GROUP BY x",
    "constant of nothing": "SELECT 1 AS one, count(*) AS n FROM r WHERE a > 99 GROUP BY 1",
    "group by all": "SELECT s, a + 1 AS x, sum(b) + count(*) AS y FROM r GROUP BY ALL",
    "group by all of nothing": "SELECT count(*) AS n FROM r GROUP BY ALL",
    "expression over aggregates": "SELECT s, sum(a) / count(*) + 1 AS x FROM r GROUP BY s",
    "same aggregate twice": "SELECT sum(a) AS x, sum(a) + 1 AS y FROM r",
    "aggregate of an expression": "SELECT sum(a * b + 1) AS x FROM r",
    "case over aggregate": "SELECT s, CASE WHEN count(*) > 1 THEN sum(b) ELSE 0 END AS x FROM r GROUP BY s",
    "filter": "SELECT s, sum(a) FILTER (WHERE b > 1) AS x, count(*) FILTER (WHERE b > 1) AS y FROM r GROUP BY s",
    "having": "SELECT s, count(*) AS n FROM r GROUP BY s HAVING count(*) > 1",
    "having something else": "SELECT s FROM r GROUP BY s HAVING max(b) > 1 AND s IS NOT NULL",
    "having an alias": "SELECT s, count(*) AS n FROM r GROUP BY s HAVING n > 1",
    "having without groups": "SELECT count(*) AS n FROM r HAVING count(*) > 100",
    "having only": "SELECT 1 AS x FROM r HAVING count(*) > 1",
    "distinct over groups": "SELECT DISTINCT count(*) AS n FROM r GROUP BY s",
    "aggregate over aggregate": "SELECT max(n) AS m FROM (SELECT s, count(*) AS n FROM r GROUP BY s)",
    "join of aggregates": """SELECT x.n, y.m FROM (SELECT a, count(*) AS n FROM r GROUP BY a) AS x
        JOIN (SELECT a, sum(d) AS m FROM t GROUP BY a) AS y ON x.a = y.a""",
    "constant above a global aggregate": "SELECT 'all' AS label FROM (SELECT count(*) AS n FROM r)",
    "global aggregate of nothing": "SELECT count(*) AS n, sum(a) AS x FROM r WHERE a > 99",
    "group of nothing": "SELECT a, count(*) AS n FROM r WHERE a > 99 GROUP BY a",
    "rollup": "SELECT a, s, count(*) AS n, sum(a) AS x FROM r GROUP BY ROLLUP (a, s)",
    "cube": "SELECT a, s, count(*) AS n FROM r GROUP BY CUBE (a, s)",
    "grouping sets": "SELECT a, s, max(b) AS x FROM r GROUP BY GROUPING SETS ((a, s), a, ())",
    "part of a rollup": "SELECT a, s, b, count(*) AS n FROM r GROUP BY a, ROLLUP (s, b)",
    "rollup of an expression": "SELECT a + 1 AS x, count(*) AS n FROM r GROUP BY ROLLUP (a + 1)",
    "grouping": "SELECT a, s, grouping(a) AS x, count(*) AS n FROM r GROUP BY ROLLUP (a, s)",
    "having of a rollup": "SELECT a, s, sum(b) AS x FROM r GROUP BY ROLLUP (a, s) HAVING sum(b) > 1",
    "distinct pairs": "SELECT s, count(DISTINCT (a, b)) AS x FROM r WHERE b > 0 GROUP BY s",
    "bool": "SELECT bool_and(f) AS x, bool_or(f) AS y FROM u",
    "mean": "SELECT mean(a) AS x FROM r",
}


@pytest.mark.parametrize("sql", READ.values(), ids=READ.keys())
def test_reads_what_is_written(duck: Connection, sql: str) -> None:
    """The rows of the text, of the algebra and of the algebra's text are the same."""
    output = tuple(column[0] for column in duck.execute(to_duckdb(sql)).description)
    relation = bound(sql, output)
    expected = fetch(duck, sql)
    if not any(isinstance(node, Generate) for node in walk(relation)):  # which DuckDB does not have
        assert fetch(duck, unparse(relation)) == expected, unparse(relation)
    assert fetch(duck, unparse(as_read(sql, output))) == expected, unparse(as_read(sql, output))
    if not any(isinstance(node, Verbatim) for node in walk(relation)):
        assert comparable(evaluate(relation, TABLES)) == expected


@pytest.mark.parametrize("sql", READ.values(), ids=READ.keys())
@settings(max_examples=3)
@given(history=histories(steps=1))
def test_follows_every_change(duck: Connection, sql: str, history: History) -> None:
    output = tuple(column[0] for column in duck.execute(to_duckdb(sql)).description)
    rel = without_ties(bound(sql, output))
    if any(isinstance(node, Verbatim) for node in walk(rel)):
        return
    tables, changed = history.between(0, 1), history.changed(0, 1)
    try:
        then, now = evaluate(before(rel, changed), tables), evaluate(rel, tables)
    except ArithmeticError:  # more than one row where there must be one
        return
    delta = change(rel, changed)
    assert plus(then, signed(delta, tables)) == now, show(delta)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH Big AS (SELECT a FROM r) SELECT big.A FROM BIG",
        "WITH R AS (SELECT 5 AS a) SELECT a FROM r",
    ],
)
def test_names_of_ctes_have_no_case(duck: Connection, sql: str) -> None:
    test_reads_what_is_written(duck, sql)


def test_in_as_a_value_is_never_null() -> None:
    relation = bound(
        "SELECT a, a IN (SELECT a FROM t) AS x, a NOT IN (SELECT `Order` FROM u) AS y FROM r", ("a", "x", "y")
    )
    rows = evaluate(relation, TABLES)
    assert rows == Counter({(1, True, False): 3, (2, True, False): 1, (None, False, False): 1, (3, False, False): 1})


def test_star_of_using_has_the_common_columns_first(duck: Connection) -> None:
    relation = bound("SELECT * FROM r JOIN t USING (s, a)", ("s", "a", "b", "d"))
    assert fetch(duck, unparse(relation)) == fetch(duck, "SELECT r.s, r.a, b, d FROM r JOIN t USING (s, a)")


@pytest.mark.parametrize("clause", ["SORT BY a", "CLUSTER BY a", "DISTRIBUTE BY a SORT BY b", "ORDER BY a"])
def test_where_rows_are_put_does_not_matter(clause: str) -> None:
    assert bound(f"SELECT /*+ REPARTITION(3) */ a FROM r {clause}", ("a",)) == bound("SELECT a FROM r", ("a",))


def test_time_windows_are_made_below_what_reads_them() -> None:
    assert unparse(
        as_read("SELECT window.start AS x, count(*) AS n FROM r GROUP BY s, window(b, '2 days')", ("x", "n"))
    ) == (
        "SELECT (`q`.`window`.start) AS `x`, COUNT(*) AS `n`\n"
        "FROM (SELECT `r`.`b`, `r`.`s`, WINDOW(`r`.`b`, '2 days') AS `window`\n"
        "  FROM r AS `r`) AS `q`\n"
        "GROUP BY `q`.`s`, `q`.`window`"
    )
    assert "WINDOW(" in unparse(bound("SELECT count(*) AS n FROM (SELECT window(b, '1 day') AS w FROM r)", ("n",)))


def test_forms_of_aggregates() -> None:
    text = unparse(bound("""SELECT listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s DESC) FILTER (WHERE b > 1) AS x,
        first(b) IGNORE NULLS AS y, mode() WITHIN GROUP (ORDER BY a) AS z FROM r""", ("x", "y", "z")))  # fmt: skip
    assert text == (
        "SELECT LISTAGG(DISTINCT `r`.`s`, ',') WITHIN GROUP (ORDER BY `r`.`s` DESC NULLS LAST) FILTER (WHERE (`r`.`b` > 1)) AS `x`, "
        "FIRST(`r`.`b`) IGNORE NULLS AS `y`, MODE() WITHIN GROUP (ORDER BY `r`.`a` ASC NULLS FIRST) AS `z`\nFROM r AS `r`"
    )


def test_a_subquery_in_the_condition_of_lateral() -> None:
    """Which DuckDB does not read."""
    lateral = "SELECT r.b, q.d FROM r JOIN LATERAL (SELECT t.d, t.a FROM t WHERE t.a = r.a) AS q"
    known = "EXISTS (SELECT 1 FROM u WHERE u.`Order` = q.a AND f)"
    on, where = (bound(f"{lateral} {word} {known}", ("b", "d")) for word in ("ON", "WHERE"))
    assert evaluate(on, TABLES) == evaluate(where, TABLES) != Counter()


def test_any_is_an_aggregate() -> None:
    relation = bound("SELECT any(f) IS NOT NULL AS x FROM u", ("x",))
    assert evaluate(relation, TABLES) == Counter({(True,): 1})
    assert "LIKE ANY ('a%', 'b%')" in unparse(bound("SELECT a FROM r WHERE s LIKE ANY ('a%', 'b%')", ("a",)))


def test_output_names_are_those_given() -> None:
    assert names(bound("SELECT a AS x, b FROM r", ("First", "second col"))) == ("First", "second col")


def test_a_view_reads_a_view(duck: Connection) -> None:
    """Over the backing table of another view, with its hidden columns, twice in one query."""
    definition = bound("SELECT s, avg(a) AS m, count(*) AS n FROM r GROUP BY s HAVING count(*) > 1", ("s", "m", "n"))
    form = stored_form(definition, "backing")
    rows = evaluate(form.kept.content, TABLES)
    tables = {**TABLES, "backing": TableStates(names(form.kept.content), rows, rows)}
    sql = "SELECT x.s, x.m, y.n FROM v AS x JOIN v AS y ON x.s = y.s WHERE x.n > 0"
    result = bind(parse_query(sql), FakeCatalog(v=form.public), ("s", "m", "n"))
    assert isinstance(result, Bound), str(result)
    duck.execute("CREATE OR REPLACE TEMP VIEW v AS SELECT s, avg(a) m, count(*) n FROM r GROUP BY s HAVING n > 1")
    assert comparable(evaluate(result.relation, tables)) == fetch(duck, sql)


def test_mentions_of_tables() -> None:
    sql = "WITH c AS (SELECT a FROM main.r) SELECT c.a FROM c JOIN `t` AS x ON c.a = x.a JOIN r ON r.a = c.a"
    uses = table_uses(parse_query(sql), FakeCatalog())
    found = [
        (use.source.name, sql[use.mention.start : use.mention.end], use.mention.aliased, use.mention.parts[-1])
        for use in uses
    ]
    assert sorted(found) == [("r", "main.r", False, "r"), ("r", "r", False, "r"), ("t", "`t`", True, "t")]
    (sampled,) = table_mentions(parse_query("SELECT a FROM r TABLESAMPLE (10 PERCENT)"))
    assert sampled.aliased, "an alias could only come behind it"


def test_unknown_table() -> None:
    with pytest.raises(SqlError, match="no table nowhere"):
        bind(parse_query("SELECT a FROM nowhere"), FakeCatalog(), ("a",))


# What cannot be read: the construct, and the text its position points to ("" where it knows none).
def test_a_star_beside_using_begins_with_the_columns_joined_by() -> None:
    for query in (
        "SELECT r.*, d FROM r JOIN t USING (s)",
        "SELECT q.*, d FROM (SELECT a, b, s FROM r) q JOIN t USING (s)",
    ):
        read = as_read(query, ("w", "x", "y", "z"))
        assert show(read).splitlines()[0].replace("_2", "") == "project w = s, x = a, y = b, z = d"


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT explode(split(s, '-')) FROM r", 1),
        ("SELECT a, posexplode(array(a, b)) FROM r", 3),
        ("SELECT explode(map('x', a)) FROM r", 2),
        ("SELECT stack(2, a, b, 1, 2) FROM r", 2),
        ("SELECT json_tuple(s, 'x', 'y', 'z') FROM r", 3),
        ("SELECT inline(array(struct(1 AS x, a AS y), struct(2 AS x, NULL AS y))) FROM r", 2),
        ("SELECT col FROM (SELECT explode(split(s, '-')) FROM r)", 1),
        ("SELECT q.* FROM (SELECT struct(a AS x, b) AS q FROM r)", 2),
    ],
)
def test_columns_that_spark_names(query: str, columns: int) -> None:
    assert len(names(bound(query, tuple(f"c{i}" for i in range(columns))))) == columns


REFUSED = {
    "SELECT (SELECT hll_sketch_agg(t.s) FROM t WHERE t.a = r.a) AS x FROM r": ("correlated subquery", None),
    "SELECT inline(x) FROM (SELECT array(struct(a, b)) AS x FROM r)": ("inline()", "(x)"),
    "SELECT x.* FROM (SELECT named_struct('p', a) AS x FROM r)": ("*", "*"),
    "SELECT a FROM r LIMIT 3": ("LIMIT without ORDER BY", "3"),
    "SELECT a FROM (SELECT a FROM r LIMIT 3) AS q": ("LIMIT without ORDER BY", "3"),
    "SELECT a FROM r UNION ALL SELECT a FROM t LIMIT 3": ("LIMIT without ORDER BY", "3"),
    "SELECT a FROM r OFFSET 3": ("OFFSET without ORDER BY", "3"),
    "SELECT a, lead(a) OVER (ORDER BY a) AS n FROM r": ("window without PARTITION BY", "lead"),
    "SELECT a FROM r WHERE EXISTS (SELECT d FROM t FULL JOIN u ON t.a = r.a)": ("correlated subquery", "d FROM t FULL"),
    "SELECT a FROM r WHERE EXISTS (SELECT a FROM t UNION ALL SELECT d FROM t FULL JOIN u ON t.a = r.a)": (
        "correlated subquery",
        "a FROM t UNION",
    ),
    "SELECT q.n FROM r, LATERAL (SELECT count(*) AS n FROM t FULL JOIN u ON t.a = r.a) AS q": (
        "correlated subquery",
        "count(*)",
    ),
    "SELECT a FROM r WHERE b IN (SELECT count(*) FROM t WHERE t.a = r.a GROUP BY ROLLUP (t.s))": (
        "correlated subquery",
        "count(*)",
    ),
    "SELECT r.a FROM r LEFT JOIN t ON EXISTS (SELECT f FROM u WHERE `Order` = r.a + t.a)": (
        "correlated subquery",
        "f FROM u",
    ),
    "SELECT a,\n  rand() AS n FROM r": ("rand()", "rand"),
    "SELECT CASE WHEN rand() > 0.5 THEN 1 ELSE 2 END AS n FROM r": ("rand()", "rand"),
    "SELECT uuid() AS n FROM r": ("uuid()", "uuid"),
    "SELECT a FROM r WHERE b > unix_timestamp()": ("unix_timestamp()", "unix_timestamp"),
    "SELECT current_date() AS d FROM r": ("current_date()", "current_date"),
    "SELECT current_timestamp AS d FROM r": ("current_timestamp()", None),
    "SELECT current_user() AS u FROM r": ("current_user()", "current_user"),
    "SELECT window(a, '1 day') AS v, window(b, '1 day') AS w FROM r": ("window()", "window(b"),
    "SELECT session_window(a, '1 day') AS n FROM r": (
        "session_window()",
        "session_window(a",
    ),
    "SELECT a FROM r UNION BY NAME SELECT a FROM t": ("UNION BY NAME", None),
    "SELECT measure(s) AS x FROM r": ("measure()", "measure"),
    "SELECT DISTINCT ON (a) a FROM r": ("DISTINCT ON", None),
    "SELECT a FROM r TABLESAMPLE (10 PERCENT)": ("TABLESAMPLE", "r TABLESAMPLE"),
    "SELECT a FROM r VERSION AS OF 3": ("VERSION AS OF", "r VERSION"),
    "SELECT z FROM r PIVOT (1 + measure(b) FOR s IN ('z'))": ("measure()", "measure"),
    "SELECT * FROM r PIVOT (sum(b) FOR s IN ('a', 'b'))": ("*", None),
    "SELECT a FROM csv": ("csv", "csv"),
    "SELECT x FROM collations()": ("table function collations()", "collations"),
    "SELECT x FROM r JOIN python_worker_logs() AS l(x) ON true": (
        "table function python_worker_logs()",
        "python_worker_logs",
    ),
    "SELECT id FROM range(0, rand())": ("rand()", "rand"),
    "WITH RECURSIVE c AS (SELECT 1 AS x) SELECT x FROM c": ("WITH RECURSIVE", None),
    "SELECT a FROM r WHERE a = :x": ("parameter", None),
    "SELECT a FROM r SORT BY a LIMIT 3": ("LIMIT without ORDER BY", "3"),
    "SELECT sum(sum(a)) AS x FROM r": ("SUM(r.a)", "sum(a)"),
    "SELECT a FROM r WHERE sum(a) > 1": ("SUM(r.a)", "sum(a)"),
    "SELECT z FROM r": ("this query", None),
}


@pytest.mark.parametrize(("sql", "expected"), REFUSED.items(), ids=REFUSED.keys())
def test_says_what_it_cannot_read(sql: str, expected: tuple[str, str | None]) -> None:
    construct, there = expected
    reason = bind(parse_query(sql), FakeCatalog(), ("x",))
    assert isinstance(reason, Reason), "read after all"
    assert reason.construct == construct
    assert reason.why
    if there is not None:
        assert reason.position is not None
        line = sql.splitlines()[reason.position.line - 1]
        assert line[reason.position.column - 1 :].startswith(there), str(reason)


@pytest.mark.parametrize(
    ("sql", "name", "there"),
    [
        ("SELECT a,\n lag(b) OVER (PARTITION BY a ORDER BY b) AS y FROM r", "__vk_w", "lag(b)"),
        ("SELECT a, n AS y FROM\n (SELECT a, sum(DISTINCT b) AS n FROM r GROUP BY a)", "sum", "sum(D"),
        ("SELECT 1 AS x, count(*) AS y FROM r\n GROUP BY upper(s)", "__vk_upper", "upper(s)"),
        ("SELECT s, count(*) AS y FROM r\n GROUP BY s", "s", "s"),
        ("SELECT DISTINCT a,\n s AS y FROM r", "y", "s AS y"),
    ],
    ids=["window", "measure", "computed key", "key", "column of the view"],
)
def test_places_in_the_text(sql: str, name: str, there: str) -> None:
    """Where something stands that may be refused once its type is known."""
    result = bind(parse_query(sql), FakeCatalog(), ("x", "y"))
    assert isinstance(result, Bound), str(result)
    found = result.places[name]
    assert sql.splitlines()[found.line - 1][found.column - 1 :].startswith(there), found
