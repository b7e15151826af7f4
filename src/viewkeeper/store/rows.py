"""Rows of a few data files, read into this process: where rows are few, a Spark job takes longer than they do.

Read are only files whose values mean here just what they mean to Spark; for all others the answer is None.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
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
_AT_ONCE = 4  # files; Arrow uses all cores within one, but not all the time
_SURELY = 3  # times as many rows as are read here: more than that is not found out by reading
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


Among = Mapping[str, Sequence[Any]]  # values by column, NULL among them or not


@dataclass(frozen=True)
class Part:
    """Files of a change, and how often each of their rows came; None where every row says it, as in a feed."""

    files: DataFiles
    weight: int | None


def net_change(parts: Sequence[Part], columns: Sequence[str]) -> pa.Table | None:
    """What the parts come to together: each row once, with its weight."""
    weighted = _or_none(lambda: pa.concat_tables([_weighted(part, columns) for part in parts]))
    if weighted is None:
        return None
    added = weighted.group_by(list(columns), use_threads=False).aggregate([(WEIGHT, "sum")])
    return added.rename_columns([*columns, WEIGHT]).filter(pc.field(WEIGHT) != 0)


def rows_of(files: DataFiles, columns: Sequence[str]) -> pa.Table | None:
    """Some columns of all rows."""
    return _or_none(lambda: _rows_of(files, columns))


def rows_with(files: DataFiles, columns: Sequence[str], among: Among, most: int) -> pa.Table | None:
    """Some columns of the rows that have one of the given values in each column of `among`; None if they are more."""
    return _or_none(lambda: _rows_with(files, columns, among, most))


class _NotHereError(Exception):
    """Values that may not mean here what they mean to Spark, or more of them than are read here."""


def _or_none(read: Callable[[], pa.Table]) -> pa.Table | None:
    try:
        return read()
    except (_NotHereError, OSError, pa.ArrowException):  # if anything is wrong, Spark will say what
        return None


def _rows_of(files: DataFiles, columns: Sequence[str]) -> pa.Table:
    schema = _schema(files, columns)
    if files.masked or sum(pq.read_metadata(path).num_rows for path in files.whole) > MOST_ROWS:
        raise _NotHereError
    return pa.concat_tables([schema.empty_table(), *(_of_file(path, schema) for path in files.whole)])


def _weighted(part: Part, columns: Sequence[str]) -> pa.Table:
    told = () if part.weight is not None else (CHANGE_TYPE,)
    table = _rows_of(part.files, (*columns, *told))
    if part.weight is not None:
        weights = pa.repeat(pa.scalar(part.weight, pa.int64()), len(table))
    else:
        came = pc.is_in(table[CHANGE_TYPE], pa.array(CAME))
        weights = pc.if_else(came, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    return table.select(list(columns)).append_column(WEIGHT, weights)


def _schema(files: DataFiles, columns: Sequence[str]) -> pa.Schema:
    """At least one column: of rows without columns Arrow does not know how many there are."""
    types = {field["name"]: _arrow_type(field) for field in json.loads(files.schema)["fields"]}
    wanted = {name: types.get(name) for name in columns}
    if not wanted or not all(wanted.values()):
        raise _NotHereError
    return pa.schema(wanted.items())


@contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        names = file.schema_arrow.names
        if len({name.lower() for name in names}) < len(names) or not _OTHER_CALENDAR.isdisjoint(
            file.metadata.metadata or {}
        ):
            raise _NotHereError
        yield file


def _of_file(path: str, schema: pa.Schema) -> pa.Table:
    """Some columns of one file."""
    with _opened(path) as file:
        groups = [_of_group(file, n, schema) for n in range(file.num_row_groups)]
        return pa.concat_tables([schema.empty_table(), *groups])


def _of_group(file: pq.ParquetFile, group: int, schema: pa.Schema) -> pa.Table:
    """Some columns of one group of a file's rows, NULL where they came later than the file."""
    stored = {name.lower(): name for name in file.schema_arrow.names}
    table = file.read_row_group(group, [stored[name.lower()] for name in schema.names if name.lower() in stored])
    rows = file.metadata.row_group(group).num_rows
    columns = [
        _as(table[stored[field.name.lower()]], field.type)
        if field.name.lower() in stored
        else pa.chunked_array([pa.nulls(rows, field.type)])
        for field in schema
    ]
    return pa.table(columns, schema)


def _rows_with(files: DataFiles, columns: Sequence[str], among: Among, most: int) -> pa.Table:
    schema, keys = _schema(files, columns), _schema(files, tuple(among))
    values = {field.name: pa.array(among[field.name], field.type) for field in keys}
    paths = [*((path, ()) for path in files.whole), *files.masked]
    likely = sum(_likely(group, values) for path, _ in paths for group in _groups(pq.read_metadata(path)))
    if likely > _SURELY * most:
        raise _NotHereError

    def of_file(path: str, gone: Sequence[int]) -> pa.Table:
        """Of one file, less the rows at the places that are gone."""
        first, found = 0, [schema.empty_table()]
        with _opened(path) as file:
            for n, group in enumerate(_groups(file.metadata)):
                if _likely(group, values):
                    found.append(_group_with(file, n, schema, values, [place - first for place in gone]))
                first += group.num_rows
                if sum(map(len, found)) > most:
                    raise _NotHereError
        return pa.concat_tables(found)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rows = pa.concat_tables([schema.empty_table(), *pool.map(lambda file: of_file(*file), paths)])
    if len(rows) > most:
        raise _NotHereError
    return rows


def _groups(told: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [told.row_group(n) for n in range(told.num_row_groups)]


def _likely(group: pq.RowGroupMetaData, values: Mapping[str, pa.Array]) -> float:
    """About how many rows of a group have one of the values in each column, by statistics: none only if that is sure.

    Of whole numbers and days the least and the greatest tell how many there can be between them.
    """
    likely = float(group.num_rows)
    for column in map(group.column, range(group.num_columns)):
        wanted, told = values.get(column.path_in_schema), column.statistics
        if wanted is None or wanted.null_count or told is None or not told.has_min_max:
            continue
        if pa.types.is_integer(wanted.type) or pa.types.is_date(wanted.type):
            least, greatest = (pa.scalar(end, wanted.type) for end in (told.min, told.max))
            between = pc.and_(pc.greater_equal(wanted, least), pc.less_equal(wanted, greatest))
            width = (told.max - told.min) / (timedelta(1) if pa.types.is_date(wanted.type) else 1) + 1
            likely = min(likely, group.num_rows * (pc.sum(between).as_py() or 0) / width)
    return likely


def _group_with(
    file: pq.ParquetFile, n: int, schema: pa.Schema, values: Mapping[str, pa.Array], gone: Sequence[int]
) -> pa.Table:
    """Of one group of a file's rows, those with the values, which are looked for before other columns are read."""
    read = _of_group(file, n, pa.schema([(name, wanted.type) for name, wanted in values.items()]))
    met = (pc.is_in(read[name], wanted) for name, wanted in values.items())
    at = pc.indices_nonzero(reduce(pc.and_, met)).cast(pa.int64())
    if gone:
        at = at.filter(pc.invert(pc.is_in(at, pa.array(gone, pa.int64()))))
    if not len(at):
        return schema.empty_table()
    others = [field for field in schema if field.name not in values]
    if others:
        for field, column in zip(others, _of_group(file, n, pa.schema(others)).columns, strict=True):
            read = read.append_column(field, column)
    return read.select(schema.names).take(at)


def _as(values: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """The values, which have to be of this type; equal numbers look the same."""
    if type_ == _MOMENT and values.type == pa.timestamp("us"):  # Spark's old way to store a moment, in UTC
        return pc.assume_timezone(values, "UTC")
    if values.type != type_:
        raise _NotHereError
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
