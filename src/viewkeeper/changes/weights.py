"""Signed weights: giving them, turning states back in time, and netting them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as OneOf

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
from viewkeeper.algebra.types import BIGINT, not_comparable

# What is known of a source's change before reading it: rows only came, or anything may have happened.
ChangeKind = OneOf["appended", "any"]
Changed = Mapping[str, ChangeKind]


def weighted(rel: Relation, weight: int) -> Project:
    """Every row of a state with the same weight."""
    item = Item(WEIGHT, Cast(Literal(str(weight)), BIGINT), BIGINT)
    return Project(rel, (*pass_through(rel.schema), item))


def net(rel: Relation) -> Relation:
    """Equal rows as one with the sum of their weights, zeros dropped; condense for bags without keys.

    Left as it is where a column's type has no equality, which is right too, only longer.
    """
    rows = tuple(f for f in rel.schema if f != WEIGHT_FIELD)
    if any(not_comparable(f.type) for f in rows):
        return rel
    total = Measure(WEIGHT, "sum", (WEIGHT,), BIGINT)
    summed = Aggregate(rel, tuple(f.name for f in rows), (total,))
    return Filter(summed, call("<>", Column(WEIGHT), ZERO))


def columns_without_weight(rel: Relation) -> tuple[str, ...]:
    return tuple(name for name in names(rel) if name != WEIGHT)


def before(rel: Relation, changed: Changed) -> Relation:
    """The relation as it was before the change; tables that did not change are left as they are."""
    if isinstance(rel, Scan):
        return Scan(rel.table, rel.columns, "old") if rel.table in changed else rel
    return with_inputs(rel, tuple(before(i, changed) for i in inputs(rel)))
