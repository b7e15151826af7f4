"""Columns that nothing in the text names: those of functions that make rows, the fields of `struct.*`, and what `*`
stands for among the arguments of a function.

Their names are in the types, which Spark knows. So where the text does not say them, Spark is asked, and they are
written into the tree before its names are resolved.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from viewkeeper.sql.catalog import Catalog
from viewkeeper.sql.expressions import function_name, is_generator, refuse
from viewkeeper.sql.parse import generate

_HERE = "__vk_here"


def name_made_columns(tree: exp.Query, catalog: Catalog) -> None:
    """Give a generator without AS, and what a star stands for, the names that Spark gives their columns."""
    for select in list(tree.find_all(exp.Select)):
        for star in list(_stars_given(select)):
            _spell_out(star, select, catalog)
        for lateral in _laterals(select):
            _name_lateral(lateral, select, catalog)
        for item in list(select.expressions):
            if isinstance(item, exp.Func) and is_generator(item):
                names = _usual_names(item) or _selected_names(item, select, catalog) or _of_an_array(item)
                if not names:
                    raise refuse(item, f"{function_name(item)}()", "name the columns it makes by AS")
                made, labels = item.copy(), _identifiers(names)
                one = len(names) == 1
                item.replace(exp.alias_(made, labels[0]) if one else exp.Aliases(this=made, expressions=labels))
            elif (struct := _taken_apart(item, select)) is not None:
                fields = _identifiers(_selected_names(item, select, catalog))
                taken = [exp.alias_(exp.Dot(this=struct.copy(), expression=f.copy()), f) for f in fields]
                others = [[e] if e is not item else taken or [e] for e in select.expressions]
                select.set("expressions", [e for some in others for e in some])
    for lateral in tree.find_all(exp.Lateral):
        _name_query(lateral)


def name_table_function(table: exp.Table, catalog: Catalog) -> list[str]:
    """The columns of a generator that stands in the place of a table."""
    function = table.this
    return table.alias_column_names or _usual_names(function) or list(catalog.columns(f"SELECT {generate(function)}"))


def _usual_names(function: exp.Func) -> list[str]:
    """What Spark calls the columns of a generator, as far as its text says."""
    given = function.this if isinstance(function.this, exp.Expr) else None
    args = [*([given] if given is not None else []), *function.expressions]
    match function_name(function), args:
        case "explode" | "explode_outer", [exp.Map() | exp.VarMap() | exp.ToMap()]:
            return ["key", "value"]
        case "explode" | "explode_outer", [exp.Array()]:
            return ["col"]
        case "posexplode" | "posexplode_outer", [exp.Array()]:
            return ["pos", "col"]
        case "variant_explode" | "variant_explode_outer", _:
            return ["pos", "key", "value"]
        case "json_tuple", [_, *paths]:
            return [f"c{i}" for i in range(len(paths))]
        case "stack", [exp.Literal() as rows, *values] if rows.is_int:
            return [f"col{i}" for i in range(-(-len(values) // int(rows.name)))]
        case "inline" | "inline_outer", [exp.Array(expressions=[exp.Struct() as row, *_])]:
            return [field.alias_or_name for field in row.expressions]
        case _:
            return []


def _of_an_array(function: exp.Func) -> list[str]:
    """What the columns are called if it is an array that becomes rows, and no map."""
    name = function_name(function).removesuffix("_outer")
    return {"explode": ["col"], "posexplode": ["pos", "col"]}.get(name, [])


def _identifiers(names: list[str]) -> list[exp.Identifier]:
    return [exp.to_identifier(name, quoted=not name.isidentifier()) for name in names]


def _taken_apart(item: exp.Expr, select: exp.Select) -> exp.Expr | None:
    """The struct whose fields are selected by `struct.*`; None for all else, also for `table.*`."""
    match item:
        case exp.Dot(this=struct, expression=exp.Star() as star) if not any(star.args.values()):
            return struct if isinstance(struct, exp.Expr) else None
        case exp.Column(this=exp.Star() as star) if not any(star.args.values()):
            parts = [p for p in item.parts if not isinstance(p, exp.Star)]
            if parts[-1].name.lower() in _in_from(select):
                return None
            named: exp.Expr = exp.Column(this=parts[0].copy())
            if len(parts) > 1 and parts[0].name.lower() in _in_from(select):
                named, parts = exp.Column(this=parts[1].copy(), table=parts[0].copy()), parts[1:]
            for part in parts[1:]:
                named = exp.Dot(this=named, expression=part.copy())
            return named
        case _:
            return None


def _in_from(select: exp.Select) -> set[str]:
    """What tables, subqueries and generators are called in a SELECT."""
    joins, laterals = (select.args.get(clause) or [] for clause in ("joins", "laterals"))
    sources = [s for s in (select.args.get("from_"), *joins, *laterals) if s is not None]
    kinds = (exp.Table, exp.Subquery, exp.Lateral, exp.Values, exp.Pivot)
    return {node.alias_or_name.lower() for s in sources for node in s.find_all(*kinds)}


# Stars among the arguments of a function


def _stars_given(select: exp.Select) -> Iterator[exp.Expr]:
    """`*`, `table.*` and `struct.*` as arguments, but for count(*), which counts rows."""
    for star in select.find_all(exp.Star):
        item = star.parent if isinstance(star.parent, exp.Column | exp.Dot) else star
        given = isinstance(item.parent, exp.Func | exp.Distinct) and item.find_ancestor(exp.Select) is select
        if given and not isinstance(item.parent, exp.Dot) and not _counts_rows(item):
            yield item


def _counts_rows(item: exp.Expr) -> bool:
    called = item.parent
    return isinstance(item, exp.Star) and isinstance(called, exp.AnonymousAggFunc) and called.name.upper() == "COUNT"


def _spell_out(item: exp.Expr, select: exp.Select, catalog: Catalog) -> None:
    asked = exp.Select(expressions=[item.copy()])
    for clause in ("with_", "from_", "joins", "laterals"):
        asked.set(clause, select.copy().args.get(clause))
    names = list(catalog.columns(generate(_alone(asked, select))))
    if not names or len(set(names)) < len(names) or item.parent is None:
        return
    struct = _taken_apart(item, select)
    table = item.args.get("table") if isinstance(item, exp.Column) else None
    taken: list[exp.Expr] = [
        exp.Dot(this=struct.copy(), expression=name) if struct is not None else exp.column(name, table=table)
        for name in _identifiers(names)
    ]
    given = item.parent.expressions
    item.parent.set("expressions", [e for one in given for e in (taken if one is item else [one])])


# Laterals


def _laterals(select: exp.Select) -> Iterator[exp.Lateral]:
    for join in select.args.get("joins") or []:
        if isinstance(join.this, exp.Lateral):
            yield join.this
    yield from select.args.get("laterals") or []


def _name_lateral(lateral: exp.Lateral, select: exp.Select, catalog: Catalog) -> None:
    alias = lateral.args.get("alias")
    if not is_generator(lateral.this) or (alias and alias.args.get("columns")):
        return
    names = _usual_names(lateral.this) or _lateral_names(lateral, select, catalog) or _of_an_array(lateral.this)
    if names:
        named = (alias.this if alias else None) or exp.to_identifier(f"__vk_made_{function_name(lateral.this)}")
        lateral.set("alias", exp.TableAlias(this=named.copy(), columns=_identifiers(names)))


def _name_query(lateral: exp.Lateral) -> None:
    """LATERAL (SELECT explode(m) AS (key, value)): sqlglot sees no columns where several are under one AS."""
    query, alias = lateral.this.unnest(), lateral.args.get("alias")
    named = alias is not None and alias.args.get("columns")
    if named or not isinstance(query, exp.Select) or not any(isinstance(e, exp.Aliases) for e in query.expressions):
        return
    columns = [[*e.expressions] if isinstance(e, exp.Aliases) else [e.output_name] for e in query.expressions]
    identifiers = [exp.to_identifier(c) for some in columns for c in some]
    if all(i.name for i in identifiers):
        called = (alias.this if alias else None) or exp.to_identifier("__vk_made")
        lateral.set("alias", exp.TableAlias(this=called.copy(), columns=[i.copy() for i in identifiers]))


def _lateral_names(lateral: exp.Lateral, select: exp.Select, catalog: Catalog) -> list[str]:
    """What Spark calls the columns: asked over what stands in FROM before it."""
    copy = select.copy()
    joins, views = (copy.args.get(clause) or [] for clause in ("joins", "laterals"))
    place = next((i for i, join in enumerate(joins) if join.this == lateral), None)
    asked = exp.Select(expressions=[lateral.this.copy()])
    asked.set("with_", copy.args.get("with_"))
    asked.set("from_", copy.args.get("from_"))
    asked.set("joins", joins[:place])
    asked.set("laterals", views[: views.index(lateral)] if place is None else [])
    return list(catalog.columns(generate(_alone(asked, select))))


# Questions to Spark


def _selected_names(item: exp.Expr, select: exp.Select, catalog: Catalog) -> list[str]:
    """What Spark calls the columns of one item of a SELECT: those that are there with it and not without it."""
    place = next(i for i, e in enumerate(select.expressions) if e is item)
    asked, marked = select.copy(), select.copy()
    marked.expressions[place].replace(exp.alias_(exp.Literal.number(1), _HERE))
    for query in (asked, marked):
        for clause in ("order", "limit", "offset", "distinct"):
            query.set(clause, None)
    found = catalog.columns(generate(_alone(asked, select)))
    others = catalog.columns(generate(_alone(marked, select)))
    if not found or _HERE not in others:
        return []
    start = others.index(_HERE)
    return list(found[start : start + len(found) - len(others) + 1])


def _alone(query: exp.Query, at: exp.Expr) -> exp.Query:
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
