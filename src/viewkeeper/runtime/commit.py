"""What a refresh commits: one commit for each view, with a note that says what it covers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.errors import ConflictError, ViewkeeperError
from viewkeeper.planner.cost import Cost
from viewkeeper.planner.plan import Strategy
from viewkeeper.runtime.failures import translated
from viewkeeper.runtime.guard import only_installer
from viewkeeper.runtime.install import Merge, Rows
from viewkeeper.runtime.look import Look
from viewkeeper.runtime.measured import cost_parts
from viewkeeper.runtime.spark import private_session
from viewkeeper.runtime.write import write_here, write_rows
from viewkeeper.sql.render import quote, string_literal
from viewkeeper.store.commits import Mode, NewFiles, commit_files
from viewkeeper.store.files import DataFiles
from viewkeeper.store.log import Commit
from viewkeeper.store.names import canonical
from viewkeeper.store.registry import Registry
from viewkeeper.store.vectors import Places
from viewkeeper.store.views import COVERS_PROPERTY, RefreshNote, View, transaction_id

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
# Delta's MERGE fails where Spark pads a CHAR that it compares. What is compared here is padded already.
_CHAR_AS_STRING = "spark.sql.legacy.charVarcharAsString"
_COMPACTING = {
    # What lies together is clustered once more with what came since until it is so large (bytes).
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold": "1000000000",
    "parquet.block.size": "16000000",  # of so many bytes, rows that are looked up are found or not
}
_TXN_APP = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"


@dataclass(frozen=True)
class Commits:
    """Makes commits of one warehouse's views, and sees that they are there."""

    spark: SparkSession
    registry: Registry

    def note(
        self, look: Look, strategy: Strategy, reason: str, cost: Cost | None = None, left: float | None = None
    ) -> RefreshNote:
        return RefreshNote(
            view=look.view.id,
            sequence=look.standing.next_sequence,
            refresh=uuid.uuid4().hex,
            covers=dict(look.covers),
            strategy=strategy,
            reason=reason,
            base=look.standing.version,
            started=look.started,
            predicted=cost.seconds if cost else None,
            cost=cost_parts(cost) if cost else None,
            left=left,
            one_moment=look.one_moment,
        )

    def install(
        self,
        session: SparkSession,
        look: Look,
        note: RefreshNote,
        what: Rows | Merge | NewFiles,
        *,
        small: bool = False,
        few: bool = False,
        may_be_empty: bool = False,
    ) -> Commit:
        """Bring it into the view's table as the refresh's one commit, and see that the commit is there.

        Rows are written as one file if there are not many: by Spark if that is a guess (`small`), by this process if
        they are `few`.
        """
        view = look.view
        log = self.registry.log(view)
        if (small or few) and isinstance(what, Rows):
            what = self.written(look, session.sql(what.query), what.mode, few=few) or what
        with only_installer(self.registry.tables.folder(view.backing)):
            now = self.registry.current(view)
            if now is None or now.id != view.id:
                raise ConflictError(
                    f"{view.name} was replaced by another process at the same time; nothing was applied"
                )
            if isinstance(what, NewFiles):
                commit_files(what, note.base, note.to_json(), (transaction_id(view.id), note.sequence))
            else:
                if isinstance(what, Merge):
                    session.conf.set(_CHAR_AS_STRING, "true")
                with committing(session, view.id, note):
                    session.sql(what.sql).collect()
        commit = self.find_commit(view, note)
        if commit is None and may_be_empty and log.version() == note.base:
            # Nothing replaced by nothing makes no commit.
            self.record(look, note)
            commit = self.find_commit(view, note)
        if commit is None:
            raise ConflictError(f"{view.name} was refreshed by another process at the same time; nothing was applied")
        return commit

    def written(self, look: Look, rows: DataFrame, mode: Mode, *, few: bool) -> NewFiles | None:
        """The rows in a file for the view's table, which a commit can add; None where only Delta can write it."""
        folder = self.registry.tables.folder(look.view.backing)
        files = self.files(look.view.backing, look.standing.version)
        return write_rows(rows, mode, files, folder, few=few) if files is not None and folder is not None else None

    def written_here(
        self, look: Look, rows: pa.Table, mode: Mode, gone: Mapping[str, Places] | None = None
    ) -> NewFiles | None:
        """Rows of this process in such a file, and the places of rows that go."""
        folder = self.registry.tables.folder(look.view.backing)
        files = self.files(look.view.backing, look.standing.version)
        new = write_here(rows, mode, files, folder) if files is not None and folder is not None else None
        return new if new is None or gone is None else replace(new, gone=gone)

    def record(self, look: Look, note: RefreshNote) -> None:
        """Move the covered versions on without touching data."""
        view = look.view
        moved = replace(note, moves=True).to_json()
        folder, files = self.registry.tables.folder(view.backing), self.files(view.backing, note.base)
        with translated(view), only_installer(folder):
            if folder is not None and files is not None and files.writable:
                commit_files(NewFiles(folder, "append", {}), note.base, moved)
                return
            session = self.session(view, {})
            session.conf.set(_USER_METADATA, moved)
            property_ = f"{string_literal(COVERS_PROPERTY)} = {string_literal(moved)}"
            session.sql(f"ALTER TABLE {view.backing} SET TBLPROPERTIES ({property_})")

    def compact(self, view: View, by: Sequence[str]) -> None:
        """Put small files together, and leave out rows that are gone; it is the same view before and after.

        Its rows are then clustered, as its definition has it, else by these columns.
        """
        with suppress(PySparkException, Py4JJavaError), only_installer(self.registry.tables.folder(view.backing)):
            session = self.session(view, _COMPACTING)
            detail = session.sql(f"DESCRIBE DETAIL {view.backing}").collect()[0]
            if by and not detail["clusteringColumns"]:
                with suppress(PySparkException):  # a column without statistics
                    session.sql(f"ALTER TABLE {view.backing} CLUSTER BY ({', '.join(map(quote, by))})")
            session.sql(f"OPTIMIZE {view.backing}").collect()

    def find_commit(self, view: View, note: RefreshNote) -> Commit | None:
        log = self.registry.log(view)
        for version in range(log.version(), note.base, -1):
            commit = log.commit(version)
            found = RefreshNote.of(commit.user_metadata) if commit else None
            if found is not None and found.refresh == note.refresh:
                return commit
        return None

    def files(self, table: str, version: int) -> DataFiles | None:
        """The files of a version; where it cannot be opened, Delta will say why."""
        try:
            return self.registry.tables.log(table).files(version)
        except ViewkeeperError:
            return None

    def session(self, view: View, more: Mapping[str, str]) -> SparkSession:
        """A private session with the settings that the view's text was written for."""
        session = private_session(self.spark, {**view.settings, **more})
        if view.namespace:
            session.sql(f"USE {canonical(view.namespace)}")
        return session


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
