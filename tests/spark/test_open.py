"""A session with its own catalog: full names, no folder, and a log that is read through Spark."""

from __future__ import annotations

import pytest
from checks import FEED, run

from viewkeeper import Warehouse
from viewkeeper.store.session_tables import SessionTables
from viewkeeper.store.spark_log import SparkLog

pytestmark = pytest.mark.spark


class SparkOnlyTables(SessionTables):
    """As on storage that only Spark reaches."""

    def log(self, name: str) -> SparkLog:  # type: ignore[override]
        return SparkLog(self.spark, name, self._detail(name) or "")


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "through spark"])
def test_three_part_names_and_any_catalog(wh: Warehouse, direct: bool) -> None:
    schema = wh.spark.catalog.currentDatabase()
    own = Warehouse.open(wh.spark)
    if not direct:
        own = Warehouse(SparkOnlyTables(wh.spark), wh.spark, wh.settings)
    run(
        own,
        f"CREATE TABLE spark_catalog.{schema}.events (k INT, x INT) USING DELTA {FEED}",
        f"INSERT INTO spark_catalog.{schema}.events VALUES (1, 2), (1, 3), (2, NULL)",
        f"CREATE MATERIALIZED VIEW spark_catalog.{schema}.sums REFRESH POLICY INCREMENTAL STRICT AS "
        f"SELECT k, sum(x) AS x, count(*) AS n FROM spark_catalog.{schema}.events GROUP BY k",
        "CREATE MATERIALIZED VIEW top REFRESH POLICY INCREMENTAL STRICT AS SELECT max(x) AS x FROM sums",
    )
    assert [v.view for v in own.status()] == [f"spark_catalog.{schema}.sums", f"spark_catalog.{schema}.top"]
    run(own, "INSERT INTO events VALUES (2, 50), (3, NULL)", "DELETE FROM events WHERE x = 2")
    assert [s.strategy for s in own.plan()] == ["incremental", "incremental"]
    report = own.refresh()
    assert [r.strategy for r in report] == ["incremental", "incremental"]
    assert own.audit().equal
    assert {tuple(r) for r in wh.spark.table("sums").collect()} == {(1, 3, 1), (2, 50, 2), (3, None, 1)}
    assert wh.spark.table(f"spark_catalog.{schema}.top").collect()[0]["x"] == 50
    assert [r.strategy for r in own.refresh()] == ["none", "none"]
    assert len(own.history("top")) == 2
    wh.sql("DROP VIEW top")  # as if CREATE had been killed before naming it
    wh.sql("CREATE OR REPLACE VIEW sums AS SELECT k FROM __vk_sums")  # as if OR REPLACE had been
    own.refresh()
    assert wh.spark.table("top").count() == 1 and wh.spark.table("sums").columns == ["k", "x", "n"]
    run(own, "INSERT INTO events VALUES (9, 9)")
    replaced = own.sql("CREATE OR REPLACE MATERIALIZED VIEW top AS SELECT max(x) AS x FROM sums HAVING max(x) > 0")
    assert replaced.content == "kept from what was there: unchanged" and own.audit("top").equal
    own.drop("sums", cascade=True)
    assert not wh.spark.catalog.tableExists("__vk_sums")


def test_views_of_a_folder_are_there_on_opening(wh: Warehouse) -> None:
    """What another process has made or dropped is noticed, without closing anything."""
    run(wh, f"CREATE TABLE t (k INT) USING DELTA {FEED}", "INSERT INTO t VALUES (1)")
    schema = wh.spark.catalog.currentDatabase()
    other = Warehouse.local(wh.tables.root)  # type: ignore[attr-defined]
    assert other.status() is not None
    other.sql(f"CREATE MATERIALIZED VIEW {schema}.seen AS SELECT k FROM {schema}.t")
    assert wh.spark.table("seen").count() == 1
    assert f"{schema}.seen" in wh.registry.views()
    other.sql(f"DROP MATERIALIZED VIEW {schema}.seen")
    assert f"{schema}.seen" not in wh.registry.views()
