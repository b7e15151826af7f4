"""Expressions to Spark SQL, fully parenthesised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, assert_never

from viewkeeper.algebra.display import INFIX
from viewkeeper.algebra.relations import Measure, Ordering, Relation, State
from viewkeeper.algebra.scalars import (
    Call,
    Cast,
    Clock,
    Column,
    Literal,
    Outer,
    Scalar,
    Subquery,
    Verbatim,
    text_constant,
)
from viewkeeper.errors import InternalError

NO_ARGUMENT = {"COUNT": "*"}


class Query(Protocol):
    """What an expression asks the query it stands in."""

    @property
    def outer(self) -> Mapping[str, str]:
        """The columns of the query around this one."""

    def subquery(self, rel: Relation, columns: Mapping[str, str]) -> str:
        """A query in an expression over these columns."""

    def moment(self, function: str, state: State) -> str:
        """What a function of the clock gives."""


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def string_literal(text: str) -> str:
    return text_constant(text).sql


def render(scalar: Scalar, columns: Mapping[str, str], around: Query | None = None) -> str:
    """Spark SQL of an expression, its columns replaced by the given texts."""

    def text(part: Scalar) -> str:
        return render(part, columns, around)

    match scalar:
        case Column(name):
            return columns[name]
        case Literal(sql):
            return sql
        case Call(name, (left, right)) if name in INFIX:
            # A chain without parentheses, as which it is mostly written: Spark puts it together in a way of its own.
            chain = name in ("AND", "OR") and isinstance(left, Call) and left.name == name
            return f"({text(left)[1:-1] if chain else text(left)} {name} {text(right)})"
        case Call("IS NULL" | "IS NOT NULL" as name, (arg,)):
            return f"({text(arg)} {name})"
        case Call("NOT" | "-" as name, (arg,)):
            return f"({name} {text(arg)})"
        case Call("IN", (arg, *listed)):
            return f"({text(arg)} IN ({', '.join(map(text, listed))}))"
        case Call(name, args):
            return f"{name}({', '.join(map(text, args))})"
        case Cast(arg, type_):
            return f"CAST({text(arg)} AS {type_})"
        case Verbatim(parts, args):
            return parts[0] + "".join(text(a) + part for a, part in zip(args, parts[1:], strict=True))
        case Outer(name) if around is not None:
            return around.outer[name]
        case Subquery("exists", _, rel) if around is not None:
            return f"EXISTS {around.subquery(rel, columns)}"
        case Subquery("in", args, rel) if around is not None:
            tested = ", ".join(map(text, args))
            return f"({tested if len(args) == 1 else f'({tested})'} IN {around.subquery(rel, columns)})"
        case Subquery(_, _, rel) if around is not None:
            return around.subquery(rel, columns)
        case Clock(function, state) if around is not None:
            return around.moment(function, state)
        case Outer() | Subquery() | Clock():
            raise InternalError("a subquery or the clock outside of a query")
        case _:
            assert_never(scalar)


def render_measure(measure: Measure, columns: Mapping[str, str]) -> str:
    args = ", ".join(columns[a] for a in measure.args) or NO_ARGUMENT.get(measure.function.upper(), "")
    where = f" FILTER (WHERE {columns[measure.where]})" if measure.where else ""
    nulls = " IGNORE NULLS" if measure.ignore_nulls else ""
    called = f"{measure.function.upper()}({'DISTINCT ' if measure.distinct else ''}{args})"
    return f"{called}{within_group(measure.order_by, columns)}{where}{nulls}"


def within_group(order_by: tuple[Ordering, ...], columns: Mapping[str, str]) -> str:
    return f" WITHIN GROUP (ORDER BY {order_text(order_by, columns)})" if order_by else ""


def order_text(order_by: tuple[Ordering, ...], columns: Mapping[str, str]) -> str:
    return ", ".join(f"{columns[o.column]} {direction(o)}" for o in order_by)


def direction(order: Ordering) -> str:
    return f"{'DESC' if order.descending else 'ASC'} NULLS {'FIRST' if order.nulls_first else 'LAST'}"
