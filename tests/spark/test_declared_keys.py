"""Declared keys: what refers to a table is not read where only whole keys of that table come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from checks import FEED, assert_right, run

from viewkeeper import Settings, Warehouse
from viewkeeper.changes.own import OWN
from viewkeeper.errors import ViewkeeperError
from viewkeeper.planner import build
from viewkeeper.planner.cost import Cost

pytestmark = pytest.mark.spark

FOREIGN = "'(l_orderkey) REFERENCES orders (o_orderkey)'"
NAMES = ("by_day", "lines")


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


def test_the_view_itself_tells_what_its_tables_would_be_read_for(
    wh: Warehouse, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which orders had no line is seen in it, and which rows were made of an order that changed."""
    monkeypatch.setattr(build, "ASK", Cost())  # these tables are small
    monkeypatch.setattr(build, "KNOWN_ROWS", -1)  # and rows that are looked up in them cost less still
    wh.settings = replace(wh.settings, rows_here=0)
    tables(wh)
    outer = "SELECT o_orderkey, o_note, l_orderkey, l_price FROM orders FULL JOIN lineitem ON l_orderkey = o_orderkey"
    policy = "REFRESH POLICY INCREMENTAL STRICT"
    run(
        wh,
        "DROP MATERIALIZED VIEW by_day",
        "DROP MATERIALIZED VIEW lines",
        "ALTER TABLE lineitem UNSET TBLPROPERTIES (viewkeeper.foreignKey.order)",
        "INSERT INTO orders VALUES (50001, DATE '2024-01-01', 'alone'), (50002, NULL, 'alone'), (NULL, NULL, 'none')",
        f"CREATE MATERIALIZED VIEW pairs {policy} AS {outer}",
        f"CREATE MATERIALIZED VIEW priced {policy} AS SELECT o_orderkey, upper(o_note) AS note, l_price "
        "FROM orders JOIN lineitem ON l_orderkey = o_orderkey WHERE o_day = DATE '2024-01-01'",
        f"CREATE MATERIALIZED VIEW totals {policy} AS SELECT o_orderkey, sum(l_price) AS price "
        "FROM orders JOIN lineitem ON l_orderkey = o_orderkey WHERE o_day = DATE '2024-01-01' GROUP BY o_orderkey",
        "INSERT INTO lineitem VALUES (50001, 1, 10), (50001, 1, 10), (50003, 1, 7), (3, 9, 1), (NULL, 1, 1)",
    )

    def seen(*names: str) -> set[str]:
        read.clear()
        assert {record.strategy for record in wh.refresh(*names)} == {"incremental"}
        assert_right(wh, *names)
        return {table.split(".")[-1] for table in read}

    assert seen("pairs") == {"orders", OWN}
    wh.refresh()
    run(wh, "DELETE FROM orders WHERE o_orderkey IN (20, 40)")
    assert seen("priced") == {OWN}
    assert seen("totals") == {OWN}
    run(
        wh,
        "UPDATE orders SET o_note = 'other' WHERE o_orderkey IN (60, 61)",
        "DELETE FROM orders WHERE o_orderkey = 80",
    )
    assert seen("priced") == {OWN}
    run(wh, "UPDATE orders SET o_day = DATE '2024-01-01' WHERE o_orderkey = 81")
    assert seen("priced") == {"lineitem"}
    assert "it shows the key" not in str(wh.explain("priced"))


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
