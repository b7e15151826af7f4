"""Questions to Spark about a part of a query: what it calls its columns there."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.sql.catalog import Catalog
from viewkeeper.sql.parse import generate

_HERE = "__vk_here"


def identifiers(names: list[str]) -> list[exp.Identifier]:
    return [exp.to_identifier(name, quoted=not name.isidentifier()) for name in names]


def in_from(select: exp.Select) -> set[str]:
    """What tables, subqueries and generators are called in a SELECT."""
    joins, laterals = (select.args.get(clause) or [] for clause in ("joins", "laterals"))
    sources = [s for s in (select.args.get("from_"), *joins, *laterals) if s is not None]
    kinds = (exp.Table, exp.Subquery, exp.Lateral, exp.Values, exp.Pivot)
    return {node.alias_or_name.lower() for s in sources for node in s.find_all(*kinds)}


def selected_names(item: exp.Expr, select: exp.Select, catalog: Catalog) -> list[str]:
    """What Spark calls the columns of one item of a SELECT: those that are there with it and not without it."""
    place = next(i for i, e in enumerate(select.expressions) if e is item)
    asked, marked = select.copy(), select.copy()
    marked.expressions[place].replace(exp.alias_(exp.Literal.number(1), _HERE))
    for query in (asked, marked):
        for clause in ("order", "limit", "offset", "distinct"):
            query.set(clause, None)
    found = catalog.columns(generate(alone(asked, select)))
    others = catalog.columns(generate(alone(marked, select)))
    if not found or _HERE not in others:
        return []
    start = others.index(_HERE)
    return list(found[start : start + len(found) - len(others) + 1])


def alone(query: exp.Query, at: exp.Expr) -> exp.Query:
    """A query that stands at a place in a text, with what can be seen from there: common table expressions, and the
    rows around it."""
    node = at
    while (parent := node.parent) is not None:
        seen: list[exp.Expr] = []
        match parent:
            case exp.With():
                seen = parent.expressions[: next(i for i, e in enumerate(parent.expressions) if e is node)]
                node = parent.parent or parent
            case exp.Query():
                query = _beside(query, parent, node)
                known = parent.args.get("with_")
                seen = known.expressions if known is not None else []
                node = parent
            case _:
                node = parent
        if seen:
            common = exp.With(expressions=[c.copy() for c in seen])
            query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query)), with_=common)
    return query


def _beside(query: exp.Query, around: exp.Query, part: exp.Expr) -> exp.Query:
    """A query that stands in a part of another, beside the rows there; one in FROM sees none, unless it is LATERAL."""
    source, joins = around.args.get("from_"), list(around.args.get("joins") or [])
    if isinstance(part, exp.Join) and isinstance(part.this, exp.Lateral):
        joins = joins[: next(i for i, join in enumerate(joins) if join is part)]
    elif not isinstance(around, exp.Select) or isinstance(part, exp.From | exp.Join):
        source = None
    if source is None:
        return query
    lateral = exp.Lateral(this=exp.Subquery(this=query), alias=exp.TableAlias(this=exp.to_identifier(_HERE)))
    return exp.Select(
        expressions=[exp.Column(this=exp.Star(), table=exp.to_identifier(_HERE))],
        from_=source.copy(),
        joins=[*(join.copy() for join in joins), exp.Join(this=lateral)],
    )


def columns_over(item: exp.Expr, select: exp.Select, catalog: Catalog) -> list[str]:
    """What Spark calls the columns of an item over the rows that a SELECT is from."""
    asked = exp.Select(expressions=[item.copy()])
    for clause in ("with_", "from_", "joins", "laterals"):
        asked.set(clause, select.copy().args.get(clause))
    return list(catalog.columns(generate(alone(asked, select))))
