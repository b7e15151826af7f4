"""Rows of data files, read without Spark."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.store.changes import CHANGE_TYPE
from viewkeeper.store.columns import FileColumns
from viewkeeper.store.files import DataFiles
from viewkeeper.store.rows import MOST_ROWS, FileRows, Part

pytestmark = pytest.mark.core

KEY = {"k": "long", "name": "string"}
READ = FileRows(FileColumns(10_000))  # little is kept for long


def schema(types: dict[str, object]) -> str:
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in types.items()]
    return json.dumps({"type": "struct", "fields": fields})


def files(folder: Path, table: pa.Table, types: dict[str, object], **options: Any) -> DataFiles:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(table, path, **options)
    return DataFiles(schema(types), (str(path),))


ROWS = st.lists(st.tuples(st.integers(0, 2) | st.none(), st.sampled_from(["a", "b", None])), max_size=8)


@given(came=ROWS, went=ROWS, told=ROWS, kinds=st.data())
def test_a_net_change_is_what_came_less_what_went(
    tmp_path_factory: pytest.TempPathFactory, came: list[Any], went: list[Any], told: list[Any], kinds: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    shape = pa.schema([("k", pa.int64()), ("name", pa.string())])
    kind = st.sampled_from(["insert", "delete", "update_preimage", "update_postimage"])
    said = [kinds.draw(kind) for _ in told]
    feed = _table(shape, told).append_column(CHANGE_TYPE, pa.array(said, pa.string()))
    parts = [
        Part(files(folder, feed, KEY).with_text(CHANGE_TYPE), None),
        Part(files(folder, _table(shape, came), KEY), 1),
        Part(files(folder, _table(shape, went), KEY), -1),
    ]
    expected = Counter(came)
    expected.subtract(Counter(went))
    for row, what in zip(told, said, strict=True):
        expected[row] += 1 if what in ("insert", "update_postimage") else -1
    net = READ.net_change(parts, ("k", "name"))
    assert net is not None
    found = [tuple(row.values()) for row in net.to_pylist()]
    assert sorted(found, key=repr) == sorted(((*row, n) for row, n in expected.items() if n), key=repr)


def _table(shape: pa.Schema, rows: list[Any]) -> pa.Table:
    return pa.table([[row[n] for row in rows] for n in range(len(shape))], schema=shape)


ASKED = st.tuples(st.sets(st.integers(-1, 3) | st.none()), st.none() | st.sets(st.sampled_from(["a", "b", "c", None])))


@settings(max_examples=settings().max_examples // 3)
@given(ROWS, ROWS, st.sets(st.integers(0, 7)), ASKED)
def test_rows_with_some_values_are_those_that_have_them(
    tmp_path_factory: pytest.TempPathFactory, whole: list[Any], masked: list[Any], gone: set[int], values: Any
) -> None:
    """Of a file, and of one that lost some rows; both are stored by few rows at a time."""
    keys, named = values
    folder = tmp_path_factory.mktemp("rows")
    shape = pa.schema([("k", pa.int64()), ("name", pa.string())])
    first, second = (files(folder, _table(shape, rows), KEY, row_group_size=3).whole for rows in (whole, masked))
    among = {"k": list(keys)} | ({"name": list(named)} if named is not None else {})
    left = whole + [row for place, row in enumerate(masked) if place not in gone]
    expected = [row for row in left if row[0] in keys and (named is None or row[1] in named)]
    asked = DataFiles(schema(KEY), first, ((second[0], np.array(sorted(gone), np.int64)),))
    for columns, at in ((("k", "name"), (0, 1)), (("name",), (1,))):
        found = READ.rows_with(asked, columns, among, 100)
        assert found is not None
        wanted = [tuple(row[n] for n in at) for row in expected]
        assert sorted((tuple(row.values()) for row in found.to_pylist()), key=repr) == sorted(wanted, key=repr)
    few = READ.rows_with(asked, ("k",), among, 2)
    assert few is None or len(few) == len(expected) <= 2  # by statistics they may have seemed more


NUMBERS = st.integers(-3, 20) | st.integers(10**6, 10**6 + 20) | st.sampled_from([-(2**63), 2**63 - 1])


@given(st.lists(NUMBERS | st.none(), max_size=30), st.sets(NUMBERS | st.none()), st.booleans())
def test_numbers_are_found_however_far_apart_they_lie(
    tmp_path_factory: pytest.TempPathFactory, held: list[int | None], wanted: set[int | None], close: bool
) -> None:
    numbers = [n for n in held if n is not None and n < 100] if close else held
    file = files(tmp_path_factory.mktemp("rows"), pa.table({"k": pa.array(numbers, pa.int64())}), {"k": "long"})
    found = READ.rows_with(file, ("k",), {"k": list(wanted)}, 100)
    assert found is not None
    assert found["k"].to_pylist() == [n for n in numbers if n in wanted]


def test_of_too_many_rows_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values between the least and the greatest that a file has tell about how many of its rows have them."""
    many = files(tmp_path, pa.table({"k": [*range(1000)] * 5}), {"k": "long"})
    found = READ.rows_with(many, ("k",), {"k": [*range(990, 2000)]}, 50)
    assert found is not None and len(found) == 50
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *_: pytest.fail("read"))
    assert READ.rows_with(many, ("k",), {"k": [*range(500)]}, 50) is None
    outside = READ.rows_with(many, ("k",), {"k": [-1, 5000]}, 50)
    assert outside is not None and len(outside) == 0


def test_what_was_read_is_kept_while_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The columns used last stay; of a file only those are read that are not there."""
    table = pa.table({name: pa.array(range(1000)) for name in "abc"})
    file = files(tmp_path, table, dict.fromkeys("abc", "long"))
    room = int(2.9 * table["a"].nbytes)  # two columns, and what the file tells of itself
    read, wanted = FileRows(FileColumns(room)), []
    of_group = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda f, n, names: wanted.append(names) or of_group(f, n, names)
    )
    for columns in ("a", "ab", "c", "cb", "a"):
        assert read.rows_of(file, tuple(columns)) == table.select(list(columns))
    assert wanted == [["a"], ["b"], ["c"], ["a"]]
    assert read.columns.held <= room


def test_another_file_under_the_same_name_is_read_anew(tmp_path: Path) -> None:
    file = files(tmp_path, pa.table({"k": [1, 2]}), {"k": "long"})
    assert READ.rows_of(file, ("k",)) == pa.table({"k": [1, 2]})
    pq.write_table(pa.table({"k": [3]}), file.whole[0])
    assert READ.rows_of(file, ("k",)) == pa.table({"k": [3]})


def test_numbers_that_are_equal_to_spark_are_equal_here(tmp_path: Path) -> None:
    came = pa.table({"x": pa.array([0.0, math.nan, 1.5], pa.float64())})
    went = pa.table({"x": pa.array([-0.0, -math.nan], pa.float64())})
    types: dict[str, object] = {"x": "double"}
    net = READ.net_change([Part(files(tmp_path, came, types), 1), Part(files(tmp_path, went, types), -1)], ("x",))
    assert net is not None
    assert net.to_pylist() == [{"x": 1.5, "__vk_weight": 1}]


def test_a_column_that_came_later_than_a_file_is_null_in_it_and_case_does_not_count(tmp_path: Path) -> None:
    read = READ.rows_of(files(tmp_path, pa.table({"K": pa.array([1, 2])}), KEY), ("k", "name"))
    assert read is not None
    assert read.to_pylist() == [{"k": 1, "name": None}, {"k": 2, "name": None}]


def test_moments_are_read_as_they_were_stored(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    table = pa.table({"at": pa.array([moment], pa.timestamp("us", "UTC")), "d": pa.array([Decimal("1.50")])})
    types: dict[str, object] = {"at": "timestamp", "d": "decimal(3,2)"}
    for old in (False, True):
        read = READ.rows_of(files(tmp_path, table, types, use_deprecated_int96_timestamps=old), ("at", "d"))
        assert read is not None
        assert read.to_pylist() == [{"at": moment, "d": Decimal("1.50")}]


def test_what_may_mean_something_else_is_left_to_spark(tmp_path: Path) -> None:
    day = pa.table({"day": pa.array([datetime.date(1500, 1, 1)])})
    julian = day.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    numbers = files(tmp_path, pa.table({"k": [1]}), {"k": "long"})
    many = files(tmp_path, pa.table({"k": range(MOST_ROWS + 1)}), {"k": "long"})
    assert READ.rows_of(many, ("k",)) is None
    assert READ.rows_of(files(tmp_path, day, {"day": "date"}), ("day",)) is not None
    assert READ.rows_of(files(tmp_path, julian, {"day": "date"}), ("day",)) is None
    assert READ.rows_of(numbers, ("k",)) is not None
    assert (
        READ.rows_of(numbers, ()) is None and READ.net_change([Part(numbers, 1)], ()) is None
    )  # how many they are, a table without columns would not tell
    assert READ.rows_of(DataFiles(schema({"k": "integer"}), numbers.whole), ("k",)) is None  # the file has another type
    assert READ.rows_of(DataFiles(schema({"k": {"type": "array"}}), numbers.whole), ("k",)) is None
    texts = files(tmp_path, pa.table({"day": ["Sunday   "]}), {"day": "string"})
    char = texts.schema.replace("{}", '{"__CHAR_VARCHAR_TYPE_STRING": "char(9)"}')
    assert READ.rows_of(texts, ("day",)) is not None
    assert READ.rows_of(DataFiles(char, texts.whole), ("day",)) is None  # which Spark pads 'Sunday' for
    assert READ.rows_of(DataFiles(char.replace("char", "varchar"), texts.whole), ("day",)) is not None
    assert READ.rows_of(DataFiles(numbers.schema, (str(tmp_path / "gone.parquet"),)), ("k",)) is None
