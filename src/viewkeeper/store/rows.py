"""Rows of a few data files, read into this process: where rows are few, a Spark job takes longer than they do.

Read are only files whose values mean here just what they mean to Spark; for all others the answer is None.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.algebra.types import decimal_parts
from viewkeeper.store.changes import CAME, CHANGE_TYPE
from viewkeeper.store.columns import MOMENT, DataFile, FileColumns, NotHereError
from viewkeeper.store.files import DataFiles
from viewkeeper.store.vectors import NO_PLACES, Places

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # under which a schema says CHAR of what it calls a string
MOST_ROWS = 100_000  # in all files: without a feed, few changed rows may stand in large files
_AT_ONCE = 4  # groups of rows; Arrow uses all cores within one, but not all the time
_CLOSE = 8  # numbers of which so many could lie between the least and the greatest, for each that does
_SURELY = 3  # times as many rows as are read here: more than that is not found out by reading
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
    "timestamp": MOMENT,
    "timestamp_ntz": pa.timestamp("us"),
}

T = TypeVar("T")
Flags = NDArray[np.bool_]
Among = Mapping[str, Sequence[Any]]  # values by column, NULL among them or not


@dataclass(frozen=True)
class Part:
    """Files of a change, and how often each of their rows came; None where every row says it, as in a feed."""

    files: DataFiles
    weight: int | None


@dataclass(frozen=True)
class Asked:
    """A condition on some columns of a table: of each row whether it meets it."""

    columns: tuple[str, ...]
    meet: Callable[[pa.Table], Flags]


@dataclass(frozen=True)
class Placed:
    """Rows with the file, by its number, and the place in it that each of them has."""

    rows: pa.Table
    paths: tuple[str, ...]
    file: Places
    place: Places

    def at(self, which: Flags) -> dict[str, Places]:
        """The places of some of the rows, by file."""
        files, at = self.file[which], self.place[which]
        return {self.paths[n]: np.sort(at[files == n]) for n in np.unique(files)}


@dataclass(frozen=True)
class _Group:
    """A group of a file's rows, what the file tells of it, the place of its first row, and which rows are there."""

    file: DataFile
    number: int
    told: pq.RowGroupMetaData
    first: int
    there: Flags | None  # all, if none is told


@dataclass(frozen=True)
class FileRows:
    """Rows of data files, by the columns that are kept of them."""

    columns: FileColumns

    def net_change(self, parts: Sequence[Part], columns: Sequence[str], most: int = MOST_ROWS) -> pa.Table | None:
        """What the parts come to together: each row once, with its weight; None if they have more rows."""
        weighted = _or_none(lambda: pa.concat_tables([self._weighted(part, columns, most) for part in parts]))
        if weighted is None:
            return None
        added = weighted.group_by(list(columns), use_threads=False).aggregate([(WEIGHT, "sum")])
        return added.rename_columns([*columns, WEIGHT]).filter(pc.field(WEIGHT) != 0)

    def rows_of(self, files: DataFiles, columns: Sequence[str]) -> pa.Table | None:
        """Some columns of all rows."""
        return _or_none(lambda: self._rows_of(files, columns, MOST_ROWS))

    def rows_that(self, files: DataFiles, columns: Sequence[str], asked: Asked | None, most: int) -> pa.Table | None:
        """Some columns of the rows that meet a condition, or of all; None if these are more."""
        return _or_none(lambda: self._rows_that(files, columns, asked, most))

    def rows_with(self, files: DataFiles, columns: Sequence[str], among: Among, most: int) -> pa.Table | None:
        """Some columns of the rows that have one of the given values in each column of `among`; None if more."""
        found = self.placed_with(files, columns, among, most)
        return found.rows if found is not None else None

    def placed_with(self, files: DataFiles, columns: Sequence[str], among: Among, most: int) -> Placed | None:
        """The same, with where these rows are."""
        return _or_none(lambda: self._placed_with(files, columns, among, most))

    def _rows_of(self, files: DataFiles, columns: Sequence[str], most: int) -> pa.Table:
        schema = schema_of(files, columns)
        groups = self._groups_of(files)
        if sum(group.told.num_rows if group.there is None else group.there.sum() for group in groups) > most:
            raise NotHereError
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = pool.map(lambda group: self._at(group, schema, group.there), groups)
            return pa.concat_tables([schema.empty_table(), *found])

    def _weighted(self, part: Part, columns: Sequence[str], most: int) -> pa.Table:
        told = () if part.weight is not None else (CHANGE_TYPE,)
        table = self._rows_of(part.files, (*columns, *told), most)
        if part.weight is not None:
            weights = pa.repeat(pa.scalar(part.weight, pa.int64()), len(table))
        else:
            came = pc.is_in(table[CHANGE_TYPE], pa.array(CAME))
            weights = pc.if_else(came, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        return table.select(list(columns)).append_column(WEIGHT, weights)

    def _placed_with(self, files: DataFiles, columns: Sequence[str], among: Among, most: int) -> Placed:
        schema, keys = schema_of(files, columns), schema_of(files, tuple(among))
        values = {field.name: pa.array(among[field.name], field.type) for field in keys}
        groups = self._groups_of(files)
        likely = [_likely(group.told, values) for group in groups]
        if sum(likely) > _SURELY * most:
            raise NotHereError
        count = 0

        def read(group: _Group) -> tuple[pa.Table, Places]:
            nonlocal count
            if count > most:  # the others have found too many
                raise NotHereError
            rows, places = self._group_with(group, schema, values)
            count += len(rows)
            return rows, places

        some = [group for group, rows in zip(groups, likely, strict=True) if rows]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(pool.map(read, some))
        if count > most:
            raise NotHereError
        paths = tuple(dict.fromkeys(group.file.path for group in some))
        numbers = {path: n for n, path in enumerate(paths)}
        return Placed(
            pa.concat_tables([schema.empty_table(), *(rows for rows, _ in found)]),
            paths,
            np.repeat([numbers[group.file.path] for group in some], [len(places) for _, places in found]).astype(int),
            np.concatenate([NO_PLACES, *(places for _, places in found)]),
        )

    def _rows_that(self, files: DataFiles, columns: Sequence[str], asked: Asked | None, most: int) -> pa.Table:
        schema = schema_of(files, columns)
        read = schema_of(files, asked.columns) if asked is not None else None
        count = 0

        def met_by(group: _Group) -> pa.Table:
            nonlocal count
            if count > most:
                raise NotHereError
            met = group.there
            if asked is not None:
                met = asked.meet(self.columns.read(group.file, group.number, read))
                met = met if group.there is None else met & group.there
            rows = self._at(group, schema, met)
            count += len(rows)
            return rows

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = pa.concat_tables([schema.empty_table(), *pool.map(met_by, self._groups_of(files))])
        if count > most:
            raise NotHereError
        return found

    def _at(self, group: _Group, schema: pa.Schema, met: Flags | None) -> pa.Table:
        """Those rows of a group that are flagged, or all."""
        if met is not None and not met.any():
            return schema.empty_table()
        rows = self.columns.read(group.file, group.number, schema)
        return rows if met is None or met.all() else rows.take(np.flatnonzero(met))

    def _groups_of(self, files: DataFiles) -> list[_Group]:
        found = [group for path in files.whole for group in self._groups(path)]
        found += [group for path, gone in files.masked for group in self._groups(path, gone, there=False)]
        return found + [group for path, at in files.only_at for group in self._groups(path, at, there=True)]

    def _groups(self, path: str, places: Places = NO_PLACES, *, there: bool = False) -> Iterator[_Group]:
        """The groups of a file, without the rows at these places, or with only those."""
        file, first = self.columns.file(path), 0
        for n, told in enumerate(self.columns.footer(file).groups):
            some = places[(places >= first) & (places < first + told.num_rows)] - first
            flags = np.full(told.num_rows, not there) if len(some) else None
            if flags is not None:
                flags[some] = there
            if not there or len(some):
                yield _Group(file, n, told, first, flags)
            first += told.num_rows

    def _group_with(self, group: _Group, schema: pa.Schema, values: Mapping[str, pa.Array]) -> tuple[pa.Table, Places]:
        """Of one group of a file's rows, those with the values, which are looked for before other columns are read."""
        file, n = group.file, group.number
        keys = self.columns.read(file, n, pa.schema([(name, wanted.type) for name, wanted in values.items()]))
        met = reduce(np.logical_and, (_are_among(keys[name], wanted) for name, wanted in values.items()))
        at = np.flatnonzero(met if group.there is None else met & group.there)
        if not len(at):
            return schema.empty_table(), NO_PLACES
        others = self.columns.read(file, n, pa.schema([field for field in schema if field.name not in values]))
        rows = pa.table([(keys if f.name in values else others)[f.name].take(at) for f in schema], schema)
        return rows, at + group.first


def _are_among(values: pa.ChunkedArray, wanted: pa.Array) -> Flags:
    """Which values are among those that are wanted, NULL being one of them or not.

    Of whole numbers and days that lie close together, a list of all that lie between them tells it: ten times as fast
    as looking each of them up.
    """
    close = len(values) > 0 and not values.null_count
    if close and (pa.types.is_integer(values.type) or pa.types.is_date32(values.type)):
        numbers, asked = (_numbers(v) for v in (values, wanted.drop_null()))
        least, greatest, most = int(numbers.min()), int(numbers.max()), _CLOSE * len(numbers)
        first = 0 if least >= 0 and greatest <= most else least
        if greatest - first <= most:
            listed: Flags = np.zeros(greatest - first + 1, bool)
            listed[asked[(asked >= least) & (asked <= greatest)] - first] = True
            return listed[numbers - first if first else numbers]
    found: Flags = pc.is_in(values, wanted).to_numpy(zero_copy_only=False)
    return found


def _numbers(values: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    whole = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
    found: NDArray[np.int64] = whole.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


def _or_none(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (NotHereError, OSError, pa.ArrowException):  # if anything is wrong, Spark will say what
        return None


def schema_of(files: DataFiles, columns: Sequence[str]) -> pa.Schema:
    """Columns as Arrow has them, at least one: of rows without columns it does not know how many there are."""
    types = {field["name"]: _arrow_type(field) for field in json.loads(files.schema)["fields"]}
    wanted = {name: types.get(name) for name in columns}
    if not wanted or not all(wanted.values()):
        raise NotHereError
    return pa.schema(wanted.items())


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


def _arrow_type(field: Mapping[str, Any]) -> pa.DataType | None:
    type_ = field["type"]
    # Spark pads what it compares a CHAR with, as long as it knows the column for one.
    if not isinstance(type_, str) or field["metadata"].get(DECLARED_TYPE, "").startswith("char("):
        return None
    decimal = decimal_parts(type_)
    return _TYPES.get(type_) if decimal is None else pa.decimal128(*decimal)
