"""Rows of a table as they were, from those that are there now, so that a table is read once instead of twice.

R_old = R_new − δR. So it is with all that is made of a table's rows one by one, X made of filters, projections, and
semi- and anti-joins with something else:   X(R_old) = X(R_new) − X(δR)

Where keys are computed afresh, the same few rows of a table are asked for as they were and as they are. Then X(R_new)
stands twice in the change, and can be computed once (`changes/parts.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from viewkeeper.algebra.relations import (
    WEIGHT_FIELD,
    Changes,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Union,
    inputs,
    pass_through,
    with_inputs,
)
from viewkeeper.changes.parts import mentions
from viewkeeper.changes.weights import negated, net, one_by_one, positive, weighted

Leaf = Callable[[Scan], Relation]


def from_one_read(change: Relation, worth: Callable[[Relation], bool]) -> Relation:
    """The same change; `worth` says of rows as they are whether it pays to compute them once."""
    there = mentions(change)
    known: dict[Relation, Relation] = {}

    def visit(rel: Relation) -> Relation:
        if rel not in known:
            now = _over(rel, lambda scan: replace(scan, state="new")) if _was(rel) else None
            if now is not None and now in there and worth(now):
                known[rel] = _restored(now, _over(rel, lambda scan: Changes(scan.table, scan.columns)))
            else:
                known[rel] = with_inputs(rel, tuple(map(visit, inputs(rel))))
        return known[rel]

    return visit(change)


def _restored(now: Relation, moved: Relation) -> Relation:
    """X(R_new) − X(δR), each row as often as it was there."""
    rows = pass_through(now.schema)
    came_and_went = Project(negated(moved), (*rows, *pass_through((WEIGHT_FIELD,))))
    return Project(one_by_one(positive(net(Union((weighted(now, 1), came_and_went))))), rows)


def _was(rel: Relation) -> bool:
    """Whether it is made of the rows that a table had, one by one."""
    match rel:
        case Scan(state=state):
            return state == "old"
        case Filter(input) | Project(input) | Join(input, _, "semi" | "anti"):
            return _was(input)
        case _:
            return False


def _over(rel: Relation, leaf: Leaf) -> Relation:
    """The same, made of another leaf; where that has weights, they go along."""
    match rel:
        case Scan():
            return leaf(rel)
        case Project(input, items):
            below = _over(input, leaf)
            weights = (WEIGHT_FIELD,) if WEIGHT_FIELD in below.schema else ()
            return Project(below, (*items, *pass_through(weights)))
        case _:
            first, *others = inputs(rel)
            return with_inputs(rel, (_over(first, leaf), *others))
