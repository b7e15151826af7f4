"""CREATE, DROP, SHOW, DESCRIBE, EXPLAIN; policies; and what bad input leads to."""

from __future__ import annotations

import warnings

import pytest
from checks import FEED, assert_right, refresh_and_check, rows, run

from viewkeeper import Warehouse
from viewkeeper.errors import (
    DependentsError,
    NameTakenError,
    NotIncrementalError,
    SourceError,
    SqlError,
    UnknownViewError,
    ViewkeeperError,
)
from viewkeeper.runtime.commit import Commits
from viewkeeper.runtime.define import explained

pytestmark = pytest.mark.spark


@pytest.fixture
def sales(wh: Warehouse) -> Warehouse:
    run(
        wh,
        f"CREATE TABLE sales (day DATE, price DECIMAL(10,2), kind STRING) USING DELTA {FEED}",
        "INSERT INTO sales VALUES (DATE'2024-01-01', 5, 'a'), (DATE'2024-01-01', 7, 'b'), (DATE'2024-01-02', 1, 'a')",
    )
    return wh


def test_two_readings_of_a_wide_table_are_told_apart(wh: Warehouse) -> None:
    wide = ", ".join(f"c{i} INT" for i in range(40))
    run(wh, f"CREATE TABLE wide ({wide}) USING DELTA")
    one, other = (
        explained(wh.spark.newSession(), f"SELECT c{i} FROM {wh.spark.catalog.currentDatabase()}.wide GROUP BY 1")
        for i in (35, 36)
    )
    assert one != other


def test_what_went_wrong_in_spark_is_said(wh: Warehouse) -> None:
    run(
        wh,
        "CREATE TABLE one (k INT) USING DELTA",
        "CREATE TABLE facts (k INT, x INT) USING DELTA",
        "INSERT INTO one VALUES (1)",
        "INSERT INTO facts VALUES (1, 2), (2, 3)",
    )
    query = "SELECT x FROM facts WHERE k = (SELECT k FROM one)"
    wh.sql(f"CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT AS {query}")
    run(wh, "INSERT INTO one VALUES (2)")
    with pytest.raises(ViewkeeperError, match="a subquery used as a value has more than one row"):
        wh.refresh("v")
    run(wh, "DELETE FROM one WHERE k = 1")
    wh.refresh("v")
    assert_right(wh, "v")


def test_all_clauses_in_any_order(sales: Warehouse) -> None:
    sales.sql("""
        CREATE OR REPLACE MATERIALIZED VIEW daily (`Day` COMMENT 'the day', revenue, `n of sales`)
        TBLPROPERTIES ('team' = 'sales', delta.logRetentionDuration = 'interval 60 days')
        REFRESH POLICY INCREMENTAL STRICT
        CLUSTER BY (`Day`)
        COMMENT 'it''s daily'
        AS SELECT day, sum(price), count(*) FROM sales GROUP BY day;""")
    assert sales.spark.table("daily").columns == ["Day", "revenue", "n of sales"]
    described = str(sales.sql("DESCRIBE MATERIALIZED VIEW daily"))
    assert "it's daily" in described and "INCREMENTAL STRICT" in described and "clustered by: Day" in described
    comments = {r["col_name"]: r["comment"] for r in sales.spark.sql("DESCRIBE daily").collect()}
    assert comments["Day"] == "the day"
    properties = {r["key"]: r["value"] for r in sales.spark.sql("SHOW TBLPROPERTIES __vk_daily").collect()}
    assert properties["team"] == "sales"
    run(sales, "INSERT INTO sales VALUES (DATE'2024-01-03', 2, NULL)")
    sales.sql("REFRESH MATERIALIZED VIEW daily")
    assert_right(sales, "daily")
    assert "daily" in str(sales.sql("SHOW MATERIALIZED VIEWS"))
    assert "up to date" in str(sales.sql("EXPLAIN REFRESH daily"))
    assert "added up from changes" in str(
        sales.sql("EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT day, count(*) n FROM sales GROUP BY day")
    )
    assert not sales.spark.catalog.tableExists("x")


def test_names_types_and_settings_stay_as_they_were(sales: Warehouse) -> None:
    """Odd column names, the session's time zone, and a column added to the source after SELECT *."""
    run(
        sales,
        "CREATE MATERIALIZED VIEW odd AS SELECT count(*), sum(price) AS `a b.c`, max(day) FROM sales",
        "CREATE MATERIALIZED VIEW hours AS SELECT hour(CAST(day AS TIMESTAMP)) AS h, date_format(CAST(day AS TIMESTAMP), 'z') AS z FROM sales",
        "CREATE MATERIALIZED VIEW everything AS SELECT * FROM sales",
    )
    assert sales.spark.table("odd").columns == ["count(1)", "a b.c", "max(day)"]
    sales.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    run(sales, "ALTER TABLE sales ADD COLUMN more INT", "INSERT INTO sales VALUES (DATE'2024-05-05', 8, 'z', 1)")
    sales.refresh("odd", "hours", "everything")
    assert {r["z"] for r in sales.spark.table("hours").collect()} == {"UTC"}
    sales.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert sales.audit("odd", "hours", "everything").equal
    assert sales.spark.table("everything").columns == ["day", "price", "kind"]


def test_columns_may_be_called_by_the_schema_of_their_table(sales: Warehouse) -> None:
    here = sales.spark.catalog.currentDatabase()
    run(
        sales,
        f"CREATE SCHEMA {here}_b",
        f"CREATE TABLE {here}_b.sales USING DELTA {FEED} AS SELECT day, named_struct('x', price) AS s FROM sales",
    )
    queries = {
        "one": f"SELECT {here}.sales.price FROM sales WHERE spark_catalog.{here}.sales.kind = 'a'",
        "field": f"SELECT {here}_b.sales.s.x, {here}_b.sales.* FROM {here}_b.sales",
        "two": f"SELECT {here}.sales.price, {here}_b.sales.s FROM sales JOIN {here}_b.sales ON {here}.sales.day = {here}_b.sales.day",
    }
    for name, query in queries.items():
        sales.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {query}")
    run(
        sales,
        "UPDATE sales SET price = price + 1, kind = 'a' WHERE kind = 'b'",
        f"INSERT INTO {here}_b.sales VALUES (DATE'2024-01-02', NULL)",
    )
    assert refresh_and_check(sales, queries) == dict.fromkeys(queries, "incremental")
    for name in queries:
        assert sales.audit(name).equal
        sales.sql(f"REFRESH MATERIALIZED VIEW {name} FULL")
        assert_right(sales, name)
    run(sales, f"DROP SCHEMA {here}_b CASCADE")


def test_policies(sales: Warehouse) -> None:
    ranked = "SELECT day, percent_rank() OVER (ORDER BY price) AS r FROM sales"
    with pytest.raises(NotIncrementalError, match=r"window without PARTITION BY at line 1, column \d+") as refused:
        sales.sql(f"CREATE MATERIALIZED VIEW r REFRESH POLICY INCREMENTAL STRICT AS {ranked}")
    assert refused.value.hint
    with pytest.warns(UserWarning, match="window without PARTITION BY"):
        created = sales.sql(f"CREATE MATERIALIZED VIEW r REFRESH POLICY INCREMENTAL AS {ranked}")
    assert not created.incremental and created.warnings
    run(
        sales,
        "CREATE MATERIALIZED VIEW f REFRESH POLICY FULL AS SELECT day, count(*) AS n FROM sales GROUP BY day",
        "CREATE MATERIALIZED VIEW a AS SELECT day, count(*) AS n FROM sales GROUP BY day",
        "CREATE MATERIALIZED VIEW i REFRESH POLICY INCREMENTAL AS SELECT day, count(*) AS n FROM sales GROUP BY day",
        "INSERT INTO sales VALUES (DATE'2024-01-09', 2, NULL)",
    )
    report = {r.view.split(".")[-1]: r for r in sales.refresh("r", "f", "a", "i")}
    assert report["r"].strategy == "recompute" and "window without PARTITION BY" in report["r"].reason
    assert report["f"].strategy == "recompute" and "FULL" in report["f"].reason
    assert report["i"].strategy == "incremental"
    assert report["a"].strategy in ("incremental", "recompute")
    assert_right(sales, "r", "f", "a", "i")


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT day, lead(price) OVER (ORDER BY day) AS x FROM sales", "PARTITION BY"),
        ("SELECT day, rand() AS r FROM sales", "rand()"),
        ("SELECT day, current_date() AS d FROM sales", "current_date()"),
        ("SELECT noisy(price) AS n FROM sales", "noisy()"),
        ("SELECT 1 >>> 2 AS x, kind FROM sales", "this query"),
    ],
)
def test_anything_else_is_kept_by_recompute_with_the_reason(sales: Warehouse, query: str, construct: str) -> None:
    sales.sql("CREATE OR REPLACE FUNCTION noisy(x DECIMAL(10,2)) RETURNS DOUBLE RETURN x + rand()")
    created = sales.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert not created.incremental and construct in created.reason
    run(sales, "INSERT INTO sales VALUES (DATE'2024-01-01', 5, 'a')", "DELETE FROM sales WHERE price = 1")
    record = next(iter(sales.refresh("v")))
    assert record.strategy == "recompute" and construct in record.reason
    if "rand" not in query and "noisy" not in query:
        assert sales.audit("v").equal


def test_dependents_are_protected(sales: Warehouse) -> None:
    run(
        sales,
        "CREATE MATERIALIZED VIEW a AS SELECT day, sum(price) AS total FROM sales GROUP BY day",
        "CREATE MATERIALIZED VIEW b AS SELECT max(total) AS best FROM a",
        "CREATE MATERIALIZED VIEW c AS SELECT best + 1 AS more FROM b",
    )
    for refused in (
        "DROP MATERIALIZED VIEW a",
        "CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT day, 1 AS total FROM sales",
    ):
        with pytest.raises(DependentsError, match=r"\.b, .*\.c read it"):
            sales.sql(refused)
    sales.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW a CASCADE AS SELECT day, sum(price) * 2 AS total FROM sales GROUP BY day"
    )
    assert (
        rows(sales, "SELECT * FROM c") == rows(sales, "SELECT CAST(25 AS DECIMAL(22,2)) AS more")
        or sales.audit("a", "b", "c").equal
    )
    run(sales, "INSERT INTO sales VALUES (DATE'2024-01-01', 100, 'a')")
    sales.refresh("c")
    assert_right(sales, "a", "b", "c")
    assert [r.view.split(".")[-1] for r in sales.refresh("c")] == ["a", "b", "c"]
    sales.sql("DROP MATERIALIZED VIEW a CASCADE")
    assert not [n for n in sales.registry.views() if n.split(".")[0] == sales.spark.catalog.currentDatabase()]


def test_bad_input_is_refused_and_nothing_is_left(sales: Warehouse, tmp_path) -> None:
    sales.sql("CREATE MATERIALIZED VIEW v AS SELECT day FROM sales")
    cases: list[tuple[str, type[Exception], str]] = [
        ("CREATE MATERIALIZED VIEW w AS SELEC day FROM sales", SqlError, "Syntax error"),
        ("CREATE MATERIALIZED VIEW w AS SELECT nothing FROM sales", SqlError, "nothing"),
        ("CREATE MATERIALIZED VIEW w AS SELECT * FROM nowhere", SqlError, "nowhere"),
        ("CREATE MATERIALIZED VIEW w AS SELECT tag:a.b AS x FROM (SELECT 'a' AS tag)", SqlError, "of a VARIANT only"),
        ("CREATE MATERIALIZED VIEW w AS", SqlError, "query must follow"),
        ("CREATE MATERIALIZED VIEW w REFRESH POLICY SOMETIMES AS SELECT 1 AS x", SqlError, "policies are"),
        ("CREATE MATERIALIZED VIEW w (a, b) AS SELECT day FROM sales", SqlError, "names 2 columns"),
        ("CREATE MATERIALIZED VIEW w AS SELECT day, day FROM sales", SqlError, "two columns named day"),
        ("CREATE MATERIALIZED VIEW w AS SELECT NULL AS x FROM sales", SqlError, "without a type"),
        ("CREATE MATERIALIZED VIEW w CLUSTER BY (q) AS SELECT day FROM sales", SqlError, "does not have: q"),
        ("CREATE MATERIALIZED VIEW w AS SELECT day AS __vk_day FROM sales", SqlError, "Viewkeeper's own"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 AS x", NameTakenError, "already"),
        ("CREATE MATERIALIZED VIEW sales AS SELECT 1 AS x", NameTakenError, "already"),
        ("REFRESH MATERIALIZED VIEW w", UnknownViewError, "no materialized view"),
        ("DROP MATERIALIZED VIEW w", UnknownViewError, "no materialized view"),
        ("SELECT * FROM nowhere", SqlError, "nowhere"),
    ]
    for statement, kind, message in cases:
        with pytest.raises(kind, match=message):
            sales.sql(statement)
    assert not sales.spark.catalog.tableExists("w")
    assert "no view" in str(sales.sql("DROP MATERIALIZED VIEW IF EXISTS w"))
    assert "already" in str(sales.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 2 AS y"))
    assert_right(sales, "v")


def test_other_sources(sales: Warehouse) -> None:
    """A Parquet table, a table dropped under a view."""
    run(sales, "CREATE TABLE flat USING PARQUET AS SELECT 1 AS x")
    created = sales.sql("CREATE MATERIALIZED VIEW over_flat AS SELECT x FROM flat")
    assert not created.incremental and "flat" in created.reason
    run(sales, "INSERT INTO flat VALUES (2)")
    assert {r.strategy for r in sales.refresh("over_flat")} == {"recompute"}
    assert sales.spark.table("over_flat").count() == 2
    run(sales, "CREATE TABLE gone (x INT) USING DELTA", "CREATE MATERIALIZED VIEW on_gone AS SELECT x FROM gone")
    run(sales, "CREATE MATERIALIZED VIEW on_on AS SELECT x FROM on_gone", "DROP TABLE gone")
    with pytest.raises(SourceError, match="gone"):
        sales.refresh("on_on", "over_flat")
    assert sales.spark.table("on_gone").count() == 0
    assert any("broken" in v.state for v in sales.status() if v.view.endswith("on_gone"))
    with warnings.catch_warnings():
        run(sales, "DROP MATERIALIZED VIEW on_gone CASCADE")


def test_a_replaced_view_is_kept_from_what_was_there_where_that_is_exact(sales: Warehouse) -> None:
    """Sources have changed before each CREATE OR REPLACE, and change again after it."""
    rows_of = "CREATE OR REPLACE MATERIALIZED VIEW rows_of REFRESH POLICY INCREMENTAL AS SELECT"
    daily = "CREATE OR REPLACE MATERIALIZED VIEW daily REFRESH POLICY INCREMENTAL AS SELECT"
    changes = (
        "INSERT INTO sales VALUES (DATE'2024-01-02', 5, 'a'), (DATE'2024-01-02', 5, 'a'), (NULL, NULL, NULL)",
        "UPDATE sales SET kind = 'b', price = price + 1 WHERE day = DATE'2024-01-01' AND kind = 'a'",
        "DELETE FROM sales WHERE kind = 'b' AND price > 6",
    )
    run(
        sales,
        f"{rows_of} day, price, kind FROM sales WHERE price > 0",
        f"{daily} day, sum(price) AS n FROM sales GROUP BY day",
    )
    for statement, content, install in (
        (
            f"{rows_of} day, kind FROM sales WHERE price > 0 AND kind = 'a'",
            "kept from what was there: filtered",
            "create",
        ),
        (
            f"{rows_of} day, upper(kind) AS k FROM sales WHERE kind = 'a' AND price > 0",
            "kept from what was there: with other columns",
            "create",
        ),
        (
            f"{rows_of} day, price, kind FROM sales WHERE kind = 'a' AND price > 0",
            "rebuilt: price: column price is not kept",
            "create",
        ),
        (
            f"{daily} day AS d, avg(price) AS mean FROM sales GROUP BY day",
            "kept from what was there: with other columns",
            "create",
        ),
        (
            f"{daily} day AS d, avg(price) AS mean FROM sales GROUP BY day HAVING avg(price) > 1",
            "kept from what was there: unchanged",
            "",
        ),
        (
            f"{daily} day, sum(price) AS n, max(price) AS m FROM sales GROUP BY day",
            "rebuilt: max(price): nothing that is kept tells it",
            "create",
        ),
    ):
        name = statement.split()[5]
        before = next(iter(sales.history(name)))
        run(sales, *changes)
        replaced = sales.sql(statement)
        assert replaced.content.startswith(content), replaced.content
        assert f"Its rows were {replaced.content}." in str(replaced)
        entry = next(e for e in sales.history(name) if e.reason.startswith("replaced"))
        assert entry.reason.startswith(f"replaced, {content}") and entry.install == install
        assert (entry.covers == before.covers) is content.startswith("kept")
        assert_right(sales, name)
        run(sales, changes[0])
        assert (
            sales.refresh(name)[sales.registry.get((sales.spark.catalog.currentDatabase(), name)).name].strategy
            == "incremental"
        )
        assert_right(sales, name)


def test_a_changed_policy_or_comment_writes_no_data(sales: Warehouse) -> None:
    query = "SELECT day, sum(price) AS n FROM sales GROUP BY day"
    sales.sql(f"CREATE MATERIALIZED VIEW daily AS {query}")
    view = sales.registry.get((sales.spark.catalog.currentDatabase(), "daily"))
    files = sales.registry.log(view).snapshot().files
    sales.sql(f"CREATE OR REPLACE MATERIALIZED VIEW daily COMMENT 'n' REFRESH POLICY FULL AS {query}")
    replaced = sales.registry.get((sales.spark.catalog.currentDatabase(), "daily"))
    assert replaced.policy == "FULL" and replaced.comment == "n" and replaced.id == view.id
    assert sales.registry.log(view).version() == 1 and sales.registry.log(view).snapshot().files == files
    assert [e.reason for e in sales.history("daily")] == [
        "replaced, kept from what was there: unchanged",
        "created",
    ]
    sales.sql(f"CREATE OR REPLACE MATERIALIZED VIEW daily CLUSTER BY (day) AS {query}")
    assert sales.spark.sql("DESCRIBE DETAIL __vk_daily").first()["clusteringColumns"] == ["day"]
    assert_right(sales, "daily")


def test_nothing_is_kept_of_a_view_that_cannot_be_trusted(sales: Warehouse) -> None:
    query = "SELECT day, sum(price) AS n FROM sales GROUP BY day"
    sales.sql(f"CREATE MATERIALIZED VIEW daily AS {query}")
    explained = sales.sql(f"EXPLAIN CREATE OR REPLACE MATERIALIZED VIEW daily AS {query}")
    assert "its rows would be kept from what was there: unchanged" in str(explained)
    sales.spark.sql("UPDATE __vk_daily SET n = 0")
    assert "something else wrote into it" in sales.sql(f"CREATE OR REPLACE MATERIALIZED VIEW daily AS {query}").content
    assert_right(sales, "daily")
    sales.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    replaced = sales.sql(f"CREATE OR REPLACE MATERIALIZED VIEW daily AS {query}")
    sales.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert replaced.content == "rebuilt: spark.sql.session.timeZone: it was UTC, now Asia/Tokyo"


def test_a_view_that_is_replaced_while_it_is_refreshed(sales: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change of the old definition is not installed into the new one."""
    create = (
        "CREATE OR REPLACE MATERIALIZED VIEW daily REFRESH POLICY INCREMENTAL AS SELECT day, sum(price) AS n FROM sales"
    )
    run(sales, f"{create} GROUP BY day", "INSERT INTO sales VALUES (DATE'2024-01-02', 5, 'a'), (NULL, 2, 'b')")
    install = Commits.install

    def late(self: Commits, *args: object, **kwargs: object) -> object:
        monkeypatch.setattr(Commits, "install", install)
        sales.sql(f"{create} WHERE day > DATE'2024-01-01' GROUP BY day")
        return self.install(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Commits, "install", late)
    sales.refresh("daily")
    assert_right(sales, "daily")
    assert sales.audit("daily").equal and len(sales.history("daily")) == 2
