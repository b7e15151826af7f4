"""sqlglot expressions to scalars: known operators by name, everything else word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp

from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.scalars import Call, Cast, Column, Literal, Scalar, Verbatim, call
from viewkeeper.sql.functions import GENERATORS, WINDOW_ONLY, why_not_repeatable
from viewkeeper.sql.parse import generate, parenthesize, position

Names = Mapping[tuple[str, str], str]

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}
_HOLE = re.compile(r"`__vk_hole_(\d+)`|__vk_hole_(\d+)")


class Refusal(Exception):
    """Unwinds binding at the first construct that stands in the way."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def refuse(node: exp.Expr, construct: str, why: str) -> Refusal:
    return Refusal(Reason(construct, why, position(node)))


def aggregate_calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of this SELECT in an expression, with their FILTER; not those of subqueries or windows."""
    if isinstance(tree, (exp.Query, exp.Window)):
        return
    if isinstance(tree, exp.Filter) or _is_aggregate(tree):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from aggregate_calls(child)


def _is_aggregate(tree: exp.Expr) -> bool:
    return isinstance(tree, (exp.AggFunc, exp.WithinGroup))


def to_scalar(tree: exp.Expr, names: Names, replaced: Mapping[str, str] | None = None) -> Scalar:
    """The expression as a scalar. `replaced` gives the column that holds an expression of this text."""
    if replaced and (name := replaced.get(generate(tree))) is not None:
        return Column(name)
    _check(tree)
    match tree:
        case exp.Column():
            return Column(_resolve(tree, names))
        case exp.Coalesce():
            # Calls people write stay calls by name; this one stands for a column that USING shares, and in an
            # inner join both sides have the same value.
            return to_scalar(tree.this, names, replaced)
        case exp.Paren() | exp.Alias():
            return to_scalar(tree.this, names, replaced)
        case exp.Literal() | exp.Boolean() | exp.Null() | exp.Var():
            return Literal(generate(tree))
        case exp.Not(this=exp.Is() as test) if isinstance(test.expression, exp.Null):
            return call("IS NOT NULL", to_scalar(test.this, names, replaced))
        case exp.Is() if isinstance(tree.expression, exp.Null):
            return call("IS NULL", to_scalar(tree.this, names, replaced))
        case exp.Not():
            return call("NOT", to_scalar(tree.this, names, replaced))
        case exp.Neg() if not isinstance(tree.this, exp.Literal):
            return call("-", to_scalar(tree.this, names, replaced))
        case exp.If() if tree.args.get("false") is not None:
            branches = (tree.this, tree.args["true"], tree.args["false"])
            return Call("IF", tuple(to_scalar(b, names, replaced) for b in branches))
        case exp.Cast() if type(tree) is exp.Cast and not tree.args.get("format"):
            return Cast(to_scalar(tree.this, names, replaced), generate(tree.to))
        case exp.Anonymous() if isinstance(tree.this, str) and not list(tree.find_all(exp.Lambda)):
            args = tuple(to_scalar(a, names, replaced) for a in tree.expressions)
            return Call(tree.this.upper(), args)
        case _ if type(tree) in _BINARY:
            left, right = (to_scalar(tree.args[side], names, replaced) for side in ("this", "expression"))
            return call(_BINARY[type(tree)], left, right)
        case _:
            return _verbatim(tree, names, replaced)


def _resolve(column: exp.Column, names: Names) -> str:
    try:
        return names[column.table.lower(), column.name.lower()]
    except KeyError:
        raise refuse(column, column.sql(), "this column cannot be told from the query's tables") from None


def _verbatim(tree: exp.Expr, names: Names, replaced: Mapping[str, str] | None) -> Verbatim:
    """Spark's own text, with a hole for each column (or replaced expression) in it."""
    copy = exp.Paren(this=tree.copy())
    args: list[Scalar] = []
    for node in list(copy.this.walk(bfs=True, prune=lambda n: _is_hole(n, replaced))):
        if _is_hole(node, replaced):
            args.append(to_scalar(node, names, replaced))
            node.replace(exp.column(f"__vk_hole_{len(args) - 1}"))
        elif node is not copy.this:
            _check(node)
    parts: list[str] = []
    order: list[int] = []
    text, end = generate(parenthesize(copy)), 0
    for hole in _HOLE.finditer(text):
        parts.append(text[end : hole.start()])
        order.append(int(hole[1] or hole[2]))
        end = hole.end()
    parts.append(text[end:])
    return Verbatim(tuple(parts), tuple(args[i] for i in order))


def _is_hole(node: exp.Expr, replaced: Mapping[str, str] | None) -> bool:
    return isinstance(node, exp.Column | exp.Coalesce) or bool(replaced and generate(node) in replaced)


def _check(tree: exp.Expr) -> None:
    """Refuse what no scalar over one row can mean, or what another run would answer differently."""
    match tree:
        case exp.Query() | exp.Exists() | exp.SubqueryPredicate():
            raise refuse(tree, "subquery in an expression", "not maintained from changes yet")
        case exp.Window():
            raise refuse(tree, "window function", "not maintained from changes yet")
        case exp.Placeholder() | exp.Parameter():
            raise refuse(tree, "parameter", "a view cannot hold parameters")
        case exp.AggFunc() | exp.WithinGroup():
            raise refuse(tree, generate(tree), "an aggregate is not possible here")
        case exp.In() if tree.args.get("query") is not None:
            raise refuse(tree, "IN (subquery)", "not maintained from changes yet")
        case _:
            pass
    if isinstance(tree, exp.Func):
        name = tree.name if isinstance(tree, exp.Anonymous) else tree.sql_name()
        arity = len(tree.expressions) if isinstance(tree, exp.Anonymous) else 0
        _check_function(tree, name.lower(), arity)


def _check_function(tree: exp.Expr, name: str, arity: int) -> None:
    why = why_not_repeatable(name, arity)
    if why is not None:
        raise refuse(tree, f"{name}()", why)
    if name in GENERATORS:
        raise refuse(tree, f"{name}()", "rows made from rows are not maintained from changes yet")
    if name in WINDOW_ONLY:
        raise refuse(tree, f"{name}()", "window functions are not maintained from changes yet")
    if name in ("window", "session_window"):
        raise refuse(tree, f"{name}()", "time windows are not maintained from changes yet")
