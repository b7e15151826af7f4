"""sqlglot expressions to scalars: known operators by name, everything else word for word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Relation
from viewkeeper.algebra.scalars import Call, Cast, Clock, Column, Literal, Outer, Scalar, Subquery, Verbatim, call
from viewkeeper.sql.functions import GENERATORS, MOMENTS, WINDOW_ONLY, why_not_repeatable
from viewkeeper.sql.parse import generate, parenthesize, position

Names = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Scope:
    """What an expression can see: columns by (table, name), and the scope around a subquery.

    `joined_by` says how each table after the first was joined, which decides the value of a column that USING
    shares. `measured` are the columns that hold aggregates, by their text, which subqueries may ask for.
    `read` binds a subquery that stands in an expression.
    """

    columns: Names = field(default_factory=dict)
    joined_by: Mapping[str, str] = field(default_factory=dict)
    outer: Scope | None = None
    measured: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[exp.Expr, Scope], Relation] | None = None

    def measure_around(self, tree: exp.Expr) -> Outer | None:
        """The aggregate as a column of an enclosing query, whose groups have it."""
        if self.outer is None or not isinstance(tree, exp.AggFunc):
            return None
        name = self.outer.measured.get(generate(tree))
        return Outer(name) if name is not None else self.outer.measure_around(tree)

    def resolve(self, table: str, name: str) -> Scalar | None:
        """The column, one of an enclosing query, or None."""
        found = self.columns.get((table.lower(), name.lower()))
        if found is not None:
            return Column(found)
        around = self.outer.resolve(table, name) if self.outer else None
        return Outer(around.name) if isinstance(around, (Column, Outer)) else None


BINARY: dict[type[exp.Expr], str] = {
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
NOT_YET = "not maintained from changes yet"
_HOLE = re.compile(r"`__vk_hole_(\d+)`|__vk_hole_(\d+)")


class Refusal(Exception):
    """Unwinds binding at the first construct that stands in the way."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def refuse(node: exp.Expr, construct: str, why: str) -> Refusal:
    return Refusal(Reason(construct, why, position(node)))


def aggregate_calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of this SELECT in an expression, with their FILTER; not those of subqueries or over windows."""
    if isinstance(tree, exp.Query):
        return
    if _is_aggregate(tree):
        yield tree
        return
    over = _over_window(tree) if isinstance(tree, exp.Window) else None
    for child in tree.iter_expressions():
        for part in over.iter_expressions() if over is not None and child is tree.this else (child,):
            yield from aggregate_calls(part)


def _over_window(window: exp.Window) -> exp.Expr:
    """The function of a window, which may be an aggregate over its rows, with groups in its arguments."""
    inner: exp.Expr = window.this
    while isinstance(inner, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
        inner = inner.this
    return inner


def _is_aggregate(tree: exp.Expr) -> bool:
    of_nulls = isinstance(tree, (exp.IgnoreNulls, exp.RespectNulls)) and _is_aggregate(tree.this)
    return of_nulls or isinstance(tree, (exp.AggFunc, exp.WithinGroup, exp.Filter))


def to_scalar(tree: exp.Expr, scope: Scope, replaced: Mapping[str, str] | None = None) -> Scalar:
    """The expression as a scalar. `replaced` gives the column that holds an expression of this text."""
    if (known := _known(tree, scope, replaced)) is not None:
        return known
    _check(tree)
    match tree:
        case exp.Column():
            return _resolve(tree, scope)
        case exp.Coalesce():
            return _shared(tree, scope)
        case _ if is_subquery(tree):
            return _subquery(tree, scope, replaced)
        case exp.Paren() | exp.Alias():
            return to_scalar(tree.this, scope, replaced)
        case exp.Literal() | exp.Boolean() | exp.Null() | exp.Var():
            return Literal(generate(tree))
        case exp.Not(this=exp.Is() as test) if isinstance(test.expression, exp.Null):
            return call("IS NOT NULL", to_scalar(test.this, scope, replaced))
        case exp.Is() if isinstance(tree.expression, exp.Null):
            return call("IS NULL", to_scalar(tree.this, scope, replaced))
        case exp.Not():
            return call("NOT", to_scalar(tree.this, scope, replaced))
        case exp.Neg() if not isinstance(tree.this, exp.Literal):
            return call("-", to_scalar(tree.this, scope, replaced))
        case exp.If() if tree.args.get("false") is not None:
            branches = (tree.this, tree.args["true"], tree.args["false"])
            return Call("IF", tuple(to_scalar(b, scope, replaced) for b in branches))
        case exp.Cast() if type(tree) is exp.Cast and not tree.args.get("format"):
            return Cast(to_scalar(tree.this, scope, replaced), generate(tree.to))
        case exp.Anonymous() if isinstance(tree.this, str) and not list(tree.find_all(exp.Lambda, exp.Kwarg)):
            args = tuple(to_scalar(a, scope, replaced) for a in tree.expressions)
            return Call(tree.this.upper(), args)
        case _ if type(tree) in BINARY:
            left, right = (to_scalar(tree.args[side], scope, replaced) for side in ("this", "expression"))
            return call(BINARY[type(tree)], left, right)
        case _:
            return _verbatim(tree, scope, replaced)


def _known(tree: exp.Expr, scope: Scope, replaced: Mapping[str, str] | None) -> Scalar | None:
    """What is there already under this text, or is one value for all rows."""
    if replaced and (name := replaced.get(generate(tree))) is not None:
        return Column(name)
    if (moment := clock_function(tree)) is not None:
        return Clock(moment)
    return scope.measure_around(tree)


def _resolve(column: exp.Column, scope: Scope) -> Scalar:
    found = scope.resolve(column.table, column.name)
    if found is None:
        raise refuse(column, column.sql(), "this column cannot be told from the query's tables")
    return found


def _shared(tree: exp.Coalesce, scope: Scope) -> Scalar:
    """A column that USING shares (calls people write stay calls by name): of the side whose rows all stay."""
    first, *others = (tree.this, *tree.expressions)
    value = to_scalar(first, scope)
    for other in others:
        kind = scope.joined_by.get(other.table.lower(), "inner") if isinstance(other, exp.Column) else "full"
        if kind == "right":
            value = to_scalar(other, scope)
        elif kind == "full":
            value = call("COALESCE", value, to_scalar(other, scope))
    return value


def is_subquery(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Query | exp.Exists) or (isinstance(tree, exp.In) and tree.args.get("query") is not None)


def _subquery(tree: exp.Expr, scope: Scope, replaced: Mapping[str, str] | None) -> Scalar:
    if scope.read is None:
        raise refuse(tree, "subquery", "it cannot stand here")
    match tree:
        case exp.Exists():
            return Subquery("exists", (), scope.read(tree.this, scope))
        case exp.In():
            tested = tree.this.expressions if isinstance(tree.this, exp.Tuple) else [tree.this]
            values = tuple(to_scalar(t, scope, replaced) for t in tested)
            return Subquery("in", values, scope.read(tree.args["query"], scope))
        case _:
            return Subquery("scalar", (), scope.read(tree, scope))


def _verbatim(tree: exp.Expr, scope: Scope, replaced: Mapping[str, str] | None) -> Verbatim:
    """Spark's own text, with a hole for each column (or replaced expression) in it."""
    copy = exp.Paren(this=tree.copy())
    args: list[Scalar] = []
    for node in list(copy.this.walk(bfs=True, prune=lambda n: _is_hole(n, replaced))):
        if _is_hole(node, replaced):
            args.append(to_scalar(node, scope, replaced))
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


def limits(tree: exp.Expr) -> tuple[int | None, int]:
    """LIMIT and OFFSET as numbers."""
    found: list[int | None] = []
    for clause in ("limit", "offset"):
        node = tree.args.get(clause)
        value = node.args.get("expression") if node else None
        if node and not (isinstance(value, exp.Literal) and value.is_int):
            raise refuse(node, clause.upper(), "only a number can be maintained from changes")
        found.append(int(value.name) if value else None)
    return found[0], found[1] or 0


def is_generator(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Func) and function_name(tree) in GENERATORS


def to_generator(tree: exp.Expr, scope: Scope, replaced: Mapping[str, str] | None = None) -> Scalar:
    """A function that makes rows, over the columns of one row."""
    made = _verbatim(tree, scope, replaced)
    text = Verbatim((made.parts[0].removeprefix("("), *made.parts[1:]), made.args)
    return Verbatim((*text.parts[:-1], text.parts[-1].removesuffix(")")), text.args)


def clock_function(tree: exp.Expr) -> str | None:
    """The function of the clock that this is, under its one name."""
    return MOMENTS.get(function_name(tree)) if isinstance(tree, exp.Func) and not tree.expressions else None


def function_name(tree: exp.Func) -> str:
    return (tree.name if isinstance(tree, exp.Anonymous) else tree.sql_name()).lower()


def _is_hole(node: exp.Expr, replaced: Mapping[str, str] | None) -> bool:
    own = isinstance(node, exp.Column | exp.Coalesce) or is_subquery(node) or clock_function(node) is not None
    timed = isinstance(node, exp.Anonymous) and node.name.lower() == "window_time"  # read as something else later
    denied = isinstance(node, exp.Not | exp.EQ | exp.NEQ) and any(
        map(is_subquery, node.find_all(exp.In))
    )  # NOT IN is not NOT of IN
    return own or timed or denied or bool(replaced and generate(node) in replaced)


def _check(tree: exp.Expr) -> None:
    """Refuse what no scalar over one row can mean, or what another run would answer differently."""
    match tree:
        case exp.SubqueryPredicate() if not isinstance(tree, exp.Exists) and tree.find(exp.Query):
            raise refuse(tree, type(tree).__name__.upper(), NOT_YET)
        case exp.Window():
            raise refuse(tree, "window function", "it cannot stand here")
        case exp.Star(parent=exp.Dot()):
            raise refuse(tree, "*", "the fields of this struct are not known from the text: name them")
        case exp.Star():
            raise refuse(tree, "*", "columns of the same name cannot be told apart")
        case exp.Placeholder() | exp.Parameter():
            raise refuse(tree, "parameter", "a view cannot hold parameters")
        case exp.AggFunc() | exp.WithinGroup():
            raise refuse(tree, generate(tree), "an aggregate is not possible here")
        case _:
            pass
    if isinstance(tree, exp.Func):
        arity = len(tree.expressions) if isinstance(tree, exp.Anonymous) else 0
        _check_function(tree, function_name(tree), arity)


def _check_function(tree: exp.Expr, name: str, arity: int) -> None:
    why = why_not_repeatable(name, arity)
    if why is not None:
        raise refuse(tree, f"{name}()", why)
    if name in GENERATORS:
        raise refuse(tree, f"{name}()", "rows are made from rows only at the top of a SELECT or in LATERAL VIEW")
    if name in WINDOW_ONLY:
        raise refuse(tree, f"{name}()", "a window function needs OVER")
