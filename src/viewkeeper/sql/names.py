"""The names of a query: which tables it mentions, and to which of them each column belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from viewkeeper.algebra.reasons import Reason
from viewkeeper.sql.catalog import Catalog, Named, Resolver, Source, Unmaintainable
from viewkeeper.sql.dialect import ViewSpark
from viewkeeper.sql.expressions import Refusal, refuse
from viewkeeper.sql.tables import is_function, makes_rows, to_rows

_PLACEHOLDER = "__vk_source_"
_USING = "joins by USING"


@dataclass(frozen=True)
class TableMention:
    """A table's name in the text: its parts, where it stands, and whether it has an alias or can get none there."""

    parts: tuple[str, ...]
    start: int
    end: int
    aliased: bool


@dataclass(frozen=True)
class TableUse:
    """One mention of a table, and which table that is."""

    source: Source
    mention: TableMention


def table_mentions(tree: exp.Query) -> tuple[TableMention, ...]:
    """Every mention of a real table (not of a CTE) in the query."""
    found = []
    for table in _real_tables(tree):
        parts = table.parts
        if not all(isinstance(p, exp.Identifier) and "start" in p.meta for p in parts):
            raise refuse(table, "this table reference", "only tables and views named directly can be followed")
        start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
        aliased = bool(table.alias or table.args.get("sample"))  # TABLESAMPLE comes before an alias
        found.append(TableMention(tuple(p.name for p in parts), start, end, aliased))
    return tuple(found)


def names_schemas(tree: exp.Query) -> bool:
    """Whether a column may be called by its table with the schema that this is in, as in `shop.sales.price`."""
    tables = {mention.parts[-1].lower() for mention in table_mentions(tree) if not mention.aliased}
    return any(part.name.lower() in tables for column in tree.find_all(exp.Column) for part in column.parts[1:-1])


def table_uses(tree: exp.Query, catalog: Resolver) -> tuple[TableUse, ...]:
    """Every mention of a table, all of which are known only if no function reads tables of its own."""
    for function in (table for table in tree.find_all(exp.Table) if is_function(table)):
        if not makes_rows(function):
            raise refuse(function, "this table function", "which tables it reads its text does not say")
    return tuple(TableUse(catalog.resolve(mention.parts), mention) for mention in table_mentions(tree))


def _real_tables(tree: exp.Query) -> list[exp.Table]:
    tables = {
        id(source): source
        for scope in traverse_scope(tree)
        for source in scope.sources.values()
        if isinstance(source, exp.Table) and not _is_pivoted_cte(source, scope)
    }
    return [table for table in tables.values() if not is_function(table)]


def _is_pivoted_cte(table: exp.Table, scope: Scope) -> bool:
    """sqlglot takes what is pivoted for a table of its own, also where its name is that of a CTE."""
    return bool(table.args.get("pivots")) and not table.db and isinstance(scope.sources.get(table.name), Scope)


def name_sources(tree: exp.Query, catalog: Catalog) -> dict[str, Named]:
    """Give each table mention a name of one part that nothing else has; return what each stands for."""
    sources: dict[str, Named] = {}
    functions = [table for table in tree.find_all(exp.Table) if is_function(table)]
    for number, table in enumerate(_real_tables(tree)):
        if table.args.get("version") or table.args.get("when"):
            raise refuse(table, "VERSION AS OF", "a pinned version never changes; read the table itself")
        if table.args.get("sample"):
            raise refuse(table, "TABLESAMPLE", "a sample is another one each time")
        source = catalog.resolve(tuple(p.name for p in table.parts))
        if isinstance(source, Unmaintainable):
            raise refuse(table, source.name, source.why)
        # The same table by the same name, so that the same expression has the same text wherever it stands.
        name = next((known for known, other in sources.items() if other == source), f"{_PLACEHOLDER}{number}")
        sources[name] = source
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        _strip_qualifiers(tree, table)
        table.set("this", exp.to_identifier(name))
        table.set("db", None)
        table.set("catalog", None)
    for number, table in enumerate(functions):
        name = f"{_PLACEHOLDER}made_{number}"
        sources[name] = to_rows(table)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
        table.set("this", exp.to_identifier(name))
    return sources


def _strip_qualifiers(tree: exp.Query, table: exp.Table) -> None:
    """`db.t.c` means `t.c` here, as `t` is the alias from now on."""
    if table.db:
        for column in tree.find_all(exp.Column):
            if column.db and column.table.lower() == table.name.lower() and column.db.lower() == table.db.lower():
                column.set("db", None)
                column.set("catalog", None)


def qualify_names(tree: exp.Query, sources: Mapping[str, Named]) -> exp.Query:
    _using_first(tree, sources)
    for join in tree.find_all(exp.Join):
        join.meta[_USING] = bool(join.args.get("using")) or join.method == "NATURAL"
    beside = _hidden(tree, sources)
    schema = MappingSchema({name: dict(source.columns) for name, source in sources.items()}, dialect=ViewSpark)
    try:
        qualified = qualify(tree, schema=schema, dialect=ViewSpark, quote_identifiers=False)
    except SqlglotError as error:
        raise Refusal(Reason("this query", f"its names could not be resolved: {error}")) from error
    except AssertionError as error:  # columns of one name in a subquery that is read by *
        raise Refusal(Reason("this query", "its names could not be resolved")) from error
    if not isinstance(qualified, exp.Query):
        raise Refusal(Reason("this query", "its names could not be resolved"))
    for mark in list(qualified.find_all(exp.Parameter)):
        if mark.name in beside:
            mark.replace(beside[mark.name])
    for select in qualified.find_all(exp.Select):
        _using_shared(select)
    _shared_in_having(qualified, sources)
    return qualified


def _shared_in_having(tree: exp.Query, sources: Mapping[str, Named]) -> None:
    """Columns that sqlglot leaves as they are in HAVING: those that USING or NATURAL shares, and of queries around."""
    for scope in traverse_scope(tree):
        having = scope.expression.args.get("having")
        for column in list(having.find_all(exp.Column)) if having else ():
            if column.table or column.find_ancestor(exp.Query) is not scope.expression:
                continue
            around: Scope | None = scope
            owners = _owners(column, scope, sources)
            while not owners and around is not None and around.is_subquery:
                around = around.parent
                owners = _owners(column, around, sources)
            first, *others = owners or [column]
            column.replace(exp.Coalesce(this=first, expressions=others) if others else first)


def _owners(column: exp.Column, scope: Scope | None, sources: Mapping[str, Named]) -> list[exp.Column]:
    """The column as each table of a SELECT has it, in the order of FROM."""
    if scope is None:
        return []
    select = scope.expression
    tables = (t.this.alias_or_name for t in (select.args.get("from_"), *(select.args.get("joins") or ())) if t)
    having_it = (t for t in tables if column.name.lower() in _columns_of(scope.sources.get(t), sources))
    return [exp.column(column.name, table=t) for t in having_it]


def _using_shared(select: exp.Select) -> None:
    """USING after another USING compares the column that those before it share, not that of the first table."""
    shared: dict[str, list[exp.Expr]] = {}
    for join in select.args.get("joins") or []:
        on = join.args.get("on") if join.meta.get(_USING) else None  # NATURAL may have nothing to share
        for equal in list(on.find_all(exp.EQ)) if on is not None else ():
            first, *others = columns = shared.setdefault(equal.expression.name, [equal.this])
            if others:
                equal.set("this", exp.Coalesce(this=first.copy(), expressions=[o.copy() for o in others]))
            if not join.is_semi_or_anti_join:
                columns.append(equal.expression)


def _hidden(tree: exp.Query, sources: Mapping[str, Named]) -> dict[str, exp.Expr]:
    """The columns of the right side of a semi or anti join that stand in its condition, each under the name of a mark.

    sqlglot looks for them among everything in FROM, where a join in parentheses has no name, and gives up; it takes
    them for fields of a column that is called as the right side is; and it does not look there from a subquery.
    """
    scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}
    hidden: dict[str, exp.Expr] = {}
    for join in tree.find_all(exp.Join):
        on = join.args.get("on")
        for column in list(on.find_all(exp.Column)) if on is not None and join.is_semi_or_anti_join else ():
            parts, right = [part.name.lower() for part in column.parts], join.alias_or_name.lower()
            if len(parts) > 1 and parts[0] == right:
                parts = parts[1:]
            elif not right or not _is_only_there(parts[0], column, join, scopes, sources):
                continue
            name = f"{_PLACEHOLDER}hidden_{len(hidden)}"
            hidden[name] = exp.column(parts[0], table=right)
            for part in parts[1:]:
                hidden[name] = exp.Dot(this=hidden[name], expression=exp.to_identifier(part))
            column.replace(exp.Parameter(this=exp.Var(this=name)))
    return hidden


def _is_only_there(
    name: str, column: exp.Column, join: exp.Join, scopes: Mapping[int, Scope], sources: Mapping[str, Named]
) -> bool:
    """Whether a column in a subquery of a join's condition is of the right side, and all around is known to lack it."""
    around = column.find_ancestor(exp.Query)
    while around is not None and around is not join.parent:
        inner = scopes.get(id(around))
        for called, source in inner.sources.items() if inner is not None else ():
            known = _columns_of(source, sources)
            if not known or "*" in known or name in known or name == called.lower():
                return False
        around = around.find_ancestor(exp.Query)
    outer = scopes.get(id(around))
    nested = outer is not None and column.find_ancestor(exp.Query) is not around
    return nested and outer is not None and name in _columns_of(outer.sources.get(join.alias_or_name), sources)


def _using_first(tree: exp.Query, sources: Mapping[str, Named]) -> None:
    """`t.*` as Spark means it beside JOIN … USING: the columns joined by come first, of the last join before others."""
    for scope in traverse_scope(tree):
        select = scope.expression
        joined_by: list[str] = []
        for join in select.args.get("joins") or []:
            using = [column.name.lower() for column in join.args.get("using") or []]
            joined_by = [*using, *(name for name in joined_by if name not in using)]
        if not joined_by or not isinstance(select, exp.Select):
            continue
        selected: list[exp.Expr] = []
        for star in select.expressions:
            own = _columns_of(scope.sources.get(star.table), sources) if _is_plain_star(star) else frozenset()
            first = [name for name in joined_by if name in own]
            selected += [exp.column(name, table=star.table) for name in first]
            if first:
                star.this.set("except_", [exp.to_identifier(name) for name in first])
            if not own or own - set(first):
                selected.append(star)
        select.set("expressions", selected)


def _is_plain_star(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star) and not any(tree.this.args.values())


def _columns_of(source: object, sources: Mapping[str, Named]) -> frozenset[str]:
    """The columns of something in FROM, as far as its text says."""
    match source:
        case exp.Table() if source.name in sources:
            return frozenset(name.lower() for name, _ in sources[source.name].columns)
        case Scope(expression=exp.Query() as query):
            return frozenset(name.lower() for name in query.named_selects)
        case _:
            return frozenset()
