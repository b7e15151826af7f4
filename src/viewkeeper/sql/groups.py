"""GROUP BY and aggregate functions to algebra: one operator over the values that it groups by and measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from sqlglot import exp

from viewkeeper.algebra.aggregates import AMBIGUOUS, REPEATABLE, SYNONYMS
from viewkeeper.algebra.relations import Aggregate, Filter, Item, Measure, Project, Relation
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.algebra.types import UNKNOWN
from viewkeeper.sql.expressions import NOT_YET, Scope, aggregate_calls, refuse, to_scalar
from viewkeeper.sql.labels import Labels
from viewkeeper.sql.parse import generate, ordered_by, unaliased
from viewkeeper.sql.windows import ordering

COMPUTED = "__vk_of_"  # begins the names of values that no column has; no other name of ours begins so


@dataclass
class Computed:
    """The columns of a projection below an aggregate: what it reads, each value once."""

    scope: Scope
    labels: Labels
    items: list[Item] = field(default_factory=list)

    def value(self, tree: exp.Expr, scalar: Scalar) -> str:
        """The name under which this value is computed."""
        for item in self.items:
            if item.value == scalar:
                return item.name
        name = scalar.name if isinstance(scalar, Column) else self.labels.fresh(f"{COMPUTED}{tree.name or 'x'}".lower())
        self.labels.place(name, tree)
        self.items.append(Item(name, scalar, UNKNOWN))
        return name

    def measure(self, tree: exp.Expr) -> Measure:
        """An aggregate call, with its WITHIN GROUP, FILTER and IGNORE NULLS."""
        inner = tree
        order: list[exp.Ordered] = []
        condition: exp.Expr | None = None
        while not isinstance(inner, exp.AnonymousAggFunc):
            match inner:
                case exp.Filter():
                    condition = inner.expression.this
                case exp.WithinGroup():
                    order = inner.expression.expressions
                case exp.IgnoreNulls() | exp.RespectNulls():
                    pass
                case _:
                    raise refuse(inner, generate(inner), "this form of aggregate is not maintained from changes yet")
            inner = inner.this
        function = SYNONYMS.get(str(inner.this).lower(), str(inner.this).lower())
        if function not in REPEATABLE | AMBIGUOUS | {"grouping", "grouping_id"}:
            raise refuse(inner, f"{function}()", NOT_YET)
        args = list(inner.expressions)
        distinct = bool(args) and isinstance(args[0], exp.Distinct)
        if distinct:
            args = list(args[0].expressions)
            if any(isinstance(a, exp.Star) for a in args):
                raise refuse(inner, generate(inner), "columns of the same name cannot be told apart")
        values = [] if any(isinstance(a, exp.Star) for a in args) else [to_scalar(a, self.scope) for a in args]
        return Measure(
            self.labels.fresh(function, inner),
            function,
            tuple(self.value(inner, value) for value in values),
            UNKNOWN,
            distinct,
            None if condition is None else self.value(condition, to_scalar(condition, self.scope)),
            tuple(ordering(o, self.value(o.this, to_scalar(o.this, self.scope))) for o in order),
            tree.find(exp.IgnoreNulls) is not None,
        )


def is_aggregate(tree: exp.Select) -> bool:
    if tree.args.get("group") or tree.args.get("having"):
        return True
    return any(True for e in _above_groups(tree) for _ in aggregate_calls(e))


def bind_groups(
    tree: exp.Select, relation: Relation, scope: Scope, labels: Labels
) -> tuple[Relation, Scope, dict[str, str]]:
    """γ and HAVING; what can be seen above them, and the column that holds each expression of that text."""
    having = tree.args.get("having")
    below = Computed(scope, labels)
    grouped_by, sets = _group_keys(tree)
    keys = {generate(k): below.value(k, to_scalar(k, scope)) for k in grouped_by}
    measures: dict[str, Measure] = {}
    for call in (a for e in _above_groups(tree) for a in (*aggregate_calls(e), *_asked_by_subqueries(e, tree, scope))):
        if generate(call) not in measures:
            measures[generate(call)] = measure = below.measure(call)
            if measure.function in AMBIGUOUS and _ordered_below(tree):
                why = "Spark takes rows in the order of the subquery, which their changes do not have"
                raise refuse(call, f"{measure.function}() over ORDER BY", why)
    grouped: Relation = Aggregate(
        Project(relation, tuple(below.items)),
        tuple(dict.fromkeys(keys.values())),
        tuple(measures.values()),
        tuple(tuple(dict.fromkeys(keys[generate(k)] for k in one)) for one in sets),
    )
    replaced = {**keys, **{text: m.name for text, m in measures.items()}}
    # Only what is grouped by can be seen from now on, by subqueries too.
    visible = {at: n for at, n in scope.columns.items() if n in keys.values()}
    seen = replace(scope, columns=visible, measured={text: m.name for text, m in measures.items()})
    if having:
        grouped = Filter(grouped, to_scalar(having.this, seen, replaced))
    return grouped, seen, replaced


def _ordered_below(tree: exp.Select) -> bool:
    """Whether the rows come from a query in an order that is not only there for a LIMIT."""
    source = tree.args["from_"].this if tree.args.get("from_") else None
    query = _common_table(source) if isinstance(source, exp.Table) else source
    query = query.this if isinstance(query, exp.Subquery | exp.CTE) else None
    if query is None or query.args.get("limit"):
        return False
    plain = isinstance(query, exp.Select) and not is_aggregate(query)
    return bool(ordered_by(query)) or (plain and _ordered_below(query))


def _common_table(table: exp.Table) -> exp.CTE | None:
    """The common table expression of that name, as seen from there."""
    around = table.find_ancestor(exp.Query)
    while around is not None:
        for cte in reversed(around.ctes):
            if cte.alias == table.name:
                return cte
        around = around.find_ancestor(exp.Query)
    return None


def _asked_by_subqueries(above: exp.Expr, tree: exp.Select, scope: Scope) -> Iterator[exp.Expr]:
    """Aggregates over this SELECT's rows that stand in the WHERE of a subquery: HAVING EXISTS (… WHERE x < min(y))."""
    for query in above.find_all(exp.Select):
        where = query.args.get("where")
        for call in where.find_all(exp.AggFunc) if where else ():
            read = [(c.table.lower(), c.name.lower()) for c in call.find_all(exp.Column)]
            inside = call.find_ancestor(exp.Select)
            while inside is not None and inside is not tree:
                sources = (inside.args.get("from_"), *(inside.args.get("joins") or ()))
                read = [at for at in read if at[0] not in {s.this.alias_or_name.lower() for s in sources if s}]
                inside = inside.find_ancestor(exp.Select)
            if read and len(read) == len(list(call.find_all(exp.Column))) and set(read) <= scope.columns.keys():
                yield call


def _above_groups(tree: exp.Select) -> list[exp.Expr]:
    """Every expression of a SELECT that is evaluated after grouping."""
    clauses = [tree.args.get(c) for c in ("having", "qualify")]
    above = (*(c.this for c in clauses if c), *(o.this for o in ordered_by(tree)), *(tree.args.get("windows") or ()))
    return [*map(unaliased, tree.expressions), *above]


def _group_keys(tree: exp.Select) -> tuple[list[exp.Expr], list[list[exp.Expr]]]:
    """What is grouped by, and the sets of it if there are several."""
    group = tree.args.get("group")
    if group is None:
        return [], []
    if group.args.get("totals"):
        raise refuse(group, "WITH TOTALS", NOT_YET)
    if group.args.get("all"):
        selected = [unaliased(e) for e in tree.expressions]
        return [e for e in selected if not any(True for _ in aggregate_calls(e))], []
    elements = list(group.expressions)
    trailing = [node for clause in ("rollup", "cube", "grouping_sets") for node in group.args.get(clause) or []]
    if not trailing and not any(isinstance(e, _SEVERAL) for e in elements):
        return elements, []
    if trailing:  # GROUP BY a, b WITH ROLLUP: the sets are of the columns before
        sets = [s for node in trailing for s in _sets(node, elements)]
    else:  # GROUP BY a, ROLLUP (b, c): one set of each element, together
        sets = [list[exp.Expr]()]
        for element in elements:
            sets = [one + other for one in sets for other in _sets_of(element)]
    keys = {generate(k): k for element in (*elements, *trailing) for k in _written(element)}
    return list(keys.values()), sets


_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)


def _sets(node: exp.Expr, columns: list[exp.Expr]) -> list[list[exp.Expr]]:
    """The grouping sets that ROLLUP, CUBE or GROUPING SETS stands for."""
    elements = [_members(e) for e in node.expressions or columns]
    match node:
        case exp.GroupingSets():
            return [s for e in node.expressions for s in _sets_of(e)]
        case exp.Rollup():
            chosen = [elements[:n] for n in range(len(elements), -1, -1)]
        case _:
            counts = range(len(elements), -1, -1)
            chosen = [list(c) for n in counts for c in combinations(elements, n)]
    return [[member for element in one for member in element] for one in chosen]


def _sets_of(element: exp.Expr) -> list[list[exp.Expr]]:
    return _sets(element, []) if isinstance(element, _SEVERAL) else [_members(element)]


def _written(element: exp.Expr) -> list[exp.Expr]:
    """The columns in the order of the text, by which grouping_id() numbers them."""
    if isinstance(element, _SEVERAL):
        return [column for below in element.expressions for column in _written(below)]
    return _members(element)


def _members(tree: exp.Expr) -> list[exp.Expr]:
    match tree:
        case exp.Tuple():
            return list(tree.expressions)
        case exp.Paren():
            return [tree.this]
        case _:
            return [tree]
