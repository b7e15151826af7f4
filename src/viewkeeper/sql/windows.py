"""Window functions of a SELECT to algebra: one operator for each way of partitioning and ordering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.orders import looks_back, of_groups
from viewkeeper.algebra.relations import Item, Ordering, Project, Relation, Window, WindowColumn, pass_through
from viewkeeper.algebra.scalars import Column, Literal, Scalar
from viewkeeper.algebra.types import UNKNOWN
from viewkeeper.sql.expressions import Scope, refuse, to_scalar
from viewkeeper.sql.functions import why_not_repeatable
from viewkeeper.sql.labels import Labels
from viewkeeper.sql.parse import generate

_Spec = tuple[tuple[str, ...], tuple[Ordering, ...]]


def window_calls(tree: exp.Expr) -> Iterator[exp.Window]:
    """The window functions in an expression, not those of its subqueries."""
    if isinstance(tree, exp.Query):
        return
    if isinstance(tree, exp.Window):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from window_calls(child)


def ordering(tree: exp.Ordered, column: str) -> Ordering:
    return Ordering(column, bool(tree.args.get("desc")), bool(tree.args.get("nulls_first")))


def bind_windows(
    tree: exp.Select, relation: Relation, scope: Scope, replaced: Mapping[str, str], labels: Labels
) -> tuple[Relation, dict[str, str]]:
    """The relation with a column for every window function of the SELECT, and the column for each one's text."""
    clauses = [tree.args.get(c) for c in ("qualify", "order")]
    places = [*tree.expressions, *(c for c in clauses if c)]
    calls = {generate(call): call for place in places for call in window_calls(place)}
    named = {w.this.name.lower(): w for w in tree.args.get("windows") or []}
    computed: list[Item] = []

    def value(part: exp.Expr) -> Scalar:
        """A constant as it is, anything else as a column computed below the windows."""
        scalar = to_scalar(part, scope, replaced)
        if isinstance(scalar, Column | Literal):
            return scalar
        for item in computed:
            if item.value == scalar:
                return Column(item.name)
        computed.append(Item(labels.fresh("__vk_over"), scalar, UNKNOWN))
        return Column(computed[-1].name)

    def column(part: exp.Expr) -> str:
        scalar = value(part)
        if isinstance(scalar, Column):
            return scalar.name
        computed.append(Item(labels.fresh("__vk_over"), scalar, UNKNOWN))
        return computed[-1].name

    specs: dict[_Spec, list[WindowColumn]] = {}
    columns: dict[str, str] = {}
    for text, call in calls.items():
        over = _definition(call, named)
        keys = tuple(column(p) for p in over.args.get("partition_by") or [])
        order = over.args.get("order")
        by = tuple(ordering(o, column(o.this)) for o in (order.expressions if order else []))
        computed_column = replace(_function(call, value, column), name=labels.fresh("__vk_w", call), frame=_frame(over))
        if not keys and not (by and looks_back(computed_column)) and not of_groups(relation):
            why = "it looks at rows behind the current one, so any change may change all of them"
            raise refuse(call, "window without PARTITION BY", why)
        specs.setdefault((keys, by), []).append(computed_column)
        columns[text] = computed_column.name
    if computed:
        relation = Project(relation, (*pass_through(relation.schema), *computed))
    for (keys, by), found in specs.items():
        relation = Window(relation, keys, by, tuple(found))
    return relation, columns


def _definition(call: exp.Window, named: Mapping[str, exp.Expr]) -> exp.Expr:
    """What stands in OVER (…), or what WINDOW says of the name there."""
    alias = call.args.get("alias")
    return named[alias.name.lower()] if alias is not None and alias.name.lower() in named else call


def _function(call: exp.Window, value: Callable[[exp.Expr], Scalar], column: Callable[[exp.Expr], str]) -> WindowColumn:
    inner, ignore, where = call.this, False, None
    if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
        ignore, inner = isinstance(inner, exp.IgnoreNulls), inner.this
    if isinstance(inner, exp.Filter):
        where, inner = value(inner.expression.this), inner.this
    ordered: list[exp.Ordered] = []
    if isinstance(inner, exp.WithinGroup):
        ordered, inner = inner.expression.expressions, inner.this
    if not isinstance(inner, exp.Anonymous | exp.AnonymousAggFunc):
        raise refuse(inner, generate(inner), "this form of window function is not maintained from changes yet")
    name, args = str(inner.this).lower(), list(inner.expressions)
    why = why_not_repeatable(name, len(args))
    if why is not None:
        raise refuse(inner, f"{name}()", why)
    if any(isinstance(a, exp.Distinct | exp.Order | exp.IgnoreNulls) for a in args):
        raise refuse(inner, generate(inner), "this form of window function is not maintained from changes yet")
    given = () if any(isinstance(a, exp.Star) for a in args) else tuple(value(a) for a in args)
    within = tuple(ordering(o, column(o.this)) for o in ordered)
    return WindowColumn("", name.upper(), given, UNKNOWN, ignore_nulls=ignore, where=where, within=within)


def _frame(over: exp.Expr) -> str:
    spec = over.args.get("spec")
    if spec is None:
        return ""

    def bound(which: str) -> str:
        edge, side = spec.args.get(which), spec.args.get(f"{which}_side")
        text = generate(edge) if isinstance(edge, exp.Expr) else str(edge or "CURRENT ROW")
        return f"{text} {side}" if side else text

    return f"{spec.args['kind']} BETWEEN {bound('start')} AND {bound('end')}"
