"""The local session's catalog serves one folder at a time."""

from __future__ import annotations

from pyspark.sql import SparkSession

from viewkeeper.runtime.spark import local_session
from viewkeeper.sql.unparse import string_literal
from viewkeeper.store.tables import FolderTables

_serving: FolderTables | None = None


def start(tables: FolderTables) -> SparkSession:
    """A local session whose tables are those of the folder; another folder that it served is let go."""
    global _serving  # noqa: PLW0603 - there is one Spark per process
    spark = local_session(tables.root)
    if _serving is not None and _serving is not tables:
        release(_serving)
    spark.sql(f"ALTER DATABASE default SET LOCATION {string_literal(tables.root.as_uri())}")
    tables.attach(spark)
    _serving = tables
    return spark


def release(tables: FolderTables) -> None:
    """Take the folder's tables and views out of the session's catalog; the folder itself is not touched."""
    global _serving  # noqa: PLW0603
    tables.detach()
    if _serving is tables:
        _serving = None
