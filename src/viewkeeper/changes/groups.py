"""Affected keys: which groups a change touches, and the rows that belong to them; or from where on in an order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.keys import equal_columns_alike
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Generate,
    Item,
    Join,
    Measure,
    Ordering,
    Project,
    Relation,
    Scan,
    Union,
    Window,
    names,
    with_inputs,
)
from viewkeeper.algebra.scalars import ZERO, Column, Scalar, call, conjunction, conjuncts, same
from viewkeeper.algebra.types import BIGINT, BOOLEAN
from viewkeeper.changes.weights import Changed, is_changed

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
    key = tuple(dict.fromkeys(columns))  # PARTITION BY may name a column twice
    types = {f.name: f.type for f in change.schema}
    renamed = Project(change, tuple(Item(_KEY + c, Column(c), types[c]) for c in key))
    return Keys(Aggregate(renamed, tuple(_KEY + c for c in key), ()), key)


def restrict(rel: Relation, keys: Keys | None) -> Relation:
    """E ⋉ T: the rows of the affected groups.

    Of a join, T is asked of both sides where each has its columns, or others that equal them in every match: Spark asks
    one of them, and would then join it with all of the other one.
    """
    if keys is None:
        return rel
    own = dict(zip(keys.columns, keys.names, strict=True))
    narrowed, done = _asked(rel, own, keys)
    return narrowed if done else _only(narrowed, own, keys.relation)


def _asked(rel: Relation, own: Mapping[str, str], keys: Keys) -> tuple[Relation, bool]:
    """E with T asked of tables below it, and whether this leaves no row of other groups.

    `own` gives for columns of E those of T that they are compared with.
    """
    match rel:
        case Project(input, items):
            below = {i.value.name: own[i.name] for i in items if isinstance(i.value, Column) and i.name in own}
            asked, done = _asked(input, below, keys)
            return replace(rel, input=asked), done
        case Filter(input) | Generate(input):
            asked, done = _asked(input, {c: key for c, key in own.items() if c in names(input)}, keys)
            return with_inputs(rel, (asked,)), done
        case Aggregate(input, group_by, _, ()) | Window(input, group_by):
            asked, done = _asked(input, {c: key for c, key in own.items() if c in group_by}, keys)
            return with_inputs(rel, (asked,)), done
        case Union(inputs):
            parts = [_asked(i, own, keys) for i in inputs]
            return Union(tuple(part for part, _ in parts)), all(done for _, done in parts)
        case Join(left, right, "inner" | "left" | "semi" | "anti" as kind):
            equal = list(equal_columns_alike(rel))
            to_left = {a: own[b] for a, b in equal if b in own} if kind == "inner" else {}
            of_left = {**to_left, **{c: key for c, key in own.items() if c in names(left)}}
            to_right = {b: of_left[a] for a, b in equal if a in of_left}
            shown = {c: key for c, key in own.items() if c in names(right)} if kind == "inner" else {}
            one, left_done = _side(left, of_left, keys)
            other, right_done = _side(right, {**to_right, **shown}, keys)
            return replace(rel, left=one, right=other), left_done or (kind == "inner" and right_done)
        case _:
            return rel, False


def _side(rel: Relation, own: Mapping[str, str], keys: Keys) -> tuple[Relation, bool]:
    """One side of a join, asked for the columns of T that it has."""
    if any(isinstance(n, Join) for n in walk(rel)):
        return _asked(rel, own, keys)
    if not own or not any(isinstance(n, Scan) for n in walk(rel)):
        return rel, False
    asked = tuple(key for key in keys.names if key in own.values())
    whole = asked == keys.names
    types = {f.name: f.type for f in keys.relation.schema}
    some = keys.relation if whole else Project(keys.relation, tuple(Item(k, Column(k), types[k]) for k in asked))
    return _only(rel, own, some), whole


def _only(rel: Relation, own: Mapping[str, str], keys: Relation) -> Relation:
    """E ⋉ T, asked below what is made key by key: so that the rows of a table that it takes can be told."""
    match rel:
        case Aggregate(input, group_by, _, ()) | Window(input, group_by) if own.keys() <= set(group_by):
            return with_inputs(rel, (_only(input, own, keys),))
        case Filter(input) if _is_grouped(input):
            return with_inputs(rel, (_only(input, own, keys),))
        case Project(input, items) if _is_grouped(input):
            shown = {i.name: i.value.name for i in items if isinstance(i.value, Column) and i.name in own}
            if len(set(shown.values())) == len(own):
                return with_inputs(rel, (_only(input, {shown[c]: key for c, key in own.items()}, keys),))
        case _:
            pass
    return Join(rel, keys, "semi", conjunction([same(Column(c), Column(key)) for c, key in own.items()]))


def _is_grouped(rel: Relation) -> bool:
    return isinstance(rel, Aggregate | Window) or (isinstance(rel, Project | Filter) and _is_grouped(rel.input))


def join_key(rel: Join, changed: Changed) -> dict[str, str] | None:
    """The key by which a join is computed afresh: columns of its left side, and those of its right side they equal.

    Only where both sides changed, and terms and flips would read tables of one side for the change of the other, and
    again for its own: if a side is made by this key itself, or if a match takes more than the key.
    """
    sides = (rel.left, rel.right)
    key = dict(equal_columns_alike(rel))
    if rel.kind == "full" or not key or not all(is_changed(side, changed) for side in sides):
        return None
    by_key = any(_is_made_by(side, frozenset(own)) for side, own in zip(sides, (key, key.values()), strict=True))
    more = rel.kind != "inner" and len(list(equal_columns_alike(rel))) < len(conjuncts(rel.condition))
    return key if by_key or more else None


def _is_made_by(rel: Relation, key: frozenset[str]) -> bool:
    """Whether the rows of each key are computed from all that have it."""
    match rel:
        case Project(input, items):
            own = {i.value.name for i in items if isinstance(i.value, Column) and i.name in key}
            return len(own) == len(key) and _is_made_by(input, frozenset(own))
        case Filter(input):
            return _is_made_by(input, key)
        case Aggregate(_, keys, _, ()) | Window(_, keys):
            return key == frozenset(keys)
        case _:
            return False


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
