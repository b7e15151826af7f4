"""A parsed query to algebra: names resolved, each clause one operator, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import assert_never

from sqlglot import exp

from viewkeeper.algebra.clock import in_filters, misplaced
from viewkeeper.algebra.correlation import CannotJoin
from viewkeeper.algebra.keys import NOTHING, keys
from viewkeeper.algebra.laterals import without_condition
from viewkeeper.algebra.normalize import collapse, prune
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Generate,
    Item,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    ScanColumn,
    SetOperation,
    Top,
    Union,
    Values,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import Clock, Column, Scalar, substitute
from viewkeeper.algebra.sessions import has_sessions, without_sessions
from viewkeeper.algebra.sets import as_groups
from viewkeeper.algebra.subqueries import as_joins
from viewkeeper.algebra.times import with_plain_times
from viewkeeper.algebra.types import UNKNOWN
from viewkeeper.errors import Position
from viewkeeper.sql.catalog import Catalog, DeltaTable, Generated, KeptView, Named, Unmaintainable
from viewkeeper.sql.expressions import (
    NOT_YET,
    Refusal,
    Scope,
    clock_function,
    is_generator,
    limits,
    refuse,
    to_generator,
    to_scalar,
)
from viewkeeper.sql.groups import bind_groups, is_aggregate
from viewkeeper.sql.labels import Labels
from viewkeeper.sql.made import name_made_columns
from viewkeeper.sql.names import name_sources, qualify_names
from viewkeeper.sql.parse import generate, ordered_by, unaliased
from viewkeeper.sql.pivots import as_selects, bind_pivot, pivot_of
from viewkeeper.sql.public import with_own_names
from viewkeeper.sql.tables import generators_as_queries
from viewkeeper.sql.times import as_lateral_views, is_time_window, to_time_window
from viewkeeper.sql.windows import bind_windows, ordering


@dataclass(frozen=True)
class Bound:
    """The definition as algebra, as it was read and with subqueries as joins; types are still unknown.

    `places` says where in the text a column of it comes from.
    """

    as_read: Relation
    relation: Relation
    places: Mapping[str, Position]


def bind(tree: exp.Query, catalog: Catalog, output: tuple[str, ...]) -> Bound | Reason:
    """The algebra of a query, its columns named `output`, or the first reason against it."""
    try:
        as_selects(tree)
        generators_as_queries(tree)
        name_made_columns(tree, catalog)
        sessions = as_lateral_views(tree)
        sources = name_sources(tree, catalog)
        qualified = qualify_names(tree, sources)
        binder = _Binder({k.lower(): v for k, v in sources.items()})
        relation = binder.query(qualified, {}).relation
        if len(output) != len(relation.schema):
            raise Refusal(Reason("this query", "Spark gives it another number of columns than its text shows"))
        renamed = tuple(zip(output, relation.schema, strict=True))
        places = binder.labels.places
        places.update({n: places[f.name] for n, f in renamed if f.name in places})
        shown = Project(relation, tuple(Item(n, Column(f.name), f.type) for n, f in renamed))
        as_read = collapse(prune(shown))
        lowered = in_filters(collapse(prune(with_plain_times(as_groups(as_joins(as_read))))))
        if (clock := misplaced(lowered)) is not None:
            raise _clock_elsewhere(tree, clock)
        if sessions and has_sessions(without_sessions(lowered)):
            why = "sessions are followed only where they are grouped by, and with a constant gap"
            raise refuse(sessions[0], "session_window()", why)
        return Bound(as_read, lowered, places)
    except RecursionError:
        return Reason("this query", "it is nested too deeply to be followed")
    except Refusal as refusal:
        return refusal.reason
    except CannotJoin as refusal:
        about = names(refusal.about) if refusal.about else ()
        places = binder.labels.places
        return replace(refusal.reason, position=next((places[n] for n in about if n in places), None))


def _clock_elsewhere(tree: exp.Query, clock: Clock) -> Refusal:
    """A value of the clock would be another one in every row at every moment; only a filter can follow it."""
    found = next((f for f in tree.find_all(exp.Func) if clock_function(f) == clock.function), tree)
    why = "depends on when it runs, and only a filter can follow the clock"
    return refuse(found, f"{clock.function.lower()}()", why)


@dataclass(frozen=True)
class _Rows:
    """A bound query: its relation, under names of our own, and the names its readers use."""

    relation: Relation
    labels: tuple[str, ...]


@dataclass(frozen=True)
class _With:
    """A common table expression and what its own text can see."""

    cte: exp.CTE
    scope: Mapping[str, _With]
    outer: Scope | None = None


Withs = Mapping[str, _With]


@dataclass
class _Binder:
    sources: Mapping[str, Named]
    labels: Labels = field(default_factory=Labels)
    common: dict[int, _Rows] = field(default_factory=dict)

    def fresh(self, base: str, of: exp.Expr | None = None) -> str:
        return self.labels.fresh(base, of)

    # Queries

    def query(self, tree: exp.Expr, withs: Withs, outer: Scope | None = None) -> _Rows:
        match tree:
            case exp.Select():
                return self.select(tree, _with_clause(tree, withs, outer), outer)
            case exp.SetOperation():
                return self.first_rows(tree, self.set_operation(tree, _with_clause(tree, withs, outer), outer))
            case exp.Subquery():
                return self.first_rows(tree, self.query(tree.this, _with_clause(tree, withs, outer), outer))
            case exp.Values():
                return self.values(tree)
            case _:
                raise refuse(tree, type(tree).__name__, NOT_YET)

    def subquery(self, tree: exp.Expr, withs: Withs, around: Scope) -> _Rows:
        """A query that may read the row around it."""
        rows = self.query(tree, withs, around)
        for name in names(rows.relation):
            self.labels.place(name, tree)
        return rows

    def set_operation(self, tree: exp.SetOperation, withs: Withs, outer: Scope | None) -> _Rows:
        if tree.args.get("by_name"):
            raise refuse(tree, f"{type(tree).__name__.upper()} BY NAME", NOT_YET)
        left, right = self.query(tree.left, withs, outer), self.query(tree.right, withs, outer)
        labels, distinct = left.labels, bool(tree.args.get("distinct"))
        match tree:
            case exp.Union():
                outputs = [self.fresh(label) for label in labels]
                branches = (*_branches(left.relation, distinct), *_branches(right.relation, distinct))
                all_rows = _Rows(Union(tuple(_renamed(b, outputs) for b in branches)), labels)
                return _distinct(all_rows) if distinct else all_rows
            case exp.Except():
                return _Rows(SetOperation(left.relation, right.relation, "except", not distinct), labels)
            case exp.Intersect():
                return _Rows(SetOperation(left.relation, right.relation, "intersect", not distinct), labels)
            case _:
                raise refuse(tree, type(tree).__name__.upper(), NOT_YET)

    def first_rows(
        self, tree: exp.Expr, rows: _Rows, scope: Scope | None = None, replaced: Mapping[str, str] | None = None
    ) -> _Rows:
        """The first rows by ORDER BY if there is a LIMIT; the order may be by what only `scope` knows."""
        limit, offset = limits(tree)
        if limit is None and not offset:
            return rows
        if not tree.args.get("order"):
            if limit and not offset and frozenset[str]() in keys(rows.relation, NOTHING):
                return rows  # there is one row at most
            if limit and not offset and isinstance(tree.parent, exp.Exists):
                return replace(rows, relation=Top(rows.relation, (), limit))  # any row will do
            clause = tree.args.get("limit") or tree.args["offset"]
            raise refuse(clause, f"{clause.key.upper()} without ORDER BY", "any rows will do, each time others")
        selected = rows.relation if scope is not None and isinstance(rows.relation, Project) else None
        items = selected.items if selected is not None else pass_through(rows.relation.schema)
        by = {label.lower(): name for label, name in zip(rows.labels, names(rows.relation), strict=True)}
        hidden: list[Item] = []
        order = []
        for ordered in ordered_by(tree):
            if isinstance(ordered.this, exp.Var):  # ORDER BY ALL
                order += [ordering(ordered, name) for name in names(rows.relation)]
                continue
            name = by.get(ordered.this.name.lower()) if _is_label(ordered.this) else None
            if name is None:
                name = self.fresh("__vk_order")
                read = {generate(c): by[c.name.lower()] for c in ordered.find_all(exp.Column) if _is_one_of(c, by)}
                value = to_scalar(ordered.this, scope or Scope(), {**(replaced or {}), **read})
                hidden.append(Item(name, substitute(value, {i.name: i.value for i in items}), UNKNOWN))
            order.append(ordering(ordered, name))
        below = selected.input if selected is not None else rows.relation
        with_hidden = Project(below, (*items, *hidden)) if hidden else rows.relation
        first = Top(with_hidden, tuple(order), limit, offset)
        return replace(rows, relation=Project(first, pass_through(rows.relation.schema)) if hidden else first)

    def values(self, tree: exp.Values) -> _Rows:
        rows = [r.expressions if isinstance(r, exp.Tuple) else [r] for r in tree.expressions]
        labels = tuple(_column_aliases(tree) or [f"col{i + 1}" for i in range(len(rows[0]))])
        fields = tuple(Field(self.fresh(label), UNKNOWN) for label in labels)
        return _Rows(Values(fields, tuple(tuple(to_scalar(c, Scope()) for c in row) for row in rows)), labels)

    # One SELECT

    def select(self, tree: exp.Select, withs: Withs, outer: Scope | None) -> _Rows:
        _refuse_clauses(tree, tuple(_CLAUSES))
        relation, scope = self.from_clause(tree, withs, outer)
        if pivot := pivot_of(tree):
            return _Rows(*bind_pivot(tree, pivot, relation, scope, self.labels))
        if where := tree.args.get("where"):
            relation = Filter(relation, to_scalar(where.this, scope))
        replaced: dict[str, str] = {}
        if is_aggregate(tree):
            relation, scope, replaced = bind_groups(tree, relation, scope, self.labels)
        relation, windows = bind_windows(tree, relation, scope, replaced, self.labels)
        replaced |= windows
        if qualified := tree.args.get("qualify"):
            relation = Filter(relation, to_scalar(qualified.this, scope, replaced))
        relation, outputs = self.outputs(tree, relation, scope, replaced)
        labels = tuple(label for label, _, _ in outputs)
        items = tuple(Item(self.fresh(label, of), value, UNKNOWN) for label, value, of in outputs)
        distinct = tree.args.get("distinct")
        if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
            raise refuse(distinct, "DISTINCT ON", NOT_YET)
        if distinct:
            texts = {
                generate(unaliased(of).unnest()): item.name for (_, _, of), item in zip(outputs, items, strict=True)
            }
            return self.first_rows(tree, _distinct(_Rows(Project(relation, items), labels)), replaced=texts)
        return self.first_rows(tree, _Rows(Project(relation, items), labels), scope, replaced)

    def outputs(
        self, tree: exp.Select, relation: Relation, scope: Scope, replaced: Mapping[str, str]
    ) -> tuple[Relation, list[tuple[str, Scalar, exp.Expr]]]:
        """The selected columns by label; a generator among them adds rows to the relation."""
        found: list[tuple[str, Scalar, exp.Expr]] = []
        for number, selected in enumerate(tree.expressions):
            inner = unaliased(selected)
            if not is_generator(inner):
                label = selected.output_name or f"c{number + 1}"
                found.append((label, to_scalar(selected, scope, replaced), selected))
                continue
            labels = [i.name for i in selected.expressions] if isinstance(selected, exp.Aliases) else [selected.alias]
            if not all(labels):
                raise refuse(inner, generate(inner), "name the columns it makes by AS")
            fields = tuple(Field(self.fresh(label), UNKNOWN) for label in labels)
            relation = Generate(relation, to_generator(inner, scope, replaced), fields)
            found += [(label, Column(f.name), selected) for label, f in zip(labels, fields, strict=True)]
        return relation, found

    def from_clause(self, tree: exp.Select, withs: Withs, outer: Scope | None) -> tuple[Relation, Scope]:
        def read(query: exp.Expr, scope: Scope) -> Relation:
            return self.subquery(query, withs, scope).relation

        around = Scope(outer=outer, read=read)
        source = tree.args.get("from_")
        if source is None:
            return Values((), ((),)), around
        relation, scope = self.joined(self.table(source.this, withs, around), tree, withs)
        for lateral in tree.args.get("laterals") or []:
            relation, scope = self.generated(lateral, relation, scope)
        return relation, scope

    def generated(self, lateral: exp.Lateral, relation: Relation, scope: Scope) -> tuple[Relation, Scope]:
        """LATERAL VIEW."""
        in_time = is_time_window(lateral.this)
        made = self.made(lateral, relation, scope, to_time_window if in_time else to_generator)
        alias = lateral.alias.lower()
        seen = {(alias, c.lower()): f.name for c, f in zip(_column_aliases(lateral), made.fields, strict=True)}
        return made, replace(scope, columns={**scope.columns, **seen})

    def made(
        self, lateral: exp.Lateral, of: Relation, scope: Scope, read: Callable[[exp.Expr, Scope], Scalar]
    ) -> Generate:
        labels = _column_aliases(lateral)
        if not labels:
            raise refuse(lateral, "LATERAL", "name the columns it makes by AS")
        fields = tuple(Field(self.fresh(label), UNKNOWN) for label in labels)
        return Generate(of, read(lateral.this, scope), fields, bool(lateral.args.get("outer")))

    def joined(self, first: tuple[Relation, Scope], tree: exp.Expr, withs: Withs) -> tuple[Relation, Scope]:
        """The first table and those joined to it one after another."""
        relation, scope = first
        for join in tree.args.get("joins") or []:
            relation, scope = self.join(join, relation, scope, withs)
        return relation, scope

    def join(self, join: exp.Join, left: Relation, scope: Scope, withs: Withs) -> tuple[Relation, Scope]:
        words = " ".join(str(join.args[k]).upper() for k in ("method", "side", "kind") if join.args.get(k))
        kind = _JOIN_KINDS.get(words.removeprefix("NATURAL").strip())  # NATURAL is left where there is nothing to share
        if kind is None:
            raise refuse(join, f"{words} JOIN", NOT_YET)
        if join.args.get("using"):
            raise refuse(join, "JOIN USING", "its columns could not be resolved")
        lateral = isinstance(join.this, exp.Lateral)
        on = join.args.get("on") or exp.true()
        right, theirs = self.table(join.this, withs, replace(scope, columns={}, joined_by={}), scope)
        both = replace(
            scope,
            columns={**scope.columns, **theirs.columns},
            joined_by={**scope.joined_by, **dict.fromkeys((t for t, _ in theirs.columns), kind), **theirs.joined_by},
        )
        condition = to_scalar(on, both)
        match kind:
            case "inner" | "left" if lateral:
                joined = Join(left, right, kind, condition, lateral=True)
                return (without_condition(joined) if join.args.get("on") is None else None) or joined, both
            case _ if lateral:
                raise refuse(join, f"{words} JOIN LATERAL", NOT_YET)
            case "right":
                return Join(right, left, "left", condition), both
            case "semi" | "anti":
                return Join(left, right, kind, condition), scope
            case _:
                return Join(left, right, kind, condition), both

    def table(self, tree: exp.Expr, withs: Withs, around: Scope, left: Scope | None = None) -> tuple[Relation, Scope]:
        """What stands in FROM or after JOIN; LATERAL sees what is on its left."""
        match tree:
            case exp.Subquery(this=exp.Table() | exp.Subquery() as inner) if not tree.alias:
                return self.joined(self.table(inner, withs, around, left), tree, withs)  # parentheses around joins
            case exp.Table():
                rows = self.named_table(tree, withs)
            case exp.Lateral(this=exp.Subquery()) if left is not None:
                rows = self.subquery(tree.this, withs, left)
            case exp.Lateral() if left is not None and is_generator(tree.this):
                made = self.made(tree, Values((), ((),)), replace(left, columns={}, outer=left), to_generator)
                rows = _Rows(made, names(made))
            case exp.Subquery() | exp.Values():
                rows = self.query(tree, withs, around.outer)
            case _:
                raise refuse(tree, type(tree).__name__.upper(), NOT_YET)
        labels = _column_aliases(tree) or rows.labels
        alias = tree.alias.lower()
        found = zip(labels, names(rows.relation), strict=True)
        scope = replace(around, columns={(alias, label.lower()): name for label, name in found})
        return self.joined((rows.relation, scope), tree, withs)

    def named_table(self, tree: exp.Table, withs: Withs) -> _Rows:
        source = self.sources.get(tree.name.lower())
        if source is None:
            return self.common_table(withs[tree.name.lower()])
        labels = tuple(c for c, _ in source.columns)
        match source:
            case DeltaTable(name, columns):
                return _Rows(Scan(name, tuple(ScanColumn(c, self.fresh(c), t) for c, t in columns)), labels)
            case KeptView(_, public):
                return _Rows(with_own_names(public, self.labels), labels)
            case Generated(generator, columns):
                fields = tuple(Field(self.fresh(c), t) for c, t in columns)
                return _Rows(Generate(Values((), ((),)), generator, fields), labels)
            case Unmaintainable():
                raise refuse(tree, source.name, source.why)
            case _:
                assert_never(source)

    def common_table(self, named: _With) -> _Rows:
        """A common table expression is read once; every other use of it is the same relation under other names."""
        known = self.common.get(id(named.cte))
        if known is None:
            rows = self.query(named.cte.this, named.scope, named.outer)
            known = _Rows(rows.relation, tuple(_column_aliases(named.cte)) or rows.labels)
            self.common[id(named.cte)] = known
            return known
        renamed = (Item(self.fresh(f.name), Column(f.name), f.type) for f in known.relation.schema)
        return replace(known, relation=Project(known.relation, tuple(renamed)))


_JOIN_KINDS: Mapping[str, JoinKind | OneOf["right"]] = {
    **dict.fromkeys(("", "INNER", "CROSS"), "inner"),
    **dict.fromkeys(("LEFT", "LEFT OUTER"), "left"),
    **dict.fromkeys(("RIGHT", "RIGHT OUTER"), "right"),
    **dict.fromkeys(("FULL", "FULL OUTER"), "full"),
    **dict.fromkeys(("SEMI", "LEFT SEMI"), "semi"),
    **dict.fromkeys(("ANTI", "LEFT ANTI"), "anti"),
}
_CLAUSES = {
    "sample": "TABLESAMPLE",
}


def _refuse_clauses(tree: exp.Expr, clauses: tuple[str, ...]) -> None:
    for clause in clauses:
        if node := tree.args.get(clause):
            raise refuse(node[0] if isinstance(node, list) else node, _CLAUSES[clause], NOT_YET)


def _with_clause(tree: exp.Query, known: Withs, outer: Scope | None) -> Withs:
    clause = tree.args.get("with_")
    if clause is None:
        return known
    if clause.args.get("recursive"):
        raise refuse(clause, "WITH RECURSIVE", "a recursive result is not the sum of its changes")
    inner = dict(known)
    for cte in clause.expressions:
        inner[cte.alias.lower()] = _With(cte, dict(inner), outer)
    return inner


def _distinct(rows: _Rows) -> _Rows:
    """DISTINCT is grouping by every column, with nothing to measure."""
    return _Rows(Aggregate(rows.relation, names(rows.relation), ()), rows.labels)


def _branches(rel: Relation, distinct: bool) -> tuple[Relation, ...]:
    """A UNION inside of a UNION adds its branches to it; Spark takes them together, too."""
    match rel:
        case Aggregate(Union(inputs) as union, group_by, ()) if distinct and group_by == names(union):
            return inputs
        case _:
            return (rel,)


def _renamed(rel: Relation, outputs: list[str]) -> Relation:
    return Project(rel, tuple(Item(n, Column(f.name), UNKNOWN) for n, f in zip(outputs, rel.schema, strict=True)))


def _is_label(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Column) and not tree.table


def _is_one_of(column: exp.Column, by: Mapping[str, str]) -> bool:
    """Whether it is one of the labelled columns of the result."""
    return _is_label(column) and column.name.lower() in by


def _column_aliases(tree: exp.Expr) -> list[str]:
    alias = tree.args.get("alias")
    return [c.name for c in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
