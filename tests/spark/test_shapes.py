"""SQL shapes beyond the plain ones, each with inserts, updates and deletes in every source at once, against recompute."""

from __future__ import annotations

import os
import re

import pytest
from checks import FEED, refresh_and_check, run
from shapes import APPENDED, FEW, JOINS, LOWERED, MORE, OTHERS, ROUNDS, SETUP, TYPED, TYPED_ROUNDS, TYPES

from viewkeeper import Warehouse
from viewkeeper.errors import NotIncrementalError

pytestmark = pytest.mark.spark


def follow(wh: Warehouse, names: list[str], rounds: list[list[str]]) -> None:
    """Every view is right after each round, never by recompute, and none has nothing to do in all of them."""
    followed = set()
    for statements in rounds:
        run(wh, *statements)
        found = refresh_and_check(wh, names)
        assert set(found.values()) <= {"incremental", "none"}, found
        followed |= {name for name, strategy in found.items() if strategy == "incremental"}
    assert followed == set(names), set(names) - followed


@pytest.mark.skipif("VIEWKEEPER_FUZZ" not in os.environ, reason="part of `make fuzz`")
@pytest.mark.parametrize(
    ("views", "setup", "rounds"),
    [(MORE, SETUP, [*ROUNDS, APPENDED]), (TYPES, TYPED, TYPED_ROUNDS)],
    ids=["more", "types"],
)
def test_every_function_and_type(
    wh: Warehouse, views: dict[str, str], setup: list[str], rounds: list[list[str]]
) -> None:
    run(wh, *setup)
    for name, query in views.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {query}")
    follow(wh, list(views), rounds)


@pytest.mark.skipif("VIEWKEEPER_FUZZ" not in os.environ, reason="part of `make fuzz`")
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id FROM o\n LIMIT 3", "LIMIT without ORDER BY at line 2, column 8"),
        ("SELECT id FROM o\n TABLESAMPLE (50 PERCENT)", "TABLESAMPLE at line 1, column 16"),
        ("SELECT id,\n rand() AS r FROM o", "rand() at line 2, column 2"),
        ("WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 5) SELECT x FROM r JOIN o ON o.k = x", "WITH RECURSIVE at line 1"),
        ("SELECT id,\n stddev(price) OVER (PARTITION BY k ORDER BY id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM o", "stddev() OVER (… RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) at line 2, column 2"),
        ("SELECT id FROM o\n WHERE uuid() <> tag", "uuid() at line 2, column 8"),
        ("SELECT current_timestamp() - INTERVAL 1 DAY > day AS old FROM o", "current_timestamp() at line 1, column 8"),
        ("SELECT id,\n lead(price) OVER (ORDER BY id) AS p FROM o", "window without PARTITION BY at line 2, column 2"),
        ("SELECT count(*) AS n FROM o\n GROUP BY tag COLLATE UTF8_LCASE", "at line 2, column 11: values that are equal"),
    ],
)  # fmt: skip
def test_what_is_recomputed_says_what_and_where(wh: Warehouse, query: str, reason: str) -> None:
    run(wh, SETUP[0], SETUP[3])
    created = wh.sql("CREATE MATERIALIZED VIEW v AS\n" + query)
    assert not created.incremental
    assert reason in re.sub(r"line (\d+)", lambda m: f"line {int(m[1]) - 1}", created.reason), created.reason
    run(
        wh,
        "INSERT INTO o VALUES (30, 9, 4.5, DATE'2024-01-04', 'a-1')",
        "UPDATE o SET k = 5 WHERE id = 5",
        "DELETE FROM o WHERE id = 7",
    )
    (record,) = wh.refresh("v")
    assert record.strategy == "recompute" and created.reason in record.reason, str(record)
    if not re.search("LIMIT|SAMPLE|rand|uuid", query):
        assert wh.audit("v").equal


@pytest.mark.parametrize("views", [JOINS, OTHERS, LOWERED], ids=["joins", "others", "lowered"])
def test_every_shape_follows_changes_of_all_tables(wh: Warehouse, views: dict[str, str]) -> None:
    run(wh, *SETUP)
    if "VIEWKEEPER_FUZZ" not in os.environ:
        views = {name: query for name, query in views.items() if name in FEW}
    for name, query in views.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {query}")
    follow(wh, list(views), ROUNDS)


def test_a_reserve_makes_up_for_deleted_rows(wh: Warehouse) -> None:
    run(
        wh,
        f"CREATE TABLE scores (id INT, x INT) USING DELTA {FEED}",
        "INSERT INTO scores SELECT id, id DIV 2 FROM range(400)",
        "CREATE MATERIALIZED VIEW first REFRESH POLICY INCREMENTAL STRICT AS SELECT id, x FROM scores ORDER BY x, id LIMIT 3 OFFSET 2",
    )
    for statement in (
        "DELETE FROM scores WHERE id < 60",
        "UPDATE scores SET x = 300 - x WHERE id % 3 = 0",
        "INSERT INTO scores VALUES (500, 31), (500, 31), (501, 999), (502, NULL)",
    ):
        run(wh, statement)
        assert refresh_and_check(wh, ["first"]) == {"first": "incremental"}, statement
    run(wh, "DELETE FROM scores WHERE x < 150")
    with pytest.raises(NotIncrementalError, match="of the first rows, 5 are wanted and only 1 are left"):
        wh.refresh("first")
    wh.sql("REFRESH MATERIALIZED VIEW first FULL")
    run(wh, "DELETE FROM scores WHERE x IS NULL OR id = 399")
    assert refresh_and_check(wh, ["first"]) == {"first": "incremental"}
