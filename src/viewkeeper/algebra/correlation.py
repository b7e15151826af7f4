"""A subquery freed of the row around it, so that the two can be joined.

There are two ways. What it asks of that row is *pulled up* into the condition of the join. That is always possible
through filters, projections and inner joins, and for equalities through aggregates, windows and LIMIT too: what they
compare becomes one more key. Where that ends, it is computed *over the domain*, for every value that it may be asked:

    S(e) = S'(d) for d <=> e,   S' = S over D × the rows it reads,   D = the distinct values of E that S reads
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from viewkeeper.algebra.aggregates import COUNTING, MADE_OF_NOTHING
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Generate,
    Item,
    Join,
    Measure,
    Project,
    Relation,
    Schema,
    SetOperation,
    Top,
    Union,
    Window,
    WindowColumn,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import (
    TRUE,
    ZERO,
    Call,
    Column,
    Literal,
    Outer,
    Scalar,
    call,
    columns,
    conjunction,
    conjuncts,
    rebuild,
    same,
    substitute,
)
from viewkeeper.algebra.types import BIGINT, UNKNOWN

Fresh = Callable[[str], str]

# Aggregates that are not NULL over no rows at all.
_OF_NOTHING: Mapping[str, Scalar] = {
    **dict.fromkeys(COUNTING, ZERO),
    **dict.fromkeys(("collect_list", "collect_set", "array_agg"), call("ARRAY")),
}


class CannotJoin(Exception):
    """A subquery that is not turned into a join; `about` is the subquery, once that is known."""

    def __init__(self, why: str, about: Relation | None = None) -> None:
        super().__init__(why)
        self.reason = Reason("correlated subquery", why)
        self.about = about


@dataclass(frozen=True)
class Freed:
    """A subquery freed of the row around it.

    Its rows are those of `relation` for which all `conditions` hold, which may read the row around it too;
    `values` are its columns. If it is `total`, it has one row for every row around it: where `relation` has none,
    the values say what they are over NULLs.
    """

    relation: Relation
    conditions: tuple[Scalar, ...]
    values: Mapping[str, Scalar]
    total: bool = False


def free(query: Relation, around: Relation, fresh: Fresh, *, may_be_total: bool) -> Freed:
    """The subquery freed of the rows of `around`; CannotJoin if there is no such form."""
    if not _correlated(query):
        return _as_it_is(query)
    try:
        pulled = _Pull(fresh, frozenset(names(around))).relation(query)
        if not _correlated(pulled.relation) and (may_be_total or not pulled.total):
            return pulled
    except _NotPulled:
        pass
    found = _over_domain(query, around, fresh)
    if _correlated(found.relation):
        raise CannotJoin("it compares with more than the query directly around it")
    return found


def _correlated(*parts: Relation | Scalar) -> bool:
    return any(isinstance(n, Outer) for part in parts for n in walk(part))


def _as_it_is(rel: Relation) -> Freed:
    return Freed(rel, (), {n: Column(n) for n in names(rel)})


def numbered_top(rel: Top, input: Relation, keys: tuple[str, ...], fresh: Fresh) -> Relation:
    """The first rows of each key: σ_{offset < n ≤ offset + limit} of the rows numbered in their order."""
    number = fresh("row")
    rows = Window(input, keys, rel.order_by, (WindowColumn(number, "ROW_NUMBER", (), BIGINT),))
    after = [call(">", Column(number), Literal(str(rel.offset)))] if rel.offset else []
    until = [] if rel.limit is None else [call("<=", Column(number), Literal(str(rel.offset + rel.limit)))]
    return Filter(rows, conjunction([*after, *until]))


# Pulling up


class _NotPulled(Exception):
    """What is asked of the row around cannot be pulled through an operator."""


@dataclass(frozen=True)
class _Pull:
    fresh: Fresh
    around: frozenset[str]

    def relation(self, rel: Relation) -> Freed:
        if not _correlated(rel):
            return _as_it_is(rel)
        match rel:
            case Filter(input, predicate):
                inner = self.plain(input)
                return _filtered(inner, substitute(self.inward(predicate), inner.values))
            case Project(input, items):
                inner = self.relation(input)
                values = {i.name: substitute(self.inward(i.value), inner.values) for i in items}
                return Freed(inner.relation, inner.conditions, values, inner.total)
            case Join(left, right, "inner", condition):
                one, other = self.plain(left), self.plain(right)
                both = Freed(
                    Join(one.relation, other.relation, "inner", TRUE),
                    (*one.conditions, *other.conditions),
                    {**one.values, **other.values},
                )
                return _filtered(both, substitute(self.inward(condition), both.values))
            case Join(left, right, kind, condition) if kind != "full" and not _correlated(right, condition):
                inner = self.own(left)
                joined = Join(inner.relation, right, kind, substitute(condition, inner.values))
                more = {} if kind in ("semi", "anti") else {n: Column(n) for n in names(right)}
                return Freed(joined, inner.conditions, {**inner.values, **more})
            case Aggregate(input, group_by, measures, ()):
                rows, keys, conditions = self.keyed(input, set(group_by).union(*(m.reads for m in measures)))
                total = not group_by and bool(conditions)
                measured = {m.name: _or_nothing(m) if total else Column(m.name) for m in measures}
                groups = Aggregate(rows, (*group_by, *keys), measures)
                return Freed(groups, conditions, {**{n: Column(n) for n in group_by}, **measured}, total)
            case Window(input, partition_by, order_by, computed):
                rows, keys, conditions = self.keyed(input, set(names(input)))
                return self.shown(rel, Window(rows, (*partition_by, *keys), order_by, computed), conditions)
            case Top(input):
                rows, keys, conditions = self.keyed(input, set(names(input)))
                return self.shown(rel, numbered_top(rel, rows, keys, self.fresh), conditions)
            case _:
                raise _NotPulled

    def plain(self, rel: Relation) -> Freed:
        """Not of what has a row even where there are none, which a filter or a join could not tell."""
        found = self.relation(rel)
        if found.total:
            raise _NotPulled
        return found

    def own(self, rel: Relation) -> Freed:
        """Nor of what has values of the row around it, which are there only after the join."""
        found = self.plain(rel)
        if any(columns(value) & self.around for value in found.values.values()):
            raise _NotPulled
        return found

    def keyed(self, rel: Relation, read: set[str]) -> tuple[Relation, tuple[str, ...], tuple[Scalar, ...]]:
        """Some columns of a relation, those by which its rows equal the row around them, and these equalities."""
        inner = self.own(rel)
        items = [Item(n, inner.values[n], UNKNOWN) for n in names(rel) if n in read]
        keys: list[str] = []
        conditions: list[Scalar] = []
        for condition in inner.conditions:
            own, other, operator = self.sides(condition)
            keys.append(self.fresh("key"))
            items.append(Item(keys[-1], own, UNKNOWN))
            conditions.append(call(operator, Column(keys[-1]), other))
        return Project(inner.relation, tuple(items)), tuple(keys), tuple(conditions)

    def sides(self, condition: Scalar) -> tuple[Scalar, Scalar, str]:
        """The subquery's side and the other side of an equality."""
        match condition:
            case Call("=" | "<=>" as operator, (left, right)):
                for own, other in ((left, right), (right, left)):
                    if not columns(own) & self.around and columns(other) <= self.around:
                        return own, other, operator
            case _:
                pass
        raise _NotPulled

    def shown(self, rel: Relation, keyed: Relation, conditions: tuple[Scalar, ...]) -> Freed:
        return Freed(keyed, conditions, {n: Column(n) for n in names(rel)})

    def inward(self, scalar: Scalar) -> Scalar:
        """What refers to the row around the subquery as a column, since they will stand side by side."""
        return rebuild(scalar, lambda s: Column(s.name) if isinstance(s, Outer) and s.name in self.around else None)


def _filtered(inner: Freed, predicate: Scalar) -> Freed:
    """The terms that read only the subquery's own rows stay with them, the others are pulled up."""
    own = frozenset(names(inner.relation))
    terms = conjuncts(predicate)
    stay = [t for t in terms if columns(t) <= own]
    up = tuple(t for t in terms if not columns(t) <= own)
    relation = Filter(inner.relation, conjunction(stay)) if stay and stay != [TRUE] else inner.relation
    return Freed(relation, (*inner.conditions, *up), inner.values)


def _or_nothing(measure: Measure) -> Scalar:
    """What the measure is, NULL standing for no rows at all."""
    if measure.function in MADE_OF_NOTHING:
        raise CannotJoin(f"what {measure.function}() makes of no rows cannot be written down")
    nothing = _OF_NOTHING.get(measure.function)
    return call("COALESCE", Column(measure.name), nothing) if nothing else Column(measure.name)


# Over the domain


def _over_domain(query: Relation, around: Relation, fresh: Fresh) -> Freed:
    read = {n.name for n in walk(query) if isinstance(n, Outer)}
    asked = tuple(f for f in around.schema if f.name in read)
    by = {f.name: fresh("asked") for f in asked}
    values = Project(around, tuple(Item(by[f.name], Column(f.name), f.type) for f in asked))
    domain = Aggregate(values, tuple(by.values()), ())
    conditions = tuple(same(Column(name), Column(outer)) for outer, name in by.items())
    relation = _Domain(fresh, domain, by).relation(query)
    return Freed(relation, conditions, {n: Column(n) for n in names(query)})


@dataclass(frozen=True)
class _Domain:
    """Puts the values that a subquery may be asked beside its rows: its columns, then those of the domain."""

    fresh: Fresh
    values: Aggregate
    by: Mapping[str, str]  # the column of the domain for each of the row around

    @property
    def schema(self) -> Schema:
        return self.values.schema

    def relation(self, rel: Relation) -> Relation:
        if not _correlated(rel):
            return self.ordered(rel, Join(rel, self.values, "inner", TRUE))
        match rel:
            case Filter(input, predicate):
                return Filter(self.relation(input), self.inward(predicate))
            case Project(input, items):
                computed = tuple(Item(i.name, self.inward(i.value), i.type) for i in items)
                return Project(self.relation(input), (*computed, *pass_through(self.schema)))
            case Join(left, right, "inner", condition) if not _correlated(left):
                return self.ordered(rel, Join(left, self.relation(right), "inner", self.inward(condition)))
            case Join(left, right, kind, condition) if kind != "full" and not _correlated(right):
                return self.ordered(rel, Join(self.relation(left), right, kind, self.inward(condition)))
            case Join():
                raise CannotJoin("it compares with the query around it on both sides of a join, or in an outer one")
            case Union(inputs):
                return Union(tuple(self.relation(i) for i in inputs))
            case SetOperation(left, right, kind, all_):
                return SetOperation(self.relation(left), self.relation(right), kind, all_)
            case Aggregate(sets=()):
                return self.aggregate(rel)
            case Window(input, partition_by, order_by, computed_columns):
                keys = (*partition_by, *names(self.values))
                return self.ordered(rel, Window(self.relation(input), keys, order_by, computed_columns))
            case Top(input):
                return self.ordered(rel, numbered_top(rel, self.relation(input), names(self.values), self.fresh))
            case Generate(input, generator, fields, outer):
                made = Generate(self.relation(input), self.inward(generator), fields, outer)
                return self.ordered(rel, made)
            case _:
                raise CannotJoin(f"it compares with the query around it below a {type(rel).__name__.lower()}")

    def aggregate(self, rel: Aggregate) -> Relation:
        """γ_{G ∪ D}; without G there is a row for every value of the domain, also where there are none below."""
        below = self.relation(rel.input)
        if rel.group_by:
            return self.ordered(rel, Aggregate(below, (*rel.group_by, *names(self.values)), rel.measures))
        again = {f.name: self.fresh("asked") for f in self.schema}
        renamed = tuple(Item(again.get(f.name, f.name), Column(f.name), f.type) for f in below.schema)
        groups = Aggregate(Project(below, renamed), tuple(again.values()), rel.measures)
        found = Join(self.values, groups, "left", conjunction([same(Column(a), Column(b)) for a, b in again.items()]))
        measured = tuple(Item(m.name, _or_nothing(m), m.type) for m in rel.measures)
        return Project(found, (*measured, *pass_through(self.schema)))

    def ordered(self, rel: Relation, found: Relation) -> Relation:
        """The columns in one order, as set operations go by position."""
        return Project(found, pass_through((*rel.schema, *self.schema)))

    def inward(self, scalar: Scalar) -> Scalar:
        return rebuild(
            scalar, lambda s: Column(self.by[s.name]) if isinstance(s, Outer) and s.name in self.by else None
        )
