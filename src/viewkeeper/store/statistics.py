"""What the log says of a new data file, so that Delta can leave it out where none of its rows is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

_COLUMNS = 32  # the first ones, as Delta has it
_LONGEST = 32  # characters of a text

Bound: TypeAlias = "int | str"


def statistics(path: Path) -> dict[str, Any]:
    """Rows, and of the first columns how many NULLs, the least and the greatest value.

    Bounds are told of whole numbers, days and texts. Others have values that JSON, Arrow and Spark do not agree on.
    """
    footer = pq.read_metadata(path)
    nulls: dict[str, int] = {}
    least: dict[str, Bound] = {}
    greatest: dict[str, Bound] = {}
    for name, chunks in _columns(footer):
        told = [chunk for chunk in chunks if chunk is not None and chunk.has_null_count]
        if len(told) < len(chunks):
            continue
        nulls[name] = sum(chunk.null_count for chunk in told)
        valued = [chunk for chunk in told if chunk.num_values]
        if not valued or not all(chunk.has_min_max for chunk in valued):
            continue
        try:
            first, last = min(chunk.min for chunk in valued), max(chunk.max for chunk in valued)
        except (ValueError, OverflowError, NotImplementedError, pa.ArrowException):  # a day that Python does not know
            continue
        if (bound := _bound(first)) is not None:
            least[name] = bound
        if (bound := _bound(last)) is not None and not (isinstance(last, str) and bound != last):
            greatest[name] = bound
    return {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _columns(footer: pq.FileMetaData) -> Iterator[tuple[str, list[pq.Statistics | None]]]:
    """The columns that are not nested, with what each group of rows says of them."""
    groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
    for n in range(min(footer.num_columns, _COLUMNS)):
        column = footer.schema.column(n)
        if column.name == column.path:
            yield column.name, [group.column(n).statistics for group in groups]


def _bound(value: object) -> Bound | None:
    """As the log writes it; of a long text its beginning, which is not greater. None of any other type."""
    if type(value) is int:
        return value
    if type(value) is str:
        return value[:_LONGEST]
    if type(value) is date:  # not a moment, which is a date to Python, too
        return value.isoformat()
    return None
