"""A process that changes a source and refreshes views until it is killed.

    worker.py FOLDER check            audits every view, refreshes, compares each with its query, then changes, refreshes and replaces
    worker.py FOLDER refresh          only refreshes, as fast as it can
    worker.py FOLDER write            audits and refreshes, then changes and refreshes; at the end it checks once more

The last two end when there is a file FOLDER.enough.

Prints a line for each thing done, so that the one who kills it knows when.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections import Counter
from pathlib import Path

from viewkeeper import Warehouse
from viewkeeper.errors import ConflictError
from viewkeeper.runtime.spark import SMALL_STEP

VIEWS = {
    "bag": "SELECT k, s FROM t WHERE x > 1",
    "sums": "SELECT k, sum(x) AS x, count(*) AS n FROM t GROUP BY k",
    "best": "SELECT n, max(x) AS x FROM sums GROUP BY n",
}


# Definitions that replace each other: rows that are filtered, rebuilt, grouped, that stay, and rebuilt again.
REPLACED = (
    "SELECT k, x FROM t WHERE x > 1",
    "SELECT k, x FROM t WHERE x > 1 AND k < 3",
    "SELECT k, x, s FROM t",
    "SELECT k, sum(x) AS x FROM t GROUP BY k",
    "SELECT k, sum(x) AS x FROM t GROUP BY k HAVING sum(x) > 9",
)


def say(text: str) -> None:
    print(text, flush=True)


def prepare(wh: Warehouse) -> None:
    if not wh.tables.has_delta("t"):
        wh.sql("CREATE TABLE t (k INT, x INT, s STRING) USING DELTA TBLPROPERTIES (delta.enableChangeDataFeed = true)")
        wh.sql("INSERT INTO t SELECT id % 5, id, 's' || id % 4 FROM range(100)")
    for name, query in VIEWS.items():
        say(f"creating {name}")
        wh.sql(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name} REFRESH POLICY INCREMENTAL STRICT AS {query}")


def check(wh: Warehouse) -> None:
    found = wh.audit()
    assert found.equal, str(found)
    wh.refresh()
    for name, view in wh.registry.views().items():
        shown, wanted = Counter(wh.spark.table(name).collect()), Counter(wh.spark.sql(view.query).collect())
        assert shown == wanted, f"{name}: missing {wanted - shown}, extra {shown - wanted}"
    say("consistent")


def write(wh: Warehouse, chance: random.Random) -> None:
    wh.sql(f"INSERT INTO t SELECT id % 7, id, 'w' FROM range({chance.randrange(1, 9)})")
    wh.sql(f"UPDATE t SET k = k + 1 WHERE x % 11 = {chance.randrange(11)} AND k < 50")
    wh.sql(f"DELETE FROM t WHERE x % 13 = {chance.randrange(13)} AND s = 'w'")


def replace(wh: Warehouse, query: str) -> None:
    made = wh.sql(f"CREATE OR REPLACE MATERIALIZED VIEW replaced REFRESH POLICY INCREMENTAL AS {query}")
    say(f"replaced {made.content}")


def main() -> None:
    folder, mode = sys.argv[1:3]
    enough = Path(f"{folder}.enough")
    chance = random.Random()
    queries = itertools.cycle(REPLACED)
    wh = Warehouse.local(folder)
    for key, value in SMALL_STEP.items():
        wh.spark.conf.set(key, value)
    say("open")
    if mode != "refresh":
        if wh.registry.views():
            check(wh)
        prepare(wh)
    while not enough.exists():
        if mode != "refresh":
            write(wh, chance)
        try:
            report = wh.refresh()
            say("refreshed " + " ".join(r.strategy for r in report))
            if mode == "refresh" and all(r.strategy == "none" for r in report):
                time.sleep(0.1)
        except ConflictError as conflict:
            say(f"conflict: {conflict.message}")
        if mode == "check":
            replace(wh, next(queries))
    say("done")
    if mode == "write":
        sys.stdin.readline()
        check(wh)


if __name__ == "__main__":
    main()
