"""What the log says of the columns of a file."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.store.statistics import statistics

pytestmark = pytest.mark.core


def test_bounds_are_told_of_numbers_days_and_texts(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array([3, None, -1], pa.int64()),
            "day": pa.array([date(2024, 5, 1), date(1, 1, 1), None]),
            "name": pa.array(["b", "ä", "A"]),
            "long": pa.array(["x" * 40, "y" * 40, None]),
            "price": pa.array([Decimal("1.50"), None, None], pa.decimal128(10, 2)),
            "share": pa.array([float("nan"), 1.0, 2.0]),
            "at": pa.array([datetime(2024, 1, 1), None, None], pa.timestamp("us")),
            "yes": pa.array([True, False, None]),
            "none": pa.array([None, None, None], pa.int32()),
            "a.b": pa.array([1, 2, 3], pa.int16()),
            "pair": pa.array([{"b": 7}] * 3),
            "list": pa.array([[7]] * 3),
        }
    )
    pq.write_table(rows, tmp_path / "f", row_group_size=2)
    assert statistics(tmp_path / "f") == {
        "numRecords": 3,
        "minValues": {"id": -1, "day": "0001-01-01", "name": "A", "long": "x" * 32, "a.b": 1},
        "maxValues": {"id": 3, "day": "2024-05-01", "name": "ä", "a.b": 3},
        "nullCount": {
            "id": 1, "day": 1, "name": 0, "long": 1, "price": 2, "share": 0, "at": 2, "yes": 1, "none": 3, "a.b": 0
        },
    }  # fmt: skip


def test_a_day_that_python_does_not_know_has_no_bounds(tmp_path: Path) -> None:
    pq.write_table(pa.table({"day": pa.array([-800_000, 5], pa.int32()).cast(pa.date32())}), tmp_path / "f")
    assert statistics(tmp_path / "f") == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {"day": 0}}


def test_of_many_columns_the_first_are_told(tmp_path: Path) -> None:
    pq.write_table(pa.table({f"c{n}": [n] for n in range(40)}), tmp_path / "f")
    assert len(statistics(tmp_path / "f")["minValues"]) == 32


@given(st.lists(st.none() | st.text(max_size=40), max_size=8), st.integers(1, 4))
def test_texts_lie_within_their_bounds(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str | None], size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "texts"
    pq.write_table(pa.table({"t": pa.array(texts, pa.string())}), path, row_group_size=size)
    told = statistics(path)
    there = [text.encode() for text in texts if text is not None]
    if "t" in told["minValues"]:
        assert min(there) >= told["minValues"]["t"].encode()
    if "t" in told["maxValues"]:
        assert max(there) == told["maxValues"]["t"].encode()
    if there and max(map(len, there)) <= 32:
        assert "t" in told["minValues"] and "t" in told["maxValues"]
    assert told["nullCount"] == ({"t": texts.count(None)} if told["nullCount"] else {})
