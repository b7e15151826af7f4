"""Creating, replacing and dropping views: one commit makes the table that is the view."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.algebra.clock import CLOCK
from viewkeeper.algebra.reasons import Reason
from viewkeeper.changes.stored import storable_names
from viewkeeper.errors import ConflictError, SqlError, StorageError
from viewkeeper.planner.build import content_cost
from viewkeeper.runtime.commit import Commits, committing
from viewkeeper.runtime.define import sql_error
from viewkeeper.runtime.failures import translate
from viewkeeper.runtime.forms import content_query, form_of, maintained, public_relation
from viewkeeper.runtime.guard import only_installer
from viewkeeper.runtime.look import Versions, clock_moments, table_sizes
from viewkeeper.runtime.measured import cost_parts
from viewkeeper.runtime.spark import fitting
from viewkeeper.runtime.takeover import Takeover, takeover, told
from viewkeeper.settings import Settings
from viewkeeper.sql.render import quote, string_literal
from viewkeeper.sql.unparse import unparse
from viewkeeper.store.changes import Unchanged
from viewkeeper.store.leaves import Pin, PinnedLeaves
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import COVERS_PROPERTY, VIEW_PROPERTY, Covered, Covers, RefreshNote, View, now

_SHOWS = "viewkeeper.shows"  # a property of the Spark view: of which definition it is


@dataclass(frozen=True)
class Creator:
    """Makes views' tables and what readers see of them."""

    spark: SparkSession
    registry: Registry
    settings: Settings

    def fill(self, view: View, reason: str = "created", *, replace: bool = False) -> None:
        """Create the view's table with its content, definition and coverage in one commit, then show it."""
        versions = Versions(self.registry)
        versions.pin(view.base_tables)
        tables = self.registry.tables
        pins = {t: Pin(v := versions.of(t), v, Unchanged()) for t in view.tables}
        covers = {t: Covered(tables.log(t).snapshot(p.new).metadata.id, p.new) for t, p in pins.items()}
        moments = clock_moments(view, {}, versions.moment)
        if moments is not None:
            covers[CLOCK] = Covered(CLOCK, moments[1])
        sizes = {t: table_sizes(tables.log(t).snapshot(p.new)) for t, p in pins.items()}
        note = replaced(
            _first_note(view, covers, reason),
            rows_deleted=0,
            cost=cost_parts(content_cost(maintained(view), sizes)),
            one_moment=versions.at_once.issuperset(view.base_tables),
        )
        rows = sum(known.rows for known in sizes.values())
        query = content_query(view, PinnedLeaves(pins, moments), self.registry.find)
        self._clear_leftovers(view)
        self._make_table(view, note, query, None if view.reads_unversioned else rows, replace=replace)
        self.show(view)

    def replace(self, view: View, old: View) -> tuple[View, Takeover | Reason]:
        """Fill the view from what it replaces, where that is exact, else from its sources; the view as it is kept."""
        found = takeover(old, view, self.registry)
        if isinstance(found, Reason):
            self.fill(view, f"replaced, {told(found)}", replace=True)
            return view, found
        if found.in_place:
            view = replaced(view, id=old.id)
            self._redefine(view, found)
        else:
            self._take_over(view, found)
        self.show(view)
        return view, found

    def _redefine(self, view: View, found: Takeover) -> None:
        """Write the new definition to a table that stays as it is, in one commit."""
        note = replaced(
            _first_note(view, found.covers, f"replaced, {told(found)}"),
            sequence=found.standing.next_sequence,
            strategy="none",
            install="",
            base=found.standing.version,
            moves=True,
            one_moment=found.standing.one_moment,
        )
        session = self._session(view, {})
        properties = {VIEW_PROPERTY: view.to_json(), "comment": view.comment or ""}
        with self._one_commit(session, view, note):
            self._check_unchanged(view, found)
            session.sql(f"ALTER TABLE {view.backing} SET TBLPROPERTIES ({_listed(properties)})")

    def _take_over(self, view: View, found: Takeover) -> None:
        """Replace the table by what the new definition makes of it, at the versions that it covers, in one commit."""
        version = found.standing.version
        query = unparse(found.content, PinnedLeaves({view.backing: Pin(version, version, Unchanged())}))
        note = replaced(
            _first_note(view, found.covers, f"replaced, {told(found)}"),
            strategy="incremental",
            one_moment=found.standing.one_moment,
        )
        self._check_unchanged(view, found)
        self._make_table(view, note, query, found.rows, replace=True)

    def _check_unchanged(self, view: View, found: Takeover) -> None:
        """What the table covers was read from its last commits: they must still be the last."""
        if self.registry.log(view).version() != found.standing.version:
            raise ConflictError(f"{view.name} was changed by another process at the same time; nothing was applied")

    def _session(self, view: View, more: Mapping[str, str]) -> SparkSession:
        return Commits(self.spark, self.registry).session(view, more)

    def _make_table(self, view: View, note: RefreshNote, query: str, rows: int | None, *, replace: bool) -> None:
        """Make the table by one statement that reads so many rows; None, if nobody knows."""
        session = self._session(view, fitting(self.settings, rows))
        with self._one_commit(session, view, note):
            session.sql(_create_table(view, note, query, replace=replace)).collect()

    @contextmanager
    def _one_commit(self, session: SparkSession, view: View, note: RefreshNote) -> Iterator[None]:
        """What is run inside is one commit with this note, and its errors are ours."""
        try:
            with only_installer(self.registry.tables.folder(view.backing)), committing(session, view.id, note):
                yield
        except PySparkException as error:
            if error.getCondition() in ("DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW", "CAST_INVALID_INPUT"):
                raise sql_error(error) from error
            raise translate(error, view, "created") from error
        except Py4JJavaError as error:
            raise translate(error, view, "created") from error

    def show(self, view: View) -> None:
        """The Spark view that readers use, with exactly the view's columns."""
        columns = ", ".join(
            quote(name) + (f" COMMENT {string_literal(comment)}" if (comment := view.column_comments.get(name)) else "")
            for name, _ in view.columns
        )
        comment = f" COMMENT {string_literal(view.comment)}" if view.comment else ""
        session = self._session(view, {})
        shown = f"({columns}){comment}\nTBLPROPERTIES ({_listed({_SHOWS: _digest(view)})})"
        session.sql(f"CREATE OR REPLACE VIEW {view.name} {shown}\nAS {unparse(public_relation(view))}")

    def is_shown(self, view: View) -> bool:
        """Whether readers see the view as it is defined now: a process may have been killed before it told them."""
        try:
            found = self.spark.sql(f"SHOW TBLPROPERTIES {view.name} ({string_literal(_SHOWS)})").first()
        except PySparkException:
            return False
        return found is not None and found["value"] == _digest(view)

    def drop(self, view: View) -> None:
        """First what readers see, then the table, so that nobody reads half of a view."""
        self.spark.sql(f"DROP VIEW IF EXISTS {view.name}")
        folder = self.registry.tables.folder(view.backing)
        self.spark.sql(f"DROP TABLE IF EXISTS {view.backing}")
        if folder is not None and folder.exists():
            _remove(folder, f"the files of {view.name}")
        self.registry.tables.sync()

    def _clear_leftovers(self, view: View) -> None:
        """A folder without a single commit is what a killed CREATE has left."""
        tables = self.registry.tables
        folder = tables.folder(view.backing)
        if folder is not None and folder.exists() and not tables.has_delta(view.backing):
            _remove(folder, "what a broken CREATE left")


def _digest(view: View) -> str:
    """A short name for all that readers see of a view's definition."""
    return hashlib.sha256(view.to_json().encode()).hexdigest()[:16]


def _remove(folder: Path, what: str) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass  # another process was first
    except OSError as error:
        raise StorageError(f"{what} at {folder} cannot be removed: {error.strerror}") from error


def _create_table(view: View, note: RefreshNote, query: str, *, replace: bool) -> str:
    properties = {
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
        **view.properties,
        VIEW_PROPERTY: view.to_json(),
        COVERS_PROPERTY: json.dumps(json.loads(note.to_json())),
    }
    clustered = f"\nCLUSTER BY ({', '.join(map(quote, _stored_columns(view)))})" if view.cluster_by else ""
    comment = f"\nCOMMENT {string_literal(view.comment)}" if view.comment else ""
    verb = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
    return f"{verb} {view.backing} USING DELTA{clustered}{comment}\nTBLPROPERTIES ({_listed(properties)})\nAS {query}"


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{string_literal(k)} = {string_literal(v)}" for k, v in properties.items())


def _first_note(view: View, covers: Covers, reason: str) -> RefreshNote:
    return RefreshNote(
        view=view.id,
        sequence=1,
        refresh=uuid.uuid4().hex,
        covers=covers,
        strategy="recompute",
        reason=reason,
        base=-1,
        started=now(),
        install="create",
    )


def _stored_columns(view: View) -> list[str]:
    """The table's columns for the view's CLUSTER BY columns."""
    form = form_of(view)
    if form is None:
        names = tuple(name for name, _ in view.columns)
        kept = dict(zip((n.lower() for n in names), storable_names(names), strict=True))
    else:
        kept = {f.name.lower(): f.name for f in form.kept.content.schema}
    stored = [kept.get(storable_names((c,))[0].lower()) for c in view.cluster_by]
    for column, found in zip(view.cluster_by, stored, strict=True):
        if found is None:
            raise SqlError(f"CLUSTER BY {column}: this column is not stored, but computed when the view is read")
    return [s for s in stored if s is not None]
