"""PIVOT and UNPIVOT to algebra.

Names are resolved query by query, so each of them first becomes a SELECT of its own: of the columns that it keeps,
then under the names of those that it makes of itself, and of nothing.
"""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.relations import Field, Item, Pivot, Project, Relation, Unpivot
from viewkeeper.algebra.types import UNKNOWN
from viewkeeper.sql.expressions import NOT_YET, Scope, aggregate_calls, refuse, to_scalar
from viewkeeper.sql.groups import Computed
from viewkeeper.sql.labels import Labels
from viewkeeper.sql.parse import generate, unaliased


def as_selects(tree: exp.Query) -> None:
    """Put a subquery in the place of every PIVOT and UNPIVOT."""
    for owner in [node for node in tree.walk() if node.args.get("pivots")]:
        pivots = owner.args["pivots"]
        owner.set("pivots", None)
        if isinstance(owner, exp.Join):
            _select_joined(owner, pivots)
        else:
            place = exp.Subquery()
            owner.replace(place)
            place.replace(_selected(exp.From(this=owner), [], pivots))


def _select_joined(last: exp.Join, pivots: list[exp.Pivot]) -> None:
    """FROM a JOIN b … PIVOT: of everything that is joined up to there."""
    query = last.parent
    assert query is not None
    joins = query.args["joins"]
    until = joins.index(last) + 1
    query.set("from_", exp.From(this=_selected(query.args["from_"], joins[:until], pivots)))
    query.set("joins", joins[until:])


def _selected(source: exp.From, joins: list[exp.Join], pivots: list[exp.Pivot]) -> exp.Subquery:
    """The first of them over the joined tables, each other over the one before."""
    *before, pivot = pivots
    if before:
        source, joins = exp.From(this=_selected(source, joins, before)), []
    if len(pivot.args["fields"]) != 1 or not pivot.args["fields"][0].expressions:
        raise refuse(pivot, "PIVOT", NOT_YET)
    read = pivot.args["fields"] if _is_unpivot(pivot) else [*pivot.expressions, *pivot.args["fields"]]
    mentioned = {column.name: column for part in read for column in part.find_all(exp.Column)}
    alias = pivot.args.get("alias")
    pivot.set("alias", None)
    first, *others = _labels(pivot)
    kept = exp.Star(except_=[exp.column(name) for name in mentioned])
    made: list[exp.Expr] = [exp.Alias(this=pivot, alias=exp.to_identifier(first, quoted=True))]
    made += [exp.alias_(exp.Null(), label, quoted=True) for label in others]
    select = exp.Select(expressions=[kept, *made], from_=source, joins=joins)
    return exp.Subquery(this=select, alias=alias)


def _is_unpivot(pivot: exp.Pivot) -> bool:
    return bool(pivot.args.get("unpivot"))


def _labels(pivot: exp.Pivot) -> list[str]:
    """The names of the columns it makes, as Spark gives them."""
    (field,) = pivot.args["fields"]
    if _is_unpivot(pivot):
        return [field.this.name, *(v.name for v in _members(pivot.expressions[0]))]
    several = len(pivot.expressions) > 1
    suffixes = [f"_{a.alias or generate(a).lower()}" if several else "" for a in pivot.expressions]
    return [f"{_value_name(value)}{suffix}" for value in field.expressions for suffix in suffixes]


def _value_name(value: exp.Expr) -> str:
    match value:
        case exp.PivotAlias():
            return str(value.args["alias"].name)
        case exp.Tuple():
            return f"{{{', '.join(map(_value_name, value.expressions))}}}"
        case _:
            return value.name or generate(value).lower()


def _members(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of (a, b), or the only one."""
    inner = tree.this if isinstance(tree, exp.PivotAlias) else tree
    return list(inner.expressions) if isinstance(inner, exp.Tuple) else [inner]


def pivot_of(tree: exp.Select) -> exp.Pivot | None:
    """The PIVOT or UNPIVOT that the SELECT stands for."""
    return next((e.this for e in tree.expressions if isinstance(e.this, exp.Pivot)), None)


def bind_pivot(
    tree: exp.Select, pivot: exp.Pivot, relation: Relation, scope: Scope, names: Labels
) -> tuple[Relation, tuple[str, ...]]:
    """The rows of the SELECT that stands for a PIVOT or UNPIVOT, and the labels of its columns."""
    (field,) = pivot.args["fields"]
    labels = tuple(e.output_name for e in tree.expressions)
    kept = len(labels) - len(_labels(pivot))
    below = Computed(scope, names)

    def computed(parts: list[exp.Expr]) -> tuple[str, ...]:
        return tuple(below.value(part, to_scalar(part, scope)) for part in parts)

    keys = computed([unaliased(e) for e in tree.expressions[:kept]])
    outputs = tuple(names.fresh(label) for label in labels[kept:])
    if _is_unpivot(pivot):
        taken = tuple(computed(_members(e)) for e in field.expressions)
        given = tuple(str(e.args["alias"].name) for e in field.expressions)
        fields = tuple(Field(name, UNKNOWN) for name in outputs)
        rows = Project(relation, tuple(below.items))
        return Unpivot(rows, keys, taken, given, fields, bool(pivot.args.get("include_nulls"))), labels
    columns = computed(_members(field.this))
    values = tuple(tuple(to_scalar(cell, Scope()) for cell in _members(value)) for value in field.expressions)
    measures = {generate(c): below.measure(c) for e in pivot.expressions for c in aggregate_calls(unaliased(e))}
    named = {text: m.name for text, m in measures.items()}
    results = tuple(
        Item(names.fresh("__vk_result", e), to_scalar(e, Scope(), named), UNKNOWN) for e in pivot.expressions
    )
    rows = Project(relation, tuple(below.items))
    return Pivot(rows, keys, columns, values, tuple(measures.values()), results, outputs), labels
