"""Every supported shape, with inserts, updates and deletes in all sources at once, against recompute."""

from __future__ import annotations

import os

import pytest
from checks import FEED, refresh_and_check, run, strategies

from viewkeeper import Warehouse
from viewkeeper.runtime.measured import measured

pytestmark = pytest.mark.spark

VIEWS = {
    "filtered": "SELECT id, price * 2 AS twice, upper(note) AS note FROM sales WHERE price > 10 OR note IS NULL",
    "joined": """SELECT s.id, c.name, s.price FROM sales s JOIN customers c ON s.customer = c.id
                 WHERE c.segment <> 'X'""",
    "theta": "SELECT a.id AS l, b.id AS r FROM sales a CROSS JOIN sales b WHERE a.price < b.price AND a.customer = b.customer",
    "shared": "SELECT id, s.price, c.name FROM sales s JOIN customers c USING (id) WHERE id + 0 < 3",
    "stacked": "SELECT customer, price FROM sales UNION ALL SELECT id, CAST(id AS DECIMAL(10,2)) FROM customers",
    "segments": "SELECT DISTINCT segment, name IS NULL AS anonymous FROM customers",
    "totals": """SELECT c.segment, count(*) AS n, count(s.note) AS notes, sum(s.price) AS total, avg(s.price) AS mean,
                 avg(s.customer) AS mean_customer, sum(s.price) FILTER (WHERE s.price > 20) AS large
                 FROM sales s, customers c WHERE s.customer = c.id GROUP BY c.segment""",
    "extremes": """SELECT customer, min(price) AS low, max(price) AS high, max(day) AS last, avg(price) AS mean
                   FROM sales GROUP BY customer HAVING count(*) > 1""",
    "overall": "SELECT count(*) AS n, sum(price) AS total, min(day) AS first, count(DISTINCT customer) AS buyers FROM sales",
    "doubles": "SELECT customer, sum(CAST(price AS DOUBLE)) AS total, stddev(price) AS spread FROM sales GROUP BY customer",
    "nested": """WITH per_day AS (SELECT day, customer, sum(price) AS total FROM sales GROUP BY day, customer)
                 SELECT p.day, max(p.total) AS best, count(*) AS customers FROM per_day p
                 JOIN customers c ON c.id = p.customer GROUP BY p.day""",
    "over_view": "SELECT segment, total / n AS per_sale FROM totals WHERE n > 1",
    "over_over": "SELECT count(*) AS segments, sum(per_sale) AS sums FROM over_view",
    "constant": "SELECT 1 AS one, 'a' AS letter UNION ALL SELECT id, note FROM sales WHERE id < 5",
}

# What `make test` has time for; `make fuzz` runs all.
FEW = ("joined", "totals", "extremes", "overall", "over_view")

ROUNDS = [
    # duplicates, NULLs everywhere, a customer nobody has, updates that move keys, in both sources, and a delete
    ["INSERT INTO sales VALUES (1, 1, 10.00, DATE'2024-01-01', 'a'), (1, 1, 10.00, DATE'2024-01-01', 'a'), "
     "(60, NULL, NULL, NULL, NULL), (61, 99, 5.50, DATE'2024-02-01', 'zz')",
     "UPDATE sales SET customer = 2, price = price + 7.25 WHERE id IN (3, 4, 5)",
     "UPDATE customers SET segment = 'X' WHERE id = 2",
     "DELETE FROM sales WHERE id = 1",
     "DELETE FROM customers WHERE id = 4"],
    # a merge, groups emptied, rows that come and go between two refreshes
    ["MERGE INTO sales t USING (SELECT 7 AS id, 3 AS customer UNION ALL SELECT 700, 5) s ON t.id = s.id "
     "WHEN MATCHED THEN UPDATE SET customer = s.customer "
     "WHEN NOT MATCHED THEN INSERT (id, customer, price, day, note) VALUES (s.id, s.customer, 44.40, DATE'2024-03-03', 'm')",
     "DELETE FROM sales WHERE customer = 1",
     "INSERT INTO customers VALUES (8, 'Ida', NULL)",
     "INSERT INTO sales VALUES (800, 8, 1.00, DATE'2024-03-04', 'gone')",
     "DELETE FROM sales WHERE id = 800"],
    # everything goes
    ["DELETE FROM sales"],
    # and comes back
    ["INSERT INTO sales VALUES (1, 1, 10.00, DATE'2024-01-01', 'b'), (2, 3, 30.00, DATE'2024-01-02', NULL)"],
]  # fmt: skip


def test_every_shape_follows_mixed_changes(wh: Warehouse) -> None:
    """The changes of one table are read from its feed, those of the other from its files."""
    run(
        wh,
        f"CREATE TABLE sales (id BIGINT, customer BIGINT, price DECIMAL(10,2), day DATE, note STRING) USING DELTA {FEED}",
        "CREATE TABLE customers (id BIGINT, name STRING, segment STRING) USING DELTA",
        "INSERT INTO sales SELECT id, id % 5, CAST(id * 1.5 AS DECIMAL(10,2)), DATE'2024-01-01' + CAST(id % 3 AS INT), "
        "IF(id % 4 = 0, NULL, 'n' || id % 6) FROM range(1, 40)",
        "INSERT INTO customers VALUES (1, 'Ann', 'A'), (2, 'Bob', 'B'), (3, NULL, 'A'), (4, 'Dan', NULL), (4, 'Dan', NULL)",
    )
    names = list(VIEWS) if "VIEWKEEPER_FUZZ" in os.environ else list(FEW)
    for name in names:
        created = wh.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {VIEWS[name]}")
        assert created.incremental
    for statements in ROUNDS:
        run(wh, *statements)
        found = refresh_and_check(wh, names)
        assert set(found.values()) <= {"incremental", "none"}, found
        assert found["totals"] == found["joined"] == "incremental"
    assert set(strategies(wh.refresh(*names)).values()) == {"none"}


@pytest.mark.skipif("VIEWKEEPER_FUZZ" not in os.environ, reason="takes a minute; make fuzz runs it")
def test_installs_of_every_kind_agree(wh: Warehouse) -> None:
    """The same changes through append, rewrite and merge, bag and groups."""
    run(
        wh,
        f"CREATE TABLE t (k INT, x DECIMAL(8,2), s STRING) USING DELTA {FEED}",
        "INSERT INTO t SELECT id % 7, id, 's' || id % 3 FROM range(50)",
        "CREATE MATERIALIZED VIEW bag REFRESH POLICY INCREMENTAL AS SELECT k % 3 AS k, s FROM t",
        "CREATE MATERIALIZED VIEW groups REFRESH POLICY INCREMENTAL AS SELECT k, sum(x) AS x, count(*) AS n FROM t GROUP BY k",
        "CREATE MATERIALIZED VIEW lows REFRESH POLICY INCREMENTAL AS SELECT s, min(x) AS x FROM t GROUP BY s",
    )
    seen = set()
    for limit in (1_000_000, 0):
        wh.settings = type(wh.settings)(rewrite_rows=limit)
        for statement in (
            "INSERT INTO t VALUES (1, 3.5, 's1'), (NULL, NULL, NULL), (NULL, NULL, NULL)",
            "DELETE FROM t WHERE x BETWEEN 10 AND 20 OR k = 3",
            "UPDATE t SET k = 3, s = IF(s IS NULL, NULL, 'new') WHERE x < 5 OR s IS NULL",
        ):
            run(wh, statement)
            report = wh.refresh("bag", "groups", "lows")
            seen |= {(r.view.split(".")[-1], r.install) for r in report}
            refresh_and_check(wh, ["bag", "groups", "lows"])
    wh.settings = type(wh.settings)()
    assert {("bag", "append"), ("bag", "rewrite"), ("bag", "merge")} <= seen
    assert {("groups", "rewrite"), ("groups", "merge"), ("lows", "merge")} <= seen


def test_averages_are_exact_to_the_last_digit(wh: Warehouse) -> None:
    """Quotients next to a half in the last place, where rounding twice would go wrong."""
    run(
        wh,
        f"CREATE TABLE n (k INT, d DECIMAL(18,2), i INT, w DECIMAL(27,10)) USING DELTA {FEED}",
        "INSERT INTO n SELECT id % 11, CAST(id * 0.37 AS DECIMAL(18,2)), id, CAST(id / 3 AS DECIMAL(27,10)) FROM range(2000)",
        "CREATE MATERIALIZED VIEW means REFRESH POLICY INCREMENTAL STRICT AS "
        "SELECT k, avg(d) AS d, avg(i) AS i, avg(w) AS w, sum(w) AS sw, sum(d) AS sd FROM n GROUP BY k",
    )
    for step in range(3):
        run(
            wh,
            f"DELETE FROM n WHERE i % 13 = {step}",
            f"INSERT INTO n VALUES (3, {step}.01, {step}, {step}.3333333333)",
        )
        assert refresh_and_check(wh, ["means"]) == {"means": "incremental"}


def test_floating_sums_do_not_drift(wh: Warehouse) -> None:
    """What was added beside a huge number, NaN or infinity is there when that has gone, by rewrite and by merge."""
    run(
        wh,
        f"CREATE TABLE d (k INT, x DOUBLE, y FLOAT) USING DELTA {FEED}",
        "INSERT INTO d SELECT id % 4, id / 7, id / 3 FROM range(40)",
        "CREATE MATERIALIZED VIEW floats REFRESH POLICY INCREMENTAL STRICT AS "
        "SELECT k, sum(x) AS x, avg(y) AS y, sum(y) FILTER (WHERE x > 1) AS z FROM d GROUP BY k",
        "CREATE TABLE names USING DELTA AS SELECT CAST(id AS INT) AS k, id % 2 AS n FROM range(5)",
        "CREATE MATERIALIZED VIEW all_floats REFRESH POLICY INCREMENTAL STRICT AS "
        "SELECT sum(x) AS x, avg(x) AS m FROM d JOIN names ON names.k = d.k",
    )
    names = ["floats", "all_floats"]
    for limit in (1_000_000, 0) if "VIEWKEEPER_FUZZ" in os.environ else (1_000_000,):
        wh.settings = type(wh.settings)(rewrite_rows=limit)
        for statement in (
            "INSERT INTO d VALUES (1, 1e20, 1), (1, 1, 1), (2, DOUBLE('NaN'), 1), (3, DOUBLE('Infinity'), FLOAT('-Infinity'))",
            "DELETE FROM d WHERE x = 1e20 OR x = DOUBLE('NaN')",
            "DELETE FROM d WHERE x = DOUBLE('Infinity') OR k = 0",
            "INSERT INTO d VALUES (0, 0.1, 0.1), (NULL, NULL, 2)",
        ):
            run(wh, statement)
            assert refresh_and_check(wh, names) == dict.fromkeys(names, "incremental"), statement
    wh.settings = type(wh.settings)()
    drift = wh.spark.sql("SELECT k, __vk_drift_x FROM __vk_floats").collect()
    assert {k for k, bound in drift if bound} == {0}  # the only group that was not computed from its rows at last


def test_what_refreshes_took_is_known_to_the_next_ones(wh: Warehouse) -> None:
    """That the view was created too, and how much was left of a change once it was read."""
    run(
        wh,
        f"CREATE TABLE t (k INT, v INT) USING DELTA {FEED}",
        "INSERT INTO t SELECT id % 3, id FROM range(30)",
        "CREATE MATERIALIZED VIEW joined REFRESH POLICY INCREMENTAL AS SELECT a.k, b.v FROM t a JOIN t b ON a.k = b.k",
        "INSERT INTO t VALUES (1, 100)",
    )
    wh.refresh("joined")
    view = wh.registry.get((wh.spark.catalog.currentDatabase(), "joined"))
    refreshed, created = measured(wh.registry)[view.id]
    assert created.created and created.way == "recompute" and created.cost.rows_written == 300
    assert not refreshed.created and refreshed.way == "here" and refreshed.left is not None
