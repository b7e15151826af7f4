"""Orders of rows that this process has: first rows, and what a window says of each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.distances import WHOLE
from viewkeeper.algebra.relations import Measure, Ordering, Top, Window, WindowColumn
from viewkeeper.here.groups import measured
from viewkeeper.here.rows import Flags, Places, RowsHere
from viewkeeper.here.types import arrow_type, as_type
from viewkeeper.here.values import value
from viewkeeper.store.columns import NotHereError

_ARGUMENT, _WHERE = "argument", "where"


def first_rows(rel: Top, rows: RowsHere) -> RowsHere:
    order = in_order(rows, rel.order_by)
    end = rows.count if rel.limit is None else rel.offset + rel.limit
    return rows.take(order[rel.offset : end])


def in_order(rows: RowsHere, order_by: Sequence[Ordering]) -> Places:
    """The places of the rows, from the first on."""
    return np.lexsort(_ranks(rows, order_by)[::-1]) if order_by else np.arange(rows.count)


def windowed(rel: Window, rows: RowsHere) -> RowsHere:
    """Each row with what a window says of it."""
    firsts, partition = rows.alike(rel.partition_by)
    found = {}
    for column in rel.columns:
        if column.within or column.ignore_nulls:
            raise NotHereError
        if _of_all(rel, column):
            every = _measured(column, rows, pa.array(partition), len(firsts))
            found[column.name] = every.take(pa.array(partition))
        else:
            numbers = _numbers(column, partition, _ranks(rows, rel.order_by))
            found[column.name] = as_type(pa.array(numbers), arrow_type(column.type))
    return RowsHere({**rows.columns, **found}, rows.count)


def _of_all(rel: Window, column: WindowColumn) -> bool:
    """Whether it is the same for all rows of a partition."""
    return column.frame.upper() == WHOLE or (not rel.order_by and not column.frame)


def _measured(column: WindowColumn, rows: RowsHere, partition: pa.Array, count: int) -> pa.Array:
    given = {f"{_ARGUMENT}{n}": rows.filled(value(arg, rows.columns)) for n, arg in enumerate(column.args)}
    where = {_WHERE: rows.filled(value(column.where, rows.columns))} if column.where is not None else {}
    measure = Measure(column.name, column.function, tuple(given), column.type, where=_WHERE if where else None)
    return measured(measure, RowsHere({**given, **where}, rows.count), partition, count)


def _numbers(column: WindowColumn, partition: Places, ranks: Sequence[Places]) -> Places:
    """The place of each row in its partition: by rows, or the same for rows that are equal in the order."""
    if column.where is not None or column.args or column.function not in ("ROW_NUMBER", "RANK", "DENSE_RANK"):
        raise NotHereError
    order = np.lexsort([*ranks[::-1], partition])
    begins = _differs(partition[order])
    other = np.logical_or.reduce([begins, *(_differs(rank[order]) for rank in ranks)])
    place = np.arange(len(order))
    start = np.maximum.accumulate(np.where(begins, place, 0))
    match column.function:
        case "ROW_NUMBER":
            ordered = place - start + 1
        case "RANK":
            ordered = np.maximum.accumulate(np.where(other, place, 0)) - start + 1
        case _:
            steps = np.cumsum(other)
            ordered = steps - steps[start] + 1
    numbers = np.empty(len(order), np.int64)
    numbers[order] = ordered
    return numbers


def _differs(values: Places) -> Flags:
    """Whether each value is another one than that before it."""
    found = np.ones(len(values), bool)
    found[1:] = values[1:] != values[:-1]
    return found


def _ranks(rows: RowsHere, order_by: Sequence[Ordering]) -> list[Places]:
    """For each column of the order a number for each row, in that order."""
    return [_rank(rows.columns[o.column], o) for o in order_by]


def _rank(values: pa.Array, order: Ordering) -> Places:
    if pa.types.is_floating(values.type):
        raise NotHereError
    coded = values.dictionary_encode("mask")
    size = len(coded.dictionary)
    places = np.empty(size, np.int64)
    places[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(size)
    codes = pc.fill_null(coded.indices, size).to_numpy(zero_copy_only=False)
    nothing = -1 if order.nulls_first else size
    ranks: Places = np.append(size - 1 - places if order.descending else places, nothing)[codes]
    return ranks
