"""Views of many shapes that are refreshed without a Spark job, and of some that are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from checks import FEED, assert_right, run

from viewkeeper import Warehouse

pytestmark = pytest.mark.spark

HERE = {
    "added_up": "SELECT region, count(*) AS n, sum(price) AS total, avg(price) AS mean FROM sales GROUP BY region",
    "everything": "SELECT count(*) AS n, sum(price * (1 - part) * amount) AS total FROM sales",
    "kept_rows": "SELECT id, region, price * amount AS worth FROM sales WHERE price > 3 AND region IN ('a', 'b')",
    "extremes": "SELECT region, min(day) AS first, max(price) AS most, count(DISTINCT shop) AS shops FROM sales GROUP BY region",
    "joined": """SELECT s.region, p.name, sum(s.price) AS total FROM sales s JOIN shops p ON p.id = s.shop
                 WHERE p.name LIKE 's%' GROUP BY s.region, p.name""",
    "outer_joined": "SELECT p.id, p.name, s.price FROM shops p LEFT JOIN sales s ON s.shop = p.id AND s.price > 5",
    "unmatched": "SELECT name FROM shops p WHERE NOT EXISTS (SELECT 1 FROM sales s WHERE s.shop = p.id AND s.amount > 2)",
    "latest": """SELECT shop, id, day FROM (
                   SELECT *, row_number() OVER (PARTITION BY shop ORDER BY day DESC, id DESC) AS n FROM sales) WHERE n = 1""",
    "above_mean": """SELECT id FROM sales s WHERE price > (SELECT 0.5 * avg(price) FROM sales o WHERE o.shop = s.shop)""",
    "cases": """SELECT year(day) AS year, sum(CASE WHEN region = 'a' THEN price WHEN region IS NULL THEN 1 ELSE 0 END) AS a,
                count(nullif(amount, 2)) AS others FROM sales GROUP BY year(day)""",
    "both": "SELECT region FROM sales UNION ALL SELECT name FROM shops WHERE substring(name, 1, 2) = 's1'",
    "different": "SELECT DISTINCT region, shop FROM sales WHERE day BETWEEN DATE '2024-01-03' AND DATE '2024-01-20'",
}
NOT_HERE = {
    "shouted": "SELECT upper(region) AS region, count(*) AS n FROM sales GROUP BY upper(region)",
    "shares": "SELECT id, price / amount AS each FROM sales",
    "floating": "SELECT region, sum(CAST(price AS DOUBLE)) AS total FROM sales GROUP BY region",
}
BATCHES = (
    (
        "INSERT INTO sales VALUES (900, 'z', 3, 7.50, 0.1, 2, DATE '2024-02-01'), (900, 'z', 3, 7.50, 0.1, 2, DATE '2024-02-01')",
        "UPDATE sales SET region = 'c', shop = 99 WHERE id % 9 = 0",
        "DELETE FROM sales WHERE region = 'b' OR id = 4",
        "UPDATE shops SET name = 's77' WHERE id = 2",
    ),
    (
        "DELETE FROM sales WHERE id = 900 OR region IS NULL",
        "INSERT INTO sales SELECT id + 2000, 'b', id % 7, id, 0.2, NULL, DATE '2023-12-31' FROM range(3)",
        "INSERT INTO shops VALUES (99, 's99'), (NULL, NULL)",
        "DELETE FROM shops WHERE id = 3",
    ),
)


@pytest.fixture
def filled(wh: Warehouse) -> Warehouse:
    run(
        wh,
        "CREATE TABLE sales (id BIGINT, region STRING, shop INT, price DECIMAL(10,2), part DECIMAL(4,2), amount INT, "
        f"day DATE) USING DELTA {FEED}",
        f"CREATE TABLE shops (id INT, name STRING) USING DELTA {FEED}",
        """INSERT INTO sales SELECT id, element_at(array('a', 'b', 'c', NULL), CAST(id % 4 + 1 AS INT)), id % 7,
           CAST(id % 13 AS DECIMAL(10,2)) / 2, 0.05, nullif(id % 5, 0), date_add(DATE '2024-01-01', CAST(id % 30 AS INT))
           FROM range(120)""",
        "INSERT INTO sales SELECT * FROM sales WHERE id < 5",
        "INSERT INTO shops SELECT id, concat('s', id) FROM range(9)",
    )
    return wh


def jobs(wh: Warehouse) -> int:
    context = wh.spark.sparkContext
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def test_many_shapes_are_refreshed_without_a_job(filled: Warehouse) -> None:
    wh, views = filled, HERE | NOT_HERE
    run(wh, *(f"CREATE MATERIALIZED VIEW {v} REFRESH POLICY INCREMENTAL STRICT AS {q}" for v, q in views.items()))
    for batch in BATCHES:
        run(wh, *batch)
        took = {}
        for view in views:
            before = jobs(wh)
            wh.refresh(view)
            took[view] = jobs(wh) - before
        assert_right(wh, *views)
        assert {view for view, count in took.items() if not count} == set(HERE), took


def test_spark_computes_them_if_it_is_told_to(filled: Warehouse) -> None:
    wh = filled
    wh.settings = replace(wh.settings, rows_here=0)
    run(wh, *(f"CREATE MATERIALIZED VIEW {v} REFRESH POLICY INCREMENTAL STRICT AS {q}" for v, q in HERE.items()))
    for batch in BATCHES:
        run(wh, *batch)
        before = jobs(wh)
        wh.refresh(*HERE)
        assert jobs(wh) > before
        assert_right(wh, *HERE)
