"""Generated Spark SQL run on DuckDB, where the dialects agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

import duckdb

from viewkeeper.algebra.relations import WEIGHT, Join, ScanColumn, Side, State, names
from viewkeeper.sql.render import quote
from viewkeeper.testing.bags import Bag, Tables, TableStates
from viewkeeper.testing.histories import SCHEMAS
from viewkeeper.testing.values import Row, Value

Connection = duckdb.DuckDBPyConnection


class DuckTables:
    """Leaves over tables named by their state."""

    def state(self, table: str, state: State) -> str:
        return f"{table}_{state}"

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        return f"SELECT {''.join(quote(c.source) + ', ' for c in columns)}{WEIGHT} FROM {table}_changes"

    def sent(self, join: Join) -> Side | None:
        """Any side that may be sent: to DuckDB the hint is a comment, but what is sent must have a name."""
        return None if join.kind == "full" else "left" if join.kind == "inner" and len(names(join)) % 2 else "right"


def make_tables(connection: Connection) -> None:
    """Empty tables for every state of the strategies' tables; `t` itself is its new state."""
    # DuckDB 2.0's optimizer repeats rows of a semi join now and then; what the text says is all we ask for.
    connection.execute("PRAGMA disable_optimizer")
    connection.execute("SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")  # as Spark has it
    connection.execute("CREATE MACRO raise_error(message) AS error(message)")
    for table, columns in SCHEMAS.items():
        described = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
        for state in ("old", "new"):
            connection.execute(f"CREATE TABLE {table}_{state} ({described})")
        connection.execute(f"CREATE TABLE {table}_changes ({described}, {WEIGHT} bigint)")
        connection.execute(f"CREATE VIEW {table} AS FROM {table}_new")


def fill(connection: Connection, tables: Mapping[str, TableStates]) -> None:
    for name, table in tables.items():
        contents: dict[str, list[Row]] = {
            "old": list(table.old.elements()),
            "new": list(table.new.elements()),
            "changes": [(*row, weight) for row, weight in table.changes],
        }
        for state, rows in contents.items():
            if rows:
                cells = ", ".join(f"({', '.join(map(_written, row))})" for row in rows)
                connection.execute(f"INSERT INTO {name}_{state} VALUES {cells}")


def run(connection: Connection, tables: Tables, queries: list[str]) -> list[Bag]:
    """What each query, in Spark's words, gives over the tables."""
    connection.begin()
    try:
        fill(connection, tables)
        return [fetch(connection, query) for query in queries]
    finally:
        connection.rollback()


def fetch(connection: Connection, query: str) -> Bag:
    return comparable(Counter(connection.execute(to_duckdb(query)).fetchall()))


def to_duckdb(sql: str) -> str:
    """The few words the dialects do not share; no name or string of the tests holds any of them."""
    words = {
        "`": '"',
        "<=>": "IS NOT DISTINCT FROM",
        "LEFT SEMI JOIN": "SEMI JOIN",
        "LEFT ANTI JOIN": "ANTI JOIN",
    }
    for ours, theirs in words.items():
        sql = sql.replace(ours, theirs)
    return sql


def comparable(bag: Bag) -> Bag:
    """Numbers to twelve digits, so that neither the order of a sum nor the kind of number shows."""
    rounded: Bag = Counter()
    for row, count in bag.items():
        rounded[tuple(_rounded(value) for value in row)] += count
    return rounded


def _rounded(value: Value) -> Value:
    return float(f"{value:.12g}") if isinstance(value, (float, Decimal)) else value


def _written(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return f"'{value}'"
        case _:
            return str(value)
