"""The one local Spark of a process, whose catalog serves one folder."""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from viewkeeper.errors import SetupError
from viewkeeper.runtime.spark import local_session
from viewkeeper.store.tables import FolderTables

_started: SparkSession | None = None
_serves: Path | None = None


def start(tables: FolderTables) -> SparkSession:
    """A session whose tables are those of the folder: the one that serves it already, or a new one.

    Spark's catalog cannot be told to forget a table without deleting it, so another folder gets another session.
    """
    global _started, _serves
    # Of the context, not of the session: that is another one, or none, in every thread.
    if SparkContext._active_spark_context is not None and not _alive(_started):
        raise SetupError(
            "a Spark session with a catalog of its own is running in this process",
            hint="Warehouse.open(spark) uses it; or stop it first",
        )
    if _alive(_started) and _started is not None:
        if _serves == tables.root:
            tables.attach(_started)
            return _started
        stop()
    _started, _serves = local_session(tables.root.as_uri()), tables.root
    tables.attach(_started)
    return _started


def stop() -> None:
    """Stop the session that `start` gave; the folder it served is complete at any time."""
    global _started  # noqa: PLW0603
    if _started is not None:
        _started.stop()
    _started = None


def _alive(session: SparkSession | None) -> bool:
    return session is not None and session.sparkContext is SparkContext._active_spark_context
