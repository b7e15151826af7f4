"""Rows of a few data files, read into this process: where rows are few, a Spark job takes longer than they do.

Read are only files whose values mean here just what they mean to Spark; for all others the answer is None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.algebra.types import decimal_parts
from viewkeeper.store.changes import CAME, CHANGE_TYPE
from viewkeeper.store.files import DataFiles

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # under which a schema says CHAR of what it calls a string
MOST_ROWS = 100_000  # in all files: without a feed, few changed rows may stand in large files
_MOMENT = pa.timestamp("us", "UTC")
_TYPES = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": _MOMENT,
    "timestamp_ntz": pa.timestamp("us"),
}
_OTHER_CALENDAR = {
    b"org.apache.spark.legacyDateTime",
    b"org.apache.spark.legacyINT96",
}  # days are counted in another way


@dataclass(frozen=True)
class Part:
    """Files of a change, and how often each of their rows came; None where every row says it, as in a feed."""

    files: DataFiles
    weight: int | None


def net_change(parts: Sequence[Part], columns: Sequence[str]) -> pa.Table | None:
    """What the parts come to together: each row once, with its weight."""
    found = [_weighted(part, columns) if columns else None for part in parts]
    tables = [table for table in found if table is not None]
    if len(tables) < len(found):
        return None
    counted = pa.concat_tables(tables).group_by(list(columns), use_threads=False).aggregate([(WEIGHT, "sum")])
    net = counted.rename_columns([*columns, WEIGHT])
    return net.filter(pc.field(WEIGHT) != 0)


def rows_of(files: DataFiles, columns: Sequence[str]) -> pa.Table | None:
    """Some columns of all rows, at least one: of rows without columns Arrow does not know how many there are."""
    types = {field["name"]: _arrow_type(field) for field in json.loads(files.schema)["fields"]}
    wanted = {name: types.get(name) for name in columns}
    if files.masked or not wanted or not all(wanted.values()):
        return None
    schema = pa.schema(wanted.items())
    try:
        if sum(pq.read_metadata(path).num_rows for path in files.whole) > MOST_ROWS:
            return None
        read = [_of_file(path, schema) for path in files.whole]
    except (OSError, pa.ArrowException):  # Spark will say what is wrong
        return None
    tables = [table for table in read if table is not None]
    return pa.concat_tables([schema.empty_table(), *tables]) if len(tables) == len(read) else None


def _weighted(part: Part, columns: Sequence[str]) -> pa.Table | None:
    told = () if part.weight is not None else (CHANGE_TYPE,)
    table = rows_of(part.files, (*columns, *told))
    if table is None:
        return None
    if part.weight is not None:
        weights = pa.repeat(pa.scalar(part.weight, pa.int64()), len(table))
    else:
        came = pc.is_in(table[CHANGE_TYPE], pa.array(CAME))
        weights = pc.if_else(came, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    return table.select(list(columns)).append_column(WEIGHT, weights)


def _of_file(path: str, schema: pa.Schema) -> pa.Table | None:
    """Some columns of one file, NULL where they came later than the file; None if any may mean something else."""
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        stored = {name.lower(): name for name in file.schema_arrow.names}
        told = file.metadata.metadata or {}
        if len(stored) < len(file.schema_arrow.names) or not _OTHER_CALENDAR.isdisjoint(told):
            return None
        table = file.read([stored[name.lower()] for name in schema.names if name.lower() in stored])
        rows = file.metadata.num_rows
    columns = [
        _as(table[stored[field.name.lower()]], field.type)
        if field.name.lower() in stored
        else pa.chunked_array([pa.nulls(rows, field.type)])
        for field in schema
    ]
    return pa.table(columns, schema) if all(column is not None for column in columns) else None


def _as(values: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray | None:
    """The values, if they are of this type; equal numbers look the same."""
    if type_ == _MOMENT and values.type == pa.timestamp("us"):  # Spark's old way to store a moment, in UTC
        return pc.assume_timezone(values, "UTC")
    if values.type != type_:
        return None
    if pa.types.is_floating(type_):
        positive = pc.if_else(pc.equal(values, pa.scalar(0, type_)), pa.scalar(0, type_), values)
        return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), type_), positive)
    return values


def _arrow_type(field: Mapping[str, Any]) -> pa.DataType | None:
    type_ = field["type"]
    # Spark pads what it compares a CHAR with, as long as it knows the column for one.
    if not isinstance(type_, str) or field["metadata"].get(DECLARED_TYPE, "").startswith("char("):
        return None
    decimal = decimal_parts(type_)
    return _TYPES.get(type_) if decimal is None else pa.decimal128(*decimal)
