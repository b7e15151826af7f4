"""What a refresh computes: the change table □V of what is kept, and how to merge it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import assert_never

from viewkeeper.algebra.conditions import disjunction
from viewkeeper.algebra.identity import is_comparable
from viewkeeper.algebra.keys import NOTHING, Declared, ForeignKey, Keys, keys
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import drop_empty, prune
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Filter,
    Item,
    Join,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    is_empty,
    pass_through,
)
from viewkeeper.algebra.scalars import NULL, ZERO, Cast, Column, Scalar, call
from viewkeeper.algebra.sketches import SKETCHES
from viewkeeper.algebra.types import BIGINT, FLOATING, INTEGRAL, decimal, decimal_parts
from viewkeeper.changes.drift import DOUBLE, STEPS, grown, too_far, weighted
from viewkeeper.changes.groups import affected_keys, restrict
from viewkeeper.changes.kept import Kept, KeptBag, KeptGroups, KeptTop, StateColumn
from viewkeeper.changes.merge import CHANGE, OLD, Merge, MergeBag, MergeGroups, MergeTop
from viewkeeper.changes.own import OWN, ByKey, groups_by_key, rows_by_key
from viewkeeper.changes.propagate import change
from viewkeeper.changes.references import Question, questions
from viewkeeper.changes.weights import Changed, ChangeKind, net, one_by_one, only_appends

_GROWING = ("least", "greatest", "sketch")  # states that follow rows that come, but none that go
DOUBTED = "__vk_doubted"  # a table that there is only during a refresh


@dataclass(frozen=True)
class Doubt:
    """Groups whose floating-point sums may have drifted too far, by a condition over `old.x` and `change.x`.

    Their keys, as a table named DOUBTED, take them out of the change; `afresh` takes their place.
    """

    condition: Scalar
    afresh: Relation


@dataclass(frozen=True)
class Maintenance:
    """A view's change as algebra, how to merge it, and why it is computed in this way.

    The answers to `questions` may make another change possible that reads less, `own` rows of the view included.
    """

    change: Relation
    merge: Merge
    insert_only: bool
    reasons: tuple[Reason, ...] = ()
    questions: tuple[Question, ...] = ()
    doubt: Doubt | None = None
    own: bool = False

    @property
    def nothing(self) -> bool:
        return is_empty(self.change)


def maintenance(kept: Kept, changed: Changed, declared: Declared = NOTHING, own: bool = False) -> Maintenance:
    """How the kept form of a view follows these changes of its tables, by what is declared of them.

    What was kept is looked into only if `own` is said. Refreshes of one process have it worked out once.
    """
    known = tuple(declared.keys.items())
    return _worked_out(kept, tuple(changed.items()), known, declared.references, small=declared.small, own=own)


@lru_cache(maxsize=512)
def _worked_out(
    kept: Kept,
    changes: tuple[tuple[str, ChangeKind], ...],
    known: tuple[tuple[str, Keys], ...],
    references: tuple[ForeignKey, ...],
    *,
    small: frozenset[str],
    own: bool,
) -> Maintenance:
    changed, declared = dict(changes), Declared(dict(known), references, small)
    found = _maintenance(kept, changed, declared, own)
    reasons, asked = found.reasons, found.questions
    if declared.references:
        spared = tables_read(_maintenance(kept, changed, NOTHING).change) - tables_read(found.change)
        reasons += tuple(
            Reason(r.child, f"only its changes are read: {r}") for r in declared.references if r.child in spared
        )
        more = questions(kept.content, changed, declared)
        answered = _maintenance(kept, {**changed, **{q.table: q.kind for q in more}}, declared, own)
        asked += more if tables_read(found.change) - tables_read(answered.change) else ()
    return replace(found, reasons=reasons, questions=asked, own=own)


def tables_read(rel: Relation) -> set[str]:
    """The tables of which a state is read."""
    return {n.table for n in walk(rel) if isinstance(n, Scan)}


def _maintenance(kept: Kept, changed: Changed, declared: Declared, own: bool = False) -> Maintenance:
    by_key = _by_key(kept, changed, declared) if own else None
    if by_key is not None and set(changed.values()) == {"in place"}:
        return _in_place(kept, by_key, declared)
    asked = (Question(t, by_key.against, "in place") for t in changed) if by_key is not None else ()
    found = _from_tables(kept, changed, declared, own)
    return replace(found, questions=tuple(asked))


def _from_tables(kept: Kept, changed: Changed, declared: Declared, own: bool) -> Maintenance:
    match kept:
        case KeptBag(content):
            return _bag(content, changed, declared, own)
        case KeptGroups():
            return _groups(kept, changed, declared)
        case KeptTop(input, order_by, wanted):
            rows = prune(drop_empty(net(change(input, changed, declared))))
            return Maintenance(rows, MergeTop(input.schema, order_by, wanted, kept.room), insert_only=False)
        case _:
            assert_never(kept)


def _bag(content: Relation, changed: Changed, declared: Declared, own: bool) -> Maintenance:
    rows = prune(drop_empty(net(change(content, changed, declared, own))))
    reasons = (Reason("the view itself", "rows without a match are found in it"),) if OWN in tables_read(rows) else ()
    return Maintenance(rows, _merge_bag(content, declared), only_appends(content, changed), reasons)


def _merge_bag(content: Relation, declared: Declared) -> MergeBag:
    return MergeBag(content.schema, _key(content, declared))


# By the keys of a table's rows, in what is kept


def _by_key(kept: Kept, changed: Changed, declared: Declared) -> ByKey | None:
    """The change by key, if only one table changed, and not by appends."""
    if len(changed) != 1 or "appended" in changed.values():
        return None
    (table,) = changed
    match kept:
        case KeptBag(content):
            return rows_by_key(content, table, declared)
        case KeptGroups(input, key):
            states = kept.content.schema[len(key) :]
            return groups_by_key(input, key, states, table, declared)
        case KeptTop():
            return None
        case _:
            assert_never(kept)


def _in_place(kept: Kept, by_key: ByKey, declared: Declared) -> Maintenance:
    reasons = (Reason("the view itself", "it shows the key of the rows that changed: no other table is read"),)
    merge = _merge_fresh(kept) if isinstance(kept, KeptGroups) else _merge_bag(kept.content, declared)
    return Maintenance(prune(drop_empty(by_key.change)), merge, insert_only=False, reasons=reasons)


def _key(content: Relation, declared: Declared) -> tuple[str, ...]:
    """The shortest key whose values can be compared as they are; none if there is no such key."""
    comparable = {f.name for f in content.schema if is_comparable(f.type)}
    found = (key for key in keys(content, declared) if key <= comparable)
    shortest = min(found, key=lambda key: (len(key), sorted(key)), default=frozenset[str]())
    return tuple(f.name for f in content.schema if f.name in shortest)


def _groups(kept: KeptGroups, changed: Changed, declared: Declared) -> Maintenance:
    fresh = fresh_states(kept, changed)
    below = change(kept.input, changed, declared)
    if is_empty(below):
        return Maintenance(below, _merge_added(kept), insert_only=True)
    if fresh:
        reasons = tuple(Reason(s.name, f"its groups are computed afresh: {s.why_fresh}") for s in fresh)
        return Maintenance(_recomputed(kept, below), _merge_fresh(kept), False, reasons)
    return Maintenance(prune(_summed(kept, below)), _merge_added(kept), insert_only=False, doubt=_doubt(kept))


def fresh_states(kept: KeptGroups, changed: Changed) -> list[StateColumn]:
    """The states that such changes cannot be added to, so that the touched groups are computed afresh."""
    appended = only_appends(kept.input, changed)
    return [s for s in kept.states if s.why_fresh and not (appended and s.merge in _GROWING)]


# Additive states: □V = γ_G of the signed contributions


def _summed(kept: KeptGroups, below: Relation) -> Relation:
    """□(γ_G f(A)) = γ_G(Σ weight · A): each state's change, added up per group.   [change table]"""
    sketches = [s for s in kept.states if s.merge == "sketch"]
    if any(SKETCHES[s.measure.function].counts for s in sketches):
        below = one_by_one(below)
    types = {f.name: f.type for f in below.schema}
    keys = tuple(Item(k, Column(k), types[k]) for k in kept.key)
    sums = {s.name: s for s in kept.states}
    contributions = tuple(
        _drifting(s, sums[s.drift_of]) if s.drift_of else _contribution(s, types)
        for s in kept.states
        if s not in sketches
    )
    parts = {c.name: c for c in contributions}
    totals = tuple(s.measure if s in sketches else _total(s, parts[s.name]) for s in kept.states)
    steps = (Measure(STEPS, "count", (), BIGINT),) if kept.drifts else ()
    read = dict.fromkeys(n for s in sketches for n in (*s.measure.args, s.measure.where) if n is not None)
    sketched = tuple(Item(n, kept.constants.get(n) or Column(n), types[n]) for n in read)
    rows = Aggregate(Project(below, (*keys, *contributions, *sketched)), kept.key, (*totals, *steps))
    if any(s.merge in _GROWING for s in kept.states):
        return rows
    moved: list[Scalar] = [call("<>", call("COALESCE", Column(s.name), ZERO), ZERO) for s in kept.states]
    return Filter(rows, disjunction(moved))


def _contribution(state: StateColumn, types: dict[str, str]) -> Item:
    """What one weighted row adds to the state."""
    measure = state.measure
    weight = Column(WEIGHT)
    argument = Column(measure.args[0]) if measure.args else None
    type_ = types[measure.args[0]] if measure.args else BIGINT
    value: Scalar
    if measure.function == "count":
        present = [call("IS NOT NULL", Column(a)) for a in measure.args]
        value, type_ = weight, BIGINT
        for condition in present:
            value = call("IF", condition, value, ZERO)
    elif measure.function == "sum" and argument is not None:
        value, type_ = _times(argument, type_, weight)
    else:
        value = argument or NULL
    if measure.where:
        value = call("IF", Column(measure.where), value, ZERO if measure.function == "count" else NULL)
    return Item(state.name, value, type_)


def _drifting(state: StateColumn, total: StateColumn) -> Item:
    """The size of what one weighted row adds to a sum of floating-point numbers."""
    size: Scalar = call("ABS", weighted(Column(total.measure.args[0]), Column(WEIGHT)))
    if total.measure.where:
        size = call("IF", Column(total.measure.where), size, NULL)
    return Item(state.name, size, DOUBLE)


def _times(argument: Scalar, type_: str, weight: Scalar) -> tuple[Scalar, str]:
    """argument · weight: without loss in bigint, or in a decimal ten digits wider; of doubles as good as it gets."""
    if type_ in FLOATING:
        return weighted(argument, weight), DOUBLE
    if type_ in INTEGRAL:
        return call("*", Cast(argument, BIGINT), weight), BIGINT
    precision, scale = decimal_parts(type_) or (0, 0)
    return call("*", argument, Cast(weight, "decimal(10,0)")), decimal(precision + 11, scale)


def _total(state: StateColumn, contribution: Item) -> Measure:
    function = {"least": "min", "greatest": "max"}.get(state.merge, "sum")
    parts = decimal_parts(contribution.type)
    type_ = decimal(parts[0] + 10, parts[1]) if parts and function == "sum" else contribution.type
    return Measure(state.name, function, (contribution.name,), type_)


def _merge_added(kept: KeptGroups) -> MergeGroups:
    if not kept.drifts:
        return _merge(kept, lambda s: _added(kept, s))
    afresh = call("IS NULL", Column(CHANGE + STEPS))
    return _merge(kept, lambda s: call("IF", afresh, Column(CHANGE + s.name), _added(kept, s)))


def _added(kept: KeptGroups, state: StateColumn) -> Scalar:
    """The new value of a state from its old one and what the change adds to it."""
    old, new = Column(OLD + state.name), Column(CHANGE + state.name)
    if state.merge in ("least", "greatest"):
        return call(state.merge.upper(), old, new)
    if state.merge == "sketch":
        args = tuple(kept.constants.get(a, NULL) for a in state.measure.args)
        return SKETCHES[state.measure.function].merged(old, new, args)
    if state.drift_of is not None:
        added = grown(old, Column(OLD + state.drift_of), new, Column(CHANGE + STEPS))
    else:
        added = _sum(old, new)
    if state.counted_by is None:
        return added
    return call("IF", call("=", _counted(state.counted_by), ZERO), NULL, added)


def _sum(old: Scalar, new: Scalar) -> Scalar:
    return call("+", call("COALESCE", old, ZERO), call("COALESCE", new, ZERO))


def _counted(counter: str) -> Scalar:
    """How many values there are after the change."""
    return _sum(Column(OLD + counter), Column(CHANGE + counter))


# Sums of floating-point numbers, which do not cancel


def _doubt(kept: KeptGroups) -> Doubt | None:
    """Which groups have drifted too far, and what they are: T ⟕ γ_G(E_new ⋉ T) for those keys T."""
    drifts, sums = kept.drifts, {s.name: s for s in kept.states}
    if not drifts:
        return None
    conditions = [
        too_far(_added(kept, sums[d.drift_of or ""]), _added(kept, d), _counted(d.counted_by or "")) for d in drifts
    ]
    types = {f.name: f.type for f in kept.input.schema}
    doubted = Scan(DOUBTED, tuple(ScanColumn(k, k, types[k]) for k in kept.key))
    groups = _recomputed(kept, doubted)
    steps = Item(STEPS, Cast(NULL, BIGINT), BIGINT)
    return Doubt(disjunction(conditions), Project(groups, (*pass_through(groups.schema), steps)))


# Anything else: the touched groups afresh


def _recomputed(kept: KeptGroups, below: Relation) -> Relation:
    """□V = T ⟕ γ_G(E_new ⋉ T): touched groups with their new values, count NULL where a group is gone."""
    keys = affected_keys(below, kept.key)
    states = tuple(s.measure for s in kept.states)
    groups = Aggregate(restrict(kept.input, keys), kept.key, states)
    if keys is None:
        return groups
    joined = Join(keys.relation, groups, "left", keys.matches)
    types = {f.name: f.type for f in groups.schema}
    key_items = tuple(Item(k, Column(name), types[k]) for k, name in zip(kept.key, keys.names, strict=True))
    return Project(joined, (*key_items, *pass_through(groups.schema[len(kept.key) :])))


def _merge_fresh(kept: KeptGroups) -> MergeGroups:
    return _merge(kept, lambda s: Column(CHANGE + s.name))


def _merge(kept: KeptGroups, value: Callable[[StateColumn], Scalar]) -> MergeGroups:
    fields = kept.content.schema
    keys = tuple(Item(f.name, Column(CHANGE + f.name), f.type) for f in fields[: len(kept.key)])
    types = {f.name: f.type for f in fields}
    states = tuple(Item(s.name, Cast(value(s), types[s.name]), types[s.name]) for s in kept.states)
    return MergeGroups(kept.key, (*keys, *states))
