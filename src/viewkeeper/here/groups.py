"""Groups of rows that this process has, and what is measured of them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.relations import Aggregate, Measure
from viewkeeper.algebra.types import MAX_PRECISION
from viewkeeper.here.rows import RowsHere, one_array
from viewkeeper.here.types import arrow_type, as_type, digits_of
from viewkeeper.store.columns import NotHereError

_GROUP = "group"


def grouped(rel: Aggregate, rows: RowsHere) -> RowsHere:
    """One row for each group, and exactly one if there are no keys."""
    if rel.sets:
        raise NotHereError
    firsts, group = rows.alike(rel.group_by)
    count = len(firsts) if rel.group_by else 1
    keys = {key: rows.columns[key].take(pa.array(firsts)) for key in rel.group_by}
    measures = {m.name: measured(m, rows, pa.array(group), count) for m in rel.measures}
    return RowsHere({**keys, **measures}, count)


def measured(measure: Measure, rows: RowsHere, group: pa.Array, count: int) -> pa.Array:
    """What is measured of each group, the first first."""
    if measure.order_by or measure.ignore_nulls or measure.settled:
        raise NotHereError
    args, type_ = [rows.columns[arg] for arg in measure.args], arrow_type(measure.type)
    if any(pa.types.is_floating(arg.type) for arg in args):
        raise NotHereError
    counts = pc.is_valid(group)
    for arg in args:
        counts = pc.and_(counts, pc.is_valid(arg))
    if measure.where:
        counts = pc.and_(counts, pc.fill_null(rows.columns[measure.where], False))
    match measure.function.lower(), measure.distinct, args:
        case "count", False, _:
            ones = pc.if_else(counts, pa.scalar(1, pa.int64()), pa.scalar(0, pa.int64()))
            return as_type(pc.fill_null(_reduced("sum", ones, group, count), 0), type_)
        case "count", True, (arg,):
            found = _reduced("count_distinct", _only(arg, counts), group, count)
            return as_type(pc.fill_null(found, 0), type_)
        case "min" | "max" as function, _, (arg,):
            return as_type(_reduced(function, _only(arg, counts), group, count), type_)
        case "sum", False, (arg,):
            return as_type(_sum(_only(arg, counts), group, count), type_)
        case "avg", False, (arg,) if pa.types.is_decimal(arg.type) and pa.types.is_decimal(type_):
            total = _sum(_only(arg, counts), group, count)
            ones = pc.if_else(counts, pa.scalar(1, pa.int64()), pa.scalar(0, pa.int64()))
            return _quotients(total, _reduced("sum", ones, group, count), type_)
        case _:
            raise NotHereError


def _only(values: pa.Array, counts: pa.Array) -> pa.Array:
    return pc.if_else(counts, values, pa.scalar(None, values.type))


def _sum(values: pa.Array, group: pa.Array, count: int) -> pa.Array:
    """Sums that cannot have more digits than there is room for, which Arrow does not look for."""
    if pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(20, 0)) if values.type == pa.int64() else values.cast(pa.int32())
    if pa.types.is_decimal(values.type):
        if digits_of(values) + len(str(len(values))) > MAX_PRECISION:
            raise NotHereError
    elif values.type != pa.int32():
        raise NotHereError
    return _reduced("sum", values, group, count)


def _reduced(function: str, values: pa.Array, group: pa.Array, count: int) -> pa.Array:
    """One value for each group, in their order; NULL for one without rows."""
    table = pa.table({_GROUP: group, "values": values})
    found = table.group_by(_GROUP, use_threads=False).aggregate([("values", function)])
    places = np.full(count, -1, np.int64)
    places[found[_GROUP].to_numpy()] = np.arange(len(found))
    at = pa.array(places, mask=places < 0)
    return one_array(found[f"values_{function}"]).take(at)


def _quotients(totals: pa.Array, counts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Exact quotients, rounded once, half away from zero, as Spark rounds an average."""
    found = [
        _quotient(total, number, type_.scale)
        for total, number in zip(totals.to_pylist(), counts.to_pylist(), strict=True)
    ]
    return pa.array(found, type_)


def _quotient(total: Decimal | None, number: int | None, scale: int) -> Decimal | None:
    if total is None or not number:
        return None
    numerator, denominator = total.as_integer_ratio()
    twice = abs(numerator) * 10**scale * 2
    units = (twice + denominator * number) // (2 * denominator * number)
    return Decimal(units if numerator >= 0 else -units).scaleb(-scale)
