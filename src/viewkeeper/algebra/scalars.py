"""Scalar expressions over the columns of one row.

Only what the rules look into has a shape of its own; any other Spark expression is kept word for word
(`Verbatim`), with its column references cut out so that they can be replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from viewkeeper.algebra.node import Node


@dataclass(frozen=True, eq=False)
class Column(Node):
    """The column of this name in the input row."""

    name: str


@dataclass(frozen=True, eq=False)
class Literal(Node):
    """A constant, as Spark writes it: `1`, `'a'`, `NULL`, `DATE '2020-01-01'`."""

    sql: str


@dataclass(frozen=True, eq=False)
class Call(Node):
    """An operator (`+`, `AND`, `<=>`, `IS NULL` …) or a function call by its name in capitals."""

    name: str
    args: tuple[Scalar, ...]


@dataclass(frozen=True, eq=False)
class Cast(Node):
    """CAST(arg AS type)."""

    arg: Scalar
    type: str


@dataclass(frozen=True, eq=False)
class Verbatim(Node):
    """Spark SQL kept as written: parts[0] args[0] parts[1] args[1] … parts[-1]."""

    parts: tuple[str, ...]
    args: tuple[Scalar, ...]


Scalar = Column | Literal | Call | Cast | Verbatim

NULL = Literal("NULL")
TRUE = Literal("TRUE")
ZERO = Literal("0")
ONE = Literal("1")


def call(name: str, *args: Scalar) -> Call:
    return Call(name, args)


def conjunction(conditions: list[Scalar]) -> Scalar:
    """All of them, TRUE for none."""
    result = conditions[0] if conditions else TRUE
    for condition in conditions[1:]:
        result = call("AND", result, condition)
    return result


def same(left: Scalar, right: Scalar) -> Call:
    """Equal, with NULL the same as NULL: how grouping compares."""
    return call("<=>", left, right)


def replace_columns(scalar: Scalar, replacement: Callable[[Column], Scalar]) -> Scalar:
    """The expression with every column reference replaced."""
    match scalar:
        case Column():
            return replacement(scalar)
        case Literal():
            return scalar
        case Call(name, args):
            return Call(name, tuple(replace_columns(a, replacement) for a in args))
        case Cast(arg, type_):
            return Cast(replace_columns(arg, replacement), type_)
        case Verbatim(parts, args):
            return Verbatim(parts, tuple(replace_columns(a, replacement) for a in args))
        case _:
            assert_never(scalar)


def substitute(scalar: Scalar, by: Mapping[str, Scalar]) -> Scalar:
    """The expression with the named columns replaced, the others left."""
    return replace_columns(scalar, lambda column: by.get(column.name, column))


def columns(scalar: Scalar) -> frozenset[str]:
    """Names of the columns the expression reads."""
    match scalar:
        case Column(name):
            return frozenset({name})
        case Literal():
            return frozenset()
        case Call(args=args) | Verbatim(args=args):
            return frozenset().union(*(columns(a) for a in args)) if args else frozenset()
        case Cast(arg, _):
            return columns(arg)
        case _:
            assert_never(scalar)
