"""δ of each operator: the change of a relation from the changes of its tables.

Every rule reads as its equation. The result is a relation with `__vk_weight`, over three kinds of leaves: tables
as they were, as they are, and their changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from viewkeeper.algebra.clock import CLOCK, moved_bounds, reads_clock
from viewkeeper.algebra.keys import NOTHING, Declared, equal_columns, referred
from viewkeeper.algebra.matching import looked_at
from viewkeeper.algebra.normalize import drop_empty, sunk
from viewkeeper.algebra.orders import only_looks_back
from viewkeeper.algebra.relations import (
    WEIGHT_FIELD,
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
    Schema,
    SetOperation,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    empty,
    is_empty,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import NULL, Cast, Column, Scalar
from viewkeeper.changes.flips import flips_by_key
from viewkeeper.changes.groups import affected_keys, first_touched, join_key, near, restrict
from viewkeeper.changes.own import ShownColumns, shown_joins, unmatched
from viewkeeper.changes.references import keep_partners, row_by_row
from viewkeeper.changes.touched import touched
from viewkeeper.changes.weights import (
    Changed,
    Known,
    before,
    negated,
    negative,
    net,
    only_appends,
    positive,
    product,
    weighted,
)
from viewkeeper.errors import InternalError


def change(rel: Relation, changed: Changed, declared: Declared = NOTHING, own: bool = False) -> Relation:
    """δ(rel), with every part that is empty by construction gone; what is declared makes more parts empty.

    If it is kept as it is, its `own` rows as they were may tell what else its tables would be read for.
    """
    joined = sunk(rel) if declared.references else rel
    return drop_empty(_change(joined, Known(changed, declared, shown_joins(joined) if own else {})))


def _change(rel: Relation, changed: Known) -> Relation:
    match rel:
        case Scan():
            return _scan(rel, changed)
        case Values():
            return empty((*rel.schema, WEIGHT_FIELD))
        case Filter():
            return _filter(rel, changed)
        case Project():
            return _project(rel, changed)
        case Join():
            return _join(rel, changed)
        case Union():
            return _union(rel, changed)
        case Aggregate():
            return _aggregate(rel, changed)
        case Window():
            return _behind(rel, changed) if only_looks_back(rel) else _window(rel, changed)
        case Top():
            return _top(rel, changed)
        case Generate():
            return _generate(rel, changed)
        case Changes() | SetOperation() | Pivot() | Unpivot():
            raise InternalError(f"{type(rel).__name__} has no change rule: it is never in a definition")
        case _:
            assert_never(rel)


def _scan(rel: Scan, changed: Known) -> Relation:
    """δR, netted on the columns the view reads, so that updates of other columns vanish."""
    kind = changed.get(rel.table)
    if kind is None:
        return empty((*rel.schema, WEIGHT_FIELD))
    changes = Changes(rel.table, rel.columns)
    return changes if kind == "appended" else net(changes)


def _filter(rel: Filter, changed: Known) -> Relation:
    """δ(σ_p E) = σ_p δE; where p looks at the clock + σ_{p ∧ ¬p_old} E_old − σ_{p_old ∧ ¬p} E_old"""
    own = Filter(_change(rel.input, changed), rel.predicate)
    if CLOCK not in changed or not reads_clock(rel.predicate):
        return own
    entered, left = moved_bounds(rel.predicate)
    was = before(rel.input, changed)
    return Union((own, weighted(Filter(was, entered), 1), weighted(Filter(was, left), -1)))


def _project(rel: Project, changed: Known) -> Relation:
    """δ(π_A E) = π_{A,weight} δE"""
    return Project(_change(rel.input, changed), (*rel.items, *pass_through((WEIGHT_FIELD,))))


def _join(rel: Join, changed: Known) -> Relation:
    """One rule per kind; nested inner joins give one term per changed table."""
    columns = pass_through((*rel.schema, WEIGHT_FIELD))
    terms = _by_reference(rel, changed)
    if terms is None:
        key = join_key(rel, changed) if rel not in changed.shown else None
        terms = (_key_by_key(rel, tuple(key), changed),) if key is not None else _by_kind(rel, changed)
    return Union(tuple(Project(term, columns) for term in terms))


def _by_kind(rel: Join, changed: Known) -> tuple[Relation, ...]:
    match rel.kind:
        case "inner":
            return _inner(rel, changed)
        case "semi":
            return _semi(rel, changed)
        case "anti":
            return _anti(rel, changed)
        case "left":
            return _left(rel, changed)
        case "full":
            # L ⟗ R = (L ⟕ R) ⊎ pad(R ▷ L)
            alone = _anti(Join(rel.right, rel.left, "anti", rel.condition), changed, changed.shown.get(rel))
            return (*_left(rel, changed), *(_padded(term, rel.schema) for term in alone))
        case _:
            assert_never(rel.kind)


def _by_reference(rel: Join, changed: Known) -> tuple[Relation, ...] | None:
    """The terms where one side refers to the other by a foreign key; None where none helps."""
    sides = [(rel.left, rel.right), (rel.right, rel.left)] if rel.kind == "inner" else [(rel.left, rel.right)]
    for child, parent in sides:
        references = referred(child, parent, rel.condition, changed.declared) if rel.kind != "full" else ()
        if references and keep_partners(_change(parent, changed), references, changed):
            refer = _inner_to_parent if rel.kind == "inner" else _to_parent
            return refer(Join(child, parent, rel.kind, rel.condition), changed)
    return None


def _inner_to_parent(rel: Join, changed: Known) -> tuple[Relation, ...]:
    """δ(L ⋈ O) = δL ⋈ O_old + δ⁺L ⋈ δO, where rows of L that stay keep their partners.

    δL ⋈ O_new, where moreover no row of L went.
    """
    own = _net_change(rel.left, changed)
    if only_appends(rel.left, changed):
        return (Join(own, rel.right, "inner", rel.condition),)
    return (
        Join(own, before(rel.right, changed), "inner", rel.condition),
        product(positive(own), _change(rel.right, changed), rel.condition),
    )


def _to_parent(rel: Join, changed: Known) -> tuple[Relation, ...]:
    """δ(L ∘ O) = δ⁺L ∘ O_new + δ⁻L ∘ O_old, ∘ one of ⟕ ⋉ ▷, where rows of L that stay keep their partners."""
    own = _net_change(rel.left, changed)
    came = Join(positive(own), rel.right, rel.kind, rel.condition)
    if only_appends(rel.left, changed):
        return (came,)
    return (came, Join(negative(own), before(rel.right, changed), rel.kind, rel.condition))


def _net_change(rel: Relation, changed: Known) -> Relation:
    """δE of which the rows that come are all in E_new, and the rows that go in E_old."""
    own = _change(rel, changed)
    return own if only_appends(rel, changed) or row_by_row(rel) else net(own)


def _key_by_key(rel: Join, key: tuple[str, ...], changed: Known) -> Relation:
    """δ(L ∘ R) = (L ∘ R)_new ⋉ T − (L ∘ R)_old ⋉ T, T = the keys that δL or δR touches.   [affected keys]"""
    join = replace(rel, right=looked_at(rel.right, rel.condition)) if rel.kind in ("semi", "anti") else rel
    below = drop_empty(_touched(join, key, changed))
    if is_empty(below):
        return empty((*rel.schema, WEIGHT_FIELD))
    keys = affected_keys(below, key)
    now, then = (restrict(state, keys) for state in (join, before(join, changed)))
    both = Union((weighted(now, 1), weighted(then, -1)))
    return net(both) if only_appends(rel, changed) else both  # rows that stay come and go


def _inner(rel: Join, changed: Known) -> tuple[Relation, ...]:
    """δ(L ⋈ R) = δL ⋈ R_old + L_new ⋈ δR"""
    return (
        Join(_change(rel.left, changed), before(rel.right, changed), "inner", rel.condition),
        Join(rel.left, _change(rel.right, changed), "inner", rel.condition),
    )


def _own(rel: Join, changed: Known) -> Relation:
    """δL ⋉ R_new, δL ▷ R_new or δL ⟕ R_new: what the left rows that came and went bring along."""
    equal = list(equal_columns(rel))
    right = near(rel.right, _touched(rel.left, (ours for ours, _ in equal), changed), equal) if equal else rel.right
    return Join(_change(rel.left, changed), right, rel.kind, rel.condition)


def _semi(rel: Join, changed: Known) -> tuple[Relation, ...]:
    """δ(L ⋉ R) = δL ⋉ R_new + flips of L_old"""
    join = replace(rel, right=looked_at(rel.right, rel.condition))
    return (_own(join, changed), _flips(join.left, join.right, join.condition, changed))


def _anti(rel: Join, changed: Known, shown: ShownColumns | None = None) -> tuple[Relation, ...]:
    """δ(L ▷ R) = δL ▷ R_new − flips of L_old"""
    join = replace(rel, right=looked_at(rel.right, rel.condition))
    return (_own(join, changed), negated(_flips(join.left, join.right, join.condition, changed, shown)))


def _flips(
    left: Relation, right: Relation, condition: Scalar, changed: Known, shown: ShownColumns | None = None
) -> Relation:
    """The rows of L_old that found or lost their last match: C ⋉ R_new − C ⋉ R_old, C = L_old ⋉ δR.

    On any condition: the key is the left row itself, and only rows that meet a changed right row are looked at.
    Where rows of R only came, and the view itself shows which rows of L_old had no match: C ⋉ σ_{no match} V_old.
    On equal columns alone: by how many matches each key has and had (`changes/flips.py`).
    """
    change_, was = _change(right, changed), before(left, changed)
    met = Join(was, change_, "semi", condition)
    alone = unmatched(left, right, condition, shown) if shown and only_appends(right, changed) else None
    if alone is not None:
        return weighted(Join(met, alone.relation, "semi", alone.matches), 1)
    by_key = flips_by_key(Join(was, right, "semi", condition), change_)
    if by_key is not None:
        return by_key
    compared = dict.fromkeys(theirs for _, theirs in equal_columns(Join(left, right, "semi", condition)))
    moved, equal = _touched(right, compared, changed), [(theirs, theirs) for theirs in compared]
    new, old = (near(state, moved, equal) for state in (right, before(right, changed)))
    now, then = Join(met, new, "semi", condition), Join(met, old, "semi", condition)
    return net(Union((weighted(now, 1), weighted(then, -1))))


def _left(rel: Join, changed: Known) -> tuple[Relation, ...]:
    """δ(L ⟕ R) = δL ⟕ R_new + L_old ⋈ δR − pad(flips of L_old)"""
    outer = Join(rel.left, rel.right, "left", rel.condition)
    met = Join(before(rel.left, changed), _change(rel.right, changed), "inner", rel.condition)
    looked = looked_at(rel.right, rel.condition)
    flipped = negated(_flips(rel.left, looked, rel.condition, changed, changed.shown.get(rel)))
    return (_own(outer, changed), met, _padded(flipped, rel.schema))


def _padded(change_: Relation, schema: Schema) -> Relation:
    """The rows of a change with NULL for every column of the schema that they do not have."""
    have = {f.name for f in change_.schema}
    items = tuple(Item(f.name, Column(f.name) if f.name in have else Cast(NULL, f.type), f.type) for f in schema)
    return Project(change_, (*items, *pass_through((WEIGHT_FIELD,))))


def _union(rel: Union, changed: Known) -> Relation:
    """δ(E ⊎ F) = δE ⊎ δF"""
    columns = pass_through((*rel.schema, WEIGHT_FIELD))
    return Union(tuple(Project(_change(i, changed), columns) for i in rel.inputs))


def _generate(rel: Generate, changed: Known) -> Relation:
    """δ(gen E) = gen δE: a row that comes or goes brings or takes all its rows"""
    made = Generate(_change(rel.input, changed), rel.generator, rel.fields, rel.outer)
    return Project(made, pass_through((*rel.schema, WEIGHT_FIELD)))


def _aggregate(rel: Aggregate, changed: Known) -> Relation:
    """δ(γ_G E) = γ_G(E_new ⋉ T) − γ_G(E_old ⋉ T), T = the groups that δE touches.   [affected keys]"""
    return _by_key(rel, rel.group_by, changed)


def _window(rel: Window, changed: Known) -> Relation:
    """δ(ω_P E) = ω_P(E_new ⋉ T) − ω_P(E_old ⋉ T), T = the partitions that δE touches.   [affected keys]"""
    return _by_key(rel, rel.partition_by, changed)


def _behind(rel: Window, changed: Known) -> Relation:
    """δ(ω_O E) = ω_O(E_new) ⋉ S − ω_O(E_old) ⋉ S, S = from the first row that δE touches on.   [affected rows]"""
    below = drop_empty(_change(rel.input, changed))
    if is_empty(below):
        return empty((*rel.schema, WEIGHT_FIELD))
    first = first_touched(below, rel.order_by[0])
    now = Join(rel, first.relation, "semi", first.not_before)
    then = Join(with_inputs(rel, (before(rel.input, changed),)), first.relation, "semi", first.not_before)
    return net(Union((weighted(now, 1), weighted(then, -1))))


def _top(rel: Top, changed: Known) -> Relation:
    """δ(top E) = top E_new − top E_old: there is only one key, which any change touches"""
    return _by_key(rel, (), changed)


def _by_key(rel: Aggregate | Window | Top, key: tuple[str, ...], changed: Known) -> Relation:
    """Op(E_new ⋉ T) − Op(E_old ⋉ T) for an operator whose result is made key by key."""
    below = drop_empty(_touched(rel.input, key, changed) if key else _change(rel.input, changed))
    if is_empty(below):
        return empty((*rel.schema, WEIGHT_FIELD))
    keys = affected_keys(below, key)
    now = with_inputs(rel, (restrict(rel.input, keys),))
    then = with_inputs(rel, (restrict(before(rel.input, changed), keys),))
    return net(Union((weighted(now, 1), weighted(then, -1))))


def _touched(rel: Relation, columns: Iterable[str], changed: Known) -> Relation:
    """⊇ π_columns(δE)"""
    asked = tuple(dict.fromkeys(columns))
    return touched(rel, asked, changed, lambda below: _change(below, changed), changed.declared.small)
