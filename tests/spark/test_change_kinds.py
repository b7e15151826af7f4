"""Every way a Delta table changes, and every way its history gets lost."""

from __future__ import annotations

import os

import pytest
from checks import FEED, assert_right, refresh_and_check, run

from viewkeeper import Warehouse
from viewkeeper.errors import NotIncrementalError, ViewkeeperError

pytestmark = pytest.mark.spark

VECTORS = "delta.enableDeletionVectors"


def tables(wh: Warehouse, properties: str, policy: str = "INCREMENTAL STRICT") -> list[str]:
    run(
        wh,
        f"CREATE TABLE t (k INT, x DECIMAL(8,2), s STRING) USING DELTA {properties}",
        "INSERT INTO t SELECT id % 7, id, 's' || id % 3 FROM range(60)",
        "INSERT INTO t SELECT id % 7, id, NULL FROM range(60, 90)",
        f"CREATE MATERIALIZED VIEW rows_ REFRESH POLICY {policy} AS SELECT k, s FROM t WHERE x > 3",
        f"CREATE MATERIALIZED VIEW sums REFRESH POLICY {policy} AS SELECT k, sum(x) AS x, count(s) AS n FROM t GROUP BY k",
    )
    return ["rows_", "sums"]


@pytest.mark.parametrize(
    "properties",
    [
        f"TBLPROPERTIES (delta.enableChangeDataFeed = true, {VECTORS} = true)",
        f"TBLPROPERTIES (delta.enableChangeDataFeed = false, {VECTORS} = true)",
    ],
    ids=["feed", "files"],
)
def test_every_commit_kind_is_followed(wh: Warehouse, properties: str) -> None:
    names = tables(wh, properties)
    changed = {"rows_": "incremental", "sums": "incremental"}
    same = {"rows_": "none", "sums": "none"}
    steps: list[tuple[str, dict[str, str]]] = [
        ("INSERT INTO t VALUES (1, 5.5, 'new'), (NULL, NULL, NULL)", changed),
        ("UPDATE t SET x = x + 1, k = 2 WHERE x BETWEEN 5 AND 15", changed),
        ("DELETE FROM t WHERE x > 80", changed),
        (
            "MERGE INTO t USING (SELECT 3 AS k, 500 AS x) s ON t.k = s.k AND t.x < 30 "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, x, s) VALUES (s.k, s.x, 'merged')",
            changed,
        ),
        ("OPTIMIZE t", same),
        ("INSERT OVERWRITE t SELECT k, x, s FROM t WHERE k <> 4", changed),
        ("ALTER TABLE t ADD COLUMN extra STRING", same),
        ("INSERT INTO t VALUES (4, 1.25, 'wide', 'extra')", changed),
        ("UPDATE t SET extra = 'nobody reads this' WHERE k = 1", same),
    ]
    everything = "true" in properties.partition(VECTORS)[0] or "VIEWKEEPER_FUZZ" in os.environ
    for statement, expected in steps if everything else steps[1:4]:
        run(wh, statement)
        found = refresh_and_check(wh, names)
        if statement.startswith("INSERT INTO t VALUES (4"):  # the filter leaves rows_ as it is
            expected = {"rows_": "none", "sums": "incremental"}
        assert found == expected, statement
    back = wh.spark.sql("DESCRIBE HISTORY t").count() - 6
    run(wh, f"RESTORE TABLE t TO VERSION AS OF {back}", "OPTIMIZE t")
    assert refresh_and_check(wh, names)["sums"] in ("incremental", "none")
    run(wh, "DELETE FROM t WHERE k = 2", "OPTIMIZE t", "INSERT INTO t (k, x, s) VALUES (2, 9.75, 'after')")
    assert refresh_and_check(wh, names) == changed
    run(wh, "TRUNCATE TABLE t")
    assert refresh_and_check(wh, names) == changed
    assert wh.spark.table("sums").count() == 0


def test_lost_history_is_recomputed_and_says_why(wh: Warehouse) -> None:
    names = tables(wh, FEED, policy="AUTO")
    run(wh, "ALTER TABLE t SET TBLPROPERTIES (delta.columnMapping.mode = 'name')")
    assert set(refresh_and_check(wh, names).values()) == {"none"}
    # No data was written, and yet every value of s is another one.
    run(wh, "ALTER TABLE t DROP COLUMN s", "ALTER TABLE t ADD COLUMN s STRING")
    report = wh.refresh(*names)
    assert_right(wh, *names)
    assert all(r.strategy == "recompute" and "column s" in r.reason for r in report), str(report)
    # A column that nobody reads may go.
    run(
        wh,
        "ALTER TABLE t ADD COLUMN other INT",
        "INSERT INTO t (k, x) VALUES (5, 50)",
        "ALTER TABLE t DROP COLUMN other",
    )
    pending = next(iter(wh.plan("sums"))).pending
    assert "touched files" in pending[f"{wh.spark.catalog.currentDatabase()}.t"]
    refresh_and_check(wh, names)
    run(
        wh,
        "CREATE OR REPLACE TABLE t (k INT, x DECIMAL(8,2), s STRING) USING DELTA",
        "INSERT INTO t VALUES (1, 2, 'z')",
    )
    report = wh.refresh(*names)
    assert_right(wh, *names)
    assert all(r.strategy == "recompute" and "replaced" in r.reason for r in report), str(report)


def test_a_column_that_had_another_name_for_a_while(wh: Warehouse) -> None:
    """Rows were written under both names; while it has the other one, there is no column for the view to read."""
    names = tables(wh, f"{FEED[:-1]}, delta.columnMapping.mode = 'name', {VECTORS} = true)")
    run(
        wh,
        "UPDATE t SET s = 'before' WHERE k = 1",
        "ALTER TABLE t RENAME COLUMN s TO word",
        "INSERT INTO t (k, x, word) VALUES (1, 77, 'between'), (8, 78, NULL)",
    )
    before = wh.spark.table("sums").collect()
    with pytest.raises(ViewkeeperError, match="column s"):
        wh.refresh("sums")
    assert wh.spark.table("sums").collect() == before
    run(wh, "ALTER TABLE t RENAME COLUMN word TO s", "DELETE FROM t WHERE k = 2")
    assert set(refresh_and_check(wh, names).values()) == {"incremental"}
    run(wh, "ALTER TABLE t RENAME COLUMN s TO word", "ALTER TABLE t RENAME COLUMN word TO s")
    assert set(refresh_and_check(wh, names).values()) == {"none"}


@pytest.mark.skipif("VIEWKEEPER_FUZZ" not in os.environ, reason="takes a minute; make fuzz runs it")
def test_vacuumed_changes(wh: Warehouse) -> None:
    """Files of the old state are gone: AUTO recomputes, INCREMENTAL fails and leaves the view as it was."""
    names = tables(wh, "")
    run(wh, "CREATE MATERIALIZED VIEW auto AS SELECT k, max(x) AS x, count(*) AS n FROM t GROUP BY k")
    run(wh, "DELETE FROM t WHERE k = 1", "UPDATE t SET x = 0 WHERE k = 2")
    wh.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    run(wh, "VACUUM t RETAIN 0 HOURS")
    wh.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    before = wh.spark.table("sums").collect()
    with pytest.raises(NotIncrementalError, match="FULL recomputes it"):
        wh.refresh("sums")
    assert wh.spark.table("sums").collect() == before
    record = next(iter(wh.refresh("auto")))
    assert record.strategy == "recompute"
    assert_right(wh, "auto")
    for name in names:
        wh.sql(f"REFRESH MATERIALIZED VIEW {name} FULL")
    assert_right(wh, *names)


def test_a_stranger_in_the_backing_table_is_noticed(wh: Warehouse) -> None:
    tables(wh, FEED, policy="AUTO")
    run(wh, "DELETE FROM __vk_sums WHERE k = 1")
    record = next(iter(wh.refresh("sums")))
    assert record.strategy == "recompute"
    assert "something else wrote" in record.reason
    assert_right(wh, "sums")


def test_feed_switched_on_in_between(wh: Warehouse) -> None:
    names = tables(wh, "")
    run(
        wh,
        "DELETE FROM t WHERE k = 1",
        "ALTER TABLE t SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        "UPDATE t SET x = x * 2 WHERE k = 2",
    )
    assert set(refresh_and_check(wh, names).values()) == {"incremental"}
    run(wh, "UPDATE t SET x = x * 2 WHERE k = 3")
    assert set(refresh_and_check(wh, names).values()) == {"incremental"}
