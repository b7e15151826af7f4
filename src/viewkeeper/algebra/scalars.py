"""Scalar expressions over the columns of one row.

Only what the rules look into has a shape of its own; any other Spark expression is kept word for word
(`Verbatim`), with its column references cut out so that they can be replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never
from typing import Literal as OneOf

from viewkeeper.algebra.node import Node, walk

if TYPE_CHECKING:
    from viewkeeper.algebra.relations import Relation


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


@dataclass(frozen=True, eq=False)
class Outer(Node):
    """Inside a subquery: the column of this name in a row of the query around it."""

    name: str


@dataclass(frozen=True, eq=False)
class Clock(Node):
    """What a function of the clock (`CURRENT_DATE` …) gives at the moment of the old or the new state."""

    function: str
    state: OneOf["old", "new"] = "new"


SubqueryKind = OneOf["exists", "in", "scalar"]


@dataclass(frozen=True, eq=False)
class Subquery(Node):
    """A query inside an expression: EXISTS (…), `args` IN (…), or (…) as a value.

    Only definitions as they are read hold these; `algebra.subqueries` turns them into joins.
    """

    kind: SubqueryKind
    args: tuple[Scalar, ...]
    relation: Relation


Scalar = Column | Literal | Call | Cast | Verbatim | Outer | Clock | Subquery

NULL = Literal("NULL")
TRUE = Literal("TRUE")
FALSE = Literal("FALSE")
ZERO = Literal("0")
ONE = Literal("1")


def text_constant(text: str) -> Literal:
    return Literal("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")


def call(name: str, *args: Scalar) -> Call:
    return Call(name, args)


def conjunction(conditions: list[Scalar]) -> Scalar:
    """All of them, TRUE for none."""
    result = conditions[0] if conditions else TRUE
    for condition in conditions[1:]:
        result = call("AND", result, condition)
    return result


def conjuncts(condition: Scalar) -> list[Scalar]:
    """The terms of an AND."""
    match condition:
        case Call("AND", (left, right)):
            return conjuncts(left) + conjuncts(right)
        case _:
            return [condition]


def same(left: Scalar, right: Scalar) -> Call:
    """Equal, with NULL the same as NULL: how grouping compares."""
    return call("<=>", left, right)


def parts(scalar: Scalar) -> tuple[Scalar, ...]:
    """The expressions directly below."""
    match scalar:
        case Column() | Literal() | Outer() | Clock():
            return ()
        case Call(args=args) | Verbatim(args=args) | Subquery(args=args):
            return args
        case Cast(arg, _):
            return (arg,)
        case _:
            assert_never(scalar)


def rebuild(scalar: Scalar, replacement: Callable[[Scalar], Scalar | None]) -> Scalar:
    """The expression with every part for which there is a replacement replaced, from the outside in."""
    found = replacement(scalar)
    if found is not None:
        return found
    args = tuple(rebuild(part, replacement) for part in parts(scalar))
    match scalar:
        case Column() | Literal() | Outer() | Clock():
            return scalar
        case Call() | Verbatim() | Subquery():
            return replace(scalar, args=args)
        case Cast():
            return replace(scalar, arg=args[0])
        case _:
            assert_never(scalar)


def substitute(scalar: Scalar, by: Mapping[str, Scalar]) -> Scalar:
    """The expression with the named columns replaced, the others left."""
    return rebuild(scalar, lambda s: by.get(s.name, s) if isinstance(s, Column) else None)


def columns(scalar: Scalar) -> frozenset[str]:
    """Names of the columns that the expression reads, those that its subqueries read of this row included."""
    correlated = (n.name for s in subqueries(scalar) for n in walk(s.relation) if isinstance(n, Outer))
    return own_columns(scalar).union(correlated)


def own_columns(scalar: Scalar) -> frozenset[str]:
    """Names of the columns that the expression itself reads."""
    if isinstance(scalar, Column):
        return frozenset((scalar.name,))
    return frozenset[str]().union(*map(own_columns, parts(scalar)))


def subqueries(scalar: Scalar) -> tuple[Subquery, ...]:
    """The subqueries in an expression, not those inside of them."""
    own = (scalar,) if isinstance(scalar, Subquery) else ()
    return own + tuple(s for part in parts(scalar) for s in subqueries(part))
