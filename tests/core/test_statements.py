"""Viewkeeper's own statements, and which are Spark's."""

from __future__ import annotations

import pytest

from viewkeeper.errors import Position, SqlError
from viewkeeper.sql.statements import (
    CreateView,
    DescribeView,
    DropView,
    ExplainCreate,
    ExplainRefresh,
    RefreshView,
    ShowViews,
    SparkStatement,
    parse_statement,
    split_statements,
)

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("refresh materialized view a.b full;", RefreshView(("a", "b"), True)),
        ("DROP MATERIALIZED VIEW IF EXISTS `odd name` CASCADE", DropView(("odd name",), True, True)),
        ("SHOW MATERIALIZED VIEWS", ShowViews()),
        ("/* hi */ show materialized views ;", ShowViews()),
        ("DESC MATERIALIZED VIEW v", DescribeView(("v",))),
        ("EXPLAIN REFRESH v", ExplainRefresh(("v",))),
        ("-- why\nEXPLAIN REFRESH MATERIALIZED VIEW c.s.v", ExplainRefresh(("c", "s", "v"))),
        ("SHOW TABLES", SparkStatement("SHOW TABLES")),
        ("EXPLAIN SELECT 1", SparkStatement("EXPLAIN SELECT 1")),
        ("CREATE VIEW v AS SELECT 1", SparkStatement("CREATE VIEW v AS SELECT 1")),
        ("SELECT 'CREATE MATERIALIZED VIEW'", SparkStatement("SELECT 'CREATE MATERIALIZED VIEW'")),
    ],
)
def test_statements(text: str, statement: object) -> None:
    assert parse_statement(text) == statement


def test_create_with_every_clause_in_any_order() -> None:
    text = """CREATE OR REPLACE MATERIALIZED VIEW db.v (a COMMENT 'first', `b c`)
    REFRESH POLICY INCREMENTAL STRICT CASCADE COMMENT 'it''s' CLUSTER BY (a) TBLPROPERTIES ('x' = '1', delta.y = 'z')
    AS WITH q AS (SELECT 1 AS a, ';' AS b) SELECT * FROM q ; """
    made = parse_statement(text)
    assert made == CreateView(
        name=("db", "v"),
        query="WITH q AS (SELECT 1 AS a, ';' AS b) SELECT * FROM q",
        columns=("a", "b c"),
        column_comments={"a": "first"},
        comment="it's",
        cluster_by=("a",),
        properties={"x": "1", "delta.y": "z"},
        policy="INCREMENTAL STRICT",
        or_replace=True,
        cascade=True,
        query_start=Position(3, 8),
    )
    explained = parse_statement("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1 AS x")
    assert isinstance(explained, ExplainCreate) and explained.create.query == "SELECT 1 AS x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE MATERIALIZED VIEW v", "found|expected"),
        ("CREATE MATERIALIZED VIEW v AS", "query must follow AS"),
        ("CREATE MATERIALIZED VIEW v COMMENT 'a' COMMENT 'b' AS SELECT 1", "COMMENT is given twice"),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY WEEKLY AS SELECT 1", "the policies are"),
        ("CREATE MATERIALIZED VIEW v COMMENT x AS SELECT 1", "string in quotes"),
        ("CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", "exclude each other"),
        ("CREATE MATERIALIZED VIEW a.b.c.d AS SELECT 1", "at most three parts"),
        ("CREATE MATERIALIZED VIEW 'v' AS SELECT 1", "expected a name"),
        ("REFRESH MATERIALIZED VIEW v FAST", "unexpected 'FAST'"),
        ("DROP MATERIALIZED VIEW", "ends too early"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as error:
        parse_statement(text)
    assert error.value.position is not None


def test_scripts_are_parted_at_semicolons() -> None:
    script = "-- a script;\nSELECT ';' AS x;\n\nCREATE MATERIALIZED VIEW v AS SELECT 1 AS y;;\n-- end"
    first, second = split_statements(script)
    assert first.endswith("SELECT ';' AS x") and second == "CREATE MATERIALIZED VIEW v AS SELECT 1 AS y"
