"""The order of inner joins: from the part with the fewest rows on, so that each step carries few.

(C ⋈ O) ⋈ δL = (δL ⋈ O) ⋈ C. Spark joins in the order in which it is told to, and the rules tell it the order of the
definition, in which large tables are joined before they meet the change.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.relations import (
    Filter,
    Join,
    Project,
    Relation,
    inputs,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import TRUE, Call, Column, Scalar, conjunction, conjuncts, own_columns, subqueries
from viewkeeper.changes.counts import RowCounts


def fewest_first(rel: Relation, counts: RowCounts) -> Relation:
    """The same rows, with the inner joins of three and more relations in an order that carries few rows."""
    return _Orderer(counts, {}).ordered(rel)


def connected(rel: Relation) -> Relation:
    """The same rows, with no product of relations that equalities connect by way of others.

    In `FROM part, supplier, lineitem` the first two meet by the third. A change of the product, all suppliers for each
    changed part, is more than either of them.
    """
    parts, conditions = _flat(rel)
    below = [connected(part) for part in parts] if len(parts) > 1 else []
    order = _connected_order(below, conditions)
    if order == below:
        return with_inputs(rel, tuple(map(connected, inputs(rel))))
    joined, left = order[0], conditions
    for part in order[1:]:
        joined = _join(joined, part, left)
        left = [c for c in left if c not in conjuncts(joined.condition)]
    return Project(joined, pass_through(rel.schema))


def _connected_order(parts: list[Relation], conditions: list[Scalar]) -> list[Relation]:
    """As they are written, but what an equality connects comes first, and what nothing connects comes last."""
    order, left = parts[:1], parts[1:]
    while left:
        there = {name for part in order for name in names(part)}
        order.append(min(left, key=lambda part: _apart(conditions, there, {*names(part)})))
        left.remove(order[-1])
    return order


def _apart(conditions: list[Scalar], ours: set[str], theirs: set[str]) -> int:
    """0 if an equality connects them, 1 if any condition does, 2 if none."""
    read = ((c, own_columns(c)) for c in conditions)
    both = [c for c, r in read if r & ours and r & theirs and r <= ours | theirs]
    if any(isinstance(c, Call) and c.name in ("=", "<=>") for c in both):
        return 0
    return 1 if both else 2


def _join(left: Relation, right: Relation, conditions: list[Scalar]) -> Join:
    """The inner join on all of the conditions that can be told of both."""
    there = {*names(left), *names(right)}
    return Join(left, right, "inner", conjunction([c for c in conditions if own_columns(c) <= there]))


@dataclass(frozen=True)
class _Orderer:
    counts: RowCounts
    known: dict[Relation, Relation]

    def ordered(self, rel: Relation) -> Relation:
        if rel not in self.known:
            self.known[rel] = self._ordered(rel)
        return self.known[rel]

    def _ordered(self, rel: Relation) -> Relation:
        parts, conditions = _flat(rel)
        if len(parts) < 3 or not any(map(self.counts.is_few, parts)):
            return with_inputs(rel, tuple(map(self.ordered, inputs(rel))))
        below = [self.ordered(part) for part in parts]
        chains = (self._chain(first, below, conditions) for first in sorted(below, key=self.counts.rows))
        joined = min(chains, key=self._carried)
        return Project(joined, pass_through(rel.schema))

    def _chain(self, first: Relation, parts: list[Relation], conditions: list[Scalar]) -> Relation:
        """From one part on, always what leaves the fewest rows; what no condition connects comes last."""
        joined, left = first, [part for part in parts if part != first]
        while left:
            steps = [_join(joined, part, conditions) for part in left]
            best = min(steps, key=lambda step: (step.condition == TRUE, self.counts.rows(step)))
            left.remove(best.right)
            conditions = [c for c in conditions if c not in conjuncts(best.condition)]
            joined = best
        return joined

    def _carried(self, chain: Relation) -> float:
        """How many rows come out of all joins of a chain."""
        total = 0.0
        while isinstance(chain, Join):
            total, chain = total + self.counts.rows(chain), chain.left
        return total


def _flat(rel: Relation) -> tuple[list[Relation], list[Scalar]]:
    """The relations that are inner-joined, and all conditions on them; the relation itself where it is no such join."""
    match rel:
        case Join(left, right, "inner", condition) if not rel.lateral:
            (ours, of_ours), (theirs, of_theirs) = _flat(left), _flat(right)
            shown = [name for part in (*ours, *theirs) for name in names(part)]
            if len(set(shown)) == len(shown):
                own = [c for c in conjuncts(condition) if c != TRUE]
                return [*ours, *theirs], [*of_ours, *of_theirs, *own]
            return [left, right], conjuncts(condition)
        case Project(input, items) if all(i.value == Column(i.name) for i in items):
            parts, conditions = _flat(input)
            return (parts, conditions) if len(parts) > 1 else ([rel], [])
        case Filter(input, predicate) if not subqueries(predicate):
            parts, conditions = _flat(input)
            return (parts, [*conditions, *conjuncts(predicate)]) if len(parts) > 1 else ([rel], [])
        case _:
            return [rel], []
