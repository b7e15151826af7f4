"""Joins, also with LATERAL, are read as the database reads them."""

from __future__ import annotations

from collections import Counter

import pytest
from duck import Connection, fetch
from hypothesis import given, settings
from reading import TABLES, as_read, bound, follows_every_change, reads_what_is_written

from viewkeeper.algebra.display import show
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import evaluate
from viewkeeper.testing.histories import History, histories

pytestmark = pytest.mark.core

READ = {
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
    "semi join in parentheses": "SELECT u.f, q.x FROM u LEFT JOIN ((SELECT a AS x FROM r) AS q LEFT SEMI JOIN t AS t_2 ON q.x = T_2.A) ON u.`Order` = q.x",
    "star of a semi join in parentheses": "SELECT q.*, u.f FROM (r AS q LEFT ANTI JOIN t AS t_2 ON q.s = t_2.s) JOIN u ON u.`Order` = q.a",
    "semi join after parentheses": "SELECT r.b FROM r JOIN (t JOIN u ON u.`Order` = t.a) ON r.a = t.a LEFT SEMI JOIN r AS r_2 ON r_2.a = t.a",
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
    "full using after full": "SELECT a, t.d, x.b, y.b AS c FROM t FULL JOIN r AS x USING (a) FULL JOIN r AS y USING (a)",
    "left using after right": "SELECT a, t.d, x.b, y.b AS c FROM t RIGHT JOIN r AS x USING (a) LEFT JOIN r AS y USING (a)",
    "using two after full": "SELECT a, s, t.d, x.b, y.b AS c FROM t FULL JOIN r AS x USING (a, s) JOIN r AS y USING (s, a)",
    "using, having": "SELECT a, count(*) AS n FROM r JOIN t USING (a, s) GROUP BY a HAVING max(s) > 'a' AND a > 0",
    "natural full, having": "SELECT s, sum(d) AS x FROM r NATURAL FULL JOIN t GROUP BY s HAVING s IS NOT NULL AND count(a) > 0",
    "natural left": "SELECT a, s, b, d FROM r NATURAL LEFT JOIN t",
    "natural after natural": """SELECT a, d, b, c FROM (SELECT a, d FROM t) AS x NATURAL FULL JOIN (SELECT a, b FROM r) AS y
        NATURAL FULL JOIN (SELECT a, b AS c FROM r) AS z""",
    "semi": "SELECT * FROM r LEFT SEMI JOIN t ON r.a = t.a AND t.d > 1",
    "anti": "SELECT * FROM r LEFT ANTI JOIN t ON r.a = t.a",
    "semi with what is called as a column": "SELECT * FROM r LEFT SEMI JOIN t AS b ON r.b = b.a",
    "aggregate over an outer join": "SELECT r.s, count(t.d) AS n, count(*) AS m FROM r LEFT JOIN t ON r.a = t.a GROUP BY r.s",
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


def test_star_of_using_has_the_common_columns_first(duck: Connection) -> None:
    relation = bound("SELECT * FROM r JOIN t USING (s, a)", ("s", "a", "b", "d"))
    assert fetch(duck, unparse(relation)) == fetch(duck, "SELECT r.s, r.a, b, d FROM r JOIN t USING (s, a)")


def test_a_star_beside_using_begins_with_the_columns_joined_by() -> None:
    for query in (
        "SELECT r.*, d FROM r JOIN t USING (s)",
        "SELECT q.*, d FROM (SELECT a, b, s FROM r) q JOIN t USING (s)",
    ):
        read = as_read(query, ("w", "x", "y", "z"))
        assert show(read).splitlines()[0].replace("_2", "") == "project w = s, x = a, y = b, z = d"


def test_a_subquery_in_the_condition_of_lateral() -> None:
    """Which DuckDB does not read."""
    lateral = "SELECT r.b, q.d FROM r JOIN LATERAL (SELECT t.d, t.a FROM t WHERE t.a = r.a) AS q"
    known = "EXISTS (SELECT 1 FROM u WHERE u.`Order` = q.a AND f)"
    on, where = (bound(f"{lateral} {word} {known}", ("b", "d")) for word in ("ON", "WHERE"))
    assert evaluate(on, TABLES) == evaluate(where, TABLES) != Counter()


@pytest.mark.parametrize("kind", ["", "LEFT ", "RIGHT ", "FULL "])
def test_natural_with_nothing_to_share(kind: str) -> None:
    """Every row with every row, as Spark has it; DuckDB refuses that."""
    natural = bound(f"SELECT d, f FROM t NATURAL {kind}JOIN u", ("d", "f"))
    assert evaluate(natural, TABLES) == evaluate(bound("SELECT d, f FROM t CROSS JOIN u", ("d", "f")), TABLES)


def test_joins_with_generators() -> None:
    joined, viewed = "JOIN LATERAL explode(array(a, b)) AS q(x)", "LATERAL VIEW explode(array(a, b)) q AS x"
    outer = viewed.replace("VIEW", "VIEW OUTER")
    for by_join, by_view in (
        (f"b, x FROM r {joined}", f"b, x FROM r {viewed}"),
        (f"b, x FROM r {joined} ON x > b", f"b, x FROM r {viewed} WHERE x > b"),
        (f"b, x FROM r LEFT {joined} ON true", f"b, x FROM r {outer}"),
    ):
        read, wanted = (bound(f"SELECT {text}", ("b", "x")) for text in (by_join, by_view))
        assert read == wanted, show(read)
    twice = "LATERAL (SELECT x FROM (SELECT explode(array(r.a, r.b)) AS y) LATERAL VIEW explode(array(y)) z AS x) AS q"
    assert "join" in show(bound(f"SELECT b, x FROM r LEFT JOIN {twice} ON true", ("b", "x")))  # padded after both
    inside = "LATERAL (SELECT y + r.a AS x FROM (SELECT explode(array(r.a, r.b)) AS y) WHERE y < r.b) AS q"
    assert "join" not in show(bound(f"SELECT b, x FROM r, {inside}", ("b", "x")))


@pytest.mark.parametrize("kind", ["JOIN", "CROSS JOIN", "LEFT JOIN"])
def test_what_is_made_of_a_row_alone_is_made_of_it_where_there_is_no_condition(kind: str) -> None:
    """Of a LEFT JOIN too: so Spark reads it, which pads such rows only ON something."""
    for made in ("explode(array(r.a, r.b)) AS q(x)", "(SELECT x FROM explode(array(r.a, r.b)) AS m(x)) AS q"):
        read = as_read(f"SELECT b, x FROM r {kind} LATERAL {made}", ("b", "x"))
        assert read == as_read("SELECT b, x FROM r LATERAL VIEW explode(array(r.a, r.b)) q AS x", ("b", "x"))
    read = as_read(f"SELECT b, x FROM r {kind} LATERAL (SELECT r.a + 1 AS x) AS q", ("b", "x"))
    assert read == as_read("SELECT b, a + 1 AS x FROM r", ("b", "x"))


def test_a_condition_that_is_always_true_is_kept_as_one() -> None:
    """Spark plans LATERAL with a condition in another way than without."""
    read = as_read("SELECT b, x FROM r JOIN LATERAL explode(array(a, b)) AS q(x) ON true", ("b", "x"))
    assert "INNER JOIN LATERAL (SELECT" in unparse(read)
    assert unparse(read).endswith(" ON TRUE")


def test_a_generator_in_the_place_of_a_table_sees_the_row_around() -> None:
    made = "explode(array(r.a, r.b)) AS m(x)"
    as_table, as_item = (
        bound(f"SELECT b, (SELECT sum(x) FROM {source}) AS n FROM r WHERE EXISTS (SELECT 1 FROM {source} WHERE x > b)", ("b", "n"))
        for source in (made, "(SELECT explode(array(r.a, r.b)) AS x) AS m")
    )  # fmt: skip
    assert as_table == as_item


def test_a_column_of_the_right_side_of_a_semi_join_in_a_subquery_of_its_condition() -> None:
    """Which DuckDB does not read; by its own name as with that of its table."""
    semi = "SELECT r.b FROM r LEFT SEMI JOIN (SELECT a AS x, named_struct('y', d) AS w FROM t) AS q ON r.a = x AND EXISTS (SELECT 1 FROM u WHERE"
    for own, full in (("`order` = x", "`order` = q.x"), ("w.y > 1", "q.w.y > 1")):
        assert bound(f"{semi} {own})", ("b",)) == bound(f"{semi} {full})", ("b",))
