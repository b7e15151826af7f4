"""Where a foreign key tells that rows which stay keep their partners in a join.

L refers to table P by its key k, and O is the side of the join that holds P. A row of L that is there before and
after the change has its k in P_old and in P_new. If no key of P stayed with another row, the keys in δP are all in
only one of them. So if the k of every row of δO comes from δP, no row of δO meets a row of L that stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.keys import Declared, Reference, origins
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import drop_empty
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Filter,
    Generate,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    is_empty,
)
from viewkeeper.algebra.scalars import ZERO, Column, call
from viewkeeper.algebra.types import BIGINT
from viewkeeper.changes.weights import Changed, ChangeKind, Known, net


def keep_partners(parent_change: Relation, references: tuple[Reference, ...], known: Known) -> bool:
    """Whether no row of δO meets a row of L that stays, by one of these references of L; False if δO is empty."""
    moved = drop_empty(parent_change)
    return not is_empty(moved) and any(_meets_only_moved(moved, r, known) for r in references)


def _meets_only_moved(moved: Relation, reference: Reference, known: Known) -> bool:
    table = reference.foreign_key.parent
    if known.get(table) not in ("appended", "apart"):
        return False
    found = origins(moved, reference.columns)
    return found is not None and all(isinstance(o.leaf, Changes) and o.leaf.table == table for o in found)


def row_by_row(rel: Relation) -> bool:
    """Whether the relation is made of the rows of one table, one by one, so that its change is net where theirs is."""
    match rel:
        case Scan():
            return True
        case Filter(input, predicate):
            return not reads_clock(predicate) and row_by_row(input)
        case Project(input) | Generate(input):
            return row_by_row(input)
        case _:
            return False


@dataclass(frozen=True)
class Question:
    """What would speak against knowing more of a table's change; if there is no such row, its change is of a kind.

    If it is about a `key` alone: values of it, by the table's own columns, that stayed with another row.
    """

    table: str
    against: Relation
    kind: ChangeKind = "apart"
    key: tuple[str, ...] = ()


def questions(rel: Relation, changed: Changed, declared: Declared) -> tuple[Question, ...]:
    """Keys that stay with another row, of tables that others refer to and of which anything may have changed."""
    asked = []
    for table in dict.fromkeys(r.parent for r in declared.references if changed.get(r.parent) == "any"):
        columns = {
            c.source.lower(): c for n in walk(rel) if isinstance(n, Scan) and n.table == table for c in n.columns
        }
        for key in dict.fromkeys(r.key for r in declared.references if r.parent == table):
            if set(key) <= columns.keys():
                own = tuple(columns[k].source for k in key)
                asked.append(Question(table, _replaced(table, columns, key), key=own))
    return tuple(asked)


def _replaced(table: str, columns: Mapping[str, ScanColumn], key: tuple[str, ...]) -> Relation:
    """σ_{least < 0 < most} γ_{k; least, most of the weights}(net δP)"""
    renamed = tuple(ScanColumn(c.source, c.source, c.type) for c in columns.values())
    change = net(Changes(table, renamed))
    least, most = Measure("__vk_least", "min", (WEIGHT,), BIGINT), Measure("__vk_most", "max", (WEIGHT,), BIGINT)
    keyed = Aggregate(change, tuple(columns[k].source for k in key), (least, most))
    return Filter(keyed, call("AND", call("<", Column(least.name), ZERO), call(">", Column(most.name), ZERO)))
