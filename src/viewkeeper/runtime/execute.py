"""Running the steps of a plan: each view is installed by one Delta commit that says what it covers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import assert_never

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.changes.refresh import Maintenance, MergeBag, MergeGroups, MergeTop, maintenance
from viewkeeper.changes.stored import WHOLE
from viewkeeper.changes.weights import Changed
from viewkeeper.errors import ConflictError, NotIncrementalError, SourceError, StorageError, ViewkeeperError
from viewkeeper.planner.plan import Maintain, Nothing, Outcome, Recompute, Refuse, Step, Strategy
from viewkeeper.runtime import install
from viewkeeper.runtime.forms import content_query
from viewkeeper.runtime.guard import only_installer
from viewkeeper.runtime.look import Look
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.runtime.spark import SMALL_STEP, private_session
from viewkeeper.settings import Settings
from viewkeeper.sql.unparse import Leaves, string_literal, unparse
from viewkeeper.store.log import Commit
from viewkeeper.store.names import canonical
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import COVERS_PROPERTY, RefreshNote, View, transaction_id

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TXN_APP = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"

# What Spark says when files or versions that a change needs are gone.
_GONE = (
    "FILE_NOT_EXIST",
    "FileNotFoundException",
    "DELTA_FILE_NOT_FOUND",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_MISSING_CHANGE_DATA",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "VersionNotFoundException",
)
_CONFLICT = (
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "ConcurrentTransaction",
    "ConcurrentAppend",
    "MetadataChanged",
)

_NOT_WRITABLE = ("Permission denied", "Read-only file system", "Mkdirs failed", "DELTA_CANNOT_CREATE_LOG_PATH")

Tell = Callable[[str], None]


class NotThisTimeError(Exception):
    """The change could not be had or applied after all; nothing was written."""


@dataclass(frozen=True)
class Executor:
    """Runs steps for one warehouse."""

    spark: SparkSession
    registry: Registry
    settings: Settings

    def run_or_recompute(self, step: Step, look: Look, tell: Tell) -> Outcome:
        """Run a step; where its changes turn out not to do, recompute if the policy lets us."""
        try:
            return self.run(step, look, tell)
        except NotThisTimeError as why:
            reason = str(why)
            if look.view.policy != "AUTO" or not isinstance(step, Maintain):
                raise NotIncrementalError(
                    f"{look.view.name} was not refreshed: {reason}",
                    hint=f"REFRESH MATERIALIZED VIEW {look.view.name} FULL recomputes it",
                ) from why
            return self.recompute(reason, look, tell, predicted=step.recompute_cost.seconds)

    def run(self, step: Step, look: Look, tell: Tell) -> Outcome:
        match step:
            case Nothing(record=False):
                return Outcome("none", step.reason, 0, 0)
            case Nothing():
                tell("recording the covered versions")
                self.record(look, self.note(look, "none", step.reason))
                return Outcome("none", step.reason, 0, 0)
            case Maintain():
                return self.maintain(step, look, tell)
            case Recompute():
                return self.recompute(step.reason, look, tell, predicted=step.cost.seconds)
            case Refuse():
                raise NotIncrementalError(f"{step.view} was not refreshed: {step.reason}", hint=step.hint)
            case _:
                assert_never(step)

    # From changes

    def maintain(self, step: Maintain, look: Look, tell: Tell) -> Outcome:
        session = self.session(look.view, SMALL_STEP if step.small else {})
        tell("computing its change")
        with _translated(look.view):
            change = self.change(step, look, session)
            if change is None:
                return self.untouched(look, self.note(look, "incremental", step.reason, step.cost.seconds))
            match step.maintenance.merge:
                case MergeBag():
                    return self.maintain_bag(step, step.maintenance.merge, look, session, change=change, tell=tell)
                case MergeGroups():
                    return self.maintain_groups(step, step.maintenance.merge, look, session, change=change, tell=tell)
                case MergeTop():
                    return self.maintain_top(step, step.maintenance.merge, look, session, change=change, tell=tell)

    def maintain_bag(
        self, step: Maintain, merge: MergeBag, look: Look, session: SparkSession, *, change: str, tell: Tell
    ) -> Outcome:
        weight = f.col(WEIGHT)
        came = f.coalesce(f.sum(f.when(weight > 0, weight)), f.lit(0)).alias("came")
        went = f.coalesce(f.sum(f.when(weight < 0, -weight)), f.lit(0)).alias("went")
        seen = self.compute(session, change, install.CHANGE_VIEW, came, went)
        note = self.note(look, "incremental", step.reason, step.cost.seconds)
        if not seen["came"] and not seen["went"]:
            return self.untouched(look, note)
        table, version = look.view.backing, look.standing.version
        way = step.install if seen["went"] else "append"
        statement = install.install_bag(way, table, version, merge)
        note = replace(note, rows_inserted=seen["came"], rows_deleted=seen["went"], install=way)
        tell(f"installing by {way}")
        self.install(session, look, note, statement)
        return Outcome("incremental", step.reason, seen["came"], seen["went"], way)

    def maintain_groups(
        self, step: Maintain, merge: MergeGroups, look: Look, session: SparkSession, *, change: str, tell: Tell
    ) -> Outcome:
        note = self.note(look, "incremental", step.reason, step.cost.seconds)
        table, version = look.view.backing, look.standing.version
        if step.install == "merge":
            seen = self.compute(session, change, install.CHANGE_VIEW, f.count(f.lit(1)).alias("touched"))
            if not seen["touched"]:
                return self.untouched(look, note)
            tell("installing by merge")
            commit = self.install(session, look, replace(note, install="merge"), install.merge_groups(table, merge))
            updated = commit.metrics.get("numTargetRowsUpdated", 0)
            came = commit.metrics.get("numTargetRowsInserted", 0) + updated
            went = commit.metrics.get("numTargetRowsDeleted", 0) + updated
            return Outcome("incremental", step.reason, came, went, "merge")
        hit, was, keep = f.col(install.HIT), f.col(install.WAS), f.col(install.KEEP)
        seen = self.compute(
            session,
            install.merged_groups(table, version, merge, change),
            install.CONTENT_VIEW,
            f.count_if(hit).alias("touched"),
            f.count_if(hit & keep).alias("came"),
            f.count_if(hit & was).alias("went"),
        )
        if not seen["touched"]:
            return self.untouched(look, note)
        statement = install.rewrite_groups(table, merge)
        note = replace(note, rows_inserted=seen["came"], rows_deleted=seen["went"], install="rewrite")
        tell("installing by rewrite")
        self.install(session, look, note, statement)
        return Outcome("incremental", step.reason, seen["came"], seen["went"], "rewrite")

    def maintain_top(
        self, step: Maintain, merge: MergeTop, look: Look, session: SparkSession, *, change: str, tell: Tell
    ) -> Outcome:
        query = install.merged_top(look.view.backing, look.standing.version, merge, change)
        was, kept, none = f.col(install.WAS), f.col(install.KEEP), f.lit(0)
        seen = self.compute(
            session,
            query,
            install.CONTENT_VIEW,
            f.sum(f.greatest(kept - was, none)).alias("came"),
            f.sum(f.greatest(was - kept, none)).alias("went"),
            f.sum(kept).alias("kept"),
            f.count_if(f.col(WHOLE)).alias("whole"),
        )
        note = self.note(look, "incremental", step.reason, step.cost.seconds)
        if not seen["came"] and not seen["went"]:
            return self.untouched(look, note)
        if not seen["whole"] and seen["kept"] < merge.wanted:
            raise NotThisTimeError(f"of the first rows, {merge.wanted:,} are wanted and only {seen['kept']:,} are left")
        note = replace(note, rows_inserted=seen["came"], rows_deleted=seen["went"], install="rewrite")
        tell("installing by rewrite")
        self.install(session, look, note, install.overwrite(look.view.backing, install.kept_top(merge)))
        return Outcome("incremental", step.reason, seen["came"], seen["went"], "rewrite")

    def change(self, step: Maintain, look: Look, session: SparkSession) -> str | None:
        """The SQL of the change, over what is read once; None if the answers to its questions leave nothing of it."""
        planned = step.maintenance
        rows = {table: sizes.rows for table, sizes in look.situation.sizes.items()}
        leaves = ReadOnce(session, look.leaves, rows, planned.change, *(q.keys for q in planned.questions))
        found = answered(planned, look, session, leaves)
        leaves.mention([found.change])
        return None if found.nothing else unparse(found.change, leaves)

    def untouched(self, look: Look, note: RefreshNote) -> Outcome:
        reason = "the changes of its sources do not change it"
        self.record(look, replace(note, strategy="none", reason=reason))
        return Outcome("none", reason, 0, 0)

    def compute(self, session: SparkSession, query: str, view: str, *measures: object) -> Mapping[str, int]:
        """Run a query once, keep its rows under a temporary name, and return what was counted on the way."""
        counted = Observation()
        frame: DataFrame = session.sql(query).observe(counted, *measures)  # type: ignore[arg-type]
        frame.localCheckpoint().createOrReplaceTempView(view)
        return {name: int(value or 0) for name, value in counted.get.items()}

    # All of it

    def recompute(self, reason: str, look: Look, tell: Tell, predicted: float | None = None) -> Outcome:
        session = self.session(look.view, self.fitting(look.situation.source_rows + look.situation.rows))
        tell("recomputing it")
        before = look.situation.rows
        note = self.note(look, "recompute", reason, predicted)
        note = replace(note, install="overwrite", rows_deleted=before)
        with _translated(look.view):
            query = content_query(look.view, look.leaves, self.registry.find)
            commit = self.install(session, look, note, install.overwrite(look.view.backing, query), may_be_empty=True)
        return Outcome("recompute", reason, commit.metrics.get("numOutputRows", 0), before, "overwrite")

    # Commits

    def note(self, look: Look, strategy: Strategy, reason: str, predicted: float | None = None) -> RefreshNote:
        return RefreshNote(
            view=look.view.id,
            sequence=look.standing.next_sequence,
            refresh=uuid.uuid4().hex,
            covers=dict(look.covers),
            strategy=strategy,
            reason=reason,
            base=look.standing.version,
            started=int(time.time() * 1000),
            predicted=predicted,
            one_moment=look.one_moment,
        )

    def install(
        self, session: SparkSession, look: Look, note: RefreshNote, statement: str, *, may_be_empty: bool = False
    ) -> Commit:
        """Run a statement as the refresh's one commit, and see that the commit is there."""
        view = look.view
        with only_installer(self.registry.tables.folder(view.backing)), committing(session, view.id, note):
            now = self.registry.current(view)
            if now is None or now.id != view.id:
                raise ConflictError(
                    f"{view.name} was replaced by another process at the same time; nothing was applied"
                )
            session.sql(statement).collect()
        commit = self.find_commit(view, note)
        if commit is None and may_be_empty and self.registry.log(view).version() == note.base:
            # Nothing replaced by nothing makes no commit.
            self.record(look, note)
            commit = self.find_commit(view, note)
        if commit is None:
            raise ConflictError(f"{view.name} was refreshed by another process at the same time; nothing was applied")
        return commit

    def record(self, look: Look, note: RefreshNote) -> None:
        """Move the covered versions on without touching data."""
        view = look.view
        moved = replace(note, moves=True)
        session = self.session(view, {})
        text = string_literal(moved.to_json())
        with _translated(view), only_installer(self.registry.tables.folder(view.backing)):
            session.conf.set(_USER_METADATA, moved.to_json())
            session.sql(f"ALTER TABLE {view.backing} SET TBLPROPERTIES ({string_literal(COVERS_PROPERTY)} = {text})")

    def find_commit(self, view: View, note: RefreshNote) -> Commit | None:
        log = self.registry.log(view)
        for version in range(log.version(), note.base, -1):
            commit = log.commit(version)
            found = RefreshNote.of(commit.user_metadata) if commit else None
            if found is not None and found.refresh == note.refresh:
                return commit
        return None

    def fitting(self, rows: int) -> Mapping[str, str]:
        """Settings for a step over so many rows."""
        return SMALL_STEP if rows <= self.settings.small_rows else {}

    def session(self, view: View, more: Mapping[str, str]) -> SparkSession:
        """A private session with the settings that the view's text was written for."""
        session = private_session(self.spark, {**view.settings, **more})
        if view.namespace:
            session.sql(f"USE {canonical(view.namespace)}")
        return session


def answered(planned: Maintenance, look: Look, session: SparkSession, leaves: Leaves) -> Maintenance:
    """What was planned, or what reads less if the answers to its questions allow it."""
    replaced = {q.table for q in planned.questions if not session.sql(unparse(q.keys, leaves)).isEmpty()}
    apart = {q.table for q in planned.questions} - replaced
    situation = look.situation
    if not apart or situation.kept is None:
        return planned
    changed: Changed = {**situation.changed, **dict.fromkeys(apart, "apart")}
    return maintenance(situation.kept, changed, situation.declared)


@contextmanager
def committing(session: SparkSession, view_id: str, note: RefreshNote) -> Iterator[None]:
    """Every commit made inside carries the note, and a transaction number as compare-and-swap."""
    confs = {
        _USER_METADATA: note.to_json(),
        _TXN_APP: transaction_id(view_id),
        _TXN_VERSION: str(note.sequence),
    }
    for key, value in confs.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in confs:
            session.conf.unset(key)


@contextmanager
def _translated(view: View) -> Iterator[None]:
    """Spark's and Delta's errors as ours: a conflict, a history that is gone, a warehouse that cannot be written."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise translate(error, view) from error


def translate(error: Exception, view: View, done: str = "refreshed") -> Exception:
    """Our error for Spark's: what was to be `done` to the view, and why it was not."""
    text = str(error)
    if any(word in text for word in _CONFLICT):
        return ConflictError(f"{view.name} was changed by another process at the same time; nothing was applied")
    if any(word in text for word in _GONE):
        gone = "files or versions that the change needs are gone (VACUUM or log cleaning)"
        return NotThisTimeError(f"its changes cannot be read: {gone}")
    if "TABLE_OR_VIEW_NOT_FOUND" in text or "DELTA_TABLE_NOT_FOUND" in text:
        return SourceError(f"a table that {view.name} needs is gone: {_first_line(text)}")
    if any(word in text for word in _NOT_WRITABLE):
        return StorageError(f"{view.name} cannot be written: {_first_line(text)}", hint="is the warehouse read-only?")
    return ViewkeeperError(f"{view.name} was not {done}: {_first_line(text)}")


def _first_line(text: str) -> str:
    told = text.split("An error occurred while calling", 1)[-1].partition("\n: ")[2] or text
    lines = [line.strip() for line in told.splitlines() if line.strip() and not line.startswith("\tat ")]
    return lines[0][:500] if lines else "Spark gave no message"
