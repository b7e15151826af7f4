"""The README's tour runs as it is written, and Spark agrees with its support table."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from doc_blocks.constructs import CONSTRUCTS
from doc_blocks.example_tables import TABLES
from viewkeeper import Warehouse
from viewkeeper.algebra.reasons import Reason
from viewkeeper.runtime.define import define
from viewkeeper.sql.expansion import Expanded
from viewkeeper.sql.statements import CreateView, parse_statement

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)
_FIGURE = re.compile(r"^\d+\.\d+$")  # seconds; prices are in columns of their own, framed by |
_FRAME = re.compile(r"[┏┳┓┃┡╇┩│├┼┤└┴┘━─]+")


def tour() -> list[tuple[str, str]]:
    """The code blocks of the tour, each with the output that the README shows for it."""
    section = (ROOT / "README.md").read_text("utf-8").split("## A five-minute tour")[1].split("\n## ")[0]
    blocks = _BLOCK.findall(section)
    assert [kind for kind, _ in blocks] == ["python", "text"] * (len(blocks) // 2)
    return [(code, shown) for (_, code), (_, shown) in zip(blocks[::2], blocks[1::2], strict=True)]


def words(output: str) -> list[str]:
    """What is printed, but for frames, layout and seconds."""
    return [w for w in _FRAME.sub(" ", output).split() if not _FIGURE.match(w)]


def test_the_tour_runs_and_prints_what_the_readme_shows(tmp_path: Path) -> None:
    mark = "-- end of block --"
    blocks = tour()
    code = "\n".join(f"{block}\nprint({mark!r}, flush=True)" for block, _ in blocks)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(mark)
    for (_, shown), output in zip(blocks, printed, strict=False):
        assert words(output) == words(shown)


def test_spark_agrees_with_the_support_table(wh: Warehouse) -> None:
    """What the table calls maintained passes the gate; what it calls recomputed has the reason it gives."""
    for name, columns in TABLES.items():
        wh.sql(f"CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, t in columns)}) USING DELTA")
    wh.sql("CREATE TABLE elsewhere (x INT) USING PARQUET")
    wrong = []
    for construct in CONSTRUCTS:
        statement = parse_statement(f"CREATE MATERIALIZED VIEW v AS {construct.query}")
        assert isinstance(statement, CreateView)
        found, verdict = (
            define(statement, Expanded(statement.query, ()), wh.spark, wh.registry).reason,
            construct.verdict,
        )
        expected = verdict.why if isinstance(verdict, Reason) else None
        if (found.why if found else None) != expected:
            wrong.append((construct.name, found, expected))
    assert wrong == []
