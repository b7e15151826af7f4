"""Columns of data files, read into this process and kept as long as there is room for them.

A file of a table never changes. What one refresh looked for in a large table, the next one looks for in nearly the same
files; and all views that read a change read the same few files of it. Read are only files whose values mean here just
what they mean to Spark.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOMENT = pa.timestamp("us", "UTC")
_OTHER_CALENDAR = {
    b"org.apache.spark.legacyDateTime",
    b"org.apache.spark.legacyINT96",
}  # days are counted in another way

T = TypeVar("T")


class NotHereError(Exception):
    """Values that may not mean here what they mean to Spark, or more of them than are read here."""


@dataclass(frozen=True)
class DataFile:
    """A file as it is now: under the same name there could be another one later."""

    path: str
    size: int
    written: int


@dataclass(frozen=True)
class Footer:
    """What a file tells of itself, and the names of its columns by how they are written in small letters."""

    metadata: pq.FileMetaData
    names: dict[str, str]

    @property
    def groups(self) -> list[pq.RowGroupMetaData]:
        return [self.metadata.row_group(n) for n in range(self.metadata.num_row_groups)]


class FileColumns:
    """Columns of files, of which those that were used last are kept, up to so many bytes in all."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._kept: OrderedDict[tuple[Any, ...], tuple[Any, int]] = OrderedDict()
        self.held = 0
        self._lock = Lock()  # views are refreshed by several threads

    def file(self, path: str) -> DataFile:
        told = os.stat(path)
        return DataFile(path, told.st_size, told.st_mtime_ns)

    def footer(self, file: DataFile) -> Footer:
        return self._get((file,), lambda: _footer(file.path), lambda footer: footer.metadata.serialized_size)

    def read(self, file: DataFile, group: int, schema: pa.Schema) -> pa.Table:
        """Some columns of one group of a file's rows, NULL where they came later than the file."""
        footer = self.footer(file)
        stored = [field for field in schema if field.name.lower() in footer.names]
        found = {field.name: self._find((file, group, field.name.lower(), field.type)) for field in stored}
        missing = [field for field in stored if found[field.name] is None]
        if missing:
            names = [footer.names[field.name.lower()] for field in missing]
            for field, column in zip(missing, _read(file, footer, group, names), strict=True):
                values = as_to_spark(column, field.type)
                self._put((file, group, field.name.lower(), field.type), values, values.nbytes)
                found[field.name] = values
        rows = footer.metadata.row_group(group).num_rows
        columns = (found[f.name] if f.name in found else pa.chunked_array([pa.nulls(rows, f.type)]) for f in schema)
        return pa.table(list(columns), schema)

    def _get(self, key: tuple[Any, ...], read: Callable[[], T], size: Callable[[T], int]) -> T:
        known: T | None = self._find(key)
        if known is None:
            known = read()
            self._put(key, known, size(known))
        return known

    def _find(self, key: tuple[Any, ...]) -> Any:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def _put(self, key: tuple[Any, ...], value: object, size: int) -> None:
        with self._lock:
            if key in self._kept or size > self.room:
                return
            self._kept[key] = value, size
            self.held += size
            while self.held > self.room:
                self.held -= self._kept.popitem(last=False)[1][1]


def _footer(path: str) -> Footer:
    metadata = pq.read_metadata(path)
    names = metadata.schema.to_arrow_schema().names
    lowered = {name.lower(): name for name in names}
    if len(lowered) < len(names) or not _OTHER_CALENDAR.isdisjoint(metadata.metadata or {}):
        raise NotHereError
    return Footer(metadata, lowered)


def _read(file: DataFile, footer: Footer, group: int, names: Sequence[str]) -> list[pa.ChunkedArray]:
    with pq.ParquetFile(file.path, metadata=footer.metadata, coerce_int96_timestamp_unit="us") as opened:
        table = opened.read_row_group(group, list(names))
        return [table[name] for name in names]


def as_to_spark(values: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """The values, which have to be of this type; equal numbers look the same."""
    if type_ == MOMENT and values.type == pa.timestamp("us"):  # Spark's old way to store a moment, in UTC
        return pc.assume_timezone(values, "UTC")
    if values.type != type_:
        raise NotHereError
    if pa.types.is_floating(type_):
        positive = pc.if_else(pc.equal(values, pa.scalar(0, type_)), pa.scalar(0, type_), values)
        return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), type_), positive)
    return values
