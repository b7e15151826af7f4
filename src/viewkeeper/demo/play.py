"""The demo: real TPC-H data, four views, changes in several sources, refreshes against full recomputes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from viewkeeper import Warehouse
from viewkeeper.demo.story import ROUNDS, TABLES, VIEWS, Round
from viewkeeper.errors import InternalError, StorageError
from viewkeeper.reports import Progress, RefreshReport, Report
from viewkeeper.tpch.generator import generating

_MARK = ".viewkeeper-demo"
_SCRATCH = "demo_recompute"


class Stage(Protocol):
    """Where the demo plays: words, tables, and what happens just now."""

    def say(self, text: str = "", *, heading: bool = False) -> None: ...

    def show(self, value: Report) -> None: ...

    def busy(self, text: str) -> AbstractContextManager[None]: ...

    def showing(self, names: Iterable[str]) -> AbstractContextManager[Progress]: ...

    def opened(self, wh: Warehouse) -> None:
        """The warehouse is there; its Spark has not started yet."""


@dataclass(frozen=True)
class Compared:
    """A view's refresh, and a recompute of it in the same run."""

    view: str
    strategy: str
    rows_inserted: int
    rows_deleted: int
    seconds: float
    recompute_seconds: float


@dataclass(frozen=True)
class Comparison(Report):
    """One round of the demo."""

    views: tuple[Compared, ...] = ()
    title = "Refresh against recompute"
    columns = ("view", "strategy", "rows in", "rows out", "refresh s", "recompute s", "speed-up")
    numbers = frozenset({"rows in", "rows out", "refresh s", "recompute s", "speed-up"})

    def rows(self) -> list[list[object]]:
        listed: list[list[object]] = [
            [c.view, c.strategy, c.rows_inserted, c.rows_deleted, c.seconds, c.recompute_seconds, _ratio(c)]
            for c in self.views
        ]
        return [*listed, ["all", "", None, None, self.seconds, self.recompute_seconds, _ratio(self)]]

    @property
    def seconds(self) -> float:
        return sum(c.seconds for c in self.views)

    @property
    def recompute_seconds(self) -> float:
        return sum(c.recompute_seconds for c in self.views)

    def to_data(self) -> list[dict[str, Any]]:
        return [asdict(c) for c in self.views]


def _ratio(timed: Compared | Comparison) -> str:
    return f"{timed.recompute_seconds / max(timed.seconds, 0.001):.1f}×"


@dataclass(frozen=True)
class Made(Report):
    """The demo's views."""

    views: tuple[tuple[str, str, int | None, float], ...] = ()
    title = "Views"
    columns = ("view", "what it is", "rows", "seconds")
    numbers = frozenset({"rows", "seconds"})

    def rows(self) -> list[list[object]]:
        return [list(v) for v in self.views]

    def to_data(self) -> list[dict[str, Any]]:
        return [dict(zip(("view", "what", "rows", "seconds"), v, strict=True)) for v in self.views]


@dataclass(frozen=True)
class DemoReport:
    """What was measured."""

    folder: Path
    scale: float
    rows: dict[str, int]
    created: Made
    rounds: tuple[Comparison, ...]
    idle_seconds: float
    seconds: float

    def to_data(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "scale": self.scale,
            "rows": self.rows,
            "created": self.created.to_data(),
            "rounds": [r.to_data() for r in self.rounds],
            "idle_seconds": self.idle_seconds,
            "seconds": self.seconds,
        }


def run_demo(folder: Path, scale: float, stage: Stage) -> DemoReport:
    """The whole demo; the folder it leaves is a warehouse."""
    clock = Clock()
    root = claim(folder)
    stage.say(f"1. Data: TPC-H at scale {scale:g}, in {folder}", heading=True)
    wh = Warehouse.local(root)
    stage.opened(wh)
    rows = load(wh, root / ".tpch", scale, stage)
    stage.say(f"2. {len(VIEWS)} materialized views", heading=True)
    stage.say("   Each refresh takes what is predicted to be cheaper: changes, or a recompute (REFRESH POLICY AUTO).")
    created = create_views(wh, stage)
    rounds = []
    for number, story in enumerate(ROUNDS, 3):
        stage.say(f"{number}. {story.title}", heading=True)
        rounds.append(play(story, wh, stage))
    stage.say(f"{len(ROUNDS) + 3}. Another refresh, with nothing to do", heading=True)
    idle = Clock()
    stage.show(wh.refresh())
    quick = idle()
    stage.say(f"   {quick:.2f} s; a refresh reads the tables' logs first, and starts Spark only if data changed.")
    return DemoReport(root, scale, rows, created, tuple(rounds), quick, clock())


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self.started


def claim(folder: Path) -> Path:
    """An empty folder for the demo: a new one, or that of an earlier demo, emptied; never somebody's own."""
    root = folder.expanduser().absolute()
    try:
        if root.exists() and not root.is_dir():
            raise StorageError(f"{root} is a file", hint="--folder names another place")
        if root.exists() and any(root.iterdir()):
            if not (root / _MARK).exists():
                raise StorageError(
                    f"{root} is not empty and not from an earlier demo", hint="--folder names another place"
                )
            shutil.rmtree(root)
        root.mkdir(parents=True, exist_ok=True)
        (root / _MARK).write_text("made by `viewkeeper demo`, which replaces this folder when it runs again\n")
    except OSError as error:
        raise StorageError(f"{root} cannot be written: {error}") from error
    return root


def load(wh: Warehouse, raw: Path, scale: float, stage: Stage) -> dict[str, int]:
    """Make the data while Spark starts, then load it into Delta tables, two at a time."""
    clock = Clock()
    with generating(raw, scale, TABLES):
        spark = wh.spark
    stage.say(f"   Spark has started, and the rows are made: {clock():.1f} s")
    clock = Clock()

    def copy(table: str) -> None:
        spark.sql(
            f"CREATE TABLE {table} USING DELTA"
            " TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true)"
            f" AS SELECT {TABLES[table]} FROM parquet.`{raw / table}.parquet`"
        )

    with stage.busy(f"loading {', '.join(TABLES)}"), ThreadPoolExecutor(2) as pool:
        list(pool.map(copy, TABLES))
    shutil.rmtree(raw)
    rows = {table: wh.tables.log(table).snapshot().rows or 0 for table in TABLES}
    shown = ", ".join(f"{table} {count:,}" for table, count in rows.items())
    stage.say(f"   loaded into Delta tables with their change data feed on: {shown} rows: {clock():.1f} s")
    return rows


def create_views(wh: Warehouse, stage: Stage) -> Made:
    made = []
    with stage.showing(VIEWS) as progress:
        for name, (what, query) in VIEWS.items():
            progress(name, "creating it")
            created = wh.sql(f"CREATE MATERIALIZED VIEW {name} COMMENT '{what}' AS {query}")
            progress(name, "created")
            made.append((name, what, wh.status()[name].rows, created.seconds))
    report = Made(tuple(made))
    stage.show(report)
    return report


def play(story: Round, wh: Warehouse, stage: Stage) -> Comparison:
    """Change the sources, show the plan, refresh, measure recomputes, audit."""
    for table, statement in story.statements:
        clock = Clock()
        verb = statement.split(maxsplit=1)[0]
        with stage.busy(f"{verb} {table}"):
            wh.sql(statement)
        stage.say(f"   {verb} {table}: {_rows_touched(wh, table):,} rows, {clock():.1f} s")
    stage.show(wh.plan())
    with stage.showing(wh.registry.views()) as progress:
        refreshed = wh.refresh(progress=progress)
    comparison = compare(refreshed, wh, stage)
    stage.show(comparison)
    clock = Clock()
    with stage.showing(wh.registry.views()) as progress:
        audits = wh.audit(progress=progress)
    if not audits.equal:
        stage.show(audits)
        raise InternalError("a view differs from a recompute of its query; please report this")
    rows = sum(a.rows for a in audits)
    stage.say(f"   Audit: all {len(audits)} views ({rows:,} rows) equal a recompute, both ways; {clock():.1f} s")
    return comparison


def _rows_touched(wh: Warehouse, table: str) -> int:
    log = wh.tables.log(table)
    commit = log.commit(log.version())
    counts = commit.metrics if commit else {}
    by_merge = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    if by_merge[0] in counts:
        return sum(counts.get(name, 0) for name in by_merge)
    return next((counts[n] for n in ("numUpdatedRows", "numDeletedRows", "numOutputRows") if n in counts), 0)


def compare(refreshed: RefreshReport, wh: Warehouse, stage: Stage) -> Comparison:
    """Each view's query once more in full, into a table of its own by INSERT OVERWRITE, as a recompute does it."""
    compared = []
    for record in refreshed:
        view = wh.registry.views()[record.view]
        columns = ", ".join(f"{name} {type_}" for name, type_ in view.columns)
        with stage.busy(f"for comparison: recomputing {record.view} into another table"):
            wh.sql(f"CREATE OR REPLACE TABLE {_SCRATCH} ({columns}) USING DELTA")
            clock = Clock()
            wh.sql(f"INSERT OVERWRITE {_SCRATCH} {view.query}")
            seconds = clock()
        compared.append(
            Compared(record.view, record.strategy, record.rows_inserted, record.rows_deleted, record.seconds, seconds)
        )
    wh.sql(f"DROP TABLE {_SCRATCH}")
    return Comparison(tuple(compared))


def commands(folder: Path) -> list[tuple[str, str]]:
    """What to type next, and what for."""
    view = next(iter(VIEWS))
    return [
        (f"status -w {folder}", "all views"),
        (f"explain {view} -w {folder}", "how a view is kept, and the SQL of its change"),
        (f"history {view} -w {folder}", "its refreshes"),
        (f"audit -w {folder}", "views against recomputes"),
        (f'sql "SELECT * FROM {view} LIMIT 5" -w {folder}', "any statement"),
    ]
