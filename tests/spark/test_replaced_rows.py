"""Rows of a view that are replaced by deletion vectors, which Delta's own readers and writers must take for their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from checks import assert_right, rows, run

from viewkeeper import Settings, Warehouse
from viewkeeper.store.commits import CHECKPOINT_EVERY

pytestmark = pytest.mark.spark

VIEWS = {
    "per_item": "SELECT item, count(*) AS n, sum(price) AS total, max(day) AS last FROM sales GROUP BY item",
    "per_name": "SELECT name, region, sum(price) AS total FROM sales GROUP BY name, region",
    "plain": "SELECT item, region, price FROM sales WHERE price > 3",
    "keyed": "SELECT s.id, s.price, i.label FROM sales s JOIN items i ON i.item = s.item",
    "by_spark": "SELECT s.id, upper(s.name) AS name, i.label FROM sales s JOIN items i ON i.item = s.item",
    "above": "SELECT n, count(*) AS items, sum(total) AS total FROM per_item GROUP BY n",
}
BATCHES = (
    (
        "INSERT INTO sales VALUES (9001, 3, 'n3', 'z', 7.50, DATE '2024-02-01'), (9002, 777, NULL, NULL, 1, NULL)",
        "UPDATE sales SET item = 11, price = price + 1 WHERE id % 97 = 0",
        "DELETE FROM sales WHERE item = 5 OR id = 4",
        "UPDATE items SET label = 'other' WHERE item = 2",
    ),
    (
        "DELETE FROM sales WHERE id IN (9001, 9002) OR item IN (11, 0)",
        "INSERT INTO sales SELECT id + 20000, 11, 'n1', NULL, 4, DATE '2023-12-31' FROM range(3)",
        "INSERT INTO sales SELECT id + 20000, 5, 'n5', 'b', 5, DATE '2025-12-31' FROM range(10, 12)",
    ),
    ("UPDATE sales SET price = 100 WHERE id = 20000", "DELETE FROM items WHERE item = 3"),
)


@pytest.fixture
def filled(wh: Warehouse) -> Warehouse:
    run(
        wh,
        "CREATE TABLE sales (id BIGINT, item INT, name STRING, region STRING, price DECIMAL(10,2), day DATE) USING DELTA "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true, viewkeeper.primaryKey = 'id')",
        "CREATE TABLE items (item INT, label STRING) USING DELTA "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true, viewkeeper.primaryKey = 'item')",
        """INSERT INTO sales SELECT id, id % 300, concat('n', id % 40), element_at(array('a', 'b', NULL), CAST(id % 3 + 1 AS INT)),
           CAST(id % 13 AS DECIMAL(10,2)) / 2, date_add(DATE '2024-01-01', CAST(id % 30 AS INT)) FROM range(2000)""",
        "INSERT INTO items SELECT id, concat('label ', id) FROM range(310)",
    )
    wh.settings = replace(wh.settings, replace_from=0)
    return wh


def test_rows_are_replaced(filled: Warehouse) -> None:
    wh = filled
    run(wh, *(f"CREATE MATERIALIZED VIEW {v} REFRESH POLICY INCREMENTAL STRICT AS {q}" for v, q in VIEWS.items()))
    installs: dict[str, list[str]] = {view: [] for view in VIEWS}
    for batch in BATCHES:
        run(wh, *batch)
        for record in wh.refresh(*VIEWS):
            installs[record.view.split(".")[-1]].append(record.install)
        assert_right(wh, *VIEWS)
        ends = "SELECT min(item), max(item), count(*) FROM"  # which Delta may tell by statistics
        assert rows(wh, f"{ends} per_item") == rows(wh, f"{ends} ({VIEWS['per_item']})")
        assert_feed_tells(wh, "__vk_per_item")
    assert all(ways.count("replace") >= 2 for view, ways in installs.items() if view not in ("above", "per_name")), (
        installs
    )
    assert "replace" in installs["per_name"] and wh.tables.log(named(wh, "__vk_per_item")).snapshot().gone > 0
    # Delta's own writers go on with it.
    run(wh, "UPDATE sales SET price = 8 WHERE id % 50 = 1")
    wh.settings = replace(wh.settings, rows_here=0, rewrite_rows=0)
    assert {record.install for record in wh.refresh("per_item", "plain", "keyed")} == {"merge"}
    run(
        wh, "OPTIMIZE __vk_per_item", "UPDATE sales SET price = 9 WHERE id % 50 = 2", "DELETE FROM sales WHERE item = 7"
    )
    wh.settings = replace(wh.settings, rows_here=Settings.rows_here)
    assert {record.install for record in wh.refresh("per_item", "plain", "keyed")} == {"replace"}
    wh.refresh()
    assert_right(wh, *VIEWS)


def test_large_views_are_compacted(filled: Warehouse) -> None:
    """Once so many of their rows were replaced, and clustered by the column that rows are looked up by."""
    wh = filled
    wh.settings = replace(wh.settings, rewrite_rows=0)
    views = {view: VIEWS[view] for view in ("plain", "keyed")}
    run(wh, *(f"CREATE MATERIALIZED VIEW {v} REFRESH POLICY INCREMENTAL STRICT AS {q}" for v, q in views.items()))
    log = wh.tables.log(named(wh, "__vk_plain"))
    gone = []
    for n in range(6):
        run(wh, f"UPDATE sales SET price = price + 0.1 WHERE id % 10 = {n}")
        assert {record.install for record in wh.refresh(*views)} == {"replace"}
        gone.append(log.snapshot().gone)
        assert_right(wh, *views)
    assert gone[0] < gone[1] < gone[2] > gone[3] == 0 < gone[4], gone
    laid_out = {v: wh.spark.sql(f"DESCRIBE DETAIL __vk_{v}").collect()[0]["clusteringColumns"] for v in views}
    assert laid_out == {"plain": ["item"], "keyed": ["id"]}
    assert {record.strategy for record in wh.refresh(*views)} == {"none"}  # nobody else wrote into them


def test_clustered_views_are_written_without_spark(filled: Warehouse) -> None:
    """Delta clusters them when it compacts them, and still knows by what after a checkpoint that is not its own."""
    wh = filled
    query = "SELECT item, name, day, count(*) AS n, sum(price) AS total FROM sales GROUP BY item, name, day"
    run(wh, f"CREATE MATERIALIZED VIEW clustered CLUSTER BY (item, day) REFRESH POLICY INCREMENTAL STRICT AS {query}")
    run(wh, "OPTIMIZE __vk_clustered")
    table, ways = wh.tables.log(named(wh, "__vk_clustered")), set[str]()
    for n in range(CHECKPOINT_EVERY):
        if n == 5:
            wh.settings = replace(wh.settings, replace_from=Settings.replace_from)
        run(wh, f"UPDATE sales SET item = item + 1 WHERE id % 500 = {n}")
        ways |= {record.install for record in wh.refresh("clustered")}
        commit = table.commit(table.version())
        assert commit is not None and commit.info["engineInfo"].startswith("viewkeeper")
    assert ways == {"replace", "rewrite"}, ways
    log = wh.tables.folder(named(wh, "__vk_clustered")) / "_delta_log"
    assert list(log.glob("*.checkpoint.parquet"))
    for old in sorted(log.glob("*.json"))[: CHECKPOINT_EVERY // 2]:
        old.unlink()
    run(wh, "REFRESH TABLE __vk_clustered", "OPTIMIZE __vk_clustered")
    assert wh.spark.sql("DESCRIBE DETAIL __vk_clustered").first()["clusteringColumns"] == ["item", "day"]
    assert_right(wh, "clustered")
    for wanted in ("item = 12", "item > 290", "day = DATE '2024-01-03'", "name >= 'n7'", "name IS NULL", "item < 0"):
        assert rows(wh, f"SELECT * FROM clustered WHERE {wanted}") == rows(
            wh, f"SELECT * FROM ({query}) WHERE {wanted}"
        )


def named(wh: Warehouse, table: str) -> str:
    return f"{wh.spark.catalog.currentDatabase()}.{table}"


def assert_feed_tells(wh: Warehouse, table: str) -> None:
    """The feed of the last version, as Delta reads it, is what changed."""
    version = wh.tables.log(named(wh, table)).version()
    changed = Counter[tuple[object, ...]]()
    for row, times in rows(wh, f"SELECT * FROM table_changes('{table}', {version}, {version})").items():
        changed[row[:-3]] += times if row[-3] in ("insert", "update_postimage") else -times
    now, then = (rows(wh, f"SELECT * FROM {table} VERSION AS OF {v}") for v in (version, version - 1))
    now.subtract(then)
    assert {r: n for r, n in changed.items() if n} == {r: n for r, n in now.items() if n}
