"""Writing the rows of a query as data files that a commit can name."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from viewkeeper.sql.render import quote
from viewkeeper.store.commits import Mode, NewFiles
from viewkeeper.store.files import DataFiles, local


def write_rows(rows: DataFrame, mode: Mode, table: DataFiles, folder: Path) -> NewFiles | None:
    """Write the rows into the table's folder as one file, or return None if they need Delta's own writer."""
    if not table.writable:
        return None
    columns = stored_columns(rows, StructType.fromJson(json.loads(table.schema)))
    if columns is None:
        return None
    counted, place = Observation(), folder / f"vk-{uuid.uuid4().hex}"
    one = rows.select(*columns).observe(counted, f.count(f.lit(1)).alias("rows")).coalesce(1)
    try:
        one.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(local(str(place)))
        count = int(counted.get["rows"])
        written = [part.rename(folder / part.name) for part in place.glob("*.parquet")] if count else []
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return NewFiles(folder, mode, {path.name: count for path in written})


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
