"""Signed weights: giving them, turning states back in time, and netting them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal as OneOf

from viewkeeper.algebra.clock import CLOCK, earlier
from viewkeeper.algebra.identity import identity, is_comparable
from viewkeeper.algebra.relations import (
    WEIGHT,
    WEIGHT_FIELD,
    Aggregate,
    Filter,
    Item,
    Measure,
    Project,
    Relation,
    Scan,
    inputs,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import ZERO, Cast, Column, Literal, call
from viewkeeper.algebra.types import BIGINT, UNKNOWN

# What is known of a source's change before reading it: rows only came, or anything may have happened.
ChangeKind = OneOf["appended", "any"]
Changed = Mapping[str, ChangeKind]


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


def columns_without_weight(rel: Relation) -> tuple[str, ...]:
    return tuple(name for name in names(rel) if name != WEIGHT)


def before(rel: Relation, changed: Changed) -> Relation:
    """The relation as it was before the change; tables that did not change are left as they are."""
    if isinstance(rel, Scan):
        return Scan(rel.table, rel.columns, "old") if rel.table in changed else rel
    was = with_inputs(rel, tuple(before(i, changed) for i in inputs(rel)))
    return replace(was, predicate=earlier(was.predicate)) if isinstance(was, Filter) and CLOCK in changed else was
