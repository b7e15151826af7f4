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
    Scan,
    Union,
    Window,
    names,
)
from viewkeeper.algebra.scalars import Call, Column, Scalar, conjuncts
from viewkeeper.changes.groups import near
from viewkeeper.changes.references import row_by_row
from viewkeeper.changes.weights import Changed, is_changed

Columns = tuple[str, ...]
Exact = Callable[[Relation], Relation]  # δ of a relation


def touched(
    rel: Relation, columns: Columns, changed: Changed, exact: Exact, small: frozenset[str] = frozenset()
) -> Relation:
    """⊇ π_columns(δE), copies and all; less of them where a look into a small table tells that they meet nothing."""
    found = parts(rel, columns, changed)
    if found is None:
        return _shown(exact(rel), {c: c for c in columns})
    keys = [_shown(touched(part.input, part.columns, changed, exact, small), part.own) for part in found]
    if isinstance(rel, Join):
        keys = _meeting(rel, found, keys, small)
    return keys[0] if len(keys) == 1 else Union(tuple(keys))


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
    if rel.kind == "full" or (rel.kind != "inner" and not set(columns) <= set(names(rel.left))):
        return None
    sides = [(side, own) for side, own in _with_equal(rel) if is_changed(side, changed)]
    found = tuple(part for side, own in sides if (part := _part(side, columns, own)) is not None)
    return found if found and len(found) == len(sides) else None


def _with_equal(rel: Join) -> tuple[tuple[Relation, dict[str, str]], tuple[Relation, dict[str, str]]]:
    """Each side, and the columns of both by what it calls them, or calls those that equal them in every match."""
    equal = tuple(equal_columns_alike(rel))
    of_left = {**{theirs: ours for ours, theirs in equal}, **{c: c for c in names(rel.left)}}
    of_right = {**dict(equal), **{c: c for c in names(rel.right)}}
    return (rel.left, of_left), (rel.right, of_right)


def _meeting(rel: Join, found: tuple[Part, ...], keys: list[Relation], small: frozenset[str]) -> list[Relation]:
    """T_L + T_R ⋉ H, where H has all keys of L_new; of an inner join, or else the other way round.

    A key of T_R that H does not have is in no row of L_new. If it was in one of L_old, it is in T_L, too.
    """
    left, right = _with_equal(rel)
    for (side, own), (other, _) in ((left, right), (right, left)) if rel.kind == "inner" else ((left, right),):
        at = next((n for n, part in enumerate(found) if part.input == other), None)
        whole = _part(side, tuple(found[at].own), own) if at is not None else None
        held = holder(whole, small) if whole is not None else None
        if at is not None and held is not None:
            met = near(keys[at], held.input, [(below, c) for c, below in held.own.items()])
            return [*keys[:at], met, *keys[at + 1 :]]
    return keys


def holder(whole: Part, small: frozenset[str]) -> Part | None:
    """Chosen rows of a small table that have every value which the columns have in the whole, if there are such."""
    rel, columns = whole.input, whole.columns
    match rel:
        case Filter(Scan(table), predicate) if table in small and any(map(_chooses, conjuncts(predicate))):
            return whole
        case Project(input, items):
            below = [(input, {i.name: i.value.name for i in items if isinstance(i.value, Column)})]
        case Filter(input):
            below = [(input, {c: c for c in columns})]
        case Aggregate(input, keys, _, ()) | Window(input, keys):
            below = [(input, {c: c for c in keys})]
        case Join(left, _, "inner" | "left" | "semi" | "anti" as kind):
            below = list(_with_equal(rel)) if kind == "inner" else [(left, {c: c for c in names(left)})]
        case _:
            return None
    asked = (_part(input, columns, own) for input, own in below)
    named = (Part(part.input, {c: part.own[o] for c, o in whole.own.items()}) for part in asked if part is not None)
    return next((held for part in named if (held := holder(part, small)) is not None), None)


def _chooses(term: Scalar) -> bool:
    """Whether it leaves out more than rows without a value."""
    return not isinstance(term, Call) or term.name != "IS NOT NULL"


def _part(rel: Relation, columns: Columns, own: Mapping[str, str]) -> Part | None:
    return Part(rel, {c: own[c] for c in columns}) if own.keys() >= set(columns) else None


def _same(rel: Relation, columns: Columns) -> Part:
    return Part(rel, {c: c for c in columns})


def _shown(rel: Relation, own: Mapping[str, str]) -> Relation:
    types = {f.name: f.type for f in rel.schema}
    return Project(rel, tuple(Item(c, Column(below), types[below]) for c, below in own.items()))
