"""Names, expressions, subqueries in FROM and common table expressions are read as the database reads them."""

from __future__ import annotations

import pytest
from duck import Connection, comparable, fetch
from fake_catalog import FakeCatalog
from hypothesis import given, settings
from reading import TABLES, bound, follows_every_change, reads_what_is_written

from viewkeeper.algebra.relations import names
from viewkeeper.changes.kept import KeptGroups
from viewkeeper.changes.stored import stored_form
from viewkeeper.errors import SqlError
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.expressions import Refusal
from viewkeeper.sql.names import names_schemas, table_mentions, table_uses
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import TableStates, evaluate
from viewkeeper.testing.histories import History, histories

pytestmark = pytest.mark.core

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
    "star except": "SELECT * EXCEPT (s), s || 'x' AS x FROM r",
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
    # Queries in FROM
    "subquery": "SELECT q.x FROM (SELECT a + 1 AS x, b FROM r WHERE a > 0) AS q WHERE q.b > 1",
    "subquery without alias": "SELECT x FROM (SELECT a AS x FROM r)",
    "column aliases": "SELECT q.y FROM (SELECT a, b FROM r) AS q(x, y)",
    "values": "SELECT v.y, r.b FROM VALUES (1, 'x'), (2, NULL) AS v(x, y) JOIN r ON r.a = v.x",
    "values in brackets with a join": "SELECT r.b FROM r LEFT SEMI JOIN (VALUES (1), (2) AS v(x) JOIN t ON v.x = t.a) ON r.a = v.x",
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


@pytest.mark.parametrize(
    "sql",
    [
        "WITH Big AS (SELECT a FROM r) SELECT big.A FROM BIG",
        "WITH R AS (SELECT 5 AS a) SELECT a FROM r",
    ],
)
def test_names_of_ctes_have_no_case(duck: Connection, sql: str) -> None:
    test_reads_what_is_written(duck, sql)


def test_output_names_are_those_given() -> None:
    assert names(bound("SELECT a AS x, b FROM r", ("First", "second col"))) == ("First", "second col")


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


@pytest.mark.parametrize("clause", ["SORT BY a", "CLUSTER BY a", "DISTRIBUTE BY a SORT BY b", "ORDER BY a"])
def test_where_rows_are_put_does_not_matter(clause: str) -> None:
    assert bound(f"SELECT /*+ REPARTITION(3) */ a FROM r {clause}", ("a",)) == bound("SELECT a FROM r", ("a",))


@pytest.mark.parametrize(
    "view",
    [
        "SELECT s, avg(a) AS m, count(*) AS n FROM r GROUP BY s HAVING count(*) > 1",
        "SELECT s, count(*) * 100 / sum(count(*)) OVER () AS m, max(count(*)) FILTER (WHERE s <> '') OVER () AS n FROM r GROUP BY s",
    ],
)
def test_a_view_reads_a_view(duck: Connection, view: str) -> None:
    """Over the backing table of another view, with its hidden columns, twice in one query."""
    form = stored_form(bound(view, ("s", "m", "n")), "backing")
    assert isinstance(form.kept, KeptGroups)
    rows = evaluate(form.kept.content, TABLES)
    tables = {**TABLES, "backing": TableStates(names(form.kept.content), rows, rows)}
    sql = "SELECT x.s, x.m, y.n FROM v AS x JOIN v AS y ON x.s = y.s WHERE x.n > 0"
    result = bind(parse_query(sql), FakeCatalog(v=form.public), ("s", "m", "n"))
    assert isinstance(result, Bound), str(result)
    duck.execute(f"CREATE OR REPLACE TEMP VIEW v AS {view}")
    assert comparable(evaluate(result.relation, tables)) == fetch(duck, sql)


def test_mentions_of_tables() -> None:
    sql = "WITH c AS (SELECT a FROM main.r) SELECT c.a FROM c JOIN `t` AS x ON c.a = x.a JOIN r ON r.a = c.a"
    uses = table_uses(parse_query(sql), FakeCatalog())
    found = [
        (use.source.name, sql[use.mention.start : use.mention.end], use.mention.aliased, use.mention.parts[-1])
        for use in uses
    ]
    assert sorted(found) == [("r", "main.r", False, "r"), ("r", "r", False, "r"), ("t", "`t`", True, "t")]
    named = "SELECT a FROM IDENTIFIER('main.r') JOIN t USING (a)"
    by_text, _ = table_mentions(parse_query(named))
    assert by_text.parts == ("main", "r") and named[by_text.start : by_text.end] == "IDENTIFIER('main.r')"
    (sampled,) = table_mentions(parse_query("SELECT a FROM r TABLESAMPLE (10 PERCENT)"))
    assert sampled.aliased, "an alias could only come behind it"
    for pivoted in ("c PIVOT (sum(a) FOR b IN (1 AS x))", "c UNPIVOT (v FOR n IN (a, b))"):
        (mentioned,) = table_mentions(parse_query(f"WITH c AS (SELECT a, b, s FROM r) SELECT * FROM {pivoted}"))
        assert mentioned.parts == ("r",), "what is pivoted is no table"


def test_tables_that_the_text_does_not_name() -> None:
    assert not table_uses(parse_query("SELECT id FROM range(3), explode(array(1)) AS x(y)"), FakeCatalog())
    for function in ("IDENTIFIER('ma' || 'in.r')", "own('r')"):
        with pytest.raises(Refusal, match="this table function"):
            table_uses(parse_query(f"SELECT a FROM r JOIN {function} USING (a)"), FakeCatalog())


def test_unknown_table() -> None:
    with pytest.raises(SqlError, match="no table nowhere"):
        bind(parse_query("SELECT a FROM nowhere"), FakeCatalog(), ("a",))


def test_whether_columns_are_called_by_schemas() -> None:
    assert names_schemas(parse_query("SELECT shop.r.a FROM shop.r"))
    assert not names_schemas(parse_query("SELECT r.s.x, a FROM shop.r"))


@pytest.mark.parametrize(
    ("piped", "plain"),
    [
        ("FROM r |> SET b = a + b, a = b * 2", "SELECT (a + b) * 2 AS a, a + b AS b, s FROM r"),
        ("SELECT a, b FROM r |> ORDER BY a, b |> SET a = b", "SELECT b AS a, b FROM r"),
        ("FROM r |> WHERE a > 0 |> DROP s |> DROP b", "SELECT a FROM r WHERE a > 0"),
        ("FROM r |> SELECT a, b, s |> ORDER BY b, a, s |> OFFSET 2", "SELECT a, b, s FROM r ORDER BY b, a, s OFFSET 2"),
        ("FROM r |> AS x |> JOIN t AS y ON x.a = y.a |> SELECT x.b, y.d", "SELECT r.b, t.d FROM r JOIN t ON r.a = t.a"),
    ],
)
def test_pipes(piped: str, plain: str) -> None:
    output = tuple(parse_query(plain).named_selects)
    assert evaluate(bound(piped, output), TABLES) == evaluate(bound(plain, output), TABLES)


def test_arguments_by_name_stay_so() -> None:
    assert "MASK(`r`.`s`, upperChar => 'Q', lowerChar => `r`.`s`)" in unparse(
        bound("SELECT mask(s, upperChar => 'Q', lowerChar => s) AS x FROM r", ("x",))
    )
