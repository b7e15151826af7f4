"""Which keys a change may touch: at least those of all rows that come or go, and cheaper to have than these rows.

A key that is touched for nothing costs a look at its rows; one that is left out would be a wrong view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.keys import equal_columns_alike
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Generate,
    Item,
    Join,
    Project,
    Relation,
    Union,
    Window,
    names,
)
from viewkeeper.algebra.scalars import Column
from viewkeeper.changes.references import row_by_row
from viewkeeper.changes.weights import Changed, is_changed

Columns = tuple[str, ...]
Exact = Callable[[Relation], Relation]  # δ of a relation


def touched(rel: Relation, columns: Columns, changed: Changed, exact: Exact) -> Relation:
    """⊇ π_columns(δE), copies and all."""
    found = parts(rel, columns, changed)
    if found is None:
        return _shown(exact(rel), {c: c for c in columns})
    keys = tuple(_shown(touched(part.input, part.columns, changed, exact), part.own) for part in found)
    return keys[0] if len(keys) == 1 else Union(keys)


@dataclass(frozen=True)
class Part:
    """A relation right below, and the columns of it that stand for those asked for."""

    input: Relation
    own: Mapping[str, str]

    @property
    def columns(self) -> Columns:
        return tuple(dict.fromkeys(self.own.values()))


def parts(rel: Relation, columns: Columns, changed: Changed) -> tuple[Part, ...] | None:
    """The relations below whose touched keys are all that may be touched here; None where it takes all of δE."""
    if not columns or row_by_row(rel):
        return None
    match rel:
        case Project(input, items):
            own = {i.name: i.value.name for i in items if isinstance(i.value, Column)}
            found = _part(input, columns, own)
            return None if found is None else (found,)
        case Filter(input, predicate) if not reads_clock(predicate):
            return (_same(input, columns),)
        case Aggregate(input, keys, _, ()) | Window(input, keys) if set(columns) <= set(keys):
            return (_same(input, columns),)
        case Generate(input) if set(columns) <= set(names(input)):
            return (_same(input, columns),)
        case Union(inputs):
            return tuple(_same(i, columns) for i in inputs)
        case Join():
            return _sides(rel, columns, changed)
        case _:
            return None


def _sides(rel: Join, columns: Columns, changed: Changed) -> tuple[Part, ...] | None:
    """Both, where each that changed has the columns, or others that equal them in every match.

    A row of the left side that flips has the key of the right rows that it meets. A row that is padded has NULL for
    what would equal a column of the other side, so the left side of an outer join must have the columns itself.
    """
    left, right = names(rel.left), names(rel.right)
    if rel.kind == "full" or (rel.kind != "inner" and not set(columns) <= set(left)):
        return None
    equal = tuple(equal_columns_alike(rel))
    of_left = {**{theirs: ours for ours, theirs in equal}, **{c: c for c in left}}
    of_right = {**dict(equal), **{c: c for c in right}}
    sides = [(side, own) for side, own in ((rel.left, of_left), (rel.right, of_right)) if is_changed(side, changed)]
    found = tuple(part for side, own in sides if (part := _part(side, columns, own)) is not None)
    return found if found and len(found) == len(sides) else None


def _part(rel: Relation, columns: Columns, own: Mapping[str, str]) -> Part | None:
    return Part(rel, {c: own[c] for c in columns}) if own.keys() >= set(columns) else None


def _same(rel: Relation, columns: Columns) -> Part:
    return Part(rel, {c: c for c in columns})


def _shown(rel: Relation, own: Mapping[str, str]) -> Relation:
    types = {f.name: f.type for f in rel.schema}
    return Project(rel, tuple(Item(c, Column(below), types[below]) for c, below in own.items()))
