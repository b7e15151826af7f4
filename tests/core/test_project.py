"""Projects where they need no Spark: files, order, and what is to be created, replaced and kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hand_made import add_rows, make_table, make_view

from viewkeeper import Settings, Warehouse
from viewkeeper.cli.main import main
from viewkeeper.errors import ProjectError, SqlError
from viewkeeper.project.definitions import read_definitions
from viewkeeper.project.example import write_example
from viewkeeper.project.files import find_project, load_project
from viewkeeper.project.plan import differences, plan_project, plan_report
from viewkeeper.sql.statements import CreateView, parse_statement

pytestmark = pytest.mark.core

DAILY = "CREATE MATERIALIZED VIEW daily AS SELECT day, sum(price) AS total FROM sales GROUP BY day"
GOOD = "CREATE MATERIALIZED VIEW good AS SELECT day, total FROM daily WHERE total > 3"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose warehouse has the table sales."""
    (tmp_path / "viewkeeper.toml").write_text("")
    make_table(tmp_path / "warehouse", "sales")
    return tmp_path


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def planned(root: Path, *names: str) -> dict[str, str]:
    project = load_project(root)
    plan = plan_project(project, Warehouse.local(project.warehouse), names)
    return {i.name: i.action for i in plan.items} | dict.fromkeys(plan.orphans, "orphan")


# The toml


def test_defaults(root: Path) -> None:
    project = load_project(root)
    assert project.warehouse == root / "warehouse" and project.settings == Settings()
    assert find_project(root / "warehouse" / "sales") == project


def test_all_keys(root: Path) -> None:
    write(
        root, {"viewkeeper.toml": 'warehouse = "../w"\nviews = ["v/*.sql"]\nsetup = ["s.sql"]\n[settings]\nretries = 9'}
    )
    project = load_project(root)
    assert project.warehouse.resolve() == (root.parent / "w").resolve()
    assert project.settings.retries == 9 and project.views == ("v/*.sql",) and project.setup == ("s.sql",)


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        ("warehouse = ", "cannot be read"),
        ("warehouse = 3", "name of a folder"),
        ('wearhouse = "x"', "unknown key wearhouse"),
        ('views = "x.sql"', "list of file patterns"),
        ('views = ["/etc/*.sql"]', "not a pattern of files in the project"),
        ("settings = 3", "must be a table"),
        ("[settings]\nspeed = 3", "unknown setting speed"),
        ('[settings]\nretries = "3"', "whole number"),
        ("[settings]\nretries = -1", "whole number"),
    ],
)
def test_a_bad_toml_is_said(root: Path, toml: str, problem: str) -> None:
    write(root, {"viewkeeper.toml": toml})
    with pytest.raises(ProjectError, match=problem):
        load_project(root).view_files()


def test_which_files_count(root: Path) -> None:
    write(root, {"viewkeeper.toml": 'setup = ["setup/*.sql"]'})
    write(root, dict.fromkeys(("a.sql", "deep/er/b.sql", "setup/t.sql", ".hidden/c.sql", "warehouse/d.sql"), DAILY))
    project = load_project(root)
    assert [f.relative_to(root).as_posix() for f in project.view_files()] == ["a.sql", "deep/er/b.sql"]
    assert [f.name for f in project.setup_files()] == ["t.sql"]


# The definitions


def definitions(root: Path) -> list[str]:
    project = load_project(root)
    return [f"{d.name} {d.place}" for d in read_definitions(project, Warehouse.local(project.warehouse).tables)]


def test_views_come_after_those_they_read(root: Path) -> None:
    write(root, {"a.sql": f"-- first\n\n{GOOD};\n\n/* second */\n{DAILY};\n"})
    assert definitions(root) == ["daily a.sql:6", "good a.sql:3"]


def test_the_order_is_found_where_a_query_cannot_be_read(root: Path) -> None:
    write(root, {"a.sql": "CREATE MATERIALIZED VIEW a AS SELECT * FROM explode(array(1)) JOIN daily", "d.sql": DAILY})
    assert definitions(root) == ["daily d.sql:1", "a a.sql:1"]


def test_a_common_table_expression_is_no_view(root: Path) -> None:
    write(root, {"a.sql": "CREATE MATERIALIZED VIEW a AS WITH b AS (SELECT 1 AS x) SELECT * FROM b"})
    write(root, {"b.sql": "CREATE MATERIALIZED VIEW b AS SELECT * FROM a"})
    assert [d.split()[0] for d in definitions(root)] == ["a", "b"]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            {
                "a.sql": "CREATE MATERIALIZED VIEW a AS SELECT * FROM b",
                "b.sql": "\nCREATE MATERIALIZED VIEW b AS TABLE a",
            },
            r"in a circle: (a \(a.sql:1\) → b \(b.sql:2\) → a|b \(b.sql:2\) → a \(a.sql:1\) → b)",
        ),
        ({"a.sql": DAILY, "b.sql": f"\n{DAILY}"}, "b.sql:2: view daily is defined twice, first in a.sql:1"),
        ({"a.sql": "SELECT 1"}, "a.sql:1: not a CREATE MATERIALIZED VIEW"),
        ({"a.sql": "SELECT 'open"}, "a.sql: the text cannot be read"),
        ({"a.sql": "CREATE MATERIALIZED VIEW a AS SELECT * FROM nope"}, "a.sql:1: view a reads nope, which is neither"),
    ],
)
def test_what_does_not_fit_together(root: Path, files: dict[str, str], problem: str) -> None:
    write(root, files)
    with pytest.raises(ProjectError, match=problem):
        planned(root)


def test_a_syntax_error_has_its_place_in_the_file(root: Path) -> None:
    write(root, {"a.sql": f"{DAILY};\n-- next\nCREATE MATERIALIZED VIEW x\n  COLOUR AS SELECT 1"})
    with pytest.raises(SqlError, match=r"a.sql:4:3: expected COMMENT"):
        planned(root)


def test_files_read_by_path_are_no_tables(root: Path) -> None:
    write(root, {"a.sql": "CREATE MATERIALIZED VIEW a AS SELECT * FROM parquet.`/data/x`"})
    assert planned(root) == {"a": "create"}


# The plan


def test_create_replace_keep_and_orphans(root: Path) -> None:
    write(root, {"a.sql": f"{DAILY}; {GOOD}"})
    assert planned(root) == {"daily": "create", "good": "create"}
    make_view(root / "warehouse", DAILY)
    assert planned(root) == {"daily": "keep", "good": "create"}
    make_view(root / "warehouse", GOOD, reads="daily")
    make_view(root / "warehouse", "CREATE MATERIALIZED VIEW old AS SELECT id FROM sales")
    assert planned(root) == {"daily": "keep", "good": "keep", "old": "orphan"}
    write(root, {"a.sql": f"{DAILY.replace('sum', 'max')}; {GOOD}"})
    assert planned(root) == {"daily": "replace", "good": "rebuild", "old": "orphan"}
    assert planned(root, "daily") == {"daily": "replace"}, "only what is named, and no orphans"


def test_named_views_bring_what_they_read(root: Path) -> None:
    write(root, {"a.sql": f"{DAILY}; {GOOD}; CREATE MATERIALIZED VIEW other AS SELECT id FROM sales"})
    assert planned(root, "GOOD") == {"daily": "create", "good": "create"}
    with pytest.raises(ProjectError, match="view nope is not in the project"):
        planned(root, "nope")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DAILY, []),
        (DAILY.replace("SELECT day,", "SELECT day, -- the day\n   "), []),
        (DAILY.replace("CREATE", "CREATE OR REPLACE"), []),
        (DAILY.replace("sum(", "min("), ["query"]),
        (DAILY.replace("total", "Total"), ["query"]),
        (DAILY.replace("AS SELECT", "REFRESH POLICY FULL AS SELECT"), ["policy"]),
        (DAILY.replace("daily AS", "daily (day, total) AS"), []),
        (DAILY.replace("daily AS", "daily (day, sums) AS"), ["columns"]),
        (DAILY.replace("daily AS", "daily (day COMMENT 'x', total) AS"), ["column comments"]),
        (DAILY.replace("AS SELECT", "COMMENT 'x' CLUSTER BY (day) AS SELECT"), ["comment", "CLUSTER BY"]),
        (DAILY.replace("AS SELECT", "TBLPROPERTIES (a = 'b') AS SELECT"), ["properties"]),
    ],
)
def test_what_counts_as_changed(root: Path, text: str, expected: list[str]) -> None:
    view = make_view(root / "warehouse", DAILY)
    statement = parse_statement(text)
    assert isinstance(statement, CreateView) and differences(statement, view) == expected


def test_columns_taken_back_count_as_changed(root: Path) -> None:
    view = make_view(root / "warehouse", DAILY.replace("daily AS", "daily (day, sums) AS"))
    statement = parse_statement(DAILY)
    assert isinstance(statement, CreateView) and differences(statement, view) == ["columns"]


def test_the_plan_as_a_report(root: Path) -> None:
    write(root, {"a.sql": f"{DAILY}; {GOOD}"})
    make_view(root / "warehouse", DAILY)
    make_view(root / "warehouse", "CREATE MATERIALIZED VIEW old AS SELECT id FROM sales")
    add_rows(root / "warehouse", "sales", version=1)
    project = load_project(root)
    wh = Warehouse.local(project.warehouse)
    steps = {s.view: s for s in plan_report(plan_project(project, wh), wh)}
    assert list(steps) == ["daily", "good", "old"]
    assert steps["daily"].pending and steps["good"].strategy == "create" and steps["good"].reason == "new in a.sql:1"
    assert steps["old"].strategy == "none" and "not in the project" in steps["old"].reason


# The command line


@pytest.fixture
def in_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(root)
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)
    return root


def test_the_command_line_finds_the_project(
    in_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(in_root, {"deep/a.sql": DAILY})
    monkeypatch.chdir(in_root / "deep")
    assert main(["plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["strategy"] == "create"
    make_table(in_root / "other", "sales")
    assert main(["plan", "--json", "-w", str(in_root / "other")]) == 0
    assert json.loads(capsys.readouterr().out) == [], "another warehouse is not the project's"
    assert main(["plan", "--json", "-w", str(in_root / "other"), "-p", str(in_root)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["strategy"] == "create"
    assert main(["plan", "-p", str(in_root / "other")]) == 1
    assert "viewkeeper init" in capsys.readouterr().err


def test_a_project_up_to_date_needs_no_spark(in_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(in_root, {"a.sql": DAILY})
    make_view(in_root / "warehouse", DAILY)
    assert main(["refresh"]) == 0
    assert capsys.readouterr().out == "Nothing to do: the view is up to date.\n"
    make_view(in_root / "warehouse", "CREATE MATERIALIZED VIEW old AS SELECT id FROM sales")
    assert main(["refresh"]) == 0
    assert "not in the project" in capsys.readouterr().out


def test_init_writes_an_example_and_nothing_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "new", "--no-setup"]) == 0
    root = tmp_path / "new"
    assert "viewkeeper.toml" in capsys.readouterr().out and (root / "warehouse").is_dir()
    project = load_project(root)
    names = [d.name for d in read_definitions(project, Warehouse.local(project.warehouse).tables)]
    assert names == ["daily", "best_days"] and project.setup_files()
    (root / "viewkeeper.toml").write_text("# mine")
    assert main(["init", "new", "--no-setup", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == []
    assert (root / "viewkeeper.toml").read_text() == "# mine"


def test_init_beside_sql_files_writes_only_the_toml(tmp_path: Path) -> None:
    write(tmp_path, {"mine.sql": DAILY})
    assert write_example(tmp_path, "elsewhere") == [tmp_path / "viewkeeper.toml"]
    project = load_project(tmp_path)
    assert project.warehouse == tmp_path / "elsewhere" and project.view_files() == [tmp_path / "mine.sql"]
