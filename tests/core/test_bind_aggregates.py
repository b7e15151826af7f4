"""Aggregates are read as the database reads them."""

from __future__ import annotations

from collections import Counter

import pytest
from duck import Connection
from hypothesis import given, settings
from reading import TABLES, as_read, bound, follows_every_change, reads_what_is_written

from viewkeeper.changes.refresh import maintenance, tables_read
from viewkeeper.changes.stored import stored_form
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import evaluate
from viewkeeper.testing.histories import History, histories

pytestmark = pytest.mark.core

READ = {
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
    "the empty grouping set": "SELECT count(*) AS n, max(b) AS x FROM r GROUP BY GROUPING SETS (()) HAVING count(*) > 0",
    "grouping sets": "SELECT a, s, max(b) AS x FROM r GROUP BY GROUPING SETS ((a, s), a, ())",
    "part of a rollup": "SELECT a, s, b, count(*) AS n FROM r GROUP BY a, ROLLUP (s, b)",
    "rollup of an expression": "SELECT a + 1 AS x, count(*) AS n FROM r GROUP BY ROLLUP (a + 1)",
    "grouping": "SELECT a, s, grouping(a) AS x, count(*) AS n FROM r GROUP BY ROLLUP (a, s)",
    "having of a rollup": "SELECT a, s, sum(b) AS x FROM r GROUP BY ROLLUP (a, s) HAVING sum(b) > 1",
    "distinct pairs": "SELECT s, count(DISTINCT (a, b)) AS x FROM r WHERE b > 0 GROUP BY s",
    "bool": "SELECT bool_and(f) AS x, bool_or(f) AS y FROM u",
    "mean": "SELECT mean(a) AS x FROM r",
    "grouped by a subquery": """SELECT CASE WHEN a IN (SELECT a FROM t) THEN 1 ELSE 2 END AS x, count(*) AS n FROM r
        GROUP BY CASE WHEN a IN (SELECT a FROM t) THEN 1 ELSE 2 END""",
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


def test_forms_of_aggregates() -> None:
    text = unparse(bound("""SELECT listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s DESC) FILTER (WHERE b > 1) AS x,
        first(b) IGNORE NULLS AS y, mode() WITHIN GROUP (ORDER BY a) AS z FROM r""", ("x", "y", "z")))  # fmt: skip
    assert text == (
        "SELECT LISTAGG(DISTINCT `r`.`s`, ',') WITHIN GROUP (ORDER BY `r`.`s` DESC NULLS LAST) FILTER (WHERE (`r`.`b` > 1)) AS `x`, "
        "FIRST(`r`.`b`) IGNORE NULLS AS `y`, MODE() WITHIN GROUP (ORDER BY `r`.`a` ASC NULLS FIRST) AS `z`\nFROM r AS `r`"
    )


@pytest.mark.parametrize("name", ["any", "some", "bool_or", "every"])
def test_truths_of_distinct_values(name: str) -> None:
    """sqlglot takes ANY and SOME for quantifiers."""
    relation = bound(f"SELECT {name}(DISTINCT f) AS x FROM u", ("x",))
    assert f"{'EVERY' if name == 'every' else 'BOOL_OR'}(DISTINCT `u`.`f`)" in unparse(relation)


def test_any_is_an_aggregate() -> None:
    relation = bound("SELECT any(f) IS NOT NULL AS x FROM u", ("x",))
    assert evaluate(relation, TABLES) == Counter({(True,): 1})
    assert "LIKE ANY ('a%', 'b%')" in unparse(bound("SELECT a FROM r WHERE s LIKE ANY ('a%', 'b%')", ("a",)))


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


def test_the_empty_grouping_set_has_a_number() -> None:
    sql = "SELECT count(*) AS n, grouping_id() AS g FROM r GROUP BY GROUPING SETS (())"
    assert evaluate(bound(sql, ("n", "g")), TABLES) == {(6, 0): 1}


@pytest.mark.parametrize(
    ("by", "sets", "numbers"),
    [
        ("GROUPING SETS ((s), (a, s))", "GROUPING SETS ((`r`.`s`), (`r`.`a`, `r`.`s`))", {1, 0}),
        ("a, s GROUPING SETS ((s), (a, s))", "`r`.`a`, `r`.`s` GROUPING SETS ((`r`.`s`), (`r`.`a`, `r`.`s`))", {2, 0}),
        ("CUBE (a), s", "GROUPING SETS ((`r`.`a`, `r`.`s`), (`r`.`s`))", {2, 0}),
        ("s, CUBE (a)", "GROUPING SETS ((`r`.`s`, `r`.`a`), (`r`.`s`))", {1, 0}),
        ("a, s, b GROUPING SETS ((b))", "`r`.`a`, `r`.`s`, `r`.`b` GROUPING SETS ((`r`.`b`))", {6}),
    ],
)
def test_grouping_sets_number_columns_in_the_order_of_the_text(by: str, sets: str, numbers: set[int]) -> None:
    sql, output = f"SELECT s, grouping_id() AS g FROM r GROUP BY {by}", ("s", "g")
    assert unparse(as_read(sql, output)).endswith(f"GROUP BY {sets}")
    assert {row[1] for row in evaluate(bound(sql, output), TABLES)} == numbers


@pytest.mark.parametrize("function", ["max_by", "min_by"])
def test_several_by_an_order(function: str) -> None:
    """Ties among the first so many are broken by the value."""
    definition = bound(f"SELECT s, {function}(a, b, 2) AS x FROM r GROUP BY s", ("s", "x"))
    change = unparse(maintenance(stored_form(definition, "v").kept, {"r": "any"}).change)
    assert f"{function.upper()}(" in change
    assert "NAMED_STRUCT('by', " in change
    assert ".of" not in change


@pytest.mark.parametrize("name", ["weight", "count", "order", "whole"])
def test_what_is_grouped_by_is_not_called_as_a_column_of_ours(name: str) -> None:
    groups = (
        f"SELECT p.{name} AS k, sum(b) AS n FROM (SELECT named_struct('{name}', a) AS p, b FROM r) GROUP BY p.{name}"
    )
    definition = bound(f"SELECT x.k FROM ({groups}) AS x JOIN r ON r.a = x.n ORDER BY x.k LIMIT 2", ("k",))
    kept = stored_form(definition, "v").kept
    assert "r" in tables_read(maintenance(kept, {"r": "any"}).change)
