"""Affected keys: which groups a change touches, and the rows that belong to them; or from where on in an order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewkeeper.algebra.relations import Aggregate, Item, Join, Measure, Ordering, Project, Relation
from viewkeeper.algebra.scalars import ZERO, Column, Scalar, call, conjunction, same
from viewkeeper.algebra.types import BIGINT, BOOLEAN

_KEY = "__vk_key_"


@dataclass(frozen=True)
class Keys:
    """The distinct keys in a change, under names of their own so that they can be joined to the rows."""

    relation: Relation
    columns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_KEY + c for c in self.columns)

    @property
    def matches(self) -> Scalar:
        return conjunction([same(Column(c), Column(_KEY + c)) for c in self.columns])


def affected_keys(change: Relation, columns: tuple[str, ...]) -> Keys | None:
    """T = distinct π_K(δE); None where there is no key, so that everything is one group."""
    if not columns:
        return None
    types = {f.name: f.type for f in change.schema}
    renamed = Project(change, tuple(Item(_KEY + c, Column(c), types[c]) for c in columns))
    return Keys(Aggregate(renamed, tuple(_KEY + c for c in columns), ()), columns)


def restrict(rel: Relation, keys: Keys | None) -> Relation:
    """E ⋉ T: the rows of the affected groups."""
    return rel if keys is None else Join(rel, keys.relation, "semi", keys.matches)


def near(rel: Relation, change: Relation, equal: Iterable[tuple[str, str]]) -> Relation:
    """E ⋉ π_K(δF): the rows of E whose columns are `equal` to those of some row of the change, as (its own, E's).

    Where a small change stands on the left of an outer, semi or anti join, Spark cannot send it to the other side. So
    the other side is cut down first.
    """
    pairs = {f"{_KEY}{n}": pair for n, pair in enumerate(equal)}
    if not pairs:
        return rel
    types = {f.name: f.type for f in change.schema}
    keys = Project(change, tuple(Item(key, Column(ours), types[ours]) for key, (ours, _) in pairs.items()))
    meets = conjunction([call("=", Column(theirs), Column(key)) for key, (_, theirs) in pairs.items()])
    return Join(rel, keys, "semi", meets)


@dataclass(frozen=True)
class First:
    """Where in an order a change begins, in one row, and whether a row of what is ordered is not before that."""

    relation: Relation
    not_before: Scalar


def first_touched(change: Relation, by: Ordering) -> First:
    """S = the rows from min(δE) on, by the first column of the order; where nothing changed, none."""
    type_ = next(f.type for f in change.schema if f.name == by.column)
    own = Item(_KEY + by.column, Column(by.column), type_)
    null = Item(_KEY + "null", call("IS NULL", Column(by.column)), BOOLEAN)
    start, nulls, rows = Column(_KEY + "first"), Column(_KEY + "nulls"), Column(_KEY + "rows")
    found = Aggregate(
        Project(change, (own, null)),
        (),
        (
            Measure(start.name, "max" if by.descending else "min", (own.name,), type_),
            Measure(nulls.name, "count", (), BIGINT, where=null.name),
            Measure(rows.name, "count", (), BIGINT),
        ),
    )
    column = Column(by.column)
    after = call("<=" if by.descending else ">=", column, start)
    if by.nulls_first:
        return First(found, call("OR", after, call(">", nulls, ZERO)))
    return First(found, call("OR", after, call("AND", call("IS NULL", column), call(">", rows, ZERO))))
