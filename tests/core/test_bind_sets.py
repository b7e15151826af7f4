"""UNION, DISTINCT, EXCEPT and INTERSECT are read as the database reads them."""

from __future__ import annotations

import pytest
from duck import Connection
from hypothesis import given, settings
from reading import follows_every_change, reads_what_is_written

from viewkeeper.testing.histories import History, histories

pytestmark = pytest.mark.core

READ = {
    "union all": "SELECT a FROM r UNION ALL SELECT a FROM t",
    "union": "SELECT a FROM r UNION SELECT a FROM t",
    "union of unions": "SELECT a FROM r UNION SELECT a FROM t UNION (SELECT b FROM r UNION SELECT `Order` FROM u)",
    "union all of unions": "SELECT a FROM r UNION SELECT a FROM t UNION ALL SELECT `Order` FROM u",
    "union of union alls": "SELECT a FROM r UNION ALL SELECT a FROM t UNION SELECT `Order` FROM u",
    "bracketed union": "SELECT a FROM r UNION ALL (SELECT a FROM t UNION SELECT `Order` FROM u)",
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
