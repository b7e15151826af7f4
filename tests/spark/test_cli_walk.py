"""The command line from an empty folder on, in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE TABLE sales (day DATE, price DECIMAL(10,2)) USING DELTA TBLPROPERTIES (delta.enableChangeDataFeed = true);
INSERT INTO sales VALUES (DATE'2024-01-01', 5), (DATE'2024-01-02', 7);
CREATE MATERIALIZED VIEW daily REFRESH POLICY INCREMENTAL AS SELECT day, sum(price) AS total FROM sales GROUP BY day;
INSERT INTO sales VALUES (DATE'2024-01-02', 1), (DATE'2024-01-03', 2);
SELECT * FROM daily ORDER BY day
"""


def viewkeeper(folder: Path, *words: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "viewkeeper", *words, "--warehouse", str(folder / "warehouse")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_walk(tmp_path: Path) -> None:
    (tmp_path / "script.sql").write_text(SCRIPT)
    assert "2024-01-02" in viewkeeper(tmp_path, "sql", "-f", "script.sql")
    assert "stale" in viewkeeper(tmp_path, "status")
    (step,) = json.loads(viewkeeper(tmp_path, "plan", "--json"))
    assert step["strategy"] == "incremental"
    (record,) = json.loads(viewkeeper(tmp_path, "refresh", "--json"))
    assert (record["strategy"], record["rows_inserted"], record["rows_deleted"]) == ("incremental", 2, 1)
    assert record["covers"] == {"sales": 2}
    assert "yes" in viewkeeper(tmp_path, "audit")
    assert len(json.loads(viewkeeper(tmp_path, "history", "daily", "--json"))["history"]) == 2
    assert "added up from changes" in viewkeeper(tmp_path, "explain", "daily")
    assert "no materialized view" in viewkeeper(tmp_path, "history", "weekly", code=1)
