"""Algebra as text for people: one operator a line, inputs indented below."""

from __future__ import annotations

from typing import assert_never

from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Generate,
    Join,
    Measure,
    Ordering,
    Pivot,
    Project,
    Relation,
    Scan,
    SetOperation,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    inputs,
)
from viewkeeper.algebra.scalars import Call, Cast, Clock, Column, Literal, Outer, Scalar, Subquery, Verbatim, conjuncts

INFIX = frozenset("+ - * / % = <> < <= > >= <=> AND OR || & | ^ DIV LIKE ILIKE RLIKE".split())


def show_scalar(scalar: Scalar) -> str:
    match scalar:
        case Column(name):
            return name
        case Literal(sql):
            return sql
        case Call(name, (left, right)) if name in INFIX:
            return f"({show_scalar(left)} {name} {show_scalar(right)})"
        case Call("IS NULL" | "IS NOT NULL" as name, (arg,)):
            return f"({show_scalar(arg)} {name})"
        case Call("NOT" | "-" as name, (arg,)):
            return f"({name} {show_scalar(arg)})"
        case Call(name, args):
            return f"{name.lower()}({', '.join(map(show_scalar, args))})"
        case Cast(arg, type_):
            return f"cast({show_scalar(arg)} as {type_})"
        case Verbatim(parts, args):
            return parts[0] + "".join(show_scalar(a) + p for a, p in zip(args, parts[1:], strict=True))
        case Clock(function, state):
            return f"{function}(){' before' if state == 'old' else ''}"
        case Outer(name):
            return f"outer.{name}"
        case Subquery(kind, args, rel):
            tested = f"({', '.join(map(show_scalar, args))}) in " if kind == "in" else ""
            return f"{tested}{kind if kind == 'exists' else ''}({' '.join(show(rel).split())})"
        case _:
            assert_never(scalar)


def show_condition(condition: Scalar) -> str:
    """The terms of an AND one after the other, without parentheses around each but where they are needed."""
    terms = conjuncts(condition)
    return " AND ".join(
        show_scalar(term)
        if len(terms) > 1 and isinstance(term, Call) and term.name == "OR"
        else _bare(show_scalar(term))
        for term in terms
    )


def _bare(text: str) -> str:
    """The text without parentheses around all of it."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def show_measure(measure: Measure) -> str:
    distinct = "distinct " if measure.distinct else ""
    where = f" where {measure.where}" if measure.where else ""
    order = f" in order of {show_order(measure.order_by)}" if measure.order_by else ""
    return f"{measure.name} = {measure.function.lower()}({distinct}{', '.join(measure.args) or '*'}){order}{where}"


def show_order(order_by: tuple[Ordering, ...]) -> str:
    return ", ".join(o.column + (" desc" if o.descending else "") for o in order_by)


def show_window(window: Window) -> str:
    by = f" by {', '.join(window.partition_by)}" if window.partition_by else ""
    order = f" in order of {show_order(window.order_by)}" if window.order_by else ""
    shown = (
        f"{c.name} = {c.function.lower()}({', '.join(map(show_scalar, c.args))})"
        + (f" in order of {show_order(c.within)}" if c.within else "")
        + (f" where {show_scalar(c.where)}" if c.where else "")
        for c in window.columns
    )
    return f"window{by}{order}: {', '.join(shown)}"


def show_operator(rel: Relation) -> str:
    """The operator alone, without its inputs."""
    match rel:
        case Scan(table, _, state):
            return f"scan {table}" + (" as it was" if state == "old" else "")
        case Changes(table):
            return f"changes of {table}"
        case Values(_, rows):
            return f"{len(rows)} given rows" if rows else "nothing"
        case Filter(_, predicate):
            return f"filter {show_scalar(predicate)}"
        case Project(_, items):
            shown = (i.name if i.value == Column(i.name) else f"{i.name} = {show_scalar(i.value)}" for i in items)
            return f"project {', '.join(shown)}"
        case Join(_, _, kind, condition, lateral):
            return f"{kind} {'lateral ' if lateral else ''}join on {show_scalar(condition)}"
        case Union():
            return "union all"
        case Aggregate(_, group_by, measures, sets):
            if sets:
                group_by = tuple(f"({', '.join(one)})" for one in sets)
            by = f" by {', '.join(group_by)}" if group_by else " of everything"
            return f"aggregate{by}" + "".join(f", {show_measure(m)}" for m in measures)
        case Window():
            return show_window(rel)
        case Top(_, order_by, limit, offset):
            which = f"first {limit} rows" if limit is not None else "all rows"
            return f"{which}{f' after {offset}' if offset else ''} in order of {show_order(order_by)}"
        case Generate(_, generator, fields, outer):
            made = ", ".join(f.name for f in fields)
            return f"generate {made} = {show_scalar(generator)}{' or NULL' if outer else ''}"
        case SetOperation(_, _, kind, all_):
            return f"{kind}{' all' if all_ else ''}"
        case Pivot(_, _, pivoted, _, measures, results):
            over = [f"{r.name} = {show_scalar(r.value)}" for r in results if not isinstance(r.value, Column)]
            return ", ".join([f"pivot by {', '.join(pivoted)}", *map(show_measure, measures), *over])
        case Unpivot(_, _, taken, _, fields):
            lists = " or ".join(f"({', '.join(one)})" for one in taken)
            return f"unpivot {', '.join(f.name for f in fields)} = {lists}"
        case _:
            assert_never(rel)


def show(rel: Relation, indent: int = 0) -> str:
    """The whole tree."""
    below = "".join("\n" + show(i, indent + 1) for i in inputs(rel))
    return "  " * indent + show_operator(rel) + below
