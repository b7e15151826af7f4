"""Shapes that are kept as other operators than they are read: read right, and right after every change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import duckdb
import pytest
from duck import Connection, comparable, fetch, fill, make_tables, to_duckdb
from fake_catalog import FakeCatalog
from hypothesis import given, settings

from viewkeeper.algebra.display import show
from viewkeeper.algebra.pivots import without_pivots
from viewkeeper.algebra.relations import Relation
from viewkeeper.changes.propagate import change
from viewkeeper.changes.weights import before
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.typing import with_types
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import Bag, TableStates, evaluate, plus, signed
from viewkeeper.testing.histories import SCHEMAS, History, histories

pytestmark = pytest.mark.core

ROWS: dict[str, Bag] = {
    "r": Counter([(1, 1, "a"), (1, 1, "a"), (1, 2, "b"), (2, None, "a"), (None, 3, None), (3, 0, "")]),
    "t": Counter(),
    "u": Counter([(1, True), (2, False), (2, None), (None, True)]),
}
TABLES = {name: TableStates(tuple(c for c, _ in SCHEMAS[name]), rows, rows) for name, rows in ROWS.items()}

# Those whose text DuckDB reads as Spark does.
SAME = {
    "pivot": "SELECT * FROM r PIVOT (sum(b) FOR s IN ('a' AS x, 'b' AS y))",
    "pivot by a number": "SELECT * FROM r PIVOT (max(s) FOR a IN (1, 2))",
    "pivot by nothing": "SELECT * FROM (SELECT b, s FROM r) PIVOT (max(b) FOR s IN ('a', 'z'))",
    "pivot with several measures": "SELECT * FROM r PIVOT (sum(b) AS m, min(b) AS n FOR s IN ('a' AS x, 'b' AS y))",
    "pivot of an expression": "SELECT p.a, p.z FROM r PIVOT (sum(b * 2 + 1) FOR s IN ('b' AS z)) AS p WHERE p.z > 0",
    "pivot beside a constant": "SELECT * FROM (SELECT 'k' AS k, a, b, s FROM r) PIVOT (sum(b) FOR s IN ('a' AS x))",
    "pivot of a join": "SELECT * FROM (SELECT r.b, r.s, f FROM r JOIN u ON r.a = u.`Order`) PIVOT (sum(b) FOR s IN ('a' AS x))",
    "pivot of any row": "SELECT * FROM (SELECT a, s, a AS w FROM r) PIVOT (any_value(w) AS m FOR s IN ('a' AS x, 'b' AS y))",
    "numbers": "SELECT x, b FROM range(0, 5, 2) AS n(x) LEFT JOIN r ON r.a = x",
    "unpivot": "SELECT * FROM r UNPIVOT (v FOR n IN (a, b))",
    "unpivot with nulls": "SELECT * FROM r UNPIVOT INCLUDE NULLS (v FOR n IN (a, b))",
    "unpivot under names": "SELECT u.n, u.v FROM (SELECT a, b FROM r) UNPIVOT (v FOR n IN (a AS `One`, b AS `two`)) AS u",
}  # fmt: skip
SHAPES = {
    **SAME,
    "unpivot several": "SELECT * FROM (SELECT a, b, a + b AS c, s FROM r) UNPIVOT ((v, w) FOR n IN ((a, b) AS x, (b, c) AS y))",
    "pivot by pairs": "SELECT * FROM (SELECT *, a > 1 AS f FROM r) PIVOT (sum(b) FOR (s, f) IN (('a', false) AS x, ('a', true) AS y))",
    "pivot counts": "SELECT * FROM r PIVOT (count(*) AS m, count(b) AS n FOR s IN ('a' AS x, 'b' AS y))",
    "pivot counts beside text": "SELECT * FROM (SELECT a, s, s AS w FROM r) PIVOT (count(*) AS m, max(w) AS n FOR s IN ('a' AS x, 'b' AS y))",
    "pivot with filter": "SELECT * FROM r PIVOT (count(*) FILTER (WHERE b > 1) FOR s IN ('a' AS x, NULL AS y))",
    "pivot of a product": "SELECT * FROM r PIVOT (coalesce(sum(b), 0) * 2 FOR s IN ('a' AS x, 'c' AS y))",
    "pivot of texts": "SELECT * FROM (SELECT a, s FROM r) PIVOT (upper(min(s)) AS m, count(*) + 1 AS n FOR s IN ('a' AS x, 'c' AS y))",
    "numbers below a condition": "SELECT n.id, r.b FROM range(4) AS n(id) FULL JOIN r ON n.id < r.a AND r.b > 0",
    "numbers counted": "SELECT a, (SELECT count(*) FROM range(1, 4, 2) AS n(id) WHERE n.id < r.a) AS c FROM r",
    "group of a pivot": "SELECT x, count(*) AS n FROM r PIVOT (sum(b) FOR s IN ('a' AS x)) GROUP BY x",
}  # fmt: skip


@pytest.fixture(scope="module")
def duck() -> Iterator[Connection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        make_tables(connection)
        fill(connection, TABLES)
        yield connection


def read(duck: Connection, sql: str) -> Bound:
    """The reading, its columns named as DuckDB names them."""
    output = tuple(column[0] for column in duck.execute(to_duckdb(sql)).description)
    result = bind(parse_query(sql), FakeCatalog(), output)
    assert isinstance(result, Bound), str(result)
    return result


@pytest.fixture(scope="module")
def kept(duck: Connection) -> Callable[[str], Relation]:
    """What a text is kept as, with the types that DuckDB gives, which are Spark's but for their names."""

    def ask(text: str) -> tuple[str, ...]:
        described = duck.execute(f"DESCRIBE {to_duckdb(text)}").fetchall()
        return tuple(_NAMES.get(row[1], re.sub(r"\s", "", row[1]).lower()) for row in described)

    @cache
    def found(sql: str) -> Relation:
        return without_pivots(with_types(read(duck, sql).relation, ask))

    return found


_NAMES = {"HUGEINT": "bigint", "INTEGER": "bigint", "VARCHAR": "string"}


@pytest.mark.parametrize("sql", SAME.values(), ids=SAME.keys())
def test_reads_what_is_written(duck: Connection, kept: Callable[[str], Relation], sql: str) -> None:
    as_read = unparse(read(duck, sql).as_read)
    expected = fetch(duck, sql)
    assert fetch(duck, as_read) == expected, as_read
    assert comparable(evaluate(kept(sql), TABLES)) == expected


@pytest.mark.parametrize("sql", SHAPES.values(), ids=SHAPES.keys())
@settings(max_examples=20)
@given(history=histories(steps=1))
def test_follows_every_change(kept: Callable[[str], Relation], sql: str, history: History) -> None:
    rel = kept(sql)
    tables, changed = history.between(0, 1), history.changed(0, 1)
    delta = change(rel, changed)
    assert plus(evaluate(before(rel, changed), tables), signed(delta, tables)) == evaluate(rel, tables), show(delta)


@pytest.fixture(scope="module")
def rows(kept: Callable[[str], Relation]) -> Callable[[str], Bag]:
    return lambda shape: evaluate(kept(SHAPES[shape]), TABLES)


def test_a_count_of_no_rows_in_pivot(rows: Callable[[str], Bag]) -> None:
    """NULL where all measures are numbers and no row has the value; 0 beside others, as in Spark."""
    numbers = Counter([(1, 2, 2, 1, 1), (2, 1, 0, None, None), (None, *[None] * 4), (3, *[None] * 4)])
    assert rows("pivot counts") == numbers
    beside_text = Counter([(1, 2, "a", 1, "b"), (2, 1, "a", 0, None), (None, 0, None, 0, None), (3, 0, None, 0, None)])
    assert rows("pivot counts beside text") == beside_text
    assert rows("pivot with filter") == Counter([(1, 0, None), (2, 0, None), (None, None, 1), (3, None, None)])


def test_an_expression_over_no_rows_in_pivot(rows: Callable[[str], Bag]) -> None:
    """NULL where all results are numbers and no row has the value; what it is of nothing beside others, as in Spark."""
    numbers = Counter([(1, 4, None), (2, 0, None), (None, None, None), (3, None, None)])
    assert rows("pivot of a product") == numbers
    texts = Counter([(1, "A", 3, None, 1), (2, "A", 2, None, 1), (None, None, 1, None, 1), (3, None, 1, None, 1)])
    assert rows("pivot of texts") == texts


def test_pivot_by_pairs(rows: Callable[[str], Bag]) -> None:
    assert rows("pivot by pairs") == Counter([(1, 2, None), (2, None, None), (None, None, None), (3, None, None)])
