"""The facade: everything a person or a program does with views goes through a Warehouse."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from viewkeeper import overview
from viewkeeper.algebra.reasons import Reason
from viewkeeper.errors import (
    DependentsError,
    NameTakenError,
    NotIncrementalError,
    SqlError,
    StorageError,
)
from viewkeeper.refreshing import Refreshing, silent
from viewkeeper.reports import (
    Audit,
    AuditReport,
    Created,
    Done,
    Explanation,
    HistoryReport,
    PlanReport,
    Progress,
    RefreshReport,
    StatusReport,
)
from viewkeeper.runtime.look import Versions
from viewkeeper.runtime.takeover import takeover, told
from viewkeeper.settings import Settings
from viewkeeper.sql.statements import (
    CreateView,
    DescribeView,
    DropView,
    ExplainCreate,
    ExplainRefresh,
    RefreshView,
    ShowViews,
    SparkStatement,
    parse_statement,
)
from viewkeeper.stages import explain_stage
from viewkeeper.store.names import split
from viewkeeper.store.registry import Registry, in_order
from viewkeeper.store.tables import FolderTables, Tables
from viewkeeper.store.views import View

if TYPE_CHECKING:
    from viewkeeper.runtime.execute import Executor
    from viewkeeper.runtime.spark import SparkSession
    from viewkeeper.store.rows import FileRows


class Warehouse:
    """A set of materialized views and the Delta tables they read."""

    def __init__(self, tables: Tables, spark: SparkSession | None, settings: Settings) -> None:
        self.settings = settings
        self.tables = tables
        self.registry = Registry(tables)
        self.starting: Callable[[], AbstractContextManager[object]] = nullcontext  # around the start of Spark
        self._spark = spark
        self._starting = RLock()  # views that are refreshed at once need one Spark
        self._shown: dict[str, View] = {}

    @classmethod
    def local(cls, path: str | Path, settings: Settings | None = None, *, create: bool = True) -> Warehouse:
        """A folder of Delta tables. Spark starts, or is reused, when data is first needed."""
        root = Path(path).expanduser().absolute()
        if root.exists() and not root.is_dir():
            raise StorageError(f"{root} is a file, not a folder")
        if not root.exists():
            if not create:
                raise StorageError(f"there is no warehouse at {root}", hint="viewkeeper init makes one")
            try:
                root.mkdir(parents=True)
            except OSError as error:
                raise StorageError(f"the warehouse folder {root} cannot be made: {error}") from error
        return cls(FolderTables(root), None, settings or Settings())

    @classmethod
    def open(cls, spark: SparkSession, settings: Settings | None = None) -> Warehouse:
        """The tables of a session that has Delta, by its own catalog."""
        from viewkeeper.store.session_tables import SessionTables  # noqa: PLC0415 - without Spark nobody needs it

        return cls(SessionTables(spark), spark, settings or Settings())

    @property
    def spark(self) -> SparkSession:
        """The Spark session; the local one is started here."""
        with self._starting:
            if self._spark is None:
                from viewkeeper.runtime.local import start  # noqa: PLC0415 - a JVM starts only when data is needed

                assert isinstance(self.tables, FolderTables)
                with self.starting():
                    self._spark = start(self.tables)
                    self._show_all()
            return self._spark

    def close(self) -> None:
        """Stop the local Spark, if this warehouse has started it; a session that was given goes on."""
        self.__dict__.pop("_file_rows", None)  # and what it has kept
        if self._spark is not None and isinstance(self.tables, FolderTables):
            from viewkeeper.runtime.local import stop  # noqa: PLC0415

            stop()
            self.tables.spark = None
            self._spark = None
        self._shown.clear()

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Statements

    def sql(self, text: str) -> Any:
        """One statement: Viewkeeper's own, or anything Spark knows, which then gives a DataFrame."""
        statement = parse_statement(text)
        match statement:
            case CreateView():
                return self.create(statement)
            case RefreshView(name, full):
                return self.refresh(".".join(name), full=full)
            case DropView(name, if_exists, cascade):
                return self.drop(name, if_exists=if_exists, cascade=cascade)
            case ShowViews():
                return self.status()
            case DescribeView(name):
                return overview.describe(self.registry.get(name), self.registry)
            case ExplainCreate(create):
                return self._explain_create(create)
            case ExplainRefresh(name):
                return self.explain(".".join(name))
            case SparkStatement(query):
                return self._spark_statement(query)

    def _spark_statement(self, text: str) -> Any:
        from viewkeeper.runtime.define import run_as_it_is  # noqa: PLC0415

        self._sync()
        result = run_as_it_is(self.spark, text)
        if isinstance(self.tables, FolderTables) and text.lstrip()[:4].upper() == "DROP":
            self.tables.remove_dropped()
        return result

    # Views

    def create(self, statement: CreateView, *, leave: Collection[str] = ()) -> Created | Done:
        """Create the view that a statement describes, and fill it. Readers to `leave` are not built again."""
        started = time.monotonic()
        name = self.tables.canonical(statement.name)
        self._sync()
        existing = self.registry.find(name)
        if existing is not None and statement.if_not_exists:
            return Done(f"View {name} is there already.")
        self._check_name(name, existing, statement)
        dependents = self.registry.readers(existing) if existing else []
        if dependents and not statement.cascade:
            raise DependentsError(
                f"{name} cannot be replaced: {_names(dependents)} read it",
                hint="CREATE OR REPLACE MATERIALIZED VIEW … CASCADE AS … replaces it and builds those again",
            )
        view = self._define(statement)
        notes = self._policy_warnings(view) + self._key_warnings(view)
        content = self._fill(view, existing)
        for dependent in dependents:
            if dependent.name not in leave:
                self._rebuild(dependent)
        return Created(
            view.name,
            view.policy,
            view.reason is None,
            str(view.reason) if view.reason else None,
            time.monotonic() - started,
            "replaced" if existing else "created",
            notes,
            content,
        )

    def drop(self, name: tuple[str, ...] | str, *, if_exists: bool = False, cascade: bool = False) -> Done:
        """Drop a view; with `cascade` also the views that read it."""
        parts = split(name) if isinstance(name, str) else name
        self._sync()
        if if_exists and self.registry.find(self.tables.canonical(parts)) is None:
            return Done(f"There is no view {self.tables.canonical(parts)}.")
        view = self.registry.get(parts)
        readers = self.registry.readers(view)
        if readers and not cascade:
            raise DependentsError(
                f"{view.name} cannot be dropped: {_names(readers)} read it",
                hint=f"DROP MATERIALIZED VIEW {view.name} CASCADE drops those too",
            )
        creator = self._creator()
        dropped = [*reversed(readers), view]
        for each in dropped:
            creator.drop(each)
            self._shown.pop(each.name, None)
        return Done(f"Dropped {_names(dropped)}.")

    # Refresh

    def refresh(self, *names: str, full: bool = False, progress: Progress = silent) -> RefreshReport:
        """Bring views up to date: these and the views they read, or all. All see the same source versions."""
        views = self._chosen(names)
        self._show_missing(views)
        forced = {self.registry.get(split(n)).name for n in names} if full else set()
        return self._refreshing(views, progress).run(views, forced)

    def plan(self, *names: str) -> PlanReport:
        """What `refresh` would do, why, and its predicted cost; nothing is touched, no Spark is started."""
        views = self._chosen(names)
        found = overview.steps(views, self.registry, self._pinned(views), self.settings)
        return PlanReport(tuple(overview.planned(step, seen) for seen, step in found))

    def explain(self, name: str, stage: str | None = None) -> Explanation:
        """How a view is kept and why, or one stage of its path: parsed, bound, normalized, changes, plan or sql."""
        view = self.registry.get(split(name))
        if stage is None:
            return overview.explain(view, self.registry, self.settings)
        return explain_stage(view, stage, self.registry, self.settings)

    def status(self) -> StatusReport:
        """All views against their sources, from the logs alone."""
        return overview.status(self.registry)

    def history(self, name: str) -> HistoryReport:
        """A view's refreshes, newest first, from its log."""
        return overview.history(self.registry.get(split(name)), self.registry)

    def audit(self, *names: str, progress: Progress = silent) -> AuditReport:
        """Compare views with a recompute of their queries at the versions they cover, as bags, both ways."""
        from viewkeeper.runtime.audit import difference  # noqa: PLC0415
        from viewkeeper.runtime.spark import fitting  # noqa: PLC0415

        views = [self.registry.get(split(n)) for n in names] if names else list(self.registry.views().values())
        audits = []
        executor = self._executor() if views else None
        for view in views:
            assert executor is not None
            progress(view.name, "comparing it with a recompute")
            started = time.monotonic()
            rows = sum(self.tables.log(t).snapshot().rows or 0 for t in view.tables)
            found = difference(view, self.registry, executor.session(view, fitting(self.settings, rows)))
            examples = [f"missing {r}" for r in found.missing[:3]] + [f"extra {r}" for r in found.extra[:3]]
            audits.append(
                Audit(
                    view.name,
                    not found.missing and not found.extra,
                    found.rows,
                    len(found.missing),
                    len(found.extra),
                    time.monotonic() - started,
                    overview.covered_versions(view, self.registry),
                    tuple(examples),
                )
            )
        return AuditReport(tuple(audits))

    # What the above stands on

    def _chosen(self, names: Iterable[str]) -> list[View]:
        named = [self.registry.get(split(n)) for n in names]
        return self.registry.with_sources(named) if named else in_order(self.registry.views().values())

    def _pinned(self, views: list[View]) -> Versions:
        """All base tables pinned at once, before anything is refreshed."""
        versions = Versions(self.registry)
        own = {v.backing for v in views}
        tables = {t for v in views for t in v.tables} - own
        versions.pin([t for t in tables if self.tables.has_delta(t)])
        return versions

    def _define(self, statement: CreateView) -> View:
        from viewkeeper.runtime.define import MEANING, define  # noqa: PLC0415
        from viewkeeper.runtime.expand import expand  # noqa: PLC0415
        from viewkeeper.runtime.spark import private_session  # noqa: PLC0415

        spark = self.spark
        self._sync()
        meaning = {key: spark.conf.get(key) or "" for key in MEANING}
        session = private_session(spark, meaning)
        session.catalog.setCurrentCatalog(spark.catalog.currentCatalog())
        session.catalog.setCurrentDatabase(spark.catalog.currentDatabase())
        return define(statement, expand(statement.query, spark, self.registry), session, self.registry)

    def _explain_create(self, statement: CreateView) -> Explanation:
        view = self._define(statement)
        found = overview.explain(view, self.registry, self.settings, kept=False)
        existing = self.registry.find(view.name)
        if existing is None:
            return found
        replacing = told(takeover(existing, view, self.registry))
        return Explanation(
            view.name, {**found.sections, "In place of the view that is there": f"its rows would be {replacing}"}
        )

    def _policy_warnings(self, view: View) -> tuple[str, ...]:
        if view.reason is None or view.policy in ("AUTO", "FULL"):
            return ()
        if view.policy == "INCREMENTAL STRICT":
            raise NotIncrementalError(
                f"{view.name} cannot be maintained from changes: {view.reason}",
                hint="REFRESH POLICY AUTO keeps it by recompute",
                position=None,
            )
        message = f"{view.name} will be recomputed at each refresh: {view.reason}"
        warnings.warn(message, stacklevel=3)
        return (message,)

    def _key_warnings(self, view: View) -> tuple[str, ...]:
        problems = overview.declared_keys(view, self.registry).problems
        messages = tuple(f"{view.name} does not rely on a declared key. {problem}" for problem in problems)
        for message in messages:
            warnings.warn(message, stacklevel=3)
        return messages

    def _check_name(self, name: str, existing: View | None, statement: CreateView) -> None:
        if existing is not None and not statement.or_replace:
            raise NameTakenError(f"there is a view {name} already", hint="CREATE OR REPLACE, or IF NOT EXISTS")
        if existing is None and self.spark.catalog.tableExists(name):
            raise NameTakenError(f"there is a table or view {name} already", hint="choose another name, or drop it")

    def _fill(self, view: View, existing: View | None) -> str:
        """Make the view, and say what became of the rows of one that it replaces."""
        if existing is None:
            self._creator().fill(view)
            self._shown[view.name] = view
            return ""
        made, found = self._creator().replace(view, existing)
        self._shown[made.name] = made
        if isinstance(found, Reason):
            return told(found)
        # What is kept shows the versions it has shown; a view that was just created is up to date.
        record = self._refreshing([made]).run([made]).records[0]
        return told(found) + (f", then refreshed ({record.strategy})" if record.strategy != "none" else "")

    def _rebuild(self, view: View) -> None:
        """Create a view again from its own text, since one that it reads was replaced."""
        statement = CreateView(
            name=split(view.name),
            query=view.text,
            columns=tuple(name for name, _ in view.columns),
            column_comments=dict(view.column_comments),
            comment=view.comment,
            cluster_by=view.cluster_by,
            properties=dict(view.properties),
            policy=view.policy,
        )
        try:
            rebuilt = self._define(statement)
            self._creator().fill(rebuilt, "rebuilt: a view that it reads was replaced", replace=True)
            self._shown[view.name] = rebuilt
        except SqlError as error:
            raise DependentsError(
                f"{view.name} no longer fits the view it reads: {error.message}",
                hint=f"replace or drop {view.name}; until then it cannot be refreshed",
            ) from error

    def _refreshing(self, views: list[View], progress: Progress = silent) -> Refreshing:
        return Refreshing(self.registry, self.settings, self._pinned(views), self._executor, progress)

    def _executor(self) -> Executor:
        from viewkeeper.runtime.execute import Executor  # noqa: PLC0415

        return Executor(self.spark, self.registry, self.settings, self._file_rows)

    @cached_property
    def _file_rows(self) -> FileRows:
        """What this process reads of data files by itself, and keeps of them."""
        from viewkeeper.store.columns import FileColumns  # noqa: PLC0415 - Arrow takes a while to load
        from viewkeeper.store.rows import FileRows  # noqa: PLC0415

        return FileRows(FileColumns(self.settings.kept_here))

    def _creator(self) -> Any:
        from viewkeeper.runtime.create import Creator  # noqa: PLC0415

        return Creator(self.spark, self.registry, self.settings)

    def _sync(self) -> None:
        """Notice what other processes, or plain Spark statements, have made or dropped."""
        self.tables.sync()
        if self._spark is not None and isinstance(self.tables, FolderTables):
            self._show_all()

    def _show_missing(self, views: list[View]) -> None:
        """In a lasting catalog: show a view whose CREATE was killed before it could."""
        if self._spark is None or isinstance(self.tables, FolderTables):
            return
        creator = self._creator()
        for view in views:
            if not creator.is_shown(view):
                creator.show(view)

    def _show_all(self) -> None:
        """Spark's local catalog forgets views with the process: tell it of each."""
        creator = self._creator()
        views = self.registry.views()
        for view in views.values():
            if self._shown.get(view.name) != view:
                creator.show(view)
                self._shown[view.name] = view
        for gone in set(self._shown) - set(views):
            self.spark.sql(f"DROP VIEW IF EXISTS {gone}")
            del self._shown[gone]


def _names(views: list[View]) -> str:
    return ", ".join(v.name for v in views)
