"""The clock as a source, and definitions that read views and functions of Spark's."""

from __future__ import annotations

import time

import pytest
from checks import FEED, rows, run, strategies

from viewkeeper import Warehouse

pytestmark = pytest.mark.spark


VIEWS = ("lately", "week", "counted", "stamped")


def test_rows_enter_and_leave_as_time_moves(wh: Warehouse) -> None:
    run(
        wh,
        f"CREATE TABLE seen (id INT, at TIMESTAMP, day DATE) USING DELTA {FEED}",
        "INSERT INTO seen SELECT id, now() + make_dt_interval(0, 0, 0, id - 20), current_date() - CAST(id AS INT) FROM range(60)",
    )
    wh.sql(
        "CREATE MATERIALIZED VIEW lately REFRESH POLICY INCREMENTAL STRICT AS SELECT id, at FROM seen WHERE at <= now() AND at > now() - INTERVAL 9 SECONDS"
    )
    wh.sql(
        "CREATE MATERIALIZED VIEW week REFRESH POLICY INCREMENTAL STRICT AS SELECT day, count(*) AS n FROM seen WHERE day > current_date - 7 GROUP BY day"
    )
    wh.sql(
        "CREATE MATERIALIZED VIEW counted REFRESH POLICY INCREMENTAL STRICT AS SELECT id % 3 AS k, sum(id) AS n FROM lately GROUP BY id % 3"
    )
    wh.sql("CREATE MATERIALIZED VIEW stamped REFRESH POLICY FULL AS SELECT id, now() AS stamp FROM seen WHERE id < 3")
    before = set(rows(wh, "SELECT id FROM lately"))
    time.sleep(3)
    states = {v.view.split(".")[-1]: v.state for v in wh.status().views}
    assert [states[v] for v in VIEWS] == ["stale", "fresh", "stale", "stale"]
    run(wh, "DELETE FROM seen WHERE id = 19", "UPDATE seen SET day = current_date() WHERE id = 40")
    done = strategies(wh.refresh(*VIEWS))
    assert done == {"lately": "incremental", "week": "incremental", "counted": "incremental", "stamped": "recompute"}
    assert all(wh.audit(name).equal for name in VIEWS)
    after = set(rows(wh, "SELECT id FROM lately"))
    assert after - before and before - after, "some came, some went"


def test_views_and_functions_of_spark_are_looked_into(wh: Warehouse) -> None:
    run(
        wh,
        f"CREATE TABLE bought (id INT, k INT, price DOUBLE) USING DELTA {FEED}",
        "INSERT INTO bought VALUES (1, 1, 2), (2, 1, 3), (3, 2, NULL)",
        "CREATE VIEW dear (number, cost) AS SELECT id AS n, price * 2 AS c FROM bought WHERE price > 1",
        "CREATE VIEW dearer AS SELECT * FROM dear WHERE cost > 4",
        "CREATE TEMPORARY VIEW mine AS SELECT number, cost FROM dearer",
        "CREATE FUNCTION taxed(x DOUBLE, rate DOUBLE) RETURNS DOUBLE RETURN x * (1 + rate)",
        "CREATE TEMPORARY FUNCTION rounded(x DOUBLE) RETURNS DOUBLE RETURN round(taxed(x, 0.1), 2)",
    )
    create = "CREATE MATERIALIZED VIEW {} REFRESH POLICY INCREMENTAL STRICT AS {}"
    wh.sql(
        create.format("kept", "SELECT m.number, rounded(m.cost) AS total FROM mine AS m WHERE taxed(m.cost, 0.5) < 100")
    )
    wh.sql(create.format("kept_sum", "SELECT count(*) AS n, max(cost) AS most FROM dearer"))
    run(
        wh,
        "INSERT INTO bought VALUES (4, 1, 7), (4, 1, 7)",
        "UPDATE bought SET price = 9 WHERE id = 3",
        "DELETE FROM bought WHERE id = 2",
    )
    assert strategies(wh.refresh("kept", "kept_sum")) == {"kept": "incremental", "kept_sum": "incremental"}
    assert wh.audit("kept").equal and wh.audit("kept_sum").equal
    # What they meant when the view was created, they mean still.
    run(
        wh,
        "CREATE OR REPLACE VIEW dear (number, cost) AS SELECT 0, 0D",
        "DROP VIEW mine",
        "INSERT INTO bought VALUES (5, 1, 8)",
    )
    wh.refresh("kept", "kept_sum")
    assert (5, 17.6) in rows(wh, "SELECT * FROM kept")
    assert "mine" in str(wh.explain("kept"))
