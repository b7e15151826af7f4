"""Tidying that keeps the meaning: unused columns out, empty relations away."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import assert_never

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.conditions import not_null, present_if_true
from viewkeeper.algebra.conditions import terms as terms_of
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
    Clock,
    Column,
    Outer,
    Scalar,
    Subquery,
    columns,
    conjunction,
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


_VARYING = (Column, Outer, Subquery, Clock)


def constants(rel: Relation) -> dict[str, Scalar]:
    """The columns that projections give the same value in all rows, and that value; what leaves out rows keeps them."""
    match rel:
        case Window(input) | Filter(input) | Join(input, _, "semi" | "anti" | "left"):
            return constants(input)
        case Join(left, right, "inner"):
            return {**constants(left), **constants(right)}
        case Project(input, items):
            known = constants(input)
            own = {i.name: i.value for i in items if not any(isinstance(n, _VARYING) for n in walk(i.value))}
            kept = ((i.name, i.value.name) for i in items if isinstance(i.value, Column) and i.value.name in known)
            return {**own, **{name: known[below] for name, below in kept}}
        case _:
            return {}


def sunk(rel: Relation) -> Relation:
    """Every condition as deep as it can be asked: at one side of a join, at the lowest join that has its columns.

    Where conditions above an outer join leave out the rows that it pads, it pads none:
    σ_p(L ⟕ R) = σ_p(L ⋈ R), if p is never true where the columns of R are NULL
    What looks at the clock stays in its filter.
    """
    return _sunk(rel, [], frozenset())


def _sunk(rel: Relation, terms: list[Scalar], present: frozenset[str]) -> Relation:
    """σ_terms(rel), of which rows with NULL in any of the columns that must be present are left out above."""
    here = present.union(*map(present_if_true, terms))
    match rel:
        case Filter(input, predicate):
            asked = terms_of(predicate)
            waits = [term for term in asked if reads_clock(term)]
            below = _sunk(input, [*(term for term in asked if term not in waits), *terms], present)
            return Filter(below, conjunction(waits)) if waits else below
        case Project(input, items):
            renamed: dict[str, Scalar] = {i.name: i.value for i in items if isinstance(i.value, Column)}
            down = [term for term in terms if columns(term) <= renamed.keys() and not subqueries(term)]
            needed = frozenset().union(*(not_null(i.value) for i in items if i.name in here))
            below = _sunk(input, [substitute(term, renamed) for term in down], needed)
            return _kept(Project(below, items), [term for term in terms if term not in down])
        case Join() if (unpadded := _unpadded(rel, here)) is not None:
            return _sunk(unpadded, terms, present)
        case Join(left, right, "inner", condition, False):
            asked = [term for term in (*terms_of(condition), *terms) if term != TRUE]
            one, other, both = _sides(rel, asked)
            needed = here | present_if_true(condition)
            return Join(_sunk(left, one, needed), _sunk(right, other, needed), "inner", conjunction(both))
        case Join(left, right, "left" | "semi" | "anti" as kind, condition, False):
            one, padded, above = _sides(rel, terms)
            matched, other, both = _sides(rel, [term for term in terms_of(condition) if term != TRUE])
            met = present_if_true(condition)
            if kind == "semi":
                one += matched
            else:  # a row that does not match for itself is padded, or kept
                both = [*matched, *both]
            ours = here | met if kind == "semi" else here
            joined = Join(_sunk(left, one, ours), _sunk(right, other, met), kind, conjunction(both))
            return _kept(joined, [*padded, *above])
        case Union(parts):
            return Union(tuple(_sunk(part, terms, present) for part in parts))
        case Aggregate(input, keys, _, ()) | Window(input, keys):
            down = [t for t in terms if columns(t) and columns(t) <= set(keys) and not subqueries(t)]
            below = _sunk(input, down, here.intersection(keys))
            return _kept(with_inputs(rel, (below,)), [t for t in terms if t not in down])
        case _:
            return _kept(with_inputs(rel, tuple(map(sunk, inputs(rel)))), terms)


def _unpadded(join: Join, present: frozenset[str]) -> Relation | None:
    """The join without the rows that are NULL where columns must be present, if it is one that makes such rows."""
    left, right, condition = join.left, join.right, join.condition
    if join.lateral or join.kind not in ("left", "full"):
        return None
    ours, theirs = (not present.isdisjoint(names(side)) for side in (left, right))
    if join.kind == "left":
        return Join(left, right, "inner", condition) if theirs else None
    if ours:
        return Join(left, right, "left", condition)
    return Project(Join(right, left, "left", condition), pass_through(join.schema)) if theirs else None


def _sides(join: Join, terms: list[Scalar]) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """The terms that read only the left side, only the right side, and the others."""
    sides = [set(names(join.left)), set(names(join.right))]
    one, other = ([t for t in terms if columns(t) and columns(t) <= side and not subqueries(t)] for side in sides)
    return one, other, [t for t in terms if t not in one and t not in other]


def _kept(rel: Relation, terms: list[Scalar]) -> Relation:
    return Filter(rel, conjunction(terms)) if terms else rel


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
