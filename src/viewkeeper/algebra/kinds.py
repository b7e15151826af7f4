"""Kinds of values that have one order, and the constants among them."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Literal as OneOf

from viewkeeper.algebra.conditions import is_null
from viewkeeper.algebra.scalars import Call, Cast, Literal, Scalar, Verbatim, columns
from viewkeeper.algebra.types import BOOLEAN, FLOATING, INTEGRAL, decimal_parts

# Values of one kind are in one order, whatever their types, and comparing them never fails.
Kind = OneOf["number", "floating", "string", "date", "timestamp", "timestamp_ntz", "boolean"]

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(INTEGRAL, "number"),
    **dict.fromkeys(FLOATING, "floating"),
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    BOOLEAN: "boolean",
}
_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_NUMBER = re.compile(r"\(?([+-]?\d+(?:\.\d+)?)\)?")
_LONG = re.compile(r"\(CAST\((-?\d+) AS BIGINT\)\)")  # as 5L is kept
_DOUBLE = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[dD]?")
_STRING = re.compile(r"'[^'\\]*'")
_DATE = re.compile(r"'(\d{4}-\d\d-\d\d)'|\(CAST\('(\d{4}-\d\d-\d\d)' AS DATE\)\)")
_INTERVAL = re.compile(r"\(INTERVAL '(-?\d+)' (DAY|MONTH|YEAR)S?\)")
_EXACT = Context(prec=100)


@dataclass(frozen=True)
class Constant:
    """A value that is given, among values of one kind."""

    kind: Kind
    value: Scalar

    @property
    def rank(self) -> float | bytes | date | None:
        """Where it stands among those of its kind; not known of timestamps, which a time zone may swap."""
        match self.kind:
            case "floating":
                exact = number(self.value)
                return float(exact) if exact is not None else _double(self.value)
            case "string":
                plain = _STRING.fullmatch(_text(self.value))
                return plain[0][1:-1].encode() if plain else None
            case "date":
                return _date(self.value)
            case _:
                return None


def kind_of(type_: str) -> Kind | None:
    return "number" if decimal_parts(type_) else _KINDS.get(type_)


def belongs(scalar: Scalar, kind: Kind) -> bool:
    """Whether a constant is compared with values of this kind by the order of that kind."""
    if columns(scalar) or is_null(scalar):
        return False
    match kind:
        case "number":
            return number(scalar) is not None
        case "floating":
            return number(scalar) is not None or _double(scalar) is not None
        case "string":
            return is_string(scalar)
        case "boolean":
            return _text(scalar).upper() in ("TRUE", "FALSE")
        case "date" | "timestamp":
            return True  # what Spark lets be compared with a point in time it reads as one
        case "timestamp_ntz":
            return isinstance(scalar, Cast) and scalar.type.lower() == kind


def number(scalar: Scalar) -> Fraction | None:
    """The value of an exact number."""
    match scalar:
        case Literal() | Verbatim(args=()):
            found = _NUMBER.fullmatch(_text(scalar)) or _LONG.fullmatch(_text(scalar))
            return Fraction(found[1]) if found else None
        case Cast(arg, type_):
            value = number(arg)
            return value if value is not None and _holds(type_.lower(), value) else None
        case _:
            return None


def _holds(type_: str, value: Fraction) -> bool:
    """Whether the type has exactly this number."""
    if type_ in _BITS:
        return value.denominator == 1 and -(1 << _BITS[type_]) <= value < 1 << _BITS[type_]
    precision, scale = decimal_parts(type_) or (0, 0)
    digits = value * Fraction(10) ** scale
    return digits.denominator == 1 and abs(digits) < Fraction(10) ** precision


def literal(value: Fraction) -> Literal:
    """The number as Spark writes it; its denominator is one of a decimal."""
    if value.denominator == 1:
        return Literal(str(value.numerator))
    return Literal(f"{_EXACT.divide(Decimal(value.numerator), Decimal(value.denominator)):f}")


def is_string(scalar: Scalar) -> bool:
    return _text(scalar).startswith("'")


def _text(scalar: Scalar) -> str:
    """What stands there, if it is a constant as it is."""
    match scalar:
        case Literal(text) | Verbatim((text,), ()):
            return text
        case _:
            return ""


def _double(scalar: Scalar) -> float | None:
    found = _DOUBLE.fullmatch(_text(scalar).removeprefix("(").removesuffix(")"))
    return float(found[1]) if found else None


def _date(scalar: Scalar) -> date | None:
    match scalar:
        case Call("+" | "-" as sign, (day, interval)):
            start, found = _date(day), _INTERVAL.fullmatch(_text(interval))
            return _later(start, int(sign + "1") * int(found[1]), found[2]) if start and found else None
        case Cast(arg, type_):
            return _date(arg) if type_.lower() == "date" else None
        case _:
            found = _DATE.fullmatch(_text(scalar))
            return _valid(lambda: date.fromisoformat(found[1] or found[2])) if found else None


def _later(day: date, count: int, unit: str) -> date | None:
    """So many days, months or years later; of a month that is too short, the last day."""
    if unit == "DAY":
        return _valid(lambda: day + timedelta(count))
    year, month = divmod(12 * day.year + day.month - 1 + count * (12 if unit == "YEAR" else 1), 12)
    return _valid(lambda: date(year, month + 1, min(day.day, monthrange(year, month + 1)[1])))


def _valid(make: Callable[[], date]) -> date | None:
    try:
        return make()
    except (ValueError, OverflowError):  # no such day, or none that Python knows
        return None
