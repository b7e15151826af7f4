"""Small sources and many commits: what a small refresh costs, and how that grows with commits and with depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from viewkeeper.bench.cases import CommitGrowth, DepthGrowth, SmallRefresh, name
from viewkeeper.bench.samples import REFRESH, Sample
from viewkeeper.bench.stand import Bench

APPEND, INSERTED, UPDATED = "plain append, 10 rows", "refresh, 10 rows inserted", "refresh, 10 rows updated"
IDLE, FULL = "nothing to do", "full recompute"
TEN_IDLE, TEN_ONE_BY_ONE, TEN_TOGETHER = "nothing to do, ten views", "ten views, one by one", "ten views, one refresh"
_CASE = name(SmallRefresh(0, 0))
_WARM_UP = 4
_COLUMNS = "(id BIGINT, k INT, x DECIMAL(15,2)) USING DELTA"
_FEED = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
_TEN_ROWS = "SELECT id, CAST(id * 7 % 1000 AS INT), CAST(5 AS DECIMAL(15,2)) FROM range(10)"


def _source(bench: Bench, rows: int) -> None:
    bench.sql(f"CREATE TABLE source {_COLUMNS} {_FEED}")
    bench.sql(f"INSERT INTO source SELECT id, CAST(id % 1000 AS INT), CAST(id AS DECIMAL(15,2)) FROM range({rows})")


def small_refresh(case: SmallRefresh, bench: Bench) -> Iterator[Sample]:
    bench.use("small")
    _source(bench, case.rows)
    bench.sql(f"CREATE TABLE appended {_COLUMNS}")
    bench.create("groups", "SELECT k, count(*) AS n, sum(x) AS total, avg(x) AS mean FROM source GROUP BY k")
    for number in range(-_WARM_UP, case.rounds):
        for sample in _small_round(bench, number):
            if number >= 0:
                yield sample
    yield _refreshed(bench, FULL, 0, "groups", full=True)
    yield from _several(bench, max(1, case.rounds // 2))
    bench.audit("groups", *(f"groups_{n}" for n in range(1, 10)))


def _small_round(bench: Bench, number: int) -> Iterator[Sample]:
    appended = bench.timed(lambda: bench.sql(f"INSERT INTO appended {_TEN_ROWS}"))
    yield Sample(_CASE, "appended", APPEND, number, appended.seconds, appended.jobs)
    bench.sql(f"INSERT INTO source {_TEN_ROWS}")
    yield _refreshed(bench, INSERTED, number, "groups")
    first = (number + _WARM_UP) * 1000 + 100
    bench.sql(f"UPDATE source SET x = x + 1 WHERE id BETWEEN {first} AND {first + 9}")
    yield _refreshed(bench, UPDATED, number, "groups")
    yield _refreshed(bench, IDLE, number, "groups")


def _several(bench: Bench, rounds: int) -> Iterator[Sample]:
    names = ["groups"]
    for n in range(1, 10):
        names.append(f"groups_{n}")
        bench.create(names[-1], f"SELECT k % {100 * n} AS k, sum(x) AS x FROM source GROUP BY k % {100 * n}")
    each = [[view] for view in names]
    for number in range(-1, rounds):  # the first is not measured
        for action, refreshes in ((TEN_ONE_BY_ONE, each), (TEN_TOGETHER, [names]), (TEN_IDLE, [names])):
            if action != TEN_IDLE:
                bench.sql(f"INSERT INTO source {_TEN_ROWS}")
            sample = _several_refreshed(bench, action, number, refreshes)
            if number >= 0:
                yield sample


def _refreshed(bench: Bench, action: str, number: int, view: str, *, full: bool = False) -> Sample:
    return _several_refreshed(bench, action, number, [[view]], full=full)


def _several_refreshed(
    bench: Bench, action: str, number: int, refreshes: Sequence[Sequence[str]], *, full: bool = False
) -> Sample:
    """One refresh after the other, each of several views, timed together."""
    bench.tell(action)
    done = bench.timed(lambda: [r for views in refreshes for r in bench.wh.refresh(*views, full=full)])
    taken = "/".join(dict.fromkeys(record.strategy for record in done.value))
    return Sample(_CASE, "groups", action, number, done.seconds, done.jobs, strategy=taken)


def commit_growth(case: CommitGrowth, bench: Bench) -> Iterator[Sample]:
    bench.use("commits")
    _source(bench, 100_000)
    bench.create("groups", "SELECT k, count(*) AS n, sum(x) AS total FROM source GROUP BY k", "INCREMENTAL")
    for number, count in enumerate((1, *case.counts), -1):  # the first is not measured
        bench.tell(f"making {count} commits")
        statements = [f"INSERT INTO source VALUES ({n}, {n % 1000}, 5)" for n in range(count)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(bench.sql, statements))
        done = bench.refresh("groups")
        if number >= 0:
            yield Sample(name(case), "groups", REFRESH, 0, done.seconds, done.jobs, count, done.value.strategy)
    bench.audit("groups")


def depth_growth(case: DepthGrowth, bench: Bench) -> Iterator[Sample]:
    bench.use("depth")
    _source(bench, 100_000)
    bench.create("level_1", "SELECT k, count(*) AS n, sum(x) AS total FROM source GROUP BY k", "INCREMENTAL")
    for n in range(2, max(case.depths) + 1):
        bench.create(f"level_{n}", f"SELECT k, n, total + 1 AS total FROM level_{n - 1} WHERE k <> {n}", "INCREMENTAL")
    for number in range(-1, case.rounds):  # the first is not measured
        for depth in case.depths:
            bench.sql(f"INSERT INTO source {_TEN_ROWS}")
            bench.tell(f"depth {depth}")
            done = bench.refresh(f"level_{depth}")
            if number >= 0:
                yield Sample(name(case), "chain", REFRESH, number, done.seconds, done.jobs, depth, done.value.strategy)
    bench.audit(f"level_{max(case.depths)}")
