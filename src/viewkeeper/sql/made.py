"""Columns that nothing in the text names: those of functions that make rows.

Their names are in the types, which Spark knows. So where the text does not say them, Spark is asked, and they are
written into the tree before its names are resolved.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from viewkeeper.sql.asked import alone, identifiers, selected_names
from viewkeeper.sql.catalog import Catalog
from viewkeeper.sql.expressions import function_name, is_generator, refuse
from viewkeeper.sql.parse import generate
from viewkeeper.sql.stars import spell_out_stars


def name_made_columns(tree: exp.Query, catalog: Catalog) -> None:
    """Give a generator without AS, and what a star stands for, the names that Spark gives their columns."""
    for select in list(tree.find_all(exp.Select)):
        spell_out_stars(select, catalog)
        for lateral in _laterals(select):
            _name_lateral(lateral, select, catalog)
        for item in list(select.expressions):
            if isinstance(item, exp.Func) and is_generator(item):
                names = _usual_names(item) or selected_names(item, select, catalog) or _of_an_array(item)
                if not names:
                    raise refuse(item, f"{function_name(item)}()", "name the columns it makes by AS")
                made, labels = item.copy(), identifiers(names)
                one = len(names) == 1
                item.replace(exp.alias_(made, labels[0]) if one else exp.Aliases(this=made, expressions=labels))
    for lateral in tree.find_all(exp.Lateral):
        _name_query(lateral)


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
        lateral.set("alias", exp.TableAlias(this=named.copy(), columns=identifiers(names)))


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
    return list(catalog.columns(generate(alone(asked, select))))
