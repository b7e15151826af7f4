"""Aggregates over aggregates as one.

    γ_{G'; sum(s), max(m)}(… γ_{G; s = sum(x), m = max(y)} E …) = γ_{G'; sum(x), max(y)}(… E …)

if what stands between them looks at G alone, and the outer aggregate asks of its rows only what does not depend on
how they were grouped: sums of sums and of counts, extremes of extremes, and measures of distinct values. Then the
change of E goes straight into the outer sums, and the inner groups need not be known, before or after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal as OneOf

from viewkeeper.algebra.aggregates import EXTREMES
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Item,
    Join,
    Measure,
    Project,
    Relation,
    inputs,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import NULL, ONE, ZERO, Cast, Column, Scalar, call, own_columns
from viewkeeper.algebra.types import BIGINT

# What a column is read for: by one kind of outer measure alone, or for its value.
Role = OneOf["sum", "min", "max", "value"]
Roles = Mapping[str, Role]


def fused(rel: Relation) -> Relation:
    """The relation with every aggregate gone that another one makes superfluous."""
    below = with_inputs(rel, tuple(fused(i) for i in inputs(rel)))
    if isinstance(below, Aggregate):
        roles = _roles(below)
        opened = _opened(below.input, roles) if roles is not None else None
        return fused(replace(below, input=opened)) if opened is not None else below
    return below


def _roles(outer: Aggregate) -> Roles | None:
    """What each column is read for; None if a measure counts rows that fewer or more copies would change."""
    reads: list[tuple[str, Role]] = [(k, "value") for k in outer.group_by]
    for m in outer.measures:
        role: Role | None = {"sum": "sum", "min": "min", "max": "max"}.get(m.function)  # type: ignore[assignment]
        if m.settled or (role is None and not m.distinct):
            return None
        reads += [(a, "value" if m.distinct else role or "value") for a in m.args]
        reads += [(m.where, "value")] if m.where else []
    roles: dict[str, Role] = {}
    for column, role in reads:
        if roles.setdefault(column, role) != role:
            if "sum" in (roles[column], role):
                return None
            roles[column] = "value"
    return roles


def _opened(rel: Relation, roles: Roles) -> Relation | None:
    """The relation with rows of E in the place of its groups; None if it has none, or they must be known."""
    match rel:
        case Aggregate():
            return _contributions(rel, roles)
        case Project(input, items):
            through: dict[str, Role] = {}
            for item in items:
                role = roles.get(item.name, "value")
                plain = isinstance(item.value, Column)
                for column in own_columns(item.value):
                    own: Role = role if plain else "value"
                    if "sum" in (role, through.get(column)) and (not plain or column in through):
                        return None
                    through[column] = own if through.get(column, own) == own else "value"
            opened = _opened(input, through)
            return replace(rel, input=opened) if opened is not None else None
        case Filter(input, predicate):
            seen = _looked_at(predicate, roles)
            opened = _opened(input, seen) if seen is not None else None
            return replace(rel, input=opened) if opened is not None else None
        case Join(left, right, "inner", condition):
            seen = _looked_at(condition, roles)
            if seen is None:
                return None
            for side, other in ((left, right), (right, left)):
                if not any(seen.get(c) == "sum" for c in names(other)):
                    opened = _opened(side, {c: r for c, r in seen.items() if c in names(side)})
                    if opened is not None:
                        return replace(rel, left=opened) if side is left else replace(rel, right=opened)
            return None
        case _:
            return None


def _looked_at(condition: Scalar, roles: Roles) -> Roles | None:
    """The roles where a condition looks at columns too; None if it looks at one that is summed up."""
    read = own_columns(condition)
    return None if any(roles.get(c) == "sum" for c in read) else {**roles, **dict.fromkeys(read, "value")}


def _contributions(inner: Aggregate, roles: Roles) -> Relation | None:
    """What each row of E adds to the measures of its group, beside the columns that it is grouped by."""
    measures = {m.name: m for m in inner.measures}
    for column, role in roles.items():
        measure = measures.get(column)
        if measure is None and role == "sum":
            return None
        if measure is not None and not _fits(measure, role):
            return None
    if not inner.group_by or inner.sets:
        return None
    keys = pass_through(inner.schema[: len(inner.group_by)])
    added = tuple(Item(m.name, _contribution(m), m.type) for m in inner.measures if m.name in roles)
    return Project(inner.input, (*keys, *added))


def _fits(measure: Measure, role: Role) -> bool:
    if role == "sum":
        return measure.function in ("sum", "count") and not measure.distinct
    return role == measure.function and measure.function in EXTREMES


def _contribution(measure: Measure) -> Scalar:
    if measure.function == "count":
        value: Scalar = ONE
        for arg in measure.args:
            value = call("IF", call("IS NOT NULL", Column(arg)), value, ZERO)
        value = call("IF", Column(measure.where), value, ZERO) if measure.where else value
        return Cast(value, BIGINT)
    value = Column(measure.args[0])
    return Cast(call("IF", Column(measure.where), value, NULL) if measure.where else value, measure.type)
