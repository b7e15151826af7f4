"""A warehouse as people build it: ten views, seven levels deep, every level maintained from the changes of the last."""

from __future__ import annotations

import os

import pytest
from checks import FEED, assert_right, run, strategies

from viewkeeper import Warehouse

pytestmark = pytest.mark.spark

TABLES = [
    f"CREATE TABLE raw_customers (id INT, name STRING, city STRING, at TIMESTAMP) USING DELTA {FEED}",
    f"CREATE TABLE raw_orders (id INT, customer INT, amount DECIMAL(10,2), at TIMESTAMP, seen INT) USING DELTA {FEED}",
    f"CREATE TABLE rates (day DATE, rate DECIMAL(6,3)) USING DELTA {FEED}",
    "INSERT INTO raw_customers SELECT id % 8, ' c' || id % 8 || ' ', IF(id % 5 = 0, NULL, 'town' || id % 4), "
    "TIMESTAMP'2024-01-01' + make_dt_interval(CAST(id AS INT), 0, 0, 0) FROM range(20)",
    "INSERT INTO raw_orders SELECT id % 30, id % 9, id % 7 + 0.25, "
    "TIMESTAMP'2024-01-02' + make_dt_interval(CAST(id % 25 AS INT), CAST(id % 24 AS INT), 0, 0), CAST(id AS INT) FROM range(50)",
    "INSERT INTO rates SELECT DATE'2024-01-01' + CAST(id AS INT), 1 + id / 100 FROM range(0, 30, 2)",
]  # fmt: skip

VIEWS = {
    # staging → cleaned
    "customers": "SELECT id, trim(name) AS name, upper(city) AS city, at FROM raw_customers WHERE id IS NOT NULL",
    "orders": """SELECT id, customer, amount, at FROM raw_orders
                 QUALIFY row_number() OVER (PARTITION BY id ORDER BY seen DESC) = 1""",
    # slowly changing dimension: when each state of a customer was valid
    "moves": """SELECT id, name, city, at FROM (SELECT *, lag(city) OVER (PARTITION BY id ORDER BY at) AS was,
                row_number() OVER (PARTITION BY id ORDER BY at) AS n FROM customers) WHERE n = 1 OR NOT city <=> was""",
    "dim_customer": "SELECT id, name, city, at AS since, lead(at) OVER (PARTITION BY id ORDER BY at) AS until FROM moves",
    "current_customer": "SELECT id, name, city FROM dim_customer WHERE until IS NULL",
    # facts, by range on validity
    "fact_orders": """SELECT o.id, o.customer, c.city, o.amount, CAST(o.at AS DATE) AS day FROM orders o
                      LEFT JOIN dim_customer c ON o.customer = c.id AND o.at >= c.since AND (o.at < c.until OR c.until IS NULL)""",
    "fact_priced": """SELECT f.*, f.amount * coalesce(r.rate, 1) AS value FROM fact_orders f LEFT JOIN rates r ON r.day = f.day""",
    # aggregates
    "daily": "SELECT city, day, count(*) AS n, sum(value) AS value, max(amount) AS most FROM fact_priced GROUP BY city, day",
    "ranked": "SELECT *, rank() OVER (PARTITION BY day ORDER BY value DESC) AS place FROM daily",
    "winners": """SELECT r.city, count(*) AS days, sum(r.value) AS value, (SELECT count(*) FROM current_customer) AS customers
                  FROM ranked r WHERE r.place = 1 GROUP BY r.city""",
}

BATCHES = [
    ["INSERT INTO raw_customers VALUES (3, 'c3', 'town9', TIMESTAMP'2024-01-15'), (40, 'new', 'town1', TIMESTAMP'2024-01-03')",
     "INSERT INTO raw_orders VALUES (100, 40, 9.99, TIMESTAMP'2024-01-05', 100), (7, 3, 50, TIMESTAMP'2024-01-20', 101)",
     "UPDATE rates SET rate = rate * 2 WHERE day = DATE'2024-01-05'"],
    # late rows and corrections
    ["INSERT INTO raw_customers VALUES (3, 'c3', 'town0', TIMESTAMP'2024-01-02 12:00:00')",
     "INSERT INTO raw_orders VALUES (8, 3, 1, TIMESTAMP'2024-01-03', 102), (8, 3, 2, TIMESTAMP'2024-01-03', 103)",
     "UPDATE raw_customers SET city = 'town1' WHERE id = 5", "DELETE FROM rates WHERE day > DATE'2024-01-20'"],
    # deletions
    ["DELETE FROM raw_orders WHERE seen > 40", "DELETE FROM raw_customers WHERE id IN (1, 40)",
     "INSERT INTO rates VALUES (DATE'2024-01-05', 9), (DATE'2024-01-21', 3)"],
]  # fmt: skip


def test_every_level_follows_the_level_below(wh: Warehouse) -> None:
    run(wh, *TABLES)
    for name, query in VIEWS.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {query}")
    for statements in BATCHES if "VIEWKEEPER_FUZZ" in os.environ else BATCHES[:1]:
        run(wh, *statements)
        assert set(strategies(wh.refresh(*VIEWS)).values()) <= {"incremental", "none"}
        assert_right(wh, *VIEWS)
