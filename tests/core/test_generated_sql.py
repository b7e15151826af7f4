"""The generated SQL means what the algebra means: both run, on DuckDB and in the reference interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given, settings

from viewkeeper.algebra.relations import WEIGHT, Relation, ScanColumn, State
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.sql.unparse import quote, unparse
from viewkeeper.testing.bags import Bag, Tables, TableStates, evaluate
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import ANYTHING, Shape, changing_relations, changing_views
from viewkeeper.testing.values import Row, Value

pytestmark = pytest.mark.core

Case = tuple[Relation, History]
SHARED = Shape(spark_only=False)
SHARED_ANYTHING = Shape(joins=ANYTHING.joins, empty_values=True, spark_only=False)
EXAMPLES = max(10, settings().max_examples // 3)  # DuckDB takes longer to plan a query than we to evaluate it


class DuckTables:
    """Leaves over tables named by their state."""

    def state(self, table: str, state: State) -> str:
        return f"{table}_{state}"

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        return f"SELECT {''.join(quote(c.source) + ', ' for c in columns)}{WEIGHT} FROM {table}_changes"


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for table, columns in SCHEMAS.items():
            described = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
            for state in ("old", "new"):
                connection.execute(f"CREATE TABLE {table}_{state} ({described})")
            connection.execute(f"CREATE TABLE {table}_changes ({described}, {WEIGHT} bigint)")
        yield connection


def to_duckdb(sql: str) -> str:
    """The few words the dialects do not share; no name or string of ours holds any of them."""
    words = {
        "`": '"',
        "<=>": "IS NOT DISTINCT FROM",
        "LEFT SEMI JOIN": "SEMI JOIN",
        "LEFT ANTI JOIN": "ANTI JOIN",
    }
    for ours, theirs in words.items():
        sql = sql.replace(ours, theirs)
    return sql


def written(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return f"'{value}'"
        case _:
            return str(value)


def filled(tables: Mapping[str, TableStates]) -> str:
    """Statements that fill the tables."""
    statements = []
    for name, table in tables.items():
        contents: dict[str, list[Row]] = {
            "old": list(table.old.elements()),
            "new": list(table.new.elements()),
            "changes": [(*row, weight) for row, weight in table.changes],
        }
        for state, rows in contents.items():
            cells = ", ".join(f"({', '.join(map(written, row))})" for row in rows)
            statements += [f"INSERT INTO {name}_{state} VALUES {cells}"] if rows else []
    return ";".join(["BEGIN", *statements])


def run(duck: duckdb.DuckDBPyConnection, tables: Tables, rels: list[Relation]) -> list[Bag]:
    duck.execute(filled(tables))
    try:
        queries = [to_duckdb(unparse(rel, DuckTables())) for rel in rels]
        return [comparable(Counter(duck.execute(query).fetchall())) for query in queries]
    finally:
        duck.execute("ROLLBACK")


def comparable(bag: Bag) -> Bag:
    """Doubles to twelve digits, so that the order of a sum does not show."""
    return Counter({tuple(_rounded(v) for v in row): n for row, n in bag.items()})


def _rounded(value: Value) -> Value:
    return float(f"{value:.12g}") if isinstance(value, (float, Decimal)) else value


def check(duck: duckdb.DuckDBPyConnection, tables: Tables, *rels: Relation) -> None:
    for rel, found in zip(rels, run(duck, tables, list(rels)), strict=True):
        assert found == comparable(evaluate(rel, tables)), unparse(rel, DuckTables())


@settings(max_examples=EXAMPLES)
@given(case=changing_relations(SHARED_ANYTHING))
def test_any_relation(duck: duckdb.DuckDBPyConnection, case: Case) -> None:
    rel, history = case
    check(duck, history.between(0, 1), rel)


@settings(max_examples=EXAMPLES)
@given(case=changing_relations(SHARED))
def test_changes(duck: duckdb.DuckDBPyConnection, case: Case) -> None:
    rel, history = case
    check(duck, history.between(0, 1), change(rel, history.changed(0, 1)))


@settings(max_examples=EXAMPLES)
@given(case=changing_views(SHARED))
def test_what_a_refresh_computes(duck: duckdb.DuckDBPyConnection, case: Case) -> None:
    definition, history = case
    kept = stored_form(definition, "__vk_v").kept
    step = maintenance(kept, history.changed(0, 1))
    check(duck, history.between(0, 1), kept.content, step.change)
