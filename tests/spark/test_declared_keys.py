"""Declared keys: what refers to a table is not read where only whole keys of that table come and go."""

from __future__ import annotations

import pytest
from checks import FEED, assert_right, run

from viewkeeper import Settings, Warehouse
from viewkeeper.algebra.relations import State
from viewkeeper.errors import ViewkeeperError
from viewkeeper.runtime import execute
from viewkeeper.runtime.reads import ReadOnce

pytestmark = pytest.mark.spark

FOREIGN = "'(l_orderkey) REFERENCES orders (o_orderkey)'"
NAMES = ("by_day", "lines")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that refreshes read as they were or are, not only their changes."""
    tables: list[str] = []
    state = execute.ReadOnce.state

    def recorded(leaves: ReadOnce, table: str, at: State) -> str:
        tables.append(table)
        return state(leaves, table, at)

    monkeypatch.setattr(execute.ReadOnce, "state", recorded)
    return tables


def tables(wh: Warehouse) -> None:
    run(
        wh,
        f"CREATE TABLE orders (o_orderkey BIGINT, o_day DATE, o_note STRING) USING DELTA {FEED}",
        f"CREATE TABLE lineitem (l_orderkey BIGINT, l_number INT, l_price DECIMAL(12,2)) USING DELTA {FEED}",
        "ALTER TABLE orders SET TBLPROPERTIES (viewkeeper.primaryKey = 'o_orderkey')",
        f"ALTER TABLE lineitem SET TBLPROPERTIES (viewkeeper.foreignKey.order = {FOREIGN})",
        "INSERT INTO orders SELECT id, DATE '2024-01-01' + CAST(id % 20 AS INT), 'n' FROM range(20000)",
        "INSERT INTO lineitem SELECT id % 20000, id / 20000, id FROM range(60000)",
        "INSERT INTO lineitem VALUES (NULL, 1, 5), (NULL, 1, 5)",
    )
    policy = "REFRESH POLICY INCREMENTAL STRICT"
    run(
        wh,
        f"CREATE MATERIALIZED VIEW by_day {policy} AS SELECT o_day, sum(l_price) AS price, count(*) AS n "
        "FROM orders, lineitem WHERE l_orderkey = o_orderkey AND o_day > DATE '2024-01-03' GROUP BY o_day",
        f"CREATE MATERIALIZED VIEW lines {policy} AS SELECT l_number, l_price, o_day, o_note "
        "FROM lineitem LEFT JOIN orders ON l_orderkey = o_orderkey AND o_note = 'n'",
    )


def refreshed(wh: Warehouse, read: list[str]) -> bool:
    """Whether a refresh reads the lines that were there before or after; the views are right in any case."""
    read.clear()
    assert {record.strategy for record in wh.refresh()} == {"incremental"}
    assert_right(wh, *NAMES)
    return any(table.endswith("lineitem") for table in read)


INSERT = (
    "INSERT INTO orders VALUES (30001, DATE '2024-01-09', 'n'), (30002, DATE '2024-02-01', 'x')",
    "INSERT INTO lineitem VALUES (30001, 1, 10), (30001, 1, 10), (30002, 1, 7), (5, 9, 1)",
)


def test_lines_that_stay_are_read_only_where_an_order_stays_with_another_row(wh: Warehouse, read: list[str]) -> None:
    tables(wh)
    run(wh, *INSERT)
    steps = {step.view.split(".")[-1]: step.reason for step in wh.plan()}
    assert "only its changes are read: FOREIGN KEY" in steps["by_day"]
    assert not refreshed(wh, read)
    # Orders with their lines go and come, an order comes again, lines move and go.
    run(
        wh,
        "DELETE FROM lineitem WHERE l_orderkey IN (7, 8, 30001)",
        "DELETE FROM orders WHERE o_orderkey IN (7, 8, 30001)",
        "INSERT INTO orders VALUES (30003, DATE '2024-01-10', NULL)",
        "UPDATE lineitem SET l_orderkey = 30003 WHERE l_orderkey = 9",
        "DELETE FROM lineitem WHERE l_orderkey = 11 AND l_number = 0",
    )
    assert not refreshed(wh, read)
    run(wh, "UPDATE orders SET o_day = DATE '2024-01-02', o_note = 'x' WHERE o_orderkey = 12", *INSERT)
    assert refreshed(wh, read)
    assert "Declared keys" in str(wh.explain("by_day"))


def test_what_is_withdrawn_is_not_relied_on(wh: Warehouse, read: list[str]) -> None:
    tables(wh)
    run(wh, "ALTER TABLE lineitem UNSET TBLPROPERTIES (viewkeeper.foreignKey.order)")
    run(wh, "INSERT INTO lineitem VALUES (40001, 1, 1)", "DELETE FROM orders WHERE o_orderkey = 13")
    assert refreshed(wh, read)
    run(wh, "INSERT INTO orders VALUES (40001, DATE '2024-01-12', 'n'), (13, DATE '2024-01-12', 'n')")
    assert refreshed(wh, read)


def test_rows_are_merged_by_their_key(wh: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wh, "settings", Settings(rewrite_rows=0))
    keyed = "TBLPROPERTIES (delta.enableChangeDataFeed = true, viewkeeper.primaryKey = 'k')"
    run(
        wh,
        f"CREATE TABLE t (k INT, x DECIMAL(8,2), s STRING) USING DELTA {keyed}",
        "INSERT INTO t SELECT id, id, 's' || id % 3 FROM range(20)",
        "INSERT INTO t VALUES (NULL, 1, 'null')",
        "CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL AS SELECT s, k, x FROM t WHERE x > 0",
        "UPDATE t SET x = x + 1, s = NULL WHERE k IS NULL OR k IN (3, 4)",
        "UPDATE t SET x = -1 WHERE k = 5",
        "DELETE FROM t WHERE k IN (6, 7)",
        "INSERT INTO t VALUES (7, 70, 'again'), (30, 1, NULL)",
    )
    (record,) = wh.refresh("v")
    assert (record.install, record.rows_inserted, record.rows_deleted) == ("merge", 5, 6), str(record)
    assert_right(wh, "v")
    run(wh, "INSERT INTO t VALUES (8, 80, 'the key does not hold')")
    run(wh, "DELETE FROM t WHERE k = 9")
    with pytest.raises(ViewkeeperError, match="the key does not hold"):
        wh.refresh("v")
    wh.sql("REFRESH MATERIALIZED VIEW v FULL")
    assert_right(wh, "v")


def test_a_declaration_that_cannot_be_right_is_told(wh: Warehouse) -> None:
    run(
        wh,
        "CREATE TABLE orders (o_orderkey BIGINT) USING DELTA",
        "CREATE TABLE lineitem (l_orderkey BIGINT) USING DELTA "
        f"TBLPROPERTIES (viewkeeper.foreignKey.order = {FOREIGN})",
    )
    with pytest.warns(UserWarning, match="declares no such key"):
        made = wh.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT l_orderkey FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
        )
    assert "viewkeeper.primaryKey" in str(made)
