"""Which change rule each operator of a kept view follows, by name, with its equation and the reasons against others.

An equation is the first line of what is written over the function that computes by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import getdoc
from typing import assert_never

from viewkeeper.algebra.clock import CLOCK, reads_clock
from viewkeeper.algebra.matching import looked_at
from viewkeeper.algebra.orders import only_looks_back
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Generate,
    Join,
    Pivot,
    Project,
    Relation,
    Scan,
    SetOperation,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    inputs,
)
from viewkeeper.changes import propagate, refresh
from viewkeeper.changes.groups import join_key
from viewkeeper.changes.kept import Kept, KeptBag, KeptGroups, KeptTop
from viewkeeper.changes.touched import parts
from viewkeeper.changes.weights import Changed
from viewkeeper.errors import InternalError


@dataclass(frozen=True)
class Rule:
    """A change rule: how people call it, and the functions that compute by it, if it takes any."""

    name: str
    functions: tuple[Callable[..., object], ...] = ()

    @property
    def equations(self) -> tuple[str, ...]:
        lines = ((getdoc(f) or "").partition("\n")[0] for f in self.functions)
        return tuple(line.removesuffix(f"[{self.name}]").rstrip() for line in lines)


@dataclass(frozen=True)
class Applied:
    """An operator of a definition, how deep it stands, the rule it follows, and why no other one."""

    operator: Relation
    depth: int
    rule: Rule
    reasons: tuple[str, ...] = ()


UNCHANGED = Rule("no term")
NETTED = Rule("netted change", (propagate._scan,))
APPENDED = Rule("appended rows")
FILTERED = Rule("row by row", (propagate._filter,))
PROJECTED = Rule("row by row", (propagate._project,))
GENERATED = Rule("row by row", (propagate._generate,))
BRANCHES = Rule("branch by branch", (propagate._union,))
JOIN_TERMS = Rule("join terms", (propagate._inner,))
FLIPS = Rule("join terms and flips", (propagate._own, propagate._flips))
OUTER_TERMS = Rule("join terms and flips", (propagate._left, propagate._own, propagate._flips))
JOIN_KEYS = Rule("affected keys", (propagate._key_by_key,))
GROUP_KEYS = Rule("affected keys", (propagate._aggregate,))
PARTITION_KEYS = Rule("affected keys", (propagate._window,))
ROWS_BEHIND = Rule("affected rows", (propagate._behind,))
BEFORE_AND_AFTER = Rule("before and after", (propagate._top,))
CHANGE_TABLE = Rule("change table", (refresh._summed,))
BOUNDED_TABLE = Rule("change table", (refresh._summed, refresh._recomputed))
KEYS_ALONE = Rule("keys alone")
RESERVE = Rule("first rows and a reserve")
GROUPS_AFRESH = Rule("affected keys", (refresh._recomputed,))


def applied_rules(kept: Kept, changed: Changed) -> Iterator[Applied]:
    """The rule of every operator, from the top down."""
    match kept:
        case KeptBag(content):
            yield from _below(content, changed, 0)
        case KeptGroups(input):
            yield _of_groups(kept, changed)
            yield from _below(input, changed, 1)
        case KeptTop(input, order_by):
            reserve = f"{kept.reserve:,} more rows are kept; when they are used up, all are computed afresh"
            yield Applied(Top(input, order_by, kept.wanted), 0, RESERVE, (reserve,))
            yield from _below(input, changed, 1)
        case _:
            assert_never(kept)


def _of_groups(kept: KeptGroups, changed: Changed) -> Applied:
    if not _moves(kept.input, changed):
        return Applied(kept.content, 0, UNCHANGED)
    fresh = refresh.fresh_states(kept, changed)
    if fresh:
        against = (f"not a change table: {s.name}: {s.why_fresh}" for s in fresh)
        return Applied(kept.content, 0, GROUPS_AFRESH, tuple(against))
    merged = [f"{s.name} is merged, since rows only came" for s in kept.states if s.why_fresh]
    drifts = [f"{s.drift_of}: where it may be off by 1e-9, its group is computed afresh" for s in kept.drifts]
    return Applied(kept.content, 0, BOUNDED_TABLE if drifts else CHANGE_TABLE, (*merged, *drifts))


def _below(rel: Relation, changed: Changed, depth: int, keys: tuple[str, ...] = ()) -> Iterator[Applied]:
    """`keys` are the columns that count, where only the keys of its change do."""
    if not _moves(rel, changed):
        yield Applied(rel, depth, UNCHANGED, ("nothing below it changed",))
        return
    counted = parts(rel, keys, changed)
    if counted is not None:
        yield Applied(rel, depth, KEYS_ALONE, ("what it is joined or filtered with is not looked at",))
        for part in counted:
            yield from _below(part.input, changed, depth + 1, part.columns)
        return
    yield Applied(rel, depth, *_rule(rel, changed))
    for input, own in zip(_followed(rel), _counted(rel, changed), strict=True):
        yield from _below(input, changed, depth + 1, own)


def _counted(rel: Relation, changed: Changed) -> tuple[tuple[str, ...], ...]:
    """For each relation right below, the columns that tell which of its rows are touched, if that is all it takes."""
    match rel:
        case Aggregate(_, keys):
            return (keys,)
        case Window(_, keys) if not only_looks_back(rel):
            return (keys,)
        case Join() if (key := join_key(rel, changed)) is not None:
            return tuple(key), tuple(key.values())
        case _:
            return ((),) * len(inputs(rel))


def _followed(rel: Relation) -> tuple[Relation, ...]:
    """The relations right below whose changes count; of what only a match is looked for in, the part that decides."""
    match rel:
        case Join(left, right, "semi" | "anti", condition):
            return left, looked_at(right, condition)
        case _:
            return inputs(rel)


def _moves(rel: Relation, changed: Changed) -> bool:
    """Whether a table below changed that counts, or the clock moved that a condition looks at."""
    match rel:
        case Scan(table):
            return table in changed
        case Filter(_, predicate) if CLOCK in changed and reads_clock(predicate):
            return True
        case _:
            return any(_moves(below, changed) for below in _followed(rel))


def _rule(rel: Relation, changed: Changed) -> tuple[Rule, tuple[str, ...]]:
    match rel:
        case Scan(table):
            appended = changed[table] == "appended"
            return (
                (APPENDED, ("δR as it is: rows only came, so there is nothing to net",)) if appended else (NETTED, ())
            )
        case Filter():
            return FILTERED, ()
        case Project():
            return PROJECTED, ()
        case Generate():
            return GENERATED, ()
        case Union():
            return BRANCHES, ()
        case Join():
            return _join_rule(rel, changed)
        case Aggregate(_, group_by):
            no_key = () if group_by else ("it has no key: any change touches its one group",)
            return GROUP_KEYS, ("not a change table: it is not on top, so there is no kept state to add to", *no_key)
        case Window() if only_looks_back(rel):
            return ROWS_BEHIND, ("not row by row: a row's values depend on those before it",)
        case Window(_, partition_by):
            no_key = () if partition_by else ("it has no key: any change touches its one partition",)
            return PARTITION_KEYS, ("not row by row: a row's values depend on the others of its partition", *no_key)
        case Top():
            return BEFORE_AND_AFTER, ("it has no key: any change may move any row in or out",)
        case Values() | Changes() | SetOperation() | Pivot() | Unpivot():
            raise InternalError(f"{type(rel).__name__} does not change, or is never in a definition")
        case _:
            assert_never(rel)


def _join_rule(rel: Join, changed: Changed) -> tuple[Rule, tuple[str, ...]]:
    if join_key(rel, changed) is not None:
        return JOIN_KEYS, ("not join terms: both sides changed, and each would be read for the other and for itself",)
    match rel.kind:
        case "inner":
            return JOIN_TERMS, ()
        case "semi" | "anti":
            return FLIPS, ("not join terms alone: a left row may find its first match, or lose its last one",)
        case "left" | "full":
            return OUTER_TERMS, ("not join terms alone: a row may be padded, or no longer",)
        case _:
            assert_never(rel.kind)
