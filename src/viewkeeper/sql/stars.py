"""Stars whose columns the text does not say: `struct.*`, a star among arguments, and a star but for fields.

SELECT * EXCEPT (t.a, s.x) FROM t  →  SELECT t.b, named_struct('y', t.s.y) AS s FROM t
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from viewkeeper.sql.asked import columns_over, identifiers, in_from, selected_names
from viewkeeper.sql.catalog import Catalog
from viewkeeper.sql.expressions import refuse

_Path = tuple[str, ...]


def spell_out_stars(select: exp.Select, catalog: Catalog) -> None:
    """Write the columns that such stars stand for in their places."""
    for star in list(_stars_given(select)):
        _spell_out_given(star, select, catalog)
    for item in list(select.expressions):
        struct = _taken_apart(item, select)
        if struct is not None:
            fields = identifiers(selected_names(item, select, catalog))
            _put(select, item, [exp.alias_(exp.Dot(this=struct.copy(), expression=f.copy()), f) for f in fields])
        elif dropped := _dropped(item):
            _put(select, item, _left(item, dropped, select, catalog))


def _put(select: exp.Select, item: exp.Expr, taken: list[exp.Expr]) -> None:
    others = [[e] if e is not item else taken or [e] for e in select.expressions]
    select.set("expressions", [e for some in others for e in some])


def _taken_apart(item: exp.Expr, select: exp.Select) -> exp.Expr | None:
    """The struct whose fields are selected by `struct.*`; None for all else, also for `table.*`."""
    match item:
        case exp.Dot(this=struct, expression=exp.Star() as star) if not any(star.args.values()):
            return struct if isinstance(struct, exp.Expr) else None
        case exp.Column(this=exp.Star() as star) if not any(star.args.values()):
            parts = [p for p in item.parts if not isinstance(p, exp.Star)]
            if parts[-1].name.lower() in in_from(select):
                return None
            named: exp.Expr = exp.Column(this=parts[0].copy())
            if len(parts) > 1 and parts[0].name.lower() in in_from(select):
                named, parts = exp.Column(this=parts[1].copy(), table=parts[0].copy()), parts[1:]
            for part in parts[1:]:
                named = exp.Dot(this=named, expression=part.copy())
            return named
        case _:
            return None


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


def _spell_out_given(item: exp.Expr, select: exp.Select, catalog: Catalog) -> None:
    names = columns_over(item, select, catalog)
    if not names or len(set(names)) < len(names) or item.parent is None:
        return
    struct = _taken_apart(item, select)
    table = item.args.get("table") if isinstance(item, exp.Column) else None
    taken: list[exp.Expr] = [
        exp.Dot(this=struct.copy(), expression=name) if struct is not None else exp.column(name, table=table)
        for name in identifiers(names)
    ]
    given = item.parent.expressions
    item.parent.set("expressions", [e for one in given for e in (taken if one is item else [one])])


# But for fields


def _dropped(item: exp.Expr) -> list[_Path]:
    """What a star is to leave out, if that is told by more than names of columns."""
    star = next((part for part in (item, item.this, item.args.get("expression")) if isinstance(part, exp.Star)), None)
    excluded = star.args.get("except_") or [] if star is not None else []
    paths = [tuple(part.name.lower() for part in _parts(column)) for column in excluded]
    return paths if any(len(path) > 1 for path in paths) else []


def _parts(column: exp.Expr) -> list[exp.Expr]:
    match column:
        case exp.Dot():
            return [*_parts(column.this), column.expression]
        case exp.Column():
            return list(column.parts)
        case _:
            return [column]


def _left(item: exp.Expr, dropped: list[_Path], select: exp.Select, catalog: Catalog) -> list[exp.Expr]:
    """The columns of a star without those that are dropped."""

    def columns(of: exp.Expr, dropped: list[_Path]) -> Iterator[tuple[exp.Identifier, exp.Expr]]:
        found = columns_over(_of(of, exp.Star()), select, catalog)
        if not found or len(set(found)) < len(found):
            raise refuse(item, "* EXCEPT", "the columns that are left cannot be told apart")
        for name in identifiers(found):
            inside = [path[1:] for path in dropped if path[0] == name.name.lower()]
            if () not in inside:
                value = _of(of, name)
                yield name, struct(value, inside) if inside else value

    def struct(value: exp.Expr, dropped: list[_Path]) -> exp.Expr:
        fields = ((exp.Literal.string(name.name), field) for name, field in columns(value, dropped))
        return exp.Anonymous(this="NAMED_STRUCT", expressions=[part for field in fields for part in field])

    found: list[exp.Expr] = []
    for source in _sources(item, select):
        inside = [path[1:] if path[0] == source.name.lower() and len(path) > 1 else path for path in dropped]
        found += [exp.alias_(value, name.copy()) for name, value in columns(source, inside)]
    return found


def _of(whole: exp.Expr, part: exp.Expr) -> exp.Expr:
    """A column of a table, or a field of a struct."""
    if isinstance(whole, exp.Identifier):
        return exp.Column(this=part, table=whole.copy())
    return exp.Dot(this=whole.copy(), expression=part)


def _sources(item: exp.Expr, select: exp.Select) -> list[exp.Expr]:
    """The tables whose columns a star has, in their order; or the struct whose fields it has."""
    match item:
        case exp.Column(this=exp.Star()) if item.table.lower() in in_from(select) and not item.db:
            return [item.args["table"]]
        case exp.Star():
            joins = select.args.get("joins") or []
            parts = [p.this for p in (select.args.get("from_"), *joins) if p and not _filters(p)]
            shared = any(join.args.get("using") or join.method == "NATURAL" for join in joins)
            if not shared and all(p.alias_or_name and not p.args.get("joins") for p in parts):
                return [exp.to_identifier(p.alias_or_name) for p in (*parts, *(select.args.get("laterals") or []))]
        case _:
            bare = item.copy()
            for star in bare.find_all(exp.Star):
                star.set("except_", None)
            if (struct := _taken_apart(bare, select)) is not None:
                return [struct]
    raise refuse(item, "* EXCEPT", "whose columns these are cannot be told from the text")


def _filters(part: exp.Expr) -> bool:
    return isinstance(part, exp.Join) and part.is_semi_or_anti_join
