"""Queries that are bound and then run over a few rows, as DuckDB runs their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache

import duckdb
from duck import Connection, comparable, fetch, fill, make_tables, to_duckdb
from fake_catalog import FakeCatalog

from viewkeeper.algebra.display import show
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.orders import without_ties
from viewkeeper.algebra.relations import Generate, Relation
from viewkeeper.algebra.scalars import Verbatim
from viewkeeper.changes.propagate import change
from viewkeeper.changes.weights import before
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import Bag, TableStates, evaluate, plus, signed
from viewkeeper.testing.histories import SCHEMAS, History

ROWS: dict[str, Bag] = {
    "r": Counter([(1, 1, "a"), (1, 1, "a"), (1, 2, "b"), (2, None, "a"), (None, 3, None), (3, 0, "")]),
    "t": Counter([(1, Decimal("1.50"), "a"), (1, Decimal("2.25"), "b"), (2, None, "a"), (None, Decimal("7.00"), "c")]),
    "u": Counter([(1, True), (2, False), (2, None), (None, True)]),
}
TABLES = {name: TableStates(tuple(c for c, _ in SCHEMAS[name]), rows, rows) for name, rows in ROWS.items()}


@contextmanager
def filled() -> Iterator[Connection]:
    """A DuckDB with these rows."""
    with duckdb.connect(config={"threads": 1}) as connection:
        make_tables(connection)
        fill(connection, TABLES)
        yield connection


@cache
def _read(sql: str, output: tuple[str, ...]) -> Bound:
    result = bind(parse_query(sql), FakeCatalog(), output)
    assert isinstance(result, Bound), str(result)
    return result


def bound(sql: str, output: tuple[str, ...]) -> Relation:
    return _read(sql, output).relation


def as_read(sql: str, output: tuple[str, ...]) -> Relation:
    return _read(sql, output).as_read


def reads_what_is_written(duck: Connection, sql: str) -> None:
    """The rows of the text, of the algebra and of the algebra's text are the same."""
    output = tuple(column[0] for column in duck.execute(to_duckdb(sql)).description)
    relation = bound(sql, output)
    expected = fetch(duck, sql)
    if not any(isinstance(node, Generate) for node in walk(relation)):  # which DuckDB does not have
        assert fetch(duck, unparse(relation)) == expected, unparse(relation)
    assert fetch(duck, unparse(as_read(sql, output))) == expected, unparse(as_read(sql, output))
    if not any(isinstance(node, Verbatim) for node in walk(relation)):
        assert comparable(evaluate(relation, TABLES)) == expected


def follows_every_change(duck: Connection, sql: str, history: History) -> None:
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
