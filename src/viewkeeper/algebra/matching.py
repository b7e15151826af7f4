"""What a semi or anti join has to look at: it asks whether there is a match, not how many or with what beside it."""

from __future__ import annotations

from collections.abc import Iterator

from viewkeeper.algebra.conditions import not_null, present_if_true
from viewkeeper.algebra.normalize import prune
from viewkeeper.algebra.relations import (
    Aggregate,
    Generate,
    Join,
    Project,
    Relation,
    Window,
    inputs,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import Scalar, columns


def looked_at(right: Relation, condition: Scalar) -> Relation:
    """The part of `right` in which the condition finds a match exactly where it finds one in all of it.

    It has no column that the condition does not read, so that changes of others are no changes of it.
    """
    used = columns(condition) & set(names(right))
    if not used:
        return right
    part = _part(right, used, present_if_true(condition) & used)
    pruned = prune(part, used)
    # A relation without columns has no rows that could be told apart, so what is empty of it would not show.
    found = pruned if all(_has_columns(pruned)) else part
    return Project(found, pass_through(tuple(f for f in found.schema if f.name in used)))


def _has_columns(rel: Relation) -> Iterator[bool]:
    yield bool(rel.schema)
    for below in inputs(rel):
        yield from _has_columns(below)


def _part(rel: Relation, used: frozenset[str], present: frozenset[str]) -> Relation:
    """A part that has the same rows of the `used` columns, but for copies, and for rows without a `present` column.

    L of L ⟕ R where only its columns count, L of L ⟗ R if moreover padded rows do not; E of γ_G(E) where only G
    counts; E of ω(E) where no column of ω counts.
    """
    match rel:
        case Project(input, items):
            shown = tuple(i for i in items if i.name in used)
            below = frozenset().union(*(columns(i.value) for i in shown))
            part = _part(input, below, frozenset().union(*(not_null(i.value) for i in shown if i.name in present)))
            return rel if part == input or not below else Project(part, shown)
        case Join(left, _, "left") if used <= set(names(left)):
            return _part(left, used, present)
        case Join(left, right, "full") if present:
            side = next((s for s in (left, right) if used <= set(names(s))), None)
            return rel if side is None else _part(side, used, present)
        case Aggregate(input, group_by, _, ()) if used <= set(group_by):
            return _part(input, used, present)
        case Window(input) | Generate(input, outer=True) if used <= set(names(input)):
            return _part(input, used, present)
        case _:
            return rel
