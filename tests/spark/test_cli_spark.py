"""The command line and projects on real tables, in this process's Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.cli.main import main
from viewkeeper.store.tables import FolderTables

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE cli_sales (id BIGINT, day DATE, price DECIMAL(10,2)) USING DELTA
TBLPROPERTIES (delta.enableChangeDataFeed = true);
INSERT INTO cli_sales VALUES (1, DATE'2024-01-01', 5), (2, DATE'2024-01-01', 6), (3, DATE'2024-01-02', 7)
"""
DAILY = """-- by day
CREATE MATERIALIZED VIEW cli_daily REFRESH POLICY INCREMENTAL AS
SELECT day, sum(price) AS total, count(*) AS n FROM cli_sales GROUP BY day"""
GOOD = "CREATE MATERIALIZED VIEW cli_good REFRESH POLICY INCREMENTAL AS SELECT day, n FROM cli_daily WHERE n > 1"


class Caller:
    """The command line on the shared warehouse."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        self.capsys.readouterr()
        found = main(list(words))
        said = self.capsys.readouterr()
        assert found == code, said.out + said.err
        return said.out if code in (0, 3) else said.err

    def data(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def call(
    shared: Warehouse, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Caller]:
    assert isinstance(shared.tables, FolderTables)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", str(shared.tables.root))
    yield Caller(shared.tables.root, capsys)
    for name in reversed(list(shared.registry.views())):
        shared.drop(name, if_exists=True, cascade=True)
    shared.sql("DROP TABLE IF EXISTS cli_sales")


def test_all_commands(call: Caller) -> None:
    call("sql", TABLES)
    rows = call.data("sql", "SELECT * FROM cli_sales ORDER BY id", "--limit", "1")
    assert rows == [{"id": 1, "day": "2024-01-01", "price": "5.00"}]
    assert "1 row shown; there are more" in call("sql", "SELECT * FROM cli_sales", "--limit", "1")
    assert "error: [DIVIDE_BY_ZERO]" in call("sql", "SELECT 1 / (id - 1) FROM cli_sales", code=1)
    assert "line 1" in call("sql", "SELECT nonsense FROM cli_sales", code=1)
    assert [m["view"] for m in call.data("create", f"{DAILY}; {GOOD}")] == ["cli_daily", "cli_good"]
    call("sql", "INSERT INTO cli_sales VALUES (4, DATE'2024-01-02', 1)")
    assert {s["view"]: s["strategy"] for s in call.data("plan")} == {
        "cli_daily": "incremental",
        "cli_good": "incremental",
    }
    refreshed = {r["view"]: r for r in call.data("refresh", "cli_good")}
    assert [r["rows_inserted"] for r in refreshed.values()] == [1, 1] and refreshed["cli_good"]["covers"]
    assert {v["state"] for v in call.data("status")} == {"fresh"}
    assert call.data("refresh", "cli_daily", "--full")[0]["strategy"] == "recompute"
    assert "yes" in call("audit") and "Nothing to do" in call("refresh", "cli_daily")
    assert [e["strategy"] for e in call.data("history", "cli_daily")["history"]] == [
        "recompute", "incremental", "recompute",
    ]  # fmt: skip
    call("sql", "DELETE FROM __vk_cli_daily WHERE n = 2")
    assert "missing" in call("audit", "cli_daily", code=3)
    assert "REFRESH MATERIALIZED VIEW cli_daily FULL" in call("refresh", code=1)
    assert "cli_good read it" in call("drop", "cli_daily", code=1)
    assert "cli_good, cli_daily" in call("drop", "cli_daily", "--cascade")
    assert "no view" in call("drop", "cli_daily", "--if-exists")
    assert "there is a table or view cli_sales already" in call("create", GOOD.replace("cli_good", "cli_sales"), code=1)


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)


def actions(call: Caller, *words: str) -> dict[str, str]:
    return {s["view"]: s["strategy"] for s in call.data("plan", *words)}


def test_a_project(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "viewkeeper.toml").write_text(f'warehouse = "{call.root}"\nsetup = ["tables.sql"]')
    write(tmp_path, tables=TABLES.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"), daily=DAILY, good=GOOD)
    assert call.data("init")["statements"] == 2
    assert actions(call) == {"cli_daily": "create", "cli_good": "create"}
    made = call.data("refresh")
    assert [(r["view"], r["rows_inserted"]) for r in made] == [("cli_daily", 2), ("cli_good", 1)]
    assert made[0]["reason"] == "created: new in daily.sql:2"
    assert call("refresh") == "Nothing to do: all 2 views are up to date.\n"

    # One that others read is replaced, and they are built again.
    write(tmp_path, daily=DAILY.replace("count(*)", "count(*) + 1"))
    assert actions(call) == {"cli_daily": "replace", "cli_good": "replace"}
    assert [r["rows_inserted"] for r in call.data("refresh")] == [2, 2]

    # Both change: the old cli_good would no longer fit the new cli_daily.
    write(tmp_path, daily=DAILY.replace("count(*) AS n", "max(id) AS last"), good=GOOD.replace("n", "last"))
    assert [r["install"] for r in call.data("refresh")] == ["create", "create"]
    assert "yes" in call("audit")

    # A broken file is named; what it does not concern goes on.
    call("sql", "INSERT INTO cli_sales VALUES (5, DATE'2024-01-05', 1)")
    write(tmp_path, third="\nCREATE MATERIALIZED VIEW cli_third AS\n  SELECT nonsense FROM cli_sales")
    error = call("refresh", code=1)
    assert "third.sql:3:10: " in error and "nonsense" in error
    assert {v["state"] for v in call.data("status")} == {"fresh"}

    # What is in no file is named and left alone.
    (tmp_path / "third.sql").unlink()
    (tmp_path / "good.sql").unlink()
    assert "cli_good" in call("refresh") and "not in the project" in call("refresh")
    assert {v["view"] for v in call.data("status")} == {"cli_daily", "cli_good"}


def test_the_example_of_init_works(call: Caller, tmp_path: Path, shared: Warehouse) -> None:
    assert main(["init", "-w", str(call.root)]) == 0
    try:
        assert [r["view"] for r in call.data("refresh")] == ["daily", "best_days"]
        counts = "SELECT (SELECT count(*) FROM daily) AS days, (SELECT count(*) FROM best_days) AS best"
        assert call.data("sql", counts) == [{"days": 210, "best": 11}]
        assert "yes" in call("audit")
    finally:
        for name in ("best_days", "daily"):
            shared.drop(name, if_exists=True, cascade=True)
        shared.sql("DROP TABLE IF EXISTS sales")
