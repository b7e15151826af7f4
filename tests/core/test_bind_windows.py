"""Window functions and LIMIT are read as the database reads them."""

from __future__ import annotations

import pytest
from duck import Connection, to_duckdb
from hypothesis import given, settings
from reading import TABLES, bound, follows_every_change, reads_what_is_written

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.orders import without_ties
from viewkeeper.algebra.relations import Window, names
from viewkeeper.changes.kept import KeptGroups
from viewkeeper.changes.stored import stored_form
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import TableStates, evaluate
from viewkeeper.testing.histories import History, histories

pytestmark = pytest.mark.core

READ = {
    "first by all columns": "SELECT b, a, s FROM r ORDER BY ALL LIMIT 3",
    "last by all columns": "SELECT a % 2 AS x, count(*) AS n FROM r GROUP BY a % 2 ORDER BY ALL DESC NULLS LAST LIMIT 2",
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
    "partitions by the same twice": "SELECT a, sum(b) OVER (PARTITION BY a, s, a) AS x, count(*) OVER (PARTITION BY s, s ORDER BY b, b) AS n FROM r",
    "filter of a window": """SELECT a, b, sum(b) FILTER (WHERE b > 1) OVER (PARTITION BY a ORDER BY b, s) AS x,
        count(*) FILTER (WHERE s = 'a') OVER (PARTITION BY a) AS n FROM r""",
    "window over groups": """SELECT s, a, sum(b) AS x, rank() OVER (PARTITION BY a ORDER BY sum(b) DESC) AS n
        FROM r GROUP BY s, a""",
    "sum of sums": """SELECT s, a, sum(sum(b)) OVER (PARTITION BY a ORDER BY s) AS x, max(count(*)) OVER (PARTITION BY s) AS y
        FROM r GROUP BY s, a""",
    "order of a window by groups": "SELECT a, row_number() OVER w AS n FROM r GROUP BY a WINDOW w AS (ORDER BY count(*) DESC, a)",
    "share of a total": "SELECT s, sum(b) * 100 / sum(sum(b)) OVER (PARTITION BY s IS NULL) AS x FROM r GROUP BY s",
    "share of all groups": "SELECT s, sum(b) * 100 / sum(sum(b)) OVER () AS x, count(*) * 100 / sum(count(*)) OVER () AS y FROM r GROUP BY s",
    "next group": """SELECT s, n, lead(s) OVER (ORDER BY n, s) AS x, sum(n) OVER (ORDER BY n DESC, s ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS y
        FROM (SELECT s, count(*) AS n FROM r GROUP BY s HAVING count(*) > 0) AS q WHERE n < 3""",
    "groups of shares": """SELECT x > 30 AS large, count(*) AS n FROM (SELECT s, count(*) * 100 / sum(count(*)) OVER () AS x FROM r
        GROUP BY s) AS q GROUP BY x > 30""",
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
    "limit of one row": "SELECT count(*) AS n, max(b) AS x FROM r LIMIT 5",
    "limit of one row of several tables": "SELECT * FROM (SELECT count(*) AS n FROM r), (SELECT max(d) AS x FROM t) LIMIT 1",
    "limit of distinct": "SELECT DISTINCT a FROM r ORDER BY a NULLS LAST LIMIT 2",
    "limit of a union": "SELECT a FROM r UNION ALL SELECT a FROM t ORDER BY a NULLS LAST LIMIT 3",
    "limit in a subquery": "SELECT sum(q.b) AS x FROM (SELECT b FROM r ORDER BY b DESC NULLS LAST LIMIT 2) AS q",
    "limit in a union": "(SELECT b FROM r ORDER BY b NULLS LAST LIMIT 1) UNION ALL (SELECT a FROM t ORDER BY a NULLS LAST LIMIT 1)",
    "limit in a scalar": "SELECT a, (SELECT d FROM t ORDER BY d DESC NULLS LAST LIMIT 1) AS x FROM r",
    "limit in an in": "SELECT b FROM r WHERE a IN (SELECT a FROM t ORDER BY d NULLS LAST LIMIT 2)",
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


@pytest.mark.parametrize("sql", [READ["share of all groups"], READ["next group"]])
def test_a_window_of_all_groups_is_computed_when_the_view_is_read(duck: Connection, sql: str) -> None:
    """The groups are kept, so that a change touches as many rows as it touches groups."""
    definition = without_ties(bound(sql, tuple(column[0] for column in duck.execute(to_duckdb(sql)).description)))
    form = stored_form(definition, "v")
    assert isinstance(form.kept, KeptGroups)
    kept = evaluate(form.kept.content, TABLES)
    tables = {**TABLES, "v": TableStates(names(form.kept.content), kept, kept)}
    assert evaluate(form.public, tables) == evaluate(definition, TABLES)


@pytest.mark.parametrize(
    "function",
    [
        "MODE() WITHIN GROUP (ORDER BY `r`.`b` DESC NULLS LAST)",
        "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY `r`.`b` DESC NULLS LAST) FILTER (WHERE (`r`.`b` > 1))",
        "LISTAGG(`r`.`s`, ',') WITHIN GROUP (ORDER BY `r`.`s` ASC NULLS FIRST)",
    ],
)
def test_values_by_their_order_over_a_window(function: str) -> None:
    read = bound(f"SELECT {function} OVER (PARTITION BY a) AS m FROM r", ("m",))
    assert f"{function} OVER (PARTITION BY `r`.`a`)" in unparse(read)
    (window,) = (node for node in walk(without_ties(read)) if isinstance(node, Window))
    assert not window.order_by  # their own order tells all


@pytest.mark.parametrize("within", ["", " WITHIN GROUP (ORDER BY b DESC)"])
def test_a_list_whose_order_has_ties_is_in_that_of_its_values(within: str) -> None:
    """Spark takes no order of the rows beside it."""
    read = without_ties(bound(f"SELECT listagg(s){within} OVER (PARTITION BY a) AS m FROM r", ("m",)))
    (window,) = (node for node in walk(read) if isinstance(node, Window))
    assert not window.order_by and not window.columns[0].frame
    assert [o.column for o in window.columns[0].within][-1] == "s"
    assert stored_form(read, "v")
