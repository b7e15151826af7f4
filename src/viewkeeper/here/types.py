"""Spark's types as Arrow has them, and numbers of different types as numbers of one."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.types import FLOATING, MAX_PRECISION, decimal_parts
from viewkeeper.store.columns import MOMENT, NotHereError

Value: TypeAlias = pa.Array | pa.Scalar  # of each row, or one for all

KEPT_SCALE = 6  # digits behind the point that Spark keeps of a number that has more than 38 in all
_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": MOMENT,
    "timestamp_ntz": pa.timestamp("us"),
}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def arrow_type(type_: str) -> pa.DataType:
    """A type whose values are the same here. Floating-point numbers are none: the order of a sum shows in them."""
    parts = decimal_parts(type_.lower())
    found = pa.decimal128(*parts) if parts else _TYPES.get(type_.lower())
    if found is None:
        raise NotHereError
    return found


def is_here(found: pa.DataType, type_: str) -> bool:
    """Whether values of Spark's type have this one here, and mean the same: a text of a collation does not."""
    if type_ in FLOATING:
        return bool(pa.types.is_floating(found))
    try:
        return bool(found == arrow_type(type_))
    except NotHereError:
        return False


def is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_))


def as_type(value: Value, type_: pa.DataType) -> Value:
    """The same numbers, or nothing, as another type. What does not fit is not here: Spark has its own ways with it."""
    if value.type == type_:
        return value
    if pa.types.is_null(value.type) or (pa.types.is_integer(value.type) and pa.types.is_integer(type_)):
        return value.cast(type_)
    if is_number(value.type) and is_number(type_):
        return as_decimal(value).cast(type_)
    raise NotHereError


def as_decimal(value: Value) -> Value:
    """A number with all digits that its type can have.

    To Spark a constant has only the digits that it needs. With more, a result may seem too long here that is not, and
    is left to Spark.
    """
    return value if pa.types.is_decimal(value.type) else value.cast(pa.decimal128(_DIGITS[value.type], 0))


def digits_of(value: Value) -> int:
    """The most digits of any of these decimals, those behind the point included."""
    ends = [value.as_py()] if isinstance(value, pa.Scalar) else list(pc.min_max(value).as_py().values())
    scale = value.type.scale
    return max((len(str(abs(int(Decimal(end).scaleb(scale))))) for end in ends if end is not None), default=1)


def narrowed(value: Value) -> Value:
    """The same decimals in a type of no more digits than they have."""
    return value.cast(pa.decimal128(max(digits_of(value), value.type.scale, 1), value.type.scale))


def spark_decimal(precision: int, scale: int) -> pa.DataType:
    """The type of a result that takes so many digits, where Spark rounds nothing away."""
    if precision > MAX_PRECISION and scale > KEPT_SCALE:
        raise NotHereError
    return pa.decimal128(min(precision, MAX_PRECISION), scale)


def alike(*values: Value) -> tuple[Value, ...]:
    """Values as those of one type that has all of them."""
    types = list(dict.fromkeys(v.type for v in values if not pa.types.is_null(v.type)))
    if len(types) > 1 and all(map(is_number, types)):
        if all(map(pa.types.is_integer, types)):
            return tuple(as_type(v, max(types, key=lambda t: t.bit_width)) for v in values)
        given = [v.type if pa.types.is_null(v.type) else as_decimal(v).type for v in values]
        parts = [(t.precision - t.scale, t.scale) for t in given if not pa.types.is_null(t)]
        whole, scale = (max(part) for part in zip(*parts, strict=True))
        if whole + scale > MAX_PRECISION:
            raise NotHereError
        return tuple(as_type(v, pa.decimal128(whole + scale, scale)) for v in values)
    if len(types) > 1:
        raise NotHereError
    return tuple(as_type(v, types[0]) for v in values) if types else values
