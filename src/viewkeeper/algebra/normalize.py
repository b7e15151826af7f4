"""Tidying that keeps the meaning: unused columns out, empty relations away."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import assert_never

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Generate,
    Item,
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
    empty,
    inputs,
    is_empty,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import (
    TRUE,
    Column,
    Outer,
    Scalar,
    columns,
    conjunction,
    conjuncts,
    subqueries,
    substitute,
)

_REMEMBERED = 10_000  # relations: a change mentions parts of itself many times


@lru_cache(_REMEMBERED)
def prune(rel: Relation, needed: frozenset[str] | None = None) -> Relation:
    """The relation with only the needed columns carried through it (all, if None), in their order.

    A relation may keep columns nobody asked for where dropping them would need a new operator.
    """
    wanted = frozenset(names(rel)) if needed is None else needed
    match rel:
        case Scan(table, cols, state):
            return Scan(table, tuple(c for c in cols if c.name in wanted), state)
        case Changes(table, cols):
            return Changes(table, tuple(c for c in cols if c.name in wanted))
        case Values():
            return rel
        case Filter(input, predicate):
            return Filter(prune(input, wanted | columns(predicate)), predicate)
        case Project(input, items):
            kept = tuple(i for i in items if i.name in wanted)
            used = frozenset().union(*(columns(i.value) for i in kept)) if kept else frozenset()
            return Project(prune(input, used), kept)
        case Join(left, right, _, condition):
            used = wanted | columns(condition)
            read = used.union(n.name for n in walk(right) if isinstance(n, Outer)) if rel.lateral else used
            return replace(rel, left=prune(left, read), right=prune(right, used))
        case Union(inputs):
            # Every branch must end with the same columns, so each gets exactly the wanted ones.
            return Union(tuple(_exactly(prune(i, wanted), wanted) for i in inputs))
        case Aggregate(input, group_by, measures, sets):
            # A global aggregate is one row because it measures something.
            kept_measures = tuple(m for m in measures if m.name in wanted) or (() if group_by else measures[:1])
            used = frozenset(group_by).union(*(m.reads for m in kept_measures))
            return Aggregate(prune(input, used), group_by, kept_measures, sets)
        case Window(input, partition_by, order_by, window_columns):
            kept_columns = tuple(c for c in window_columns if c.name in wanted)
            if not kept_columns:
                return prune(input, wanted)
            used = wanted.union(partition_by, (o.column for o in order_by), *(c.reads for c in kept_columns))
            return Window(prune(input, used), partition_by, order_by, kept_columns)
        case Top(input, order_by, limit, offset):
            return Top(prune(input, wanted.union(o.column for o in order_by)), order_by, limit, offset)
        case Generate(input, generator, fields, outer):
            return Generate(prune(input, wanted | columns(generator)), generator, fields, outer)
        case SetOperation(left, right, kind, all_):
            return SetOperation(prune(left), prune(right), kind, all_)
        case Pivot(input, group_by, pivot_columns, _, measures):
            used = frozenset(group_by).union(pivot_columns, *(m.reads for m in measures))
            return replace(rel, input=prune(input, used))
        case Unpivot(input, kept_as_is, taken):
            still = tuple(c for c in kept_as_is if c in wanted)
            return replace(rel, input=prune(input, frozenset(still).union(*taken)), kept=still)
        case _:
            assert_never(rel)


def _exactly(rel: Relation, wanted: frozenset[str]) -> Relation:
    if frozenset(names(rel)) <= wanted:
        return rel
    return Project(rel, pass_through(tuple(f for f in rel.schema if f.name in wanted)))


def collapse(rel: Relation) -> Relation:
    """Neighbouring projections as one, where at least one of them only renames."""
    below = with_inputs(rel, tuple(collapse(i) for i in inputs(rel)))
    match below:
        case Project(Project(input, inner), items) if _renames(items) or (_renames(inner) and not _nested(items)):
            by = {i.name: i.value for i in inner}
            return Project(input, tuple(Item(i.name, substitute(i.value, by), i.type) for i in items))
        case _:
            return below


def _renames(items: tuple[Item, ...]) -> bool:
    return all(isinstance(i.value, Column) for i in items)


def _nested(items: tuple[Item, ...]) -> bool:
    """Whether a subquery may refer to a column of this row by name."""
    return any(subqueries(i.value) for i in items)


def constants(rel: Relation) -> dict[str, Scalar]:
    """The columns that projections and windows give the same value in all rows, and that value."""
    match rel:
        case Window(input):
            return constants(input)
        case Project(input, items):
            known = constants(input)
            own = {i.name: i.value for i in items if not columns(i.value) and not subqueries(i.value)}
            kept = ((i.name, i.value.name) for i in items if isinstance(i.value, Column) and i.value.name in known)
            return {**own, **{name: known[below] for name, below in kept}}
        case _:
            return {}


def into_joins(rel: Relation) -> Relation:
    """σ_p(L ⋈_c R) = L ⋈_{c ∧ p} R, with every condition at the lowest inner join that has its columns.

    What looks at the clock stays in its filter.
    """
    below = with_inputs(rel, tuple(into_joins(i) for i in inputs(rel)))
    match below:
        case Filter(Join(kind="inner") as join, predicate):
            waits = [term for term in conjuncts(predicate) if reads_clock(term)]
            joined = _join_on(join, [term for term in conjuncts(predicate) if term not in waits])
            return Filter(joined, conjunction(waits)) if waits else joined
        case Join(left, right, "inner", condition):
            return _join_on(Join(left, right, "inner", TRUE), conjuncts(condition))
        case _:
            return below


def _join_on(join: Join, conditions: list[Scalar]) -> Join:
    here = [c for c in (*conjuncts(join.condition), *conditions) if c != TRUE]
    sides = []
    for side in (join.left, join.right):
        inner = isinstance(side, Join) and side.kind == "inner"
        own = [c for c in here if inner and columns(c) and columns(c) <= set(names(side))]
        here = [c for c in here if c not in own]
        sides.append(_join_on(side, own) if isinstance(side, Join) and own else side)
    return Join(sides[0], sides[1], "inner", conjunction(here))


@lru_cache(_REMEMBERED)
def drop_empty(rel: Relation) -> Relation:
    """The relation without the parts that are empty by construction; an empty relation if nothing is left."""
    match rel:
        case Scan() | Changes() | Values():
            return rel
        case Filter(input, predicate):
            below = drop_empty(input)
            return empty(rel.schema) if is_empty(below) else Filter(below, predicate)
        case Project(input, items):
            below = drop_empty(input)
            return empty(rel.schema) if is_empty(below) else Project(below, items)
        case Join(left, right):
            return _drop_empty_join(rel, drop_empty(left), drop_empty(right))
        case Union(parts):
            kept = tuple(i for i in map(drop_empty, parts) if not is_empty(i))
            return empty(rel.schema) if not kept else kept[0] if len(kept) == 1 else Union(kept)
        case Aggregate(input, group_by, measures):
            below = drop_empty(input)
            gone = is_empty(below) and group_by
            return empty(rel.schema) if gone else Aggregate(below, group_by, measures)
        case Window(input) | Top(input) | Generate(input):
            below = drop_empty(input)
            return empty(rel.schema) if is_empty(below) else with_inputs(rel, (below,))
        case SetOperation() | Pivot() | Unpivot():
            return with_inputs(rel, tuple(map(drop_empty, inputs(rel))))
        case _:
            assert_never(rel)


def _drop_empty_join(rel: Join, left: Relation, right: Relation) -> Relation:
    match rel.kind:
        case "inner" | "semi":
            gone = is_empty(left) or is_empty(right)
        case "left" | "anti":
            gone = is_empty(left)
        case "full":
            gone = is_empty(left) and is_empty(right)
        case _:
            assert_never(rel.kind)
    return empty(rel.schema) if gone else Join(left, right, rel.kind, rel.condition)
