"""What a small refresh costs next to a plain append: 10 rows changed of a million, a view of 1 000 groups.

Then ten such views, refreshed one after the other and two at once.

    python bench/small_refresh.py [--rows 1000000] [--rounds 9] [--json FILE]

All are measured in turn in one run; the figures that count are the ratios of the medians.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from viewkeeper import Settings, Warehouse

BARS = {
    "refresh, 10 rows inserted": 5.0,
    "refresh, 10 rows updated": 5.0,
    "nothing to do": 1.0,
    "nothing to do, ten views": 1.0,
}


class Stopwatch:
    """Seconds and Spark jobs of named actions."""

    def __init__(self, wh: Warehouse) -> None:
        self.context = wh.spark.sparkContext
        self.seconds: dict[str, list[float]] = {}
        self.jobs: dict[str, int] = {}

    def time(self, name: str, action: Callable[[], object]) -> None:
        group = f"{name}-{len(self.seconds.get(name, ()))}"
        self.context.setJobGroup(group, name)
        started = time.perf_counter()
        action()
        self.seconds.setdefault(name, []).append(time.perf_counter() - started)
        self.jobs[name] = len(self.context.statusTracker().getJobIdsForGroup(group))


def measure(wh: Warehouse, rows: int, rounds: int, warm_up: int = 4) -> Stopwatch:
    feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    wh.sql(f"CREATE TABLE source (id BIGINT, k INT, x DECIMAL(15,2)) USING DELTA {feed}")
    wh.sql(f"INSERT INTO source SELECT id, CAST(id % 1000 AS INT), CAST(id AS DECIMAL(15,2)) FROM range({rows})")
    wh.sql("CREATE TABLE plain (id BIGINT, k INT, x DECIMAL(15,2)) USING DELTA")
    wh.sql(
        "CREATE MATERIALIZED VIEW groups AS SELECT k, count(*) AS n, sum(x) AS total, avg(x) AS mean FROM source GROUP BY k"
    )
    new_rows = "SELECT id, CAST(id * 7 % 1000 AS INT), CAST(5 AS DECIMAL(15,2)) FROM range(10)"
    watch = Stopwatch(wh)
    for turn in range(rounds + warm_up):
        if turn == warm_up:
            watch.seconds.clear()
        watch.time("plain append, 10 rows", lambda: wh.sql(f"INSERT INTO plain {new_rows}"))
        wh.sql(f"INSERT INTO source {new_rows}")
        watch.time("refresh, 10 rows inserted", lambda: expect(wh, "incremental"))
        wh.sql(f"UPDATE source SET x = x + 1 WHERE id BETWEEN {turn * 1000 + 100} AND {turn * 1000 + 109}")
        watch.time("refresh, 10 rows updated", lambda: expect(wh, "incremental"))
        watch.time("nothing to do", lambda: expect(wh, "none"))
    watch.time("full recompute", lambda: wh.refresh("groups", full=True))
    several(wh, watch, new_rows, rounds // 2)
    assert wh.audit().equal
    return watch


def several(wh: Warehouse, watch: Stopwatch, new_rows: str, rounds: int) -> None:
    for n in range(1, 10):
        wh.sql(
            f"CREATE MATERIALIZED VIEW groups_{n} AS SELECT k % {100 * n} AS k, sum(x) AS x FROM source GROUP BY k % {100 * n}"
        )
    for _ in range(rounds):
        for name, at_once in (("ten views, one by one", 1), ("ten views, two at once", 2)):
            wh.sql(f"INSERT INTO source {new_rows}")
            wh.settings = Settings(views_at_once=at_once)
            watch.time(name, lambda: expect(wh, "incremental"))
    watch.time("nothing to do, ten views", lambda: expect(wh, "none"))


def expect(wh: Warehouse, strategy: str) -> None:
    record = next(iter(wh.refresh()))
    assert record.strategy == strategy, record


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-bench-"))
    try:
        with Warehouse.local(folder) as wh:
            watch = measure(wh, chosen.rows, chosen.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    base = statistics.median(watch.seconds["plain append, 10 rows"])
    report = []
    print(f"{'':28}{'median ms':>10}{'min':>8}{'max':>8}{'jobs':>6}{'÷ append':>10}{'bar':>6}")
    for name, seconds in watch.seconds.items():
        median = statistics.median(seconds)
        bar = BARS.get(name)
        line = f"{name:28}{median * 1000:10.0f}{min(seconds) * 1000:8.0f}{max(seconds) * 1000:8.0f}{watch.jobs[name]:6}"
        print(line + f"{median / base:10.2f}" + (f"{bar:6.1f}" if bar else ""))
        report.append(
            {
                "name": name,
                "seconds": seconds,
                "median": median,
                "ratio": median / base,
                "jobs": watch.jobs[name],
                "bar": bar,
            }
        )
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
