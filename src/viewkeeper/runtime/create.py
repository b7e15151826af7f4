"""Creating, replacing and dropping views: one commit makes the table that is the view."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.algebra.clock import CLOCK
from viewkeeper.changes.stored import storable_names
from viewkeeper.errors import SqlError, StorageError
from viewkeeper.runtime.define import sql_error
from viewkeeper.runtime.execute import Executor, committing, translate
from viewkeeper.runtime.forms import content_query, form_of, public_relation
from viewkeeper.runtime.look import Versions, clock_moments
from viewkeeper.settings import Settings
from viewkeeper.sql.unparse import quote, string_literal, unparse
from viewkeeper.store.changes import Unchanged
from viewkeeper.store.leaves import Pin, PinnedLeaves
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import COVERS_PROPERTY, VIEW_PROPERTY, Covered, RefreshNote, View


@dataclass(frozen=True)
class Creator:
    """Makes views' tables and what readers see of them."""

    spark: SparkSession
    registry: Registry
    settings: Settings

    def fill(self, view: View, *, replace: bool) -> None:
        """Create the view's table with its content, definition and coverage in one commit, then show it."""
        executor = Executor(self.spark, self.registry, self.settings)
        versions = Versions(self.registry)
        versions.pin(view.base_tables)
        tables = self.registry.tables
        pins = {t: Pin(v := versions.of(t), v, Unchanged()) for t in view.tables}
        covers = {t: Covered(tables.log(t).snapshot(p.new).metadata.id, p.new) for t, p in pins.items()}
        moments = clock_moments(view, {}, versions.moment)
        if moments is not None:
            covers[CLOCK] = Covered(CLOCK, moments[1])
        note = RefreshNote(
            view=view.id,
            sequence=1,
            refresh=uuid.uuid4().hex,
            covers=covers,
            strategy="recompute",
            reason="created",
            base=-1,
            started=int(time.time() * 1000),
            rows_deleted=0,
            install="create",
            one_moment=versions.at_once.issuperset(view.base_tables),
        )
        rows = sum(tables.log(t).snapshot(p.new).rows or 0 for t, p in pins.items())
        session = executor.session(view, executor.fitting(rows) if not view.reads_unversioned else {})
        query = content_query(view, PinnedLeaves(pins, moments), self.registry.find)
        self._clear_leftovers(view)
        try:
            with committing(session, view.id, note):
                session.sql(_create_table(view, note, query, replace=replace)).collect()
        except PySparkException as error:
            if error.getCondition() in ("DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW", "CAST_INVALID_INPUT"):
                raise sql_error(error) from error
            raise translate(error, view, "created") from error
        except Py4JJavaError as error:
            raise translate(error, view, "created") from error
        self.show(view)

    def show(self, view: View) -> None:
        """The Spark view that readers use, with exactly the view's columns."""
        columns = ", ".join(
            quote(name) + (f" COMMENT {string_literal(comment)}" if (comment := view.column_comments.get(name)) else "")
            for name, _ in view.columns
        )
        comment = f" COMMENT {string_literal(view.comment)}" if view.comment else ""
        session = Executor(self.spark, self.registry, self.settings).session(view, {})
        text = unparse(public_relation(view))
        session.sql(f"CREATE OR REPLACE VIEW {view.name} ({columns}){comment} AS {text}")

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
        "delta.enableDeletionVectors": "false",
        **view.properties,
        VIEW_PROPERTY: view.to_json(),
        COVERS_PROPERTY: json.dumps(json.loads(note.to_json())),
    }
    listed = ", ".join(f"{string_literal(k)} = {string_literal(v)}" for k, v in properties.items())
    clustered = f"\nCLUSTER BY ({', '.join(map(quote, _stored_columns(view)))})" if view.cluster_by else ""
    comment = f"\nCOMMENT {string_literal(view.comment)}" if view.comment else ""
    verb = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
    return f"{verb} {view.backing} USING DELTA{clustered}{comment}\nTBLPROPERTIES ({listed})\nAS {query}"


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
