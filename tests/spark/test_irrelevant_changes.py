"""Changes that cannot matter to a view: nothing is written, and the view covers them all the same."""

from __future__ import annotations

import pytest
from checks import FEED, assert_right, run

from viewkeeper import Warehouse
from viewkeeper.stages import STAGES

pytestmark = pytest.mark.spark

VIEWS = {
    "cheap": "SELECT s.id, c.name FROM sales s JOIN customers c ON s.customer = c.id WHERE s.price < 10 AND c.id >= 5",
    "recent": """SELECT s.customer, count(*) AS n, sum(s.price) AS total FROM sales s JOIN customers c
                 ON s.customer = c.id + 1 WHERE s.day >= DATE'2024-01-01' AND s.day = c.since AND c.id < 3
                 GROUP BY s.customer""",
    "without": "SELECT c.id FROM customers c LEFT ANTI JOIN sales s ON s.customer = c.id WHERE c.name LIKE 'A%' AND c.id > 5",
}


def test_changes_that_cannot_matter_move_the_covered_versions_only(wh: Warehouse, read: list[str]) -> None:
    run(
        wh,
        f"CREATE TABLE sales (id BIGINT, customer BIGINT, price DECIMAL(10,2), day DATE) USING DELTA {FEED}",
        "CREATE TABLE customers (id BIGINT, name STRING, since DATE) USING DELTA",
        "INSERT INTO sales VALUES (1, 5, 2.00, DATE'2024-01-01'), (2, 2, 3.00, DATE'2024-02-01'), (3, 7, 50.00, NULL)",
        "INSERT INTO customers VALUES (5, 'Eve', NULL), (1, 'Ann', DATE'2024-02-01'), (6, 'Abe', NULL), (7, 'Ali', NULL)",
    )
    for name, query in VIEWS.items():
        assert wh.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {query}").incremental
    rows = wh.explain("cheap").sections["Rows that matter"]
    assert "customer >= 5 AND price < 10" in rows and "id >= 5" in rows
    run(
        wh,
        # too dear, of no customer, or too old; nobody that is asked for
        "INSERT INTO sales VALUES (4, 5, 10.00, DATE'2023-01-01'), (5, 4, 1.00, NULL), (6, NULL, 1.00, DATE'2024-02-01')",
        "UPDATE sales SET price = price + 1 WHERE id = 4",
        "INSERT INTO customers VALUES (4, 'Amy', DATE'2024-02-01'), (NULL, 'Ada', DATE'2024-02-01')",
    )
    read.clear()
    report = wh.refresh()
    assert {r.strategy for r in report} == {"none"}, str(report)
    assert not read, "nothing but the changes has to be looked at"
    for name in VIEWS:
        last = wh.history(name).entries[0]
        assert last.strategy == "none" and last.install == "" and sorted(last.covers.values()) == [2, 3]
    assert {s.state for s in wh.status()} == {"fresh"}
    assert_right(wh, *VIEWS)
    run(
        wh,
        "INSERT INTO sales VALUES (7, 6, 9.99, DATE'2024-02-01'), (8, 2, 1.00, DATE'2024-02-01')",
        "UPDATE sales SET customer = 5, price = 0.50 WHERE id = 3",
        # of no column that cheap reads
        "UPDATE customers SET since = DATE'2024-03-01' WHERE id >= 5",
    )
    stages = {stage: str(wh.explain("recent", stage)) for stage in STAGES}
    for stage, words in {
        "parsed": "COUNT(*) AS n",
        "bound": "aggregate by customer",
        "normalized": "one row per customer",
        "changes": "[netted change]",
        "plan": "incremental: its policy is INCREMENTAL STRICT",
        "sql": "table_changes(",
    }.items():
        assert words in stages[stage], stages[stage]
    assert {r.strategy for r in wh.refresh()} == {"incremental"}
    assert_right(wh, *VIEWS)


def test_constants_padded_for_a_char_are_not_put_to_a_string(wh: Warehouse) -> None:
    run(
        wh,
        "CREATE TABLE codes (code CHAR(5)) USING DELTA",
        "CREATE TABLE names (code STRING, name STRING) USING DELTA",
        "INSERT INTO codes VALUES ('ab'), ('cd')",
        "INSERT INTO names VALUES ('ab', 'short'), ('cd   ', 'other')",
    )
    query = (
        "SELECT name FROM names JOIN codes ON names.code = codes.code WHERE codes.code = 'ab' OR codes.code IN ('x')"
    )
    assert wh.sql(f"CREATE MATERIALIZED VIEW padded REFRESH POLICY INCREMENTAL STRICT AS {query}").incremental
    run(wh, "INSERT INTO names VALUES ('ab   ', 'padded')")
    wh.refresh()
    assert_right(wh, "padded")
    assert wh.spark.table("padded").count() == 1
    run(wh, "INSERT INTO codes VALUES ('ab'), ('zz')")
    assert {r.strategy for r in wh.refresh()} == {"incremental"}
    assert_right(wh, "padded")
    assert wh.spark.table("padded").count() == 2
