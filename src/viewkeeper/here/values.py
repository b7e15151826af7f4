"""Expressions over rows that this process has, as far as they mean here just what they mean to Spark.

What does not, and what Spark would raise an error for, raises NotHereError; then Spark is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.kinds import Constant
from viewkeeper.algebra.scalars import NULL, Call, Cast, Column, Literal, Scalar, Verbatim, own_columns
from viewkeeper.algebra.types import MAX_PRECISION
from viewkeeper.here.types import (
    Value,
    alike,
    arrow_type,
    as_decimal,
    as_type,
    is_number,
    narrowed,
    spark_decimal,
)
from viewkeeper.sql.opened import opened
from viewkeeper.store.columns import NotHereError

COMPARISONS: dict[str, Callable[[Value, Value], Value]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_KLEENE = {"AND": pc.and_kleene, "OR": pc.or_kleene}
_EXTREMES = {"LEAST": pc.min_element_wise, "GREATEST": pc.max_element_wise}
_PARTS = {"YEAR": pc.year, "QUARTER": pc.quarter, "MONTH": pc.month, "DAY": pc.day}
_WHOLE = re.compile(r"\(?([+-]?\d+)\)?")
_POINT = re.compile(r"\(?([+-]?\d*\.\d+)\)?")
_STRING = re.compile(r"'([^'\\]*)'")


def value(scalar: Scalar, columns: Mapping[str, pa.Array]) -> Value:
    """What an expression gives for each row."""
    try:
        return _Values(columns).of(scalar)
    except (pa.ArrowException, OverflowError):  # numbers of more digits than there is room for
        raise NotHereError from None


def truth(condition: Scalar, columns: Mapping[str, pa.Array]) -> Value:
    """Of each row whether the condition holds, NULL where nobody knows."""
    found = value(condition, columns)
    return as_type(found, pa.bool_())


class _Values:
    def __init__(self, columns: Mapping[str, pa.Array]) -> None:
        self.columns = columns

    def of(self, scalar: Scalar) -> Value:
        match scalar:
            case Column(name):
                found = self.columns.get(name)
                if found is None or pa.types.is_floating(found.type):  # NaN has another place here
                    raise NotHereError
                return found
            case Literal(sql):
                return _constant(sql)
            case Cast() | Call("+" | "-") if not own_columns(scalar) and (day := _day(scalar)) is not None:
                return day
            case Cast(arg, type_):
                return as_type(self.of(arg), arrow_type(type_))
            case Call(name, (left, right)) if name in COMPARISONS or name == "<=>":
                return _compared(name, *self.pair(left, right))
            case Call("AND" | "OR" as name, (left, right)):
                return _KLEENE[name](self.truth(left), self.truth(right))
            case Call("+" | "-" | "*" as name, (left, right)):
                return _reckoned(name, self.of(left), self.of(right))
            case Call(name, args):
                return self.called(name, args)
            case Verbatim() if (calls := opened(scalar)) is not None and calls != scalar:
                return self.of(calls)
            case _:
                raise NotHereError

    def called(self, name: str, args: tuple[Scalar, ...]) -> Value:
        match name, args:
            case "-", (arg,):
                return pc.negate_checked(_number(self.of(arg)))
            case "IF", (condition, then, otherwise):
                met = pc.fill_null(self.truth(condition), False)
                return pc.if_else(met, *alike(self.of(then), self.of(otherwise)))
            case "COALESCE", (_, *_):
                return pc.coalesce(*alike(*map(self.of, args)))
            case (("LEAST" | "GREATEST"), (_, _, *_)):
                return _EXTREMES[name](*alike(*map(self.of, args)))
            case "NULLIF", (arg, other):
                return self.called("IF", (Call("=", (arg, other)), NULL, arg))
            case "%", (left, right):
                return _remainder(self.of(left), self.of(right))
            case "ABS", (arg,):
                return pc.abs_checked(_number(self.of(arg)))
            case (("YEAR" | "QUARTER" | "MONTH" | "DAY"), (arg,)):
                return _PARTS[name](_of_type(self.of(arg), pa.date32())).cast(pa.int32())
            case (("||" | "CONCAT"), (_, _, *_)):
                texts = [_of_type(self.of(arg), pa.string()) for arg in args]
                return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")
            case "SUBSTRING" | "SUBSTR", (arg, first, length):
                text, (start, size) = _of_type(self.of(arg), pa.string()), (_count(self.of(n)) for n in (first, length))
                if start < 1 or size < 0:
                    raise NotHereError
                return pc.utf8_slice_codeunits(text, start - 1, start - 1 + size)
            case _:
                return self.asked(name, args)

    def asked(self, name: str, args: tuple[Scalar, ...]) -> Value:
        match name, args:
            case "NOT", (arg,):
                return pc.invert(self.truth(arg))
            case (("IS NULL" | "IS NOT NULL"), (arg,)):
                found = self.columns.get(arg.name) if isinstance(arg, Column) else self.of(arg)
                if found is None:
                    raise NotHereError
                return (pc.is_null if name == "IS NULL" else pc.is_valid)(found)
            case "IN", (arg, *listed):
                return _among(self.of(arg), [self.of(one) for one in listed])
            case "LIKE", (arg, Literal(pattern)):
                found = _STRING.fullmatch(pattern)
                if found is None or "_" in found[1]:
                    raise NotHereError
                return pc.match_like(_of_type(self.of(arg), pa.string()), found[1])
            case _:
                raise NotHereError

    def truth(self, condition: Scalar) -> Value:
        return as_type(self.of(condition), pa.bool_())

    def pair(self, left: Scalar, right: Scalar) -> tuple[Value, Value]:
        """Two values that are compared: with a day, Spark takes text for one."""
        values = self.of(left), self.of(right)
        if any(v.type == pa.date32() for v in values):
            sides = zip((left, right), values, strict=True)
            found = tuple(_day(s) if isinstance(s, Literal) and v.type == pa.string() else v for s, v in sides)
            if None in found:
                raise NotHereError
            return found  # type: ignore[return-value]
        return values


def _constant(sql: str) -> Value:
    known: dict[str, Any] = {"TRUE": True, "FALSE": False}
    if sql.upper() in known:
        return pa.scalar(known[sql.upper()])
    if sql.upper() == "NULL":
        return pa.scalar(None)
    if (text := _STRING.fullmatch(sql)) is not None:
        return pa.scalar(text[1])
    if (whole := _WHOLE.fullmatch(sql)) is not None:
        number = int(whole[1])
        bits = number.bit_length() if number >= 0 else (-number - 1).bit_length()
        wide = pa.int64() if bits < 64 else pa.decimal128(len(str(abs(number))), 0)
        return pa.scalar(number if bits < 64 else Decimal(number), pa.int32() if bits < 32 else wide)
    if (point := _POINT.fullmatch(sql)) is not None:
        exact = Decimal(point[1])
        scale = -int(exact.as_tuple().exponent)
        return pa.scalar(exact, pa.decimal128(max(len(exact.as_tuple().digits), scale, 1), scale))
    raise NotHereError


def _day(scalar: Scalar) -> pa.Scalar | None:
    rank = Constant("date", scalar).rank
    return pa.scalar(rank, pa.date32()) if rank is not None else None


def _compared(name: str, left: Value, right: Value) -> Value:
    if pa.types.is_null(left.type) and pa.types.is_null(right.type):
        raise NotHereError
    a, b = _comparable(left, right)
    if name != "<=>":
        return COMPARISONS[name](a, b)
    none = pc.and_(pc.is_null(a), pc.is_null(b))
    return pc.or_(none, pc.fill_null(pc.equal(a, b), False))


def _comparable(left: Value, right: Value) -> tuple[Value, Value]:
    """Two values of one type.

    Decimals that no type has all digits of are rounded by Spark before it compares them. What is equal stays so then,
    and so does the order of what is not close: only if no two values are, it need not be asked.
    """
    if not all(is_number(v.type) for v in (left, right)):
        return alike(left, right)  # type: ignore[return-value]
    a, b = (as_decimal(v) for v in (left, right))
    whole, scale = max(v.type.precision - v.type.scale for v in (a, b)), max(v.type.scale for v in (a, b))
    if whole + scale <= MAX_PRECISION:
        return alike(left, right)  # type: ignore[return-value]
    a, b = alike(narrowed(a), narrowed(b))
    apart = pc.abs(pc.subtract(*(narrowed(v) for v in (a, b))))
    unit = pa.scalar(Decimal(1).scaleb(whole - MAX_PRECISION))
    if pc.any(pc.and_(pc.greater(apart, pa.scalar(Decimal(0))), pc.less(apart, unit))).as_py():
        raise NotHereError
    return a, b


def _among(tested: Value, listed: list[Value]) -> Value:
    """Whether it is one of these constants, of which none is NULL."""
    alike_, *constants = alike(tested, *listed)
    if not all(isinstance(one, pa.Scalar) and one.is_valid for one in constants):
        raise NotHereError
    met = pc.is_in(alike_, pa.array([one.as_py() for one in constants], alike_.type))
    return pc.if_else(pc.is_valid(alike_), met, pa.scalar(None, pa.bool_()))


def _reckoned(name: str, left: Value, right: Value) -> Value:
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        whole = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[name]
        return whole(*alike(left, right))
    a, b = (as_decimal(_number(v)) for v in (left, right))
    if name == "*":
        digits, scale = a.type.precision + b.type.precision + 1, a.type.scale + b.type.scale
    else:
        scale = max(a.type.scale, b.type.scale)
        digits = max(v.type.precision - v.type.scale for v in (a, b)) + scale + 1
    if digits > MAX_PRECISION:
        a, b = narrowed(a), narrowed(b)
    return {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[name](a, b).cast(spark_decimal(digits, scale))


def _remainder(left: Value, right: Value) -> Value:
    """Of whole numbers, with the sign of what is divided."""
    if not all(pa.types.is_integer(v.type) for v in (left, right)):
        raise NotHereError
    a, b = alike(left, right)
    return pc.subtract(a, pc.multiply(pc.divide_checked(a, b), b))


def _number(found: Value) -> Value:
    if not is_number(found.type):
        raise NotHereError
    return found


def _of_type(found: Value, type_: pa.DataType) -> Value:
    if found.type != type_:
        raise NotHereError
    return found


def _count(found: Value) -> int:
    number = found.as_py() if isinstance(found, pa.Scalar) else None
    if not isinstance(number, int):
        raise NotHereError
    return number
