"""The command line where it needs no Spark: answers, errors, exit codes, options."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hand_made import add_rows, make_table, make_view

from viewkeeper import Warehouse
from viewkeeper.cli import doctor, main, output
from viewkeeper.errors import InternalError, ViewkeeperError
from viewkeeper.reports import Audit, AuditReport, RefreshRecord, RefreshReport

pytestmark = pytest.mark.core

DAILY = "CREATE MATERIALIZED VIEW daily AS SELECT day, sum(price) AS total FROM sales GROUP BY day"
GOOD = "CREATE MATERIALIZED VIEW good AS SELECT day, total FROM daily WHERE total > 3"


@dataclass
class Said:
    code: int
    out: str
    err: str

    @property
    def data(self) -> object:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        return json.loads(self.err)


class Caller:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: object) -> Said:
        self.capsys.readouterr()
        code = main.main([str(a) for a in arguments])
        said = self.capsys.readouterr()
        return Said(code, said.out, said.err)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """The command line in an empty folder; no Spark may be started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)
    yield Caller(capsys)
    assert "pyspark" not in sys.modules or not _started(), "a JVM was started"


def _started() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A warehouse with a table and two views, both behind by a commit."""
    root = tmp_path / "warehouse"
    root.mkdir()
    make_table(root, "sales", 5_000_000)
    make_view(root, DAILY)
    make_view(root, GOOD, reads="daily")
    add_rows(root, "sales", version=1)
    return root


# Answers


def test_status(call: Caller, folder: Path) -> None:
    said = call("status")
    assert said.code == 0 and "daily" in said.out and "stale" in said.out and said.err == ""
    views = {v["view"]: v for v in call("status", "--json").data}
    assert views["daily"]["behind"] == {"sales": 1} and views["daily"]["rows"] == 30
    assert views["good"]["state"] == "stale", "it reads a stale view"
    assert views["daily"]["last_seconds"] == call("history", "daily", "--json").data["history"][0]["seconds"] >= 1.5
    assert views["daily"]["last_predicted_seconds"] == 2.0


def test_plan_tells_strategy_reason_and_cost(call: Caller, folder: Path) -> None:
    steps = {s["view"]: s for s in call("plan", "--json").data}
    assert steps["daily"]["strategy"] == "incremental"
    assert steps["daily"]["predicted_seconds"] < steps["daily"]["recompute_seconds"]
    assert "predicted" in steps["daily"]["reason"] and "2 new rows" in steps["daily"]["pending"]["sales"]
    assert [s["view"] for s in call("plan", "good", "--json").data] == ["daily", "good"]
    assert call("refresh", "--dry-run", "--json").data == call("plan", "--json").data


def test_nothing_to_plan(call: Caller, tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    root.mkdir()
    assert "no materialized views" in call("plan").out
    make_table(root, "sales")
    make_view(root, DAILY)
    assert call("plan").out == "A refresh would do nothing: the view is up to date.\n"
    said = call("refresh")
    assert said.code == 0 and said.out == "Nothing to do: the view is up to date.\n"
    assert call("refresh", "--json").data[0]["strategy"] == "none"


def test_history(call: Caller, folder: Path) -> None:
    found = call("history", "daily", "--json").data
    assert found["view"] == "daily" and [e["reason"] for e in found["history"]] == ["created"]
    assert "created" in call("history", "daily").out


def test_explain(call: Caller, folder: Path) -> None:
    whole = call("explain", "daily").out
    assert "aggregate by day" in whole and "table_changes('sales', 1, 1)" in whole
    only = call("explain", "daily", "--sql").out
    assert only.startswith("SELECT") and "Algebra" not in only
    said = call("explain", "daily", "--stage", "nonsense")
    assert said.code == 1 and "there is no stage nonsense" in said.err
    assert "stages: parsed, bound, normalized, changes, plan, sql" in said.err


@pytest.mark.parametrize(
    ("stage", "headings", "words"),
    [
        ("parsed", ["Query as parsed"], ["SELECT\n", "SUM(price) AS total"]),
        ("bound", ["Algebra as read"], ["aggregate by day, sum = sum(price)", "scan sales"]),
        (
            "normalized",
            ["Algebra as maintained", "Kept as", "Kept rows", "Shown to readers"],
            ["one row per day", "__vk_count: count, added up from changes", "scan __vk_daily"],
        ),
        (
            "changes",
            ["Rules (of what is pending now)", "Change (of what is pending now)", "Installed"],
            [
                "total = sum(__vk_arg_1)   [change table]",
                "scan sales   [appended rows]",
                "changes of sales",
                "merged by key",
            ],
        ),
        (
            "plan",
            ["Step", "Computed", "Install", "Cost", "Pending"],
            ["incremental: predicted", "by this process", "rewrite: ", "recompute: ", "2 new"],
        ),
        (
            "sql",
            ["SQL of the change", "SQL of the rows after it", "SQL of the install"],
            ["table_changes('sales', 1, 1)", "FULL OUTER JOIN", "INSERT OVERWRITE __vk_daily"],
        ),
    ],
)
def test_explain_stages(call: Caller, folder: Path, stage: str, headings: list[str], words: list[str]) -> None:
    found = call("explain", "daily", "--stage", stage, "--json").data
    assert list(found["sections"]) == headings
    shown = call("explain", "daily", "--stage", stage).out
    assert all(word in shown for word in words), shown


def test_explain_stages_of_a_view_over_a_view(call: Caller, folder: Path) -> None:
    """The view below would be refreshed first, so a change of about that size is expected."""
    assert "aggregate by day" not in call("explain", "good", "--stage", "bound").out
    assert "scan __vk_daily" in call("explain", "good", "--stage", "bound").out
    step = call("explain", "good", "--stage", "plan", "--json").data["sections"]["Step"]
    assert step.split(":")[0] == {s["view"]: s for s in call("plan", "--json").data}["good"]["strategy"]
    found = call("explain", "good", "--stage", "sql", "--json").data["sections"]
    assert list(found) == ["First", "SQL of the change", "SQL of the install"]
    assert found["First"].startswith("refresh of daily")
    assert found["SQL of the install"].startswith("INSERT OVERWRITE __vk_good")


def test_explain_stages_of_what_is_up_to_date(call: Caller, tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    root.mkdir()
    make_table(root, "sales")
    make_view(root, DAILY)
    found = call("explain", "daily", "--stage", "sql", "--json").data["sections"]
    assert found["Now"] == "nothing would run: up to date"
    assert "table_changes" in found["SQL of the change (if every source changed)"]
    assert "up to date" in call("explain", "daily", "--stage", "plan").out
    assert "if every source changed" in call("explain", "daily", "--stage", "changes").out


def test_doctor(call: Caller, folder: Path) -> None:
    found = call("doctor", "--json").data
    states = {c["what"]: c["state"] for c in found["checks"]}
    assert states["Python"] == states["pyspark"] == states["warehouse"] == states["view daily"] == "ok"
    assert "2 views" in call("doctor").out


def test_doctor_finds_what_is_wrong(call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "java_version", lambda: 11)
    monkeypatch.setattr(doctor, "cached_jars", list)
    monkeypatch.setattr(doctor, "version", lambda name: "4.1.0" if name == "pyspark" else "0")
    (folder / "sales" / "_delta_log").rename(folder / "gone")
    said = call("doctor", "--json")
    checks = {c["what"]: c for c in said.data["checks"]}
    assert said.code == 1 and said.data["ok"] is False
    assert checks["Java"]["state"] == "fail" and "apt-get" in checks["Java"]["to_do"]
    assert checks["pyspark"]["state"] == "fail" and "==4.2.*" in checks["pyspark"]["to_do"]
    assert checks["Delta's jars"]["state"] == "warn"
    assert checks["view daily"]["found"] == "broken: sales is gone"


def test_doctor_without_a_warehouse(call: Caller, tmp_path: Path) -> None:
    checks = {c["what"]: c for c in call("doctor", "--json").data["checks"]}
    assert checks["warehouse"]["state"] == "warn" and "viewkeeper init" in checks["warehouse"]["to_do"]
    (tmp_path / "file").write_text("")
    assert call("doctor", "-w", "file").code == 1


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [
        ("4.2.7", "==4.2.*", True),
        ("4.20.0", "==4.2.*", False),
        ("4.4.0", "==4.4.0", True),
        ("4.4.1", "==4.4.0", False),
        ("1.6.6", "<2,>=1.6", True),
        ("2.0", "<2,>=1.6", False),
        ("1.5.9", "<2,>=1.6", False),
    ],
)
def test_requirements(found: str, wanted: str, fits: bool) -> None:
    assert doctor.meets(found, wanted) is fits


def test_audit_with_differences_exits_3(call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = Audit("daily", False, 30, 1, 0, 0.1, {"sales": 0}, ("missing Row(day=1)",))
    monkeypatch.setattr(Warehouse, "audit", lambda self, *names, progress: AuditReport((audit,)))
    said = call("audit")
    assert said.code == 3 and "missing Row(day=1)" in said.out
    assert call("audit", "--json").code == 3


def test_a_failed_refresh_shows_the_others_first(call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refresh(self: Warehouse, *names: str, **_: object) -> RefreshReport:
        error = ViewkeeperError("daily was not refreshed", hint="try FULL")
        error.report = RefreshReport((RefreshRecord("good", "recompute", "r", 1, 0, 0.1, {}),))  # type: ignore[attr-defined]
        raise error

    monkeypatch.setattr(Warehouse, "refresh", refresh)
    said = call("refresh", "--json")
    assert said.code == 1 and said.data[0]["view"] == "good"
    assert said.error == {"error": "daily was not refreshed", "hint": "try FULL", "kind": "ViewkeeperError"}
    assert "recompute" in call("refresh").out


# Errors


def test_an_error_is_a_line_and_a_hint(call: Caller, folder: Path) -> None:
    said = call("history", "nope")
    assert said.code == 1 and said.out == ""
    assert said.err == "error: there is no materialized view nope\nhint: known views: daily, good\n"
    said = call("history", "nope", "--json")
    assert said.code == 1 and said.out == "" and said.error["kind"] == "UnknownViewError"
    assert "Traceback" in call("history", "nope", "--debug").err


def test_no_warehouse(call: Caller, tmp_path: Path) -> None:
    for command in ("status", "plan", "refresh", "audit"):
        said = call(command)
        assert said.code == 1 and "there is no warehouse at" in said.err and "viewkeeper init" in said.err
    assert not (tmp_path / "warehouse").exists()
    (tmp_path / "warehouse").write_text("")
    assert "is a file, not a folder" in call("status").err


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("history",),
        ("status", "--nonsense"),
        ("sql", "SELECT 1", "-f", "x.sql"),
        ("sql", "--limit", "0"),
    ],
)
def test_misuse_exits_2(call: Caller, arguments: tuple[str, ...]) -> None:
    said = call(*arguments)
    assert said.code == 2 and said.err.startswith("error: ") and "--help" in said.err and said.out == ""
    assert call(*arguments, "--json").error["kind"] == "UsageError"


def test_bugs_exit_70(call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Warehouse) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Warehouse, "status", broken)
    said = call("status")
    assert said.code == 70 and said.out == "" and len(said.err.splitlines()) == 2
    assert "ZeroDivisionError: by zero" in said.err and "please report" in said.err
    assert 'raise ZeroDivisionError("by zero")' in call("status", "--debug").err

    def known(self: Warehouse) -> None:
        raise InternalError("we are wrong")

    monkeypatch.setattr(Warehouse, "status", known)
    assert call("status").code == 70


@pytest.mark.parametrize("text", ["", "  ;; ", "-- only a comment"])
def test_no_statement(call: Caller, text: str) -> None:
    assert call("sql", text).err == "error: there is no statement\n"


def test_create_takes_only_create(call: Caller, folder: Path) -> None:
    said = call("create", "DROP TABLE sales")
    assert said.code == 1 and "viewkeeper sql" in said.err
    said = call("create", "CREATE MATERIALIZED VIEW v COLOUR 'red' AS SELECT 1")
    assert said.code == 1 and "line 1, column 28" in said.err
    assert "cannot be read" in call("create", "-f", "missing.sql").err


def test_interrupted(call: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(self: Warehouse) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Warehouse, "status", stopped)
    assert call("status").code == 130


# Options


def test_options_before_and_after_the_command(call: Caller, folder: Path, tmp_path: Path) -> None:
    elsewhere = folder.rename(tmp_path / "elsewhere")
    after = call("status", "--warehouse", elsewhere, "--json")
    assert after.code == 0 and call("--warehouse", elsewhere, "--json", "status").out == after.out
    assert call("-w", elsewhere, "status", "--json").out == after.out


def test_the_environment_names_a_warehouse(
    call: Caller, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = folder.rename(tmp_path / "elsewhere")
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", str(elsewhere))
    assert call("status").code == 0
    assert call("status", "-w", tmp_path / "nowhere").code == 1


def test_help_and_version(call: Caller) -> None:
    assert call("--version").out.startswith("viewkeeper ")
    said = call("refresh", "--help")
    assert said.code == 0 and "--warehouse" in said.out and "--full" in said.out
    assert "doctor" in call().out


def test_rows_as_data() -> None:
    from datetime import UTC, date, datetime
    from decimal import Decimal

    values = (1, "x", None, Decimal("1.50"), date(2025, 1, 2), datetime(2025, 1, 2, tzinfo=UTC), float("nan"), b"\x01")
    rows = output.Rows(["a", "b", "c", "d", "e", "f", "g", "a"], [values], more=True)
    (record,) = rows.to_data()
    assert record == {
        "a": 1, "b": "x", "c": None, "d": "1.50", "e": "2025-01-02", "f": "2025-01-02T00:00:00+00:00", "g": "nan",
        "a_8": "01",
    }  # fmt: skip
    json.dumps(record, allow_nan=False)
    assert "NULL" in str(rows) and "1 row shown; there are more" in str(rows)


def test_tables_show_brackets_as_they_are(call: Caller) -> None:
    assert "[bold]x[/bold]" in str(output.Rows(["a"], [("[bold]x[/bold]",)], more=False))


# Nothing that answers from the logs may import what starts Spark


def test_pyspark_is_not_even_imported(folder: Path) -> None:
    code = """if True:
        import sys
        from viewkeeper.cli.main import main
        for command in ("status", "plan", "history daily", "explain daily", "doctor"):
            assert main([*command.split(), "-w", sys.argv[1]]) == 0, command
            assert "pyspark" not in sys.modules, command
        """
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
