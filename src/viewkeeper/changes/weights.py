"""Signed weights: giving them, turning states back in time, and netting them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from viewkeeper.algebra.clock import CLOCK, earlier
from viewkeeper.algebra.identity import identity, is_comparable
from viewkeeper.algebra.keys import NOTHING, Declared
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    WEIGHT,
    WEIGHT_FIELD,
    Aggregate,
    Field,
    Filter,
    Generate,
    Item,
    Join,
    Measure,
    Project,
    Relation,
    Scan,
    Top,
    Window,
    inputs,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import ONE, ZERO, Cast, Clock, Column, Literal, Scalar, call
from viewkeeper.algebra.types import BIGINT, UNKNOWN

_OTHER = "__vk_weight_2"  # of the second of two changes that are joined

# What is known of a source's change before it is computed with: rows only came; every declared key with a changed row
# either came or went, none stayed with another row; no key came, and those that stayed with another row did so only in
# columns that no condition of the view looks at; or anything may have happened.
ChangeKind = OneOf["appended", "apart", "in place", "any"]
Changed = Mapping[str, ChangeKind]


@dataclass(frozen=True)
class Known(Mapping[str, ChangeKind]):
    """What the rules know: how each changed table changed, what is declared of tables, and what the view shows."""

    changed: Changed
    declared: Declared = NOTHING
    shown: Mapping[Join, Mapping[str, str]] = field(default_factory=dict)

    def __getitem__(self, table: str) -> ChangeKind:
        return self.changed[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self.changed)

    def __len__(self) -> int:
        return len(self.changed)


def weighted(rel: Relation, weight: int) -> Project:
    """Every row of a state with the same weight."""
    item = Item(WEIGHT, Cast(Literal(str(weight)), BIGINT), BIGINT)
    return Project(rel, (*pass_through(rel.schema), item))


def net(rel: Relation) -> Relation:
    """Equal rows as one with the sum of their weights, zeros dropped; condense for bags without keys."""
    rows = tuple(f for f in rel.schema if f != WEIGHT_FIELD)
    total = Measure(WEIGHT, "sum", (WEIGHT,), BIGINT)
    left = call("<>", Column(WEIGHT), ZERO)
    if all(is_comparable(f.type) for f in rows):
        return Filter(Aggregate(rel, tuple(f.name for f in rows), (total,)), left)
    # Values that cannot be compared are grouped by their identity; those of a group are all the same.
    told = {f.name: f"__vk_told_{f.name}" for f in rows if not is_comparable(f.type)}
    added = tuple(Item(told[f.name], identity(Column(f.name), f.type), UNKNOWN) for f in rows if f.name in told)
    kept = tuple(Measure(f.name, "any_value", (f.name,), f.type) for f in rows if f.name in told)
    keys = tuple(told.get(f.name, f.name) for f in rows)
    groups = Aggregate(Project(rel, (*pass_through(rel.schema), *added)), keys, (*kept, total))
    return Project(Filter(groups, left), pass_through((*rows, WEIGHT_FIELD)))


def positive(change: Relation) -> Relation:
    """δ⁺: the rows that come."""
    return Filter(change, call(">", Column(WEIGHT), ZERO))


def negative(change: Relation) -> Relation:
    """δ⁻: the rows that go, with their negative weights."""
    return Filter(change, call("<", Column(WEIGHT), ZERO))


def negated(change: Relation) -> Relation:
    """−δ: what came goes, and what went comes back."""
    rows = tuple(f for f in change.schema if f != WEIGHT_FIELD)
    return Project(change, (*pass_through(rows), Item(WEIGHT, call("-", Column(WEIGHT)), BIGINT)))


def one_by_one(change: Relation) -> Relation:
    """A row that comes n times as n rows."""
    copies = Generate(change, call("EXPLODE", call("SEQUENCE", ONE, Column(WEIGHT))), (Field("__vk_copy", BIGINT),))
    items = (Item(f.name, ONE if f.name == WEIGHT else Column(f.name), f.type) for f in change.schema)
    return Project(copies, tuple(items))


def product(left: Relation, right: Relation, condition: Scalar) -> Relation:
    """The join of two changes: a pair has the product of the weights."""
    rows = tuple(f for f in right.schema if f != WEIGHT_FIELD)
    renamed = Project(right, (*pass_through(rows), Item(_OTHER, Column(WEIGHT), BIGINT)))
    both = Join(left, renamed, "inner", condition)
    kept = tuple(f for f in left.schema if f != WEIGHT_FIELD)
    weight = Item(WEIGHT, call("*", Column(WEIGHT), Column(_OTHER)), BIGINT)
    return Project(both, (*pass_through((*kept, *rows)), weight))


def only_appends(rel: Relation, changed: Changed) -> bool:
    """Whether the change can hold no row of negative weight: rows only came, and none was replaced."""
    nodes = list(walk(rel))
    tables = {n.table for n in nodes if isinstance(n, Scan)}
    replaced = any(
        isinstance(n, Aggregate | Window | Top) or (isinstance(n, Join) and n.kind not in ("inner", "semi"))
        for n in nodes
    )
    waits = CLOCK in changed and any(isinstance(n, Clock) for n in nodes)
    return not replaced and not waits and all(changed[t] == "appended" for t in tables if t in changed)


def is_changed(rel: Relation, changed: Changed) -> bool:
    """Whether a table below changed, or the clock moved that a condition below looks at."""
    sources = (n.table if isinstance(n, Scan) else CLOCK for n in walk(rel) if isinstance(n, Scan | Clock))
    return any(source in changed for source in sources)


def columns_without_weight(rel: Relation) -> tuple[str, ...]:
    return tuple(name for name in names(rel) if name != WEIGHT)


def before(rel: Relation, changed: Changed) -> Relation:
    """The relation as it was before the change; tables that did not change are left as they are."""
    if isinstance(rel, Scan):
        return Scan(rel.table, rel.columns, "old") if rel.table in changed else rel
    was = with_inputs(rel, tuple(before(i, changed) for i in inputs(rel)))
    return replace(was, predicate=earlier(was.predicate)) if isinstance(was, Filter) and CLOCK in changed else was
