"""Binding says what it cannot read, and where that stands."""

from __future__ import annotations

import pytest
from fake_catalog import FakeCatalog

from viewkeeper.algebra.reasons import Reason
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.parse import parse_query

pytestmark = pytest.mark.core

# What cannot be read: the construct, and the text its position points to (None: not looked at).
REFUSED = {
    "SELECT (SELECT hll_sketch_agg(t.s) FROM t WHERE t.a = r.a) AS x FROM r": ("correlated subquery", None),
    "SELECT inline(x) FROM (SELECT array(struct(a, b)) AS x FROM r)": ("inline()", "(x)"),
    "SELECT x.* FROM (SELECT named_struct('p', a) AS x FROM r)": ("*", "*"),
    "SELECT a FROM r WHERE (a, b) NOT IN (SELECT (a, d) FROM t)": ("correlated subquery", None),
    "SELECT * FROM (SELECT a, b AS a FROM r) ORDER BY 1": ("this query", None),
    "SELECT count(DISTINCT *) AS n FROM r": ("COUNT(DISTINCT *)", "count"),
    "SELECT a FROM r LIMIT 3": ("LIMIT without ORDER BY", "3"),
    "SELECT a FROM (SELECT a FROM r LIMIT 3) AS q": ("LIMIT without ORDER BY", "3"),
    "SELECT a FROM r UNION ALL SELECT a FROM t LIMIT 3": ("LIMIT without ORDER BY", "3"),
    "SELECT s, first(a) AS x FROM (SELECT * FROM r ORDER BY b) GROUP BY s": ("first() over ORDER BY", "first"),
    "WITH o AS (SELECT * FROM r ORDER BY b) SELECT s, last(a) AS x FROM o WHERE a > 0 GROUP BY s": (
        "last() over ORDER BY",
        "last",
    ),
    "SELECT first(a) AS x FROM (SELECT a FROM (SELECT * FROM r ORDER BY b) WHERE a > 0)": (
        "first() over ORDER BY",
        "first",
    ),
    "SELECT collect_list(a) AS x FROM (SELECT * FROM r ORDER BY b)": ("collect_list() over ORDER BY", "collect_list"),
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
    "SELECT x FROM collations()": ("collations()", "collations"),
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
        ("SELECT 1 AS x, count(*) AS y FROM r\n GROUP BY upper(s)", "__vk_of_upper", "upper(s)"),
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
