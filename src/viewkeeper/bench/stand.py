"""Where it is measured: a warehouse with TPC-H tables, views with plain tables beside them, and a stopwatch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from viewkeeper import Warehouse
from viewkeeper.bench.by_hand import Range, Versions
from viewkeeper.bench.data import put_tables
from viewkeeper.bench.mixes import Cursor, Mix, NewOrders, batch
from viewkeeper.bench.views import VIEWS
from viewkeeper.errors import InternalError
from viewkeeper.reports import RefreshRecord
from viewkeeper.tpch.tables import TABLES

T = TypeVar("T")


@dataclass(frozen=True)
class Timed(Generic[T]):
    """What an action gave, its seconds, and the Spark jobs it took."""

    value: T
    seconds: float
    jobs: int


@dataclass
class Bench:
    """One run: a warehouse in a folder of its own, and the folder where tables are kept."""

    wh: Warehouse
    root: Path
    kept: Path
    scale: float
    tell: Callable[[str], None]
    stands: dict[str, Stand] = field(default_factory=dict)

    def stand(self, name: str = "main", scale: float | None = None) -> Stand:
        """The tables under a name: those that are there, or a fresh copy. Names without a schema mean them now."""
        if name not in self.stands:
            at = self.scale if scale is None else scale
            put_tables(self.wh, self.root, self.kept, scale=at, schema=name, tell=self.tell)
            self.stands[name] = Stand(self, name, at)
        self.use(name)
        return self.stands[name]

    def use(self, schema: str) -> None:
        self.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        self.sql(f"USE {schema}")

    def sql(self, statement: str) -> Any:
        """A statement as plain Spark runs it."""
        return self.wh.spark.sql(statement)

    def timed(self, action: Callable[[], T]) -> Timed[T]:
        jobs, started = self._jobs(), time.perf_counter()
        value = action()
        return Timed(value, time.perf_counter() - started, self._jobs() - jobs)

    def _jobs(self) -> int:
        """All jobs so far; by group they can be counted for one thread only, and refreshes use several."""
        context: Any = self.wh.spark.sparkContext
        return int(context._jsc.sc().dagScheduler().numTotalJobs())

    def refresh(self, view: str, *, full: bool = False) -> Timed[RefreshRecord]:
        """One view, timed. What it does is in its record."""
        return self.timed(lambda: self.wh.refresh(view, full=full).records[-1])

    def create(self, view: str, query: str, policy: str = "AUTO") -> None:
        self.tell(f"creating {view}")
        self.wh.sql(f"CREATE MATERIALIZED VIEW {view} REFRESH POLICY {policy} AS {query}")

    def audit(self, *views: str) -> None:
        """Each view against its query, both ways; a difference ends the run."""
        for view in views:
            self.tell(f"auditing {view}")
            report = self.wh.audit(view)
            if not report.equal:
                raise InternalError(f"a measured view differs from its query:\n{report}")


@dataclass
class Stand:
    """The tables of TPC-H at one scale, how far they have been changed, and what is measured on them.

    Each view may have a second copy, of policy INCREMENTAL, to measure the way that AUTO does not take, and has a plain
    Delta table to recompute into."""

    bench: Bench
    schema: str
    scale: float
    cursor: Cursor = field(default_factory=Cursor)
    views: set[str] = field(default_factory=set)
    audited: set[str] = field(default_factory=set)

    def add(self, names: Iterable[str], *, both: bool = True) -> None:
        """Views that are not there yet, with a first small refresh that is not measured; all are up to date then."""
        before = len(self.views)
        for name in names:
            copies = [(name, "AUTO"), (second(name), "INCREMENTAL")] if both else [(name, "AUTO")]
            missing = [(copy, policy) for copy, policy in copies if copy not in self.views]
            for copy, policy in missing:
                self.bench.create(copy, VIEWS[name], policy)
                self.views.add(copy)
            if missing and missing[0][0] == name:
                self.bench.sql(f"CREATE TABLE {plain(name)} USING DELTA AS SELECT * FROM {name}")
        if len(self.views) > before:
            self.change(NewOrders(1))
        self.catch_up(names)

    def catch_up(self, names: Iterable[str]) -> None:
        """Nothing but the next batch is pending after this."""
        for name in names:
            self.bench.tell(f"catching up: {name}")
            self.bench.wh.refresh(*(copy for copy in (name, second(name)) if copy in self.views))

    def change(self, mix: Mix) -> Range:
        """The next batch of a mix."""
        self.bench.tell("changing the tables")
        statements, self.cursor = batch(mix, self.scale, self.cursor)
        old = self.versions()
        for statement in statements:
            self.bench.sql(statement)
        return Range(old, self.versions())

    def versions(self) -> Versions:
        return {table: self.bench.wh.tables.log(f"{self.schema}.{table}").version() for table in TABLES}

    def recompute(self, view: str) -> Timed[object]:
        """Plain Spark: the same SQL, into a plain table by overwrite."""
        return self.bench.timed(lambda: self.bench.sql(f"INSERT OVERWRITE {plain(view)} {VIEWS[view]}"))

    def check(self, view: str, *copies: str) -> None:
        """Views and tables against the plain recompute of the same rows, by fingerprints of their bags.

        Of several right answers a view may keep another one than Spark found, so the audit has the last word."""
        queries = [
            f"SELECT {n} AS n, count(*), sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) FROM {table}"
            for n, table in enumerate((plain(view), *copies))
        ]
        found = {row[0]: tuple(row[1:]) for row in self.bench.sql(" UNION ALL ".join(queries)).collect()}
        for n, copy in enumerate(copies, 1):
            if found[n] != found[0] and copy in self.views:
                self.bench.audit(copy)
            elif found[n] != found[0]:
                raise InternalError(f"the hand-written job for {view} gives other rows than its query")

    def audit_once(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.audited:
                self.bench.audit(name)
                self.audited.add(name)


def second(view: str) -> str:
    return f"{view}_second"


def plain(view: str) -> str:
    return f"{view}_plain"
