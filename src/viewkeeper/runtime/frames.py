"""Rows of data files as Spark reads them, without those that were deleted."""

from __future__ import annotations

import json
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from viewkeeper.sql.render import string_literal
from viewkeeper.store.files import DataFiles, file_name, local
from viewkeeper.store.vectors import Places


def rows_of(session: SparkSession, files: DataFiles) -> DataFrame:
    """All rows of the files that were not deleted."""
    schema = StructType.fromJson(json.loads(files.schema))
    reader, parts = session.read.schema(schema), []
    if files.whole:
        parts.append(reader.parquet(*map(local, files.whole)))
    if files.masked:
        gone = " OR ".join(_is_at(path, at) for path, at in files.masked)
        parts.append(reader.parquet(*(local(path) for path, _ in files.masked)).where(f"NOT ({gone})"))
    if files.only_at:
        there = " OR ".join(_is_at(path, at) for path, at in files.only_at)
        parts.append(reader.parquet(*(local(path) for path, _ in files.only_at)).where(there))
    return reduce(DataFrame.unionAll, parts) if parts else session.createDataFrame([], schema)


def _is_at(path: str, at: Places) -> str:
    name = string_literal(file_name(path))
    return f"(_metadata.file_name = {name} AND _metadata.row_index IN ({', '.join(map(str, at.tolist()))}))"
