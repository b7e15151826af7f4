"""Writing the rows of a query as data files that a commit can name."""

from __future__ import annotations

import json
import shutil
import uuid
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from viewkeeper.sql.render import quote
from viewkeeper.store.columns import NotHereError
from viewkeeper.store.commits import Mode, NewFiles
from viewkeeper.store.files import DataFiles, local
from viewkeeper.store.rows import schema_of

MOST_HERE = 200_000  # rows: more are not brought to this process


def write_rows(rows: DataFrame, mode: Mode, table: DataFiles, folder: Path, *, few: bool) -> NewFiles | None:
    """Write the rows into the table's folder as one file, or return None if they need Delta's own writer.

    Rows that are likely few are written by this process, in half the time that Spark's job takes.
    """
    if not table.writable:
        return None
    columns = stored_columns(rows, StructType.fromJson(json.loads(table.schema)))
    if columns is None:
        return None
    one = rows.select(*columns).coalesce(1)
    schema = _schema(table, one.columns) if few else None
    if schema is None:
        return NewFiles(folder, mode, _by_spark(one, folder))
    here = one.limit(MOST_HERE + 1).toArrow()
    return NewFiles(folder, mode, _here(here.cast(schema), folder)) if len(here) <= MOST_HERE else None


def write_here(rows: pa.Table, mode: Mode, table: DataFiles, folder: Path) -> NewFiles | None:
    """Write rows of this process, which have the table's columns in their order; None if that is not ours to do."""
    schema = _schema(table, rows.column_names)
    stored = [field["name"] for field in json.loads(table.schema)["fields"]]
    if not table.writable or schema is None or rows.column_names != stored or len(rows) > MOST_HERE:
        return None
    return NewFiles(folder, mode, _here(rows.cast(schema), folder))


def _schema(table: DataFiles, columns: list[str]) -> pa.Schema | None:
    try:
        return schema_of(table, columns)
    except NotHereError:  # Spark has types that Arrow would write in another way
        return None


def _here(rows: pa.Table, folder: Path) -> dict[str, int]:
    if not len(rows):
        return {}
    path = folder / f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    try:
        with pq.ParquetWriter(path, rows.schema, store_schema=False) as file:
            file.write_table(rows)
            # Without a version, settings of Spark's tell whose calendar the days and times are of.
            file.add_key_value_metadata({"org.apache.spark.version": version("pyspark")})
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return {path.name: len(rows)}


def _by_spark(rows: DataFrame, folder: Path) -> dict[str, int]:
    counted, place = Observation(), folder / f"vk-{uuid.uuid4().hex}"
    one = rows.observe(counted, f.count(f.lit(1)).alias("rows"))
    try:
        one.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(local(str(place)))
        count = int(counted.get["rows"])
        written = [part.rename(folder / part.name) for part in place.glob("*.parquet")] if count else []
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return {path.name: count for path in written}


def discard(files: NewFiles) -> None:
    """Remove files that no commit will name."""
    for name in files.rows:
        (files.folder / name).unlink(missing_ok=True)


def stored_columns(frame: DataFrame, schema: StructType) -> list[Column] | None:
    """Each column under the name and type that it is stored with; None if a cast would hide what does not fit."""
    pairs = [(given, kept) for given, kept in zip(frame.schema.fields, schema.fields, strict=True)]
    cast = [k.name for g, k in pairs if g.dataType.simpleString() != k.dataType.simpleString()]
    if cast and frame.sparkSession.conf.get("spark.sql.ansi.enabled") != "true":
        return None
    return [
        (f.col(quote(g.name)).cast(k.dataType) if k.name in cast else f.col(quote(g.name))).alias(k.name)
        for g, k in pairs
    ]
