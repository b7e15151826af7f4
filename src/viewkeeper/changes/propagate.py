"""δ of each operator: the change of a relation from the changes of its tables.

Every rule reads as its equation. The result is a relation with `__vk_weight`, over three kinds of leaves: tables
as they were, as they are, and their changes.
"""

from __future__ import annotations

from typing import assert_never

from viewkeeper.algebra.normalize import drop_empty
from viewkeeper.algebra.relations import (
    WEIGHT_FIELD,
    Aggregate,
    Changes,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Union,
    Values,
    empty,
    pass_through,
)
from viewkeeper.changes.groups import affected_keys, restrict
from viewkeeper.changes.weights import Changed, before, net, weighted
from viewkeeper.errors import InternalError


def change(rel: Relation, changed: Changed) -> Relation:
    """δ(rel), with every part that is empty by construction gone."""
    return drop_empty(_change(rel, changed))


def _change(rel: Relation, changed: Changed) -> Relation:
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
        case Changes():
            raise InternalError("the change of a change is never asked for")
        case _:
            assert_never(rel)


def _scan(rel: Scan, changed: Changed) -> Relation:
    """δR, netted on the columns the view reads, so that updates of other columns vanish."""
    kind = changed.get(rel.table)
    if kind is None:
        return empty((*rel.schema, WEIGHT_FIELD))
    changes = Changes(rel.table, rel.columns)
    return changes if kind == "appended" else net(changes)


def _filter(rel: Filter, changed: Changed) -> Relation:
    """δ(σ_p E) = σ_p δE"""
    return Filter(_change(rel.input, changed), rel.predicate)


def _project(rel: Project, changed: Changed) -> Relation:
    """δ(π_A E) = π_{A,weight} δE"""
    return Project(_change(rel.input, changed), (*rel.items, *pass_through((WEIGHT_FIELD,))))


def _join(rel: Join, changed: Changed) -> Relation:
    """δ(L ⋈ R) = δL ⋈ R_old + L_new ⋈ δR; nested joins give one term per changed table."""
    if rel.kind != "inner":
        raise InternalError(f"no change rule for {rel.kind} joins")
    from_left = Join(_change(rel.left, changed), before(rel.right, changed), "inner", rel.condition)
    from_right = Join(rel.left, _change(rel.right, changed), "inner", rel.condition)
    columns = pass_through((*rel.schema, WEIGHT_FIELD))
    return Union((Project(from_left, columns), Project(from_right, columns)))


def _union(rel: Union, changed: Changed) -> Relation:
    """δ(E ⊎ F) = δE ⊎ δF"""
    columns = pass_through((*rel.schema, WEIGHT_FIELD))
    return Union(tuple(Project(_change(i, changed), columns) for i in rel.inputs))


def _aggregate(rel: Aggregate, changed: Changed) -> Relation:
    """δ(γ_G E) = γ_G(E_new ⋉ T) − γ_G(E_old ⋉ T), T = the groups that δE touches.   [affected keys]"""
    below = drop_empty(_change(rel.input, changed))
    if isinstance(below, Values) and not below.rows:
        return empty((*rel.schema, WEIGHT_FIELD))
    touched = affected_keys(below, rel.group_by)
    now = Aggregate(restrict(rel.input, touched), rel.group_by, rel.measures)
    then = Aggregate(restrict(before(rel.input, changed), touched), rel.group_by, rel.measures)
    return net(Union((weighted(now, 1), weighted(then, -1))))
