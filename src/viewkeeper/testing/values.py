"""Values and scalar expressions as Spark means them: three-valued logic, exact decimals, casts that fail loudly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import assert_never

from viewkeeper.algebra.scalars import Call, Cast, Clock, Column, Literal, Outer, Scalar, Subquery, Verbatim
from viewkeeper.algebra.sketches import SKETCHES, Sketch
from viewkeeper.algebra.types import FLOATING, INTEGRAL, decimal_parts

Value = None | bool | int | float | Decimal | str
Row = tuple[Value, ...]
Evaluated = Callable[[Row], Value]
Function = Callable[..., Value]

EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_ESCAPED = re.compile(r"\\(.)|''")


def compiled(scalar: Scalar, columns: tuple[str, ...]) -> Evaluated:
    """The expression as a function of a row with these columns."""
    match scalar:
        case Column(name):
            position = columns.index(name)
            return lambda row: row[position]
        case Literal(sql):
            constant = literal(sql)
            return lambda _: constant
        case Call(name, args):
            return _call(name, [compiled(a, columns) for a in args])
        case Cast(arg, type_):
            inner = compiled(arg, columns)
            return lambda row: cast(inner(row), type_)
        case Verbatim(parts):
            raise NotImplementedError(f"kept word for word, so only Spark knows its value: {parts}")
        case Clock(_, state):
            moment = 1 if state == "old" else 3  # a clock of whole numbers
            return lambda _: moment
        case Outer() | Subquery():
            raise NotImplementedError("a subquery has a value only once it is a join")
        case _:
            assert_never(scalar)


def literal(sql: str) -> Value:
    """The value of a constant as Spark writes it."""
    match sql.upper():
        case "NULL":
            return None
        case "TRUE" | "FALSE":
            return sql.upper() == "TRUE"
    if sql.startswith("'"):
        return _ESCAPED.sub(lambda m: m[1] or "'", sql[1:-1])
    if re.fullmatch(r"-?\d+", sql):
        return int(sql)
    if sql.upper().endswith("D"):
        return float(sql[:-1])
    return Decimal(sql)


def cast(value: Value, type_: str) -> Value:
    """CAST(value AS type) in ANSI mode: what does not fit is an error."""
    if value is None:
        return None
    if type_ in INTEGRAL:
        return _integer(value, type_)
    if type_ in FLOATING:
        return float(value)
    if type_ in ("string", "binary"):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if type_ == "boolean":
        return value.strip().lower() == "true" if isinstance(value, str) else bool(value)
    parts = decimal_parts(type_)
    if parts is None:
        raise NotImplementedError(f"CAST AS {type_}")
    return rounded(Decimal(str(value)) if isinstance(value, float) else Decimal(value), *parts)


def rounded(value: Decimal, precision: int, scale: int) -> Decimal:
    """The nearest decimal(precision, scale), half away from zero."""
    result = value.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    if result.adjusted() >= precision - scale and result:
        raise OverflowError(f"{value} does not fit decimal({precision},{scale})")
    return result


def fits(value: Value, type_: str) -> bool:
    """Whether a column of this type can hold the value, after no more than a widening of numbers."""
    if value is None:
        return True
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if type_ in INTEGRAL:
        return isinstance(value, int) and is_integer and -(2 ** _BITS[type_]) <= value < 2 ** _BITS[type_]
    if type_ in FLOATING:
        return is_integer or isinstance(value, float)
    if parts := decimal_parts(type_):
        number = Decimal(value) if isinstance(value, int) and is_integer else value
        return isinstance(number, Decimal) and _fits_decimal(number, *parts)
    return isinstance(value, {"string": str, "boolean": bool}.get(type_, object))


def _fits_decimal(number: Decimal, precision: int, scale: int) -> bool:
    exact = number == number.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    return exact and (not number or number.adjusted() < precision - scale)


def _integer(value: Value, type_: str) -> int:
    if isinstance(value, str):
        number = int(value.strip())
    elif isinstance(value, Decimal):
        number = int(value.to_integral_value(rounding=ROUND_DOWN, context=EXACT))
    else:
        number = int(value or 0)
    if not fits(number, type_):
        raise OverflowError(f"{value} does not fit {type_}")
    return number


# Functions


def _call(name: str, args: list[Evaluated]) -> Evaluated:
    if name == "IF":  # only the branch that is taken has a value
        condition, then, otherwise = args
        return lambda row: (then if condition(row) is True else otherwise)(row)
    if name in _LENIENT:
        lenient = _LENIENT[name]
        return lambda row: lenient(*(a(row) for a in args))
    if name == "-" and len(args) == 1:
        name = "NEGATIVE"
    if name not in _STRICT:
        raise NotImplementedError(f"the function {name}")
    strict = _STRICT[name]

    def evaluated(row: Row) -> Value:
        values = [a(row) for a in args]
        return None if any(v is None for v in values) else strict(*values)

    return evaluated


def _alike(left: Value, right: Value) -> tuple[Value, Value]:
    """Both numbers in the wider of their types."""
    kinds = (type(left), type(right))
    if float in kinds and kinds != (float, float) and str not in kinds:
        return cast(left, "double"), cast(right, "double")
    return left, right


def _numeric(on_exact: Function, on_others: Function) -> Function:
    def operator(left: Value, right: Value) -> Value:
        left, right = _alike(left, right)
        return (on_exact if isinstance(left, Decimal) or isinstance(right, Decimal) else on_others)(left, right)

    return operator


def _comparison(holds: Callable[..., bool]) -> Function:
    return lambda left, right: holds(*_alike(left, right))


def divide(left: Value, right: Value) -> Value:
    """Quotient of decimals to far more digits than any type holds; of anything else as doubles."""
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return EXACT.divide(Decimal(left or 0), Decimal(right or 0))
    return float(left or 0) / float(right or 0)


def _and(left: Value, right: Value) -> Value:
    return False if left is False or right is False else None if left is None or right is None else True


def _or(left: Value, right: Value) -> Value:
    return True if left is True or right is True else None if left is None or right is None else False


def _coalesce(*values: Value) -> Value:
    return next((v for v in values if v is not None), None)


def _extreme(choose: Function) -> Function:
    """LEAST and GREATEST leave NULLs out."""

    def chosen(*values: Value) -> Value:
        present = [v for v in values if v is not None]
        return choose(present) if present else None

    return chosen


def sketched(sketch: Sketch, values: Iterable[object]) -> str:
    """A sketch that forgets nothing: digits in order, each once if it does not count."""
    digits = "".join(map(str, values))
    return "".join(sorted(digits if sketch.counts else set(digits)))


def _merging(sketch: Sketch) -> Function:
    return lambda a, b, *_: sketched(sketch, a + b)


_STRICT: dict[str, Function] = {
    "+": _numeric(EXACT.add, lambda a, b: a + b),
    "-": _numeric(EXACT.subtract, lambda a, b: a - b),
    "*": _numeric(EXACT.multiply, lambda a, b: a * b),
    "/": lambda a, b: divide(*_alike(a, b)),
    "=": _comparison(lambda a, b: a == b),
    "<>": _comparison(lambda a, b: a != b),
    "<": _comparison(lambda a, b: a < b),
    "<=": _comparison(lambda a, b: a <= b),
    ">": _comparison(lambda a, b: a > b),
    ">=": _comparison(lambda a, b: a >= b),
    "IN": lambda tested, *listed: tested in listed,
    "||": lambda a, b: a + b,
    "NOT": lambda a: not a,
    "NEGATIVE": lambda a: EXACT.minus(a) if isinstance(a, Decimal) else -a,
    "ABS": lambda a: EXACT.abs(a) if isinstance(a, Decimal) else abs(a),
    "UPPER": lambda a: a.upper(),
    "HLL_SKETCH_ESTIMATE": len,
    **{sketch.merge: _merging(sketch) for sketch in SKETCHES.values()},
}


def _raise(message: Value) -> Value:
    raise ArithmeticError(message)


_LENIENT: dict[str, Function] = {
    "RAISE_ERROR": _raise,
    "AND": _and,
    "OR": _or,
    "<=>": lambda a, b: a is b if a is None or b is None else a == b,
    "IS NULL": lambda a: a is None,
    "IS NOT NULL": lambda a: a is not None,
    "COALESCE": _coalesce,
    "LEAST": _extreme(min),
    "GREATEST": _extreme(max),
    "NULLIF": lambda a, b: None if b is not None and a == b else a,
}
