"""Queries inside expressions as joins.

    σ_EXISTS(S) E      = E ⋉ S                     σ_NOT EXISTS(S) E = E ▷ S
    σ_x IN S E         = E ⋉_{x=s} S               σ_x NOT IN S E    = E ▷_{x=s is not false} S
    EXISTS as a value  = (E ⋉ S) × {true} ⊎ (E ▷ S) × {false}
    (S) as a value     = E ⟕ S, S one row for each value of what it compares with the row around it

What a subquery asks of the row around it is pulled up into the condition of the join. That is always possible
through filters, projections and inner joins, and through an aggregate for equalities, which become group keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.algebra.aggregates import COUNTING
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Item,
    Join,
    JoinKind,
    Measure,
    Project,
    Relation,
    Union,
    inputs,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import (
    FALSE,
    NULL,
    ONE,
    TRUE,
    ZERO,
    Call,
    Column,
    Literal,
    Outer,
    Scalar,
    Subquery,
    call,
    columns,
    conjunction,
    conjuncts,
    rebuild,
    subqueries,
    substitute,
)
from viewkeeper.algebra.types import BIGINT, BOOLEAN, UNKNOWN

# Aggregates that are not NULL over no rows at all.
_OF_NOTHING: Mapping[str, Scalar] = {
    **dict.fromkeys(COUNTING, ZERO),
    **dict.fromkeys(("collect_list", "collect_set", "array_agg"), call("ARRAY")),
}


SINGLE = "__vk_value"  # begins the names of measures over what can only be one row


class CannotJoin(Exception):
    """A subquery that is not turned into a join."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.reason = Reason("correlated subquery", why)


def as_joins(rel: Relation) -> Relation:
    """The relation with a join for every subquery in an expression; CannotJoin if one has no such form."""
    taken = {n.name.lower() for n in walk(rel) if isinstance(n, (Field, Item, Measure, Column))}
    return _Joins(taken).relation(rel)


@dataclass(frozen=True)
class _Pulled:
    """A subquery freed of the row around it.

    Its rows are those of `relation` for which all `conditions` hold, which may read the row around it too;
    `values` are its columns. If it is `total`, it has one row for every row around it: where `relation` has none,
    the values say what they are over NULLs.
    """

    relation: Relation
    conditions: tuple[Scalar, ...]
    values: Mapping[str, Scalar]
    total: bool = False


@dataclass
class _Joins:
    taken: set[str]

    def fresh(self, base: str) -> str:
        name, count = f"__vk_{base}", 1
        while name in self.taken:
            count += 1
            name = f"__vk_{base}_{count}"
        self.taken.add(name)
        return name

    def relation(self, rel: Relation) -> Relation:
        below = with_inputs(rel, tuple(self.relation(i) for i in inputs(rel)))
        match below:
            case Filter(input, predicate) if subqueries(predicate):
                return self.filter(input, predicate)
            case Project(input, items) if any(subqueries(i.value) for i in items):
                values = []
                for item in items:
                    input, value = self.attach_all(input, item.value)
                    values.append(Item(item.name, value, item.type))
                return Project(input, tuple(values))
            case Join(left, right, "inner", condition) if subqueries(condition):
                return self.filter(Join(left, right, "inner", TRUE), condition)
            case Join(condition=condition) if subqueries(condition):
                raise CannotJoin("it stands in the condition of an outer join")
            case _:
                return below

    def filter(self, input: Relation, predicate: Scalar) -> Relation:
        rel, plain = input, []
        for term in conjuncts(predicate):
            match term:
                case Subquery("exists" | "in"):
                    rel = self.matched(rel, term, "semi")
                case Call("NOT", (Subquery("exists" | "in") as subquery,)):
                    rel = self.matched(rel, subquery, "anti")
                case _:
                    rel, value = self.attach_all(rel, term)
                    plain.append(value)
        kept = Filter(rel, conjunction(plain)) if plain else rel
        return kept if names(kept) == names(input) else Project(kept, pass_through(input.schema))

    def matched(self, rel: Relation, subquery: Subquery, kind: JoinKind) -> Relation:
        """E ⋉ S or E ▷ S."""
        pulled = self.pulled(subquery.relation, rel)
        return self.joined(rel, pulled, kind, _compared(subquery, pulled, kind))

    def joined(self, rel: Relation, pulled: _Pulled, kind: JoinKind, condition: Scalar | None) -> Relation:
        if pulled.total:
            raise CannotJoin("it asks whether an aggregate without groups has a row")
        conditions = [*pulled.conditions, *([condition] if condition is not None else [])]
        return Join(rel, pulled.relation, kind, conjunction(conditions))

    # As a value

    def attach_all(self, rel: Relation, scalar: Scalar) -> tuple[Relation, Scalar]:
        """The relation with what the subqueries of an expression need joined on, and the expression over it."""
        values: dict[Scalar, Scalar] = {}

        def attach(part: Scalar) -> Scalar | None:
            nonlocal rel
            match part:
                case Subquery("scalar", _, query):
                    rel, values[part] = self.attach_value(rel, query)
                case Subquery():
                    rel, values[part] = self.mark(rel, part, "semi")
                case Call("NOT", (Subquery("in") as subquery,)):
                    rel, found = self.mark(rel, subquery, "anti")
                    values[part] = call("NOT", found)
                case _:
                    pass
            return values.get(part)

        value = rebuild(scalar, attach)
        return rel, value

    def mark(self, rel: Relation, subquery: Subquery, kind: JoinKind) -> tuple[Relation, Column]:
        """E with a column that says whether there is a match.

        As in Spark, IN and NOT IN as values are never NULL: an unknown comparison is none for IN and one for NOT IN.
        """
        name = self.fresh("found")

        pulled = self.pulled(subquery.relation, rel)
        condition = _compared(subquery, pulled, kind)

        def branch(kind: JoinKind, found: Scalar) -> Relation:
            rows = self.joined(rel, pulled, kind, condition)
            return Project(rows, (*pass_through(rel.schema), Item(name, found, BOOLEAN)))

        return Union((branch("semi", TRUE), branch("anti", FALSE))), Column(name)

    def attach_value(self, rel: Relation, query: Relation) -> tuple[Relation, Scalar]:
        pulled = self.pulled(self.one_row(query), rel)
        (value,) = pulled.values.values()
        if not pulled.conditions:
            return Join(rel, pulled.relation, "inner", TRUE), value
        return Join(rel, pulled.relation, "left", conjunction(list(pulled.conditions))), value

    def one_row(self, query: Relation) -> Relation:
        """The query as one that has exactly one row, NULL for none, and an error for more than one."""
        match query:
            case Project(Filter(Aggregate(group_by=()) as one, condition), (item,)):
                return Project(one, (Item(item.name, call("IF", condition, item.value, NULL), item.type),))
            case Aggregate(group_by=()) | Project(Aggregate(group_by=())):
                return query
            case Project(Project() as inner, (item,)):
                below = self.one_row(inner)
                return query if below == inner else self.checked(query)
            case _:
                return self.checked(query)

    def checked(self, query: Relation) -> Relation:
        (field,) = query.schema
        value, count = self.fresh(SINGLE.removeprefix("__vk_")), self.fresh("rows")
        measures = (Measure(value, "any_value", (field.name,), field.type), Measure(count, "count", (), BIGINT))
        error = call("RAISE_ERROR", Literal("'a subquery used as a value has more than one row'"))
        checked = call("IF", call(">", Column(count), ONE), error, Column(value))
        return Project(Aggregate(query, (), measures), (Item(self.fresh("only"), checked, field.type),))

    # Freeing a subquery of the row around it

    def pulled(self, query: Relation, around: Relation) -> _Pulled:
        found = self.pull(self.relation(query), frozenset(names(around)))
        if any(isinstance(n, Outer) for n in walk(found.relation)):
            raise CannotJoin("it compares with the query around it in a place that cannot be moved out")
        return found

    def pull(self, rel: Relation, around: frozenset[str]) -> _Pulled:
        if not any(isinstance(n, Outer) for n in walk(rel)):
            return _Pulled(rel, (), {n: Column(n) for n in names(rel)})
        match rel:
            case Filter(input, predicate):
                inner = self.pull(input, around)
                if inner.total:
                    raise CannotJoin("it filters an aggregate without groups")
                return _filtered(inner, substitute(_inward(predicate, around), inner.values))
            case Project(input, items):
                inner = self.pull(input, around)
                values = {i.name: substitute(_inward(i.value, around), inner.values) for i in items}
                return _Pulled(inner.relation, inner.conditions, values, inner.total)
            case Join(left, right, "inner", condition):
                one, other = self.pull(left, around), self.pull(right, around)
                if one.total or other.total:
                    raise CannotJoin("it joins an aggregate without groups")
                both = _Pulled(
                    Join(one.relation, other.relation, "inner", TRUE),
                    (*one.conditions, *other.conditions),
                    {**one.values, **other.values},
                )
                return _filtered(both, substitute(_inward(condition, around), both.values))
            case Join(left, right, kind, condition) if kind != "full" and not _correlated(right, condition):
                inner = self.pull(left, around)
                if inner.total or any(columns(v) & around for v in inner.values.values()):
                    raise CannotJoin("it joins what it takes from the query around it")
                joined = Join(inner.relation, right, kind, substitute(condition, inner.values))
                more = {} if kind in ("semi", "anti") else {n: Column(n) for n in names(right)}
                return _Pulled(joined, inner.conditions, {**inner.values, **more})
            case Aggregate():
                return self.pull_aggregate(rel, around)
            case _:
                raise CannotJoin(f"it compares with the query around it below a {type(rel).__name__.lower()}")

    def pull_aggregate(self, rel: Aggregate, around: frozenset[str]) -> _Pulled:
        """Rows that equal something of the row around them: what they equal it by becomes a group key."""
        inner = self.pull(rel.input, around)
        if inner.total:
            raise CannotJoin("it aggregates an aggregate without groups")
        if any(columns(value) & around for value in inner.values.values()):
            raise CannotJoin("it aggregates values of the query around it")
        read = set(rel.group_by).union(*(m.reads for m in rel.measures))
        items = [Item(n, inner.values[n], UNKNOWN) for n in names(rel.input) if n in read]
        keys: list[str] = []
        conditions: list[Scalar] = []
        for condition in inner.conditions:
            own, other, operator = _sides(condition, around)
            keys.append(self.fresh("key"))
            items.append(Item(keys[-1], own, UNKNOWN))
            conditions.append(call(operator, Column(keys[-1]), other))
        grouped = Aggregate(Project(inner.relation, tuple(items)), (*rel.group_by, *keys), rel.measures)
        values: dict[str, Scalar] = {n: Column(n) for n in rel.group_by}
        for m in rel.measures:
            nothing = _OF_NOTHING.get(m.function) if not rel.group_by and conditions else None
            values[m.name] = call("COALESCE", Column(m.name), nothing) if nothing else Column(m.name)
        return _Pulled(grouped, tuple(conditions), values, total=not rel.group_by and bool(conditions))


def _filtered(inner: _Pulled, predicate: Scalar) -> _Pulled:
    """The terms that read only the subquery's own rows stay with them, the others are pulled up."""
    own = frozenset(names(inner.relation))
    terms = conjuncts(predicate)
    stay = [t for t in terms if columns(t) <= own]
    up = tuple(t for t in terms if not columns(t) <= own)
    relation = Filter(inner.relation, conjunction(stay)) if stay and stay != [TRUE] else inner.relation
    return _Pulled(relation, (*inner.conditions, *up), inner.values)


def _inward(scalar: Scalar, around: frozenset[str]) -> Scalar:
    """What refers to the row around the subquery as a column, since they will stand side by side."""
    return rebuild(scalar, lambda s: Column(s.name) if isinstance(s, Outer) and s.name in around else None)


def _correlated(right: Relation, condition: Scalar) -> bool:
    return any(isinstance(n, Outer) for part in (right, condition) for n in walk(part))


def _compared(subquery: Subquery, pulled: _Pulled, kind: JoinKind) -> Scalar | None:
    """x = s for IN, nothing for EXISTS. NOT IN is true only where every comparison is false, so to it an unknown
    one is a match."""
    if subquery.kind != "in":
        return None
    pairs = zip(subquery.args, pulled.values.values(), strict=True)
    equal = conjunction([call("=", tested, value) for tested, value in pairs])
    return call("COALESCE", equal, TRUE) if kind == "anti" else equal


def _sides(condition: Scalar, around: frozenset[str]) -> tuple[Scalar, Scalar, str]:
    """The subquery's side and the other side of an equality."""
    match condition:
        case Call("=" | "<=>" as operator, (left, right)):
            for own, other in ((left, right), (right, left)):
                if not columns(own) & around and columns(other) <= around:
                    return own, other, operator
        case _:
            pass
    raise CannotJoin("it aggregates rows that it compares with the query around it by more than equality")
